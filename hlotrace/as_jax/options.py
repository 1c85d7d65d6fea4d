"""The options as `jax._src.config` names them: each has a `.value` and gives a context manager."""
from typing import Any

from ..api import contexts
from ..core.config import config

update = config.update
_CONTEXTS = {name: x for name, x in vars(contexts).items() if isinstance(x, contexts.OptionContext)}
_FUNCTIONS = {"transfer_guard"}      # of JAX's module too


def __dir__() -> list[str]:
    names = {*config.values, *[name.removeprefix("jax_") for name in config.values]}
    return ["update", *(names - _FUNCTIONS)]


def __getattr__(name: str) -> Any:
    option = name if name in config.values else f"jax_{name}"
    if option not in config.values:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    default = True if isinstance(config.read(option), bool) else ...
    return _CONTEXTS.get(name) or contexts.option_context(option, default, "")
