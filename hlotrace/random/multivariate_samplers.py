"""Vectors with a covariance, and orthogonal matrices."""
from .. import lax, numpy as jnp
from ..api.composite import composite
from ..lax import linalg
from ..numpy.util import check_arraylike, joint_shape, promote_dtypes_inexact, promotes
from ..placement.out_sharding import with_out_sharding
from ..primitives.common import canonical_shape, static_int
from .continuous import float_dtype, normal_values, result_shape
from .keys import one_key

__all__ = ["multivariate_normal", "orthogonal"]


@promotes("mean", "cov")
def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky", *, out_sharding=None):
    """Normal vectors.

    The shape of the result is `shape`, by default that of the parameters before their last axes, and then n.

    Args:
        mean: (..., n).
        cov: the covariance, (..., n, n).
        shape: that of the result without n.
        dtype: that of the result; that of the parameters by default.
        method: the root of `cov` is "cholesky", or "eigh" or "svd", which also take one that is singular.

    >>> covariance = jnp.array([[2., 1.], [1., 1.]])
    >>> x = jax.random.multivariate_normal(jax.random.key(0), jnp.array([10., 0.]), covariance, (5000,))
    >>> x.mean(0).round(0) + 0, jnp.cov(x.T).round(0).tolist()
    (Array([10.,  0.], dtype=float32), [[2.0, 1.0], [1.0, 1.0]])
    """
    key = one_key("multivariate_normal", key)
    if method not in _ROOTS:
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}, got "
                         f"{method!r:.60}")
    check_arraylike("multivariate_normal", mean, cov)
    mean, cov = promote_dtypes_inexact(mean, cov)
    dtype = mean.dtype if dtype is None else float_dtype("multivariate_normal", dtype)
    if not mean.ndim:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0: a vector, as "
                         "[0.0]")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}: "
                         "jnp.diag(cov)?")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, the size of "
                         f"mean, but got cov.shape == {cov.shape}")
    batch = joint_shape(mean.shape[:-1], cov.shape[:-2])
    if shape is not None:
        batch = result_shape("multivariate_normal", shape, jnp.zeros(batch))
    out = _multivariate_normal(key, mean, cov, shape=batch, dtype=dtype, method=method)
    return with_out_sharding(out, out_sharding, "random.multivariate_normal")


def _by_eigh(cov):
    vectors, values = linalg.eigh(cov)
    return vectors * lax.sqrt(values)[..., None, :]


def _by_svd(cov):
    left, values, _ = linalg.svd(cov)
    return left * lax.sqrt(values)[..., None, :]


_ROOTS = {"cholesky": linalg.cholesky, "eigh": _by_eigh, "svd": _by_svd}


@composite(static=("shape", "dtype", "method"))
def _multivariate_normal(key, mean, cov, *, shape, dtype, method):
    wide = jnp.promote_types(dtype, "float32")      # no matrix of half precision is factored
    x = normal_values(key, shape=(*shape, mean.shape[-1]), dtype=dtype).astype(wide)
    out = mean.astype(wide) + jnp.einsum("...ij,...j->...i", _ROOTS[method](cov.astype(wide)), x)
    return out.astype(dtype)


def orthogonal(key, n, shape=(), dtype=None, m=None, *, out_sharding=None):
    """Matrices with orthonormal rows or columns, the fewer of the two; unitary ones for complex dtypes.

    With m = n they are uniform over the group: F. Mezzadri, "How to generate random matrices from the
    classical compact groups" (2007) gets them from a QR decomposition.

    Args:
        shape: the result is (*shape, n, m).
        dtype: that of the result, the default float by default.
        m: the number of columns, n by default.

    >>> q = jax.random.orthogonal(jax.random.key(0), 3)
    >>> jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5)
    Array(True, dtype=bool)
    """
    key, dtype = one_key("orthogonal", key), float_dtype("orthogonal", dtype, and_complex=True)
    n = static_int(n, "orthogonal: n")
    m = n if m is None else static_int(m, "orthogonal: m")
    if n < 0 or m < 0:
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got n={n} and m={m}")
    out = _orthogonal(key, n=n, m=m, shape=canonical_shape(shape, "orthogonal: shape"), dtype=dtype)
    return with_out_sharding(out, out_sharding, "random.orthogonal")


@composite(static=("n", "m", "shape", "dtype"))
def _orthogonal(key, *, n, m, shape, dtype):
    q, r = linalg.qr(normal_values(key, shape=(*shape, max(n, m), min(n, m)), dtype=dtype),
                     full_matrices=False)
    diagonal = jnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * (diagonal / lax.abs(diagonal).astype(dtype))[..., None, :]
    return q if n >= m else jnp.swapaxes(q, -1, -2)
