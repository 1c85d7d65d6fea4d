"""One line on the terminal about work that goes on, written over itself.

There is one only where stderr is a terminal and the option `hlotrace_compile_progress` is set.  Nothing here
may fail what it tells of.
"""
from __future__ import annotations

import os
import sys
from typing import TextIO

from ..core.config import config

_width = 0               # of the text on the terminal's last line


class StatusLine:
    """The line; it is False where there is none."""
    __slots__ = ("stream",)

    def __init__(self) -> None:
        self.stream: TextIO | None = _terminal()

    def __bool__(self) -> bool:
        return self.stream is not None

    def write(self, text: str, end: str = "") -> None:
        """Put `text` in the place of what is on the line; `end` is a newline where it is to stay."""
        global _width
        if self.stream is None:
            return
        try:
            text = text[:_columns(self.stream) - 1]
            self.stream.write(f"\r{text.ljust(_width)}{end}")
            self.stream.flush()
            _width = 0 if end else len(text)
        except Exception:       # the terminal has gone, or cannot print the name: the work goes on
            self.stream = None


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
