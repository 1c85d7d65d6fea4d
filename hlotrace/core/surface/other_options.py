"""JAX's options that hlotrace does not act on: imported when one of them is named.

`MEANS_NOTHING` are taken, since there is nothing here that they could change; `NOT_DONE` keep their default,
and setting another value raises NotImplementedError.  What hlotrace acts on is the table of `config.py`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

# name -> (default, why nothing depends on it here)
MEANS_NOTHING: dict[str, tuple[Any, str]] = {
    "eager_constant_folding": (False, "XLA folds what is known; the numbers are the same"),
    "jax2tf_associative_scan_reductions": (False, "there is no jax2tf"),
    "jax2tf_default_native_serialization": (True, "there is no jax2tf"),
    "jax_bcoo_cusparse_lowering": (
        False, "sparse operations are array operations everywhere; the numbers are the same"),
    "jax_check_proxy_envs": (
        True, "the coordinator's service is reached directly, whatever the proxy variables say"),
    "jax_custom_jvp3": (False, "another implementation inside JAX, of the same results"),
    "jax_custom_vjp3": (False, "another implementation inside JAX, of the same results"),
    "jax_disable_vmap_shmap_error": (False, "shard_map under vmap is not an error"),
    "jax_embedded_constants_max_bytes": (32, "which constants are in a program's text changes no result"),
    "jax_export_ignore_forward_compatibility": (
        False, "artifacts are written so that older readers know them, and newer ones do too"),
    "jax_include_full_tracebacks_in_locations": (
        True, "a location is the user's innermost line and the named scopes"),
    "jax_mosaic_allow_hlo": (False, "there is no Mosaic compiler"),
    "jax_mosaic_unzip_debug_locations": (True, "there is no Mosaic compiler"),
    "jax_persistent_cache_enable_xla_caches": (
        "xla_gpu_per_fusion_autotune_cache_dir", "XLA's caches of tuned kernels are where XLA_FLAGS say"),
    "jax_pprint_use_color": (True, "programs are printed without colors"),
    "jax_raise_on_ppermute_sort_diff": (True, "the pairs of ppermute are in the order that is given"),
    "jax_ragged_dot_use_ragged_dot_instruction": (
        True, "ragged_dot is other operations; the numbers are the same"),
    "jax_remat3": (False, "another implementation inside JAX, of the same results"),
    "jax_remat_barrier_no_cotangents": (False, "where JAX puts its barriers; the results are the same"),
    "jax_remove_custom_partitioning_ptr_from_cache_key": (
        False, "programs with custom_partitioning are not cached on disk"),
    "jax_scan3": (False, "another implementation inside JAX, of the same results"),
    "jax_share_binary_between_hosts": (False, "each process compiles, or finds the program on disk"),
    "jax_share_binary_between_hosts_timeout_ms": (
        1200000, "each process compiles, or finds the program on disk"),
    "jax_sort_devices_by_process_index": (True, "devices are in the order of their processes"),
    "jax_source_url_schema": (None, "programs are printed without links"),
    "jax_threefry_gpu_kernel_lowering": (
        False, "random bits are written in other operations; they are the same"),
    "jax_traceback_in_locations_limit": (100, "a location is one line"),
    "jax_tracer_error_num_traceback_frames": (5, "errors name the one line of the user's that made a value"),
    "jax_use_cpp_shard_args": (False, "another implementation inside JAX, of the same results"),
    "jax_use_direct_linearize": (True, "linearize is direct"),
    "jax_use_emit_pipeline_primitive": (False, "another implementation inside JAX, of the same results"),
    "jax_use_hlo_logistic_lowering": (None, "which operations the logistic function is written in"),
    "jax_use_rgv3": (True, "which text says the groups of a collective"),
    "jax_use_simplified_jaxpr_constants": (False, "a program has its constants inside"),
}

_PGLE = "profile-guided latency estimation is not done"
_MTLS = "connections between processes are not encrypted"
_CROSS_HOST = "arrays move between hosts through the client's own transfers"
_PALLAS = "of Mosaic, which is not here: Triton compiles kernels"

# name -> (default, what is to be said)
NOT_DONE: dict[str, tuple[Any, str]] = {
    "check_vma": (False, "pass check_vma= to shard_map"),
    "jax_accurate_erf_inv": (False, "erf_inv is as exact as XLA's"),
    "jax_backend_target": ("", "there are no remote backends"),
    "jax_compilation_cache_check_contents": (
        False, "a checksum guards each file, and another compile gives other bytes"),
    "jax_compilation_cache_expect_pgle": (False, _PGLE),
    "jax_compiler_detailed_logging_min_ops": (
        10, "jax_log_compiles logs each program; XLA_FLAGS say what XLA logs"),
    "jax_cpu_collectives_implementation": ("gloo", "processes on CPUs exchange data by gloo"),
    "jax_cross_host_transfer_socket_address": ("", _CROSS_HOST),
    "jax_cross_host_transfer_timeout_seconds": (None, _CROSS_HOST),
    "jax_cross_host_transfer_transfer_size": (None, _CROSS_HOST),
    "jax_cross_host_transport_addresses": ("", _CROSS_HOST),
    "jax_debug_leaked_clients_on_clear_backends": (False, "clients live as long as the process"),
    "jax_distributed_debug": (
        False, "HLOTRACE_ variables and `python -m hlotrace.doctor` tell what was found"),
    "jax_distributed_verify_secure_credentials": (False, _MTLS),
    "jax_enable_pgle": (False, _PGLE),
    "jax_enable_preemption_service": (True, "it starts where reached_preemption_sync_point is first called"),
    "jax_enable_recoverability": (False, "when a process of a job dies, all end"),
    "jax_experimental_unsafe_xla_runtime_errors": (
        False, "use debug_nans, checkify, or the option hlotrace_check_bounds"),
    "jax_export_deserialize_expired_versions": (
        False, "artifacts older than the versions that are read are refused"),
    "jax_force_dcn_cross_host_transfers": (False, _CROSS_HOST),
    "jax_log_checkpoint_residuals": (False, "ad_checkpoint.print_saved_residuals prints them"),
    "jax_mock_gpu_topology": ("", "topologies.get_topology_desc describes devices that are not here"),
    "jax_mtls_ca_file": (None, _MTLS),
    "jax_mtls_cert_file": (None, _MTLS),
    "jax_mtls_key_file": (None, _MTLS),
    "jax_mtls_peer_uri_prefix": (None, _MTLS),
    "jax_mutable_array_checks": (True, "two Refs that could be one are always refused"),
    "jax_oneapi_visible_devices": ("all", "there is no plugin for oneAPI"),
    "jax_pallas_auto_assign_collective_ids": ("no", _PALLAS),
    "jax_pallas_auto_assign_collective_ids_limit": (25, _PALLAS),
    "jax_pallas_enable_debug_checks": (False, _PALLAS),
    "jax_pallas_poison_buffers": (False, _PALLAS),
    "jax_pallas_verbose_errors": (False, _PALLAS),
    "jax_pgle_aggregation_percentile": (90, _PGLE),
    "jax_pgle_profiling_runs": (3, _PGLE),
    "jax_remove_size_one_mesh_axis_from_type": (False, "types name all axes along which a value varies"),
    "jax_rocm_visible_devices": ("all", "there is no plugin for ROCm"),
    "jax_send_traceback_to_runtime": ("off", "programs carry the lines of their operations in locations"),
    "jax_serialization_version": (0, "artifacts are written in one version"),
    "jax_use_magma": ("auto", "eig on a GPU uses MAGMA where it is, or else LAPACK on the host"),
    "jax_use_shardy_partitioner": (
        True, "XLA's older partitioner is going away, and jaxlib ends the process over some programs for it"),
    "jax_xla_backend": ("", "jax_platforms chooses where programs run"),
    "mock_num_gpu_processes": (0, "topologies.get_topology_desc describes devices that are not here"),
}

DEFAULTS = {name: default for table in (MEANS_NOTHING, NOT_DONE) for name, (default, _) in table.items()}


def checked(name: str, value: Any, flag: Callable[[Any], bool]) -> Any:
    """The value that an option has, of the kind of its default; `flag` reads booleans.  KeyError for an
    unknown name; ValueError for a value of another kind; NotImplementedError for a value other than the
    default of an option in NOT_DONE."""
    default = DEFAULTS[name]
    if type(default) is bool:
        value = flag(value)
    elif type(default) is int:
        value = int(value)
    elif value is not None and not isinstance(value, (str, int)):
        raise ValueError(f"{value!r} is not a string")
    if name in NOT_DONE and value != default:
        raise NotImplementedError(f"the value {value!r} is not supported, {default!r} is: "
                                  f"{NOT_DONE[name][1]}")
    return value
