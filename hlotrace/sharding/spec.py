"""PartitionSpec: for each dimension of an array, the mesh axes that split it.

Besides, the axes over which it is unreduced: each device holds a term of a sum.  Reduced is the other side of
that: the value is whole on every device, and its cotangent is unreduced.
"""
from __future__ import annotations

import enum
from collections.abc import Iterator, Set
from typing import Any, Self

from ..core.avals import ManualAxisType  # noqa: F401 - where users find it
from ..core.surface.boundary import boundaries


class UnreducedKind(enum.Enum):
    """What is still to be done over the mesh axes of an unreduced value: here a sum, always."""
    sum = 1
    max = 2
    min = 3


def _names(what: str, given: Any) -> frozenset[str]:
    """The mesh axes that an argument names."""
    if not isinstance(given, (set, frozenset)):
        raise TypeError(f"{what} argument of PartitionSpec should of type `frozenset` or `set`. Got type "
                        f"{given!r}; it has names of mesh axes, as in {what}={{'x'}}")
    for name in given:
        if not isinstance(name, str):
            raise ValueError(f"{what} cannot contain {name}. All elements in {what} should refer to the mesh "
                             "axes.")
    return frozenset(given)


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
    """`P("data", None, ("x", "y"))`: mesh axis "data" splits dimension 0, none dimension 1, "x" and "y" 2.

    Dimensions beyond the last entry are not split.  Reads like a tuple, but is a leaf of a pytree.  A spec
    may hold an ellipsis, for functions that take it; a sharding takes none.

    `unreduced` is a set of mesh axes: the devices along them hold the terms of a sum, as a product over a
    dimension that they split leaves them; `reshard` to a spec without them sums.  `reduced` is one too: as if
    not named, but the cotangent is unreduced over them.

    Raises:
        ValueError: where an axis is in two of them.

    >>> jax.P("data", None, ("x", "y")), jax.P(), jax.P("x", unreduced={"y"})
    (P('data', None, ('x', 'y')), P(), P('x', unreduced={'y'}))
    """
    __slots__ = ("_partitions", "unreduced", "reduced")
    UNCONSTRAINED = _UNCONSTRAINED      # the compiler may choose
    _partitions: tuple[Any, ...]
    unreduced: frozenset[str]
    reduced: frozenset[str]

    def __new__(cls, *partitions: Any, unreduced: Set[str] = frozenset(), reduced: Set[str] = frozenset(),
                unreduced_kind: UnreducedKind | None = None) -> Self:
        if unreduced_kind not in (None, UnreducedKind.sum):
            raise NotImplementedError(f"PartitionSpec: unreduced_kind={unreduced_kind} is not supported: the "
                                      "values of devices are terms of a sum")
        self = object.__new__(cls)
        self._partitions = tuple(_entry(i, entry) for i, entry in enumerate(partitions))
        self.unreduced = _names("unreduced", unreduced) if unreduced else frozenset()
        self.reduced = _names("reduced", reduced) if reduced else frozenset()
        if unreduced or reduced:
            used = {name for dim in range(len(self._partitions)) for name in self.axes(dim)}
            if both := self.unreduced & self.reduced:
                raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got "
                                 f"unreduced: {self.unreduced} and reduced: {self.reduced}: both have {both}")
            for kind, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
                if used & axes:
                    raise ValueError(f"partitions cannot overlap with {kind} axes passed to PartitionSpec. "
                                     f"Got partitions: {self._partitions} and {kind} axes: {axes}")
        return self

    partitions = property(lambda self: self._partitions)
    unreduced_kind = property(lambda self: UnreducedKind.sum if self.unreduced else None)

    @property
    def partial(self) -> bool:
        """Does it name axes that are unreduced or reduced?"""
        return bool(self.unreduced or self.reduced)

    def axes(self, dim: int) -> tuple[str, ...]:
        """The names of the mesh axes that split dimension `dim`, as a tuple, major first."""
        entry = self._partitions[dim] if dim < len(self._partitions) else None
        if entry is None or entry is _UNCONSTRAINED:
            return ()
        return entry if type(entry) is tuple else (entry,)

    def update(self, **changes: Any) -> PartitionSpec:
        """The same but for `partitions`, a sequence of entries, `unreduced` or `reduced`."""
        return PartitionSpec(*changes.pop("partitions", self._partitions),
                             **{"unreduced": self.unreduced, "reduced": self.reduced, **changes})

    def to_tangent_spec(self) -> PartitionSpec:
        """That of a tangent, which has its primal's."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """That of a cotangent: unreduced where the primal is reduced, and the other way round."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced) if self.partial else self

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
        if not isinstance(other, (tuple, PartitionSpec)):
            return NotImplemented
        spec = other if isinstance(other, PartitionSpec) else PartitionSpec(*other)
        return PartitionSpec(*self, *spec, unreduced=self.unreduced | spec.unreduced,
                             reduced=self.reduced | spec.reduced)

    def __radd__(self, other: object) -> PartitionSpec:
        return self.update(partitions=(*other, *self)) if isinstance(other, tuple) else NotImplemented

    def index(self, *args: Any) -> int:
        return self._partitions.index(*args)

    def count(self, value: object) -> int:
        return self._partitions.count(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions and (
            self.unreduced == other.unreduced and self.reduced == other.reduced)

    def __hash__(self) -> int:
        return hash((PartitionSpec, self._partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        if not self.partial:
            return f"P{self._partitions!r}"
        sets = [f"{what}={{{', '.join(map(repr, sorted(names)))}}}"
                for what, names in (("unreduced", self.unreduced), ("reduced", self.reduced)) if names]
        return f"P({', '.join([*map(repr, self._partitions), *sets])})"


def _made(partitions: tuple[Any, ...], unreduced: frozenset[str], reduced: frozenset[str]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec
