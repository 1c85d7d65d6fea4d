# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import numpy as np
from collections.abc import Sequence
from hlotrace import Array
from hlotrace._types import Axis, Int, Place, ShapeLike
from hlotrace.typing import ArrayLike, DTypeLike
from typing import Any, TypeAlias

__all__ = [
    'Key', 'PRNGKey', 'ball', 'bernoulli', 'beta', 'binomial', 'bits', 'categorical', 'cauchy', 'chisquare', 'choice',
    'clone', 'dirichlet', 'double_sided_maxwell', 'exponential', 'f', 'fold_in', 'gamma', 'generalized_normal', 'geometric',
    'gumbel', 'key', 'key_data', 'key_dtype', 'key_impl', 'laplace', 'loggamma', 'logistic', 'lognormal', 'maxwell',
    'multinomial', 'multivariate_normal', 'normal', 'orthogonal', 'pareto', 'permutation', 'poisson', 'rademacher',
    'randint', 'random_gamma_p', 'rayleigh', 'split', 't', 'triangular', 'truncated_normal', 'uniform', 'wald',
    'weibull_min', 'wrap_key_data',
]

Key: TypeAlias = Any
def PRNGKey(seed: Int | Array | np.ndarray[Any, Any], *, impl: Any = None) -> Array: ...
def ball(
    key: Array | np.ndarray[Any, Any], d: Any, p: ArrayLike = 2, shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def bernoulli(
    key: Array | np.ndarray[Any, Any], p: ArrayLike = 0.5, shape: ShapeLike | None = None, mode: str = 'low', *,
    out_sharding: Place | None = None,
) -> Array: ...
def beta(
    key: Array | np.ndarray[Any, Any], a: ArrayLike, b: ArrayLike, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, *, method: str = 'exact', out_sharding: Place | None = None,
) -> Array: ...
def binomial(
    key: Array | np.ndarray[Any, Any], n: int, p: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None,
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
def chisquare(
    key: Array | np.ndarray[Any, Any], df: Any, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    method: str = 'exact', out_sharding: Place | None = None,
) -> Array: ...
def choice(
    key: ArrayLike, a: ArrayLike, shape: ShapeLike = ..., replace: bool = True, p: ArrayLike | None = None, axis: Axis = 0,
    mode: Any = None,
) -> Array: ...
def clone(key: Array | np.ndarray[Any, Any]) -> Array: ...
def dirichlet(
    key: Array | np.ndarray[Any, Any], alpha: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def double_sided_maxwell(
    key: Array | np.ndarray[Any, Any], loc: Any, scale: ArrayLike, shape: ShapeLike = ..., dtype: DTypeLike | None = None,
) -> Array: ...
def exponential(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def f(
    key: Array | np.ndarray[Any, Any], dfnum: Any, dfden: Any, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def fold_in(key: Array | np.ndarray[Any, Any], data: ArrayLike) -> Array: ...
def gamma(
    key: Array | np.ndarray[Any, Any], a: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    method: str = 'exact', out_sharding: Place | None = None,
) -> Array: ...
def generalized_normal(
    key: Array | np.ndarray[Any, Any], p: ArrayLike, shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def geometric(
    key: Array | np.ndarray[Any, Any], p: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
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
def loggamma(
    key: Array | np.ndarray[Any, Any], a: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    method: str = 'exact', out_sharding: Place | None = None,
) -> Array: ...
def logistic(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def lognormal(
    key: Array | np.ndarray[Any, Any], sigma: Any = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def maxwell(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def multinomial(
    key: Array | np.ndarray[Any, Any], n: int, p: ArrayLike, *, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, unroll: int = 1,
) -> Array: ...
def multivariate_normal(
    key: Array | np.ndarray[Any, Any], mean: ArrayLike, cov: Any, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, method: str = 'cholesky', *, out_sharding: Place | None = None,
) -> Array: ...
def normal(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def orthogonal(
    key: Array | np.ndarray[Any, Any], n: int, shape: ShapeLike = ..., dtype: DTypeLike | None = None,
    m: ArrayLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def pareto(
    key: Array | np.ndarray[Any, Any], b: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def permutation(
    key: ArrayLike, x: ArrayLike, axis: Axis = 0, independent: bool = False, *, out_sharding: Place | None = None,
) -> Array: ...
def poisson(
    key: Array | np.ndarray[Any, Any], lam: Any, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    method: str = 'exact', out_sharding: Place | None = None,
) -> Array: ...
def rademacher(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def randint(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
random_gamma_p: Any
def rayleigh(
    key: Array | np.ndarray[Any, Any], scale: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def split(key: Array | np.ndarray[Any, Any], num: int | Sequence[int] = 2) -> Array: ...
def t(
    key: Array | np.ndarray[Any, Any], df: Any, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def triangular(
    key: Array | np.ndarray[Any, Any], left: ArrayLike, mode: Any, right: bool, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def truncated_normal(
    key: Array | np.ndarray[Any, Any], lower: ArrayLike, upper: ArrayLike, shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None, *, out_sharding: Place | None = None,
) -> Array: ...
def uniform(
    key: Array | np.ndarray[Any, Any], shape: ShapeLike = ..., dtype: DTypeLike | None = None, minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0, *, out_sharding: Place | None = None,
) -> Array: ...
def wald(
    key: Array | np.ndarray[Any, Any], mean: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, *,
    out_sharding: Place | None = None,
) -> Array: ...
def weibull_min(
    key: Array | np.ndarray[Any, Any], scale: ArrayLike, concentration: Any, shape: ShapeLike = ...,
    dtype: DTypeLike | None = None,
) -> Array: ...
def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array: ...
