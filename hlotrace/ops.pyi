# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace._types import Place
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = ['segment_max', 'segment_min', 'segment_prod', 'segment_sum']

def segment_max(
    data: ArrayLike, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: Any = None, mode: Any = None, out_sharding: Place | None = None,
) -> Any: ...
def segment_min(
    data: ArrayLike, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: Any = None, mode: Any = None, out_sharding: Place | None = None,
) -> Any: ...
def segment_prod(
    data: ArrayLike, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: Any = None, mode: Any = None, out_sharding: Place | None = None,
) -> Any: ...
def segment_sum(
    data: ArrayLike, segment_ids: Any, num_segments: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: Any = None, mode: Any = None, out_sharding: Place | None = None,
) -> Any: ...
