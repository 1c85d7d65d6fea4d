# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Callable
from hlotrace import enable_x64
from hlotrace._types import Place
from hlotrace.experimental import mesh_utils as mesh_utils, multihost_utils as multihost_utils, shard_map as shard_map
from typing import Any

__all__ = ['enable_x64', 'io_callback', 'mesh_utils', 'multihost_utils', 'shard_map']

def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Place | None = None, ordered: bool = False,
    **kwargs: Any,
) -> Any: ...
