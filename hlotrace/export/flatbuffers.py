"""FlatBuffers, read and written by a schema: tables of numbered slots, vectors, strings.

A `Table` is a schema: its slots in order, each a (name, kind).  A kind is a letter of `struct` for a number
("B", "H", "I", "?"), `str`, `bytes`, a Table, `[kind]` for a vector, or a function without arguments that
gives a Table, for one that holds itself.  Values are dictionaries; a slot that is not there is None, a number
that is not there is 0.

The format: "FlatBuffer Internals", https://flatbuffers.dev/internals.  It is little-endian; every number is
at a multiple of its size, counted from the start of the buffer, also in a vector, whose length is the 4 bytes
before; a table starts with the distance back to its vtable, which has for each slot its place in the table or
0; all other offsets point forward.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any


class Table:
    """The slots of a table: `Table(name=kind, ...)`, in the order in which the format numbers them."""

    def __init__(self, **slots: Any) -> None:
        self.slots = slots


def _schema(kind: Any) -> Any:
    return kind() if callable(kind) and not isinstance(kind, type) else kind


# --- reading ------------------------------------------------------------------------------------------------

def read(data: bytes, schema: Table) -> dict[str, Any]:
    """The root table of a buffer, as a dictionary.  ValueError where the bytes are no such thing."""
    try:
        return _Reader(bytes(data)).table(schema, _get("I", data, 0))
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a FlatBuffer of this kind, or one that was cut off: {error}") from None


def _get(letter: str, data: bytes, at: int) -> Any:
    return struct.unpack_from("<" + letter, data, at)[0]


class _Reader:

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = 2 * len(data) + 64      # of values that bytes can hold: offsets in a circle end here

    def table(self, schema: Table, at: int) -> dict[str, Any]:
        vtable = at - _get("i", self.data, at)
        if vtable < 0:
            raise IndexError(f"the table at byte {at} says that its slots are listed before the buffer")
        listed = (_get("H", self.data, vtable) - 4) // 2
        found = {}
        for i, (name, kind) in enumerate(schema.slots.items()):
            place = _get("H", self.data, vtable + 4 + 2 * i) if i < listed else 0
            if place:
                found[name] = self.value(_schema(kind), at + place)
            else:
                found[name] = 0 if isinstance(kind, str) else None
        return found

    def value(self, kind: Any, at: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise IndexError("more values than bytes")
        if isinstance(kind, str):
            return _get(kind, self.data, at)
        at += _get("I", self.data, at)
        if isinstance(kind, Table):
            return self.table(kind, at)
        count, at = _get("I", self.data, at), at + 4
        if at + count > len(self.data):
            raise IndexError(f"a vector of {count} at byte {at} of {len(self.data)}")
        if kind in (str, bytes):
            raw = self.data[at:at + count]
            return raw.decode() if kind is str else raw
        item, = map(_schema, kind)
        step = struct.calcsize("<" + item) if isinstance(item, str) else 4
        return [self.value(item, at + step * i) for i in range(count)]


# --- writing ------------------------------------------------------------------------------------------------

def write(value: Mapping[str, Any], schema: Table) -> bytes:
    """The buffer whose root table a dictionary is; slots that it leaves out, or None, are not there."""
    out = _Writer()
    out.reserve(4)
    out.point(0, out.table(schema, value))
    return bytes(out.data)


class _Writer:
    """What contains is written before what it contains, as offsets point forward."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int, ahead: int = 0) -> None:
        """Pad so that what is written after `ahead` further bytes begins at a multiple of `size`."""
        self.data += bytes(-(len(self.data) + ahead) % size)

    def reserve(self, size: int) -> int:
        at = len(self.data)
        self.data += bytes(size)
        return at

    def point(self, at: int, target: int) -> None:
        struct.pack_into("<I", self.data, at, target - at)

    def table(self, schema: Table, value: Mapping[str, Any]) -> int:
        """The place of a table: its vtable, itself with numbers in it, then what its offsets point to."""
        slots = [(i, _schema(kind), value.get(name)) for i, (name, kind) in enumerate(schema.slots.items())]
        slots = [(i, kind, item) for i, kind, item in slots if item is not None]
        places, size, largest = {}, 4, max([4, *[_size(kind) for _, kind, _ in slots]])
        # the large ones first need no padding
        for i, kind, _ in sorted(slots, key=lambda s: -_size(s[1])):
            size += -size % _size(kind)
            places[i], size = size, size + _size(kind)
        listed = 1 + max(places, default=-1)
        # numbers are at multiples of their size in the table, so the table is at one of the largest
        self.align(largest, 4 + 2 * listed)
        vtable = self.reserve(4 + 2 * listed)
        at = self.reserve(size)
        numbers = [4 + 2 * listed, size, *[places.get(i, 0) for i in range(listed)]]
        struct.pack_into(f"<{len(numbers)}H", self.data, vtable, *numbers)
        struct.pack_into("<i", self.data, at, at - vtable)
        for i, kind, item in slots:
            self.item(kind, item, at + places[i])
        return at

    def item(self, kind: Any, item: Any, at: int) -> None:
        """Write a number at a place, or an offset there to what is written at the end."""
        if isinstance(kind, str):
            struct.pack_into("<" + kind, self.data, at, item)
        elif isinstance(kind, Table):
            self.point(at, self.table(kind, item))
        else:
            self.point(at, self.vector(kind, item))

    def vector(self, kind: Any, items: Any) -> int:
        if kind in (str, bytes):
            raw = items.encode() if kind is str else bytes(items)
            self.align(4)
            at = self.reserve(4)
            struct.pack_into("<I", self.data, at, len(raw))
            self.data += raw + b"\0"
            return at
        item, = map(_schema, kind)
        step = _size(item)
        self.align(max(step, 4), 4)
        at = self.reserve(4 + step * len(items))
        struct.pack_into("<I", self.data, at, len(items))
        for i, one in enumerate(items):
            self.item(item, one, at + 4 + step * i)
        return at


def _size(kind: Any) -> int:
    return struct.calcsize("<" + kind) if isinstance(kind, str) else 4
