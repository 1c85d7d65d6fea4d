"""`jax._src`: what libraries take from the inside of JAX, made of what hlotrace has.

JAX promises nothing of `jax._src`; libraries use a few of its names all the same.  The first table says which
modules of it answer like public ones.  The last, a page to read, lists the other names, and old ones of
public modules: who takes them, and what they are here.  Where that is `faces.<name>`, `jacobians.<name>` or
`pickles.<name>`, it is in the file beside this one.  `nothing` is a part of JAX's machinery that has no
counterpart: it can be imported, and raises when it is called.  Classes that JAX has in `jax._src` are in the
table of `identities.py`.  A name in none of them is an AttributeError, or ImportError, that says so.
"""
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..core.surface.importing import Loaded
from .identities import homes
from .nothing import Nothing

# modules of jax._src -> the public modules that have their names; "" is jax itself
_LIKE = {
    **{name: name for name in (
        "api_util custom_batching custom_derivatives distributed dlpack dtypes errors export ffi "
        "flatten_util interpreters interpreters.ad interpreters.batching interpreters.mlir "
        "interpreters.partial_eval interpreters.pxla interpreters.xla lax lax.linalg lib monitoring nn "
        "nn.initializers numpy numpy.fft numpy.linalg numpy.util ops profiler random scipy scipy.cluster.vq "
        "scipy.fft scipy.integrate scipy.linalg scipy.ndimage scipy.signal scipy.sparse.linalg "
        "scipy.spatial.transform scipy.special scipy.stats sharding stages test_util tree tree_util "
        "typing").split()},
    **{f"scipy.stats.{name}": f"scipy.stats.{name}" for name in (
        "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r "
        "laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform "
        "vonmises wrapcauchy").split()},
    **dict.fromkeys("api array basearray environment_info literals pmap ref shard_map state state.types "
                    "traceback_util".split(), ""),
    **{f"lax.{name}": "lax" for name in (
        "ann control_flow control_flow.common control_flow.conditionals control_flow.loops "
        "control_flow.solves convolution fft lax other parallel scaled_dot slicing special utils "
        "windowed_reductions").split()},
    **{f"numpy.{name}": "numpy" for name in (
        "array_constructors array_creation array_methods einsum index_tricks indexing lax_numpy polynomial "
        "reductions scalar_types setops sorting tensor_contractions ufunc_api ufuncs vectorize "
        "window_functions").split()},
    **dict.fromkeys("mesh named_sharding partition_spec sharding_impls".split(), "sharding"),
    **{name: f"experimental.{name}" for name in (
        "checkify compute_on custom_partitioning error_check hijax layout mesh_utils shard_alike "
        "xla_metadata").split()},
    **dict.fromkeys(("debugger", "debugger.core"), "debug"), "debugging": "debug extend.core.primitives",
    **dict.fromkeys(("export._export", "export.shape_poly"), "export"),
    **dict.fromkeys(("indexing", "state.indexing"), "experimental.pallas"),
    "abstract_arrays": "core", "ad_checkpoint": "ad_checkpoint ", "ad_util": "interpreters.ad",
    "callback": " experimental interpreters.mlir extend.core.primitives",
    "compilation_cache": "experimental.compilation_cache.compilation_cache",
    "config": "as_jax.options ", "core": "core extend.core ref", "dispatch": "interpreters.xla",
    "extend.random": "extend.random",
    "image.scale": "image", "linear_util": "extend.linear_util", "nn.functions": "nn",
    "ops.scatter": "ops", "ops.special": "nn", "pjit": "experimental.pjit sharding lax",
    "prng": "random", "random.core": "random", "random.prng": "extend.random random",
    "random.stateful_rng": "experimental.random", "state.primitives": "ref ",
    "random.threefry2x32": "extend.random", "scipy.optimize.minimize": "scipy.optimize",
    "scipy.stats._core": "scipy.stats", "scipy.stats.kde": "scipy.stats",
    "third_party.scipy.interpolate": "scipy.interpolate", "third_party.scipy.linalg": "scipy.linalg",
    "third_party.scipy.special": "scipy.special",
    "lib.mlir": "jaxlib.mlir", "lib.mlir.dialects": "jaxlib.mlir.dialects",
    "public_test_util": "test_util",
    "source_info_util": "extend.source_info_util", "util": "as_jax.helpers ", "xla_bridge": "extend.backend ",
}
# public modules of JAX that are parts of one here
_PARTS = {**{f"jax.experimental.sparse.{name}": "experimental.sparse" for name in (
              "_base", "api", "csr", "random")},
          **{f"jax.experimental.colocated_python.{name}": "experimental.colocated_python" for name in (
              "api", "obj")}}
# public modules that have JAX's names of the same module, and those of the one around it
_AROUND = {f"hlotrace.experimental.sparse.{name}" for name in (
    "ad", "bcoo", "bcsr", "coo", "linalg", "transform", "util")}
# parts of JAX's machinery by the module, beside those in the page
_NOTHING = {
    "experimental.sparse": "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p "
                           "bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p "
                           "bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p "
                           "bcsr_todense_p",
    "experimental.sparse.linalg": "spsolve_p",
    "experimental.custom_partitioning": "custom_partitioning_p",
    "experimental.multihost_utils": "global_array_to_host_local_array_p host_local_array_to_global_array_p "
                                    "ltg_batcher",
    "experimental.rnn": "rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p",
    "experimental.transfer": "TransferConnection TransferServer make_error_array start_transfer_server",
    "extend.pallas": "GridMapping register_lowering_rule",
    "lax": "precv psend psum_scatter_start"}
# where the names are found that most modules of JAX import
_IMPORTED = " typing sharding tree_util api_util core extend.core errors"

# modules of jax._src that are modules of hlotrace, since libraries write to them
_SAME = {"jax._src.compiler": "runtime.executables.compilation",
         "jax._src.deprecations": "as_jax.deprecations", "jax._src.jaxpr_util": "as_jax.jaxpr_util",
         "jax._src.pretty_printer": "as_jax.pretty_printer",
         "jax.experimental.key_reuse._core": "as_jax.key_reuse_core"}

_NAMES = """
| name in `jax._src` | who takes it | what it is here |
|---|---|---|
| `ad_checkpoint.remat_p` | packages | `primitives.programs.remat.remat_p` |
| `ad_util.stop_gradient_p` | lineax | `primitives.arrays.elementwise.stop_gradient_p` |
| `api._check_input_dtype_jacfwd` | packages | `jacobians.check_input_dtype_jacfwd` |
| `api._check_input_dtype_jacrev` | packages | `jacobians.check_input_dtype_jacrev` |
| `api._check_output_dtype_jacfwd` | packages | `jacobians.check_output_dtype_jacfwd` |
| `api._check_output_dtype_jacrev` | packages | `jacobians.check_output_dtype_jacrev` |
| `api._dtype` | packages | `numpy.util.dtype_of` |
| `api._jacfwd_unravel` | packages | `jacobians.jacfwd_unravel` |
| `api._jacrev_unravel` | packages | `jacobians.jacrev_unravel` |
| `api._jvp` | packages | `jacobians.jvp` |
| `api._std_basis` | packages | `jacobians.std_basis` |
| `api_util._ensure_index` | packages | `faces.ensure_index` |
| `api_util.check_callable` | packages | `faces.check_callable` |
| `api_util.infer_argnums_and_argnames` | packages | `faces.infer_argnums_and_argnames` |
| `array.ArrayImpl` | packages, for isinstance | `runtime.array_impl.ArrayImpl` |
| `array._reconstruct_array` | pickles | `pickles.reconstruct_array` |
| `checkify.JaxException` | packages | `primitives.programs.checks.JaxException` |
| `checkify.Out` | packages | `faces.Out` |
| `clusters.ClusterEnv` | eformer | `faces.ClusterEnv` |
| `clusters.SlurmCluster` | packages | `faces.SlurmCluster` |
| `compiler.backend_compile_and_load` | chex | that of `runtime.executables.compilation` |
| `core.CallPrimitive` | packages | `extend.call_primitives.CallPrimitive` |
| `core.DimSize` | packages, for annotations | `faces.DimSize` |
| `core.Shape` | packages, for annotations | `faces.Shape` |
| `core.ShardingTypeError` | jax's tests | `errors.ShardingTypeError` |
| `core._sds_aval_mapping` | qwix | `faces.aval_of_struct` |
| `core.call_p` | packages | `extend.call_primitives.call_p` |
| `core.canonicalize_shape` | packages | `faces.canonicalize_shape` |
| `core.closed_call_p` | packages | `extend.call_primitives.closed_call_p` |
| `core.definitely_equal_shape` | packages | `faces.definitely_equal_shape` |
| `core.dimension_as_value` | packages | `faces.dimension_as_value` |
| `core.full_lower` | packages | `faces.same` |
| `core.get_referent` | packages | `faces.same` |
| `core.nonempty_axis_env` | packages | `extend.core.nonempty_axis_env_DO_NOT_USE` |
| `core.physical_aval` | flax.linen | `faces.physical_aval` |
| `core.safe_map` | packages | `extend.flat_functions.safe_map` |
| `core.safe_zip` | packages | `as_jax.helpers.safe_zip` |
| `core.trace_ctx` | packages | `faces.trace_ctx` |
| `core.trace_state_clean` | numpyro | `faces.trace_state_clean` |
| `core.unsafe_am_i_under_a_jit` | packages | `extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE` |
| `core.unsafe_am_i_under_a_vmap` | packages | `extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE` |
| `core.unsafe_get_axis_names` | packages | `extend.core.unsafe_get_axis_names_DO_NOT_USE` |
| `cudnn.fused_attention_stablehlo._normalize_layout` | packages | nothing |
| `cudnn.fused_attention_stablehlo.check_compute_capability` | packages | nothing |
| `cudnn.fused_attention_stablehlo.check_cudnn_version` | packages | nothing |
| `cudnn.fused_attention_stablehlo.check_is_flash_attention` | packages | nothing |
| `cudnn.fused_attention_stablehlo.check_layout` | packages | nothing |
| `debugging.debug_callback` | packages | `debug.callback` |
| `debugging.debug_print` | packages | `debug.print` |
| `dispatch.prim_requires_devices_during_lowering` | Transformer Engine | `faces.requiring_devices` |
| `dispatch.runtime_tokens` | packages | `faces.runtime_tokens` |
| `dispatch.wait_for_tokens` | equinox | `runtime.executables.executable.effects_barrier` |
| `distributed.global_state` | orbax | `faces.global_state` |
| `dtypes.DType` | flax.linen | `faces.DType` |
| `dtypes.ExtendedDType` | flax.linen | `core.dtypes.ExtendedDType` |
| `dtypes.TypePromotionError` | equinox | `errors.TypePromotionError` |
| `dtypes.dtype` | optree | `numpy.util.dtype_of` |
| `dtypes.supports_inf` | flax.linen | `faces.supports_inf` |
| `dtypes.to_complex_dtype` | packages | `core.dtypes.complex_of` |
| `dtypes.to_inexact_dtype` | with to_complex_dtype | `core.dtypes.to_inexact` |
| `earray.EArray` | packages, for isinstance | `faces.EArray` |
| `effects.control_flow_allowed_effects` | packages | `interpreters.mlir.lowerable_effects` |
| `effects.custom_derivatives_allowed_effects` | with the others | `interpreters.mlir.lowerable_effects` |
| `effects.lowerable_effects` | packages | `interpreters.mlir.lowerable_effects` |
| `effects.ordered_effects` | with the others | `faces.ordered_effects` |
| `effects.remat_allowed_effects` | packages | `interpreters.mlir.lowerable_effects` |
| `hijax.Box` | jax's tests | `as_jax.boxes.Box` |
| `hijax.BoxGet` | jax's tests | `as_jax.boxes.BoxGet` |
| `hijax.BoxSet` | jax's tests | `as_jax.boxes.BoxSet` |
| `hijax.BoxTy` | jax's tests | `as_jax.boxes.BoxTy` |
| `hijax.BoxTypeState` | jax's tests | `as_jax.boxes.BoxTypeState` |
| `hijax.NewBox` | jax's tests | `as_jax.boxes.NewBox` |
| `hijax.box_get` | jax's tests | `as_jax.boxes.box_get` |
| `hijax.box_get_p` | jax's tests | `as_jax.boxes.box_get_p` |
| `hijax.box_set` | jax's tests | `as_jax.boxes.box_set` |
| `hijax.box_set_p` | jax's tests | `as_jax.boxes.box_set_p` |
| `hijax.new_box` | jax's tests | `as_jax.boxes.new_box` |
| `hijax.new_box_p` | jax's tests | `as_jax.boxes.new_box_p` |
| `image.scale._kernels` | packages | `image.resampling.KERNELS` |
| `image.scale._resize` | jax2onnx | `image.resize` |
| `interpreters.batching.is_vmappable` | jaxoplanet | `transforms.vmappable.is_vmappable` |
| `interpreters.batching.make_iota` | packages | nothing |
| `interpreters.batching.to_elt` | packages | nothing |
| `interpreters.partial_eval.Recompute` | packages | `ad_checkpoint.Recompute` |
| `interpreters.partial_eval.Saveable` | packages | `ad_checkpoint.Saveable` |
| `interpreters.partial_eval.TracingEqn` | packages, for isinstance | `core.jaxpr.Eqn` |
| `interpreters.partial_eval.custom_staging_rules` | packages | `faces.custom_staging_rules` |
| `interpreters.pxla._cached_lowering_to_hlo` | easydel | nothing |
| `interpreters.pxla.global_result_handlers` | packages | `faces.global_result_handlers` |
| `jax.cloud_tpu_init` | packages | module |
| `jax.core.CallPrimitive` | packages | `extend.call_primitives.CallPrimitive` |
| `jax.core.is_concrete` | packages | `core.trace.is_concrete` |
| `jax.core.is_constant_dim` | packages | `faces.is_constant_dim` |
| `jax.core.trace_ctx` | packages | `faces.trace_ctx` |
| `jax.experimental.array_serialization.serialization.TS_CONTEXT` | packages | nothing |
| `jax.experimental.array_serialization.serialization.async_deserialize` | packages | nothing |
| `jax.experimental.array_serialization.serialization.async_serialize` | packages | nothing |
| `jax.experimental.colocated_python.func` | packages | module |
| `jax.experimental.colocated_python.func._make_prng_wrapped_fun` | packages | nothing |
| `jax.experimental.colocated_python.serialization._get_cpu_device_map` | packages | `faces.cpu_device_map` |
| `jax.experimental.colocated_python.serialization._reduce_device_list` | packages | nothing |
| `jax.experimental.colocated_python.serialization._reduce_mesh` | packages | nothing |
| `jax.experimental.colocated_python.serialization._reduce_single_device_sharding` | packages | nothing |
| `jax.experimental.colocated_python.serialization.xb` | packages | `jax._src.xla_bridge` |
| `jax.experimental.key_reuse._core` | JAX's tests | module |
| `jax.experimental.ode.api_util` | packages | `jax._src.api_util` |
| `jax.experimental.pallas.dot` | folx | `experimental.pallas.triton.dot` |
| `jax.experimental.transfer` | packages | module |
| `jax.extend.core.CallPrimitive` | packages | `extend.call_primitives.CallPrimitive` |
| `jax.extend.pallas` | packages | module |
| `jax.interpreters.mlir._call_lowering` | packages | nothing |
| `jax.interpreters.pxla.global_avals_to_results_handler` | packages | nothing |
| `jax.interpreters.pxla.thread_resources` | packages | `faces.thread_resources` |
| `jax.tools.jax_to_ir` | packages | module |
| `jax.tools.jax_to_ir.jax_to_hlo` | packages | `faces.jax_to_hlo` |
| `jax.tools.jax_to_ir.parse_shape_str` | packages | `faces.parse_shape_str` |
| `jax.tree_util.KeyEntry` | packages, for annotations | `faces.KeyEntry` |
| `lax.control_flow.loops._batch_and_remainder` | packages | `faces.batch_and_remainder` |
| `lax.convolution._conv_general_dilated_batch_rule` | packages | nothing |
| `lax.convolution._conv_general_dilated_dtype_rule` | packages | nothing |
| `lax.convolution._conv_general_dilated_lower` | packages | nothing |
| `lax.convolution._conv_general_dilated_shape_rule` | packages | nothing |
| `lax.convolution._conv_general_dilated_transpose_lhs` | packages | nothing |
| `lax.convolution._conv_general_dilated_transpose_rhs` | packages | nothing |
| `lax.convolution.conv_general_dilated_p` | packages | `primitives.arrays.conv.conv_general_dilated_p` |
| `lax.lax._dot_general_batch_rule` | packages | nothing |
| `lax.lax._dot_general_dtype_rule` | packages | nothing |
| `lax.lax._dot_general_lower` | packages | nothing |
| `lax.lax._dot_general_shape_rule` | packages | nothing |
| `lax.lax._dot_general_transpose_lhs` | packages | nothing |
| `lax.lax._dot_general_transpose_rhs` | packages | nothing |
| `lax.lax.remaining` | packages | `faces.remaining` |
| `lax.lax.standard_primitive` | packages | `faces.standard_primitive` |
| `lib._jax` | packages | `jaxlib._jax` |
| `lib.cuda_versions` | Transformer Engine, tokamax | `faces.cuda_versions` |
| `lib.gpu_triton` | packages | `jaxlib.gpu_triton` |
| `lib.jaxlib_extension_version` | packages | `jaxlib.xla_client._version` |
| `lib.mlir.dialects.hlo` | JAX's documents | `jaxlib.mlir.dialects.stablehlo` |
| `lib.mlir.ir` | JAX's documents | `jaxlib.mlir.ir` |
| `lib.version` | JAX's documents | `runtime.binding.version` |
| `lib.xla_client` | packages | `jaxlib.xla_client` |
| `literals.TypedComplex` | packages, for isinstance | `faces.TypedComplex` |
| `literals.TypedFloat` | packages, for isinstance | `faces.TypedFloat` |
| `literals.TypedInt` | packages, for isinstance | `faces.TypedInt` |
| `literals.TypedNdArray` | equinox, jaxtyping | `faces.TypedNdArray` |
| `mesh.get_concrete_mesh` | packages, by pjit.mesh_lib | `faces.get_concrete_mesh` |
| `mesh.thread_resources` | packages | `faces.thread_resources` |
| `monitoring.get_event_duration_listeners` | JAX's tests | `faces.get_event_duration_listeners` |
| `monitoring.get_event_listeners` | JAX's tests | `faces.get_event_listeners` |
| `monitoring.get_event_time_span_listeners` | JAX's tests | `faces.get_event_time_span_listeners` |
| `monitoring.get_scalar_listeners` | JAX's tests | `faces.get_scalar_listeners` |
| `named_sharding.DuplicateSpecError` | packages | `core.errors.DuplicateSpecError` |
| `named_sharding._unpickle_named_sharding` | pickles | `pickles.unpickle_named_sharding` |
| `nn.initializers._complex_truncated_normal` | e3x | `nn.initializers._complex_truncated_normal` |
| `nn.initializers._complex_uniform` | with it | `nn.initializers._complex_uniform` |
| `numpy.einsum._einsum` | haliax, AQT | `faces.einsum_along` |
| `numpy.util.promote_dtypes_complex` | packages | `faces.promote_dtypes_complex` |
| `numpy.vectorize._apply_excluded` | quaxed | `faces.apply_excluded` |
| `numpy.vectorize._check_output_dims` | quaxed | `faces.check_output_dims` |
| `numpy.vectorize._parse_gufunc_signature` | quaxed | `numpy.mapping.parse_signature` |
| `numpy.vectorize._parse_input_dimensions` | quaxed | `faces.parse_input_dimensions` |
| `partition_spec._get_default_unconstrained` | pickles | `pickles.unconstrained` |
| `pjit.JitWrapped` | easydel, for annotations | `stages.Wrapped` |
| `pjit.UnspecifiedValue` | packages | `faces.UnspecifiedValue` |
| `pjit.debug_info` | packages | `extend.flat_functions.debug_info` |
| `pjit.jit_p` | packages | `primitives.programs.calls.jit_p` |
| `pjit.mesh_lib` | packages | `jax._src.mesh` |
| `pjit.pjit_staging_rule` | packages | nothing |
| `public_test_util.check_close` | packages | `faces.check_close` |
| `random.prng.PRNGImpl` | pickles | `pickles.PRNGImpl` |
| `random.prng.PRNGKeyArray` | pickles | `pickles.PRNGKeyArray` |
| `random.rbg._rbg_fold_in` | pickles | `pickles.rbg_fold_in` |
| `random.rbg._rbg_random_bits` | pickles | `pickles.rbg_random_bits` |
| `random.rbg._rbg_seed` | pickles | `pickles.rbg_seed` |
| `random.rbg._rbg_split` | pickles | `pickles.rbg_split` |
| `random.rbg._unsafe_rbg_fold_in` | pickles | `pickles.unsafe_rbg_fold_in` |
| `random.rbg._unsafe_rbg_split` | pickles | `pickles.unsafe_rbg_split` |
| `random.threefry2x32.threefry_fold_in` | pickles | `pickles.threefry_fold_in` |
| `random.threefry2x32.threefry_random_bits` | pickles | `pickles.threefry_random_bits` |
| `random.threefry2x32.threefry_seed` | pickles | `pickles.threefry_seed` |
| `random.threefry2x32.threefry_split` | pickles | `pickles.threefry_split` |
| `sharding.IndivisibleError` | packages | `core.errors.IndivisibleError` |
| `sharding_impls.GSPMDSharding` | packages | `extend.sharding.GSPMDSharding` |
| `sharding_impls.UNSPECIFIED` | packages | `faces.UNSPECIFIED` |
| `sharding_impls.UnspecifiedValue` | packages | `faces.UnspecifiedValue` |
| `sharding_impls.canonicalize_sharding` | packages | `faces.canonicalize_sharding` |
| `source_info_util.Frame` | jaxls | `faces.Frame` |
| `source_info_util.user_frame` | jaxls | `faces.user_frame` |
| `source_info_util.user_frames` | JAX's tests | `faces.user_frames` |
| `state.AbstractRef` | packages | `core.refs.AbstractRef` |
| `state.primitives.ref_addupdate` | packages | `ref.addupdate` |
| `state.primitives.ref_get` | packages | `ref.get` |
| `state.primitives.ref_set` | packages | `ref.set` |
| `state.primitives.ref_swap` | packages | `ref.swap` |
| `traceback_util.UnfilteredStackTrace` | flax's tests | `core.surface.boundary.UnfilteredStackTrace` |
| `traceback_util._exclude_paths` | flax | `faces.exclude_paths` |
| `traceback_util.api_boundary` | flax | `core.surface.boundary.filtered` |
| `traceback_util.filter_traceback` | packages | `faces.filter_traceback` |
| `traceback_util.include_frame` | equinox | `faces.include_frame` |
| `traceback_util.register_exclusion` | flax, equinox, jaxtyping | `core.source_info.exclude` |
| `tree_util._registry` | flax.nnx | `faces.pytree_types` |
| `tree_util.broadcast_prefix` | JAX's tests | `core.pytrees.pytree.broadcast_prefix` |
| `tree_util.generate_key_paths` | JAX's tests | `core.pytrees.pytree.tree_leaves_with_path` |
| `tree_util.flatten_one_level` | orbax | `core.pytrees.pytree.flatten_one_level` |
| `tree_util.prefix_errors` | flax's tests | `faces.prefix_errors` |
| `typing.DType` | furax, for annotations | `faces.DType` |
| `typing.SupportsDType` | jaxctx, for annotations | `faces.SupportsDType` |
| `util.HashablePartial` | optree | `tree_util.Partial` |
| `util.canonicalize_axis` | packages | `primitives.common.canonical_axis` |
| `util.safe_map` | packages | `extend.flat_functions.safe_map` |
| `util.wraps` | packages | `faces.wraps` |
| `xla_bridge._backends` | chex | `runtime.devices.client.clients` |
| `xla_bridge.backends_are_initialized` | eformer | `faces.backends_are_initialized` |
"""


def _rows() -> Iterator[tuple[str, str]]:
    for line in _NAMES.strip().splitlines()[2:]:
        _, name, _, home, _ = (cell.strip(" `") for cell in line.split("|"))
        yield name if name.startswith("jax.") else f"jax._src.{name}", home


_homes = {**dict(_rows()), **dict.fromkeys(_PARTS, "module"),
          **{f"jax.{module}.{name}": "nothing"
             for module, names in _NOTHING.items() for name in names.split()}}
# {"hlotrace.core": {"is_concrete", ...}}: names of public modules that these lack
_more: dict[str, set[str]] = {}
for _name in _homes:
    _module, _, _last = _name.rpartition(".")
    if not _name.startswith("jax._src."):
        _more.setdefault(f"hlotrace{_module[3:]}", set()).add(_last)


def modules() -> Iterator[str]:
    """The names of all modules of `jax._src` that there are."""
    places = {f"jax._src.{name}" for name in _LIKE}
    places.update(name.rpartition(".")[0] for name in (*_homes, *homes) if name.startswith("jax._src."))
    places.update(name for name in _SAME if name.startswith("jax._src."))
    yield from sorted(places)


def has(module: str) -> bool:
    """Is there a module of this name in `jax._src`, such as "jax._src.core"?"""
    if module in _SAME or module.partition("._src")[0] != "jax":
        return module in _SAME or _homes.get(module) == "module"
    return module == "jax._src" or module[9:] in _LIKE or any(
        name.startswith(module + ".") for name in (*_homes, *homes, *(f"jax._src.{like}" for like in _LIKE)))


def same(name: str) -> ModuleSpec | None:
    """How the module `jax._src...` of this name is found, if it is one of this package's."""
    home = _SAME.get(name)
    return home and ModuleSpec(name, Loaded(f"hlotrace.{home}"))


def module(name: str) -> ModuleType:
    """The module `jax._src...` of this name."""
    return _Inside(name, f"What libraries take from {name}: see hlotrace/as_jax/inside.py.")


def add_names(module: ModuleType) -> None:
    """Let a public module, by its name here, have those of its names in the table."""
    space = vars(module)
    own = space["__spec__"].name
    names = _more.get(own, ())
    if not names and own not in _AROUND:
        return
    others = space.get("__getattr__")

    def read(name: str) -> Any:
        if name in names:
            value = space[name] = _object(f"{module.__name__}.{name}")
            return value
        if own in _AROUND and hasattr(around := import_module(module.__package__), name):
            return getattr(around, name)
        if others is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name)
        return others(name)
    space["__getattr__"] = read


class _Inside(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        place = f"{self.__name__}.{name}"
        value = _object(place) if place in _homes or place in homes or has(place) else self._public(name)
        setattr(self, name, value)
        return value

    def _public(self, name: str) -> Any:
        like = _PARTS.get(self.__name__) or _LIKE.get(self.__name__[9:])
        for module in f"{like} {_IMPORTED}".split(" ") if like is not None else ():
            place = module if module.startswith("jaxlib.") else f"hlotrace.{module}".rstrip(".")
            if name in _more.get(place, ()):
                return _object(f"jax{place[8:]}.{name}")
            public = import_module(place)
            if name in dir(public):
                return getattr(public, name)
        raise AttributeError(missing(f"{self.__name__}.{name}"), name=name)


def _object(place: str) -> Any:
    """What the tables have under a full name."""
    home = _homes.get(place) or homes.get(place) or "module"
    if home == "nothing":
        return Nothing(place)
    module, _, name = home.rpartition(".")
    at_jaxlib = module in ("jaxlib", "jaxlib.mlir", "jaxlib.mlir.dialects")
    if home == "module" or home.startswith("jax._src.") or at_jaxlib:
        return import_module(place if home == "module" else home)
    if module in ("faces", "jacobians", "pickles"):
        module = f"as_jax.{module}"
    return getattr(import_module(module if module.startswith("jaxlib.") else f"hlotrace.{module}"), name)


def missing(name: str) -> str:
    """What is said of a name of the inside, such as "jax._src.core.Leaf", that is not here."""
    return (f"hlotrace does not have {name}, which is inside of JAX; what there is of jax._src is in the "
            "tables of hlotrace/as_jax/inside.py. Is there a public name for it?")
