"""Meshes of devices by slices and processes."""
import types

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.experimental import mesh_utils


def test_meshes_of_slices():
    devices = [types.SimpleNamespace(id=i, slice_index=1 - i // 4, process_index=i // 2, platform="tpu",
                                     device_kind="chip")
               for i in range(8)]

    def ids(*shapes, **more):
        found = mesh_utils.create_hybrid_device_mesh(*shapes, devices, **more)
        return np.vectorize(lambda d: d.id)(found).tolist()
    assert ids((2, 2), (2, 1)) == [[4, 5], [6, 7], [0, 1], [2, 3]]
    assert ids((2, 2), (1, 2), should_sort_granules_by_key=False) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert ids((1, 2), (2, 2), process_is_granule=True) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for shapes, words in [(((2, 2), (2,)), "same number of axes"),
                          (((4,), (3,)), "Number of slices 2, by .* must equal"),
                          (((3,), (2,)), "must equal the product of mesh_shape")]:
        with pytest.raises(ValueError, match=words):
            ids(*shapes)
    with pytest.raises(ValueError, match="process_is_granule=True"):
        mesh_utils.create_hybrid_device_mesh((8,), (1,), jax.devices())
    mesh_utils.device_kind_handler_dict["chip"] = lambda shape, devices, contiguous_submeshes: np.array(
        devices[::-1])
    try:
        assert [d.id for d in mesh_utils.create_device_mesh((8,), devices)] == [*range(7, -1, -1)]
    finally:
        mesh_utils.device_kind_handler_dict.clear()


def test_create_device_mesh_asks_nothing_of_devices_that_are_not_wired():
    devices = jax.devices()
    mesh = mesh_utils.create_device_mesh((2, 4), devices, contiguous_submeshes=True,
                                         allow_split_physical_axes=True)
    assert list(mesh.flat) == devices
