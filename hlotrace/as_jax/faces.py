"""What `inside.py` lists and no other part of hlotrace has: small faces on the house's objects."""
import asyncio
import contextlib
import functools
import inspect
import itertools
import operator
import os
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from types import NoneType, TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .. import numpy as jnp
from ..api.jit import jit
from ..api.shape_dtype_struct import ShapeDtypeStruct
from ..api.signatures import as_tuple
from ..core import dtypes, source_info
from ..core.avals import ShapedArray
from ..core.caches import clear_caches
from ..core.config import state
from ..core.primitive import Primitive
from ..core.pytrees import pytree
from ..core.surface import boundary
from ..core.symbolic.dimension import Dimension
from ..core.trace import EVAL, Trace
from ..distributed import clusters
from ..interpreters.ad import Zero
from ..interpreters.mlir import lowerable_effects
from ..interpreters.xla import apply_primitive
from ..numpy import mapping
from ..numpy.util import promote_dtypes
from ..placement.make_arrays import held_tiles
from ..placement.shardings import as_sharding
from ..primitives.common import canonical_shape
from ..runtime.devices import client
from ..runtime.executables.executable import effects_barrier
from ..runtime.executables.monitors import listeners_of
from ..sharding.abstract import Sharding
from ..sharding.mesh import NO_MESH, AbstractMesh, Mesh, mesh_in_use
from .nothing import NoRules

DType = np.dtype
KeyEntry = TypeVar("KeyEntry", bound=Hashable)
DimSize, Shape, Out = Any, Sequence[Any], TypeVar("Out")
# how "nothing is said of a sharding" is written here
UNSPECIFIED, UnspecifiedValue = None, NoneType
# JAX's where there is no CUDA; a set that libraries add their primitives to, which lowering here does not ask
cuda_versions = None
requiring_devices: set[Primitive] = set()


def backends_are_initialized() -> bool:
    """Has a client been made?"""
    return bool(client.clients)


def supports_inf(dtype: Any) -> bool:
    """Does a dtype of floats have infinities?"""
    return bool(np.isinf(np.asarray(np.inf, np.float32).astype(dtypes.as_dtype(dtype))))


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array that holds one of an extended dtype; other types as they are."""
    if not dtypes.is_extended(aval.dtype):
        return aval
    return aval.update(shape=(*aval.shape, *aval.dtype.physical_shape), dtype=aval.dtype.physical_dtype)


def aval_of_struct(x: ShapeDtypeStruct) -> ShapedArray:
    """The type that a ShapeDtypeStruct names."""
    return ShapedArray(x.shape, x.dtype, x.weak_type)


class SupportsDType(Protocol):
    """What has a dtype."""
    dtype: np.dtype


def trace_state_clean() -> bool:
    """Is nothing being traced?"""
    return state.trace is EVAL


def include_frame(frame: Any) -> bool:
    """Is a frame, of a stack or a traceback, to be shown to users?"""
    return not source_info.is_package(frame.f_code.co_filename)


class Frame(NamedTuple):
    """A place in the user's program: lines from 1, columns from 0."""
    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def user_frame(traceback: source_info.Source | None) -> Frame | None:
    """Where the user's program was, by the `traceback` of an equation's `source_info`."""
    if traceback is None:
        return None
    code, lasti = traceback
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), lasti // 2, None))
    return Frame(code.co_filename, code.co_qualname, line or 0, column or 0, end_line or 0, end_column or 0)


def user_frames(traceback: source_info.Source | None) -> list[Frame]:
    """The innermost place in the user's program alone, which is what equations keep."""
    frame = user_frame(traceback)
    return [] if frame is None else [frame]


class TypedNdArray(np.ndarray):
    """Constants of JAX's programs: here they are NumPy's own arrays, and nothing is of this class."""


class _ExcludedPaths:
    """The list of the files whose frames are left out."""

    append, remove = staticmethod(source_info.exclude), staticmethod(source_info.include)

    def __iter__(self) -> Iterator[str]:
        return iter(source_info.excluded())

    def __len__(self) -> int:
        return len(source_info.excluded())


exclude_paths = _ExcludedPaths()
get_event_listeners = functools.partial(listeners_of, "event")
get_event_duration_listeners = functools.partial(listeners_of, "event_duration_secs")
get_event_time_span_listeners = functools.partial(listeners_of, "event_time_span")
get_scalar_listeners = functools.partial(listeners_of, "scalar")


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """Where a tree is no prefix of another: for each place a function from the prefix's name to the error."""
    def lines(name: str = "") -> list[str]:
        return pytree.prefix_errors(prefix_tree, full_tree, is_leaf, root=name)
    return [lambda name, i=i: ValueError(lines(name)[i]) for i in range(len(lines()))]


class _Container(NamedTuple):
    """A class of containers: `to_iter(x)` is (children, what is static), `from_iter` the other way round."""
    kind: type

    def to_iter(self, x: Any) -> tuple[tuple[Any, ...], Any]:
        children, static = pytree.flatten_one_level(x)
        return tuple(children), static

    def from_iter(self, static: Any, children: Iterable[Any]) -> Any:
        make = _BUILT_IN.get(self.kind) or pytree.registered()[self.kind]
        return make(static, children)


_BUILT_IN: dict[type, Callable[[Any, Any], Any]] = {
    tuple: lambda _, xs: tuple(xs), list: lambda _, xs: list(xs), NoneType: lambda *_: None,
    dict: lambda keys, xs: dict(zip(keys, xs)), OrderedDict: lambda keys, xs: OrderedDict(zip(keys, xs)),
    defaultdict: lambda static, xs: defaultdict(static[0], zip(static[1], xs))}


class _PytreeTypes(Mapping):
    """The classes of containers, each with its `_Container`."""

    def __contains__(self, kind: Any) -> bool:
        return pytree.is_tree_node(kind)

    def __getitem__(self, kind: type) -> _Container:
        if kind not in self:
            raise KeyError(kind)
        return _Container(kind)

    def __iter__(self) -> Iterator[type]:
        return iter({**_BUILT_IN, **pytree.registered()})

    def __len__(self) -> int:
        return len(list(iter(self)))


pytree_types = _PytreeTypes()


class _GlobalState:
    """This process among those of a job, as `distributed.initialize` made it."""

    client = property(lambda self: client.world and client.world.client)
    process_id = property(lambda self: client.world.process_id if client.world else 0)
    num_processes = property(lambda self: client.world.num_processes if client.world else 1)
    coordinator_address = property(lambda self: client.world and client.world.address)


global_state = _GlobalState()


# --- arrays over processes, and on disk

Index = tuple[slice, ...]


def get_process_index_and_count(sharding: Sharding, dim: int, ndims: int) -> tuple[int, int]:
    """(which part of a dimension this process holds, into how many parts processes divide it)."""
    if sharding.is_fully_addressable:
        return 0, 1
    held, total = held_tiles("get_process_index_and_count", sharding, ndims)[dim]
    parts, rest = divmod(total, len(held))
    if rest or held[0] % len(held) or held[-1] - held[0] != len(held) - 1:
        raise ValueError(f"get_process_index_and_count: {sharding} does not divide dimension {dim} among "
                         "processes into parts of equal size")
    return held[0] // len(held), parts


def local_to_global_shape(sharding: Sharding, local_shape: Shape) -> tuple[int, ...]:
    """The shape of an array of which each process holds a part of `local_shape`."""
    return tuple(size * get_process_index_and_count(sharding, dim, len(local_shape))[1]
                 for dim, size in enumerate(local_shape))


class LimitInFlightBytes:
    """Up to so many bytes are between `wait_for_bytes` and `release_bytes`, within one event loop."""

    def __init__(self, host_memory_bytes_limit: int) -> None:
        self._limit, self._held, self._changed = host_memory_bytes_limit, 0, asyncio.Condition()

    async def wait_for_bytes(self, requested_bytes: int) -> None:
        """Wait until there is room for them; for more than the limit, until nothing else is held."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: not self._held or self._held + requested_bytes <= self._limit)
            self._held += requested_bytes

    async def release_bytes(self, requested_bytes: int) -> None:
        """They are held no longer."""
        async with self._changed:
            assert requested_bytes <= self._held, f"{requested_bytes} bytes released of {self._held}"
            self._held -= requested_bytes
            self._changed.notify_all()


def get_metadata(array: Any) -> dict[str, Any]:
    """Zarr's metadata of an array whose shards are its chunks."""
    return {"compressor": {"id": "zstd"}, "shape": array.shape,
            "chunks": [max(1, size) for size in array.sharding.shard_shape(array.shape)]}


# --- numbers, shapes, lists

class _Typed:
    """The base of Python numbers with a dtype in JAX's programs: here nothing makes them."""
    dtype: np.dtype

    def __new__(cls, value: Any, dtype: Any) -> Any:
        number = super().__new__(cls, value)  # type: ignore[call-arg]
        number.dtype = np.dtype(dtype)
        return number


class TypedInt(_Typed, int):
    """An int with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""


class EArray:
    """JAX's arrays of extended dtypes that are no keys: there are none here."""

    def __init__(self, *_args: Any) -> None:
        raise NotImplementedError("EArray: arrays of extended dtypes are made by jax.random.wrap_key_data")


def same(x: Any) -> Any:
    """The value itself."""
    return x


def p2tz(x: Any) -> Zero:
    """The zero tangent of a value."""
    return Zero.from_primal_value(x)


def a2tz(aval: ShapedArray) -> Zero:
    """The zero tangent of values of a type."""
    return Zero(aval.tangent())


def remaining(original: Iterable[Any], *removed: Iterable[Any]) -> list[Any]:
    """The members of a list that are in none of the others."""
    gone = {x for each in removed for x in each}
    return [x for x in original if x not in gone]


def canonicalize_shape(shape: Any, context: str = "") -> tuple[Any, ...]:
    """A tuple of sizes.  TypeError for what is none."""
    return canonical_shape(shape, context or "shape")


def definitely_equal_shape(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Are two shapes equal whatever unknown sizes are?"""
    return len(one) == len(other) and all(a is b or a == b for a, b in zip(one, other))


def dimension_as_value(size: Any) -> Any:
    """A size as a number: an array where it is not known yet."""
    return size.as_value() if isinstance(size, Dimension) else operator.index(size)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """Arrays, cast to the complex dtype of their common one."""
    found = promote_dtypes(*args)
    return [jnp.asarray(x, dtypes.complex_of(jnp.result_type(x))) for x in found]


def einsum_along(operands: Sequence[Any], contractions: Iterable[Sequence[Any]], precision: Any = None,
                 preferred_element_type: Any = None, _dot_general: Any = None) -> Any:
    """`jnp.einsum` in the steps that `opt_einsum.contract_path(..., einsum_call=True)` gives.

    Args:
        contractions: for each step which operands it takes out of the list, the letters it sums over, its
            subscripts; its result is the last of the list then
    """
    left = list(operands)
    for taken, _letters, subscripts, *_ in contractions:
        left.append(jnp.einsum(subscripts, *[left.pop(i) for i in taken], precision=precision,
                               preferred_element_type=preferred_element_type, _dot_general=_dot_general))
    result, = left
    return result


def contraction_steps(subscripts: str, *operands: Any, einsum_call: bool = True, use_blas: bool = True,
                      optimize: Any = "optimal") -> tuple[list[Any], list[tuple[Any, frozenset[str], str]]]:
    """(operands, steps) for `einsum_along`, in the order of `np.einsum_path`."""
    hollow = [np.broadcast_to(np.zeros(()), np.shape(x)) for x in operands]
    found = np.einsum_path(subscripts, *hollow, optimize=optimize, einsum_call=True)[1]
    steps = [(step[0], next(part for part in step if isinstance(part, str))) for step in found]
    return list(operands), [(taken, frozenset(text.split("->")[0]) - {",", *text.split("->")[1]}, text)
                            for taken, text in steps]


def batch_and_remainder(x: Any, batch_size: int) -> tuple[Any, Any]:
    """(a pytree whose leading axes are cut into batches, the rest of it, or None where none is left)."""
    leaves, structure = pytree.tree_flatten(x)
    if not leaves:
        return x, None
    batches, rest = divmod(leaves[0].shape[0], batch_size)
    end = batches * batch_size
    whole = [leaf[:end].reshape(batches, batch_size, *leaf.shape[1:]) for leaf in leaves]
    return structure.unflatten(whole), structure.unflatten([leaf[end:] for leaf in leaves]) if rest else None


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """AssertionError unless two pytrees of arrays are near to each other, as near as their dtypes tell: each
    array as JAX has it, with the tolerance of one element times the number of elements."""
    for x, y in zip(pytree.tree_leaves(xs), pytree.tree_leaves(ys), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        dtype, other = dtypes.canonicalize(x.dtype), dtypes.canonicalize(y.dtype)
        near = max(_NEAR.get(dtype.name, 0), _NEAR.get(other.name, 0))
        limits = [_limit(given, dtype, near) * x.size for given in (atol, rtol)]
        wide = np.result_type(np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64)
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=limits[0], rtol=limits[1],
                                   err_msg=err_msg)


_NEAR = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-15, "complex64": 1e-6,
         "complex128": 1e-15}


def _limit(given: Any, dtype: Any, default: float) -> float:
    if isinstance(given, dict):
        given = {np.dtype(key): value for key, value in given.items()}.get(dtype)
    return default if given is None else given


def is_constant_dim(size: Any) -> bool:
    """Is a size known, a number?"""
    return not isinstance(size, Dimension)


def parse_shape_str(text: str) -> ShapedArray:
    """The type that "f32[2,3]" is.  ValueError for what is none."""
    found = re.fullmatch(r"(\w+)\[((?:\d+(?:,\d+)*)?)\]", text.replace(" ", ""))
    if found is None or found[1] not in _BY_SHORT_NAME:
        raise ValueError(f"Invalid shape {text}. Valid example: \"f32[1,2,3]\"; dtypes are "
                         f"{', '.join(sorted(_BY_SHORT_NAME))}")
    return ShapedArray(tuple(map(int, found[2].split(","))) if found[2] else (), _BY_SHORT_NAME[found[1]])


_BY_SHORT_NAME = {dtypes.short_name(dtype): dtype for dtype in dtypes.SUPPORTED}


def jax_to_hlo(fn: Callable[..., Any], input_shapes: Sequence[tuple[str, ShapedArray]],
               constants: dict[str, Any] | None = None) -> tuple[bytes, str]:
    """(the serialized HLO, its text) of a function.

    Args:
        fn: its arguments are named.
        input_shapes: a name and a type for each argument.
        constants: values of further arguments, by name.
    """
    names, avals = [name for name, _ in input_shapes], [aval for _, aval in input_shapes]
    if twice := set(names) & set(constants or ()):
        raise ValueError(f"jax_to_hlo: {sorted(twice)} are in input_shapes and in constants")
    lowered = jit(lambda *args: fn(**dict(zip(names, args)), **(constants or {}))).lower(
        *[ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    hlo = lowered.compiler_ir("hlo")
    return hlo.as_serialized_hlo_module_proto(), hlo.as_hlo_text()


# --- functions and their arguments

def ensure_index(x: Any) -> Any:
    """An int, or a tuple of ints.  TypeError for other things."""
    try:
        return operator.index(x)
    except TypeError:
        return tuple(map(operator.index, x))


def check_callable(fun: Any) -> None:
    """TypeError for what cannot be called, and for generator functions."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r:.80}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun!r:.80}")


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: Any,
                               argnames: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(numbers, names) of arguments, where only one is given the other by the signature."""
    numbers = as_tuple(argnums, operator.index, "argnums")
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    parameters = sig.parameters
    positional = [name for name, p in parameters.items()
                  if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if argnames is None:
        by_name = {name for name in positional if parameters[name].kind != inspect.Parameter.POSITIONAL_ONLY}
        names = tuple(positional[i] for i in numbers
                      if -len(positional) <= i < len(positional) and positional[i] in by_name)
    elif argnums is None:
        numbers = tuple(i for i, name in enumerate(positional) if name in names)
    return numbers, names


def apply_excluded(func: Callable[..., Any], excluded: Container[Any], args: Sequence[Any],
                   kwargs: dict[str, Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """(a function of the other arguments, these), where positions and names in `excluded` are filled in."""
    given = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}

    def with_excluded(*rest: Any, **others: Any) -> Any:
        left = iter(rest)
        return func(*[given[i] if i in given else next(left) for i in range(len(args))], **others, **named)
    return (with_excluded, [x for i, x in enumerate(args) if i not in given],
            {name: x for name, x in kwargs.items() if name not in named})


def parse_input_dimensions(args: Sequence[Any], input_core_dims: Sequence[Any],
                           error_context: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """(the shape to which leading axes broadcast, the sizes of core axes by name)."""
    loops, sizes = mapping.bind_operands(args, input_core_dims, error_context)
    return jnp.broadcast_shapes(*loops), sizes


def check_output_dims(func: Callable[..., Any], dim_sizes: dict[str, int], expected_output_core_dims: Any,
                      error_context: str = "") -> Callable[..., Any]:
    """The function, whose results are checked for their core axes."""
    def checked(*args: Any) -> Any:
        found = func(*args)
        mapping.check_results(found, expected_output_core_dims, dim_sizes, error_context)
        return found
    return checked


def wraps(wrapped: Any, namestr: str | None = None, docstr: str | None = None,
          **formats: Any) -> Callable[[Any], Any]:
    """Decorator: a function has the name and the words of another, put into `namestr` and `docstr`."""
    def wrapper(fun: Any) -> Any:
        name, doc = getattr(wrapped, "__name__", "<unnamed function>"), getattr(wrapped, "__doc__", "") or ""
        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(fun, wrapped)
            fun.__name__ = (namestr or "{fun}").format(fun=name)
            fun.__doc__ = (docstr or "{doc}").format(fun=name, doc=doc, **formats)
        return fun
    return wrapper


# --- primitives and programs

def standard_primitive(shape_rule: Callable[..., Any], dtype_rule: Callable[..., Any], name: str,
                       weak_type_rule: Callable[..., bool] | None = None, **rules: Any) -> Primitive:
    """A new primitive of one result, whose shape and dtype the rules tell of the operands' types.
    NotImplementedError for JAX's other rules."""
    if any(rules.values()):
        raise NotImplementedError(f"standard_primitive({name!r}): there is a shape_rule, a dtype_rule and a "
                                  f"weak_type_rule, not {', '.join(rules)}; give a primitive the others by "
                                  "jax.interpreters")
    primitive = Primitive(name)

    @primitive.def_abstract_eval
    def abstract_eval(*avals: ShapedArray, **params: Any) -> ShapedArray:
        weak = (weak_type_rule(*avals, **params) if weak_type_rule
                else all(aval.weak_type for aval in avals))
        return ShapedArray(shape_rule(*avals, **params), dtype_rule(*avals, **params), weak)

    primitive.def_impl(functools.partial(apply_primitive, primitive))
    return primitive


custom_staging_rules = NoRules("partial_eval.custom_staging_rules",
                               "a primitive is written down as it is bound")
global_result_handlers = NoRules("pxla.global_result_handlers", "results are arrays")


class _OrderedEffects:
    """The kinds of effects that happen in program order: those made with `ordered=True`."""

    def contains(self, effect_type: Any) -> bool:
        return lowerable_effects.contains(effect_type) and getattr(effect_type, "ordered", False)


ordered_effects = _OrderedEffects()


class _RuntimeTokens:
    """The side effects of programs that run."""

    def block_until_ready(self) -> None:
        """Wait until they have happened."""
        effects_barrier()

    clear = block_until_ready


runtime_tokens = _RuntimeTokens()


class _PrimitiveCallable:
    """`xla_primitive_callable(primitive, **parameters)`: runs a primitive, as outside of jit."""

    def __call__(self, prim: Primitive, **params: Any) -> Callable[..., Any]:
        return functools.partial(apply_primitive, prim, **params)

    cache_clear = staticmethod(clear_caches)


xla_primitive_callable = _PrimitiveCallable()


def filter_traceback(tb: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package and of files that are excluded."""
    error = Exception().with_traceback(tb)
    boundary.filter_traceback(error)
    return error.__traceback__


class _TracingContext:
    """What is being traced on this thread."""

    @property
    def trace(self) -> Trace:
        return state.trace

    def is_top_level(self) -> bool:
        """Is nothing being traced?"""
        return trace_state_clean()


trace_ctx = _TracingContext()


# --- devices

class _ResourceEnv:
    """The mesh of `with mesh:`."""

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh of devices; one without axes and devices if there is none."""
        found = [mesh for mesh, in_use in state.meshes if isinstance(mesh, Mesh) and not in_use]
        return found[-1] if found else NO_MESH


class _ThreadResources:
    env = _ResourceEnv()


thread_resources = _ThreadResources()


def cpu_devices() -> dict[int, Any]:
    """The CPU's devices by their numbers."""
    return {device.id: device for device in client.devices("cpu")}


def get_concrete_mesh() -> Mesh | AbstractMesh:
    """The mesh of devices in use; an empty one if there is none."""
    mesh = mesh_in_use()
    return mesh if isinstance(mesh, Mesh) else AbstractMesh((), ())


def canonicalize_sharding(sharding: Any, api_name: str, _check_mesh_consistency: bool = True) -> Any:
    """A Sharding of what a user gave for one: a PartitionSpec is over the mesh in use; None is None."""
    return sharding if sharding is None else as_sharding(sharding, api_name)


class ClusterEnv:
    """The base of JAX's classes of launchers, which `_cluster_types` lists."""
    _cluster_types: list[type] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._cluster_types.append(cls)


class SlurmCluster(ClusterEnv):
    """A job that SLURM started, as `jax.distributed.initialize` finds it in the environment."""
    name = "slurm"

    @classmethod
    def is_env_present(cls) -> bool:
        return clusters.slurm(os.environ) is not None

    @classmethod
    def get_coordinator_address(cls, _timeout_secs: int | None = None,
                                override_coordinator_port: str | None = None) -> str:
        address = str(clusters.slurm(os.environ).coordinator_address)  # type: ignore[union-attr]
        host, _, port = address.rpartition(":")
        return f"{host}:{override_coordinator_port or port}"

    @classmethod
    def get_process_count(cls) -> int:
        return clusters.slurm(os.environ).num_processes  # type: ignore[union-attr, return-value]

    @classmethod
    def get_process_id(cls) -> int:
        return clusters.slurm(os.environ).process_id  # type: ignore[union-attr, return-value]

    @classmethod
    def get_local_process_id(cls) -> int:
        return int(os.environ["SLURM_LOCALID"])
