"""JAX's `pallas.triton`: what kernels for NVIDIA's GPUs are made of."""
import dataclasses

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


__all__ = ["CompilerParams"]

export_functions(globals(), """
    approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
    atomic_xor debug_barrier dot elementwise_inline_asm load max_contiguous store""")
