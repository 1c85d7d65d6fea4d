"""What a public module offers to `dir()`, to completion and to `import *`, and which of it is imported when first used."""
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def offer(namespace: dict[str, Any], *more: str, homes: Mapping[str, str] | None = None) -> None:
    """Give a module, by its `globals()`, the `__all__` and `__dir__` of what is public in it.

    That is `__all__` where there is one; otherwise its names that have no underscore in front and are no modules, since
    those it only uses.  `more` are the names it offers besides, such as its public modules.  `homes` are those that are
    imported when they are first used, {home: names}: names that the module `home` of this package has, or, where `home`
    is "", modules of the package.
    """
    late = {name: home for home, names in (homes or {}).items() for name in names.split()}
    own = namespace.get("__all__") or [name for name, value in namespace.items()
                                       if not name.startswith("_") and not isinstance(value, ModuleType)]
    names = sorted({*own, *more, *late})
    namespace["__all__"], namespace["__dir__"] = names, lambda: names
    if late:
        namespace["__getattr__"] = _reader(namespace, late)


def _reader(namespace: dict[str, Any], late: Mapping[str, str]) -> Callable[[str], Any]:
    package = namespace["__name__"]

    def read(name: str) -> Any:
        if name not in late:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = late[name]
        value = getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")
        namespace[name] = value     # read once
        return value
    return read
