# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from collections.abc import Sequence
from hlotrace import Array
from hlotrace._types import Place
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any

__all__ = [
    'GlobalAsyncCheckpointManager', 'GlobalAsyncCheckpointManagerBase', 'async_deserialize', 'async_serialize',
    'get_tensorstore_spec', 'run_deserialization', 'run_serialization',
]

class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    def __init__(self, timeout_secs: Any = 300) -> None: ...
    def check_for_errors(self) -> Any: ...
    def deserialize(
        self, shardings: Place, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None,
        concurrent_gb: Any = 32,
    ) -> Any: ...
    def deserialize_with_paths(
        self, shardings: Place, paths: Any, global_shapes: Any = None, dtypes: Any = None, concurrent_gb: Any = 32,
    ) -> Any: ...
    def serialize(
        self, arrays: Sequence[ArrayLike] | Array, tensorstore_specs: Any, *, on_commit_callback: Any = None,
        transaction: Any = None,
    ) -> Any: ...
    def serialize_with_paths(
        self, arrays: Sequence[ArrayLike] | Array, paths: Any, *, on_commit_callback: Any = None, transaction: Any = None,
    ) -> Any: ...
    def wait_until_finished(self) -> Any: ...

class GlobalAsyncCheckpointManagerBase:
    def check_for_errors(self) -> Any: ...
    def deserialize(
        self, shardings: Place, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None,
    ) -> Any: ...
    def serialize(self, arrays: Sequence[ArrayLike] | Array, tensorstore_specs: Any, *, on_commit_callback: Any) -> Any: ...
    def wait_until_finished(self) -> Any: ...

def async_deserialize(
    in_type: Any, tensorstore_spec: Any, global_shape: Any = None, dtype: DTypeLike | None = None, byte_limiter: Any = None,
    context: Any = None, chunk_layout: Any = None, assume_metadata: bool = False,
) -> Any: ...
def async_serialize(
    arr_inp: Any, tensorstore_spec: Any, commit_future: Any = None, context: Any = None, chunk_layout: Any = None,
    primary_host: Any = None, replica_id: Any = 0, transaction: Any = None,
) -> Any: ...
def get_tensorstore_spec(
    ckpt_path: Any, *, ocdbt: bool = False, process_idx: Any = None, arr: ArrayLike | None = None, driver: str = 'zarr',
) -> Any: ...
def run_deserialization(
    shardings: Place, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None, concurrent_gb: Any = 32,
) -> Any: ...
def run_serialization(arrays: Sequence[ArrayLike] | Array, tensorstore_specs: Any) -> Any: ...
