"""Distributions made from uniform, normal, exponential and gamma values.

Where no source is named, that is the definition of the distribution, or the inverse of its distribution
function (L. Devroye, Non-Uniform Random Variate Generation, 1986).
"""
from .. import lax, numpy as jnp
from ..numpy.util import joint_shape, shape as shape_of
from ..placement.out_sharding import over_auto_axes
from ..primitives.common import canonical_shape, static_int
from .continuous import (
    above_minus_one, exponential_of, halves, normal_values, result_shape, spread, sqrt2, tiny, uniform_values)
from .discrete import rademacher_values
from .gamma import random_gamma_p
from .sampler import integer_dtype, law, own_dtype

__all__ = ["ball", "beta", "cauchy", "chisquare", "dirichlet", "double_sided_maxwell", "exponential", "f",
           "gamma", "generalized_normal", "geometric", "laplace", "loggamma", "logistic", "lognormal",
           "maxwell", "pareto", "rayleigh", "t", "triangular", "truncated_normal", "wald", "weibull_min"]


def _unit(key, shape, dtype, low=0.0):
    return uniform_values(key, float(low), 1.0, shape=shape, dtype=dtype)


def _shape_alone(name, shape, *_):
    return canonical_shape(shape, f"{name}: shape")


# --- from uniform values --------------------------------------------------------------------------

@law(shape=(), fit=_shape_alone)
def exponential(key, *, shape, dtype):
    """Values with density exp(-x) for x >= 0.

    >>> x = jax.random.exponential(jax.random.key(0), (1000,))
    >>> x.min() >= 0, x.mean().round(0)
    (Array(True, dtype=bool), Array(1., dtype=float32))
    """
    return exponential_of(_unit(key, shape, dtype))


@law(shape=(), fit=_shape_alone)
def laplace(key, *, shape, dtype):
    """Values with density exp(-|x|) / 2.

    >>> x = jax.random.laplace(jax.random.key(0), (1000,))
    >>> x.mean().round(0), jnp.abs(x).mean().round(0)
    (Array(0., dtype=float32), Array(1., dtype=float32))
    """
    u = _unit(key, shape, dtype, above_minus_one(dtype))
    return lax.sign(u) * lax.log1p(-lax.abs(u))


@law(shape=(), fit=_shape_alone)
def logistic(key, *, shape, dtype):
    """Values with distribution function 1 / (1 + exp(-x)).

    >>> x = jax.random.logistic(jax.random.key(0), (1000,))
    >>> (x < 0).mean().round(1), (x < jnp.log(3)).mean().round(2)
    (Array(0.5, dtype=float32), Array(0.75, dtype=float32))
    """
    u = _unit(key, shape, dtype, tiny(dtype))
    return lax.log(u) - lax.log1p(-u)


@law(shape=(), fit=_shape_alone)
def cauchy(key, *, shape, dtype):
    """Values with density 1 / (pi (1 + x^2)).

    It has no mean; half of the values are in [-1, 1].

    >>> (jnp.abs(jax.random.cauchy(jax.random.key(0), (1000,))) < 1).mean().round(1)
    Array(0.5, dtype=float32)
    """
    return lax.tan(jnp.pi * (_unit(key, shape, dtype, jnp.finfo(dtype).eps) - 0.5))


@law
def rayleigh(key, scale, *, shape, dtype):
    """Values with density x / scale^2 exp(-x^2 / (2 scale^2)) for x >= 0.

    >>> x = jax.random.rayleigh(jax.random.key(0), 2., shape=(1000,))
    >>> (x**2).mean().round(0)                            # 2 scale^2
    Array(8., dtype=float32)
    """
    return scale * lax.sqrt(-2 * lax.log(_unit(key, shape, dtype)))


@law
def pareto(key, b, *, shape, dtype):
    """Values with density b / x^(b + 1) for x >= 1.

    >>> x = jax.random.pareto(jax.random.key(0), 3., (1000,))
    >>> x.min() >= 1, x.mean().round(1)                   # b / (b - 1)
    (Array(True, dtype=bool), Array(1.5, dtype=float32))
    """
    return lax.exp(exponential_of(_unit(key, shape, dtype)) / b)


@law(shape=(), fit=_shape_alone, work=None, laid_out=False)
def weibull_min(key, scale, concentration, *, shape, dtype):
    """Values with density proportional to x^(c - 1) exp(-(x / scale)^c) for x > 0, c being the concentration.

    As in JAX, `shape` is that of the uniform values: parameters that are larger share them.

    >>> x = jax.random.weibull_min(jax.random.key(0), 2., 1., (1000,))
    >>> x.mean().round(0)                                 # with concentration 1, exponential
    Array(2., dtype=float32)
    """
    scale, concentration = (jnp.asarray(x, dtype) for x in (scale, concentration))
    return scale * jnp.power(exponential_of(_unit(key, shape, dtype)), 1 / concentration)


@law
def triangular(key, left, mode, right, *, shape, dtype):
    """Values whose density rises from 0 at `left` to `mode` and falls to 0 at `right`, each in a line.

    >>> x = jax.random.triangular(jax.random.key(0), 0., 1., 5., (1000,))
    >>> x.min() >= 0, x.max() <= 5, x.mean().round(0)     # (left + mode + right) / 3
    (Array(True, dtype=bool), Array(True, dtype=bool), Array(2., dtype=float32))
    """
    u, width = _unit(key, shape, dtype), right - left
    return lax.select(u < (mode - left) / width, left + lax.sqrt(u * width * (mode - left)),
                      right - lax.sqrt((1 - u) * width * (right - mode)))


@law(dtype=integer_dtype, work=own_dtype)
def geometric(key, p, *, shape, dtype):
    """How many trials there are up to the first that succeeds, which each does with probability p: 1 or more.

    >>> x = jax.random.geometric(jax.random.key(0), 0.25, (1000,))
    >>> x.min(), x.mean().round(0)
    (Array(1, dtype=int32), Array(4., dtype=float32))
    """
    return (lax.floor(lax.log(_unit(key, shape, p.dtype)) / lax.log1p(-p)) + 1).astype(dtype)


# --- from normal values ---------------------------------------------------------------------------

@law
def truncated_normal(key, lower, upper, *, shape, dtype):
    """Standard normal values given that they are in (lower, upper).

    >>> x = jax.random.truncated_normal(jax.random.key(0), 1., jnp.inf, (1000,))
    >>> x.min() >= 1, x.mean().round(1)
    (Array(True, dtype=bool), Array(1.5, dtype=float32))
    """
    root = sqrt2(dtype)
    a, b = lax.erf(lower / root), lax.erf(upper / root)
    out = root * lax.erf_inv(uniform_values(key, a, b, shape=shape, dtype=dtype))
    lower = lax.nextafter(lower, spread(jnp.inf, dtype, shape))
    return lax.min(lax.nextafter(upper, spread(-jnp.inf, dtype, shape)), lax.max(lower, out))


@law
def lognormal(key, sigma=1.0, *, shape, dtype):
    """exp of normal values with standard deviation sigma.

    >>> x = jax.random.lognormal(jax.random.key(0), 0.5, (1000,))
    >>> jnp.median(x).round(1), jnp.log(x).std().round(1)
    (Array(1., dtype=float32), Array(0.5, dtype=float32))
    """
    return lax.exp(normal_values(key, shape=shape, dtype=dtype) * sigma)


@law(shape=(), fit=_shape_alone)
def maxwell(key, *, shape, dtype):
    """Values with density proportional to x^2 exp(-x^2 / 2) for x >= 0.

    They are the lengths of normal vectors in three dimensions.

    >>> jax.random.maxwell(jax.random.key(0), (1000,)).mean().round(1)
    Array(1.6, dtype=float32)
    """
    return lax.sqrt(jnp.sum(lax.square(normal_values(key, shape=(*shape, 3), dtype=dtype)), axis=-1))


def _in_front(name, shape, *parameters):
    own = joint_shape(*map(shape_of, parameters))
    return (*(_shape_alone(name, shape) or own), *own)      # twice its own for (), as JAX has it


@law(shape=(), fit=_in_front, laid_out=False)
def double_sided_maxwell(key, loc, scale, *, shape, dtype):
    """Values with density proportional to z^2 exp(-z^2 / 2), where z = (x - loc) / scale.

    The shape of the result is `shape` in front of that of the parameters.

    >>> x = jax.random.double_sided_maxwell(jax.random.key(0), 5., 1., (1000,))
    >>> x.mean().round(0), ((x - 5) ** 2).mean().round(0)
    (Array(5., dtype=float32), Array(3., dtype=float32))
    """
    size, sign = halves(key)
    return maxwell.draw(size, shape=shape, dtype=dtype) * rademacher_values(sign, shape=shape,
                                                                      dtype=dtype) * scale + loc


@law
def wald(key, mean, *, shape, dtype):
    """Values of the inverse Gaussian distribution with the given mean and scale 1.

    J. R. Michael, W. R. Schucany, R. W. Haas, "Generating Random Variates Using Transformations with Multiple
    Roots", 1976.

    >>> jax.random.wald(jax.random.key(0), 2., (10000,)).mean().round(0)
    Array(2., dtype=float32)
    """
    first, second = halves(key)
    y = lax.square(normal_values(first, shape=shape, dtype=dtype))
    # mean / root and mean * root solve the quadratic: their usual difference would cancel for a great mean
    half = mean * y / 2
    root = 1 + half + lax.sqrt(half) * lax.sqrt(half + 2)
    return lax.select(_unit(second, shape, dtype) <= root / (1 + root), mean / root, mean * root)


# --- from gamma values ----------------------------------------------------------------------------

def _gamma(key, a, log_space=False):
    return random_gamma_p.bind(key, *over_auto_axes(a), log_space=log_space)


@law(method=True)
def gamma(key, a, **_):
    """Values with density proportional to x^(a - 1) exp(-x) for x >= 0; they have a derivative in `a`.

    >>> x = jax.random.gamma(jax.random.key(0), 3., (1000,))
    >>> x.mean().round(0), x.var().round(0)
    (Array(3., dtype=float32), Array(3., dtype=float32))
    >>> jax.grad(lambda a: jax.random.gamma(jax.random.key(0), a, (1000,)).mean())(3.).round(1)
    Array(1., dtype=float32, weak_type=True)
    """
    return _gamma(key, a)


@law(method=True)
def loggamma(key, a, **_):
    """Logarithms of `gamma` values, also of those that are too small for their dtype.

    >>> jax.random.loggamma(jax.random.key(0), 1e-4, (2,)) < -100
    Array([ True,  True], dtype=bool)
    >>> jax.random.gamma(jax.random.key(0), 1e-4, (2,))
    Array([0., 0.], dtype=float32)
    """
    return _gamma(key, a, log_space=True)


@law(method=True)
def chisquare(key, df, **_):
    """Sums of `df` squares of normal values; `df` need not be whole.

    >>> jax.random.chisquare(jax.random.key(0), 4., shape=(1000,)).mean().round(0)
    Array(4., dtype=float32)
    """
    return 2 * lax.exp(_gamma(key, df / 2, log_space=True))


@law
def f(key, dfnum, dfden, *, shape, dtype):
    """Ratios of the means of `dfnum` and of `dfden` squares of normal values.

    >>> jax.random.f(jax.random.key(0), 5., 50., shape=(1000,)).mean().round(1)
    Array(1., dtype=float32)
    """
    below, above = halves(key)
    above, below = (chisquare.draw(k, df, shape=shape, dtype=dtype)
                    for k, df in ((above, dfnum), (below, dfden)))
    return (above / dfnum) / (below / dfden)


@law
def t(key, df, *, shape, dtype):
    """Student's t: normal values divided by the root of the mean of `df` squares of others.

    >>> x = jax.random.t(jax.random.key(0), 10., (1000,))
    >>> jnp.abs(x.mean()) < 0.1, x.var() > 1.1               # df / (df - 2)
    (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    above, below = halves(key)
    return normal_values(above, shape=shape, dtype=dtype) * lax.sqrt(df / 2 / _gamma(below, df / 2))


@law(method=True)
def beta(key, a, b, **_):
    """Values with density proportional to x^(a - 1) (1 - x)^(b - 1) in [0, 1].

    >>> x = jax.random.beta(jax.random.key(0), 2., 6., (1000,))
    >>> x.mean().round(2)                                 # a / (a + b)
    Array(0.25, dtype=float32)
    """
    x, y = (_gamma(k, of, log_space=True) for k, of in zip(halves(key), (a, b)))
    largest = lax.max(x, y)
    x, y = lax.exp(x - largest), lax.exp(y - largest)
    return x / (x + y)


def _simplex(name, shape, alpha):
    if not shape_of(alpha):
        raise ValueError(f"{name} requires alpha.ndim >= 1, got alpha.ndim == 0: give a number for each "
                         "entry of a value")
    *batch, n = shape_of(alpha)
    return (*(batch if shape is None else result_shape(name, shape, jnp.zeros(batch))), n)


@law(fit=_simplex)
def dirichlet(key, alpha, **_):
    """Vectors that are not negative and sum to 1, with density proportional to prod x_i^(alpha_i - 1).

    The shape of the result is `shape`, by default alpha.shape[:-1], and then alpha.shape[-1].

    >>> x = jax.random.dirichlet(jax.random.key(0), jnp.array([1., 2., 7.]), (1000,))
    >>> x.shape, x.mean(0).round(1), jnp.allclose(x.sum(1), 1)
    ((1000, 3), Array([0.1, 0.2, 0.7], dtype=float32), Array(True, dtype=bool))
    """
    x = _gamma(key, alpha, log_space=True)
    x = lax.exp(x - lax.stop_gradient(jnp.max(x, -1, keepdims=True, initial=-jnp.inf)))
    return x / jnp.sum(x, -1, keepdims=True)


@law(shape=())
def generalized_normal(key, p, *, shape, dtype):
    """Values with density proportional to exp(-|x|^p).

    >>> x = jax.random.generalized_normal(jax.random.key(0), 2., (1000,))
    >>> x.var().round(1)                                  # p = 2: normal with variance 1/2
    Array(0.5, dtype=float32)
    """
    size, sign = halves(key)
    # by the logarithm: the gamma value is too small for floats where p is great
    log = _gamma(size, 1 / p, log_space=True) / p
    return rademacher_values(sign, shape=shape, dtype=dtype) * lax.exp(log)


def _in_ball(name, shape, p):
    if shape_of(p):
        raise ValueError(f"{name}: p must be a number, got an array of shape {shape_of(p)}: map over it with "
                         "vmap")
    return _shape_alone(name, shape)


@law(shape=(), fit=_in_ball, work=None, static=("d",))
def ball(key, d, p=2, *, shape, dtype):
    """Points uniform in the unit ball of d dimensions, of norm (sum |x_i|^p)^(1/p), along the last axis.

    F. Barthe, O. Guedon, S. Mendelson, A. Naor, "A Probabilistic Approach to the Geometry of the l_p^n-Ball",
    2005.

    >>> x = jax.random.ball(jax.random.key(0), 2, shape=(1000,))
    >>> x.shape, jnp.linalg.norm(x, axis=1).max() <= 1, (jnp.linalg.norm(x, axis=1) < 0.5).mean().round(1)
    ((1000, 2), Array(True, dtype=bool), Array(0.2, dtype=float32))
    """
    inside, outside = halves(key)
    d, p = static_int(d, "ball: d"), jnp.asarray(p, dtype)
    x = generalized_normal.draw(inside, p, shape=canonical_shape((*shape, d), "ball"), dtype=dtype)
    total = jnp.sum(lax.pow(lax.abs(x), spread(p, dtype, x.shape)),
                    -1) + exponential_of(_unit(outside, shape, dtype))
    return x / jnp.power(total, 1 / p)[..., None]
