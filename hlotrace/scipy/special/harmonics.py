"""Spherical harmonics, and the Legendre functions in them."""
import math

import numpy as np

from ... import lax, numpy as jnp
from ...api.autodiff import jvp
from ...api.composite import composite
from ...core.errors import concrete_needed
from ...core.trace import Tracer
from ...numpy.util import check_arraylike, promote_dtypes_inexact
from ...primitives.common import static_int
from .closed_form import gammaln

__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max=None):
    """Spherical harmonics Y_n^m of degree n and order m  (DLMF 14.30.1).

    By the recurrence of normalized Legendre functions, upwards in the degree (DLMF 14.10.3).  The result is
    complex, 0 where |m| > n.

    Args:
        n: ints; all arguments broadcast.
        m: ints.
        theta: the polar angle, reals.
        phi: the azimuth, reals.
        diff_n: not supported; None.
        n_max: the result is NaN where n is above it; max(n) by default, which under jit a traced n has not.
    Raises:
        NotImplementedError: for `diff_n`.

    >>> round(float(jax.scipy.special.sph_harm_y(2, 1, 0.3, 0.4).real), 4)
    -0.2009
    """
    if diff_n is not None:
        raise NotImplementedError("scipy.special.sph_harm_y: diff_n is not supported: use hlotrace.jacfwd")
    check_arraylike("scipy.special.sph_harm_y", n, m, theta, phi)
    for name, value in (("n", n), ("m", m)):
        if jnp.result_type(value).kind not in "iu":
            raise TypeError(f"scipy.special.sph_harm_y: {name} must be of integers, got "
                            f"{jnp.result_type(value).name}: .astype(int)")
    if n_max is None:
        if isinstance(n, Tracer):
            raise concrete_needed(n, "the largest degree, max(n), is how long a loop is",
                                  "Give n_max, a Python int.")
        n_max = int(jnp.max(n)) if jnp.size(n) else 0
    return _sph_harm_y(n, m, theta, phi, n_max=static_int(n_max, "scipy.special.sph_harm_y: n_max"))


@composite(static=("n_max",))
def _sph_harm_y(n, m, theta, phi, *, n_max):
    theta, phi = promote_dtypes_inexact(theta, phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    x, order = jnp.cos(theta), jnp.abs(m).astype(theta.dtype)
    norm = (jnp.log(2 * order + 1) - math.log(4 * math.pi) + gammaln(order + 0.5) - gammaln(order + 1) -
            gammaln(0.5)) / 2
    sine = jnp.where(m == 0, 1, jnp.abs(jnp.sin(theta)))     # sqrt(1 - x^2)
    start = jnp.exp(norm) * jnp.where(m % 2 == 0, 1, -1) * jnp.where(m == 0, 1, sine ** jnp.abs(m))

    def step(degree, values):
        before, value = values
        d = jnp.asarray(degree, theta.dtype)
        going = (degree > jnp.abs(m)) & (degree <= n)
        wide = jnp.where(going, jnp.square(d) - jnp.square(order), 1)
        low = jnp.where(going, jnp.square(d - 1) - jnp.square(order), 1)
        low = jnp.where(low > 0, low, 1), low > 0
        a = jnp.sqrt((4 * d * d - 1) / wide)
        b = jnp.where(low[1], jnp.sqrt(low[0] / (4 * jnp.square(d - 1) - 1)), 0)
        return jnp.where(going, value, before), jnp.where(going, a * (x * value - b * before), value)
    value = lax.fori_loop(1, n_max + 1, step, (jnp.zeros_like(start), start))[1]
    value = jnp.where(jnp.abs(m) > n, 0, jnp.where(n > n_max, jnp.nan, value))
    value = jnp.where((m < 0) & (m % 2 != 0), -value, value)
    angle = m * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))


def lpmn_values(m, n, z, is_normalized):
    """Associated Legendre functions P_n^m of the first kind, of degrees and orders up to n  (DLMF 14.3.1).

    By the recurrence upwards in the degree (DLMF 14.10.3), with the phase of Condon and Shortley.

    Args:
        m: the largest order, an int.
        n: the largest degree, equal to m.
        z: a vector of floats from -1 to 1.
        is_normalized: are they multiplied by what makes spherical harmonics orthonormal?
    Returns:
        An array [order, degree, z], 0 where the order is above the degree.
    Raises:
        NotImplementedError: where m is not n.
        TypeError: for other dtypes.
        ValueError: for other shapes, and for negative m.

    >>> jax.scipy.special.lpmn_values(1, 1, jnp.array([0.6]), False)[..., 0].round(3)
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], dtype=float32)
    """
    degrees = _degrees("lpmn_values", m, n, z)
    return _lpmn_values(jnp.asarray(z), degrees=degrees, is_normalized=bool(is_normalized))


def lpmn(m, n, z):
    """(associated Legendre functions, their derivatives) as `lpmn_values` gives them, not normalized.

    >>> jax.scipy.special.lpmn(1, 1, jnp.array([0.6]))[1][..., 0].round(2)
    Array([[0.  , 1.  ],
           [0.  , 0.75]], dtype=float32)
    """
    degrees = _degrees("lpmn", m, n, z)
    z = jnp.asarray(z)
    return jvp(lambda x: _lpmn_values(x, degrees=degrees, is_normalized=False), (z,), (jnp.ones_like(z),))


def _degrees(name, m, n, z):
    name = f"scipy.special.{name}"
    check_arraylike(name, z)
    m, n = static_int(m, f"{name}: m"), static_int(n, f"{name}: n")
    if m != n:
        raise NotImplementedError(f"{name}: m and n must be equal, got {m=}, {n=}: give the larger for both")
    if n < 0 or jnp.ndim(z) != 1:
        raise ValueError(f"{name}: z must be a vector and n not negative, got shape {jnp.shape(z)}, {n=}")
    dtype = jnp.result_type(z).name
    if dtype not in ("float32", "float64"):
        raise TypeError(f"{name}: z must be of float32 or float64, got {dtype}: .astype(float)")
    return n + 1


@composite(static=("degrees", "is_normalized"))
def _lpmn_values(z, *, degrees, is_normalized):
    number = np.arange(degrees)
    degree, order = number[:, None], number
    above = np.maximum(degree - order, 1)       # where the degree is not above the order, nothing is read
    below = np.maximum(degree - 1 + order, 0)
    if is_normalized:
        first = np.sqrt((4 * degree**2 - 1) / (above * np.maximum(degree + order, 1)) * (degree > 0))
        second = first * np.sqrt(np.maximum(degree - 1 - order, 0) * below
                                 / np.maximum(4 * (degree - 1)**2 - 1, 1))
        start = np.cumprod(np.sqrt((2 * number + 1) / np.maximum(2 * number, 1))) / math.sqrt(4 * math.pi)
    else:
        first, second = (2 * degree - 1) / above, below / above
        start = np.cumprod(np.maximum(2.0 * number - 1, 1))
    # of equal degree and order: (1 - z^2)^(m / 2)
    power = jnp.asarray(np.maximum(number, 1) / 2, z.dtype)[:, None]
    diagonal = jnp.where(number[:, None] == 0, 1, jnp.expand_dims(1 - jnp.square(z), 0) ** power)
    with np.errstate(over="ignore"):
        diagonal *= jnp.asarray((start * (-1.0) ** number).astype(z.dtype))[:, None]

    def step(values, row):
        before, value = values
        a, b, degree = row
        new = a[:, None] * jnp.expand_dims(z, 0) * value - b[:, None] * before
        gap = (degree - number)[:, None]
        new = jnp.where(gap > 0, new, jnp.where(gap == 0, diagonal, 0))
        return (value, new), new
    zero = jnp.zeros_like(diagonal)
    rows = jnp.asarray(first, z.dtype), jnp.asarray(second, z.dtype), number
    return lax.scan(step, (zero, zero), rows)[1].swapaxes(0, 1)
