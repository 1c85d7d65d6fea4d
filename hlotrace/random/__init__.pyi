# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from collections.abc import Sequence
from hlotrace import Array
from hlotrace._types import Axis, Int, Place, ShapeLike
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any

__all__ = [
    'PRNGKey', 'bernoulli', 'bits', 'categorical', 'cauchy', 'choice', 'clone', 'exponential', 'fold_in', 'gumbel', 'key',
    'key_data', 'key_dtype', 'key_impl', 'laplace', 'logistic', 'normal', 'permutation', 'rademacher', 'randint', 'split',
    'truncated_normal', 'uniform', 'wrap_key_data',
]

def PRNGKey(seed: Int | Array | np.ndarray[Any, Any], *, impl: Any = None) -> Array: ...
def bernoulli(
    key: Array | np.ndarray[Any, Any], p: ArrayLike = 0.5, shape: ShapeLike | None = None, mode: str = 'low', *,
    out_sharding: Place | None = None,
) -> Array: ...
def bits(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def categorical(
    key: Array | np.ndarray[Any, Any], logits: ArrayLike, axis: Axis = -1, shape: ShapeLike | None = None,
    replace: bool = True, mode: Any = None, *, out_sharding: Place | None = None,
) -> Array: ...
def cauchy(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def choice(
    key: ArrayLike, a: ArrayLike, shape: ShapeLike = ..., replace: bool = True, p: ArrayLike | None = None, axis: Axis = 0,
    mode: Any = None,
) -> Array: ...
def clone(key: Array | np.ndarray[Any, Any]) -> Array: ...
def exponential(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def fold_in(key: Array | np.ndarray[Any, Any], data: ArrayLike) -> Array: ...
def gumbel(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, mode: Any = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def key(seed: Int | Array | np.ndarray[Any, Any], *, impl: Any = None, dtype: DTypeLike | None = None) -> Array: ...
def key_data(keys: Any) -> Array: ...
def key_dtype(impl_spec: Any = None) -> Any: ...
def key_impl(keys: Any) -> Any: ...
def laplace(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def logistic(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def normal(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def permutation(
    key: ArrayLike, x: ArrayLike, axis: Axis = 0, independent: bool = False, *, out_sharding: Place | None = None,
) -> Array: ...
def rademacher(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def randint(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def split(key: Array | np.ndarray[Any, Any], num: int | Sequence[int] = 2) -> Array: ...
def truncated_normal(
    key: Array | np.ndarray[Any, Any], lower: ArrayLike, upper: ArrayLike, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def uniform(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0, *, out_sharding: Place | None = None,
) -> Array: ...
def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array: ...
