# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from collections.abc import Sequence
from hlotrace._types import Device
from typing import Any

__all__ = ['create_device_mesh', 'create_hybrid_device_mesh', 'device_kind_handler_dict']

def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Device] | np.ndarray[Any, Any] | None = None, *,
    contiguous_submeshes: bool = False, allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]: ...
def create_hybrid_device_mesh(
    mesh_shape: Any, dcn_mesh_shape: Any, devices: Sequence[Device] | np.ndarray[Any, Any] | None = None, *,
    process_is_granule: bool = False, should_sort_granules_by_key: bool = True, allow_split_physical_axes: bool = False,
) -> Any: ...
device_kind_handler_dict: Any
