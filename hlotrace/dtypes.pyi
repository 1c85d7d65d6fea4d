# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from hlotrace.numpy import finfo, generic, iinfo, issubdtype, result_type
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any

__all__ = [
    'TypePromotionError', 'bfloat16', 'canonicalize_dtype', 'extended', 'finfo', 'float0', 'iinfo', 'issubdtype',
    'itemsize_bits', 'prng_key', 'result_type', 'scalar_type_of',
]

class TypePromotionError(ValueError): ...
bfloat16: Any
def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = True) -> np.dtype[Any]: ...

class extended(generic): ...  # type: ignore[misc]
float0: np.dtype[Any]
def itemsize_bits(dtype: DTypeLike) -> Any: ...

class prng_key(extended): ...  # type: ignore[misc]
def scalar_type_of(x: ArrayLike) -> Any: ...
