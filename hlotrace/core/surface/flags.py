"""Options as absl flags, for programs that have absl read their command line."""
from __future__ import annotations

import sys
from typing import Any

from absl import app, flags


def define(config: Any) -> None:
    """Make of every option an absl flag of its name, which is set once absl has read the command line."""
    for name, value in config._values.items():
        if name not in flags.FLAGS:
            kind = flags.DEFINE_boolean if type(value) is bool else flags.DEFINE_string
            kind(name, None, f"the option {name} of jax.config; {value!r} unless given", module_name="jax")
    app.call_after_init(lambda: _take(config))


def parse(config: Any) -> None:
    """Read what starts with `--jax` on the command line, up to `--`, now."""
    define(config)
    words = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    flags.FLAGS(["", *(word for word in words if word.startswith(("--jax", "--nojax")))], known_only=True)
    _take(config)


def _take(config: Any) -> None:
    for name in config._values:
        if flags.FLAGS[name].present:
            config.update(name, flags.FLAGS[name].value)
