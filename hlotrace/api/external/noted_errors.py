"""Errors that a program notes while it runs: the first one is a number in a Ref of the thread's.

`set_error_if` and `raise_if_error` of `experimental.error_check` are for users; numpy's functions note what
the options `jax_error_checking_behavior_nan`, `_divide` and `_oob` ask for.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.avals import aval_of
from ...core.config import state
from ...core.dtypes import is_float
from ...core.refs import Ref
from ...core.source_info import describe, user_frame
from ...core.trace import EVAL, entering
from ...primitives.arrays.elementwise import and_p, eq, ne, select
from ...primitives.arrays.reduce import reduce_or_p
from ...primitives.arrays.slicing import as_array
from ..composite import composite
from ..contexts import make_user_context
from ..refs import read, write

NO_ERROR = np.iinfo("uint32").max
messages: list[tuple[str, str]] = []       # (message, where its check is), by the number that is noted
lock = threading.Lock()
context = make_user_context(None)      # the Ref in force, where it is not the thread's
_of_thread = threading.local()


class JaxValueError(ValueError):
    """A check of `set_error_if` has failed."""
    __module__ = "hlotrace.experimental.error_check"        # where users find it


def noted() -> Ref:
    """The Ref in which the first error of this thread is noted."""
    if context.value is None and not hasattr(_of_thread, "ref"):
        with entering(EVAL):
            _of_thread.ref = Ref(as_array(np.uint32(NO_ERROR)))
    return _of_thread.ref if context.value is None else context.value


def _number(message: str, place: str) -> int:
    with lock:
        messages.append((message, place))
        return len(messages) - 1


@composite
def _first(before: Any, failed: Any, number: Any) -> Any:
    failed = reduce_or_p.bind(failed, axes=tuple(range(aval_of(failed).ndim)))
    return select(and_p.bind(eq(before, NO_ERROR), failed), number, before)


def note(failed: Any, number: Any) -> None:
    """Note the error of that number where any element of `failed` is true, and nothing is noted yet."""
    ref = noted()
    write(ref, _first(read(ref), failed, number))


def set_error_if(pred: Any, message: str) -> None:
    """See `experimental.error_check.set_error_if`; `pred` is an array."""
    if any([kind != "vmap" for _, _, kind in state.axis_env]):
        raise ValueError("set_error_if: in a shard_map each device has a predicate of its own, but the error "
                         "code state and the predicate must be on the same mesh: return the predicate from "
                         "the shard_map, and check it outside of it")
    note(pred, as_array(np.uint32(_number(message, describe(user_frame())))))


def noting_floats(function: Callable[..., Any], divides: bool, args: tuple[Any, ...]) -> Any:
    """`function(*args)` that notes division by zero if it `divides`, and NaN, if the options ask for that."""
    if divides and "divide" in state.noting:
        set_error_if(eq(as_array(args[1]), 0), "Division by zero encountered")
    out = function(*args)
    for x in (out if isinstance(out, tuple) else (out,)) if "nan" in state.noting else ():
        if is_float(aval_of(x).dtype):
            set_error_if(ne(x, x), "NaN encountered")
    return out
