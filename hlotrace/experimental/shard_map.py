"""shard_map under the name and with the arguments that it had before it left `experimental`."""
import warnings as _warnings

from ..api.parallel.shard_map import shard_map as _shard_map
from ..core import source_info as _source_info
from ..core.surface.public import install_getattr as _explain


def shard_map(f, mesh, in_specs, out_specs, check_rep=True, auto=frozenset()):
    """`hlotrace.shard_map` with `check_rep` for `check_vma`, and `auto`, the axes left to the compiler.

    >>> import warnings
    >>> from hlotrace.experimental.shard_map import shard_map
    >>> mesh = jax.make_mesh((2,), ("x",))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     f = shard_map(lambda part: lax.psum(part, "x"), mesh, jax.P("x"), jax.P())
    >>> f(jnp.array([1, 10]))
    Array([11], dtype=int32)
    """
    _warnings.warn("jax.experimental.shard_map is deprecated: it is jax.shard_map", DeprecationWarning,
                   stacklevel=_source_info.user_stacklevel())
    manual = frozenset(mesh.axis_names) - frozenset(auto)
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=manual,
                      check_vma=check_rep)

_explain(globals())
