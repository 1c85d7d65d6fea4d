# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from hlotrace.numpy import finfo, generic, iinfo, result_type
from hlotrace.typing import DTypeLike
from typing import Any

__all__ = [
    'TypePromotionError', 'bfloat16', 'canonicalize_dtype', 'extended', 'finfo', 'float0', 'iinfo', 'issubdtype', 'prng_key',
    'result_type',
]

class TypePromotionError(ValueError): ...
bfloat16: np.dtype[Any]
def canonicalize_dtype(dtype: DTypeLike) -> np.dtype[Any]: ...

class extended(generic): ...  # type: ignore[misc]
float0: np.dtype[Any]
def issubdtype(dtype: DTypeLike, kind: Any) -> bool: ...

class prng_key(extended): ...  # type: ignore[misc]
