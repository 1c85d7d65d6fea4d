"""`jax._src`: what libraries take from the inside of JAX, made of what hlotrace has.

JAX promises nothing of `jax._src`; libraries use a few of its names all the same.  The first table says which
modules of it answer like public ones.  The last, a page to read, lists the other names, and old ones of
public modules: who takes them, and where they are here.  `name=other` is called `other` there, and a name
loses a `_` in front.  `faces` and `jacobians` are files beside this one; `nothing` is a part of JAX's
machinery that has no counterpart: it can be imported, and raises when it is called.  What pickles ask for is
in `pickles.py`, classes that JAX has in `jax._src` in the table of `identities.py`.  A name in none of them
is an AttributeError, or ImportError, that says so.
"""
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..core.surface.importing import Loaded
from . import pickles
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
# where the names are found that most modules of JAX import
_IMPORTED = " typing sharding tree_util api_util core extend.core errors"

# modules of jax._src that are modules of hlotrace, since libraries write to them
_SAME = {"jax._src.compiler": "runtime.executables.compilation",
         "jax._src.deprecations": "as_jax.deprecations", "jax._src.jaxpr_util": "as_jax.jaxpr_util",
         "jax._src.pretty_printer": "as_jax.pretty_printer",
         "jax.experimental.key_reuse._core": "as_jax.key_reuse_core"}

_NAMES = """
| a module of JAX | who takes from it | where that is here | names |
|---|---|---|---|
| `ad_checkpoint` | packages | `primitives.programs.remat` | remat_p |
| `ad_util` | jax-finufft | `faces` | a2tz p2cz=p2tz p2tz |
| `ad_util` | lineax | `primitives.arrays.elementwise` | stop_gradient_p |
| `api_util` | packages | `faces` | _ensure_index check_callable infer_argnums_and_argnames |
| `api` | packages | `jacobians` | _check_input_dtype_jacfwd _check_input_dtype_jacrev |
| `api` | packages | `jacobians` | _check_output_dtype_jacfwd _check_output_dtype_jacrev _jacfwd_unravel |
| `api` | packages | `jacobians` | _jacrev_unravel _jvp _std_basis |
| `api` | packages | `numpy.util` | _dtype=dtype_of |
| `array` | packages | `runtime.array_impl` | ArrayImpl |
| `array` | axlearn | `faces` | Index |
| `checkify` | packages | `primitives.programs.checks` | JaxException |
| `checkify` | packages | `faces` | Out |
| `clusters` | eformer, packages | `faces` | ClusterEnv SlurmCluster |
| `core` | packages | `extend.call_primitives` | CallPrimitive call_p closed_call_p |
| `core` | qwix, flax.linen, numpyro | `faces` | DimSize Shape _sds_aval_mapping=aval_of_struct |
| `core` | qwix, flax.linen, numpyro | `faces` | canonicalize_shape definitely_equal_shape |
| `core` | qwix, flax.linen, numpyro | `faces` | dimension_as_value full_lower=same get_referent=same |
| `core` | qwix, flax.linen, numpyro | `faces` | physical_aval trace_ctx trace_state_clean |
| `core` | JAX's tests | `errors` | ShardingTypeError |
| `core` | packages | `extend.core` | nonempty_axis_env=nonempty_axis_env_DO_NOT_USE |
| `core` | packages | `extend.core` | unsafe_am_i_under_a_jit=unsafe_am_i_under_a_jit_DO_NOT_USE |
| `core` | packages | `extend.core` | unsafe_am_i_under_a_vmap=unsafe_am_i_under_a_vmap_DO_NOT_USE |
| `core` | packages | `extend.core` | unsafe_get_axis_names=unsafe_get_axis_names_DO_NOT_USE |
| `core` | packages | `extend.flat_functions` | safe_map |
| `core` | packages | `as_jax.helpers` | safe_zip |
| `cudnn.fused_attention_stablehlo` | packages | nothing | _normalize_layout check_compute_capability |
| `cudnn.fused_attention_stablehlo` | packages | nothing | check_cudnn_version check_is_flash_attention |
| `cudnn.fused_attention_stablehlo` | packages | nothing | check_layout |
| `cudnn.fused_attention_stablehlo` | axlearn, maxtext | nothing | MaskType dot_product_attention |
| `cudnn.fused_attention_stablehlo` | axlearn | nothing | _dot_product_attention_fwd_p_wrapper |
| `debugging` | packages | `debug` | debug_callback=callback debug_print=print |
| `dispatch` | Transformer Engine | `faces` | prim_requires_devices_during_lowering=requiring_devices |
| `dispatch` | Transformer Engine, gpax | `faces` | runtime_tokens xla_primitive_callable |
| `dispatch` | equinox | `runtime.executables.executable` | wait_for_tokens=effects_barrier |
| `distributed` | orbax | `faces` | global_state |
| `dtypes` | flax.linen | `faces` | DType supports_inf |
| `dtypes` | flax.linen, packages | `core.dtypes` | ExtendedDType to_complex_dtype=complex_of |
| `dtypes` | flax.linen, packages | `core.dtypes` | to_inexact_dtype=to_inexact |
| `dtypes` | equinox | `errors` | TypePromotionError |
| `dtypes` | optree | `numpy.util` | dtype=dtype_of |
| `earray` | packages | `faces` | EArray |
| `effects` | packages | `interpreters.mlir` | control_flow_allowed_effects=lowerable_effects |
| `effects` | packages | `interpreters.mlir` | custom_derivatives_allowed_effects=lowerable_effects |
| `effects` | packages | `interpreters.mlir` | lowerable_effects remat_allowed_effects=lowerable_effects |
| `effects` | packages | `faces` | ordered_effects |
| `hijax` | JAX's tests | `as_jax.boxes` | BoxGet BoxSet NewBox box_get box_get_p box_set box_set_p new_box |
| `hijax` | JAX's tests | `as_jax.boxes` | new_box_p |
| `image.scale` | packages | `image.resampling` | _kernels=KERNELS |
| `image.scale` | jax2onnx | `image` | _resize |
| `interpreters.ad` | diffrax, jaxopt | `errors` | CustomVJPException=UnexpectedTracerError |
| `interpreters.batching` | jaxoplanet | `transforms.vmappable` | is_vmappable |
| `interpreters.batching` | packages | nothing | make_iota to_elt |
| `interpreters.partial_eval` | packages | `ad_checkpoint` | Recompute Saveable |
| `interpreters.partial_eval` | packages | `core.jaxpr` | TracingEqn=Eqn |
| `interpreters.partial_eval` | packages | `faces` | custom_staging_rules |
| `interpreters.pxla` | easydel | nothing | _cached_lowering_to_hlo |
| `interpreters.pxla` | packages | `faces` | global_result_handlers |
| `jax.core` | packages | `extend.call_primitives` | CallPrimitive |
| `jax.core` | packages | `core.trace` | is_concrete |
| `jax.core` | packages | `faces` | is_constant_dim trace_ctx |
| `jax.experimental.array_serialization.serialization` | packages | nothing | TS_CONTEXT |
| `jax.experimental.array_serialization.serialization` | axlearn | `faces` | _LimitInFlightBytes |
| `jax.experimental.array_serialization.serialization` | axlearn, t5x | `faces` | _get_metadata |
| `jax.experimental.colocated_python.func` | packages | nothing | _make_prng_wrapped_fun |
| `jax.experimental.colocated_python.serialization` | packages | `faces` | _get_cpu_device_map=cpu_devices |
| `jax.experimental.colocated_python.serialization` | packages | nothing | _reduce_device_list _reduce_mesh |
| `jax.experimental.colocated_python.serialization` | packages | nothing | _reduce_single_device_sharding |
| `jax.experimental.colocated_python.serialization` | packages | `jax._src` | xb=xla_bridge |
| `jax.experimental.colocated_python` | packages | module | func |
| `jax.experimental.custom_partitioning` | packages | nothing | custom_partitioning_p |
| `jax.experimental.key_reuse` | JAX's tests | module | _core |
| `jax.experimental.multihost_utils` | packages | nothing | global_array_to_host_local_array_p |
| `jax.experimental.multihost_utils` | packages | nothing | host_local_array_to_global_array_p ltg_batcher |
| `jax.experimental.ode` | packages | `jax._src` | api_util |
| `jax.experimental.pallas` | folx | `experimental.pallas.triton` | dot |
| `jax.experimental.rnn` | packages | nothing | rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p |
| `jax.experimental.sparse.linalg` | packages | nothing | spsolve_p |
| `jax.experimental.sparse` | packages | nothing | bcoo_dot_general_p bcoo_dot_general_sampled_p |
| `jax.experimental.sparse` | packages | nothing | bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p |
| `jax.experimental.sparse` | packages | nothing | bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p |
| `jax.experimental.sparse` | packages | nothing | bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p |
| `jax.experimental.sparse` | packages | nothing | bcsr_fromdense_p bcsr_todense_p |
| `jax.extend.core` | packages | `extend.call_primitives` | CallPrimitive |
| `jax.extend.pallas` | packages | nothing | GridMapping register_lowering_rule |
| `jax.extend` | packages | module | pallas |
| `jax.interpreters.ad` | neural-tangents | nothing | linearize |
| `jax.interpreters.mlir` | packages | nothing | _call_lowering |
| `jax.interpreters.pxla` | packages | nothing | global_avals_to_results_handler |
| `jax.interpreters.pxla` | packages | `faces` | thread_resources |
| `jax.lax` | packages | nothing | precv psend psum_scatter_start |
| `jax.tools.jax_to_ir` | packages | `faces` | jax_to_hlo parse_shape_str |
| `jax.tools` | packages | module | jax_to_ir |
| `jax.tree_util` | packages | `faces` | KeyEntry |
| `jax` | packages | module | cloud_tpu_init |
| `lax.control_flow.loops` | packages | `faces` | _batch_and_remainder |
| `lax.convolution` | packages | nothing | _conv_general_dilated_batch_rule _conv_general_dilated_dtype_rule |
| `lax.convolution` | packages | nothing | _conv_general_dilated_lower _conv_general_dilated_shape_rule |
| `lax.convolution` | packages | nothing | _conv_general_dilated_transpose_lhs |
| `lax.convolution` | packages | nothing | _conv_general_dilated_transpose_rhs |
| `lax.convolution` | packages | `primitives.arrays.conv` | conv_general_dilated_p |
| `lax.lax` | packages | nothing | _dot_general_batch_rule _dot_general_dtype_rule _dot_general_lower |
| `lax.lax` | packages | nothing | _dot_general_shape_rule _dot_general_transpose_lhs |
| `lax.lax` | packages | nothing | _dot_general_transpose_rhs |
| `lax.lax` | packages | `faces` | remaining standard_primitive |
| `lib.mlir.dialects` | JAX's documents | `jaxlib.mlir.dialects` | hlo=stablehlo |
| `lib.mlir` | JAX's documents | `jaxlib.mlir` | ir |
| `lib` | packages | `jaxlib` | _jax=_jax gpu_triton xla_client |
| `lib` | Transformer Engine, tokamax | `faces` | cuda_versions |
| `lib` | packages | `jaxlib.xla_client` | jaxlib_extension_version=_version |
| `lib` | JAX's documents | `runtime.binding` | version |
| `literals` | packages, equinox, jaxtyping | `faces` | TypedComplex TypedFloat TypedInt TypedNdArray |
| `mesh` | packages | `faces` | get_concrete_mesh thread_resources |
| `monitoring` | JAX's tests | `faces` | get_event_duration_listeners get_event_listeners |
| `monitoring` | JAX's tests | `faces` | get_event_time_span_listeners get_scalar_listeners |
| `named_sharding` | packages | `core.errors` | DuplicateSpecError |
| `nn.initializers` | e3x | `nn.initializers` | _complex_truncated_normal=_complex_truncated_normal |
| `nn.initializers` | e3x | `nn.initializers` | _complex_uniform=_complex_uniform |
| `numpy.einsum` | AQT | `faces` | _default_poly_einsum_handler=contraction_steps |
| `numpy.einsum` | haliax, AQT | `faces` | _einsum=einsum_along |
| `numpy.indexing` | Qwix | `numpy.indexing.indexing` | rewriting_take=get_noting |
| `numpy.util` | packages | `faces` | promote_dtypes_complex |
| `numpy.vectorize` | quaxed | `faces` | _apply_excluded _check_output_dims _parse_input_dimensions |
| `numpy.vectorize` | quaxed | `numpy.mapping` | _parse_gufunc_signature=parse_signature |
| `pjit` | easydel | `stages` | JitWrapped=Wrapped |
| `pjit` | packages | `faces` | UnspecifiedValue |
| `pjit` | packages | `extend.flat_functions` | debug_info |
| `pjit` | packages | `primitives.programs.calls` | jit_p |
| `pjit` | packages | `jax._src` | mesh_lib=mesh |
| `pjit` | packages | nothing | pjit_staging_rule |
| `public_test_util` | packages | `faces` | check_close |
| `sharding_impls` | packages | `extend.sharding` | GSPMDSharding |
| `sharding_impls` | packages | `faces` | UNSPECIFIED UnspecifiedValue canonicalize_sharding |
| `sharding_impls` | axlearn | `faces` | get_process_index_and_count local_to_global_shape |
| `sharding` | packages | `core.errors` | IndivisibleError |
| `source_info_util` | jaxls, JAX's tests | `faces` | Frame user_frame user_frames |
| `state.primitives` | packages | `ref` | ref_addupdate=addupdate ref_get=get ref_set=set ref_swap=swap |
| `state` | packages | `core.refs` | AbstractRef |
| `traceback_util` | flax's tests, flax | `core.surface.boundary` | UnfilteredStackTrace |
| `traceback_util` | flax's tests, flax | `core.surface.boundary` | api_boundary=filtered |
| `traceback_util` | flax, packages, equinox | `faces` | _exclude_paths filter_traceback include_frame |
| `traceback_util` | flax, equinox, jaxtyping | `core.source_info` | register_exclusion=exclude |
| `tree_util` | flax.nnx, flax's tests | `faces` | _registry=pytree_types prefix_errors |
| `tree_util` | JAX's tests, orbax | `core.pytrees.pytree` | broadcast_prefix |
| `tree_util` | JAX's tests, orbax | `core.pytrees.pytree` | generate_key_paths=tree_leaves_with_path |
| `tree_util` | JAX's tests, orbax | `core.pytrees.pytree` | flatten_one_level |
| `typing` | furax, jaxctx | `faces` | DType SupportsDType |
| `util` | optree | `tree_util` | HashablePartial=Partial |
| `util` | packages | `primitives.common` | canonicalize_axis=canonical_axis |
| `util` | packages | `extend.flat_functions` | safe_map |
| `util` | packages | `faces` | wraps |
| `xla_bridge` | chex | `runtime.devices.client` | _backends=clients |
| `xla_bridge` | eformer | `faces` | backends_are_initialized |
"""


def _rows() -> Iterator[tuple[str, str]]:
    """(full name there, what it is here)."""
    for line in _NAMES.strip().splitlines()[2:]:
        _, module, _, home, names, _ = (cell.strip(" `") for cell in line.split("|"))
        for name in names.split():
            there, _, here = name.partition("=")
            place = f"{module}.{there}" if module.partition(".")[0] == "jax" else f"jax._src.{module}.{there}"
            yield place, home if home in ("module", "nothing") else f"{home}.{here or there.lstrip('_')}"


_homes: dict[str, Any] = {**dict(_rows()), **pickles.constructors, **dict.fromkeys(_PARTS, "module")}
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
    if not isinstance(home, str):
        return home
    if home == "nothing":
        return Nothing(place)
    module, _, name = home.rpartition(".")
    at_jaxlib = module in ("jaxlib", "jaxlib.mlir", "jaxlib.mlir.dialects")
    if home == "module" or home.startswith("jax._src.") or at_jaxlib:
        return import_module(place if home == "module" else home)
    if module in ("faces", "jacobians"):
        module = f"as_jax.{module}"
    return getattr(import_module(module if module.startswith("jaxlib.") else f"hlotrace.{module}"), name)


def missing(name: str) -> str:
    """What is said of a name of the inside, such as "jax._src.core.Leaf", that is not here."""
    return (f"hlotrace does not have {name}, which is inside of JAX; what there is of jax._src is in the "
            "tables of hlotrace/as_jax/inside.py. Is there a public name for it?")
