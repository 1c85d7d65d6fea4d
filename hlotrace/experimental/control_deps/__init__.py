"""The order in which XLA runs operations that do not need each other."""
from ...api.external.ffi import ffi_call
from ...core.surface.public import export_names

__all__ = ["control_dep", "schedule"]


def control_dep(src, dst):
    """Have XLA compute the array `dst` after the array `src`, in a jitted function.

    >>> from hlotrace.experimental.control_deps import control_dep
    >>> def f(x):
    ...     a, b = jnp.sin(x), jnp.cos(x)
    ...     control_dep(a, b)
    ...     return a + b
    >>> jax.jit(f)(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    return ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops):
    """Have XLA compute arrays in the order of this list: `control_dep` of each and the next.

    >>> from hlotrace.experimental.control_deps import schedule
    >>> def f(x):
    ...     parts = [jnp.sin(x), jnp.cos(x), jnp.tanh(x)]
    ...     schedule(parts)
    ...     return sum(parts)
    >>> jax.jit(f)(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    for src, dst in zip(ops, ops[1:]):
        control_dep(src, dst)


export_names(globals())
