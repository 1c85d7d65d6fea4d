"""Ctrl-C and other signals, held back where they would leave something half done."""
from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Signals that have a handler of Python's come at the end.  Only the main thread gets any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers, came = {s: h for s in signal.valid_signals() if callable(h := signal.getsignal(s))}, []
    try:
        for s in handlers:
            signal.signal(s, lambda *given: came.append(given))
        yield
    finally:
        for s, handler in handlers.items():
            signal.signal(s, handler)
        for number, frame in came:
            handlers[number](number, frame)
