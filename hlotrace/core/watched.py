"""What the call of a library function runs, while `runtime/recalled.py` watches it."""
from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

# thread -> the program that the watched call ran last, its operands and its result
watched: dict[int, list[Any]] = {}


def watch(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(What a call gives, what it ran last); None for the latter within a call that is watched."""
    thread = get_ident()
    if thread in watched:
        return function(*args, **kwargs), None
    watched[thread] = []
    try:
        return function(*args, **kwargs), watched.get(thread, ())
    finally:
        watched.pop(thread, None)


def ran(*what: Any) -> None:
    """Note it, if this thread watches a call; to be called where `watched` is not empty."""
    record = watched.get(get_ident())
    if record is not None:
        record[:] = what


def unwatch() -> None:
    """To be called where a call does what its program does not: reads a value or a file, gives a warning."""
    if watched:
        watched.pop(get_ident(), None)
