"""PartitionSpec: for each dimension of an array, the mesh axes that split it.

ManualAxisType and UnreducedKind: what types could say besides, and do not here.
"""
from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core.surface.boundary import boundaries


class UnreducedKind(enum.Enum):
    """What would still be to be done over the mesh axes of an unreduced value; there are none here."""
    sum = 1
    max = 2
    min = 3


def _nothing_unreduced(what: str, **given: object) -> None:
    if any(given.values()):
        words = ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
        raise NotImplementedError(f"{what}: {words} need shardings in types, which hlotrace does not have "
                                  "(yet); sum with lax.psum in a shard_map")


class ManualAxisType(NamedTuple("ManualAxisType", [("varying", frozenset), ("unreduced", frozenset),
                                                   ("reduced", frozenset), ("unreduced_kind", object)])):
    """The manual axes of a `shard_map` over which a value differs between devices.

    Raises:
        NotImplementedError: for axes that are unreduced.
    """
    __slots__ = ()

    def __new__(cls, *, varying: Iterable[str] = frozenset(), unreduced: Iterable[str] = frozenset(),
                reduced: Iterable[str] = frozenset(),
                unreduced_kind: UnreducedKind | None = None) -> ManualAxisType:
        _nothing_unreduced("ManualAxisType", unreduced=unreduced, reduced=reduced,
                           unreduced_kind=unreduced_kind)
        return super().__new__(cls, frozenset(varying), frozenset(), frozenset(), None)


class AbstractDevice(NamedTuple):
    """A kind of device, such as programs are compiled for."""
    device_kind: str
    num_cores: int | None
    platform: str


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"      # the one there is

_UNCONSTRAINED = _Unconstrained()


def _entry(position: int, entry: Any) -> Any:
    """An entry in its one form: None, a name, a tuple of two or more names, UNCONSTRAINED, or an ellipsis."""
    if entry is None or entry is _UNCONSTRAINED or entry is ... or isinstance(entry, str):
        return entry
    if isinstance(entry, (tuple, list)) and all(isinstance(name, str) for name in entry):
        if not entry:
            return None
        return tuple(entry) if len(entry) > 1 else entry[0]
    raise TypeError(f"PartitionSpec: entry {position} is {entry!r}; an entry is None, the name of a mesh "
                    "axis, a tuple of names, or PartitionSpec.UNCONSTRAINED")


@boundaries(but="axes index count")
class PartitionSpec:
    """`P("data", None, ("x", "y"))`: dimension 0 is split over mesh axis "data", 1 is not split, 2 over "x"
    and "y".

    Dimensions beyond the last entry are not split.  Reads like a tuple, but is a leaf of a pytree.  A spec
    may hold an ellipsis, for functions that take it; a sharding takes none.

    >>> jax.P("data", None, ("x", "y")), jax.P()
    (P('data', None, ('x', 'y')), P())
    """
    __slots__ = ("_partitions",)
    UNCONSTRAINED = _UNCONSTRAINED      # the compiler may choose
    unreduced: frozenset[str] = frozenset()     # mesh axes over which a sum is still to be taken: none
    reduced = unreduced
    unreduced_kind = None

    def __init__(self, *partitions: Any, unreduced: Iterable[str] = frozenset(),
                 reduced: Iterable[str] = frozenset(), unreduced_kind: UnreducedKind | None = None) -> None:
        _nothing_unreduced("PartitionSpec", unreduced=unreduced, reduced=reduced,
                           unreduced_kind=unreduced_kind)
        self._partitions = tuple(_entry(i, entry) for i, entry in enumerate(partitions))

    partitions = property(lambda self: self._partitions)

    def axes(self, dim: int) -> tuple[str, ...]:
        """The names of the mesh axes that split dimension `dim`, as a tuple, major first."""
        entry = self._partitions[dim] if dim < len(self._partitions) else None
        if entry is None or entry is _UNCONSTRAINED:
            return ()
        return entry if type(entry) is tuple else (entry,)

    def update(self, **changes: Any) -> PartitionSpec:
        """The same but for `partitions`, a sequence of entries."""
        return PartitionSpec(*changes.pop("partitions", self._partitions), **changes)

    def to_tangent_spec(self) -> PartitionSpec:
        """That of a tangent, which has its primal's."""
        return self

    to_ct_spec = to_tangent_spec        # a cotangent too

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays that a value is made of: of an array, itself."""
        return [self]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __add__(self, other: object) -> PartitionSpec:
        return PartitionSpec(*self, *other) if isinstance(other, (tuple, PartitionSpec)) else NotImplemented

    def __radd__(self, other: object) -> PartitionSpec:
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    def index(self, *args: Any) -> int:
        return self._partitions.index(*args)

    def count(self, value: object) -> int:
        return self._partitions.count(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions

    def __hash__(self) -> int:
        return hash((PartitionSpec, self._partitions))

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, self._partitions

    def __repr__(self) -> str:
        return f"P{self._partitions!r}"


P = PartitionSpec
