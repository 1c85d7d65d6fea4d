"""JAX's `pallas.triton`: what kernels for NVIDIA's GPUs are made of."""
import dataclasses

from ... import lax, numpy as jnp
from .parts import multiple_of
from .unsupported import export_functions


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """How Triton compiles a kernel: warps of a program, stages of its pipeline.

    >>> from hlotrace.experimental.pallas import triton
    >>> triton.CompilerParams(num_warps=4).num_warps
    4
    """
    num_warps: int | None = None
    num_stages: int | None = None


def dot(a, b, trans_a=False, trans_b=False, allow_tf32=None, precision=None):
    """The product of two matrices, each transposed first where that is said, in float32 or int32.

    Args:
        allow_tf32: `precision` by another name: True is HIGH, False is HIGHEST
    Raises:
        ValueError: for what is no matrix, and where both names of the precision are given
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"dot: a and b must be matrices, of 2 dimensions: got shapes {a.shape} and "
                         f"{b.shape}")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("dot: only one of allow_tf32 and precision can be given")
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    floats = jnp.issubdtype(jnp.result_type(a, b), jnp.floating)
    return lax.dot_general(a, b, (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())), precision,
                           preferred_element_type=jnp.float32 if floats else jnp.int32)


def load(ref, *, mask=None, other=None, cache_modifier=None, eviction_policy=None, volatile=False):
    """The value of a Ref, or of a view `ref.at[...]`; where `mask` is False it is `other`.

    How the value is cached is the compiler's here.
    """
    value = ref[...]
    return value if mask is None or other is None else jnp.where(mask, value, other).astype(value.dtype)


def store(ref, val, *, mask=None, eviction_policy=None):
    """Write `val` to a Ref, or a view `ref.at[...]`, where `mask` is not False."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


max_contiguous = multiple_of


__all__ = ["CompilerParams", "dot", "load", "max_contiguous", "store"]

export_functions(globals(), """
    approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
    atomic_xor debug_barrier elementwise_inline_asm""")
