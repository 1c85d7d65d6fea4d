"""Names of JAX that hlotrace does not have yet: written by tools/missing.py, imported if one is asked for."""

NAMES = {       # a module, as "numpy", or "Array": names
    "Array": (
        "device_buffer device_buffers unsafe_raw_buffer"),
    "example_libraries.optimizers": (
        "map zip"),
    "experimental": (
        "EArray primal_tangent_dtype"),
    "experimental.custom_partitioning": (
        "custom_partitioning_p"),
    "experimental.jet": (
        "call_param_updaters"),
    "experimental.layout": (
        "explicit_layout"),
    "experimental.multihost_utils": (
        "global_array_to_host_local_array_p host_local_array_to_global_array_p ltg_batcher"),
    "experimental.rnn": (
        "PRNGKeyArray rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p"),
    "experimental.source_mapper": (
        "MappingsGenerator Pass SourceMap SourceMapDump all_passes canonicalize_filename compile_with_env "
        "create_mlir_sourcemap filter_passes generate_sourcemaps register_pass"),
    "experimental.sparse": (
        "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p "
        "bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p bcsr_dot_general_p "
        "bcsr_extract_p bcsr_fromdense_p bcsr_todense_p"),
    "experimental.sparse.linalg": (
        "spsolve_p"),
    "extend": (
        "pallas"),
    "extend.core.primitives": (
        "empty2_p polynomial_p"),
    "interpreters.ad": (
        "linearize"),
    "interpreters.batching": (
        "zero_if_mapped"),
    "interpreters.mlir": (
        "ShapePolyLoweringState ir_tree_registry"),
    "interpreters.partial_eval": (
        "custom_partial_eval_rules lower_jaxpr lower_jaxpr2 new_eqn_recipe partial_eval_jaxpr_custom_rules"),
    "lax": (
        "polynomial_p psum_scatter_start"),
}
