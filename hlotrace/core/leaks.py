"""`jax_check_tracer_leaks`: tracers that outlive their trace are found when it ends, with who holds them."""
from __future__ import annotations

import gc
import sys
import types
from typing import Any

from . import errors
from .array import Array
from .config import config


def check(trace: Any) -> None:
    """Look for tracers of `trace`, which has ended, that are still referred to, if the option is set.

    Raises:
        UnexpectedTracerError: if there are any; it says what refers to them
    """
    if not config.jax_check_tracer_leaks or sys.getrefcount(trace) <= UNSHARED or not _alive(trace):
        return
    gc.collect()        # what only cycles held is no leak
    alive = _alive(trace)
    if not alive:
        return
    lines = [f"Leaked trace of {trace.what}: when it ended, these values were still referred to. Return them "
             "from the function instead of keeping them elsewhere."]
    for x in alive:
        made = x.origin()
        lines.append(f"  {x!r}{made and ', which ' + made}: held by {_holder(x, {id(alive)}, 4)}")
    raise errors.UnexpectedTracerError("\n".join(lines))


def _references(x: object) -> int:
    return sys.getrefcount(x)


UNSHARED = (lambda x: _references(x))(object())     # of what a caller alone holds: its tracers are gone


def _alive(trace: Any) -> list[Any]:
    return [x for x in gc.get_referrers(trace) if isinstance(x, Array) and x._trace is trace]


def _holder(x: object, known: set[int], depth: int) -> str:
    """What refers to `x`, in words, but for what is `known`, and what refers to that, up to what has a name.

    No closure and no generator here: they would refer to `x` too.
    """
    found = gc.get_referrers(x)
    known = {*known, id(found)}
    for holder in found:
        if id(holder) in known or isinstance(holder, types.FrameType):
            continue
        if isinstance(holder, types.FunctionType):
            return f"the function {holder.__qualname__}"
        words = f"a {type(holder).__name__}"
        if isinstance(holder, dict):
            for key, value in holder.items():
                if value is x:
                    if "__spec__" in holder:
                        return f"the global {key} of module {holder['__name__']}"
                    words = f"{words}, under {key!r}"
        elif isinstance(holder, types.CellType):
            words = "a variable of a closure"
        elif not isinstance(holder, (list, tuple, set)):
            words = f"an object of type {type(holder).__qualname__}"
        return f"{words}, held by {_holder(holder, {*known, id(holder)}, depth - 1)}" if depth else words
    return "a function that is running"
