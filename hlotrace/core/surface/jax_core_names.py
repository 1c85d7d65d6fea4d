"""JAX's names for what core holds: `jax.core` and most of `jax.extend.core`.

The package lists them, in its `__init__`, so that this file is imported when one is used.
"""
# ruff: noqa: F401 - much is imported to be found here
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import __all__, trace as tracing
from ..avals import ShapedArray, aval_of as get_aval, avals_by_type as pytype_aval_mappings
from ..config import state
from ..dtypes import tangent_dtype as primal_dtype_to_tangent_dtype
from ..effects import ORDERED_TOKEN, Effect
from ..errors import JaxprTypeError
from ..jaxpr import (
    Atom, DebugInfo, Eqn as JaxprEqn, Jaxpr as Program, Literal, Var, check_jaxpr, eval_jaxpr,
    sub_jaxprs as jaxprs_in_params)
from ..primitive import Primitive
from ..source_info import SourceInfo
from ..symbolic.dimension import InconclusiveDimensionOperation, max_dim, min_dim
from ..trace import EVAL, Trace, Tracer, ensure_compile_time_eval, entering

AbstractValue = ShapedArray
Effects = Set[Effect]
Value = Any
ParamDict = dict[str, Any]
array_types = {np.ndarray, np.generic}
no_effects: frozenset = frozenset()
typeof = get_aval


class Token:
    """A token outside of programs: what it follows has been done."""
    __slots__ = ()

    def __init__(self, buf: Any = None) -> None:
        """`buf` is the array that JAX's tokens have; here there is none."""
        if buf is not None:
            raise NotImplementedError("Token(buf): a token has no array here")

    def block_until_ready(self) -> Token:
        return self

    def __repr__(self) -> str:
        return "Token()"


class _TokenType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return value is ORDERED_TOKEN.aval


class AbstractToken(metaclass=_TokenType):
    """The type of tokens inside of programs: `AbstractToken()` is the one there is."""

    def __new__(cls) -> Any:
        return ORDERED_TOKEN.aval


class TraceTag:
    """What traces of one transformation have in common: equal to itself alone."""
    __slots__ = ("__weakref__",)


# --- programs

class _Face(type):
    """A name under which programs are made as JAX makes them; every program is an instance."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Program)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, (Program, _Program))


class _Program(metaclass=_Face):
    __slots__ = ()


class Jaxpr(_Program):
    """`Jaxpr(constvars, invars, outvars, eqns)`: a program, as JAX orders its parts.

    Its effects are those of its equations.
    """

    def __new__(cls, constvars: Iterable[Var], invars: Iterable[Var], outvars: Iterable[Atom],
                eqns: Iterable[JaxprEqn], effects: Effects = no_effects, debug_info: Any = None) -> Any:
        return Program(constvars, (), invars, list(eqns), outvars)


class ClosedJaxpr(_Program):
    """`ClosedJaxpr(jaxpr, consts)`: the program with these values of its `constvars`.

    A program carries its constants here: open and closed ones are of one class.

    Raises:
        ValueError: unless there are as many values as variables
    """

    def __new__(cls, jaxpr: Program, consts: Sequence[Any] = ()) -> Any:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(f"the program has {len(jaxpr.constvars)} constvars, but {len(consts)} constants "
                             "are given")
        return jaxpr.replace(consts=tuple(consts))


class DropVar(Var):
    """A variable that nothing reads: programs have none, as every result has its own variable."""
    __slots__ = ()


def new_jaxpr_eqn(invars: Iterable[Atom], outvars: Iterable[Var], primitive: Primitive, params: ParamDict,
                  effects: Effects = no_effects, source_info: SourceInfo | None = None,
                  ctx: Any = None) -> JaxprEqn:
    """An equation; `source_info` as `extend.source_info_util.current()` gives it."""
    return JaxprEqn(primitive, list(invars), list(outvars), params, tuple(effects),
                    *((source_info.source, source_info.name_stack.path) if source_info else ()))


def gensym() -> Callable[[ShapedArray], Var]:
    """A function from avals to new variables."""
    return Var


def jaxpr_as_fun(closed_jaxpr: Program) -> Callable[..., list[Any]]:
    """The function of flat arguments that a program is; it returns a list."""
    return lambda *args: eval_jaxpr(closed_jaxpr, closed_jaxpr.consts, *args)


def subjaxprs(jaxpr: Program) -> Iterator[Program]:
    """The programs that a program's equations hold."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


# --- avals

def mapped_aval(size: Any, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """`aval` without `axis`, which is None for a value that is not mapped."""
    if axis is not None and aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} does not have size {size}")
    return aval.without_axis(axis)


def raise_to_shaped(aval: ShapedArray) -> ShapedArray:
    """The type as it is: types have no values here."""
    return aval


def unmapped_aval(size: Any, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """`aval` with a new axis of `size` at `axis`; as it is for None."""
    return aval if axis is None else aval.with_axis(axis, size)


def valid_jaxtype(x: object) -> bool:
    """May `x` be used as an array?"""
    try:
        get_aval(x)
    except TypeError:
        return False
    return True


# --- the current trace

def concrete_or_error(force: Callable[[Any], Any] | None, value: Any, context: str = "") -> Any:
    """The value behind `value`, converted with `force` unless that is None.  ConcretizationTypeError if it is
    not known."""
    known = tracing.concrete_or_error(value, context)
    return known if force is None else force(known)


eval_context = ensure_compile_time_eval


def find_top_trace(_: Any = None) -> Trace:
    """The current trace."""
    return state.trace


def set_current_trace(trace: Trace, check_leaks: bool = False) -> entering:
    """Context manager in which `trace` is the current one."""
    if check_leaks:
        raise NotImplementedError("set_current_trace(check_leaks=True)")
    return entering(trace)


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Gives the current trace; within, operations are evaluated at once."""
    trace = state.trace
    with entering(EVAL):
        yield trace


class OpaqueTraceState:
    """Equal to another one taken under the same trace."""
    __slots__ = ("_trace",)

    def __init__(self) -> None:
        self._trace = weakref.ref(state.trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace() is other._trace() is not None

    def __hash__(self) -> int:
        return hash(self._trace)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """Something that compares equal while the same trace is the current one."""
    return OpaqueTraceState()


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    return [name for name, *_ in state.axis_env]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    return bool(state.axis_env)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    return state.trace.staging


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    trace = state.trace
    while trace is not None and trace.what != "vmap":
        trace = trace.parent
    return trace is not None
