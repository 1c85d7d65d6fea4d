"""JAX's `pallas.fuser`: kernels that are joined with what is around them."""
from ...core.surface.public import export_names
from .unsupported import functions

_FUNCTIONS = functions(__name__, """
         BlockIndexTransform Fusion custom_fusion evaluate fuse fusible get_fusion_values
    get_stateful_input_fusion_values get_stateful_output_fusion_values make_scalar_prefetch_handler
    pull_block_spec push_block_spec""")
globals().update(_FUNCTIONS)
__all__ = [*_FUNCTIONS]

export_names(globals())
