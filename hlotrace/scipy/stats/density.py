"""A density estimated from samples, a normal one around each."""
from ... import numpy as jnp, random
from ...core.errors import ShapeError, not_one_of
from ...core.pytrees.pytree import register_pytree_node_class
from ...core.surface.boundary import boundaries
from ...lax import linalg
from ...numpy.util import check_arraylike, promote_dtypes_inexact, promotes
from .. import special as sp
from .multivariate import log_normal_of, whitened

_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@register_pytree_node_class
@boundaries(but="tree_flatten tree_unflatten")
class gaussian_kde:
    """A density estimated from samples: the weighted mean of normal densities around them, of one covariance.

    It is a pytree, whose leaves are `neff` (the effective number of samples), `dataset` (d, n), `weights`,
    of sum 1, `covariance` and its inverse `inv_cov`.  See D. Scott, Multivariate Density Estimation, 1992.

    Args:
        dataset: (n,), or (d, n) of d variables.
        bw_method: "scott" (the default) or "silverman", a number, or a function of this object that gives
            one: its square is multiplied with the covariance of the samples.
        weights: (n,), by default equal.

    >>> kde = jax.scipy.stats.gaussian_kde(jnp.array([0., 1., 3.]))
    >>> kde(jnp.array([0., 2.])).round(3), kde.integrate_box_1d(-jnp.inf, jnp.inf)
    (Array([0.192     , 0.184...], dtype=float32), Array(1., dtype=float32))
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        check_arraylike("gaussian_kde", dataset, *([] if weights is None else [weights]))
        dataset = jnp.atleast_2d(*promote_dtypes_inexact(dataset))
        if dataset.dtype.kind == "c":
            raise NotImplementedError("gaussian_kde does not support complex data: give parts as variables, "
                                      "(2, n)")
        if dataset.ndim != 2 or dataset.size < 2:
            raise ValueError("gaussian_kde: dataset must be (n,) or (d, n) of multiple elements, got "
                             f"{dataset.shape}")
        d, n = dataset.shape
        weights = jnp.ones(n, dataset.dtype) if weights is None else jnp.asarray(weights)
        if weights.shape != (n,):
            raise ShapeError(f"gaussian_kde: weights must have the shape ({n},), one for each sample, got "
                             f"{weights.shape}")
        dataset, weights = promote_dtypes_inexact(dataset, weights)
        self.dataset, self.weights = dataset, weights / weights.sum()
        self.neff = 1 / jnp.square(self.weights).sum()
        covariance = jnp.cov(dataset, aweights=self.weights).reshape(d, d)
        self.covariance = (covariance * jnp.square(self._factor(bw_method))).astype(dataset.dtype)
        self.inv_cov = jnp.linalg.inv(self.covariance)

    def _factor(self, bw_method):
        power = -1 / (self.d + 4)
        if bw_method in (None, "scott"):
            return self.neff ** power
        if bw_method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** power
        if isinstance(bw_method, str):
            raise not_one_of("bw_method", bw_method, ("scott", "silverman"))
        return jnp.asarray(bw_method(self) if callable(bw_method) else bw_method)

    @property
    def d(self):
        """How many variables there are."""
        return self.dataset.shape[0]

    @property
    def n(self):
        """How many samples there are."""
        return self.dataset.shape[1]

    def tree_flatten(self):
        """The arrays, and nothing besides."""
        return [getattr(self, name) for name in _FIELDS], None

    @classmethod
    def tree_unflatten(cls, _aux, children):
        """The object of these arrays."""
        self = object.__new__(cls)
        for name, child in zip(_FIELDS, children):
            setattr(self, name, child)
        return self

    def __repr__(self):
        return f"gaussian_kde({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"

    @promotes()
    def _log_at(self, points, covariance):
        """Log densities (m, n) at points (d, m) of normal distributions around the samples."""
        root, center = linalg.cholesky(covariance), self.dataset.mean(1)
        at, around = (whitened(root.astype(x.dtype), x.T - center) for x in (points, self.dataset))
        return log_normal_of(root.astype(at.dtype), at[:, None] - around)

    def _points(self, points):
        check_arraylike("gaussian_kde.evaluate", points)
        points = jnp.atleast_2d(promote_dtypes_inexact(points, self.dataset)[0])
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.T       # one point
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ShapeError(f"gaussian_kde: points have dimension {points.shape[0]}, dataset has dimension "
                             f"{self.d}: points must be ({self.d}, m)")
        return points

    def logpdf(self, x):
        """Logarithm of the density, of shape (m,), at points (d, m), or at one (d,); if d = 1 at points (m,).
        """
        return sp.logsumexp(self._log_at(self._points(x), self.covariance), -1, b=self.weights)

    def evaluate(self, points):
        """The density at points (d, m), or at one (d,); for d = 1 at points (m,).  Shape (m,)."""
        return (jnp.exp(self._log_at(self._points(points), self.covariance)) * self.weights[None]).sum(-1)

    __call__ = evaluate

    def pdf(self, x):
        """`evaluate`, by SciPy's other name."""
        return self.evaluate(x)

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal one of this mean (d,) and covariance (d, d)."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ShapeError(f"gaussian_kde.integrate_gaussian: mean must be ({self.d},) and cov ({self.d}, "
                             f"{self.d}), as the dataset has dimension {self.d}; got {mean.shape} and "
                             f"{cov.shape}")
        return (jnp.exp(self._log_at(mean[:, None], self.covariance + cov))[0] * self.weights).sum()

    def integrate_box_1d(self, low, high):
        """The probability between two numbers, for d = 1."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: only for one variable, got d={self.d}")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("gaussian_kde.integrate_box_1d: the limits must be scalars, got the shapes "
                             f"{jnp.shape(low)} and {jnp.shape(high)}: map over them with vmap")
        below, above = ((end - self.dataset[0]) / jnp.sqrt(self.covariance[0, 0]) for end in (low, high))
        return ((sp.ndtr(above) - sp.ndtr(below)) * self.weights).sum()

    def integrate_kde(self, other):
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError(f"gaussian_kde.integrate_kde: the estimates are of {self.d} and of {other.d} "
                             "variables")
        each = jnp.exp(self._log_at(other.dataset, self.covariance + other.covariance))
        return other.weights @ each @ self.weights

    def resample(self, key, shape=()):
        """Draws from the estimate, (d, *shape)."""
        which, where = random.split(key)
        at = random.choice(which, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(where, jnp.zeros(self.d, self.covariance.dtype), self.covariance,
                                           shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, at] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """NotImplementedError: only `integrate_box_1d`."""
        raise NotImplementedError(f"gaussian_kde.integrate_box: from {low_bounds} to {high_bounds} with "
                                  f"maxpts={maxpts} is not supported: integrate_box_1d is, for one variable")

    def set_bandwidth(self, bw_method=None):
        """NotImplementedError: an estimate does not change."""
        raise NotImplementedError("gaussian_kde.set_bandwidth is not supported: gaussian_kde(dataset, "
                                  f"{bw_method!r})")
