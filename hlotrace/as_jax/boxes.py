"""`jax._src.hijax.Box`: a mutable value that holds a pytree of arrays, of any structure at any time."""
from __future__ import annotations

import dataclasses
from typing import Any

from ..core.avals import aval_of
from ..core.pytrees import pytree
from ..experimental.hijax import HiPrimitive, MutableHiType, register_hitype


@dataclasses.dataclass(frozen=True)
class BoxTypeState:
    """What a Box holds: the types of the leaves, and the structure."""
    leaf_avals: tuple[Any, ...]
    treedef: Any

    def normalize(self) -> BoxTypeState:
        """The same, of leaves whose types are normalized."""
        return BoxTypeState(tuple(aval.normalize() for aval in self.leaf_avals), self.treedef)


@dataclasses.dataclass(frozen=True)
class BoxTy(MutableHiType):
    """The type of all Boxes."""

    def read_loval(self, made_of: BoxTypeState, box: Box) -> list[Any]:
        """The leaves."""
        return pytree.tree_leaves(box_get(box))

    def new_from_loval(self, made_of: BoxTypeState, *leaves: Any) -> Box:
        """A Box that holds these leaves."""
        return new_box_p.to_lojax(*leaves, treedef=made_of.treedef)

    def update_from_loval(self, made_of: BoxTypeState, box: Box, *leaves: Any) -> None:
        """Let it hold these leaves."""
        box_set_p.bind(box, *leaves, treedef=made_of.treedef)


class Box:
    """A pytree of arrays, read by `get()` and replaced by `set(value)`, in compiled functions too."""
    _value: Any

    def __new__(cls, value: Any = None) -> Box:
        leaves, treedef = pytree.tree_flatten(value)
        return new_box_p.bind(*leaves, treedef=treedef)

    def cur_qdd(self) -> BoxTypeState:
        """What it holds now."""
        leaves, treedef = pytree.tree_flatten(self._value)
        return BoxTypeState(tuple(map(aval_of, leaves)), treedef)

    def get(self) -> Any:
        """What it holds."""
        return box_get_p.bind(self)

    def set(self, value: Any) -> None:
        """Let it hold `value`."""
        box_set(self, value)


class NewBox(HiPrimitive):
    """Makes a Box of leaves."""

    def to_lojax(self, *leaves: Any, treedef: Any) -> Box:
        """The Box."""
        box = object.__new__(Box)
        box._value = treedef.unflatten(leaves)
        return box


class BoxGet(HiPrimitive):
    """Reads a Box."""

    def to_lojax(self, box: Box) -> Any:
        """What it holds."""
        return box._value


class BoxSet(HiPrimitive):
    """Gives a Box other leaves."""
    multiple_results = True

    def to_lojax(self, box: Box, *leaves: Any, treedef: Any) -> list[Any]:
        """Nothing."""
        box._value = treedef.unflatten(leaves)
        return []


new_box_p, box_get_p, box_set_p = NewBox("new_box"), BoxGet("box_get"), BoxSet("box_set")
_BOX = BoxTy()
register_hitype(Box, lambda box: _BOX)


def new_box() -> Box:
    """A Box that holds None."""
    return Box()


def box_get(box: Box) -> Any:
    """What a Box holds."""
    return box_get_p.bind(box)


def box_set(box: Box, value: Any) -> None:
    """Let a Box hold `value`."""
    leaves, treedef = pytree.tree_flatten(value)
    box_set_p.bind(box, *leaves, treedef=treedef)
