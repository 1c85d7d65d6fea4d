"""make_mesh: a mesh over the devices that there are."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..runtime.devices import client
from ..sharding.mesh import AxisType, Mesh, sizes_and_names


def make_mesh(axis_shapes: Iterable[int] | None = None, axis_names: Iterable[str] = (),
              axis_types: Any = None, *, axis_sizes: Iterable[int] | None = None,
              devices: Any = None) -> Mesh:
    """A Mesh of the first devices, as many as the sizes in `axis_shapes` multiply to.

    TPUs are arranged by how they are wired, as `experimental.mesh_utils.create_device_mesh` does; others are
    in their order.

    Args:
        axis_shapes: the sizes of its axes.
        axis_types: their types, Explicit by default: the types of values say how these axes split them.  Over
            Auto ones the compiler decides.
        axis_sizes: `axis_shapes`, as JAX 0.12 calls it.
        devices: the devices to take, all by default.
    Raises:
        TypeError: where sizes are given not at all or twice.
        ValueError: where there are too few devices or the numbers of sizes and names differ.

    >>> jax.make_mesh((2, 2), ("data", "model"))       # where there are four devices or more
    Mesh(axis_sizes=(2, 2), axis_names=('data', 'model'), axis_types=(Explicit, Explicit))
    """
    given = [each for each in (axis_shapes, axis_sizes) if each is not None]
    if len(given) != 1:
        raise TypeError("make_mesh: axis_shapes and axis_sizes are names of the same sizes; give one of them")
    sizes, names = sizes_and_names("make_mesh", given[0], axis_names)
    devices = client.devices() if devices is None else list(np.array(devices, dtype=object).flat)
    wanted = math.prod(sizes)
    if len(devices) < wanted:
        hint = ("; config.update('jax_num_cpu_devices', n), before any is used, gives more"
                if devices and devices[0].platform == "cpu" else "")
        raise ValueError(f"make_mesh: Number of devices {len(devices)} must be >= the product of mesh_shape "
                         f"{sizes}, {wanted}{hint}")
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    taken = np.array(devices[:wanted], dtype=object).reshape(sizes)
    if devices and devices[0].platform == "tpu":
        from . import device_order
        taken = device_order.arrange(sizes, devices[:wanted], split=True)
    return Mesh(taken, names, types)
