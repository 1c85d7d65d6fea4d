"""JAX's `pallas.fuser`: kernels that are joined with what is around them."""
from .unsupported import export_functions

export_functions(globals(), """
    BlockIndexTransform Fusion custom_fusion evaluate fuse fusible get_fusion_values
    get_stateful_input_fusion_values get_stateful_output_fusion_values make_scalar_prefetch_handler
    pull_block_spec push_block_spec""")
