"""Distributions of several variables, which are functions of vectors rather than rows of the table."""
import math

from ... import numpy as jnp
from ...api.composite import composite
from ...core.errors import ShapeError
from ...lax import linalg
from ...numpy.util import at_least_float32, check_arraylike, promote_dtypes_inexact, promotes
from .. import special as sp
from .distribution import INF
from .distributions import log_poisson


def _promoted(name, *args):
    """The arguments in one floating dtype of at least 32 bits, and the dtype of the result.  TypeError for
    complex ones."""
    check_arraylike(name, *args)
    args = promote_dtypes_inexact(*args)
    dtype = jnp.result_type(*args)
    if dtype.kind == "c":
        raise TypeError(f"{name} does not take complex numbers, got {dtype.name}: take .real, .imag or "
                        "jnp.abs(x)")
    return [jnp.asarray(x, at_least_float32(dtype)) for x in args], dtype


# --- Dirichlet ------------------------------------------------------------------------------------


@composite
@promotes("x", "alpha")
def dirichlet_logpdf(x, alpha):
    """Logarithm of the Dirichlet density, proportional to prod x_i**(alpha_i - 1) where x >= 0 sums to 1.

    -inf where x does not sum to 1, but for rounding; NaN where alpha is not positive, where JAX has -inf.

    Args:
        x: shape (k, ...), or (k - 1, ...) without the last, which is 1 minus the others.
        alpha: (k,); the result has the shape x.shape[1:].

    >>> round(float(jax.scipy.stats.dirichlet.logpdf(jnp.array([0.2, 0.8]), jnp.array([1., 2.]))), 4)
    0.47
    """
    (x, alpha), dtype = _promoted("scipy.stats.dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"scipy.stats.dirichlet: alpha must be a vector (k,), got the shape {alpha.shape}: "
                         "map over batches with vmap")
    k = alpha.shape[0]
    if not x.ndim or x.shape[0] not in (k, k - 1):
        raise ShapeError(f"scipy.stats.dirichlet: x must have k={k} or {k - 1} entries along its first axis, "
                         f"as alpha has {k}, got the shape {x.shape}: jnp.moveaxis(x, -1, 0)?")
    if x.shape[0] < k:
        x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)])
    alpha = alpha.reshape(k, *[1] * (x.ndim - 1))
    total, some = alpha.sum(), x > 0
    y = jnp.where(some, x, 1)
    parts = jnp.where(some, log_poisson(*jnp.broadcast_arrays(alpha, total * y)) + jnp.log(alpha) -
                      jnp.log(y), sp.xlogy(alpha - 1, 0 * x) - sp.gammaln(alpha) + alpha * jnp.log(total))
    value = parts.sum(0) - log_poisson(total, total) - jnp.log(total)
    inside = (x >= 0).all(0) & (jnp.abs(x.sum(0) - 1) < 1e-6 + k * float(jnp.finfo(x.dtype).eps))
    value = jnp.where(jnp.isnan(x).any(0), jnp.nan, jnp.where(inside, value, -INF))
    return jnp.where((alpha > 0).all(), value, jnp.nan).astype(dtype)


def dirichlet_pdf(x, alpha):
    """The Dirichlet density, with the arguments of `logpdf`.

    >>> round(float(jax.scipy.stats.dirichlet.pdf(jnp.array([0.2, 0.8]), jnp.array([1., 2.]))), 4)
    1.6
    """
    return jnp.exp(dirichlet_logpdf(x, alpha))


# --- multinomial ----------------------------------------------------------------------------------


@composite
def multinomial_logpmf(x, n, p):
    """Logarithm of the probability that of n trials, x_i have the outcome i, each with probability p_i.

    -inf where x does not sum to n, NaN where a p is outside of [0, 1].

    Args:
        x: ints (..., k).
        n: ints (...).
        p: (..., k), which is not checked to sum to 1; all are broadcast.
    Raises:
        ValueError: where x or n is not of integers.

    >>> round(float(jax.scipy.stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.2, 0.8]))), 4)
    -0.9571
    """
    name = "scipy.stats.multinomial.logpmf"
    check_arraylike(name, x, n)
    for given, value in (("x", x), ("n", n)):
        if jnp.result_type(value).kind not in "iub":
            raise ValueError(f"{name}: x and n must be of integer type, got {given} of "
                             f"{jnp.result_type(value).name}: .astype(int)")
    (p,), dtype = _promoted(name, p)
    counts, trials = jnp.asarray(x), jnp.asarray(n)
    fits = (counts.sum(-1) == trials) & (counts >= 0).all(-1)
    x, trials = jnp.maximum(counts, 0).astype(p.dtype), jnp.maximum(trials, 0).astype(p.dtype)
    x, p = jnp.broadcast_arrays(x, p)
    mean = trials[..., None] * p
    x, mean = jnp.broadcast_arrays(x, mean)
    value = (log_poisson(x, mean) + mean).sum(-1) - trials - log_poisson(trials, trials)
    return jnp.where(((p >= 0) & (p <= 1)).all(-1), jnp.where(fits, value, -INF), jnp.nan).astype(dtype)


def multinomial_pmf(x, n, p):
    """The probability that of n trials, x_i have the outcome i, with the arguments of `logpmf`.

    >>> round(float(jax.scipy.stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.2, 0.8]))), 4)
    0.384
    """
    return jnp.exp(multinomial_logpmf(x, n, p))


# --- normal ---------------------------------------------------------------------------------------

def whitened(root, x):
    """Vectors x (..., n) in coordinates in which the covariance root root^T is the identity."""
    solve = jnp.vectorize(lambda l, v: linalg.triangular_solve(l, v[:, None], left_side=True,
                                                               lower=True)[:, 0], signature="(n,n),(n)->(n)")
    return solve(root, x)


def log_normal_of(root, white):
    """Log density of the normal distribution around 0 with covariance root root^T, at whitened vectors."""
    size = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    return -jnp.square(white).sum(-1) / 2 - size - white.shape[-1] * math.log(2 * math.pi) / 2


@composite(static=("allow_singular",))
@promotes("x", "mean", "cov")
def multivariate_normal_logpdf(x, mean, cov, allow_singular=None):
    """Logarithm of the normal density of vectors, by Cholesky's factor; NaN for cov not positive definite.

    Where mean is a number, x are numbers and cov their variances.

    Args:
        x: (..., n).
        mean: (..., n), or a number.
        cov: (..., n, n), or a number, that times the identity; all are broadcast.
        allow_singular: not supported; None.
    Raises:
        NotImplementedError: for `allow_singular`.

    >>> logpdf = jax.scipy.stats.multivariate_normal.logpdf
    >>> round(float(logpdf(jnp.array([1., 2.]), jnp.zeros(2), jnp.array([[2., 1.], [1., 2.]]))), 4)
    -3.3872
    """
    if allow_singular is not None:
        raise NotImplementedError("scipy.stats.multivariate_normal.logpdf: allow_singular is not supported: "
                                  "add a small multiple of the identity to cov")
    name = "scipy.stats.multivariate_normal.logpdf"
    (x, mean, cov), dtype = _promoted(name, x, mean, cov)
    n = mean.shape[-1] if mean.ndim else 1
    single = cov.ndim == 0 or mean.ndim == 0 and cov.ndim < 2
    if not single and cov.shape[-2:] != (n, n) or mean.ndim and x.ndim and x.shape[-1] != n:
        raise ShapeError(f"{name}: for mean of the shape {mean.shape}, cov must be a number or have the "
                         f"shape (..., {n}, {n}) and x the shape (..., {n}); got cov of {cov.shape} and x "
                         f"of {x.shape}")
    off = x - mean if mean.ndim else (x - mean)[..., None]
    if single:
        value = (-jnp.square(off) / cov[..., None] - jnp.log(2 * math.pi * cov)[..., None]).sum(-1) / 2
    else:
        root = linalg.cholesky(cov)
        value = log_normal_of(root, whitened(root, off))
    return value.astype(dtype)


def multivariate_normal_pdf(x, mean, cov):
    """The normal density of vectors, with the arguments of `logpdf`.

    >>> normal = jax.scipy.stats.multivariate_normal
    >>> round(float(normal.pdf(jnp.array([1., 2.]), jnp.zeros(2), jnp.eye(2))), 4)
    0.0131
    """
    return jnp.exp(multivariate_normal_logpdf(x, mean, cov))


SEVERAL = {
    "dirichlet": {"logpdf": dirichlet_logpdf, "pdf": dirichlet_pdf},
    "multinomial": {"logpmf": multinomial_logpmf, "pmf": multinomial_pmf},
    "multivariate_normal": {"logpdf": multivariate_normal_logpdf, "pdf": multivariate_normal_pdf},
}
