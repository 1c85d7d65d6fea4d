"""Polynomials as vectors of coefficients, highest power first: values, arithmetic, calculus, roots, fits."""
import math

from ..api.composite import composite
from ..core import dtypes
from ..core.errors import concrete_needed
from ..core.trace import is_concrete
from ..lax.control_flow import scan
from ..primitives.common import np, static_int
from .arrays.creation import asarray, ones, zeros
from .arrays.joining import append, concatenate
from .arrays.ranges import arange
from .arrays.rolling import roll
from .arrays.shaping import atleast_1d, broadcast_to
from .arrays.triangles import eye, vander
from .contraction import convolve, outer
from .elementwise.ufuncs import abs, conj, real, sqrt
from .indexing.conditions import where
from .indexing.selection import trim_zeros
from .linalg import adjoint, eigvals, inv, lstsq
from .reductions.reductions import cumprod, sum
from .reductions.sorting import argsort
from .util import check_arraylike, joint_shape, promote_dtypes, promote_dtypes_inexact, promotes

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
           "roots"]


def _coefficients(name, *ps, ndim=1):
    """The arguments as vectors of one floating or complex dtype."""
    check_arraylike(name, *ps)
    ps = [atleast_1d(p) for p in promote_dtypes_inexact(*ps)]
    if any(p.ndim > ndim for p in ps):
        raise ValueError(f"{name}: coefficients must be vectors, got shapes "
                         f"{', '.join(str(p.shape) for p in ps)}: jax.vmap goes over batches")
    return ps


def _order(name, m):
    m = static_int(m, f"{name}: m")
    if m < 0:
        what = "integral" if name == "polyint" else "derivative"
        raise ValueError(f"Order of {what} must be positive, got {m}: polyint integrates, polyder "
                         "differentiates")
    return m


def _column(weights, p):
    """One number for each coefficient, to multiply those of `p` (n, ...)."""
    return np.asarray(weights, np.float64).astype(p.dtype).reshape(-1, *[1] * (p.ndim - 1))


# --- values and arithmetic ------------------------------------------------------------------------

@composite(static=("unroll",))
@promotes("p", "x")
def polyval(p, x, *, unroll=None):
    """The polynomial with coefficients `p`, highest power first, at `x`, by Horner's rule.

    Args:
        p: a vector, or a matrix: one polynomial for each column.
        unroll: how many steps one turn of the loop takes, by default 16.

    >>> jnp.polyval(jnp.array([2, 0, 1]), jnp.array([0, 1, 3]))      # 2 x**2 + 1
    Array([ 1,  3, 19], dtype=int32)
    """
    check_arraylike("polyval", p, x)
    p, x = (asarray(v) for v in promote_dtypes(p, x))
    start = zeros(joint_shape(p.shape[1:], x.shape), x.dtype)
    return scan(lambda total, c: (total * x + c, None), start, p, unroll=16 if unroll is None else unroll)[0]


@composite(static=("sign",))
def _sum(a1, a2, sign):
    a2 = -a2 if sign < 0 else a2        # a product with 1 or -1 would make complex infinities NaN
    more, less = (a1, a2) if len(a1) > len(a2) else (a2, a1)
    return more.at[len(more) - len(less):].add(less)


def _added(name, a1, a2, sign):
    check_arraylike(name, a1, a2)
    a1, a2 = (atleast_1d(a) for a in promote_dtypes(a1, a2))
    if dtypes.is_bool(a1.dtype):
        raise TypeError(f"{name}: bools are no coefficients: convert them with .astype(int)")
    return _sum(a1, a2, sign=sign)


def polyadd(a1, a2):
    """The coefficients of the sum of two polynomials, highest power first.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([9, 5, 4]))
    Array([9, 6, 6], dtype=int32)
    """
    return _added("polyadd", a1, a2, 1)


def polysub(a1, a2):
    """The coefficients of the difference of two polynomials, highest power first.

    >>> jnp.polysub(jnp.array([2, 10]), jnp.array([7, 2]))
    Array([-5,  8], dtype=int32)
    """
    return _added("polysub", a1, a2, -1)


def polymul(a1, a2, *, trim_leading_zeros=False):
    """The coefficients of the product of two polynomials, highest power first, floating point or complex.

    Args:
        trim_leading_zeros: first leave out zeros in front of both, as NumPy: not under jit.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    a1, a2 = _coefficients("polymul", a1, a2)
    if trim_leading_zeros and a1.size and a2.size:
        a1, a2 = (_trimmed(a, "trim_leading_zeros=False", keep=1) for a in (a1, a2))
    return convolve(*(a if a.size else zeros(1, a.dtype) for a in (a1, a2)))


def _trimmed(p, instead, keep=0):
    """`p` without the zeros in front, but with the last `keep` coefficients."""
    if not is_concrete(p):
        raise concrete_needed(p, "as many zeros as are in front are left out, so they must be known",
                              f"{instead} keeps them")
    return concatenate([trim_zeros(p[:len(p) - keep], "f"), p[len(p) - keep:]])


def polydiv(u, v, *, trim_leading_zeros=False):
    """(quotient, remainder) of two polynomials, by long division, highest power first.

    They are floating point or complex.  The remainder has as many coefficients as `u`, most of them zeros in
    front.  A leading zero of `v` divides by zero.

    Args:
        trim_leading_zeros: leave the zeros of the remainder out, which needs the values: not under jit.

    >>> quotient, remainder = jnp.polydiv(jnp.array([3., 5., 2.]), jnp.array([2., 1.]))
    >>> quotient, remainder
    (Array([1.5 , 1.75], dtype=float32), Array([0.  , 0.  , 0.25], dtype=float32))
    """
    u, v = _coefficients("polydiv", u, v)
    if not v.size:
        raise ValueError("polydiv: the divisor has no coefficients: shape (0,)")
    quotient, remainder = _polydiv(u, v) if len(u) >= len(v) else (zeros(1, u.dtype), u)
    return quotient, _trimmed(remainder, "trim_leading_zeros=False") if trim_leading_zeros else remainder


@composite
def _polydiv(u, v):
    n = len(v)

    def step(window, following):
        q = window[0] / v[0]
        return append((window - q * v)[1:], following), q
    rest, quotient = scan(step, u[:n], append(u[n:], zeros(1, u.dtype)))
    return quotient, concatenate([zeros(len(u) - n + 1, u.dtype), rest[:-1]])


# --- calculus -------------------------------------------------------------------------------------

def polyder(p, m=1):
    """The coefficients of the m-th derivative of a polynomial, highest power first.

    The result (n - m, ...) is floating point or complex.

    Args:
        p: array (n, ...), whose columns are polynomials.

    >>> jnp.polyder(jnp.array([1, 1, 1, 1]))
    Array([3., 2., 1.], dtype=float32)
    """
    (p,), m = _coefficients("polyder", p, ndim=np.inf), _order("polyder", m)
    powers = range(len(p) - 1, m - 1, -1)
    return p[:len(powers)] * _column([math.perm(power, m) for power in powers], p)


def polyint(p, m=1, k=None):
    """The coefficients of the m-th integral of a polynomial, highest power first.

    The result (n + m, ...) is floating point or complex.

    Args:
        p: array (n, ...).
        k: the constants of integration, one for all or one a step, the first first; 0 by default.

    >>> jnp.polyint(jnp.array([6., 2.]), 2, k=jnp.array([5., 7.]))
    Array([1., 1., 5., 7.], dtype=float32)
    """
    m = _order("polyint", m)
    p, k = _coefficients("polyint", p, 0 if k is None else k, ndim=np.inf)
    if k.ndim > 1 or k.size not in (1, m):
        raise ValueError(f"polyint: k must be a scalar or a vector with one constant for each of the m={m} "
                         f"integrations, got shape {k.shape}")
    k = broadcast_to(broadcast_to(k, (m,)).reshape(m, *[1] * (p.ndim - 1)), (m, *p.shape[1:]))
    powers = range(len(p) + m - 1, -1, -1)
    # a constant of an early step is integrated in the later ones
    return concatenate([p, k]) / _column([math.perm(power, min(power, m)) for power in powers], p)


# --- roots ----------------------------------------------------------------------------------------

@composite
def poly(seq_of_zeros):
    """The coefficients of the polynomial with leading coefficient 1 and these roots, highest power first.

    The result is (n + 1,); 1 alone for no roots, of shape ().

    Args:
        seq_of_zeros: a vector (n,) of roots, or a square matrix, whose characteristic polynomial it is, by
            its eigenvalues, which are complex.

    >>> jnp.poly(jnp.array([1., 2., 3.]))
    Array([  1.,  -6.,  11.,  -6.], dtype=float32)
    """
    z, = _coefficients("poly", seq_of_zeros, ndim=np.inf)
    if z.ndim > 2 or z.ndim == 2 and (not z.size or z.shape[0] != z.shape[1]):
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, got shape {z.shape}")
    z = eigvals(z) if z.ndim == 2 else z
    if not z.size:
        return ones((), z.dtype)
    places = arange(len(z) + 1)

    def times(p, factor):           # places beyond the degree stay 0, whatever the root
        degree, root = factor
        grows = (places > 0) & (places <= degree)
        return p - where(grows, root * append(zeros(1, p.dtype), p[:-1]), 0), None
    return scan(times, (places == 0).astype(z.dtype), (places[1:], z))[0]


def roots(p, *, strip_zeros=True):
    """The roots of the polynomial with coefficients `p`, highest power first: complex, in no order.

    They are the eigenvalues of the companion matrix (Horn and Johnson, "Matrix Analysis", 3.3).

    Args:
        strip_zeros: leave out the zeros in front of `p`, which make a polynomial of lower degree.  This needs
            the values, so jit needs False: then the result has len(p) - 1 elements, and the last ones, one
            for each zero in front, are NaN.

    >>> jnp.roots(jnp.array([1., -3., 2.]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    p, = _coefficients("roots", p)
    if not strip_zeros:
        return _shifted_roots(p) if len(p) > 1 else _no_roots(0, p)
    p = _trimmed(p, "strip_zeros=False")
    inner = trim_zeros(p, "b")
    found = eigvals(_companion(inner)) if len(inner) > 1 else _no_roots(0, p)
    return append(found, _no_roots(len(p) - len(inner), p))


def _no_roots(n, p):
    return zeros(n, dtypes.complex_of(p.dtype))


def _companion(p):
    n = len(p) - 1
    return eye(n, k=-1, dtype=p.dtype).at[0].set(-p[1:] / p[0])


@composite
def _shifted_roots(p):
    """The roots with the zeros in front of `p` moved to its end: as many more roots of 0, made NaN."""
    leading = sum(cumprod(p == 0))
    p = roll(p, -leading)
    found = eigvals(_companion(p.at[0].set(where(p[0] == 0, 1, p[0]))))
    found = found[argsort(abs(found), descending=True)]
    return where(arange(len(found)) < len(found) - leading, found, np.nan * (1 + 1j))


# --- fits -----------------------------------------------------------------------------------------

@promotes("x", "y")
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The coefficients of the polynomial closest to `y` at `x` by least squares, highest power first.

    Args:
        x: vector (m,).
        y: (m,) or (m, k), columns being fits of their own.
        rcond: singular values below it times the greatest are zero; m times the machine epsilon by default.
        full: return more.
        w: weights (m,) of the differences, not squared.
        cov: return the covariance, which is scaled by the mean squared residual unless it is "unscaled".
    Returns:
        Coefficients (deg + 1,) or (deg + 1, k).  With `full` (coefficients, residuals, rank, singular values,
        rcond); with `cov` (coefficients, their covariance).

    >>> jnp.polyfit(jnp.array([0., 1., 2., 3.]), jnp.array([1., 3., 5., 7.]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    given = (x, y) if w is None else (x, y, w)
    check_arraylike("polyfit", *given)
    x, y, *w = (asarray(v) for v in promote_dtypes_inexact(*given))
    deg = static_int(deg, "polyfit: deg")
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}")
    for fits, what in ((x.ndim == 1, "1D vector for x"), (x.size, "non-empty vector for x"),
                       (y.ndim in (1, 2), "1D or 2D array for y"),
                       (x.shape == y.shape[:1], "x and y to have same length"),
                       (not w or w[0].ndim == 1, "a 1-d array for weights"),
                       (not w or w[0].shape == y.shape[:1], "w and y to have the same length")):
        if not fits:
            raise TypeError(f"polyfit: expected {what}; got shapes "
                            f"{', '.join(str(v.shape) for v in (x, y, *w))}")
    if cov and not full and cov != "unscaled" and len(x) <= deg + 1:
        raise ValueError("polyfit: to scale the covariance there must be more points than coefficients, got "
                         f"{len(x)} and {deg + 1}: use cov='unscaled'")
    rcond = len(x) * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    how = "" if full or not cov else "scaled"
    c, residuals, rank, s, covariance = _polyfit(x, y, w[0] if w else ones(len(x), x.dtype), rcond, deg,
                                                 "unscaled" if how and cov == "unscaled" else how)
    if full:
        return c, residuals, rank, s, asarray(rcond)
    return (c, covariance) if cov else c


@composite(static=("deg", "cov"))
def _polyfit(x, y, w, rcond, deg, cov):
    a, b = vander(x, deg + 1) * w[:, None], (y.T * w).T
    scale = sqrt(sum(real(a * conj(a)), 0))
    scale = where(scale == 0, 1, scale).astype(a.dtype)      # columns of equal size are conditioned better
    a = a / scale
    c, residuals, rank, s = lstsq(a, b, rcond)
    covariance = None
    if cov:
        covariance = inv(adjoint(a) @ a) / outer(scale, scale)
        if cov == "scaled":
            factor = residuals / (len(x) - deg - 1)
            covariance = covariance * factor if y.ndim == 1 else covariance[..., None] * factor
    return (c.T / scale).T, residuals, rank, s, covariance
