"""What is cached from one call to the next.

A trace depends on its arguments and on what is in force around it.  A ContextCache adds the latter,
`state.trace_key`, to every key by itself: what was made under other options, meshes or named axes is never
found.  All are bounded, or live as long as the object they belong to, and `clear_caches` empties them all.
"""
from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from .config import TraceKey, state

T = TypeVar("T")
R = TypeVar("R")

_tables: weakref.WeakSet[LRUCache] = weakref.WeakSet()
_lock = threading.Lock()
_missing = object()


class LRUCache:
    """A dict of at most `limit` entries, of which those made longest ago go first."""
    __slots__ = ("entries", "limit", "__weakref__")

    def __init__(self, limit: int | None = None) -> None:
        self.entries: dict[Hashable, Any] = {}
        self.limit = limit
        _tables.add(self)

    def get(self, key: Hashable) -> Any:
        return self.entries.get(key)

    def keep(self, key: Hashable, value: T) -> T:
        """`value`, cached under `key`."""
        entries = self.entries
        entries[key] = value
        if self.limit is not None and len(entries) > self.limit:
            with _lock:
                while len(entries) > self.limit:
                    # another thread keeps or uses an entry meanwhile
                    with contextlib.suppress(RuntimeError, KeyError, StopIteration):
                        del entries[next(iter(entries))]
        return value

    def use(self, key: Hashable) -> Any:
        """As `get`; what is found counts as made now."""
        value = self.entries.pop(key, None)
        if value is not None:
            self.entries[key] = value
        return value

    def values(self) -> list[Any]:
        return list(self.entries.values())

    def clear(self) -> None:
        self.entries.clear()


class ContextCache(LRUCache):
    """A cache whose entries hold under what was in force when they were made."""
    __slots__ = ()

    def get(self, key: Hashable) -> Any:
        return self.entries.get((key, state.trace_key))

    def keep(self, key: Hashable, value: T) -> T:
        return super().keep((key, state.trace_key), value)

    def use(self, key: Hashable) -> Any:
        return super().use((key, state.trace_key))


class Types(NamedTuple):
    """What a trace of a function was for: the arguments, their static values, and what was in force."""
    in_tree: object
    avals: tuple
    statics: tuple
    trace_key: TraceKey


def types(in_tree: object, avals: tuple, statics: tuple = ()) -> Types:
    """The Types of a trace made now."""
    return Types(in_tree, avals, statics, state.trace_key)


def cached(limit: int | None) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorator: functools.lru_cache in a ContextCache, for a function of hashable values."""
    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        table = ContextCache(limit)

        @functools.wraps(function)
        def call(*key: Any) -> R:
            found = table.entries.get((key, state.trace_key), _missing)
            return table.keep(key, function(*key)) if found is _missing else found
        return call
    return decorate


class WeakCache:
    """Caches that belong to objects, such as a user's functions, and go with them.

    `WeakCache(make)` calls `make()` for an object that has none yet.
    """
    __slots__ = ("tables", "make")

    def __init__(self, make: Callable[[], Any] = ContextCache) -> None:
        self.tables: weakref.WeakKeyDictionary[Any, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
        self.make = make

    def of(self, owner: object, key: Hashable = None) -> Any:
        """The cache of `owner` under `key`; a new one where the owner cannot be referred to weakly."""
        try:
            tables = self.tables.setdefault(owner, {})
        except TypeError:
            return self.make()
        found = tables.get(key)
        return tables.setdefault(key, self.make()) if found is None else found


def clear_caches() -> None:
    """Forget all traced and compiled programs.

    Functions are traced and compiled anew when they are called next.

    >>> f = jax.jit(lambda x: print("traced") or x)
    >>> _ = f(1), f(2), jax.clear_caches(), f(3)
    traced
    traced
    """
    for table in list(_tables):
        table.clear()
