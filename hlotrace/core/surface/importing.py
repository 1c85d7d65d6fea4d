"""Imports of this package's modules under another name, and of those that are not there.

After `import hlotrace.as_jax`, or `sys.modules["jax"] = hlotrace`, programs that import jax run on hlotrace.
`import jax.numpy` is then `hlotrace.numpy` itself: Python alone would load its file a second time, as another
module.  jaxlib's C++ imports `jax.core` in this way.
"""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .missing import words

PACKAGE = __name__.partition(".")[0]
_BINDINGS = f"{PACKAGE}.extend.mlir."    # modules there are jaxlib's

# What as_jax/identities.py has renamed: (module, name) as they are here
renamed: dict[Any, tuple[str, str]] = {}


def _own_name(name: str) -> str | None:
    """The name here of a module of this package, under whatever name it is imported; None for others."""
    root, _, rest = name.partition(".")
    is_alias = getattr(sys.modules.get(root), "__path__", None) is sys.modules[PACKAGE].__path__
    if not rest or rest.startswith("_") or not is_alias:
        return None
    return f"{PACKAGE}.{rest}"


class Loaded:
    """A loader of a module whose name here is `own`.

    It is imported here and not where it is found: Python finds modules under a lock over all imports.
    """

    def __init__(self, own: str) -> None:
        self.own = own

    def create_module(self, _spec: ModuleSpec) -> ModuleType:
        module = import_module(self.own)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec     # importlib has put the other name's there


class OtherNames:
    """Finds modules of this package under other names, and jaxlib's under `extend.mlir`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        own = _own_name(name) or name
        if own.startswith(_BINDINGS):
            own = "jaxlib.mlir." + own.removeprefix(_BINDINGS)
        if own == name:
            return None
        from importlib.util import find_spec
        if find_spec(own) is None:
            return None
        loader: Any = Loaded(own)
        return ModuleSpec(name, loader)


def is_asked_for() -> bool:
    """Called by a finder: is a module only looked for, as by importlib.util.find_spec, and not imported?"""
    return sys._getframe(3).f_code.co_name != "_find_and_load_unlocked"


class Missing:
    """The last finder: says of a module, or a name after `from ... import`, that it is missing."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        own = _own_name(name)
        if own is None or is_asked_for():
            return
        parent, _, last = own.rpartition(".")
        if last.startswith("_"):
            return
        # an error that had the name would give way to "cannot import name"
        raise ModuleNotFoundError(words(sys.modules[parent], last))


sys.meta_path.insert(0, OtherNames)
sys.meta_path.append(Missing)
