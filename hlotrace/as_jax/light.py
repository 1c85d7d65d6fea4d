"""Modules that `import jax` puts into `sys.modules`, as JAX does, loaded when one looks into them.

Libraries write `import jax` and use `jax.tree_util`, or look in `sys.modules` for `jax.random`.  Loading all
that JAX loads would take as long as the rest of the import.
"""
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from ..core.surface.importing import PACKAGE
from . import inside

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
