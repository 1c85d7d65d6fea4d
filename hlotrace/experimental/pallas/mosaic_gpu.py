"""JAX's `pallas.mosaic_gpu`: Mosaic's kernels for NVIDIA's GPUs."""
from .unsupported import export_functions

export_functions(globals(), """
    ACC Barrier BlockSpec CompilerParams GMEM Mesh SMEM TMEM WGMMAAccumulatorRef barrier_arrive
    barrier_wait commit_smem copy_gmem_to_smem copy_smem_to_gmem emit_pipeline
    emit_pipeline_warp_specialized kernel layout_cast load print_layout set_max_registers
    tcgen05_mma wait_smem_to_gmem wgmma wgmma_wait""")
