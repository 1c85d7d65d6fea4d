"""The modules of a process for JAX: how those of this package are found, and which are there at once.

`import jax` puts modules into `sys.modules`, as JAX does: libraries write `import jax` and use
`jax.tree_util`, or look there for `jax.random`.  They are loaded when one looks into them, as loading all
that JAX loads would take as long as the rest of the import.
"""
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from ..core.surface.importing import PACKAGE
from . import inside
from .identities import rename


class _Whole(ModuleType):
    """A module with names that are imported when used: who reads its `__dict__`, as SCICO does, finds all."""

    @property
    def __dict__(self) -> dict[str, Any]:   # type: ignore[override]
        space = vars(ModuleType)["__dict__"].__get__(self)
        for name in self.__all__:
            space[name] = getattr(self, name)
        return space


def _adapt(module: ModuleType) -> None:
    inside.add_names(module)
    rename(module)
    space = vars(module)
    if module.__name__ != "jax" and any(name not in space for name in space.get("__all__", ())):
        module.__class__ = _Whole


class _Adapting(SourceFileLoader):
    """Loads a module of this package for a process for JAX."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _adapt(module)
        sys.modules[module.__name__] = module       # maybe in the place of a light one


def find_spec(name: str, path: Any) -> ModuleSpec | None:
    """How a module of this package is found, so that it is adapted when it is loaded."""
    spec = PathFinder.find_spec(name, path)
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _Adapting(spec.loader.name, spec.loader.path)
    return spec


def rename_all() -> None:
    """Adapt the modules of this package that have been imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        if not name.startswith(f"{PACKAGE}.as_jax"):
            _adapt(sys.modules[name])


# what JAX imports at once
_ALL = """
    api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors experimental
    experimental.compilation_cache experimental.compilation_cache.compilation_cache export ffi image
    interpreters interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval
    interpreters.pxla interpreters.xla lax lax.linalg lib monitoring nn nn.initializers numpy numpy.fft
    numpy.linalg ops profiler random ref scipy sharding stages tree tree_util typing"""


class _Light(ModuleType):
    """What is in `sys.modules` for a module that is not loaded; then the module takes its place there."""
    __path__ = property(lambda self: _loaded(self).__path__)
    __spec__ = property(lambda self: _loaded(self).__spec__)  # type: ignore[assignment]
    __dict__ = property(lambda self: vars(_loaded(self)))  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)      # who looks through all modules looks for such
        return getattr(_loaded(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_loaded(self), name, value)

    def __dir__(self) -> Any:
        return dir(_loaded(self))


def _loaded(module: ModuleType) -> ModuleType:
    return import_module(f"{PACKAGE}{module.__name__[3:]}")


def install() -> None:
    """Put the modules of JAX's list into `sys.modules`."""
    for name in _ALL.split():
        sys.modules[f"jax.{name}"] = sys.modules.get(f"{PACKAGE}.{name}") or _Light(f"jax.{name}")
    for name in ("jax.version", *inside.modules()):
        import_module(name)
