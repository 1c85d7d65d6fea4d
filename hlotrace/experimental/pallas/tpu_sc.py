"""JAX's `pallas.tpu_sc`: SparseCores of TPUs."""
from .cores import ScalarSubcoreMesh, VectorSubcoreMesh
from .unsupported import export_functions

__all__ = ["ScalarSubcoreMesh", "VectorSubcoreMesh"]

export_functions(globals(), """
    Indices PackFormat addupdate addupdate_compressed
    addupdate_scatter all_reduce_ffs all_reduce_population_count bitcast cummax cumsum fetch_and_add
    get_sparse_core_info load_expanded load_gather pack parallel_loop scan_count sort_key_val
    store_compressed store_scatter subcore_barrier unpack""")
