"""`jax._src`: what libraries take from the inside of JAX, made of what hlotrace has.

JAX promises nothing of `jax._src`; libraries use a few of its names all the same.  The first table says which
modules of it answer like public ones.  The last, a page to read, lists the other names: who takes them, and
what they are here.  Where that is `faces.<name>`, it is in `faces.py` beside this file.  A name in neither is
an AttributeError that says so.
"""
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..core.surface.importing import Loaded

# modules of jax._src -> the public modules that have their names; "" is jax itself
_LIKE = {
    **{name: name for name in (
        "ad_checkpoint api_util custom_batching custom_derivatives distributed dlpack dtypes flatten_util "
        "interpreters interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval "
        "interpreters.pxla interpreters.xla lax lax.linalg lib monitoring nn nn.initializers numpy "
        "numpy.linalg profiler random scipy scipy.special sharding stages test_util tree_util "
        "typing").split()},
    **dict.fromkeys("api array config literals state state.types traceback_util util".split(), ""),
    **dict.fromkeys("lax.control_flow lax.lax lax.parallel lax.slicing".split(), "lax"),
    **dict.fromkeys("mesh named_sharding partition_spec sharding_impls".split(), "sharding"),
    "abstract_arrays": "core", "ad_util": "interpreters.ad", "checkify": "experimental.checkify",
    "core": "core extend.core", "dispatch": "interpreters.xla", "image.scale": "image",
    "linear_util": "extend.linear_util", "nn.functions": "nn", "numpy.lax_numpy": "numpy",
    "pjit": "experimental.pjit sharding", "prng": "random",
    "source_info_util": "extend.source_info_util", "xla_bridge": "extend.backend",
}

# modules of jax._src that are modules of hlotrace, since libraries write to them
_SAME = {"compiler": "runtime.executables.compilation"}

_NAMES = """
| name in `jax._src`                    | who takes it  | what it is here                                   |
|---------------------------------------|---------------|---------------------------------------------------|
| `ad_util.stop_gradient_p`             | lineax        | `primitives.arrays.elementwise.stop_gradient_p`   |
| `compiler.backend_compile_and_load`   | chex          | that of `runtime.executables.compilation`         |
| `core.trace_state_clean`              | numpyro       | `faces.trace_state_clean`                         |
| `dispatch.wait_for_tokens`            | equinox       | `runtime.executables.executable.effects_barrier`  |
| `distributed.global_state`            | orbax         | `faces.global_state`                              |
| `core.physical_aval`                  | flax.linen    | `faces.physical_aval`                             |
| `core.ShardingTypeError`              | jax's tests   | `errors.ShardingTypeError`                        |
| `dtypes.DType`                        | flax.linen    | `faces.DType`                                     |
| `dtypes.ExtendedDType`                | flax.linen    | `core.dtypes.ExtendedDType`                       |
| `dtypes.supports_inf`                 | flax.linen    | `faces.supports_inf`                              |
| `dtypes.TypePromotionError`           | equinox       | `errors.TypePromotionError`                       |
| `literals.TypedNdArray`               | equinox, jaxtyping | `faces.TypedNdArray` |
| `state.types.AbstractRef`             | flax.nnx      | `core.refs.AbstractRef`                           |
| `traceback_util.api_boundary`         | flax          | `core.surface.boundary.filtered`                  |
| `traceback_util.include_frame`        | equinox       | `faces.include_frame`                             |
| `traceback_util.register_exclusion`   | flax, equinox, jaxtyping | `core.source_info.exclude` |
| `traceback_util._exclude_paths`       | flax          | `faces.exclude_paths`                             |
| `traceback_util.UnfilteredStackTrace` | flax's tests  | `core.surface.boundary.UnfilteredStackTrace`      |
| `tree_util._registry`                 | flax.nnx      | `faces.pytree_types`                              |
| `tree_util.prefix_errors`             | flax's tests  | `faces.prefix_errors`                             |
| `tree_util.flatten_one_level`         | orbax         | `core.pytrees.pytree.flatten_one_level`           |
| `xla_bridge._backends`                | chex          | `runtime.devices.client.clients`                  |
"""


def _rows() -> dict[str, str]:
    cells = ([cell.strip(" `") for cell in line.split("|")] for line in _NAMES.strip().splitlines()[2:])
    return {name: home for _, name, _, home, _ in cells}


_homes = _rows()


def has(module: str) -> bool:
    """Is there a module `jax._src.<module>`?  "" is `jax._src` itself."""
    return not module or any(name == module or name.startswith(module + ".")
                             for name in (*_LIKE, *_SAME, *_homes))


def same(name: str) -> ModuleSpec | None:
    """How the module `jax._src...` of this name is found, if it is one of this package's."""
    home = _SAME.get(name[9:])
    return home and ModuleSpec(name, Loaded(f"hlotrace.{home}"))


def module(name: str) -> ModuleType:
    """The module `jax._src...` of this name."""
    return _Inside(name, f"What libraries take from {name}: see hlotrace/as_jax/inside.py.")


class _Inside(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        place = f"{self.__name__.removeprefix('jax._src').lstrip('.')}.{name}".lstrip(".")
        if place in _homes:
            home, _, attribute = _homes[place].rpartition(".")
            value = getattr(import_module(f"hlotrace.{'as_jax.' * (home == 'faces')}{home}"), attribute)
        elif has(place):
            value = import_module(f"jax._src.{place}")
        else:
            value = self._public(name)
        setattr(self, name, value)
        return value

    def _public(self, name: str) -> Any:
        like = _LIKE.get(self.__name__[9:])
        for module in like.split(" ") if like is not None else ():
            public = import_module(f"hlotrace.{module}".rstrip("."))
            if name in dir(public):
                return getattr(public, name)
        raise AttributeError(
            f"hlotrace does not have {self.__name__}.{name}, which is inside of JAX; what there is of "
            "jax._src is in the tables of hlotrace/as_jax/inside.py. Is there a public name for it?",
            name=name)
