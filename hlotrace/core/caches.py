"""What is cached from one call to the next.

A trace depends on its arguments and on what is in force around it.  A ContextCache adds the latter,
`state.trace_key`, to every key by itself: what was made under other options, meshes or named axes is never
found.  All are bounded, or live as long as the object they belong to, and `clear` empties them all.
"""
import functools
import threading
import weakref
from typing import NamedTuple

from .config import state

_tables: weakref.WeakSet = weakref.WeakSet()
_lock = threading.Lock()
_missing = object()


class LRUCache:
    """A dict of at most `limit` entries, of which those made longest ago go first."""
    __slots__ = ("entries", "limit", "__weakref__")

    def __init__(self, limit=None):
        self.entries = {}
        self.limit = limit
        _tables.add(self)

    def get(self, key):
        return self.entries.get(key)

    def keep(self, key, value):
        """`value`, cached under `key`."""
        entries = self.entries
        entries[key] = value
        if self.limit is not None and len(entries) > self.limit:
            with _lock:
                while len(entries) > self.limit:
                    del entries[next(iter(entries))]
        return value

    def use(self, key):
        """As `get`; what is found counts as made now."""
        value = self.entries.pop(key, None)
        if value is not None:
            self.entries[key] = value
        return value

    def values(self):
        return list(self.entries.values())

    def clear(self):
        self.entries.clear()


class ContextCache(LRUCache):
    """A cache whose entries hold under what was in force when they were made."""
    __slots__ = ()

    def get(self, key):
        return self.entries.get((key, state.trace_key))

    def keep(self, key, value):
        return super().keep((key, state.trace_key), value)

    def use(self, key):
        return super().use((key, state.trace_key))


class Types(NamedTuple):
    """What a trace of a function was for: the arguments, their static values, and what was in force."""
    in_tree: object
    avals: tuple
    statics: tuple
    trace_key: object


def types(in_tree, avals, statics=()):
    """The Types of a trace made now."""
    return Types(in_tree, avals, statics, state.trace_key)


def cached(limit):
    """Decorator: functools.lru_cache in a ContextCache, for a function of hashable values."""
    def decorate(function):
        table = ContextCache(limit)

        @functools.wraps(function)
        def call(*key):
            found = table.entries.get((key, state.trace_key), _missing)
            return table.keep(key, function(*key)) if found is _missing else found
        return call
    return decorate


class WeakCache:
    """Caches that belong to objects, such as a user's functions, and go with them.

    `WeakCache(make)` calls `make()` for an object that has none yet.
    """
    __slots__ = ("tables", "make")

    def __init__(self, make=ContextCache):
        self.tables = weakref.WeakKeyDictionary()
        self.make = make

    def of(self, owner, key=None):
        """The cache of `owner` under `key`; a new one where the owner cannot be referred to weakly."""
        try:
            tables = self.tables.setdefault(owner, {})
        except TypeError:
            return self.make()
        found = tables.get(key)
        return tables.setdefault(key, self.make()) if found is None else found


def clear():
    """Empty every cache."""
    for table in list(_tables):
        table.clear()
