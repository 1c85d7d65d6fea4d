"""Meshes and shardings as Shardy text.

A program numbers its devices by their position in the list that it is compiled for.  The first mesh's own
order is that list; a mesh with another order of devices says so by `device_ids`.
"""
from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

from .abstract import Sharding
from .mesh import AbstractMesh, Mesh
from .named import NamedSharding, as_named
from .spec import PartitionSpec


def _quoted(name: str) -> str:
    escaped = re.sub(r'[\x00-\x1f"\\]', lambda found: f"\\{ord(found[0]):02X}", name)
    return f'"{escaped}"'


def mesh_text(mesh: Mesh | AbstractMesh, name: str = "mesh", devices: Iterable[Any] | None = None) -> str:
    """The line that declares a mesh: `sdy.mesh @mesh = <["data"=4, "model"=2]>`.

    Args:
        devices: those of the program in their order; None: the mesh's own.
    """
    axes = ", ".join(f"{_quoted(axis)}={size}" for axis, size in mesh.shape_tuple)
    order = ""
    if devices is not None and isinstance(mesh, Mesh) and tuple(devices) != mesh._devices:
        number = {device: i for i, device in enumerate(devices)}
        order = f", device_ids={[number[device] for device in mesh._devices]}"
    return f"sdy.mesh @{name} = <[{axes}]{order}>"


def sharding_text(sharding: Sharding, ndim: int, mesh: str = "mesh", *, open: bool = False) -> str:
    """A sharding of a value of rank `ndim`, as operations write it: `<@mesh, [{"data"}, {}]>`.

    A sharding without a mesh is written over that of `as_named(sharding, ndim)`.

    Args:
        mesh: the name under which the mesh is declared.
        open: may the compiler split dimensions further?  Else only those that are UNCONSTRAINED.
    """
    spec = as_named(sharding, ndim).spec
    dims = []
    for dim in range(ndim):
        free = open or dim < len(spec) and spec[dim] is PartitionSpec.UNCONSTRAINED
        dims.append("{" + ", ".join([*map(_quoted, spec.axes(dim)), *(["?"] if free else [])]) + "}")
    return f"<@{mesh}, [{', '.join(dims)}]{unreduced_text(spec)}>"


def unreduced_text(spec: PartitionSpec) -> str:
    """What a sharding says of the mesh axes over which it is unreduced: `, unreduced={"x"}`, or nothing."""
    return f", unreduced={{{', '.join(map(_quoted, sorted(spec.unreduced)))}}}" if spec.unreduced else ""


def type_text(sharding: NamedSharding, ndim: int, mesh: str, manual: Container[str] = ()) -> str:
    """The sharding of a value of rank `ndim` as its type says it: over Auto axes the compiler may split it
    further, unless it is unreduced, of which XLA would make wrong sums.  It does not name axes that are
    `manual` around it.
    """
    if not sharding.mesh.auto_axes or sharding.spec.unreduced:
        return sharding_text(sharding, ndim, mesh)
    dims = ["{" + ", ".join([*map(_quoted, sharding.spec.axes(dim)), "?"]) + "}" for dim in range(ndim)]
    spec = sharding.spec
    rest = ", ".join(_quoted(name) for name in sharding.mesh.explicit_axes
                     if not (name in sharding._used or name in spec.unreduced or name in manual))
    replicated = f", replicated={{{rest}}}" if rest else ""
    return f"<@{mesh}, [{', '.join(dims)}]{replicated}{unreduced_text(spec)}>"
