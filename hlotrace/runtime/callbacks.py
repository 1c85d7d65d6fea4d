"""Host callbacks: the guard between jaxlib and a user's Python function, and exceptions that pass through."""
import itertools
import re
import threading

import numpy as np

from ..core.avals import physical
from ..core.config import state
from ..core.trace import EVAL
from ..primitives.callbacks import checked

_raised: dict = {}
_numbers = itertools.count()
_lock = threading.Lock()
_thread = threading.local()     # `inside`: does this thread run a callback?
_KEPT = 256


class _Carrier(Exception):
    """Carries the number of a user's exception through jaxlib, which keeps only its text."""


def guard(function, out_avals, n_tokens, failures=None):
    """What jaxlib calls: NumPy operands in, a tuple of NumPy results of exactly the declared types out.

    Whatever the function raises is kept and raised again, as the same object, by the call that waits for the
    results.  A wrong result is a clear error; jaxlib would read garbage or crash.  With `failures`, a list, exceptions
    are put there and the results are zeros: other devices may wait for this one.
    """
    def call(*args):
        tokens, operands = args[:n_tokens], args[n_tokens:]
        saved, state.trace = state.trace, EVAL
        _thread.inside = True
        try:
            results = function(*operands)
            return (*tokens, *(checked(r, a, i) for i, (r, a) in enumerate(zip(results, out_avals, strict=True))))
        except BaseException as error:
            if failures is not None:
                failures.append(error)
                return (*tokens, *(np.zeros(a.shape, a.dtype) for a in map(physical, out_avals)))
            with _lock:
                number = next(_numbers)
                _raised[number] = error
                while len(_raised) > _KEPT:
                    del _raised[next(iter(_raised))]
            raise _Carrier(f"hlotrace-exception-{number};") from None
        finally:
            state.trace = saved
            _thread.inside = False
    return call


def forbid_inside(what):
    """RuntimeError in a host callback: what it would wait for waits for it."""
    if getattr(_thread, "inside", False):
        raise RuntimeError(f"a host callback called {what}, which would wait for the devices that wait for the callback. "
                           "Compute with NumPy inside of callbacks, or outside with arrays.")


def original(error):
    """The user's exception behind a runtime error, or the runtime error itself."""
    found = re.search(r"hlotrace-exception-(\d+);", str(error))
    if found:
        with _lock:
            return _raised.get(int(found.group(1)), error)
    return error
