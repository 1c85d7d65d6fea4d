"""JAX's `experimental.pallas`: kernels, compiled for NVIDIA's GPUs or run as loops of operations.

What needs a compiler of kernels raises when it is called.
"""
from ...core.surface.public import export_names
from ...debug import print as debug_print
from ...numpy.indexing.index_entries import Slice, ds
from .call import pallas_call
from .grid_blocks import num_programs, program_id
from .interpret import run_scoped
from .parts import *
from .parts import __all__ as _parts
from .specs import *
from .specs import __all__ as _specs
from .unsupported import functions

dslice = ds
CompilerParams = object
_FUNCTIONS = functions(__name__, """
    core_map debug_check delay empty_ref_like enable_debug_checks enable_poison_buffers estimate_cost
    get_global kernel lower_as_mlir pallas_call_p pallas_export_experimental run_state
    select_ref semaphore semaphore_read semaphore_signal semaphore_wait with_scoped""")
globals().update(_FUNCTIONS)

__all__ = ["CompilerParams", "Slice", "debug_print", "ds", "dslice", "num_programs", "pallas_call",
           "program_id", "run_scoped", *_FUNCTIONS, *_parts, *_specs]

export_names(globals(), lazy={"": "fuser mosaic_gpu ops tpu tpu_sc triton"})
