"""Arrays of devices for meshes, under the name that JAX has for them."""
import math

import numpy as np

from ..core.surface.public import export_names
from ..placement import device_order
from ..runtime.devices import client

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

# kind of device -> a function of (mesh_shape, devices, contiguous_submeshes=) that arranges them, or None
device_kind_handler_dict = {}


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False,
                       allow_split_physical_axes=False):
    """The devices in an array of `mesh_shape`: TPUs by how they are wired, others in their order.

    Neighbours along an axis of the mesh are neighbours in the slice of TPUs: each axis is made of whole
    physical axes, the last, which should have the most communication, of as many as possible.  The devices
    of a tray of TPU v2, v3 and 7x, and of small slices of v5e and v6e, are a ring.

    Args:
        mesh_shape: a size for each axis, in the order of growing communication.
        devices: all unless given.
        contiguous_submeshes: the devices of each process are a block of the array, of TPU slices for which
            JAX has such an order.
        allow_split_physical_axes: divide a physical axis between axes of the mesh if need be.
    Raises:
        ValueError: unless there are as many devices as the sizes multiply to; where no order is known in
            which the devices of a process are a block.
        NotImplementedError: when a physical axis would have to be divided, without
            `allow_split_physical_axes`.

    >>> from hlotrace.experimental.mesh_utils import create_device_mesh
    >>> devices = create_device_mesh((2, 2), jax.devices()[:4])         # where there are four devices or more
    >>> jax.sharding.Mesh(devices, ("data", "model"))
    Mesh(axis_sizes=(2, 2), axis_names=('data', 'model'), axis_types=(Auto, Auto))
    """
    devices = client.devices() if devices is None else list(devices)
    if math.prod(mesh_shape) != len(devices):
        raise ValueError(f"create_device_mesh: Number of devices {len(devices)} must equal the product of "
                         f"mesh_shape {tuple(mesh_shape)}, {math.prod(mesh_shape)}")
    handler = device_kind_handler_dict.get(devices[0].device_kind) if devices else None
    found = handler and handler(mesh_shape, devices, contiguous_submeshes=contiguous_submeshes)
    if found is not None:
        return np.array(found, dtype=object).reshape(mesh_shape)
    return device_order.arrange(mesh_shape, devices, split=allow_split_physical_axes,
                                contiguous=contiguous_submeshes)


def create_hybrid_device_mesh(mesh_shape, dcn_mesh_shape, devices=None, *, process_is_granule=False,
                              should_sort_granules_by_key=True, allow_split_physical_axes=False):
    """Devices of several slices, or processes, in an array of shape mesh_shape[i] * dcn_mesh_shape[i].

    Args:
        mesh_shape: the axes within a slice, where the network is fast.
        dcn_mesh_shape: those between slices, as many.
        devices: all unless given.
        process_is_granule: a slice is the devices of a process, not those of one `slice_index`.
        should_sort_granules_by_key: take slices by their number, not as they come.
        allow_split_physical_axes: as for `create_device_mesh`.
    Raises:
        ValueError: unless the slices are as many as dcn_mesh_shape multiplies to, and their devices as
            mesh_shape does.

    >>> one = jax.devices()[:1]
    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), one, process_is_granule=True).shape
    (1, 1)
    """
    if len(mesh_shape) != len(dcn_mesh_shape):
        raise ValueError(f"create_hybrid_device_mesh: mesh_shape {tuple(mesh_shape)} and dcn_mesh_shape "
                         f"{tuple(dcn_mesh_shape)} must have the same number of axes; write 1 for one that "
                         "is not split")
    name = "process_index" if process_is_granule else "slice_index"
    granules = {}
    for device in client.devices() if devices is None else devices:
        if not hasattr(device, name):
            raise ValueError(f"create_hybrid_device_mesh: {device} has no {name}; with "
                             "process_is_granule=True the devices of a process are a slice")
        granules.setdefault(getattr(device, name), []).append(device)
    if math.prod(dcn_mesh_shape) != len(granules):
        raise ValueError(f"create_hybrid_device_mesh: Number of slices {len(granules)}, by {name}, must "
                         f"equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}, "
                         f"{math.prod(dcn_mesh_shape)}")
    meshes = np.empty(len(granules), dtype=object)
    for i, key in enumerate(sorted(granules) if should_sort_granules_by_key else granules):
        meshes[i] = create_device_mesh(mesh_shape, granules[key],
                                       allow_split_physical_axes=allow_split_physical_axes)
    return np.block(meshes.reshape(dcn_mesh_shape).tolist())


export_names(globals())
