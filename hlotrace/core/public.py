"""What a public module offers to `dir()`, to completion and to `import *`."""
from types import ModuleType
from typing import Any


def offer(namespace: dict[str, Any], *more: str) -> None:
    """Give a module, by its `globals()`, the `__all__` and `__dir__` of what is public in it.

    That is `__all__` where there is one; otherwise its names that have no underscore in front and are no modules, since
    those it only uses.  `more` are the names it offers besides: its public modules, and what is imported on first use.
    """
    own = namespace.get("__all__") or [name for name, value in namespace.items()
                                       if not name.startswith("_") and not isinstance(value, ModuleType)]
    names = sorted({*own, *more})
    namespace["__all__"], namespace["__dir__"] = names, lambda: names
