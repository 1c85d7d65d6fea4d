"""Functions of Pallas that run kernels or are parts of them: they can be named, and raise when called."""
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from ...core.surface.public import export_names

_WHY = ("it is not supported yet; docs/kernels.md shows how a kernel of one's own is given to XLA")


class KernelFunction:
    """A function that needs kernels, known by its name."""

    def __init__(self, module, name):
        self.__module__, self.__name__, self.__qualname__ = module, name, name

    def __call__(self, *_args, **_kwargs):
        raise NotImplementedError(f"{self.__module__.partition('.')[2]}.{self.__name__}: {_WHY}")

    def __or__(self, _other):       # in annotations it may be a class
        return self

    __ror__ = __or__

    def __repr__(self):
        return f"<{self.__module__}.{self.__name__}, which needs kernels>"


def functions(module, names):
    """{name: the function that raises}, of names separated by blanks."""
    return {name: KernelFunction(module, name) for name in names.split()}


def export_functions(namespace, names):
    """Export such functions from a module, by its `globals()`, beside what is in its `__all__`."""
    found = functions(namespace["__name__"], names)
    namespace.update(found, __all__=[*namespace.get("__all__", ()), *found])
    export_names(namespace)


def as_module(name, about, contents):
    """A module of this name, as if there was a file for it."""
    module = ModuleType(name, about)
    module.__spec__, module.__package__, module.__path__ = ModuleSpec(name, None), name, []
    vars(module).update(contents)
    module.__all__ = sorted(contents)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
    export_names(vars(module))
    return module
