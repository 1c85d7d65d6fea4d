"""Functions whose operations carry attributes that the compiler reads: compute_on, fused, xla_metadata."""
from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..core import programs
from ..core.config import state
from ..core.errors import check_callable
from ..core.jaxpr import Eqn, close
from ..core.jaxpr_trace import JaxprTracer
from ..core.primitive import Primitive
from ..core.pytrees import pytree
from ..core.surface.boundary import filtered
from ..core.trace import Trace, Tracer, entering
from ..primitives.programs.frontend_attributes import tagged_call_p
from ..transforms.jvp import JVPTracer
from ..transforms.vmap import BatchTracer
from .flat import FlatFunction, TracedProgram
from .signatures import name_of, take_names

Attributes: TypeAlias = tuple[tuple[str, str], ...]       # names and values
_HOST = {"device_host": "host", "tpu_sparsecore": "sparseoffload"}
_MEMORIES = {"device": None, "host": "pinned_host", "pinned_host": "pinned_host", "any": "any"}


def _tagged(f: Callable[..., Any], what: str, attributes: Attributes, derived: Attributes,
            memory: Any = None, each: bool = False) -> Callable[..., Any]:
    """`f` as a function whose program is called under `attributes`, its derivative's under `derived`; or
    `each` of its operations carries them."""
    check_callable(f)

    @filtered
    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        flat = FlatFunction(f, *pytree.tree_flatten((args, kwargs)), what)
        traced = flat.trace(flat.avals())
        closed, consts = close(traced.jaxpr)
        memories = memory
        if memory:
            spaces = pytree.flatten_axes("out_memory_spaces", traced.out_tree, memory)
            memories = tuple(_MEMORIES[m] for m in spaces)
        outs = tagged_call_p.bind(*consts, *flat.leaves, jaxpr=closed, attributes=attributes, derived=derived,
                                  memories=memories, each=each)
        return traced.out_tree.unflatten(outs)
    take_names(call, f)
    return call


def compute_on(f: Any = None, *, compute_type: Any = None, out_memory_spaces: Any = None,
               compiler_options: Any = None) -> Any:
    """`f` as a function that is computed elsewhere than on the device's main units.

    Without `f`, a decorator.  Given a type alone, `compute_on("device_host")` is a block, or a decorator,
    each operation of which is computed there.  A platform without such a thing computes on the device.
    Derivatives are computed there too.

    Args:
        f: the function, or a type.
        compute_type: "device_host" (the CPU beside the device), "tpu_sparsecore", "gpu_stream:1" (a stream of
            that number), or "device".
        out_memory_spaces: the memory in which results are to be, "device" or "host" or what has such a name,
            or a pytree of them that is a prefix of the result.
        compiler_options: must be None.
    Raises:
        ValueError: for another type or memory.
        NotImplementedError: for compiler_options.
        TypeError: for a function without a type, or without a memory.

    >>> from hlotrace.experimental.compute_on import compute_on
    >>> f = compute_on(lambda x: x * 2, compute_type="device_host", out_memory_spaces="device")
    >>> jax.jit(f)(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    >>> with compute_on("device_host"):
    ...     print(jax.jit(lambda x: x * 3)(2))
    6
    """
    if out_memory_spaces is None and (isinstance(f, str) or f is None and compute_type is not None):
        return _tagging(dict(_compute_attributes(f or compute_type)), _PLACES)      # the inner of two decides
    if compute_type is None or out_memory_spaces is None:
        raise TypeError(f"compute_on of {f!r:.60}: write compute_on(f, compute_type=\"device_host\", "
                        "out_memory_spaces=\"device\"), or with compute_on(\"device_host\"): ...")
    if compiler_options is not None:
        raise NotImplementedError(f"compute_on: compiler_options={compiler_options!r:.60} is not supported: "
                                  "they are those of the whole program, jit(compiler_options=)")
    if f is None:
        return functools.partial(compute_on, compute_type=compute_type, out_memory_spaces=out_memory_spaces)
    attributes = _compute_attributes(compute_type)
    return _tagged(f, "compute_on", attributes, attributes,
                   _memories("compute_on: out_memory_spaces", out_memory_spaces))


def _compute_attributes(compute_type: Any) -> Attributes:
    stream = re.fullmatch(r"gpu_stream:(\d+)", str(compute_type))
    if compute_type == "device":
        return ()
    if stream:
        return ("_xla_stream_annotation", stream[1]), ("inlineable", "false")
    if compute_type in _HOST:
        return (("_xla_compute_type", _HOST[compute_type]),)
    raise ValueError(f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
                     "`device`, `tpu_sparsecore`, and `gpu_stream:#`.")


_PLACES = dict.fromkeys(("_xla_compute_type", "_xla_stream_annotation", "inlineable"))


def _memories(what: str, spaces: Any) -> Any:
    def memory(space: Any) -> str:
        name = getattr(space, "name", space)
        if not isinstance(name, str) or name.lower() not in _MEMORIES:
            raise ValueError(f"{what} must name \"device\", \"host\" or \"any\", got {space!r:.60}")
        return name.lower()
    return pytree.tree_map(memory, spaces)


def fused(*, out_spaces: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function whose operations XLA must fuse into one kernel, or refuse to compile.

    So are those of its derivative.  A platform that has no such kernels, as the CPU, computes as it does
    otherwise.  In JAX it runs on GPUs alone.

    Args:
        out_spaces: the memory in which results are to be, a `jax.memory.Space` or a pytree of them that is a
            prefix of the result.
    Raises:
        ValueError: for what names no memory.

    >>> from hlotrace.experimental.fused import fused
    >>> both = fused(out_spaces=jax.memory.Space.Device)(lambda x, y: (x + y, x * y))
    >>> [float(z) for z in jax.jit(both)(2., 3.)]
    [5.0, 6.0]
    """
    memories = _memories("fused: out_spaces", out_spaces)

    def decorator(f: Callable[..., Any]) -> Callable[..., Any]:
        attributes = (("MUST_FUSE", name_of(f)),)
        return _tagged(f, "fused", attributes, attributes, memories)
    return decorator


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Callable[..., Any]:
    """`f` as a function whose operations carry metadata, given by keyword; see `xla_metadata_call2`.

    Without `f`, a decorator.

    >>> from hlotrace.experimental.xla_metadata import xla_metadata_call
    >>> f = jax.jit(xla_metadata_call(lambda x: x * 2, stage="first"))
    >>> 'stage = "first"' in f.lower(1.).as_text(), f(1.)
    (True, Array(2., dtype=float32, weak_type=True))
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f: Callable[..., Any] | None = None, /, metadata: dict[str, Any] | None = None, *,
                       ad_metadata: str | dict[str, Any] = "same") -> Callable[..., Any]:
    """`f` as a function whose operations carry `metadata`, a dict of strings, booleans and numbers.

    They become one call with XLA's `frontend_attributes`.  Without `f`, a decorator.

    Args:
        ad_metadata: what the operations of its derivative carry: the "same", none of it ("drop"), or a dict.
    Raises:
        TypeError: for values of other types.
        ValueError: for another `ad_metadata`.

    >>> from hlotrace.experimental.xla_metadata import xla_metadata_call2
    >>> f = xla_metadata_call2(jnp.sin, {"stage": 1}, ad_metadata={"stage": 2})
    >>> text = jax.jit(jax.grad(f)).lower(1.).as_text()
    >>> 'stage = "2"' in text
    True
    """
    if f is None:
        return functools.partial(xla_metadata_call2, metadata=metadata, ad_metadata=ad_metadata)
    attributes = _pairs(metadata)
    if ad_metadata not in ("same", "drop") and not isinstance(ad_metadata, dict):
        raise ValueError("xla_metadata_call2: ad_metadata must be 'same', 'drop' or a dict, got "
                         f"{ad_metadata!r:.60}")
    derived = attributes
    if ad_metadata != "same":
        derived = _pairs(ad_metadata) if isinstance(ad_metadata, dict) else ()
    return _tagged(f, "xla_metadata_call", attributes, derived)


def _pairs(metadata: Mapping[str, Any] | None) -> Attributes:
    for name, value in (metadata or {}).items():
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError(f"xla_metadata_call: {name}={value!r:.60} is a {type(value).__name__}; metadata "
                            "is text: give a string, a bool or a number")
    return tuple((name, str(value).lower() if isinstance(value, bool) else str(value))
                 for name, value in (metadata or {}).items())


class _TaggingTrace(Trace):
    """Has its parent do each operation in a call that carries attributes."""
    __slots__ = ("attributes",)
    what = "set_xla_metadata"

    def __init__(self, parent: Trace, attributes: Attributes) -> None:
        super().__init__(parent)
        self.attributes = attributes

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        def operation(*args: Any) -> Any:
            return primitive.bind(*args, **params)
        operation.__name__ = primitive.name
        tagged = _tagged(operation, self.what, self.attributes, self.attributes, each=True)
        with entering(self.parent):
            return (operation if primitive.effects_of(params) else tagged)(*args)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """A block or a function whose operations carry metadata, given by keyword: strings, booleans and numbers.

    A context manager, or a decorator; blocks in it add theirs, and remove one with None.  Derivatives of the
    operations carry it too, operations with effects none.  In the program each operation has XLA's
    `frontend_attributes`.

    With `x`, a pytree: the operations that its arrays come from, in the program that is being traced, get
    them; what comes from none, as arguments and arrays that are computed already, is returned as it is.

    Raises:
        NotImplementedError: for an `x` that other transformations trace, as grad does: use a block there.
        TypeError: for metadata of other types.

    >>> from hlotrace.experimental.xla_metadata import set_xla_metadata
    >>> def f(x):
    ...     with set_xla_metadata(stage=1):
    ...         y = jnp.sin(x)
    ...     return set_xla_metadata(y * 2, stage=2)
    >>> text = jax.jit(f).lower(1.).as_text()
    >>> 'stage = "1"' in text, 'stage = "2"' in text
    (True, True)
    """
    added = dict(_pairs({name: value for name, value in kwargs.items() if value is not None}))
    if x is None:
        return _tagging(added, kwargs)
    pytree.tree_map(lambda leaf: _tag_origin(leaf, tuple(added.items())), x)
    return x


@contextlib.contextmanager
def _tagging(added: dict[str, str], named: Mapping[str, Any]) -> Iterator[None]:
    outer = state.trace
    parent, known = (outer.parent, outer.attributes) if type(outer) is _TaggingTrace else (outer, ())
    kept = {name: value for name, value in known if name not in named}
    with entering(_TaggingTrace(parent, tuple({**kept, **added}.items()))):
        yield


def _tag_origin(x: Any, attributes: Attributes) -> None:
    while isinstance(x, (BatchTracer, JVPTracer)):
        x = x.value if isinstance(x, BatchTracer) else x.primal
    if not isinstance(x, Tracer):
        return
    if type(x) is not JaxprTracer:
        raise NotImplementedError(f"set_xla_metadata(x): {x.under()} traces {x.aval.str_short()}: put the "
                                  "operations that it comes from in a block, with set_xla_metadata(...):")
    for i, eqn in reversed(list(enumerate(x._trace.eqns))):
        if any(v is x._var for v in eqn.outvars):
            x._trace.eqns[i] = _tagged_equation(eqn, attributes)
            return


def attributes_of_block() -> Attributes:
    """Those that operations carry which are bound here, to be given to a program that is traced here."""
    return state.trace.attributes if type(state.trace) is _TaggingTrace else ()


def with_attributes(traced: TracedProgram, attributes: Attributes) -> TracedProgram:
    """A program whose operations carry attributes."""
    return traced.with_equations(lambda eqn: _tagged_equation(eqn, attributes)) if attributes else traced


def _tagged_equation(eqn: Eqn, attributes: Attributes) -> Eqn:
    """The equation as a call that carries attributes, if it has no effects."""
    if eqn.effects:
        return eqn

    def operation(*args: Any) -> Any:
        out = eqn.primitive.bind(*args, **eqn.params)
        return out if eqn.primitive.multiple_results else [out]
    program = programs.trace_closed(operation, [v.aval for v in eqn.invars], eqn.primitive.name)
    return eqn.replace(primitive=tagged_call_p, params={
        "jaxpr": program, "attributes": attributes, "derived": attributes, "memories": None, "each": True})


def fuse_limit() -> Any:
    """A block beyond which XLA does not fuse: its operations carry FUSE_LIMIT.

    A context manager, or a decorator.

    >>> from hlotrace.experimental.xla_metadata import fuse_limit
    >>> @jax.jit
    ... def f(x):
    ...     with fuse_limit():
    ...         return x * 2
    >>> 'FUSE_LIMIT = "true"' in f.lower(1.).as_text()
    True
    """
    return set_xla_metadata(FUSE_LIMIT=True)


def must_fuse_call(identifier: Any) -> Callable[..., Any]:
    """Decorator of a function whose operations XLA must fuse into one kernel, or refuse to compile.

    `identifier` is the number of the group.

    >>> from hlotrace.experimental.xla_metadata import must_fuse_call
    >>> f = jax.jit(must_fuse_call(7)(lambda x: x * 2 + 1))
    >>> "MUST_FUSE" in f.lower(1.).as_text()
    True
    """
    return xla_metadata_call(MUST_FUSE=identifier)
