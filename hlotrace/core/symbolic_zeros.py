"""What rules see in place of values: unknown operands of linear primitives, symbolic zeros, mapped axes."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NoReturn, TypeGuard

from .avals import ShapedArray, register_aval


class UndefinedPrimal:
    """An unknown operand in a transpose rule; its cotangent is what the rule computes."""
    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)


def _not_linear(_: UndefinedPrimal) -> NoReturn:
    raise TypeError("the function is not linear in its arguments, so it has no transpose: an operation "
                    "combines two values that depend on them")


register_aval(UndefinedPrimal, _not_linear)


def is_undefined_primal(x: object) -> TypeGuard[UndefinedPrimal]:
    """Is this operand of a transposition the one that it asks for the cotangent of?

    >>> from hlotrace.interpreters import ad
    >>> ad.is_undefined_primal(ad.UndefinedPrimal(jax.typeof(1.))), ad.is_undefined_primal(1.)
    (True, False)
    """
    return isinstance(x, UndefinedPrimal)


# --- symbolic zeros: None in a list of tangents, cotangents or mapped axes

def nonzero_mask(values: Iterable[Any]) -> tuple[bool, ...]:
    return tuple([v is not None for v in values])


def drop_zeros(values: Iterable[Any]) -> list[Any]:
    return [v for v in values if v is not None]


def fill_zeros(values: Iterable[Any], marks: Iterable[bool]) -> list[Any]:
    """The inverse of `drop_zeros`: the next value for each mark, None where there is none."""
    rest = iter(values)
    return [next(rest) if m else None for m in marks]


@dataclasses.dataclass(unsafe_hash=True, slots=True)
class MappedAxis:
    """The axis that a vmap adds."""
    size: Any
    name: Any = None            # for collectives
    spmd_name: Any = None
    sharding: Any = None        # that of a vector along it, where Explicit mesh axes split it
