"""Spherical harmonics."""
import math

from ... import lax
from ... import numpy as jnp
from ...api.composite import composite
from ...core.errors import concrete_needed
from ...core.trace import Tracer
from ...numpy.util import check_arraylike, promote_dtypes_inexact
from ...primitives.common import static_int
from .closed_form import gammaln

__all__ = ["sph_harm_y"]


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
    """The associated Legendre functions of the first kind of all orders up to `m` and degrees up to `n`.

    P[i, j], of order i and degree j, is 0 for i > j; DLMF 14.10.3 gives each degree from the two before.

    Args:
        m: equal to `n`, as in JAX.
        n: the largest degree.
        z: a vector.
        is_normalized: times sqrt((2j + 1) (j - i)! / (4 pi (j + i)!)), as in spherical harmonics?

    Returns:
        An array of shape (m + 1, n + 1, len(z)).

    Raises:
        NotImplementedError: where m is not n.
        ValueError: where z is no vector.
    """
    z, = promote_dtypes_inexact(z)
    if z.ndim != 1:
        raise ValueError(f"z must be a 1D array; got one of shape {z.shape}")
    if m != n:
        raise NotImplementedError(f"Computations for m!=n are not yet supported; got m={m}, n={n}")
    order = jnp.arange(m + 1)[:, None]
    before = value = jnp.zeros((m + 1, z.shape[0]), z.dtype)
    start, found = jnp.ones_like(z), []
    for degree in range(n + 1):
        if degree:
            start = start * -(2 * degree - 1) * jnp.sqrt(1 - z * z)
        below = (2 * degree - 1) * z * value - (degree + order - 1) * before
        below = below / jnp.maximum(degree - order, 1)
        before, value = value, jnp.where(order == degree, start, jnp.where(order < degree, below, 0))
        found.append(value)
    values = jnp.stack(found, 1)
    if not is_normalized:
        return values
    norm = [[0.5 * (math.log((2 * j + 1) / (4 * math.pi)) + math.lgamma(j - i + 1) - math.lgamma(j + i + 1))
             if i <= j else 0. for j in range(n + 1)] for i in range(m + 1)]
    return values * jnp.exp(jnp.asarray(norm, z.dtype))[:, :, None]
