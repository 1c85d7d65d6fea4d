"""Who one is in a process for JAX: the names by which modules, classes and functions know themselves there.

`hlotrace.x` and what it exports are named `jax.x`, as they are found; the table has those that JAX has
elsewhere.  Libraries know a backend by `type(x).__module__`, and pickles name classes so.  What was
renamed, and how it was called, is in `importing.renamed`.  In other processes all keep their own names.
"""
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from ..core.surface.importing import PACKAGE, renamed
from . import pickles

# a module of hlotrace, where in a process for JAX, its classes; `name=other`: `name` here, `other` there
_TABLE = """
api.custom_batching | jax._src.custom_batching: custom_vmap
api.custom_derivatives | jax._src.ad_util: SymbolicZero; jax._src.custom_derivatives: CustomVJPPrimal
    custom_jvp custom_vjp
api.jit | jaxlib._jax: PjitFunction
api.parallel.custom_partitioning | jax._src.custom_partitioning: custom_partitioning
api.parallel.eager_shard_map | jax._src.shard_map: DeviceTrace=ShardMapTrace DeviceTracer=ShardMapTracer
api.shape_dtype_struct | jax: ShapeDtypeStruct
api.stages | jax._src.stages: ArgInfo Compiled Lowered Traced
as_jax.boxes | jax._src.hijax: Box BoxTy BoxTypeState
core.array | jax: Array
core.avals | jax._src.core: ManualAxisType ShapedArray Space=MemorySpace
core.dtypes | jax.dtypes: extended prng_key
core.effects | jax._src.debugging: DebugEffect OrderedDebugEffect; jax._src.effects: Effect
core.jaxpr | jax._src.core: Eqn=JaxprEqn JaxprEqnContext Literal Var
core.debug_info | jax._src.linear_util: DebugInfo
core.primitive | jax._src.core: Primitive
core.pytrees.key_paths | jax._src.tree_util: registry=default_registry
core.refs | jax._src.core: Ref; jax._src.state.types: AbstractRef
core.source_info | jax._src.source_info_util: NameStack SourceInfo
core.surface.jax_core_names | jax._src.core: AbstractToken ClosedJaxpr DropVar Jaxpr Token TraceTag
core.symbolic.dimension | jax._src.export.shape_poly: Dimension=_DimExpr
core.symbolic.scope | jax._src.export.shape_poly: SymbolicScope
core.symbolic_zeros | jax._src.interpreters.ad: UndefinedPrimal
core.trace | jax._src.core: EvalTrace Trace Tracer
core.jaxpr_trace | jax._src.interpreters.partial_eval: JaxprTrace=DynamicJaxprTrace
    JaxprTracer=DynamicJaxprTracer
experimental.checkify | jax._src.checkify: Error JaxRuntimeError
experimental.hijax | jax._src.core: aval_method aval_property; jax._src.hijax: HiPspec HiType
experimental.random | jax._src.random.stateful_rng: StatefulPRNG
export.exported | jax._src.export._export: DisabledSafetyCheck Exported
extend.linear_util | jax._src.linear_util: StoreException WrappedFun
image.resampling | jax._src.image.scale: ResizeMethod
inspection.profiling | jax._src.profiler: ProfileOptions StepTraceAnnotation TraceAnnotation
interpreters.ad | jax._src.ad_util: Zero
interpreters.mlir | jax._src.interpreters.mlir: LoweringParameters LoweringResult TokenSet;
    jax._src.sharding_impls: SPMDAxisContext ShardingContext
interpreters.partial_eval | jax._src.interpreters.partial_eval: PartialVal
lax.contraction | jax._src.lax.lax: RaggedDotDimensionNumbers
lax.elementwise | jax._src.lax.lax: RoundingMethod
numpy.arrays.grids | jax._src.numpy.index_tricks: CClass RClass
numpy.elementwise.ufunc | jax.numpy: ufunc
numpy.arrays.array_methods | jax._src.numpy.array_methods: _IndexUpdateHelper _IndexUpdateRef
numpy.reductions.sets | jax._src.numpy.setops: _UniqueAllResult _UniqueCountsResult _UniqueInverseResult
numpy.indexing.refs | jax._src.state.types: RefView=TransformedRef
primitives.arrays.conv | jax._src.lax.convolution: ConvDimensionNumbers
primitives.arrays.fft | jax._src.lax.fft: FftType
primitives.arrays.gather_numbers | jax._src.lax.slicing: GatherDimensionNumbers GatherScatterMode
    ScatterDimensionNumbers
primitives.arrays.generators | jax._src.lax.lax: RandomAlgorithm
primitives.arrays.precision | jax._src.lax.lax: DotAlgorithm DotAlgorithmPreset Precision AccuracyMode
    Tolerance
primitives.arrays.random | jax._src.random.prng: KeyDType=KeyTy
primitives.linalg.eigen | jax._src.lax.linalg: EigImplementation EighImplementation
primitives.linalg.svd | jax._src.lax.linalg: SvdAlgorithm
primitives.programs.remat | jax._src.interpreters.partial_eval: Offloadable
runtime.array_impl | jaxlib._jax: ArrayImpl
runtime.devices.shards | jax._src.array: Shard
runtime.mlir.lowering_rules | jax._src.interpreters.mlir: LoweringRuleContext ModuleContext
scipy.optimize | jax._src.scipy.optimize.minimize: OptimizeResults
scipy.spatial.transform | jax._src.scipy.spatial.transform: Rotation Slerp
scipy.stats.density | jax._src.scipy.stats.kde: gaussian_kde
sharding.abstract | jaxlib._jax: Sharding
sharding.layout | jax._src.layout: Format Layout _Auto=AutoLayoutSingleton
sharding.mesh | jax._src.mesh: AbstractDevice AbstractMesh AxisType Mesh use_abstract_mesh;
    jax._src.sharding_impls: set_mesh
sharding.named | jax.sharding: NamedSharding
sharding.rules | jax._src.custom_partitioning_sharding_rule: ArrayMapping CompoundFactor SdyShardingRule
sharding.single | jax.sharding: SingleDeviceSharding
sharding.spec | jax: PartitionSpec=P
transforms.jet | jax.experimental.jet: JetTrace JetTracer
transforms.jvp | jax._src.interpreters.ad: JVPTrace JVPTracer
transforms.linearize | jax._src.interpreters.ad: SplitTrace=LinearizeTrace
transforms.vmap | jax._src.interpreters.batching: BatchTrace BatchTracer
"""


def entries(table: str) -> Iterator[tuple[str, str, str]]:
    """(module, place, name) for each name of a table, whose lines are `module | place: name name; place:
    name`.  What begins with blanks goes on with the line before; what is in parentheses is for readers."""
    for entry in re.split(r"\n(?=\S)", table.strip()):
        module, *words = re.sub(r"\(.*?\)|[|;]", "", entry, flags=re.S).split()
        place = ""
        for word in words:
            if word.endswith(":"):
                place = word[:-1]
            else:
                yield module, place, word


# {module here: {name here: (module, name) there}}, and back: {"jax._src.core.Var": "core.jaxpr.Var"}
_there: dict[str, dict[str, tuple[str, str]]] = {}
homes: dict[str, str] = {}
for _ours, _theirs, _named in entries(_TABLE):
    _name, _, _other = _named.partition("=")
    _other = _other or _name
    _there.setdefault(_ours, {})[_name] = _theirs, _other
    homes[f"{_theirs}.{_other}"] = f"{_ours}.{_name}"


def rename(module: ModuleType) -> None:
    """Give a module of this package, and what it defines, the names that they have in a process for JAX."""
    space = vars(module)
    ours = space["__name__"]
    if not _is_ours(ours) or ours.startswith(f"{PACKAGE}.as_jax"):
        return
    here = ours[len(PACKAGE) + 1:]
    special, exported, public = _there.get(here, {}), space.get("__all__", ()), f"jax.{here}".rstrip(".")
    for name, value in list(space.items()):
        if isinstance(value, ModuleType):
            if value.__name__.startswith(ours + "."):
                rename(value)       # one without a file
                sys.modules[value.__name__] = value
        elif isinstance(value, type) and name[0] != "_" or name in special:
            _name(value)
        elif name in exported and (
                isinstance(value, FunctionType) or "__module__" in getattr(value, "__dict__", ())):
            _name(value)
            if str(value.__module__).startswith(public + "."):
                value.__module__ = public       # a file of this package
    space["__name__"] = public


def _name(value: Any) -> None:
    home = getattr(value, "__module__", None)
    if not _is_ours(home):
        return
    name = getattr(value, "__qualname__", value.__name__)
    renamed[value] = home, name
    pickles.register(value, f"{home[len(PACKAGE) + 1:]}.{name}")
    module, other = _there.get(home[len(PACKAGE) + 1:], {}).get(name, (f"jax{home[len(PACKAGE):]}", name))
    value.__module__ = module
    if other != name:
        value.__name__ = value.__qualname__ = other
    if module == "jaxlib._jax":     # where C++ has a class of this name: libraries ask for it there
        setattr(import_module(module), other, value)


def _is_ours(module: Any) -> bool:
    return type(module) is str and module.partition(".")[0] == PACKAGE
