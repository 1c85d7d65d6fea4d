"""hlotrace.typing: what functions of arrays take, for annotations.

`ArrayLike` is an Array, a NumPy array or scalar, or a Python number; no list, as operations take none.
`DTypeLike` is what names a dtype: "float32", `jnp.float32`, `np.float32`, `float`, `x.dtype`.  `Shape` is a
tuple or list of ints.
"""
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from . import Array
from .core.surface.public import export_names

ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike: TypeAlias = str | type[Any] | np.dtype
Shape: TypeAlias = Sequence[int]

__all__ = ["ArrayLike", "DTypeLike", "Shape"]
export_names(globals())
