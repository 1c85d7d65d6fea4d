"""JAX's `experimental.pallas`: kernels, compiled for TPUs and NVIDIA's GPUs or run as loops of operations.

What needs a compiler of kernels raises when it is called.
"""
from ...core.surface.public import export_names
from ...debug import print as debug_print
from ...numpy.indexing.index_entries import Slice, ds
from .call import estimate_cost, pallas_call
from .compiled.tpu_parts import multiple_of
from .copies import (
    DeviceIdType, barrier_semaphore, semaphore, semaphore_read, semaphore_signal, semaphore_wait)
from .cores import core_map, empty_ref_like, kernel, run_state
from .grid_blocks import num_programs, program_id
from .interpret import run_scoped, with_scoped
from .parts import *
from .parts import __all__ as _parts
from .specs import *
from .specs import __all__ as _specs
from .unsupported import functions

dslice = ds
CompilerParams = object
_FUNCTIONS = functions(__name__, """
    enable_poison_buffers get_global lower_as_mlir pallas_call_p
    pallas_export_experimental select_ref""")
globals().update(_FUNCTIONS)

__all__ = ["CompilerParams", "DeviceIdType", "Slice", "barrier_semaphore", "core_map", "debug_print", "ds",
           "dslice", "empty_ref_like", "estimate_cost", "kernel", "multiple_of", "num_programs",
           "pallas_call", "program_id", "run_scoped", "run_state", "semaphore", "semaphore_read",
           "semaphore_signal", "semaphore_wait", "with_scoped", *_FUNCTIONS, *_parts, *_specs]

export_names(globals(), lazy={"": "fuser mosaic_gpu ops tpu tpu_sc triton"})
