"""hlotrace.typing: what functions of arrays take, for annotations.

`ArrayLike` is an Array, a NumPy array or scalar, or a Python number; no list, as operations take none.
`DTypeLike` is what names a dtype: "float32", `jnp.float32`, `np.float32`, `float`, `x.dtype`.  `Shape` is a
tuple or list of ints.
"""
from collections.abc import Sequence
from typing import Any, TypeAlias, Union

import numpy as np

from . import Array
from .core.surface.public import export_names

# not A | B: libraries ask for the origin of these, as JAX has it
ArrayLike: TypeAlias = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
DTypeLike: TypeAlias = Union[str, type[Any], np.dtype]  # noqa: UP007
Shape: TypeAlias = Sequence[int]

__all__ = ["ArrayLike", "DTypeLike", "Shape"]
export_names(globals())
