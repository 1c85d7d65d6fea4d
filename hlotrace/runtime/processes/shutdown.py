"""The end of the process while threads still compute.

Python ends a daemon thread where it next asks for the interpreter's lock.  One that comes back from jaxlib's
C++ cannot be ended there: the process aborts.  So before the interpreter goes, such threads are ended the
way `sys.exit()` ends one, but never inside of Python's own library: between taking a lock and the `try` that
gives it back, that would leave the lock taken, and the process would wait for it for ever (`logging`'s, say).
"""
from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from typing import Any

from ...core import config, source_info

# seconds: nothing interrupts a computation, so what a thread waits for must come to its end
_PATIENCE = 60
_LIBRARY = os.path.dirname(os.__file__)


def _end_threads() -> None:
    waiting = [t for t in list(config._threads) if t.daemon and t.is_alive()
               and t is not threading.current_thread()]
    computed: set[threading.Thread] = set()
    start = time.monotonic()
    while waiting and time.monotonic() < start + _PATIENCE:
        frames = sys._current_frames()
        computed.update(t for t in waiting if _computes(frames.get(t.ident or 0)))
        for t in waiting:       # again and again: where Python calls a finalizer, the exception is lost
            if _in_library(frames.get(t.ident or 0)):
                continue
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(t.ident or 0),
                                                       ctypes.py_object(SystemExit))
        time.sleep(0.01)
        # one that is between two calls ends by then, others may wait for ever
        soon = time.monotonic() < start + 0.2
        waiting = [t for t in waiting if t.is_alive() and (soon or t in computed)]
    if waiting:
        print(f"hlotrace: {', '.join(t.name for t in waiting)} still in a computation after {_PATIENCE} s: "
              "the process may abort. Join such threads before the program ends.", file=sys.stderr)


def _computes(frame: Any) -> bool:
    """Is a call of this package among those that the thread is in?"""
    while frame is not None and not source_info.is_package(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None


def _in_library(frame: Any) -> bool:
    """Is this code of Python's own library?  An exception set now comes up where the thread is now."""
    file = frame.f_code.co_filename if frame is not None else ""
    return file.startswith(("<frozen ", _LIBRARY)) and "site-packages" not in file


def watch() -> None:
    """To be called once, by whoever starts computations."""
    atexit.register(_end_threads)
