"""JAX's `pallas.tpu_sc`: SparseCores of TPUs."""
from .unsupported import export_functions

export_functions(globals(), """
    Indices PackFormat ScalarSubcoreMesh VectorSubcoreMesh addupdate addupdate_compressed
    addupdate_scatter all_reduce_ffs all_reduce_population_count bitcast cummax cumsum fetch_and_add
    get_sparse_core_info load_expanded load_gather pack parallel_loop scan_count sort_key_val
    store_compressed store_scatter subcore_barrier unpack""")
