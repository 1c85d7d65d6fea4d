"""hlotrace: numerical Python, transformed and compiled; JAX's names on jaxlib and numpy alone.

`import hlotrace as jax, hlotrace.numpy as jnp` runs a program written for JAX.
"""
from .runtime import binding as _binding  # isort: skip - first, as it says what is not installed
from .core.config import uncollected as _uncollected  # isort: skip

with _uncollected(stays=True):      # to look for garbage in what an import makes takes a quarter of the time
    from . import numpy, tree
    from .api.autodiff import fwd_and_bwd, grad, jvp, linear_transpose, linearize, value_and_grad, vjp
    from .api.checkpoint import checkpoint, remat
    from .api.custom_derivatives import closure_convert, custom_gradient, custom_jvp, custom_vjp
    from .api.external.callbacks import pure_callback
    from .api.jit import jit, make_jaxpr
    from .api.shape_dtype_struct import ShapeDtypeStruct, eval_shape
    from .api.vmap import vmap
    from .core.array import Array
    from .core.caches import clear_caches
    from .core.config import config
    from .core.surface import importing as _importing
    from .core.surface.public import export_names as _offer
    from .core.trace import ensure_compile_time_eval
    from .placement.device_put import (
        block_until_ready, copy_to_host_async, device_get, device_put, live_arrays, typeof)
    from .runtime.devices.client import (
        default_backend, device_count, devices, local_device_count, local_devices, process_count,
        process_index)
    from .runtime.devices.transfer_guards import (
        transfer_guard, transfer_guard_device_to_device, transfer_guard_device_to_host,
        transfer_guard_host_to_device)
    from .runtime.executables.executable import effects_barrier

__version__ = "0.1.0"
__version_info__ = tuple(map(int, __version__.split(".")))

_offer(globals(), "numpy", "tree", lazy={
    "": "ad ad_checkpoint api_util checkpoint_policies core custom_batching custom_derivatives debug "
    "distributed dlpack dtypes errors example_libraries experimental export extend ffi flatten_util image "
    "interpreters lax lib memory monitoring nn ops profiler random ref scipy sharding stages test_util "
    "topologies tree_util typing version",
    "api.jacobians": "hessian jacfwd jacobian jacrev",
    "api.parallel.axis_types": "smap",
    "api.external.bisect_numeric": "bisect_numeric",
    "api.external.profile": "profile",
    "export.from_text": "load_text",
    "api.parallel.explain_sharding": "explain_sharding",
    "api.contexts": "allow_f16_reductions auto_pcast check_tracer_leaks checking_leaks debug_infs "
    "debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit "
    "enable_checks enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions "
    "legacy_prng_key log_compiles make_user_context named_call named_scope no_execution no_tracing "
    "numpy_dtype_promotion numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp "
    "threefry_partitionable",
    "distributed.environment": "print_environment_info",
    "placement.make_arrays": "make_array_from_callback make_array_from_process_local_data "
    "make_array_from_single_device_arrays",
    "api.jit": "Inline",
    "placement.make_mesh": "make_mesh",
    "api.parallel.plan": "plan",
    "api.parallel.pmap": "pmap",
    "api.parallel.shard_map": "shard_map",
    "placement.shardings": "reshard",
    "core.config": "CompilerEffortLevel",
    "core.dtypes": "float0",
    "numpy.indexing.index_entries": "ds",
    "ref": "Ref empty_ref free_ref freeze new_ref",
    "runtime.binding": "Device",
    "runtime.devices.client": "host_count host_id host_ids process_indices",
    "runtime.devices.transfer_guards": "array_garbage_collection_guard thread_guard",
    "runtime.devices.shards": "Shard",
    "sharding": "NamedSharding P get_abstract_mesh get_mesh set_mesh use_abstract_mesh",
})
