"""Meshes and shardings as Shardy text.

A program numbers its devices by their position in the list that it is compiled for.  The first mesh's own order is
that list; a mesh whose devices stand in another order says so by `device_ids`.
"""
import re

from .mesh import Mesh
from .named import as_named
from .spec import PartitionSpec


def _quoted(name):
    escaped = re.sub(r'[\x00-\x1f"\\]', lambda found: f"\\{ord(found[0]):02X}", name)
    return f'"{escaped}"'


def mesh_text(mesh, name="mesh", devices=None):
    """The line that declares a mesh: `sdy.mesh @mesh = <["data"=4, "model"=2]>`.

    `devices` are those of the program in their order; left out, the mesh's own.
    """
    axes = ", ".join(f"{_quoted(axis)}={size}" for axis, size in mesh.shape_tuple)
    order = ""
    if devices is not None and isinstance(mesh, Mesh) and tuple(devices) != mesh._devices:
        number = {device: i for i, device in enumerate(devices)}
        order = f", device_ids={[number[device] for device in mesh._devices]}"
    return f"sdy.mesh @{name} = <[{axes}]{order}>"


def sharding_text(sharding, ndim, mesh="mesh", *, open=False):
    """A sharding of a value of rank `ndim`, as operations write it: `<@mesh, [{"data"}, {}]>`.

    A dimension is closed, which means split as written, unless it is UNCONSTRAINED or all are `open`: the
    compiler may then split it further.  A sharding without a mesh is written over that of `as_named(sharding,
    ndim)`.
    """
    spec = as_named(sharding, ndim).spec
    dims = []
    for dim in range(ndim):
        free = open or dim < len(spec) and spec[dim] is PartitionSpec.UNCONSTRAINED
        dims.append("{" + ", ".join([*map(_quoted, spec.axes(dim)), *(["?"] if free else [])]) + "}")
    return f"<@{mesh}, [{', '.join(dims)}]>"
