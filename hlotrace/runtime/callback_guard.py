"""Host callbacks: the guard between jaxlib and a user's Python function, and exceptions that pass through."""
from __future__ import annotations

import itertools
import re
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.avals import ShapedArray, physical
from ..core.config import config, state
from ..core.jaxpr import Jaxpr
from ..core.surface import boundary
from ..core.trace import EVAL
from ..primitives.programs.callbacks import checked
from . import binding

_raised: dict = {}
_numbers = itertools.count()
_lock = threading.Lock()


class _Thread(threading.local):
    inside = False      # does this thread run a callback?


_thread = _Thread()
_KEPT = 256


class _Carrier(Exception):
    """Carries the number of a user's exception through jaxlib, which keeps only its text."""


def surfaced(error: BaseException) -> BaseException:
    """What an exception in a callback is outside of it: itself, or JAX's where programs expect that.

    That is a JaxRuntimeError with its traceback as text; exceptions that end programs stay what they are.
    """
    if config.hlotrace_callback_errors == "own" or not isinstance(error, Exception):
        return error
    boundary.filter_traceback(error)
    text = "".join(traceback.format_exception(error)).rstrip()
    return binding.JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")


def carried(error: BaseException) -> BaseException:
    """An exception that takes `error` through jaxlib; `original` finds it again."""
    with _lock:
        number = next(_numbers)
        _raised[number] = error
        if len(_raised) > _KEPT:
            del _raised[next(iter(_raised))]
    return _Carrier(f"hlotrace-exception-{number};")


def guard(function: Callable[..., Any], out_avals: Sequence[ShapedArray], n_tokens: int,
          failures: list[BaseException] | None = None) -> Callable[..., tuple]:
    """What jaxlib calls: NumPy operands in, a tuple of NumPy results of exactly the declared types out.

    Whatever the function raises is kept and raised again, as the same object, by the call that first waits
    for the results.  A wrong result is a clear error; jaxlib would read garbage or crash.  With `failures`, a
    list, exceptions are put there and the results are zeros: other devices may wait for this one.
    """
    def call(*args: Any) -> tuple:
        tokens, operands = args[:n_tokens], args[n_tokens:]
        saved, state.trace = state.trace, EVAL
        _thread.inside = True
        try:
            results = function(*operands)
            return (*tokens, *(checked(r, a, i, function)
                               for i, (r, a) in enumerate(zip(results, out_avals, strict=True))))
        except BaseException as error:
            error = surfaced(error)
            if failures is not None:
                failures.append(error)
                return (*tokens, *(np.zeros(a.shape, a.dtype) for a in map(physical, out_avals)))
            raise carried(error) from None
        finally:
            state.trace = saved
            _thread.inside = False
    return call


def forbid_inside(what: str) -> None:
    """RuntimeError in a host callback: what it would wait for waits for it."""
    if _thread.inside:
        raise RuntimeError(f"a host callback called {what}, which would wait for the devices that wait for "
                           "the callback. Compute with NumPy inside of callbacks, or outside with arrays.")


def original(error: Exception, jaxpr: Jaxpr | None = None) -> BaseException:
    """The user's exception behind a runtime error, or the runtime error itself, with more words where memory
    ran out."""
    found = re.search(r"hlotrace-exception-(\d+);", str(error))
    if found:
        number = int(found.group(1))
        with _lock:
            if number not in _raised:
                return error
            raised = _raised[number]
            # Who waits for another result of that program gets its twin: the traceback of the first holds
            # arrays.
            _raised[number] = _twin(raised)
            return raised
    wanted = re.search(r"Out of memory allocating (\d+) bytes", str(error))
    return error if wanted is None else type(error)(_too_large(str(error), int(wanted.group(1)), jaxpr))


def _twin(error: BaseException) -> BaseException:
    """An exception like `error` that has been nowhere."""
    try:
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
    except Exception:       # of a class that wants other arguments
        return error
    return twin


def _too_large(message: str, size: int, jaxpr: Jaxpr | None) -> str:
    unit = min(max(size.bit_length() - 1, 0) // 10, 6)
    name = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[unit]
    words = f"{message.rstrip('.')} ({size / 1024 ** unit:.1f} {name})"
    if jaxpr is None:
        return f"{words}: a computation that was waited for did not get its memory."
    results = ", ".join([a.str_short() for a in jaxpr.out_avals[:4]] + ["..."] * (len(jaxpr.out_avals) > 4))
    return (f"{words} for {jaxpr.name}, whose results are {results or 'none'}. Smaller arrays, a narrower "
            "dtype, donation (donate_argnums) or a sharding over more devices need less.")
