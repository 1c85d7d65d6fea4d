"""Types of the user's own, of values made of arrays (JAX's hijax), and to which trace a value belongs.

No program has such values.  On the way into a traced function they become their arrays, as their type, a
HiType, says; inside they are values of the same class again, of traced arrays.  See `api/hijax.py`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .config import state
from .jaxpr_trace import JaxprTrace
from .trace import EVAL, Trace

T = TypeVar("T")

_types: dict[type, Callable[[Any], Any]] = {}      # class of values -> function from a value to its HiType


def register(value_class: type, typeof: Callable[[Any], Any]) -> None:
    _types[value_class] = typeof


def typeof_for(cls: type) -> Callable[[Any], Any] | None:
    """The function from a value of a class to its HiType; None for a class that has none."""
    for base in cls.__mro__ if _types else ():
        if base in _types:
            return _types[base]
    return None


def type_of(value: object) -> Any:
    """The HiType of a value, None for what is of none."""
    typeof = typeof_for(type(value))
    return None if typeof is None else typeof(value)


def is_mutable(value: object) -> bool:
    """Is it a value of a type whose values change?"""
    kind = type_of(value)
    return kind is not None and kind.has_qdd


# --- to which trace a value belongs

def adopt(value: T, tangents: Sequence[Any] = ()) -> T:
    """The value, which belongs to the current trace; `tangents` are the arrays of its tangent there."""
    trace = state.trace
    if trace is not EVAL:
        trace.made = trace.made or {}
        trace.made[id(value)] = value, tangents
    return value


def found(value: object) -> tuple[Trace, Sequence[Any], bool]:
    """(innermost trace that a value belongs to, its tangent's arrays, is a program in it written?)."""
    trace, inside = state.trace, False
    while trace is not EVAL:
        if id(value) in (trace.made or ()):
            return trace, trace.made[id(value)][1], inside
        inside = inside or isinstance(trace, JaxprTrace)
        trace = trace.parent
    return EVAL, (), inside


def cur_qdd(value: Any) -> Any:
    """Of what a mutable value is made now, as it says itself.

    Raises:
        TypeError: for a value of no mutable type

    >>> hijax = jax.experimental.hijax
    >>> class Box:
    ...     cur_qdd = lambda self: ("one", "array")
    >>> class BoxType(hijax.MutableHiType):
    ...     pass
    >>> BOX = BoxType()
    >>> hijax.register_hitype(Box, lambda box: BOX)
    >>> jax.experimental.cur_qdd(Box())
    ('one', 'array')
    """
    if not is_mutable(value):
        raise TypeError(f"cur_qdd: {value!r:.80} is of no mutable type of jax.experimental.hijax")
    return value.cur_qdd()
