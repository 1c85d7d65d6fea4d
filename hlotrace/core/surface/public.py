"""What a public module exports to `dir()`, completion and `import *`, and what is imported when used."""
import functools
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from .boundary import boundary, filter_traceback
from .missing import NoSuchName


def export_names(namespace: dict[str, Any], *more: str, lazy: Mapping[str, str] | None = None) -> None:
    """Give a module, by its `globals()`, the `__all__` and `__dir__` of what is public in it.

    That is `__all__` where there is one; otherwise its names that have no underscore in front and are no
    modules, since those it only uses.

    Args:
        *more: names that it exports besides, such as its public modules
        lazy: those that are imported when they are first used, {home: names}: names that the module `home` of
            this package has (".api.jit": of the package around it), or, where `home` is "", modules of the
            package
    """
    for name, value in namespace.items():
        if not name.startswith("_"):
            its = getattr(value, "__name__", name)
            namespace[name] = entered(value, namespace["__name__"],
                                      its if namespace.get(its) is value else name)
    late = {name: home for home, names in (lazy or {}).items() for name in names.split()}
    own = namespace.get("__all__") or [name for name, value in namespace.items()
                                       if not name.startswith("_") and not isinstance(value, ModuleType)]
    names = sorted({*own, *more, *late})
    namespace["__all__"], namespace["__dir__"] = names, lambda: names
    install_getattr(namespace, late)


def install_getattr(namespace: dict[str, Any], late: Mapping[str, str] = MappingProxyType({})) -> None:
    """Let a module, by its `globals()`, say of a name that it lacks whether JAX has it.

    Args:
        late: the names that are imported when they are first used, and their homes, as in `export_names`
    """
    namespace["__getattr__"] = _reader(namespace, late)
    namespace.setdefault("__path__", [])    # `from module import name` then asks core/surface/importing.py


def _reader(namespace: dict[str, Any], late: Mapping[str, str]) -> Callable[[str], Any]:
    package, more = namespace["__name__"], namespace.get("__getattr__")

    def read(name: str) -> Any:
        if name not in late:
            if more is not None and not name.startswith("__"):
                try:
                    return more(name)
                except AttributeError:
                    pass
            error = NoSuchName(sys.modules[package], name)
            try:
                raise error from None
            except NoSuchName:
                filter_traceback(error)
                raise
        home = late[name]
        if home:
            value = getattr(import_module(f".{home}", package), name)
        else:
            value = import_module(f"{package}.{name}")
        namespace[name] = value = entered(value, package, name)     # read once
        return value
    return read


def _called(module: str) -> str:
    """How users write the names of a module: `jnp.`, `lax.`, nothing in front of `jit`."""
    inside = module.partition(".")[2]
    return "jnp" + inside[5:] + "." if inside.startswith("numpy") else inside and inside + "."


# packages of functions of arrays
_OF_ARRAYS = frozenset(("numpy", "lax", "random", "nn", "scipy", "image"))
# a function -> its boundary: other names of it give the same object
_entries: dict[FunctionType, FunctionType] = {}


def entered(value: Any, module: str, name: str) -> Any:
    """What users find as `name` in `module`: a function of ours as a boundary, which knows that name."""
    if type(value) is not FunctionType or value.__module__.partition(".")[0] not in ("hlotrace", "jax"):
        return value
    called = getattr(value, "called", "")
    if not called:
        if value not in _entries:
            _entries[value] = entry = boundary(value, _called(module) + name,
                                               recalled=value.__module__.split(".")[1] in _OF_ARRAYS)
            # where pickle finds it; in a process for JAX the module may have its name there already
            entry.__module__ = sys.modules[module].__name__
            entry.__name__ = entry.__qualname__ = name
        return _entries[value]
    if "." not in called:
        vars(value)["called"] = _called(module) + called
    return value


def renamed(function: FunctionType, name: str) -> FunctionType:
    """The same function under another name, as JAX's aliases have theirs."""
    found = FunctionType(function.__code__, function.__globals__, name, function.__defaults__,
                         function.__closure__)
    functools.update_wrapper(found, function, (*functools.WRAPPER_ASSIGNMENTS, "__kwdefaults__"))
    found.__name__ = found.__qualname__ = name
    if hasattr(found, "called"):
        found.called = name
    return found
