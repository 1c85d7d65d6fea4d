"""In this process, `import jax` means hlotrace: for programs, and libraries, that were written for JAX.

`python -m hlotrace.as_jax script.py` runs a script so; a program that imports `hlotrace.as_jax` first, a
process started with HLOTRACE_AS_JAX=1 in its environment and `pytest -p hlotrace.as_jax` have the same.
`jax.numpy` is then `hlotrace.numpy` itself, and so is every public module; `jax._src` has what libraries take
from the inside of JAX (`inside.py`).  `jax` itself is a module of its own, as its `__version__` is that of
the jaxlib below, whose API this is.  Other processes, those that this one starts too, import what they always
did.
"""
import importlib.metadata
import logging
import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import hlotrace
from hlotrace.core.config import config
from hlotrace.core.surface import boundary
from hlotrace.core.surface.importing import is_asked_for
from hlotrace.runtime.binding import JaxRuntimeError, jaxlib_version
from hlotrace.runtime.status_line import going_on

with going_on(lambda: "importing hlotrace.as_jax"):     # the first time, without compiled files, takes longer
    from . import inside, light, logs

__all__: list[str] = []
_started_with = dict(os.environ)


class _Jax(ModuleType):
    """The module `jax`: what hlotrace has, under JAX's version."""

    def __init__(self) -> None:
        super().__init__("jax", hlotrace.__doc__)
        self.__file__, self.__path__, self.__all__ = hlotrace.__file__, hlotrace.__path__, hlotrace.__all__
        self.__version__ = jaxlib_version
        self.__version_info__ = tuple(map(int, jaxlib_version.split(".")[:3]))

    def __getattr__(self, name: str) -> Any:
        if name == "_src" or name == "version":
            return import_module(f"jax.{name}")
        return getattr(hlotrace, name)

    def __dir__(self) -> list[str]:
        return dir(hlotrace)


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of jax: its version."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {jaxlib_version}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{path}: jax is hlotrace in this process (hlotrace.as_jax), and has no "
                                "files")


class _Finder:
    """Finds `jax`, and what is in it and in no module of this package; see `core/surface/importing.py`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith("hlotrace."):
            return light.find_spec(name, path)
        if name in ("jax", "jax.version") or inside.has(name):
            return inside.same(name) or ModuleSpec(name, _Finder, is_package=True)
        if name.startswith("jax._src.") and not is_asked_for():
            # an error that had the name would give way to "cannot import name"
            raise ModuleNotFoundError(inside.missing(name))
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        if spec.name == "jax":
            _read_environment()
            return _Jax()
        if spec.name == "jax.version":
            module = ModuleType(spec.name, "jax.version: the version whose API this is.")
            jax = sys.modules["jax"]
            module.__version__, module.__version_info__ = jax.__version__, jax.__version_info__
            module._version = jax.__version__
            return module
        return inside.module(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        if module.__name__ == "jax":
            light.install()

    @staticmethod
    def find_distributions(context: Any) -> list[_Distribution]:
        return [_Distribution()] if context.name in (None, "jax") else []


def _read_environment() -> None:
    """Programs set JAX_ENABLE_X64 and the like before they import jax; hlotrace was imported before that."""
    for variable, value in os.environ.items():
        changed = variable.startswith("JAX_") and _started_with.get(variable) != value
        if changed and hasattr(config, variable.lower()):
            config.update(variable.lower(), value)
    if "HLOTRACE_CALLBACK_ERRORS" not in os.environ:
        config.update("hlotrace_callback_errors", "jax")        # libraries catch what they know
    boundary.note = ("--------------------\nFor simplicity, JAX has removed its internal frames from the "
                     "traceback of the following exception. Set JAX_TRACEBACK_FILTERING=off to include "
                     "these.")


def _part_of_jaxlib(name: str) -> ModuleType:
    """`jaxlib.xla_client` and the like, which are attributes where JAX has imported them."""
    try:
        return import_module(f"jaxlib.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module 'jaxlib' has no attribute {name!r}", name=name) from None


def _install() -> None:
    other = sys.modules.get("jax")
    if other is hlotrace:       # `sys.modules["jax"] = hlotrace` was said before
        for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
            del sys.modules[name]
    elif other is not None:
        raise ImportError("hlotrace.as_jax: the real jax is already imported "
                          f"({getattr(other, '__file__', other)}), and what has been made with it would not "
                          "fit: import hlotrace.as_jax before anything that imports jax, or start the "
                          "program with `python -m hlotrace.as_jax script.py`", name="jax")
    sys.meta_path.insert(0, _Finder)
    light.rename_all()
    JaxRuntimeError.__module__ = "jax.errors"       # of jaxlib's, which no module of this package defines
    vars(sys.modules["jaxlib"]).setdefault("__getattr__", _part_of_jaxlib)
    logs.install()
    # whoever listens to JAX's logger hears this one
    logging.getLogger("hlotrace").parent = logging.getLogger("jax")


_install()
