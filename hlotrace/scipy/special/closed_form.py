"""Functions with a formula in those of `lax`: of gamma and beta, of the error function, of logarithms.

"DLMF" is the NIST Digital Library of Mathematical Functions.
"""
import math
from fractions import Fraction

from ... import lax, numpy as jnp
from ...api.autodiff import jvp
from ...api.composite import composite
from ...lax.special import betainc as _betainc, igamma, igammac
from ...nn import functions as nn
from ...numpy.util import promote_args_inexact
from ...primitives.arrays.incomplete import STIRLING, log_star, polynomial
from ...primitives.arrays.special import i1_over_x, polygamma_slope, whole_order, zeta_p, zeta_slope
from ...primitives.common import np, static_int
from .promotion import special

__all__ = ["bernoulli", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "digamma", "entr", "erf",
           "erfc", "erfinv", "expit", "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn",
           "i0", "i0e", "i1", "i1e", "kl_div", "log_softmax", "loggamma", "logit", "logsumexp",
           "multigammaln", "poch", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy", "zeta"]


def _named(name, fun, doc, arguments, shown, *derivatives, **rules):
    fun.__name__ = fun.__qualname__ = name
    example = f">>> round(float(jax.scipy.special.{name}({arguments})), 4)"
    fun.__doc__ = f"{doc}\n\n    {example}\n    {shown}\n    "
    return special(*derivatives, **rules)(fun)


# --- one row each ---------------------------------------------------------------------------------

erf = _named("erf", lambda x: lax.erf(x), "Error function  (DLMF 7.2.1).", "0.5", 0.5205)
erfc = _named("erfc", lambda x: lax.erfc(x), "1 - erf(x), exact where that is small.", "1.", 0.1573)
erfinv = _named("erfinv", lambda x: lax.erf_inv(x), "The number whose error function is x.", "0.5", 0.4769)
digamma = _named("digamma", lambda x: lax.digamma(x),
                 "Derivative of the logarithm of gamma(x)  (DLMF 5.2.2).", "1.", -0.5772)
gammaln = _named("gammaln", lambda x: lax.lgamma(x), "log|gamma(x)|.", "5.", 3.1781)
gammainc = _named("gammainc", lambda a, x: igamma(a, x),
                  "Regularized lower incomplete gamma function  (DLMF 8.2.4).", "2., 1.", 0.2642)
gammaincc = _named("gammaincc", lambda a, x: igammac(a, x),
                   "Regularized upper incomplete gamma function  (DLMF 8.2.4).", "2., 1.", 0.7358)
betainc = _named("betainc", lambda a, b, x: _betainc(a, b, x),
                 "Regularized incomplete beta function  (DLMF 8.17.2).", "2., 3., 0.4", 0.5248)
i0e = _named("i0e", lambda x: lax.bessel_i0e(x), "exp(-|x|) I0(x)  (DLMF 10.25.2).", "1.", 0.4658)
i1e = _named("i1e", lambda x: lax.bessel_i1e(x), "exp(-|x|) I1(x)  (DLMF 10.25.2).", "1.", 0.2079)
i0 = _named("i0", lambda x: jnp.i0(x), "Modified Bessel function of order 0.", "1.", 1.2661)
i1 = _named("i1", lambda x: lax.bessel_i1e(x) * jnp.exp(jnp.abs(x) / 2) * jnp.exp(jnp.abs(x) / 2),
            "Modified Bessel function of order 1.", "1.", 0.5652,
            lambda out, x: jnp.i0(x) - i1_over_x(out, x, 1))
expit = _named("expit", lambda x: lax.logistic(x), "1 / (1 + exp(-x)).", "1.", 0.7311, complex=True)


# --- gamma and beta -------------------------------------------------------------------------------

@special()
def gammasgn(x):
    """The sign of gamma(x): that of x at 0, NaN at its other poles and at -inf.

    >>> round(float(jax.scipy.special.gammasgn(-0.5)), 4)
    -1.0
    """
    floor = jnp.floor(x)
    sign = jnp.where((x > 0) | (floor % 2 == 0), 1.0, -1.0)
    sign = jnp.where(x == 0, jnp.copysign(1.0, x), sign)
    return jnp.where(jnp.isnan(x) | (x < 0) & (floor == x), jnp.nan, sign)


def _right_loggamma(z):
    """For Re z >= 0.5: Stirling's series at a large z, by the recurrence  (DLMF 5.11.1, 5.5.1).
    """
    total, steps = 0, 8 if z.dtype.itemsize == 16 else 4
    for k in range(steps):
        total = total + jnp.log(z + k)
    w = z + steps
    series, power = 0, 1 / w
    for k in range(1, 12):
        series = series + float(bernoulli_fractions(2 * k)[-1]) / (2 * k * (2 * k - 1)) * power
        power = power / jnp.square(w)
    return (w - 0.5) * jnp.log(w) - w + math.log(2 * math.pi) / 2 + series - total


def _complex_loggamma(z):
    left, below = jnp.real(z) < 0.5, jnp.imag(z) < 0
    up = jnp.where(below, jnp.conj(z), z)
    value = _right_loggamma(jnp.where(left, 1 - up, up))
    # for Im z > 0 log(sin(pi z)) is one branch of log(i / 2 exp(-i pi z) (1 - exp(2 i pi z))), DLMF 5.5.3
    turn = jnp.where(left, up, 0.25j)
    turn = turn - jnp.floor(jnp.real(turn)), turn
    reflected = math.log(2 * math.pi) - 0.5j * math.pi + 1j * math.pi * turn[1] - jnp.log(
        -jnp.expm1(2j * math.pi * turn[0])) - value
    value = jnp.where(left, reflected, value)
    pole = (jnp.imag(z) == 0) & (jnp.real(z) <= 0) & (jnp.floor(jnp.real(z)) == jnp.real(z))
    return jnp.where(pole, complex("nan+nanj"), jnp.where(below, jnp.conj(value), value))


@special(complex=True)
def loggamma(x):
    """The principal logarithm of gamma(x), continuous but for a cut along the negative reals.

    NaN for real x < 0; for complex x by Stirling's series and reflection, with values at the cut as from
    above (DLMF 5.11.1, 5.5.3).

    >>> jax.scipy.special.loggamma(1. + 1.j).round(4)
    Array(-0.6509-0.30159998j, dtype=complex64, weak_type=True)
    """
    if x.dtype.kind == "c":
        return _complex_loggamma(x)
    return jnp.where(x < 0, jnp.nan, lax.lgamma(jnp.where(x < 0, 1, x)))


@special(complex=True)
def gamma(x):
    """Gamma function, also of complex numbers  (DLMF 5.2.1).

    >>> round(float(jax.scipy.special.gamma(4.5)), 4)
    11.6317
    """
    if x.dtype.kind == "c":
        return jnp.exp(_complex_loggamma(x))
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


def _digamma_gap(a, b):
    """digamma(a) - digamma(a + b), without the cancellation of large ones  (DLMF 5.11.2)."""
    total = a + b
    far = (a > 10) & (total > 10) & (total < jnp.inf)
    x, y, step = jnp.where(far, a, 10), jnp.where(far, total, 10), jnp.where(far, b, 0)

    def rest(x):
        terms = [(2 * k + 1) * c for k, c in enumerate(STIRLING)]
        return polynomial(1 / jnp.square(x), terms) / jnp.square(x)
    series = rest(y) - rest(x) - jnp.log1p(step / x) - step / x / y / 2
    return jnp.where(far, series, jnp.where(a == total, 0, lax.digamma(a) - lax.digamma(total)))


@special(lambda out, a, b: _digamma_gap(a, b), lambda out, a, b: _digamma_gap(b, a))
def betaln(a, b):
    """log|B(a, b)|, without the cancellation of large logarithms (DLMF 5.12.1, 5.11.1).

    >>> round(float(jax.scipy.special.betaln(2., 3.)), 4)
    -2.4849
    """
    # not min and max: at a tie their derivatives are halves, and second derivatives would be wrong
    small, large = jnp.where(a < b, a, b), jnp.where(a < b, b, a)
    positive = small > 0
    p, q = jnp.where(positive, small, 1), jnp.where(positive, large, 1)
    total = p + q
    under = p / total < jnp.finfo(a.dtype).tiny
    log_part = jnp.where(under, jnp.log(p) - jnp.log(total), jnp.log(jnp.where(under, 1, p) / total))
    inside = (math.log(2 * math.pi) / 2 - jnp.log(p) / 2 + p * log_part - (q - 0.5) *
              jnp.log1p(p / q) + log_star(p) + log_star(q) - log_star(total))
    # where small is negative and large is not little, its own logarithms cancel
    apart = ~positive & (large > 10) & (large < jnp.inf) & (a + b > 1)
    q = jnp.where(apart, large, 10)
    total = jnp.where(apart, a + b, 10)
    fall = jnp.where(apart, small, 0)
    ratio = fall - fall * jnp.log(q) - (total - 0.5) * jnp.log1p(fall / q) + log_star(q) - log_star(total)
    outside = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)
    outside = jnp.where(apart, lax.lgamma(small) + ratio, outside)
    outside = jnp.where(positive & (small < jnp.inf) & (large == jnp.inf), -jnp.inf, outside)
    return jnp.where(positive & (large < jnp.inf), inside, outside)


beta = _named("beta", lambda a, b: gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b)),
              "Beta function gamma(a) gamma(b) / gamma(a + b).", "2., 4.", 0.05)


def _poch(z, m):
    inside = (z > 0) & (m > 0)       # gamma(m) / B(z, m)
    p, q = jnp.where(inside, z, 1), jnp.where(inside, m, 1)
    log = jnp.where(inside, lax.lgamma(q) - betaln(p, q), lax.lgamma(z + m) - lax.lgamma(z))
    return jnp.where(m == 0, 1, gammasgn(z) * gammasgn(z + m) * jnp.exp(log))


def _poch_by_z(_, z, m):
    near = (jnp.abs(z) < 0.5) & (z + m > 0) & (m != 0)

    def value(z):       # near z = 0, the pole of gamma(z), from gamma(z + 1)
        x = jnp.where(near, z, 0.5)
        from_next = x * jnp.exp(lax.lgamma(x + jnp.where(near, m, 1)) - lax.lgamma(x + 1))
        return jnp.where(near, from_next, _poch(jnp.where(near, 1, z), m))
    slope = jvp(value, (z,), (jnp.ones_like(z),))[1]
    start = (m == 0) & (z > 0)      # where it is 0, and has a slope by m
    return jnp.where(start, m * lax.polygamma(jnp.ones_like(z), jnp.where(start, z, 1)), slope)


# near m = 0 the slope by m is a small difference of those of gamma(m) and B(z, m)
@special(_poch_by_z,
         lambda out, z, m: out * lax.digamma(z + m))
def poch(z, m):
    """Rising factorial gamma(z + m) / gamma(z)  (DLMF 5.2.5); NaN where z is at a pole, and 1 for m = 0.

    >>> round(float(jax.scipy.special.poch(1.5, 2.)), 4)
    3.75
    """
    return _poch(z, m)


def factorial(n, exact=False):
    """gamma(n + 1), 0 for negative n.

    Raises:
        NotImplementedError: for exact=True, which arrays of fixed width cannot be.

    >>> round(float(jax.scipy.special.factorial(4.)), 4)
    24.0
    """
    if exact:
        raise NotImplementedError("scipy.special.factorial: exact=True is not supported; math.factorial is "
                                  "exact")
    return _factorial(n)


def _corrected(value, true, where):
    """`value` with the derivative that it has, and where known the value without rounding errors."""
    return value + lax.stop_gradient(jnp.where(where, true - value, 0))


@special()
def _factorial(n):
    value = jnp.exp(lax.lgamma(jnp.where(n < 0, 0, n) + 1))
    known = [float(math.factorial(k)) for k in range(171)
             if math.factorial(k) < float(jnp.finfo(n.dtype).max)]
    place = jnp.clip(n, 0, len(known) - 1)
    value = _corrected(value, jnp.array(known, n.dtype)[place.astype(int)], n == jnp.floor(place))
    return jnp.where(n < 0, 0, value)


@composite(static=("repetition",))
def comb(N, k, *, repetition=False):
    """Ways to choose k of N things; 0 where there are none.

    Args:
        repetition: things may be chosen again.

    >>> round(float(jax.scipy.special.comb(5, 2)), 4)
    10.0
    """
    N, k = promote_args_inexact("scipy.special.comb", N, k)
    N = N + k - 1 if repetition else N
    inside = (N >= 0) & (k >= 0) & (N >= k)
    n, m = jnp.where(inside, N, 1), jnp.where(inside, k, 1)
    # 1 / ((n + 1) B(n - m + 1, m + 1)), DLMF 1.2.6 and 5.12.1
    value = jnp.exp(-betaln(n - m + 1, m + 1)) / (n + 1)
    whole = (n == jnp.floor(n)) & (m == jnp.floor(m)) & (value < 0.04 / float(jnp.finfo(value.dtype).eps))
    return jnp.where(inside, _corrected(value, jnp.round(value), whole), 0)


def polygamma(n, x):
    """The n-th derivative of digamma at x, for integers n.

    Raises:
        ValueError: for floating-point n.

    >>> round(float(jax.scipy.special.polygamma(1, 2.)), 4)
    0.6449
    """
    if jnp.result_type(n).kind not in "iub":
        raise ValueError(f"scipy.special.polygamma: n must be of integer type, got {jnp.result_type(n).name}")
    return _polygamma(n, x)


@special(None, lambda out, n, x: polygamma_slope(*jnp.broadcast_arrays(n, x)))
def _polygamma(n, x):
    first = n == 0
    last, x = jnp.broadcast_arrays(jnp.where(first, 0, n - 1), x)
    return jnp.where(first, lax.digamma(x), polygamma_slope(last, x))


def zeta(x, q=None):
    """Hurwitz zeta function, the sum of (k + q)**-x over k = 0, 1, ...  (DLMF 25.11.1).

    Raises:
        NotImplementedError: without q.

    >>> round(float(jax.scipy.special.zeta(2., 1.)), 4)
    1.6449
    """
    if q is None:
        raise NotImplementedError("scipy.special.zeta: the zeta function of one argument is not supported; "
                                  "Riemann's, for x > 1, is zeta(x, 1)")
    return _zeta(x, q)


def _euler_maclaurin(x, q):          # DLMF 25.11.28, whose terms have a derivative in x; for q > 0
    start, order = 9, 12
    z = q + start
    total = sum((q + k) ** -x for k in range(start)) + z ** (1 - x) / (x - 1) + z ** -x / 2
    factor = x * z ** (-x - 1)
    for j in range(1, order + 1):
        total = total + float(bernoulli_fractions(2 * j)[-1] / math.factorial(2 * j)) * factor
        factor = factor * (x + 2 * j - 1) * (x + 2 * j) / z ** 2
    return total


@special(lambda _, x, q: jvp(lambda x: _euler_maclaurin(x, q), (x,), (jnp.ones_like(x),))[1],
         lambda _, x, q: zeta_slope(*jnp.broadcast_arrays(x, q)))
def _zeta(x, q):
    return whole_order(zeta_p.bind, *jnp.broadcast_arrays(x, q))


def multigammaln(a, d):
    """log of the gamma function of symmetric matrices of d rows, d a known number  (DLMF 35.3.4).

    >>> round(float(jax.scipy.special.multigammaln(3., 2)), 4)
    1.5502
    """
    count, (a,) = int(d), promote_args_inexact("scipy.special.multigammaln", a)
    halves = jnp.arange(count, dtype=jnp.result_type(a)) / 2
    return gammaln(jnp.expand_dims(a, -1) - halves).sum(-1) + count * (count - 1) / 4 * math.log(math.pi)


def bernoulli(n):
    """The Bernoulli numbers B0 to Bn, with B1 = -1/2  (DLMF 24.2.1).

    Raises:
        ValueError: for negative n.

    >>> jax.scipy.special.bernoulli(4).round(4)
    Array([ 1.        , -0.5       ,  0.16669999,  0.        , -0.0333    ], dtype=float32)
    """
    n = static_int(n, "scipy.special.bernoulli: n")
    if n < 0:
        raise ValueError(f"scipy.special.bernoulli: n must be a non-negative integer, got {n}")
    numbers = np.zeros(n + 1)
    exact = bernoulli_fractions(min(n, 60))
    numbers[:61] = exact
    even = np.arange(62.0, n + 1, 2)    # zeta(62) is 1 in float64: DLMF 25.6.2
    with np.errstate(over="ignore"):
        numbers[62::2] = np.multiply.accumulate(-even * (even - 1) / (2 * np.pi)**2) * float(exact[-1])
        return jnp.array(numbers)


def bernoulli_fractions(n):
    numbers = [Fraction(1)]
    for m in range(1, n + 1):       # DLMF 24.5.3
        numbers.append(Fraction(0) if m % 2 and m > 1 else -sum(
            math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1))
    return numbers


# --- logarithms, probabilities --------------------------------------------------------------------

@special(lambda out, x, y: jnp.log(y), lambda out, x, y: x / y, complex=True)
def xlogy(x, y):
    """x log(y), and 0 for x = 0 whatever y is but NaN.

    >>> round(float(jax.scipy.special.xlogy(0., 0.)), 4)
    0.0
    """
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log(jnp.where((x == 0) & (y == y), 1, y)))


@special(lambda out, x, y: jnp.log1p(y), lambda out, x, y: x / (1 + y), complex=True)
def xlog1py(x, y):
    """x log(1 + y), and 0 for x = 0 whatever y is but NaN.

    >>> round(float(jax.scipy.special.xlog1py(2., 1.)), 4)
    1.3863
    """
    return jnp.where((x == 0) & (y == y), 0, x * jnp.log1p(jnp.where((x == 0) & (y == y), 1, y)))


entr = _named("entr", lambda x: jnp.where(x < 0, -jnp.inf, -xlogy(x, x)),
              "-x log(x), 0 at 0 and -inf below.", "0.5", 0.3466,
              lambda out, x: jnp.where(x < 0, 0, -jnp.log(jnp.where(x < 0, 1, x)) - 1))


def _positive(p, q):
    """(where both are positive, p and q there and 1 elsewhere)."""
    inside = (p > 0) & (q > 0)
    return inside, jnp.where(inside, p, 1), jnp.where(inside, q, 1)


def _rel_entr_by_p(_, p, q):
    inside, x, y = _positive(p, q)
    return jnp.where(inside, jnp.log(x) - jnp.log(y) + 1, 0)


def _rel_entr_by_q(_, p, q):
    inside, x, y = _positive(p, q)
    return jnp.where(inside, -x / y, 0)


@special(_rel_entr_by_p, _rel_entr_by_q)
def rel_entr(p, q):
    """p log(p / q), for p = 0 and q >= 0 zero, and infinite where p or q is out of range.

    >>> round(float(jax.scipy.special.rel_entr(0.5, 0.25)), 4)
    0.3466
    """
    inside, x, y = _positive(p, q)
    nothing = (p == 0) & (q >= 0)
    return jnp.where(inside, x * (jnp.log(x) - jnp.log(y)), jnp.where(nothing, 0, jnp.where(
        jnp.isnan(p) | jnp.isnan(q), jnp.nan, jnp.inf)))


@special()
def kl_div(p, q):
    """p log(p / q) - p + q, what relative entropy is made of.

    >>> round(float(jax.scipy.special.kl_div(0.5, 0.25)), 4)
    0.0966
    """
    entropy = rel_entr(p, q)
    return jnp.where((p < 0) | (q <= 0), entropy, entropy - p + q)


logit = _named("logit", lambda x: jnp.log(x / (1 - x)), "log(x / (1 - x)), the inverse of `expit`.", "0.75",
               1.0986, lambda out, x: 1 / x + 1 / (1 - x), complex=True)


def _power(exponent, power, log):
    flat = power == 0
    return jnp.where(flat, log, jnp.expm1(exponent) / jnp.where(flat, 1, power))


def _slope_by_power(power, log):
    """(exp(u) (u - 1) + 1) / power**2 for u = power * log; where u is small by its series, as at power 0."""
    u = power * log
    small = jnp.abs(u) < 0.5
    near, far, total = jnp.where(small, u, 0), jnp.where(small | (jnp.real(u) == -jnp.inf), 1, u), 0.0
    for k in range(14, -1, -1):
        total = 1 / (k + 2) + total * near / (k + 1)
    whole = jnp.where(jnp.real(u) == -jnp.inf, 0, jnp.exp(far) * (far - 1)) + 1
    return jnp.where(small, jnp.square(jnp.where(small, log, 0)) * total,
                     whole / jnp.square(jnp.where(small, 1, power)))


boxcox = _named("boxcox", lambda x, lmbda: _power(lmbda * jnp.log(x), lmbda, jnp.log(x)),
                "(x**lmbda - 1) / lmbda, log(x) for lmbda = 0 (Box and Cox, 1964).", "4., 0.5", 2.0,
                lambda out, x, lmbda: jnp.exp(xlogy(lmbda - 1, x)),
                lambda out, x, lmbda: _slope_by_power(lmbda, jnp.log(x)), complex=True)
boxcox1p = _named("boxcox1p", lambda x, lmbda: _power(lmbda * jnp.log1p(x), lmbda, jnp.log1p(x)),
                  "`boxcox` of 1 + x, exact for small x.", "3., 0.5", 2.0,
                  lambda out, x, lmbda: jnp.exp(xlog1py(lmbda - 1, x)),
                  lambda out, x, lmbda: _slope_by_power(lmbda, jnp.log1p(x)), complex=True)


logsumexp = nn.logsumexp


def softmax(x, /, *, axis=None):
    """exp(x) / sum(exp(x)) along `axis`, None for all.

    >>> jax.scipy.special.softmax(jnp.array([0., 1.])).round(4)
    Array([0.2689    , 0.73109996], dtype=float32)
    """
    return nn.softmax(x, axis)


def log_softmax(x, /, *, axis=None):
    """log(softmax(x)) along `axis`, None for all.

    >>> jax.scipy.special.log_softmax(jnp.array([0., 1.])).round(4)
    Array([-1.3133    , -0.31329998], dtype=float32)
    """
    return nn.log_softmax(x, axis)
