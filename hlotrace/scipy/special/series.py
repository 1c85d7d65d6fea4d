"""Functions without a formula: integrals of exponentials, by Chebyshev fits, series and continued fractions.

"DLMF" is the NIST Digital Library of Mathematical Functions.
"""
import functools
import math

from ... import lax, numpy as jnp
from ...api.autodiff import jvp
from ...api.composite import composite
from ...numpy.util import promote_args_inexact
from ...primitives.arrays.incomplete import continued_fraction, repeated
from ...primitives.arrays.rational_fits import chebyshev
from ...primitives.common import np
from .closed_form import bernoulli_fractions, gammasgn, xlogy
from .promotion import special

__all__ = ["bessel_jn", "dawsn", "erfcinv", "erfcx", "exp1", "expi", "expn", "fresnel", "hyp1f1", "hyp2f1",
           "log_ndtr", "ndtr", "ndtri", "owens_t", "sici", "spence", "wofz"]

_ROOT_PI, _ROOT_TAU = math.sqrt(math.pi), math.sqrt(math.tau)


def _half_eps(x):
    return float(jnp.finfo(x.dtype).eps) / 2


def _along(value, place):
    """The derivative by an argument, in forward mode: the loop is run with its tangents."""
    def rule(_, *args):
        args = jnp.broadcast_arrays(*args)

        def one(v):
            return value(*args[:place], v, *args[place + 1:])
        return jvp(one, (args[place],), (jnp.ones_like(args[place]),))[1]
    return rule


# --- of the normal distribution -------------------------------------------------------------------

def _rest(x, far, near, sign):
    """near(x), 1 less a product that is nearly 1 where `far`: there the asymptotic series of what is left
    (DLMF 7.12.1), whose terms are (2k - 1)!! (sign / 2 x**2)**k."""
    u, total = sign * jnp.square(1 / jnp.where(far, x, 10)) / 2, 0.0
    for k in range(12, 0, -1):
        total = (total + 1) * (2 * k - 1) * u
    return jnp.where(far, -total, near(jnp.where(far, 0, x)))


def _erfcx_dx(out, x):
    if x.dtype.kind == "c":
        return 2 * x * out - 2 / _ROOT_PI
    return -2 / _ROOT_PI * _rest(x, x > 10, lambda x: 1 - _ROOT_PI * x * out, -1)


@special(_erfcx_dx)
def _erfcx(x):
    """For x >= 0."""
    return chebyshev(1 - 6 / (x + 3), "erfcx") / (1 + 2 * x)


@special(_erfcx_dx, complex=True)
def erfcx(x):
    """exp(x**2) erfc(x), also of complex numbers  (DLMF 7.2.2, 7.2.3).

    >>> round(float(jax.scipy.special.erfcx(10.)), 4)
    0.0561
    """
    if x.dtype.kind == "c":
        return wofz(1j * x)
    upper = _erfcx(jnp.abs(x))
    return jnp.where(x < 0, 2 * jnp.exp(jnp.square(jnp.where(x < 0, x, 0))) - upper, upper)


@special()
def ndtr(x):
    """Distribution function of the normal distribution.

    >>> round(float(jax.scipy.special.ndtr(1.)), 4)
    0.8413
    """
    return lax.erfc(x * -math.sqrt(0.5)) / 2


def log_ndtr(x, series_order=3):
    """log(ndtr(x)), exact where that is small.

    Far below, `series_order` terms of its asymptotic series (DLMF 7.12.1).

    Raises:
        TypeError: where series_order is no int.
        ValueError: where it is not from 0 to 30.

    >>> round(float(jax.scipy.special.log_ndtr(-10.)), 4)
    -53.2313
    """
    if not isinstance(series_order, int):
        raise TypeError("scipy.special.log_ndtr: series_order must be a Python integer, got "
                        f"{series_order!r}")
    if not 0 <= series_order <= 30:
        raise ValueError(f"scipy.special.log_ndtr: series_order must be from 0 to 30, got {series_order}")
    return _log_ndtr(series_order)(x)


@functools.cache
def _log_ndtr(order):
    def log_ndtr(x):
        # where the first term left out is small enough, if more than a few are taken
        far = x < -(50.0 if x.dtype.itemsize == 8 else 10.0)
        low = jnp.where(far, x, -50)
        term, total = 1.0, 1.0
        for n in range(1, order + 1):
            term = term * -(2 * n - 1) / jnp.square(low)
            total = total + term
        ratio = _erfcx(jnp.abs(x) * math.sqrt(0.5)) / 2
        ratio = jnp.where(far, total / (low * -math.sqrt(2 * math.pi)), ratio)
        power = -jnp.square(x) / 2
        other = ratio * jnp.exp(power)      # for x > 0 the probability above x
        rest = 1 - other
        log = jnp.log(jnp.where(x < 0, ratio, rest))
        # log(1 - other) by log(rest), `rest` rounded: Goldberg, ACM Computing Surveys 23 (1991), theorem 4
        above = jnp.where(rest == 1, -other, log * other / jnp.where(rest == 1, 1, 1 - rest))
        return jnp.where(x < 0, log + power, above)
    return special(_log_ndtr_dx)(log_ndtr)


def _log_ndtr_dx(_, x):
    # the density over ndtr, by erfcx, whose slopes do not cancel (DLMF 7.2.3), as an expression of its own:
    # what it had in common with the value would be written out
    low, ratio = x < 0, _erfcx(jnp.abs(x * math.sqrt(0.5))) / 2
    power = jnp.exp(-jnp.square(jnp.where(low, 0, x)) / 2)
    return power / jnp.where(low, ratio, 1 - ratio * power) / math.sqrt(2 * math.pi)


@special(lambda out, p: math.sqrt(2 * math.pi) * jnp.exp(jnp.square(out) / 2))
def ndtri(p):
    """The number below which a normal variable is with probability p: inverse of `ndtr`.

    >>> round(float(jax.scipy.special.ndtri(0.975)), 4)
    1.96
    """
    q, tail = p - 0.5, jnp.minimum(p, 1 - p)
    root = jnp.sqrt(-2 * jnp.log(tail))
    outer = jnp.sign(q) * (root - chebyshev(1.5 - 25 / (root + 8), "ndtri tail"))
    return jnp.where(jnp.abs(q) < 0.4, q * chebyshev(12.5 * jnp.square(q) - 1, "ndtri middle"), outer)


@special(lambda out, y: -_ROOT_PI / 2 * jnp.exp(jnp.square(out)))
def erfcinv(y):
    """The number whose `erfc` is y.

    >>> round(float(jax.scipy.special.erfcinv(0.1)), 4)
    1.1631
    """
    return ndtri(y / 2) * -math.sqrt(0.5)


@special(lambda _, h, a: jnp.exp(jnp.square(h) / -2) * lax.erf(a * h * math.sqrt(0.5)) / -2 / _ROOT_TAU,
         lambda _, h, a: jnp.exp((jnp.square(h) + jnp.square(a * h)) / -2) / (1 + jnp.square(a)) / math.tau)
def owens_t(h, a):
    """Owen's T function (Owen, 1956).

    It is the integral of exp(-h**2 (1 + x**2) / 2) / (1 + x**2) / (2 pi) from 0 to a, by 30 points of Gauss;
    for |a| > 1 by T(h, a) + T(ah, 1/a) = (ndtr(h) + ndtr(ah)) / 2 - ndtr(h) ndtr(ah), for h, a >= 0.

    >>> round(float(jax.scipy.special.owens_t(1., 0.5)), 4)
    0.0431
    """
    height, slope = jnp.abs(h), jnp.abs(a)
    steep = slope > 1
    width = jnp.where(steep, 1 / jnp.where(steep, slope, 1), slope)
    start = jnp.where(steep, jnp.where(jnp.isinf(slope) & (height == 0), 0, slope * height), height)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    total = 0
    for s, w in zip((nodes + 1) / 2, weights / 2):
        x = jnp.square(width * float(s))
        total = total + float(w) * jnp.exp(jnp.square(start) * (1 + x) * -0.5) / (1 + x)
    flat = total * width / (2 * math.pi)
    p, q = ndtr(-height), ndtr(-start)      # upper tails, which do not cancel
    other = (p + q) / 2 - p * q
    return jnp.sign(a) * jnp.where(steep, other - flat, flat)


# --- exponential integrals ------------------------------------------------------------------------

def _expn_value(n, x):
    # for x > 1 the continued fraction 8.19.17, else the series 8.19.8 of the DLMF
    near, far = (x > 0) & (x <= 1), (x > 1) & (x < jnp.inf)
    y, z = jnp.where(near, x, 0.5), jnp.where(far, x, 2.0)
    order = jnp.where(n >= 1, n, 1.0)
    fraction = jnp.exp(-z) * continued_fraction(lambda k, m, v: (-k * (m - 1 + k), v + m + 2 * k), order, z)
    gammas = jnp.exp((order - 1) * jnp.log(y) - lax.lgamma(order)) * jnp.where((order - 1) % 2 == 0, 1.0,
                                                                               -1.0)

    def step(k, m, v, power, total):
        power = -power * v / k
        gap = k - m + 1
        term = jnp.where(gap == 0, 0.0, power / jnp.where(gap == 0, 1.0, gap))
        return (jnp.abs(power) > jnp.abs(total) * _half_eps(v)) & (k < 40), [power, total - term]
    first = jnp.where(order == 1, 0.0, 1 / jnp.where(order == 1, 1.0, order - 1))
    psi = jnp.where(order == 1, -np.euler_gamma, lax.digamma(order))
    series = gammas * (psi - jnp.log(y)) + repeated(step, (order, y), [jnp.ones_like(y), first])[-1]
    value = jnp.where(near, series, jnp.where(far, fraction, 0))
    value = jnp.where(x == 0, jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), jnp.inf), value)
    value = jnp.where(n == 0, jnp.exp(-x) / x, value)
    return jnp.where((n < 0) | (x < 0) | jnp.isnan(n + x), jnp.nan, value)


@special(None, lambda out, n, x: -expn(jnp.maximum(n - 1, 0), x))
def expn(n, x):
    """Generalized exponential integral of integer order n  (DLMF 8.19.3); NaN for negative n and x.

    >>> round(float(jax.scipy.special.expn(2, 1.)), 4)
    0.1485
    """
    n, x = jnp.broadcast_arrays(lax.stop_gradient(jnp.floor(n)), x)
    return _expn_value(n, x)


def _ei_near(x):
    """For -1 <= x <= 2  (DLMF 6.6.1)."""
    return np.euler_gamma + jnp.log(jnp.abs(x)) + x * chebyshev((2 * x - 1) / 3, "ei near")


def _e1_far(x):
    """For x >= 1."""
    return jnp.exp(-x) * chebyshev(1 - 6 / (x + 2), "e1 far") / x


@special(lambda out, x: -jnp.exp(-x) / x)
def exp1(x):
    """Exponential integral E1  (DLMF 6.2.1); NaN for negative x.

    >>> round(float(jax.scipy.special.exp1(1.)), 4)
    0.2194
    """
    value = jnp.where(x < 1, -_ei_near(jnp.maximum(-x, -1)), _e1_far(jnp.maximum(x, 1)))
    return jnp.where(x >= 0, value, jnp.nan)


@special(lambda out, x: jnp.exp(x) / x)
def expi(x):
    """Exponential integral Ei  (DLMF 6.2.5).

    >>> round(float(jax.scipy.special.expi(1.)), 4)
    1.8951
    """
    far = jnp.clip(x, 2, jnp.finfo(x.dtype).max)
    root = jnp.exp(far / 2)     # far of 90 has a finite value in float32
    rising = root / far * chebyshev(1 - 32 / (far + 14), "ei far") * root
    return jnp.where(x < -1, -_e1_far(jnp.maximum(-x, 1)),
                     jnp.where(x > 2, rising, _ei_near(jnp.clip(x, -1, 2))))


def _spence(x):
    low, high = x < 0.5, x > 2
    y = jnp.where(low, 1 - x, jnp.where(high, x / jnp.where(high, x - 1, 1), x))
    y = jnp.where((y > 0) & (y < 3), y, 1)
    u = -jnp.log(y)
    total = 0
    for k in range(9, 0, -1):
        total = (total + float(bernoulli_fractions(2 * k)[-1]) / math.factorial(2 * k + 1)) * jnp.square(u)
    value = u - jnp.square(u) / 4 + u * total
    reflected = math.pi ** 2 / 6 - xlogy(jnp.log1p(-jnp.where(low, x, 0)), jnp.where(low, x, 1)) - value
    inverted = -math.pi ** 2 / 6 - jnp.square(jnp.log(jnp.where(high, x - 1, 1))) / 2 - value
    value = jnp.where(low, reflected, jnp.where(high, inverted, value))
    return jnp.where(x >= 0, value, jnp.nan)


# log(x) / (1 - x), which is infinite at 0
@special(lambda out, x: jnp.where(x == 0, -jnp.inf, _along(_spence, 0)(out, jnp.where(x == 0, 1, x))))
def spence(x):
    """The dilogarithm of 1 - x  (DLMF 25.12.2), by the Bernoulli numbers of -log(x) near 1; NaN for x < 0.

    >>> round(float(jax.scipy.special.spence(0.5)), 4)
    0.5822
    """
    return _spence(x)


# --- of the error function of complex numbers -----------------------------------------------------

@functools.cache
def _weideman(n):
    """(L, coefficients): Weideman, "Computation of the complex error function", SIAM J. Numer. Anal. 31.
    """
    m = 2 * n
    scale = math.sqrt(n / math.sqrt(2))
    t = scale * np.tan(np.arange(-m + 1, m) * np.pi / m / 2)
    f = np.concatenate([[0], np.exp(-t * t) * (scale ** 2 + t * t)])
    a = np.real(np.fft.fft(np.fft.fftshift(f))) / (2 * m)
    return scale, [float(c) for c in a[1:n + 1]]


def _faddeeva(z):
    """w(z) for Im z >= 0."""
    scale, coefficients = _weideman(48 if z.dtype.itemsize == 16 else 24)
    ratio = (scale + 1j * z) / (scale - 1j * z)
    total = 0
    for c in reversed(coefficients):
        total = total * ratio + c
    return 2 * total / jnp.square(scale - 1j * z) + 1 / _ROOT_PI / (scale - 1j * z)


@special(lambda out, z: -2 * z * out + 2j / _ROOT_PI, complex=True)
def wofz(z):
    """Faddeeva function exp(-z**2) erfc(-iz)  (DLMF 7.2.3); a complex number also for real z.

    >>> jax.scipy.special.wofz(1. + 1.j).round(4)
    Array(0.3047+0.2082j, dtype=complex64)
    """
    z = z + 0j
    below = jnp.imag(z) < 0
    upper = _faddeeva(jnp.where(below, -z, z))
    return jnp.where(below, 2 * jnp.exp(-jnp.square(jnp.where(below, z, 0))) - upper, upper)


@special(lambda out, x: _rest(x, jnp.abs(x) > 10, lambda x: 1 - 2 * x * out, 1))
def dawsn(x):
    """Dawson's integral exp(-x**2) int exp(t**2) dt from 0 to x  (DLMF 7.2.5).

    >>> round(float(jax.scipy.special.dawsn(1.)), 4)
    0.5381
    """
    small = jnp.abs(x) < 0.5
    y, total = jnp.square(jnp.where(small, x, 0)), 1.0
    for k in range(12, 0, -1):       # DLMF 7.6.2: sum (-2)**k x**(2k + 1) / (2k + 1)!!
        total = 1 - total * 2 * y / (2 * k + 1)
    far = _ROOT_PI / 2 * jnp.imag(_faddeeva(jnp.where(jnp.isinf(x), 9, x) + 0j))
    return jnp.where(small, x * total, jnp.where(jnp.isinf(x), 0, far))


@special()
def fresnel(x):
    """(S, C), the integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x  (DLMF 7.2.7, 7.2.8).

    >>> tuple(round(float(x), 4) for x in jax.scipy.special.fresnel(1.))
    (0.4383, 0.7799)
    """
    small = jnp.abs(x) < 1.2
    y = jnp.where(small, x, 0)
    u, sine, cosine = jnp.square(math.pi / 2 * jnp.square(y)), 0.0, 0.0
    for k in range(14, -1, -1):      # DLMF 7.6.4, 7.6.6
        sine = 1 / (math.factorial(2 * k + 1) * (4 * k + 3)) - u * sine
        cosine = 1 / (math.factorial(2 * k) * (4 * k + 1)) - u * cosine
    limit = jnp.abs(x) > 1 / jnp.finfo(x.dtype).eps     # from there on the rest, 1 / (pi x), is rounded off
    finite = jnp.where(small | limit, 2, jnp.abs(x))
    angle = math.pi / 2 * lax.rem(jnp.square(finite), jnp.full_like(finite, 4))
    w = _faddeeva(_ROOT_PI / 2 * (1 + 1j) * finite)      # DLMF 7.5.8
    both = (1 + 1j) / 2 * (1 - (jnp.cos(angle) + 1j * jnp.sin(angle)) * w)
    far = jnp.where(limit, 0.5 + 0.5j, both)
    sign = jnp.sign(x)
    return (jnp.where(small, sine * math.pi / 2 * jnp.square(y) * y, sign * jnp.imag(far)),
            jnp.where(small, cosine * y, sign * jnp.real(far)))


@special(lambda out, x: (jnp.sinc(x / math.pi), jnp.cos(x) / x))
def sici(x):
    """(Si, Ci), the sine and cosine integrals  (DLMF 6.2.9, 6.2.11); Ci of negative x is that of -x.

    >>> tuple(round(float(x), 4) for x in jax.scipy.special.sici(1.))
    (0.9461, 0.3374)
    """
    y = jnp.abs(x)
    small = y < 4
    z = jnp.where(small, y, 1)
    u, sine, cosine = jnp.square(z), 0.0, 0.0
    for k in range(16, -1, -1):      # DLMF 6.6.5, 6.6.6
        sine = 1 / (math.factorial(2 * k + 1) * (2 * k + 1)) - u * sine
        cosine = -1 / (math.factorial(2 * k + 2) * (2 * k + 2)) - u * cosine
    near = sine * z, np.euler_gamma + jnp.log(z) + u * cosine
    far = jnp.where(small | jnp.isinf(y), 9, y)
    # DLMF 6.9.1 at ix
    value = continued_fraction(lambda k, v: (v * 0 - k * k, 1j * v + (2 * k + 1)), far + 0j)
    value = (jnp.cos(far) - 1j * jnp.sin(far)) * value
    sine = jnp.where(small, near[0], jnp.where(jnp.isinf(y), math.pi / 2, jnp.imag(value) + math.pi / 2))
    return jnp.sign(x) * sine, jnp.where(small, near[1], jnp.where(jnp.isinf(y), 0, -jnp.real(value)))


@composite(static=("v", "n_iter"))
def bessel_jn(z, *, v, n_iter=50):
    """Bessel functions of z of orders 0 to v, shape (v + 1, *z.shape), by backward recurrence.

    (DLMF 3.6(iii), 10.6.1)

    Args:
        v: the last order.
        n_iter: the order where the recurrence begins, which has to be well above v and |z|.
    Raises:
        ValueError: for negative v, or n_iter that is not above v.

    >>> jax.scipy.special.bessel_jn(jnp.array([0., 1.]), v=1).round(4)
    Array([[1.        , 0.76519996],
           [0.        , 0.44009998]], dtype=float32)
    """
    if not 0 <= v < n_iter:
        raise ValueError("scipy.special.bessel_jn: v and n_iter must satisfy 0 <= v < n_iter, got "
                         f"v={v} and n_iter={n_iter}")
    z, = promote_args_inexact("scipy.special.bessel_jn", z)
    z = jnp.asarray(z)
    _, ratios = lax.scan(lambda ratio, k: (z / (2 * k - z * ratio),) * 2,        # J_k / J_{k - 1}
                         jnp.zeros_like(z), jnp.arange(n_iter, 0, -1, dtype=z.dtype))
    one = jnp.ones_like(z)
    _, products = lax.scan(lambda product, ratio: (product * ratio,) * 2, one, ratios, reverse=True)
    whole = 1 + 2 * products[n_iter % 2::2].sum(0)       # of even orders, DLMF 10.12.4
    return jnp.concatenate([one[None], products[::-1][:v]]) / whole[None]


# --- confluent hypergeometric ---------------------------------------------------------------------

def _gammas(above, below):
    """Product of gamma functions over that of others, 0 where one of those is at a pole."""
    sign = functools.reduce(lambda x, y: x * y, [jnp.where((v == 0) | jnp.isnan(s), 0, s) for v, s in [
        (v, gammasgn(v)) for v in (*above, *below)]])
    return sign * jnp.exp(sum(map(lax.lgamma, above)) -
                          sum(jnp.where(jnp.isinf(v), 0, v) for v in map(lax.lgamma, below)))


def _ends(a):
    """Does a sum of (a)_k end?"""
    return (a <= 0) & (a == jnp.floor(a))


def _hyp1f1_value(a, b, x):
    flip = (x < 0) & ~_ends(a)        # DLMF 13.2.39
    p, y = jnp.where(flip, b - a, a), jnp.where(flip, -x, x)
    # DLMF 13.7.2, where its terms, of ratios below r + k / y, become less than the last digit
    above, below = jnp.abs(b - p), jnp.abs(1 - p)
    r = jnp.minimum((above * below + above + below) / jnp.where(y > 1, y, 1), 1)
    far = (y * (1 - r + xlogy(r, r)) > -math.log(jnp.finfo(y.dtype).eps)) & ~_ends(p)

    def step(k, p, q, v, far, term, total):
        above, below = p + (k - 1), q + (k - 1)
        ended = (above == 0) & (below == 0)     # a polynomial ends before the pole
        term = term * jnp.where(far, above * below, above / jnp.where(ended, 1, below)) * v / k
        total = total + term
        return jnp.abs(term) > jnp.abs(total) * _half_eps(v), [term, total]
    half = jnp.exp(jnp.where(flip & ~far, -y / 2, 0))       # twice: its square is out of range
    half = jnp.where((half == 0) & ~_ends(p), jnp.nan, half)
    large = jnp.where(far, y, 1)
    operands = jnp.where(far, b - p, p), jnp.where(far, 1 - p, b), jnp.where(far, 1 / large, y), far
    value = repeated(step, operands, [half, half])[-1] * half
    scale = jnp.exp(jnp.where(flip, 0, large) + (p - b) * jnp.log(large)) * _gammas((b,), (p,))
    return jnp.where(far, scale, 1) * value


@special(_along(_hyp1f1_value, 0), _along(_hyp1f1_value, 1),
         lambda out, a, b, x: jnp.divide(a, b) * hyp1f1(a + 1, b + 1, x))
def hyp1f1(a, b, x):
    """Kummer's function, the sum of (a)_k / (b)_k x**k / k!  (DLMF 13.2.2).

    Digits cancel where terms change sign: for large a < 0 < x, or x < 0 and a much above b.

    >>> round(float(jax.scipy.special.hyp1f1(1., 2., 0.5)), 4)
    1.2974
    """
    return _hyp1f1_value(*jnp.broadcast_arrays(a, b, x))


# --- hypergeometric -------------------------------------------------------------------------------

def _hyp2f1_series(a, b, c, x):
    def step(k, a, b, c, v, term, total):
        term = term * ((a + (k - 1)) * (b + (k - 1))) / ((c + (k - 1)) * k) * v
        return jnp.abs(term) > jnp.abs(total) * _half_eps(v), [term, total + term]
    one = jnp.ones_like(x)
    return repeated(step, (a, b, c, x), [one, one])[-1]


def _hyp2f1_value(a, b, c, x):
    ends = _ends(a) | _ends(b)
    flip = (x < 0) & ~ends           # DLMF 15.8.1
    z = jnp.where(flip, x / jnp.where(flip, x - 1, 1), x)
    q = jnp.where(flip, c - b, b)
    gap = c - a - q
    one, beyond = (z == 1) & ~ends, (z > 1) & ~ends
    near = (z > 0.9) & (z < 1) & ~ends
    # DLMF 15.8.1, its last
    other = near & (gap < 0) & (gap == jnp.floor(gap)) | (z < 1) & ~ends & ((c == a) | (c == q))
    near = near & (gap != jnp.floor(gap)) & ~other     # DLMF 15.8.4
    s = jnp.where(near, gap, 0.5)
    first = _hyp2f1_series(jnp.where(other, c - a, a), jnp.where(other, c - q, q), jnp.where(near, 1 - s, c),
                           jnp.where(near, 1 - z, jnp.where(one | beyond, 0, z)))
    second = _hyp2f1_series(jnp.where(near, c - a, 1), jnp.where(near, c - q, 1), 1 + s,
                            jnp.where(near, 1 - z, 0))
    rest = jnp.where(near, 1 - z, 0.5)
    turned = _gammas((c, s), (c - a, c - q)) * first + rest ** s * _gammas((c, -s), (a, q)) * second
    # DLMF 15.4.20, 15.4.21, 15.4.23
    full = jnp.where(gap > 0, _gammas((c, jnp.where(gap > 0, gap, 1)), (c - a, c - q)),
                     jnp.copysign(jnp.inf, _gammas((c,), (a, q))))
    value = jnp.where(near, turned, jnp.where(one, full, jnp.where(beyond, jnp.inf, first)))
    value = value * (1 - jnp.where(other, z, 0)) ** jnp.where(other, gap, 0)
    value = value * jnp.where(flip, (1 - jnp.where(flip, x, 0)) ** -a, 1)
    return jnp.where(jnp.isnan(a + b + c + x), jnp.nan, value)


@special(*[_along(_hyp2f1_value, place) for place in range(3)], lambda out, a, b, c, x: a * b / c * hyp2f1(
    a + 1, b + 1, c + 1, x))
def hyp2f1(a, b, c, x):
    """Gauss's function, sum of (a)_k (b)_k / (c)_k x**k / k! and its continuation to x < -1  (DLMF 15.2.1).

    Infinite for x > 1 where the sum does not end, as in SciPy.  Where c - a - b is 0, 1, ..., digits are lost
    for x close to 1, or far below -100 (there where b - a is).

    >>> round(float(jax.scipy.special.hyp2f1(1., 2., 3., 0.5)), 4)
    1.5452
    """
    return _hyp2f1_value(*jnp.broadcast_arrays(a, b, c, x))
