"""Effects: what an equation does besides computing.  And the token, the state that keeps ordered ones in
order.

Effects are values: equal ones are one effect of a program.  A kind of effect is a class here; what must happen in program
order carries a state from one equation to the next, which `transforms/discharge.py` adds to programs.
"""
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from .avals import ShapedArray
from .dtypes import ExtendedDType


@dataclasses.dataclass(frozen=True)
class Effect:
    """The base of all.  `ordered`: does it happen in program order?  `runs`: when the program runs, not when
    it compiles?"""
    ordered: bool = False
    at_run_time: bool = True
    batchable = False      # may it happen also for elements whose turn it is not?

    def __str__(self):
        return ("ordered " if self.ordered else "") + type(self).__name__.lower()


@dataclasses.dataclass(frozen=True)
class Debug(Effect):
    """Something is told.  That it happens again, or for each branch of a mapped `cond`, harms nobody."""
    batchable = True

    def __str__(self):
        return "ordered debug" if self.ordered else "debug"


class DebugEffect(Debug):
    """The effect of debug.print and its kin."""


class OrderedDebugEffect(Debug):
    """The effect of debug.print and its kin with `ordered`."""

    def __init__(self):
        super().__init__(True)


def debug_effect(ordered):
    return OrderedDebugEffect() if ordered else DebugEffect()


@dataclasses.dataclass(frozen=True)
class IO(Effect):
    """Something happens outside of the program, once for each time that the equation is reached."""


@dataclasses.dataclass(frozen=True)
class Check(Effect):
    """A `primitives.programs.checks.Failure` may be found."""
    at_run_time: bool = False
    failure: Any = None


INSPECTION = Effect(at_run_time=False)      # the compiler tells how a value lies


@dataclasses.dataclass(frozen=True)
class State:
    """A value that a program carries along and that its equations with some effects change: its type, and
    which effects.

    Where it is `given`, nobody else holds it, and its memory may be reused.
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


def is_ordered(effects):
    """Does one of these effects happen in program order?"""
    return any(e.ordered for e in effects)
