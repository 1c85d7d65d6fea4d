# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace._types import Place
from hlotrace.typing import DTypeLike
from typing import Any

__all__ = ['from_dlpack', 'is_supported_dtype']

def from_dlpack(external_array: Any, device: Place | None = None, copy: bool | None = None) -> Any: ...
def is_supported_dtype(dtype: DTypeLike) -> Any: ...
