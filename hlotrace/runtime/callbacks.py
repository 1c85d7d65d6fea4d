"""Host callbacks: the guard between jaxlib and a user's Python function, and exceptions that pass through."""
import itertools
import re
import threading

from ..core.config import state
from ..core.trace import EVAL
from ..primitives.callbacks import checked

_raised: dict = {}
_numbers = itertools.count()
_lock = threading.Lock()
_KEPT = 256


class _Carrier(Exception):
    """Carries the number of a user's exception through jaxlib, which keeps only its text."""


def guard(function, out_avals, n_tokens):
    """What jaxlib calls: NumPy operands in, a tuple of NumPy results of exactly the declared types out.

    Whatever the function raises is kept and raised again, as the same object, by the call that waits for the
    results.  A wrong result is a clear error; jaxlib would read garbage or crash.
    """
    def call(*args):
        tokens, operands = args[:n_tokens], args[n_tokens:]
        saved, state.trace = state.trace, EVAL
        try:
            results = function(*operands)
            return (*tokens, *(checked(r, a, i) for i, (r, a) in enumerate(zip(results, out_avals, strict=True))))
        except BaseException as error:
            with _lock:
                number = next(_numbers)
                _raised[number] = error
                while len(_raised) > _KEPT:
                    del _raised[next(iter(_raised))]
            raise _Carrier(f"hlotrace-exception-{number};") from None
        finally:
            state.trace = saved
    return call


def original(error):
    """The user's exception behind a runtime error, or the runtime error itself."""
    found = re.search(r"hlotrace-exception-(\d+);", str(error))
    if found:
        with _lock:
            return _raised.get(int(found.group(1)), error)
    return error
