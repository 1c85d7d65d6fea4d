"""Functions without a formula: integrals of exponentials, by Chebyshev fits, series and continued fractions.

"DLMF" is the NIST Digital Library of Mathematical Functions.
"""
import functools
import math

from ... import lax
from ... import numpy as jnp
from ...api.autodiff import jvp
from ...api.composite import composite
from ...numpy.util import promote_args_inexact
from ...primitives.common import np
from ...primitives.incomplete import continued_fraction, repeated
from ...primitives.special import _chebyshev
from .closed import _bernoulli, gammasgn, xlogy
from .promoting import special

__all__ = ["bessel_jn", "dawsn", "erfcinv", "erfcx", "exp1", "expi", "expn", "fresnel", "hyp1f1", "hyp2f1", "log_ndtr",
           "ndtr", "ndtri", "owens_t", "sici", "spence", "wofz"]

_ROOT_PI = math.sqrt(math.pi)


def _half_eps(x):
    return float(jnp.finfo(x.dtype).eps) / 2


# --- of the normal distribution ---------------------------------------------------------------------------------

@functools.cache
def _erfcx_fit():
    """Coefficients of (1 + 2x) erfcx(x) in t = (x - 3.75) / (x + 3.75), from erfcx(x) = 2/sqrt(pi) int exp(-s**2 - 2xs) ds.

    The form is that of Shepherd and Laframboise, "Chebyshev Approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < oo",
    Math. Comp. 36 (1981).
    """
    n = 40
    angles = np.pi * (np.arange(n) + 0.5) / n
    t = np.cos(angles)
    x = 3.75 * (1 + t) / (1 - t)
    s, w = np.polynomial.legendre.leggauss(200)
    u = (s + 1) / 2      # s = u / (1 - u) takes [0, 1) to [0, inf); scaled so that the integrand is wide for any x
    y = u / (1 - u) / (1 + x[:, None])
    values = 2 / _ROOT_PI * (np.exp(-y * y - 2 * x[:, None] * y) * w / 2 / (1 - u) ** 2).sum(1) / (1 + x) * (1 + 2 * x)
    found = np.cos(np.outer(np.arange(n), angles)) @ values * 2 / n
    found[0] /= 2
    return [float(c) for c in found[:30]]


@special(lambda out, x: 2 * x * out - 2 / _ROOT_PI, complex=True)
def erfcx(x):
    """exp(x**2) erfc(x), also of complex numbers  (DLMF 7.2.2, 7.2.3).

    >>> round(float(jax.scipy.special.erfcx(10.)), 4)
    0.0561
    """
    if x.dtype.kind == "c":
        return wofz(1j * x)
    y = jnp.minimum(jnp.abs(x), 1e30)
    upper = _chebyshev((y - 3.75) / (y + 3.75), _erfcx_fit()) / (1 + 2 * y)
    below = 2 * jnp.exp(jnp.square(jnp.where(x < 0, x, 0))) - upper
    return jnp.where(x < 0, below, jnp.where(jnp.isnan(x), x, jnp.where(x == jnp.inf, 0, upper)))


@special()
def ndtr(x):
    """Distribution function of the normal distribution.

    >>> round(float(jax.scipy.special.ndtr(1.)), 4)
    0.8413
    """
    return lax.erfc(x * -math.sqrt(0.5)) / 2


def log_ndtr(x, series_order=3):
    """log(ndtr(x)), exact where that is small.  Far below, `series_order` terms of its asymptotic series (DLMF 7.12.1).

    TypeError where series_order is no int, ValueError where it is not from 0 to 30.

    >>> round(float(jax.scipy.special.log_ndtr(-10.)), 4)
    -53.2313
    """
    if type(series_order) is not int:
        raise TypeError(f"scipy.special.log_ndtr: series_order must be a Python integer, got {series_order!r}")
    if not 0 <= series_order <= 30:
        raise ValueError(f"scipy.special.log_ndtr: series_order must be from 0 to 30, got {series_order}")
    return _log_ndtr(series_order)(x)


@functools.cache
def _log_ndtr(order):
    def value(x):
        # where the first term left out is small enough, if more than a few are taken
        far = -(50.0 if x.dtype.itemsize == 8 else 10.0)
        low, middle, high = jnp.minimum(x, far), jnp.clip(x, far, -1), jnp.maximum(x, -1)
        term, total = 1.0, 1.0
        for n in range(1, order + 1):
            term = term * -(2 * n - 1) / jnp.square(low)
            total = total + term
        series = -jnp.square(low) / 2 - jnp.log(-low) - math.log(2 * math.pi) / 2 + jnp.log(total)
        scaled = jnp.log(erfcx(middle * -math.sqrt(0.5)) / 2) - jnp.square(middle) / 2
        near = jnp.log1p(lax.erfc(high * math.sqrt(0.5)) * -0.5)
        return jnp.where(x < far, series, jnp.where(x < -1, scaled, near))

    def log_ndtr(x):
        return value(x)
    return special(lambda out, x: jnp.exp(-jnp.square(x) / 2 - math.log(2 * math.pi) / 2 - out))(log_ndtr)


@special(lambda out, p: math.sqrt(2 * math.pi) * jnp.exp(jnp.square(out) / 2))
def ndtri(p):
    """The number below which a normal variable is with probability p: inverse of `ndtr`.

    >>> round(float(jax.scipy.special.ndtri(0.975)), 4)
    1.96
    """
    tail = jnp.minimum(p, 1 - p)
    t = jnp.where((tail > 0) & (tail < 0.1), tail, 0.05)
    goal = jnp.log(t)
    x = -jnp.sqrt(-2 * goal) + 0.7       # within 0.6; each step of Halley's method triples the digits
    for _ in range(4):
        mills = jnp.sqrt(2 / jnp.pi) / erfcx(-x * math.sqrt(0.5))       # density over distribution function
        step = (jnp.log(erfcx(-x * math.sqrt(0.5)) / 2) - jnp.square(x) / 2 - goal) / mills
        x = x - step / (1 + step * (x + mills) / 2)
    middle = math.sqrt(2) * lax.erf_inv(2 * jnp.where(tail >= 0.1, p, 0.5) - 1)
    x = jnp.where(tail >= 0.1, middle, jnp.where(p < 0.5, x, -x))
    x = jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, x))
    return jnp.where((p >= 0) & (p <= 1), x, jnp.nan)


@special(lambda out, y: -_ROOT_PI / 2 * jnp.exp(jnp.square(out)))
def erfcinv(y):
    """The number whose `erfc` is y.

    >>> round(float(jax.scipy.special.erfcinv(0.1)), 4)
    1.1631
    """
    return ndtri(y / 2) * -math.sqrt(0.5)


@special()
def owens_t(h, a):
    """Owen's T function, the integral of exp(-h**2 (1 + x**2) / 2) / (1 + x**2) / (2 pi) from 0 to a  (Owen, 1956).

    For |a| > 1 by T(h, a) + T(ah, 1/a) = (ndtr(h) + ndtr(ah)) / 2 - ndtr(h) ndtr(ah), for h, a >= 0; 30 points of Gauss.

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


# --- exponential integrals --------------------------------------------------------------------------------------

def _expn_value(n, x):
    # for x > 1 the continued fraction 8.19.17, else the series 8.19.8 of the DLMF
    near, far = (x > 0) & (x <= 1), (x > 1) & (x < jnp.inf)
    y, z = jnp.where(near, x, 0.5), jnp.where(far, x, 2.0)
    order = jnp.where(n >= 1, n, 1.0)
    fraction = jnp.exp(-z) * continued_fraction(lambda k, m, v: (-k * (m - 1 + k), v + m + 2 * k), order, z)
    gammas = jnp.exp((order - 1) * jnp.log(y) - lax.lgamma(order)) * jnp.where((order - 1) % 2 == 0, 1.0, -1.0)

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


@special(lambda out, x: -jnp.exp(-x) / x)
def exp1(x):
    """Exponential integral E1  (DLMF 6.2.1); NaN for negative x.

    >>> round(float(jax.scipy.special.exp1(1.)), 4)
    0.2194
    """
    return expn(1, x)


@special(lambda out, x: jnp.exp(x) / x)
def expi(x):
    """Exponential integral Ei  (DLMF 6.2.5).

    >>> round(float(jax.scipy.special.expi(1.)), 4)
    1.8951
    """
    near, far = (x > 0) & (x < 40), x >= 40
    y, z = jnp.where(near, x, 1.0), jnp.where(far, jnp.minimum(x, 1e30), 50.0)

    def rising(k, v, power, total):
        power = power * v / k
        return power > total * k * _half_eps(v), [power, total + power / k]

    series = np.euler_gamma + jnp.log(y) + repeated(rising, (y,), [jnp.ones_like(y), jnp.zeros_like(y)])[-1]
    term, total = 1.0, 1.0
    for k in range(1, 40):       # asymptotic, DLMF 6.12.2
        term = term * k / z
        total = total + term
    distant = jnp.exp(jnp.where(far, x, 50.0)) / z * total
    below = -expn(1, jnp.where(x < 0, -x, 1.0))
    return jnp.where(near, series, jnp.where(far, distant, jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, below, jnp.nan))))


@special()
def spence(x):
    """The dilogarithm of 1 - x  (DLMF 25.12.2), by the Bernoulli numbers of -log(x) near 1; NaN for negative x.

    >>> round(float(jax.scipy.special.spence(0.5)), 4)
    0.5822
    """
    low, high = x < 0.5, x > 2
    y = jnp.where(low, 1 - x, jnp.where(high, x / jnp.where(high, x - 1, 1), x))
    y = jnp.where((y > 0) & (y < 3), y, 1)
    u = -jnp.log(y)
    total = 0
    for k in range(9, 0, -1):
        total = (total + float(_bernoulli(2 * k)[-1]) / math.factorial(2 * k + 1)) * jnp.square(u)
    value = u - jnp.square(u) / 4 + u * total
    reflected = math.pi ** 2 / 6 - xlogy(jnp.log1p(-jnp.where(low, x, 0)), jnp.where(low, x, 1)) - value
    inverted = -math.pi ** 2 / 6 - jnp.square(jnp.log(jnp.where(high, x - 1, 1))) / 2 - value
    value = jnp.where(low, reflected, jnp.where(high, inverted, value))
    return jnp.where(x >= 0, value, jnp.nan)


# --- of the error function of complex numbers -------------------------------------------------------------------

@functools.cache
def _weideman(n):
    """(L, coefficients) of Weideman, "Computation of the complex error function", SIAM J. Numer. Anal. 31 (1994)."""
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
    Array(0.3047+0.2082j, dtype=complex64, weak_type=True)
    """
    z = z + 0j
    below = jnp.imag(z) < 0
    upper = _faddeeva(jnp.where(below, -z, z))
    return jnp.where(below, 2 * jnp.exp(-jnp.square(jnp.where(below, z, 0))) - upper, upper)


@special(lambda out, x: 1 - 2 * x * out)
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
    finite = jnp.where(small | jnp.isinf(x), 2, jnp.abs(x))
    angle = math.pi / 2 * lax.rem(jnp.square(finite), jnp.full_like(finite, 4))
    w = _faddeeva(_ROOT_PI / 2 * (1 + 1j) * finite)      # DLMF 7.5.8
    both = (1 + 1j) / 2 * (1 - (jnp.cos(angle) + 1j * jnp.sin(angle)) * w)
    far = jnp.where(jnp.isinf(x), 0.5 + 0.5j, both)
    sign = jnp.sign(x)
    return (jnp.where(small, sine * math.pi / 2 * jnp.square(y) * y, sign * jnp.imag(far)),
            jnp.where(small, cosine * y, sign * jnp.real(far)))


@special()
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
    value = continued_fraction(lambda k, v: (v * 0 - k * k, 1j * v + (2 * k + 1)), far + 0j)     # DLMF 6.9.1 at ix
    value = (jnp.cos(far) - 1j * jnp.sin(far)) * value
    sine = jnp.where(small, near[0], jnp.where(jnp.isinf(y), math.pi / 2, jnp.imag(value) + math.pi / 2))
    return jnp.sign(x) * sine, jnp.where(small, near[1], jnp.where(jnp.isinf(y), 0, -jnp.real(value)))


@composite(static=("v", "n_iter"))
def bessel_jn(z, *, v, n_iter=50):
    """Bessel functions of z of orders 0 to v, shape (v + 1, *z.shape), by backward recurrence from order `n_iter`.

    That has to be well above v and |z|  (DLMF 3.6(iii), 10.6.1).  ValueError for negative v, or n_iter that is not above v.

    >>> jax.scipy.special.bessel_jn(jnp.array([0., 1.]), v=1).round(4)
    Array([[1.        , 0.76519996],
           [0.        , 0.44009998]], dtype=float32)
    """
    if not 0 <= v < n_iter:
        raise ValueError("scipy.special.bessel_jn: v and n_iter must satisfy 0 <= v < n_iter, got "
                         f"v={v} and n_iter={n_iter}")
    z, = promote_args_inexact("scipy.special.bessel_jn", z)
    z = jnp.asarray(z)
    ratio, ratios = jnp.zeros_like(z), []
    for k in range(n_iter, 0, -1):       # J_k / J_{k - 1}
        ratio = z / (2 * k - z * ratio)
        ratios.append(ratio)
    products = [jnp.ones_like(z)]
    for ratio in reversed(ratios):
        products.append(products[-1] * ratio)
    whole = products[0] + 2 * sum(products[2::2])        # DLMF 10.12.4
    return jnp.stack([p / whole for p in products[:v + 1]])


# --- confluent hypergeometric -----------------------------------------------------------------------------------

def _hyp1f1_value(a, b, x):
    flip = x < 0        # DLMF 13.2.39
    first, y = jnp.where(flip, b - a, a), jnp.abs(x)

    def step(k, p, q, v, term, total):
        term = term * (p + k - 1) / (q + k - 1) * v / k
        return jnp.abs(term) > jnp.abs(total) * _half_eps(v), [term, total + term]
    one = jnp.ones_like(y)
    value = repeated(step, (first, b, y), [one, one])[-1]
    return jnp.where(flip, jnp.exp(jnp.where(flip, x, 0)), 1) * value


def _along(value, place):
    """The derivative by an argument, in forward mode: the loop is run with its tangents."""
    def rule(_, *args):
        def one(v):
            return value(*args[:place], v, *args[place + 1:])
        return jvp(one, (args[place],), (jnp.ones_like(args[place]),))[1]
    return rule


@special(_along(_hyp1f1_value, 0), _along(_hyp1f1_value, 1), lambda out, a, b, x: a / b * hyp1f1(a + 1, b + 1, x))
def hyp1f1(a, b, x):
    """Kummer's function, the sum of (a)_k / (b)_k x**k / k!  (DLMF 13.2.2).

    Digits cancel where terms change sign: for large a < 0 < x, or x < 0 and a much above b.

    >>> round(float(jax.scipy.special.hyp1f1(1., 2., 0.5)), 4)
    1.2974
    """
    return _hyp1f1_value(*jnp.broadcast_arrays(a, b, x))


# --- hypergeometric ---------------------------------------------------------------------------------------------

def _hyp2f1_series(a, b, c, x):
    def step(k, a, b, c, v, term, total):
        term = term * ((a + k - 1) * (b + k - 1)) / ((c + k - 1) * k) * v
        return jnp.abs(term) > jnp.abs(total) * _half_eps(v), [term, total + term]
    one = jnp.ones_like(x)
    return repeated(step, (a, b, c, x), [one, one])[-1]


def _gammas(above, below):
    """Product of gamma functions over that of others, 0 where one of those is at a pole."""
    sign = functools.reduce(lambda x, y: x * y, [jnp.where(jnp.isnan(s), 0, s) for s in map(gammasgn, (*above, *below))])
    return sign * jnp.exp(sum(map(lax.lgamma, above)) - sum(jnp.where(jnp.isinf(v), 0, v) for v in map(lax.lgamma, below)))


def _hyp2f1_value(a, b, c, x):
    ends = ((a <= 0) & (a == jnp.floor(a))) | ((b <= 0) & (b == jnp.floor(b)))
    flip = (x < 0) & ~ends           # DLMF 15.8.1
    z = jnp.where(flip, x / jnp.where(flip, x - 1, 1), x)
    q = jnp.where(flip, c - b, b)
    gap = c - a - q
    one, beyond = (z == 1) & ~ends, (z > 1) & ~ends
    near = (z > 0.9) & (z < 1) & ~ends & (gap != jnp.floor(gap))     # DLMF 15.8.4
    s = jnp.where(near, gap, 0.5)
    first = _hyp2f1_series(a, q, jnp.where(near, 1 - s, c), jnp.where(near, 1 - z, jnp.where(one | beyond, 0, z)))
    second = _hyp2f1_series(jnp.where(near, c - a, 1), jnp.where(near, c - q, 1), 1 + s, jnp.where(near, 1 - z, 0))
    rest = jnp.where(near, 1 - z, 0.5)
    turned = _gammas((c, s), (c - a, c - q)) * first + rest ** s * _gammas((c, -s), (a, q)) * second
    full = jnp.where(gap > 0, _gammas((c, jnp.where(gap > 0, gap, 1)), (c - a, c - q)), jnp.inf)      # DLMF 15.4.20
    value = jnp.where(near, turned, jnp.where(one, full, jnp.where(beyond, jnp.inf, first)))
    value = value * jnp.where(flip, (1 - jnp.where(flip, x, 0)) ** -a, 1)
    return jnp.where(jnp.isnan(a + b + c + x), jnp.nan, value)


@special(*[_along(_hyp2f1_value, place) for place in range(3)], lambda out, a, b, c, x: a * b / c * hyp2f1(
    a + 1, b + 1, c + 1, x))
def hyp2f1(a, b, c, x):
    """Gauss's function, the sum of (a)_k (b)_k / (c)_k x**k / k! and what continues it to x < -1  (DLMF 15.2.1).

    Infinite for x > 1 where the sum does not end, as in SciPy.  Where c - a - b is whole, digits are lost for x close to 1,
    or far below -100 (there where b - a is).

    >>> round(float(jax.scipy.special.hyp2f1(1., 2., 3., 0.5)), 4)
    1.5452
    """
    return _hyp2f1_value(*jnp.broadcast_arrays(a, b, c, x))
