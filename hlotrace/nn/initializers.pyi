# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from collections.abc import Sequence
from hlotrace import Array
from hlotrace._types import Int, Place
from hlotrace.example_libraries.stax import glorot_normal, glorot_normal as xavier_normal, normal
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any, Protocol

__all__ = [
    'Initializer', 'constant', 'delta_orthogonal', 'glorot_normal', 'glorot_uniform', 'he_normal', 'he_uniform',
    'kaiming_normal', 'kaiming_uniform', 'lecun_normal', 'lecun_uniform', 'normal', 'ones', 'orthogonal', 'truncated_normal',
    'uniform', 'variance_scaling', 'xavier_normal', 'xavier_uniform', 'zeros',
]

class Initializer(Protocol):
    def __call__(
        self, key: Array, shape: Sequence[Int], dtype: DTypeLike | None = None, out_sharding: Place | None = None,
    ) -> Array: ...

def constant(value: Any, dtype: DTypeLike | None = None) -> Initializer: ...
def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: Any = -1, dtype: DTypeLike | None = None) -> Initializer: ...
def glorot_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def he_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def he_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def lecun_normal(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def lecun_uniform(
    in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = ...,
    dtype: DTypeLike | None = None,
) -> Initializer: ...
def ones(
    key: Array | np.ndarray[Any, Any], shape: Sequence[Int], dtype: DTypeLike | None = None,
    out_sharding: Place | None = None,
) -> Array: ...
def orthogonal(scale: ArrayLike = 1.0, column_axis: Any = -1, dtype: DTypeLike | None = None) -> Initializer: ...
def truncated_normal(
    stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0,
) -> Initializer: ...
def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer: ...
def variance_scaling(
    scale: ArrayLike, mode: Any, distribution: Any, in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = ..., dtype: DTypeLike | None = None,
) -> Initializer: ...
def zeros(
    key: Array | np.ndarray[Any, Any], shape: Sequence[Int], dtype: DTypeLike | None = None,
    out_sharding: Place | None = None,
) -> Array: ...
kaiming_normal = he_normal
kaiming_uniform = he_uniform
xavier_uniform = glorot_uniform
