"""Batching: a value travels with the position of its mapped axis."""
from __future__ import annotations

import functools
import gc
import itertools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes, leaks, programs
from ..core.array import Array
from ..core.avals import aval_of
from ..core.config import named_axes, state
from ..core.jaxpr import Jaxpr, eval_jaxpr
from ..core.primitive import Primitive, fact_of, missing
from ..core.symbolic_zeros import MappedAxis, drop_zeros, fill_zeros, nonzero_mask
from ..core.trace import Trace, Tracer
from ..primitives.arrays.shape import batch_by_axes, broadcast_axis, move_axis

_ATOMS = frozenset({bool, int, float, complex, str, bytes, types.NoneType})     # they hold nothing


class BatchTracer(Tracer):
    """`value` has the mapped axis at `dim`; the tracer's aval lacks it."""
    __slots__ = ("value", "dim")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self._trace = trace
        self.value = value
        self.dim = dim
        aval = aval_of(value)
        self.aval = aval.without_axis(dim)

    # by JAX's names, which libraries read
    val = property(lambda self: self.value)
    batch_dim = property(lambda self: self.dim)

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={aval_of(self.value)})"

    def inner(self) -> Any:
        return self.value


class BatchTrace(Trace):
    """A trace of values with a mapped axis.

    Values are its own by their axis: a custom rule may run in a second trace of the same axis, and close over
    values of the first.
    """
    __slots__ = ("axis",)
    what = "vmap"

    def __init__(self, parent: Trace, axis: MappedAxis) -> None:
        super().__init__(parent)
        self.axis = axis

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        dims: list[int | None] = []
        mapped, axis = False, self.axis
        for a in args:
            if type(a) is BatchTracer and a._trace.axis is axis:
                values.append(a.value)
                dims.append(a.dim)
                mapped = True
            else:
                values.append(a)
                dims.append(None)
        saved = state.trace
        state.trace = self.parent
        try:
            if not (mapped or axis.name is not None and axis.name in primitive.axis_names_of(params)
                    or "fun" in params and self._is_in(params)):
                return primitive.bind(*values, **params)
            rule = primitive.batching
            if rule is None:
                if primitive.axes is None:
                    raise missing(primitive, "batching")
                rule = functools.partial(batch_by_axes, primitive)
            out, out_dim = rule(axis, values, dims, **params)
        finally:
            state.trace = saved
        if primitive.multiple_results:
            return [x if d is None else BatchTracer(self, x, d) for x, d in zip(out, out_dim, strict=True)]
        return out if out_dim is None else BatchTracer(self, out, out_dim)

    def _is_in(self, params: dict[str, Any]) -> bool:
        """Do functions among the parameters close over a value of this trace, or objects that they hold?

        The nearest objects are looked at, breadth first, and no more than 100,000 of them.
        """
        pending, seen = list(params.values()), {id(self)}
        for value in itertools.islice(pending, 100_000):        # pending grows meanwhile
            if type(value) is BatchTracer and value._trace.axis is self.axis:
                return True
            if type(value) not in _ATOMS and id(value) not in seen:
                seen.add(id(value))
                pending += _held(value)
        return False

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        if (any(type(a) is BatchTracer and a._trace.axis is self.axis for a in args)
                or self.axis.name is not None and self.axis.name in fact_of(jaxpr, "axis_names")):
            return super().splice(jaxpr, args)
        return self.outside(self.parent.splice, jaxpr, args)

    def split(self, value: Any) -> tuple[Any, int | None]:
        """(value, position of the mapped axis or None) as this trace sees it."""
        if type(value) is BatchTracer and value._trace.axis is self.axis:
            return value.value, value.dim
        return value, None


def _held(value: Any) -> Iterable[Any]:
    """What a function closes over, the items of a container, the attributes of another object."""
    if isinstance(value, Array) and not isinstance(value, Tracer):
        return ()
    if isinstance(value, types.FunctionType):
        by_keyword = value.__kwdefaults__ or {}
        return [*(value.__closure__ or ()), *(value.__defaults__ or ()), *by_keyword.values()]
    if isinstance(value, (types.CellType, types.MethodType)):
        return gc.get_referents(value)
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, (type, types.ModuleType, np.ndarray, Trace)):
        return ()
    slots = [name for cls in type(value).__mro__ for name in cls.__dict__.get("__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


def batch_flat(fun: Callable[..., Any], axis: MappedAxis, args: Sequence[Any],
               dims: Sequence[int | None], scope: str = "") -> tuple[list[Any], list[int | None]]:
    """(outs, out dims) of `fun`, which maps flat lists to flat lists; a dim is None where unbatched.  Its
    operations are in one more scope."""
    trace = BatchTrace(state.trace, axis)
    names = [] if axis.name is None else [(axis.name, axis.size, "vmap")]
    with named_axes(*names):
        outs = trace.run(fun, *[a if d is None else BatchTracer(trace, a, d)
                                for a, d in zip(args, dims, strict=True)], scope=scope)
    pairs = [trace.split(x) for x in outs]
    del outs
    leaks.check(trace)
    return [x for x, _ in pairs], [d for _, d in pairs]


def place_axis(x: Any, size: int, source: int | None, target: int, along: Any = None) -> Any:
    """`x` with its mapped axis moved from `source` to `target`, or made there if `source` is None: split as
    `along`, a sharding of vectors or None, says."""
    if source is not None:
        return move_axis(x, source, target)
    if aval_of(x).dtype == dtypes.float0:
        return np.zeros((size, *x.shape), dtypes.float0)
    spread = broadcast_axis(x, size, target)
    if along is None or not hasattr(x, "aval"):
        return spread
    from ..primitives.parallel.sharding import as_type  # few programs are over Explicit axes
    return as_type(spread, aval_of(x).with_axis(target, size, along))


@programs.register
def batch(jaxpr: Jaxpr, axis: MappedAxis, batched: tuple[bool, ...],
          force_out: bool | tuple[bool, ...] = False) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The program for operands with a mapped axis in front where `batched`, and marks of its batched outputs.

    Args:
        force_out: a bool or a tuple of bool: outputs that are to be batched whatever they depend on.
    """
    out_batched: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        outs, dims = batch_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), axis, args,
                                [0 if b else None for b in batched])
        force = [force_out] * len(outs) if isinstance(force_out, bool) else force_out
        out_batched[:] = [d is not None or f for d, f in zip(dims, force, strict=True)]
        return [place_axis(x, axis.size, d, 0, axis.sharding) if b else x
                for x, d, b in zip(outs, dims, out_batched)]

    avals = [a.with_axis(0, axis.size, axis.sharding) if b else a for a, b in zip(jaxpr.in_avals, batched)]
    return programs.trace_closed(fun, avals, jaxpr.name), tuple(out_batched)


def batch_nonzero(fun: Callable[..., Any], axis: MappedAxis, args: Sequence[Any],
                  dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """`batch_flat` of a function with symbolic zeros (None) among its outputs, which stay."""
    def instantiated(*xs: Any) -> list[Any]:
        outs = fun(*xs)
        marks[:] = nonzero_mask(outs)
        return drop_zeros(outs)
    marks: list[bool] = []
    outs, out_dims = batch_flat(instantiated, axis, args, dims)
    return fill_zeros(outs, marks), fill_zeros(out_dims, marks)


def map_flat(fun: Callable[..., Any], axis: MappedAxis, args: Sequence[Any],
             dims: Sequence[int | None]) -> list[Any]:
    """`batch_nonzero` with every output mapped in front."""
    return [None if x is None else place_axis(x, axis.size, d, 0, axis.sharding)
            for x, d in zip(*batch_nonzero(fun, axis, args, dims))]


programs.batch_flat, programs.batch_nonzero, programs.map_flat = batch_flat, batch_nonzero, map_flat
