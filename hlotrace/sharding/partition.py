"""Partition: how a program is divided over devices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .mesh import Mesh


class Partition(NamedTuple):
    """The devices in the order in which the program numbers them, and the shardings of inputs and outputs.

    None in place of a sharding leaves it to the compiler, whose choice is written in the axes of `mesh`, or
    of one of `others`, which the program names too.  `free`: only layouts and memories were asked for, on
    whichever device.
    """
    devices: tuple
    ins: tuple
    outs: tuple
    mesh: Any = None
    others: tuple = ()
    free: bool = False

    @property
    def without_devices(self) -> bool:
        """Are the devices numbers, as all that is known is an AbstractMesh?"""
        return type(self.devices[0]) is int


def over_devices(shardings: Sequence[Any], mesh: Mesh | None) -> list[Any]:
    """Shardings, None among them; those over the AbstractMesh of a mesh of devices are over that."""
    return [s.update(mesh=mesh) if mesh is not None and mesh.same_axes(getattr(s, "mesh", None))
            and not hasattr(s.mesh, "devices") else s for s in shardings]
