"""Arrays of devices for meshes, under the name that JAX has for them."""
import math

import numpy as np

from ..core.public import offer
from ..runtime import client

__all__ = ["create_device_mesh"]


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    """The devices in an array of `mesh_shape`, in their order.

    `contiguous_submeshes` and `allow_split_physical_axes` are about how TPUs are wired, and no other devices: there
    NotImplementedError.  Raises ValueError unless there are as many devices as the sizes multiply to.

    >>> from hlotrace.experimental.mesh_utils import create_device_mesh
    >>> devices = create_device_mesh((2, 2), jax.devices()[:4])         # where there are four devices or more
    >>> jax.sharding.Mesh(devices, ("data", "model"))
    Mesh('data': 2, 'model': 2, axis_types=(Auto, Auto))
    """
    devices = client.devices() if devices is None else list(devices)
    if (contiguous_submeshes or allow_split_physical_axes) and any(d.platform == "tpu" for d in devices):
        raise NotImplementedError("create_device_mesh: contiguous_submeshes, allow_split_physical_axes are not supported; "
                                  "TPUs are taken in their order; arrange the devices yourself")
    if math.prod(mesh_shape) != len(devices):
        raise ValueError(f"create_device_mesh: mesh_shape {tuple(mesh_shape)} holds {math.prod(mesh_shape)} devices, and "
                         f"there are {len(devices)}")
    return np.array(devices, dtype=object).reshape(mesh_shape)


offer(globals())
