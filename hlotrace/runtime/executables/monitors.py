"""Listeners to what happens while programs are traced, lowered, compiled and found on disk, under JAX's names
of events.

    /jax/core/compile/jaxpr_trace_duration              a function was traced           (fun_name="f")
    /jax/core/compile/jaxpr_to_mlir_module_duration     a program was written as text   (fun_name="jit(f)")
    /jax/core/compile/backend_compile_duration          XLA compiled it                 (fun_name="jit(f)")
    /jax/compilation_cache/compile_requests_use_cache   a program that may be on disk was looked for
    /jax/compilation_cache/cache_hits, cache_misses     it was found there, or not
    /jax/compilation_cache/cache_retrieval_time_sec     how long it took to load
    /jax/compilation_cache/compile_time_saved_sec       what compiling it took the first time, less that

Each of the first three is a scalar (the time at which it begins), then a duration and a time span.
`progress.stage` records them, once there is a listener.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import progress

__all__ = [     # noqa: F822 - half of them are made from a table
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener", "register_event_listener", "register_event_time_span_listener",
    "register_scalar_listener", "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]

_listeners: dict[str, list] = {"event": [], "event_duration_secs": [], "event_time_span": [], "scalar": []}


def _tell(kind: str, event: str, *values: float, **details: Any) -> None:
    for listener in tuple(_listeners[kind]):
        listener(event, *values, **details)


def record_event(event: str, **kwargs: Any) -> None:
    """Tell listeners that something happened: each is called with `event`, like a path, and the keywords.

    What a listener raises is raised here.

    >>> seen = []
    >>> jax.monitoring.register_event_listener(lambda event, **details: seen.append((event, details)))
    >>> jax.monitoring.record_event("/my_program/epoch", number=3)
    >>> seen
    [('/my_program/epoch', {'number': 3})]
    >>> jax.monitoring.clear_event_listeners()
    """
    _tell("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float | int, **kwargs: Any) -> None:
    """Tell listeners that something took `duration` seconds: listener(event, duration, **kwargs).

    >>> seen = []
    >>> jax.monitoring.register_event_duration_secs_listener(
    ...     lambda event, seconds, **details: seen.append(seconds))
    >>> jax.monitoring.record_event_duration_secs("/my_program/load", 0.25)
    >>> seen
    [0.25]
    >>> jax.monitoring.clear_event_listeners()
    """
    _tell("event_duration_secs", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell listeners of time spans when something began and ended, in seconds since the epoch, as time.time()
    gives them.

    >>> spans = []
    >>> jax.monitoring.register_event_time_span_listener(
    ...     lambda event, start, end, **details: spans.append(end - start))
    >>> jax.monitoring.record_event_time_span("/my_program/load", 10.0, 12.5)
    >>> spans
    [2.5]
    >>> jax.monitoring.clear_event_listeners()
    """
    _tell("event_time_span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Tell listeners of scalars a number: listener(event, value, **kwargs).

    >>> seen = []
    >>> jax.monitoring.register_scalar_listener(lambda event, value, **details: seen.append(value))
    >>> jax.monitoring.record_scalar("/my_program/loss", 0.5)
    >>> seen
    [0.5]
    >>> jax.monitoring.clear_event_listeners()
    """
    _tell("scalar", event, value, **kwargs)


def _registers(name: str, kind: str, values: str) -> Callable[..., None]:
    def register(callback: Callable[..., None]) -> None:
        if not callable(callback):
            raise TypeError(f"{name}: expected a function to be called with events, got {callback!r:.60}")
        _listeners[kind].append(callback)
        progress.monitors = _tell
    register.__name__ = register.__qualname__ = name
    register.__doc__ = f"""Call `callback(event{values}, **details)` for each of these events from now on.

    What it raises is raised where the event is recorded.

    Raises:
        TypeError: for what is no function.

    >>> def listener(event{values}, **details):
    ...     pass
    >>> jax.monitoring.{name}(listener)
    >>> jax.monitoring.clear_event_listeners()
    """
    return register


def _unregisters(name: str, kind: str, register: str) -> Callable[..., None]:
    def unregister(callback: Callable[..., None]) -> None:
        if callback not in _listeners[kind]:
            raise ValueError(f"{name}: {callback!r} was not registered")
        _listeners[kind].remove(callback)
        if not any(_listeners.values()):
            progress.monitors = None
    unregister.__name__ = unregister.__qualname__ = name
    unregister.__doc__ = f"""Call `callback` no more.

    Raises:
        ValueError: where it was not registered; JAX asserts that it was.

    >>> jax.monitoring.{register}(print)
    >>> jax.monitoring.{name}(print)
    """
    return unregister


for _kind, _values in (("event", ""), ("event_duration_secs", ", seconds"),
                       ("event_time_span", ", start_time, end_time"), ("scalar", ", value")):
    _on = f"register_{_kind}_listener"
    _off = f"un{_on}".replace("_secs", "")
    globals().update({_on: _registers(_on, _kind, _values), _off: _unregisters(_off, _kind, _on)})


def listeners_of(kind: str) -> list[Callable[..., None]]:
    """Who listens to events of a kind."""
    return [*_listeners[kind]]


def clear_event_listeners() -> None:
    """Forget all listeners, of every kind.

    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.clear_event_listeners()
    >>> jax.monitoring.record_event("/not/listened/to")
    """
    for listeners in _listeners.values():
        listeners.clear()
    progress.monitors = None
