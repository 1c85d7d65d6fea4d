"""Effects: what an equation does besides computing; and the token, the state that orders them.

Effects are values: equal ones are one effect of a program.  A kind of effect is a class here; what must
happen in program order carries a state from one equation to the next, which `transforms/discharge.py` adds to
programs.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

import numpy as np

from .avals import ShapedArray
from .dtypes import ExtendedDType


@dataclasses.dataclass(frozen=True)
class Effect:
    """The base of all.

    `ordered`: does it happen in program order?  `at_run_time`: when the program runs, not when it compiles?
    """
    ordered: bool = False
    at_run_time: bool = True
    batchable = False      # may it happen also for elements whose turn it is not?

    def __str__(self) -> str:
        return ("ordered " if self.ordered else "") + type(self).__name__.lower()


class Effects(Set):
    """A set of effects, in the order in which a program has them first."""
    __slots__ = ("_effects",)

    def __init__(self, effects: Iterable[Effect] = ()) -> None:
        self._effects = dict.fromkeys(effects)

    def __contains__(self, effect: object) -> bool:
        return effect in self._effects

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._effects)

    def __len__(self) -> int:
        return len(self._effects)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(str, self))}}}"

    __hash__ = Set._hash


class Debug(Effect):
    """Something is reported.  It may happen again, or for each branch of a mapped `cond`."""
    batchable = True

    def __str__(self) -> str:
        return "ordered debug" if self.ordered else "debug"


class DebugEffect(Debug):
    """The effect of debug.print and its kin."""


class OrderedDebugEffect(Debug):
    """The effect of debug.print and its kin with `ordered`."""

    def __init__(self) -> None:
        super().__init__(True)


def debug_effect(ordered: bool) -> Debug:
    return OrderedDebugEffect() if ordered else DebugEffect()


class IO(Effect):
    """Something happens outside of the program, once for each time that the equation is reached."""


@dataclasses.dataclass(frozen=True)
class Check(Effect):
    """A `primitives.programs.checks.Failure` may be found."""
    at_run_time: bool = False
    failure: Any = None


INSPECTION = Effect(at_run_time=False)      # the compiler reports the sharding of a value


@dataclasses.dataclass(frozen=True)
class State:
    """A value that a program carries along, and which of its equations' effects change it.

    Where it is `donated`, nothing else holds it, and its memory may be reused.
    """
    aval: ShapedArray
    handles: Callable[[Effect], bool]
    donated: bool = False


class _TokenDType(ExtendedDType):
    """The type of tokens, which have no data: an operation that takes one follows the one that gave it."""
    name = "token"
    mlir = "!stablehlo.token"
    physical_shape, physical_dtype = (), np.dtype(bool)


# a token, for ordered effects
ORDERED_TOKEN = State(ShapedArray((), _TokenDType()), lambda effect: effect.ordered)


def is_ordered(effects: Iterable[Effect]) -> bool:
    """Does one of these effects happen in program order?"""
    return any(e.ordered for e in effects)
