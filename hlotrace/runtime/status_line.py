"""One line on the terminal about work that goes on, written over itself.

There is one only where stderr is a terminal and the option `hlotrace_compile_progress` is set.  Nothing here
may fail what it tells of.
"""
from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from ..core.config import config

AFTER = 1.0             # seconds of work before its line comes
EVERY = 1.0             # seconds between what it says

_width = 0               # of the text on the terminal's last line


class StatusLine:
    """The line; it is False where there is none."""
    __slots__ = ("stream", "shown")

    def __init__(self) -> None:
        self.stream: TextIO | None = _terminal()
        self.shown = False      # has it said anything?

    def __bool__(self) -> bool:
        return self.stream is not None

    def write(self, text: str, end: str = "") -> None:
        """Put `text` in the place of what is on the line; `end` is a newline where it is to stay."""
        global _width
        if self.stream is None:
            return
        self.shown = True
        try:
            text = text[:_columns(self.stream) - 1]
            self.stream.write(f"\r{text.ljust(_width)}{end}")
            self.stream.flush()
            _width = 0 if end else len(text)
        except Exception:       # the terminal has gone, or cannot print the name: the work goes on
            self.stream = None

    def clear(self) -> None:
        """Take off what it has said."""
        if self.shown:
            self.write("", "\r")


@contextlib.contextmanager
def going_on(what: Callable[[], str], after: float | None = None) -> Iterator[None]:
    """Says on the line what goes on in the block, and since when, if it takes longer than `after` seconds.

    Args:
        what: asked for the words each time, on a thread of its own.
        after: AFTER by default.
    """
    line, done = StatusLine(), threading.Event()
    if not line:
        yield
        return
    start = time.monotonic()

    def watch() -> None:
        pause = AFTER if after is None else after
        while not done.wait(pause):
            words, pause = what(), EVERY
            if not done.is_set():
                line.write(f"{words}, {time.monotonic() - start:.0f} s")
    thread = threading.Thread(target=watch, name="hlotrace progress", daemon=True)
    try:
        thread.start()
    except RuntimeError:        # the interpreter is ending, or there is no thread to be had
        yield
        return
    try:
        yield
    finally:
        done.set()
        thread.join(1)          # it may be asking
        line.clear()


def _terminal() -> TextIO | None:
    try:
        return sys.stderr if config.hlotrace_compile_progress and sys.stderr.isatty() else None
    except Exception:           # no stderr, or a closed one
        return None


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80
