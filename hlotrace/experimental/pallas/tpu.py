"""JAX's `pallas.tpu`: what kernels for TPUs are made of."""
import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from .copies import (
    DeviceIdType, SemaphoreType, async_copy, async_remote_copy, dma_semaphore, get_barrier_semaphore,
    make_async_copy, make_async_remote_copy, sync_copy)
from .cores import TensorCoreMesh, create_tensorcore_mesh
from .interpret import (
    InterpretParams, force_tpu_interpret_mode, reset_tpu_interpret_mode_state, set_tpu_interpret_mode)
from .pipeline import emit_pipeline, emit_pipeline_with_allocations
from .specs import GridSpec, Memory, no_block_spec
from .tpu_info import ChipVersion, TpuInfo, get_tpu_info, get_tpu_info_for_chip
from .tpu_values import (
    bitcast, core_barrier, einshape, is_tpu_device, load, pack_elementwise, prng_random_bits, prng_seed, roll,
    run_on_first_core, sample_block, stateful_bernoulli, stateful_bits, stateful_normal, stateful_uniform,
    stochastic_round, store, to_pallas_key, touch, trace_value, unpack_elementwise,
    with_memory_space_constraint)
from .unsupported import export_functions


class MemorySpace(Memory):
    """A memory of a TPU.  `VMEM((8, 128), jnp.float32)` is scratch there.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.VMEM((8, 128), jnp.float32).shape
    (8, 128)
    """
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"


VMEM, VMEM_SHARED, SMEM, CMEM, SEMAPHORE, HBM = MemorySpace


class GridDimensionSemantics(enum.Enum):
    """Whether the places along a dimension of the grid may be computed in any order, and by which cores."""
    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL, SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics


class CoreType(enum.Enum):
    """A kind of core of a TPU."""
    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """How Mosaic compiles a kernel.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.CompilerParams(dimension_semantics=["parallel"]).dimension_semantics
    ('parallel',)
    """
    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def __post_init__(self):
        for name in "dimension_semantics", "allow_input_fusion":
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(given))


class PrefetchScalarGridSpec(GridSpec):
    """A GridSpec whose first operands are scalars that index maps and the kernel read.

    >>> from hlotrace.experimental.pallas import tpu
    >>> tpu.PrefetchScalarGridSpec(1, grid=(4,)).num_scalar_prefetch
    1
    """

    def __init__(self, num_scalar_prefetch, grid=(), in_specs=no_block_spec, out_specs=no_block_spec,
                 scratch_shapes=()):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


__all__ = ["ARBITRARY", "CMEM", "CORE_PARALLEL", "ChipVersion", "CompilerParams", "CoreType", "DeviceIdType",
           "GridDimensionSemantics", "HBM", "InterpretParams", "MemorySpace", "PARALLEL",
           "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "SemaphoreType",
           "TensorCoreMesh", "TpuInfo", "VMEM", "VMEM_SHARED", "async_copy", "async_remote_copy", "bitcast",
           "core_barrier", "create_tensorcore_mesh", "dma_semaphore", "einshape", "emit_pipeline",
           "emit_pipeline_with_allocations", "force_tpu_interpret_mode", "get_barrier_semaphore",
           "get_tpu_info", "get_tpu_info_for_chip",
           "is_tpu_device", "load", "make_async_copy", "make_async_remote_copy", "pack_elementwise",
           "prng_random_bits", "prng_seed", "reset_tpu_interpret_mode_state", "roll", "run_on_first_core",
           "sample_block", "set_tpu_interpret_mode", "stateful_bernoulli", "stateful_bits",
           "stateful_normal", "stateful_uniform", "stochastic_round", "store", "sync_copy", "to_pallas_key",
           "touch", "trace_value", "unpack_elementwise", "with_memory_space_constraint"]

export_functions(globals(), """
    BufferType BufferedRef BufferedRefBase LoweringException SideEffectType Tiling matmul_acc_lhs
    matmul_pop matmul_push_rhs""")
