"""`jax._src`: what libraries take from the inside of JAX, made of what hlotrace has.

JAX promises nothing of `jax._src`; libraries use a few of its names all the same.  The first table says which
modules of it answer like public ones.  The last, a page to read, lists the other names, and old ones of
public modules: where they are here, and in parentheses which libraries of some size take them.  `name=other`
is called `other` here, and a name loses a `_` in front.  `faces` and `jacobians` are files beside this one;
`nothing` is a part of JAX's machinery that has no counterpart: it can be imported, and raises when it is
called.  What pickles ask for is in `pickles.py`, classes that JAX has in `jax._src` in the table of
`identities.py`.  A name in none of them is an AttributeError, or ImportError, that says so.
"""
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..core.surface.importing import Loaded
from . import pickles
from .identities import entries, homes
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

# a module of JAX, where its names are here
_NAMES = """
ad_checkpoint | primitives.programs.remat: remat_p
ad_util | faces: a2tz p2cz=p2tz p2tz (jax-finufft); primitives.arrays.elementwise: stop_gradient_p (lineax)
api_util | faces: _ensure_index check_callable infer_argnums_and_argnames
api | jacobians: _check_input_dtype_jacfwd _check_input_dtype_jacrev _check_output_dtype_jacfwd
    _check_output_dtype_jacrev _jacfwd_unravel _jacrev_unravel _jvp _std_basis; numpy.util: _dtype=dtype_of
array | runtime.array_impl: ArrayImpl; faces: Index (axlearn)
checkify | primitives.programs.checks: JaxException; faces: Out
clusters | faces: ClusterEnv SlurmCluster (eformer)
core | extend.call_primitives: CallPrimitive call_p closed_call_p; faces: DimSize Shape
    _sds_aval_mapping=aval_of_struct canonicalize_shape definitely_equal_shape dimension_as_value
    full_lower=same get_referent=same physical_aval trace_ctx trace_state_clean (qwix, flax.linen, numpyro);
    errors: ShardingTypeError (JAX's tests); extend.core: nonempty_axis_env=nonempty_axis_env_DO_NOT_USE
    unsafe_am_i_under_a_jit=unsafe_am_i_under_a_jit_DO_NOT_USE
    unsafe_am_i_under_a_vmap=unsafe_am_i_under_a_vmap_DO_NOT_USE
    unsafe_get_axis_names=unsafe_get_axis_names_DO_NOT_USE; extend.flat_functions: safe_map;
    as_jax.helpers: safe_zip
cudnn.fused_attention_stablehlo | nothing: _normalize_layout check_compute_capability check_cudnn_version
    check_is_flash_attention check_layout; nothing: MaskType dot_product_attention (axlearn, maxtext);
    nothing: _dot_product_attention_fwd_p_wrapper (axlearn)
debugging | debug: debug_callback=callback debug_print=print
dispatch | faces: prim_requires_devices_during_lowering=requiring_devices (Transformer Engine);
    faces: runtime_tokens xla_primitive_callable (Transformer Engine, gpax);
    runtime.executables.executable: wait_for_tokens=effects_barrier (equinox)
distributed | faces: global_state (orbax)
dtypes | faces: DType supports_inf (flax.linen); core.dtypes: ExtendedDType to_complex_dtype=complex_of
    to_inexact_dtype=to_inexact (flax.linen); errors: TypePromotionError (equinox);
    numpy.util: dtype=dtype_of (optree)
earray | faces: EArray
effects | interpreters.mlir: control_flow_allowed_effects=lowerable_effects
    custom_derivatives_allowed_effects=lowerable_effects lowerable_effects
    remat_allowed_effects=lowerable_effects; faces: ordered_effects
hijax | as_jax.boxes: BoxGet BoxSet NewBox box_get box_get_p box_set box_set_p new_box new_box_p (JAX's
    tests)
image.scale | image.resampling: _kernels=KERNELS; image: _resize (jax2onnx)
interpreters.ad | errors: CustomVJPException=UnexpectedTracerError (diffrax, jaxopt)
interpreters.batching | transforms.vmappable: is_vmappable (jaxoplanet); nothing: make_iota to_elt
interpreters.partial_eval | ad_checkpoint: Recompute Saveable; core.jaxpr: TracingEqn=Eqn;
    faces: custom_staging_rules
interpreters.pxla | nothing: _cached_lowering_to_hlo (easydel); faces: global_result_handlers
jax.core | extend.call_primitives: CallPrimitive; core.trace: is_concrete; faces: is_constant_dim trace_ctx
jax.experimental.array_serialization.serialization | nothing: TS_CONTEXT; faces: _LimitInFlightBytes
    (axlearn); faces: _get_metadata (axlearn, t5x)
jax.experimental.colocated_python.func | nothing: _make_prng_wrapped_fun
jax.experimental.colocated_python.serialization | faces: _get_cpu_device_map=cpu_devices;
    nothing: _reduce_device_list _reduce_mesh _reduce_single_device_sharding; jax._src: xb=xla_bridge
jax.experimental.colocated_python | module: func
jax.experimental.custom_partitioning | nothing: custom_partitioning_p
jax.experimental.key_reuse | module: _core (JAX's tests)
jax.experimental.multihost_utils | nothing: global_array_to_host_local_array_p
    host_local_array_to_global_array_p ltg_batcher
jax.experimental.ode | jax._src: api_util
jax.experimental.pallas | experimental.pallas.triton: dot (folx)
jax.experimental.rnn | nothing: rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p
jax.experimental.sparse.linalg | nothing: spsolve_p
jax.experimental.sparse | nothing: bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p
    bcoo_fromdense_p bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p
    bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p
jax.extend.core | extend.call_primitives: CallPrimitive
jax.extend.pallas | nothing: GridMapping register_lowering_rule
jax.extend | module: pallas
jax.interpreters.ad | nothing: linearize (neural-tangents)
jax.interpreters.mlir | nothing: _call_lowering
jax.interpreters.pxla | nothing: global_avals_to_results_handler; faces: thread_resources
jax.lax | nothing: precv psend psum_scatter_start
jax.tools.jax_to_ir | faces: jax_to_hlo parse_shape_str
jax.tools | module: jax_to_ir
jax.tree_util | faces: KeyEntry
jax | module: cloud_tpu_init
lax.control_flow.loops | faces: _batch_and_remainder
lax.convolution | nothing: _conv_general_dilated_batch_rule _conv_general_dilated_dtype_rule
    _conv_general_dilated_lower _conv_general_dilated_shape_rule _conv_general_dilated_transpose_lhs
    _conv_general_dilated_transpose_rhs; primitives.arrays.conv: conv_general_dilated_p
lax.lax | nothing: _dot_general_batch_rule _dot_general_dtype_rule _dot_general_lower
    _dot_general_shape_rule _dot_general_transpose_lhs _dot_general_transpose_rhs; faces: remaining
    standard_primitive
lib.mlir.dialects | jaxlib.mlir.dialects: hlo=stablehlo (JAX's documents)
lib.mlir | jaxlib.mlir: ir (JAX's documents)
lib | jaxlib: _jax=_jax gpu_triton xla_client; faces: cuda_versions (Transformer Engine, tokamax);
    jaxlib.xla_client: jaxlib_extension_version=_version; runtime.binding: version (JAX's documents)
literals | faces: TypedComplex TypedFloat TypedInt TypedNdArray (equinox, jaxtyping)
mesh | faces: get_concrete_mesh thread_resources
monitoring | faces: get_event_duration_listeners get_event_listeners get_event_time_span_listeners
    get_scalar_listeners (JAX's tests)
named_sharding | core.errors: DuplicateSpecError
nn.initializers | nn.initializers: _complex_truncated_normal=_complex_truncated_normal
    _complex_uniform=_complex_uniform (e3x)
numpy.einsum | faces: _default_poly_einsum_handler=contraction_steps (AQT);
    faces: _einsum=einsum_along (haliax, AQT)
numpy.indexing | numpy.indexing.indexing: rewriting_take=get_noting (Qwix)
numpy.util | faces: promote_dtypes_complex
numpy.vectorize | faces: _apply_excluded _check_output_dims _parse_input_dimensions (quaxed);
    numpy.mapping: _parse_gufunc_signature=parse_signature (quaxed)
pallas.mosaic.primitives | experimental.pallas.copies: AsyncCopyDescriptor (tpu-inference)
pallas.utils | experimental.pallas.parts: next_power_of_2 (tokamax)
pjit | stages: JitWrapped=Wrapped (easydel); faces: UnspecifiedValue; extend.flat_functions: debug_info;
    primitives.programs.calls: jit_p; jax._src: mesh_lib=mesh; nothing: pjit_staging_rule
public_test_util | faces: check_close
sharding_impls | extend.sharding: GSPMDSharding; faces: UNSPECIFIED UnspecifiedValue canonicalize_sharding;
    faces: get_process_index_and_count local_to_global_shape (axlearn)
sharding | core.errors: IndivisibleError
source_info_util | faces: Frame user_frame user_frames (jaxls, JAX's tests)
state.primitives | ref: ref_addupdate=addupdate ref_get=get ref_set=set ref_swap=swap
state | core.refs: AbstractRef
traceback_util | core.surface.boundary: UnfilteredStackTrace api_boundary=filtered (flax's tests, flax);
    faces: _exclude_paths filter_traceback include_frame (flax, equinox);
    core.source_info: register_exclusion=exclude (flax, equinox, jaxtyping)
tree_util | faces: _registry=pytree_types prefix_errors (flax.nnx, flax's tests);
    core.pytrees.pytree: broadcast_prefix generate_key_paths=tree_leaves_with_path flatten_one_level (JAX's
    tests, orbax)
typing | faces: DType SupportsDType (furax, jaxctx)
util | tree_util: HashablePartial=Partial (optree); primitives.common: canonicalize_axis=canonical_axis;
    extend.flat_functions: safe_map; faces: wraps
xla_bridge | runtime.devices.client: _backends=clients (chex); faces: backends_are_initialized (eformer)
"""


def _rows() -> Iterator[tuple[str, str]]:
    """(full name there, what it is here)."""
    for module, home, name in entries(_NAMES):
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
