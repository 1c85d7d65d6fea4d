"""Distributions of counts whose values are found by trial: Poisson, binomial, multinomial."""
from .. import lax, numpy as jnp
from ..api.composite import composite
from ..core import dtypes
from ..numpy.util import broadcast_to_shape, promote_dtypes_inexact, shape as shape_of
from ..primitives.arrays.random import random_clone_p, random_split_p
from ..primitives.common import np
from .continuous import halves, result_shape, uniform_values
from .keys import one_key
from .sampler import integer_dtype, law, own_dtype

__all__ = ["binomial", "multinomial", "poisson"]


def _unit(key, like):
    return uniform_values(key, 0.0, 1.0, shape=shape_of(like), dtype=like.dtype)


def _until_all(accepted, start, propose, key):
    """The last accepted proposal of each element, once all have one.

    `propose(u, v)` gives (values, which of them are accepted) for u in [-1/2, 1/2) and v in [0, 1).
    """
    def step(state):
        values, done, key = state
        key, *keys = random_split_p.bind(key, shape=(3,))
        u, v = (_unit(k, start) for k in keys)
        proposed, accepted = propose(u - 0.5, v)
        return lax.select(accepted, proposed, values), done | accepted, key
    return lax.while_loop(lambda state: ~jnp.all(state[1]), step, (start, accepted, key))[0]


# --- Poisson --------------------------------------------------------------------------------------

def _poisson_by_product(key, rate):
    """How many uniform values can be multiplied until their product falls below exp(-rate).

    D. E. Knuth, The Art of Computer Programming, volume 2, section 3.4.1.
    """
    def step(state):
        count, key, product = state
        key, sub = halves(key)
        return lax.select(product > -rate, count + 1, count), key, product + lax.log(_unit(sub, rate))
    count = lax.while_loop(lambda state: jnp.any(state[2] > -rate), step,
                           (lax.full_like(rate, 0), key, lax.full_like(rate, 0)))[0]
    return count - 1


def _poisson_by_rejection(key, rate):
    """W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993, PTRS."""
    b = 0.931 + 2.53 * lax.sqrt(rate)
    a, inverse_alpha, quick = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose(u, v):
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + rate + 0.43)
        bound = -rate + k * lax.log(rate) - lax.lgamma(k + 1)
        fits = lax.log(v * inverse_alpha / (a / (us * us) + b)) <= bound
        return k, (us >= 0.07) & (v <= quick) | ~((k < 0) | (us < 0.013) & (v > us)) & fits
    return _until_all(lax.full_like(rate, False, bool), lax.full_like(rate, -1), propose, key)


@law(dtype=integer_dtype, work=lambda *_: dtypes.float32, method=True)
def poisson(key, lam, *, dtype, **_):
    """Counts with probability lam^k exp(-lam) / k!; -1 where lam is negative or NaN.

    >>> x = jax.random.poisson(jax.random.key(0), 4., (1000,))
    >>> x.dtype, x.mean().round(0), x.var().round(0)
    (dtype('int32'), Array(4., dtype=float32), Array(4., dtype=float32))
    """
    few = jnp.isnan(lam) | (lam < 10)
    count = lax.select(few, _poisson_by_product(key, lax.select(few, lam, lax.full_like(lam, 0))),
                       _poisson_by_rejection(random_clone_p.bind(key),
                                             lax.select(few, lax.full_like(lam, 1e5), lam)))
    return lax.select(lam == 0, lax.full_like(lam, 0), count).astype(dtype)


# --- binomial -------------------------------------------------------------------------------------

def _binomial_by_gaps(key, n, p):
    """Gaps between successes are geometric: how many fit in n trials (L. Devroye, 1986, chapter X.4)."""
    def step(state):
        count, key, at = state
        sub, key = halves(key)
        return (lax.select(at <= n, count + 1, count), key,
                at + lax.ceil(lax.log(_unit(sub, n)) / lax.log1p(-p)))
    return lax.while_loop(lambda state: jnp.any(state[2] <= n), step,
                          (lax.full_like(n, 0), key, lax.full_like(n, 0)))[0] - 1


# log k! less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi)/2, for k from 0 to 9
_STIRLING = np.array([0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
                      0.01664469118982119, 0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
                      0.009255462182712733, 0.008330563433362871])


def _stirling(k):
    # JAX takes the last entry for all that is larger: its streams are worth the 0.8 % in rare ratios
    return jnp.asarray(_STIRLING, k.dtype)[jnp.clip(k, 0, 9).astype("int32")]


def _binomial_by_rejection(key, n, p):
    """W. Hoermann, "The generation of binomial random variates", 1993, algorithm BTRS."""
    deviation, odds, mode = lax.sqrt(n * p * (1 - p)), p / (1 - p), lax.floor((n + 1) * p)
    b = 1.15 + 2.53 * deviation
    a, quick, alpha = -0.0873 + 0.0248 * b + 0.01 * p, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation

    def propose(u, v):
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + (n * p + 0.5))
        bound = ((mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
                 + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
                 + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
                 + _stirling(mode) + _stirling(n - mode) - _stirling(k) - _stirling(n - k))
        fits = lax.log(v * alpha / (a / (us * us) + b)) <= bound
        return k, (us >= 0.07) & (v <= quick) | ~((k < 0) | (k > n)) & fits
    return _until_all(lax.full_like(n, False, bool), lax.full_like(n, -1), propose, key)


@law(work=own_dtype, laid_out=False)
def binomial(key, n, p, *, dtype, **_):
    """How many of n trials succeed, which each does with probability p.

    NaN where n < 0 or p is not in [0, 1].

    >>> x = jax.random.binomial(jax.random.key(0), 10, 0.3, (1000,))
    >>> x.mean().round(0), x.max() <= 10
    (Array(3., dtype=float32), Array(True, dtype=bool))
    """
    wrong = jnp.isnan(n) | (n < 0) | ~((p >= 0) & (p <= 1))
    q = lax.select(p < 0.5, p, 1 - p)
    drawn = ~(wrong | jnp.isinf(n))
    # where a method is not used, it is given what ends soon
    few, many = drawn & (n * q <= 10), drawn & (n * q > 10)
    by_gaps = _binomial_by_gaps(key, jnp.where(few, n, 0), jnp.where(few, q, 0.5))
    by_rejection = _binomial_by_rejection(random_clone_p.bind(key), jnp.where(many, n, 1e4),
                                          jnp.where(many, q, 0.5))
    count = lax.select(few, by_gaps, by_rejection)
    count = lax.select(p < 0.5, count, n - count)
    return lax.select(wrong, lax.full_like(n, np.nan), lax.select(jnp.isinf(n), n, count)).astype(dtype)


def multinomial(key, n, p, *, shape=None, dtype=None, unroll=1):
    """How many of n trials have each outcome.

    Args:
        p: the probabilities of the outcomes, along the last axis, up to a common factor.
        shape: the result's, last the outcomes; by default that of `n` and p[..., 0], and their number.
        dtype: that of the result, the default float by default.
        unroll: how many outcomes are done in one step of a loop.

    >>> x = jax.random.multinomial(jax.random.key(0), 100, jnp.array([0.2, 0.3, 0.5]))
    >>> x.shape, x.sum()
    ((3,), Array(100., dtype=float32))
    """
    key = one_key("multinomial", key)
    if dtype is None:
        dtype = dtypes.canonicalize(dtypes.float64)
    else:
        dtype = dtypes.check_user_dtype(dtype, "multinomial")
    if not shape_of(p):
        raise ValueError("multinomial: p must have an axis of outcomes, got a scalar: give the probabilities "
                         "of all")
    if shape is None:
        shape = (*result_shape("multinomial", None, n, jnp.zeros(shape_of(p)[:-1])), shape_of(p)[-1])
    shape = result_shape("multinomial", shape, p)
    result_shape("multinomial", shape[:-1], n)
    return _multinomial(key, n, p, shape=shape, dtype=dtype, unroll=unroll)


@composite(static=("shape", "dtype", "unroll"))
def _multinomial(key, n, p, *, shape, dtype, unroll):
    """One outcome after the other, as those of the trials that are left."""
    n, p = promote_dtypes_inexact(n, p)
    *shape, outcomes = shape
    shape, p = tuple(shape), jnp.moveaxis(broadcast_to_shape(p, (*shape, outcomes)), -1, 0)
    left = lax.cumsum(p, reverse=True)
    share = jnp.clip(p / lax.select(left == 0, lax.full_like(left, 1), left), 0, 1)

    def step(trials, x):
        count = binomial.draw(x[0], trials, x[1], shape=shape, dtype=p.dtype)
        return trials - count, count
    keys = random_split_p.bind(key, shape=(outcomes,))
    counts = lax.scan(step, broadcast_to_shape(n, shape), (keys, share), unroll=unroll)[1]
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
