"""The distributions of one variable, a row each.

Densities of gamma, beta and binomial kind are written with the saddle-point form of the Poisson distribution,
which loses nothing to large logarithms that cancel: C. Loader, "Fast and Accurate Computation of Binomial
Probabilities", 2000.  "DLMF" is the NIST Digital Library of Mathematical Functions.
"""
import functools
import math

from ... import lax, numpy as jnp
from ...numpy import where
from ...primitives.arrays.incomplete import (
    beta_tail, log_gap, log_star, lower_gamma_series, upper_gamma_fraction)
from ...primitives.common import np
from .. import special as sp
from ..special.promotion import special
from .distribution import INF, Law, log1mexp, logarithm

_LOG_2PI = math.log(2 * math.pi)


def positive(*_):
    return 0.0, 1.0, INF


def unit(*_):
    return 0.0, 0.5, 1.0


def _log_poisson_by_k(_, k, mean):
    """log(mean) - digamma(k + 1), by its asymptotic series where these are large and near (DLMF 5.11.2)."""
    large = (k > 100) & (jnp.abs(mean - k) < k / 2)
    n, m = where(large, k, 100), where(large, mean, 100)
    series = jnp.log1p((m - n) / n) - (0.5 - (1 / 12 - 1 / (120 * jnp.square(n))) / n) / n
    return where(large, series, jnp.log(mean) - sp.digamma(where(large, 0, k) + 1))


def _log_poisson_by_mean(_, k, mean):
    some = k != 0
    return where(some, (k - mean) / where(some, mean, 1), -1)


@special(_log_poisson_by_k, _log_poisson_by_mean)
def log_poisson(k, mean):
    """log(mean**k exp(-mean) / gamma(k + 1)), for k >= 0 and mean >= 0 that need not be whole."""
    # mean / k may be too large or too small for a number
    apart = (k < 1) | (mean / k < jnp.finfo(mean.dtype).tiny)
    near = k * log_gap((mean - k) / k, mean / k) + log_star(k) + jnp.log(k) / 2 + _LOG_2PI / 2
    return where(k == 0, -mean, where(apart, k * jnp.log(mean) - mean - sp.gammaln(k + 1), -near))


def _log_binomial(k, l, p, q):
    """log of gamma(k + l + 1) / gamma(k + 1) / gamma(l + 1) p**k q**l, for p + q = 1."""
    n = k + l
    return log_poisson(k, n * p) + log_poisson(l, n * q) - log_poisson(n, n)


# --- on the whole line ----------------------------------------------------------------------------

def _log1p_square(z):
    """log(1 + z**2), also where the square overflows."""
    far = jnp.abs(z) > 1e10
    return where(far, 2 * jnp.log(where(far, jnp.abs(z), 1)), jnp.log1p(jnp.square(where(far, 0, z))))


def _cauchy_ppf(q):
    tail = jnp.minimum(q, 1 - q)
    middle = tail > 0.25
    outside = jnp.sign(q - 0.5) / jnp.tan(math.pi * where(middle, 0.25, tail))
    return where(middle, jnp.tan(math.pi * (where(middle, q, 0.5) - 0.5)), outside)


def _laplace_ppf(q):
    low = q < 0.5
    return where(low, jnp.log(2 * where(low, q, 0.5)), -jnp.log(2 * (1 - where(low, 0.5, q))))


def _laplace_cdf(z):
    tail = jnp.exp(-jnp.abs(z)) / 2
    return where(z < 0, tail, 1 - tail)


def _gumbel_logsf(z):
    """log(1 - exp(-exp(-z))), which goes to -z."""
    y = jnp.exp(-z)
    far = y < 1e-4
    return where(far, -z - y / 2 + jnp.square(y) / 24, log1mexp(where(far, 1, y)))


_GUMBEL = {"logpdf": lambda z: -z - jnp.exp(-z), "logcdf": lambda z: -jnp.exp(-z), "logsf": _gumbel_logsf,
           "sf": lambda z: -jnp.expm1(-jnp.exp(-z)), "ppf": lambda q: -jnp.log(-jnp.log(q)),
           "isf": lambda q: -jnp.log(-jnp.log1p(-q))}
_GUMBEL_L = {"logpdf": lambda z: z - jnp.exp(z), "logsf": lambda z: -jnp.exp(z),
             "logcdf": lambda z: _gumbel_logsf(-z), "cdf": lambda z: -jnp.expm1(-jnp.exp(z)),
             "isf": lambda q: jnp.log(-jnp.log(q)), "ppf": lambda q: jnp.log(-jnp.log1p(-q))}


def _gennorm_cdf(z, beta):
    power = jnp.abs(z) ** beta
    near = power < 1e-30        # where P is its first term, DLMF 8.7.1
    small = 1 - jnp.abs(z) * jnp.exp(-sp.gammaln(1 + 1 / beta))
    tail = where(near, small, sp.gammaincc(1 / beta, where(near, 1, power))) / 2
    return where(z < 0, tail, 1 - tail)


def _t_logpdf(z, df):
    far = df == INF
    n = where(far, 1, df)
    value = -sp.betaln(n / 2, jnp.full_like(n, 0.5)) - (jnp.log(n) + (n + 1) *
                                                        _log1p_square(z / jnp.sqrt(n))) / 2
    return where(far, -(jnp.square(z) + _LOG_2PI) / 2, value)


# --- the normal distribution between two bounds ---------------------------------------------------

def _nearest(a, b):
    return where(a > 0, a, where(b < 0, b, 0.0))     # jnp.clip would move halves at a tie


def _mass(a, b):
    """Integral of exp((c**2 - s**2) / 2) for s from a to b, where c is the nearest point to 0 between them.

    By Mills' ratio at both ends on one side of 0, by the tails around it, by Gauss for a close to b.
    """
    right = a > 0
    a, b = where(right, -b, a), where(right, -a, b)
    one_side, ends = b < 0, a > -INF
    top = where(one_side, b, -1.0)
    low, ratio = where(one_side & ends, a, top - 1), math.sqrt(math.pi / 2)
    share = where(ends, jnp.exp((top - low) * (top + low) / 2), 0)
    beside = ratio * (sp.erfcx(-top * math.sqrt(0.5)) - sp.erfcx(-low * math.sqrt(0.5)) * share)
    around = math.sqrt(2 * math.pi) * (1 - sp.ndtr(where(one_side, -1, a)) - sp.ndtr(where(one_side, -1, -b)))
    half, middle = (b - a) / 2, (a + b) / 2
    close = half * (jnp.abs(middle) + 1) < 1
    h, m = where(close, half, 0.5), where(close, middle, -1.0)
    c = where(close, _nearest(a, b), -0.5)
    nodes, weights = np.polynomial.legendre.leggauss(14)
    total = 0
    for s, w in zip(nodes, weights):
        s = m + h * float(s)
        total = total + float(w) * h * jnp.exp((c - s) * (c + s) / 2)
    return where(close, total, where(one_side, beside, around))


def _at_end(end, a, b):
    """The density at an end over the probability between a and b, of which `_mass` is a multiple."""
    c = _nearest(a, b)
    return jnp.exp((c - end) * (c + end) / 2) / _mass(a, b)


# `_nearest` moves with an end, and what that changes cancels
@special(lambda _, a, b, *rest: -_at_end(a, a, b), lambda _, a, b, *rest: _at_end(b, a, b),
         lambda _, a, b, *rest: _at_end(rest[0], *rest), lambda _, a, b, *rest: -_at_end(rest[1], *rest))
def _log_share(a, b, low, high):
    """log of what of the probability between `low` and `high` is between a and b."""
    there, here = _nearest(low, high), _nearest(a, b)
    return (there - here) * (there + here) / 2 + jnp.log(_mass(a, b)) - jnp.log(_mass(low, high))


def _truncated_log(upper):
    def log(z, a, b):
        below, above = ~(z <= a), ~(z >= b)
        lower = where(below, _log_share(a, where(below, z, b), a, b), -INF)
        higher = where(above, _log_share(where(above, z, a), b, a, b), -INF)
        value, other = (higher, lower) if upper else (lower, higher)
        return where(value < -0.7, value, jnp.log1p(-jnp.exp(where(value < -0.7, -1, other))))
    return log


@special(lambda _, z, a, b: -z, lambda _, z, a, b: _at_end(a, a, b), lambda _, z, a, b: -_at_end(b, a, b))
def _truncnorm_logpdf(z, a, b):
    c = _nearest(a, b)
    return (c - z) * (c + z) / 2 - jnp.log(_mass(a, b))


# --- with ends ------------------------------------------------------------------------------------

# of the body by z a difference of large numbers, for small z and a near 1
@special(lambda _, z, a: where(a == 1, 0, (a - 1) / z) - 1,
         lambda _, z, a: _log_poisson_by_k(_, a, z) + 1 / a)
def _gamma_logpdf(z, a):
    return where(z == 0, sp.xlogy(a - 1, z) - sp.gammaln(a), log_poisson(a, z) + jnp.log(a) - jnp.log(z))


def _beta_logpdf_by_a(_, z, a, b):
    n = a + b
    return _log_poisson_by_k(_, a, n * z) - _log_poisson_by_k(_, n, n) + 1 / a - 1 / n


@special(lambda _, z, a, b: where(a == 1, 0, (a - 1) / z) - where(b == 1, 0, (b - 1) / (1 - z)),
         _beta_logpdf_by_a, lambda _, z, a, b: _beta_logpdf_by_a(_, 1 - z, b, a))
def _beta_logpdf(z, a, b):
    ends = sp.xlogy(a - 1, z) + sp.xlog1py(b - 1, -z) - sp.betaln(a, b)
    return where((z == 0) | (z == 1), ends, _log_binomial(a, b, z, 1 - z) + jnp.log(a) + jnp.log(b)
                 - jnp.log(a + b) - jnp.log(z) - jnp.log1p(-z))


def _beta_sf(z, a, b):
    """By the complement while that loses less than rounding 1 - z does."""
    below = sp.betainc(a, b, z)
    return where(jnp.exp(_beta_logpdf(z, a, b)) > below, 1 - below, sp.betainc(b, a, 1 - z))


def _wrapcauchy_logpdf(z, c):
    return jnp.log1p(-c) + jnp.log1p(c) - _LOG_2PI - jnp.log(jnp.square(1 - c) + 4 * c *
                                                             jnp.square(jnp.sin(z / 2)))


def _wrapcauchy_ppf(q, c, sign):
    turn = math.pi * q
    return 2 * jnp.arctan2((1 - c) * jnp.abs(jnp.sin(turn)), sign * (1 + c) * jnp.cos(turn))


def _chi2(form):
    return lambda z, df: form(z / 2, df / 2)


def _far_gamma(part, sign):
    """log of P(a, z) by `lower_gamma_series` and sign 1, of Q(a, z) by `upper_gamma_fraction` and sign -1."""
    def far(z, a):
        return log_poisson(a, z) + jnp.log(part(a, z))

    def slope(out, z, a):
        return sign * jnp.exp(_gamma_logpdf(z, a) - out)
    return special(slope, lambda out, z, a: -lax.random_gamma_grad(a, z) * slope(out, z, a))(far)


_GAMMA_TAILS = (lambda z, a: sp.gammainc(a, z)), (lambda z, a: sp.gammaincc(a, z))
_FAR_GAMMA = _far_gamma(lower_gamma_series, 1), _far_gamma(upper_gamma_fraction, -1)
_GAMMA = {"logpdf": _gamma_logpdf, "cdf": _GAMMA_TAILS[0], "sf": _GAMMA_TAILS[1],
          "logcdf": logarithm(*_GAMMA_TAILS, _FAR_GAMMA[0], 0.5),
          "logsf": logarithm(*_GAMMA_TAILS[::-1], _FAR_GAMMA[1], 2)}


# `betainc` beside it refuses a and b
@special(lambda out, z, a, b: jnp.exp(_beta_logpdf(z, a, b) - out), None, None)
def _far_beta(z, a, b):
    power, factor = beta_tail(a, b, z, 1 - z)
    return power + jnp.log(factor)


def _beta_cdf(z, a, b):
    return sp.betainc(a, b, z)


_BETA = {"logpdf": _beta_logpdf, "cdf": _beta_cdf, "sf": _beta_sf,
         "logcdf": logarithm(_beta_cdf, _beta_sf, _far_beta, 0.5),
         "logsf": logarithm(_beta_sf, _beta_cdf, lambda z, a, b: _far_beta(1 - z, b, a), 0.5)}


# --- counts ---------------------------------------------------------------------------------------

def _poisson_logpmf(k, mu):
    part = jnp.floor(k) < k
    return where(part, -INF, log_poisson(k, mu))


def _poisson_entropy(mu):
    """A sum below 100, above it an asymptotic series (Evans and Boersma, "The Entropy of ...", 1988).
    """
    small, safe = mu < 100, where(mu < 100, mu, 1)

    def step(k, total):
        log = log_poisson(k + jnp.zeros_like(safe), safe)
        return total - where(log > -INF, jnp.exp(log) * where(log > -INF, log, 0), 0)
    terms = lax.fori_loop(0, 240, step, jnp.zeros_like(safe))
    large = where(small, 100, mu)
    series = 0
    for c in (-863 / 2520, -9 / 80, -19 / 360, -1 / 24, -1 / 12):
        series = (series + c) / large
    return where(small, terms, (jnp.log(large) + _LOG_2PI + 1) / 2 + series)


def _betabinom_logpmf(k, n, a, b):
    part = jnp.floor(k) < k
    k = where(part, 0, k)
    log = sp.betaln(k + a, n - k + b) - sp.betaln(a, b) - sp.betaln(n - k + 1, k + 1) - jnp.log1p(n)
    return where(part, -INF, log)


def _probability(*parameters):
    return (parameters[-1] >= 0) & (parameters[-1] <= 1)


def _up_to_n(n, *_):
    return jnp.zeros_like(n), n / 2, n


def _some(a, *more):
    return functools.reduce(lambda x, y: x & (y > 0), more, a > 0)


LAWS = {
    # on the whole line
    "norm": Law("the normal distribution, with density exp(-x**2 / 2) / sqrt(2 pi)", {
        "logpdf": lambda z: -(jnp.square(z) + _LOG_2PI) / 2, "cdf": sp.ndtr, "logcdf": sp.log_ndtr,
        "ppf": sp.ndtri},
        symmetric=True),
    "cauchy": Law("Cauchy's distribution, with density 1 / (pi (1 + x**2))", {
        "logpdf": lambda z: -math.log(math.pi) - _log1p_square(z), "ppf": _cauchy_ppf,
        "cdf": lambda z: jnp.arctan2(jnp.ones_like(z), -z) / math.pi}, symmetric=True),
    "laplace": Law("Laplace's distribution, with density exp(-|x|) / 2", {
        "logpdf": lambda z: -jnp.abs(z) - math.log(2), "cdf": _laplace_cdf, "ppf": _laplace_ppf,
        "logcdf": lambda z: where(z < 0, z - math.log(2), jnp.log1p(-jnp.exp(-jnp.abs(z)) / 2))},
        symmetric=True),
    "logistic": Law("the logistic distribution, with density exp(-x) / (1 + exp(-x))**2", {
        "logpdf": lambda z: -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z))), "cdf": sp.expit,
        "ppf": sp.logit,
        "logcdf": lambda z: -jnp.logaddexp(-z, 0)}, symmetric=True, quantile="x"),
    "gumbel_r": Law("Gumbel's distribution of maxima, with density exp(-x - exp(-x))", _GUMBEL, quantile="p"),
    "gumbel_l": Law("Gumbel's distribution of minima, with density exp(x - exp(x))", _GUMBEL_L, quantile="p"),
    "gennorm": Law("the generalized normal distribution, with density proportional to exp(-|x|**beta)", {
        "logpdf": lambda z, beta: jnp.log(beta / 2) - sp.gammaln(1 / beta) - jnp.abs(z) ** beta,
        "cdf": _gennorm_cdf},
        "beta", valid=_some, symmetric=True),
    "t": Law("Student's distribution, with density proportional to (1 + x**2 / df)**(-(df + 1) / 2)", {
        "logpdf": _t_logpdf}, "df", valid=_some, symmetric=True),
    "vonmises": Law("von Mises' distribution of angles, with density proportional to exp(kappa cos(x))", {
        "logpdf": lambda z, kappa: -2 * kappa * jnp.square(jnp.sin(z / 2)) - jnp.log(sp.i0e(kappa)) -
        _LOG_2PI}, "kappa", valid=lambda kappa: kappa >= 0),
    # with ends
    "expon": Law("the exponential distribution, with density exp(-x) for x >= 0", {
        "logpdf": lambda z: -z, "logsf": lambda z: -z, "logcdf": log1mexp, "cdf": lambda z: -jnp.expm1(-z),
        "ppf": lambda q: -jnp.log1p(-q), "isf": lambda q: -jnp.log(q)}, support=positive),
    "gamma": Law("the gamma distribution, with density x**(a - 1) exp(-x) / gamma(a) for x >= 0", _GAMMA, "a",
                 support=positive, valid=_some),
    "chi2": Law("the chi-squared distribution, that of a sum of df squares of normal variables", {
        **{name: _chi2(form) for name, form in _GAMMA.items()},
        "logpdf": lambda z, df: _gamma_logpdf(z / 2, df / 2) - math.log(2)}, "df", support=positive,
        valid=_some),
    "pareto": Law("Pareto's distribution, with density b / x**(b + 1) for x >= 1", {
        "logpdf": lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z), "logsf": lambda z, b: -b * jnp.log(z),
        "cdf": lambda z, b: -jnp.expm1(-b * jnp.log(z)), "ppf": lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
        "isf": lambda q, b: jnp.exp(-jnp.log(q) / b)}, "b", support=lambda b: (1.0, 2.0, INF), valid=_some),
    "uniform": Law("the uniform distribution on [0, 1], with loc and scale on [loc, loc + scale]", {
        "logpdf": lambda z: z - z, "cdf": lambda z: z, "sf": lambda z: 1 - z, "ppf": lambda q: q,
        "isf": lambda q: 1 - q},
        support=unit),
    "beta": Law("the beta distribution, with density x**(a - 1) (1 - x)**(b - 1) / beta(a, b) on [0, 1]",
        _BETA, "a b", support=unit, valid=_some),
    "truncnorm": Law("the normal distribution between bounds, loc + scale a < loc + scale b", {
        "logpdf": _truncnorm_logpdf, "logcdf": _truncated_log(False), "logsf": _truncated_log(True)}, "a b",
        support=lambda a, b: (a, _nearest(a, b), b), valid=lambda a, b: a < b),
    "wrapcauchy": Law("the wrapped Cauchy distribution, with density "
                      "(1 - c**2) / (2 pi (1 + c**2 - 2c cos(x))) on [0, 2 pi]", {
        "logpdf": _wrapcauchy_logpdf,
        "cdf": lambda z, c: jnp.arctan2((1 + c) * jnp.sin(z / 2), (1 - c) * jnp.cos(z / 2)) / math.pi,
        "sf": lambda z, c: jnp.arctan2((1 + c) * jnp.sin(z / 2), (c - 1) * jnp.cos(z / 2)) / math.pi,
        "ppf": lambda q, c: _wrapcauchy_ppf(q, c, 1), "isf": lambda q, c: _wrapcauchy_ppf(q, c, -1)},
        "c", support=lambda c: (0.0, 1.0, 2 * math.pi), valid=lambda c: (c > 0) & (c < 1)),
    # counts
    "bernoulli": Law("one trial, which is 1 with probability p and 0 otherwise", {
        "logpmf": lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
        "cdf": lambda k, p: 1 - p * (1 - k), "sf": lambda k, p: p * (1 - k),
        "ppf": lambda q, p: where(q > 1 - p, 1.0, q - q)}, "p",
        support=unit, valid=_probability, counts=True),
    "binom": Law("how many of n trials succeed, which each does with probability p", {
        "logpmf": lambda k, n, p: _log_binomial(k, n - k, p, 1 - p),
        "cdf": lambda k, n, p: sp.betainc(n - k, k + 1, 1 - p),
        "sf": lambda k, n, p: sp.betainc(k + 1, n - k, p)},
        "n p", support=_up_to_n, valid=lambda n, p: (n >= 0) & _probability(p), counts=True),
    "betabinom": Law("how many of n trials succeed, with a probability that has the beta distribution", {
        "logpmf": _betabinom_logpmf}, "n a b", support=_up_to_n,
        valid=lambda n, a, b: (n >= 0) & _some(a, b), counts=True),
    "geom": Law("how many trials there are up to the first that succeeds, which each does with probability p",
                {
        "logpmf": lambda k, p: sp.xlog1py(k - 1, -p) + jnp.log(p), "logsf": lambda k, p: sp.xlog1py(k, -p),
        "cdf": lambda k, p: -jnp.expm1(sp.xlog1py(k, -p))}, "p", support=lambda p: (1.0, 2.0, INF),
        valid=lambda p: (p > 0) & (p <= 1), counts=True),
    "nbinom": Law("how many trials fail before n have succeeded, which each does with probability p", {
        "logpmf": lambda k, n, p: _log_binomial(n, k, p, 1 - p) + jnp.log(n) - jnp.log(n + k),
        "cdf": lambda k, n, p: sp.betainc(n, k + 1, p), "sf": lambda k, n, p: sp.betainc(k + 1, n, 1 - p)},
        "n p", support=positive, valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1), counts=True),
    "poisson": Law("Poisson's distribution, with probabilities mu**k exp(-mu) / k!", {
        "logpmf": _poisson_logpmf, "cdf": lambda k, mu: sp.gammaincc(k + 1, mu),
        "sf": lambda k, mu: sp.gammainc(k + 1, mu),
        "entropy": _poisson_entropy}, "mu", support=positive, valid=lambda mu: mu >= 0, counts=True),
}
