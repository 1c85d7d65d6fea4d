"""Calculus on samples: differences, slopes, integrals, interpolation, phases."""
import functools
import operator

from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..lax import shapes as lax
from ..lax.reductions import sort_key_val
from ..primitives.common import canonical_axes, canonical_axis, np
from .arrays.creation import asarray
from .arrays.joining import concatenate
from .arrays.shaping import broadcast_to, moveaxis, ravel
from .elementwise.arithmetic import clip, remainder
from .elementwise.ufuncs import abs as abs_, not_equal
from .indexing.conditions import where
from .indexing.indexing import get
from .reductions.reductions import cumsum
from .reductions.sorting import searchsorted
from .util import (
    cast, check_arraylike, ndim as ndim_of, promote_dtypes, promote_dtypes_inexact, promotes,
    shape as shape_of)

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def _along(a, axis, *bounds):
    """`a[..., lo:hi, ...]` along one axis."""
    return a[(slice(None),) * axis + (slice(*bounds),)]


# --- differences ----------------------------------------------------------------------------------

def diff(a, n=1, axis=-1, prepend=None, append=None):
    """The n-th differences of neighbours along `axis`; of bools, whether they differ.

    Args:
        prepend: a scalar or an array that is put before `a` first.
        append: a scalar or an array that is put behind `a` first.

    >>> x = jnp.array([1, 4, 9, 16])
    >>> jnp.diff(x), jnp.diff(x, n=2), jnp.diff(x, prepend=0)
    (Array([3, 5, 7], dtype=int32), Array([2, 2], dtype=int32), Array([1, 3, 5, 7], dtype=int32))
    >>> jnp.diff(jnp.array([True, True, False]))
    Array([False,  True], dtype=bool)
    """
    check_arraylike("diff", a, *(v for v in (prepend, append) if v is not None))
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}: n is how often differences are taken")
    if n and not ndim_of(a):
        raise ValueError(f"diff requires input that is at least one dimensional; got shape {shape_of(a)}")
    return _diff(asarray(a), prepend, append, n=n, axis=canonical_axis(axis, ndim_of(a))) if n else asarray(a)


@composite(static=("n", "axis"))
def _diff(a, prepend, append, *, n, axis):
    def widened(end):
        if ndim_of(end):
            return end
        return broadcast_to(end, [1 if i == axis else s for i, s in enumerate(a.shape)])
    parts = [None if prepend is None else widened(prepend), a, None if append is None else widened(append)]
    if prepend is not None or append is not None:
        a = concatenate([p for p in parts if p is not None], axis)
    for _ in range(n):
        after, before = _along(a, axis, 1, None), _along(a, axis, None, -1)
        a = not_equal(after, before) if dtypes.is_bool(a.dtype) else after - before
    return a


@composite
def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours in the flattened array, between `to_begin` and `to_end`.

    >>> jnp.ediff1d(jnp.array([[1, 4], [9, 16]]), to_begin=0, to_end=jnp.array([-1, -2]))
    Array([ 0,  3,  5,  7, -1, -2], dtype=int32)
    """
    given = [v for v in (to_begin, to_end) if v is not None]
    check_arraylike("ediff1d", ary, *given)
    ary = asarray(ary)
    parts = [to_begin, _diff(ravel(ary), None, None, n=1, axis=0), to_end]
    weak = ary.weak_type and to_end is None and to_begin is None
    return concatenate([cast(ravel(p), ary.dtype, weak) for p in parts if p is not None])


def gradient(f, *varargs, axis=None, edge_order=None):
    """The slope along each axis: central differences inside, one-sided ones at the ends.

    Integers become the default float.

    Args:
        varargs: one spacing for all axes, or one for each: a number, or a vector of coordinates.
        axis: an int or a tuple; all axes for None, which gives a list if there are several.
        edge_order: not supported; None.
    Raises:
        NotImplementedError: for an `edge_order`.

    >>> jnp.gradient(jnp.array([1., 4., 9., 16.]))
    Array([3., 4., 6., 7.], dtype=float32)
    >>> jnp.gradient(jnp.array([1., 4., 16.]), jnp.array([1., 2., 4.]))
    Array([3., 4., 6.], dtype=float32)
    >>> jnp.gradient(jnp.array([[1., 2.], [5., 6.]]), 0.5)
    [Array([[8., 8.],
           [8., 8.]], dtype=float32), Array([[2., 2.],
           [2., 2.]], dtype=float32)]
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    check_arraylike("gradient", f, *varargs)
    axes = canonical_axes(axis, ndim_of(f))
    if not varargs:
        varargs = (True,)       # a spacing of 1, which decides no dtype
    if len(varargs) == 1:
        varargs = varargs * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for {axis=}")
    for i, h in zip(axes, varargs):
        if shape_of(f)[i] < 2:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 "
                             f"elements are required: axis {i} of shape {shape_of(f)}")
        if ndim_of(h) > 1 or ndim_of(h) == 1 and shape_of(h) != (shape_of(f)[i],):
            raise ValueError("Spacing arrays must be 1D arrays or scalars, and must have the same length "
                             f"as the dimension along which the gradient is calculated: {shape_of(f)[i]} "
                             f"along axis {i}, got shape {shape_of(h)}")
    results = _gradient(f, varargs, axes=axes)
    return results[0] if len(axes) == 1 else results


@composite(static=("axes",))
@promotes()
def _gradient(f, spacings, *, axes):
    f, *spacings = promote_dtypes_inexact(f, *spacings)
    return [_slope(asarray(f), h, axis) for axis, h in zip(axes, spacings)]


def _slope(a, h, axis):
    part = functools.partial(_along, a, axis)
    if not ndim_of(h):
        steps = (h, h, h)
        inner = (part(2, None) - part(None, -2)) * 0.5
    else:
        column = [1] * a.ndim
        column[axis] = -1
        dx = (h[1:] - h[:-1]).astype(a.dtype)
        left, right = dx[:-1].reshape(column), dx[1:].reshape(column)
        # the weights that are exact for parabolas
        inner = (part(2, None) * left / right + part(1, -1) * (right / left - left / right)
                 - part(None, -2) * right / left) / (left + right)
        steps = (dx[0], 1, dx[-1])
    ends = [(part(1, 2) - part(0, 1)) / steps[0], (part(-1, None) - part(-2, -1)) / steps[2]]
    return lax.concatenate([cast(x, a.dtype, a.weak_type) for x in (ends[0], inner / steps[1], ends[1])],
                           axis)


# --- integration, interpolation, phases -----------------------------------------------------------

@composite(static=("axis",))
@promotes("y", "x", "dx")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoidal rule.

    Args:
        x: the positions, in place of `dx`.
        dx: the distance; an array broadcasts against the intervals of `y`, as in NumPy.

    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    >>> jnp.trapezoid(jnp.array([1., 2., 3.]), x=jnp.array([0., 1., 3.]))
    Array(6.5, dtype=float32)
    """
    check_arraylike("trapezoid", y, *([] if x is None else [x]), dx)
    canonical_axis(axis, ndim_of(y))        # x may have other axes, so each counts its own
    y, x = asarray(y), None if x is None else asarray(x)
    if x is None:
        y, = promote_dtypes_inexact(y)
        y = moveaxis(y, axis, -1)
        if shape_of(dx):    # it broadcasts against the intervals in their places
            return (0.5 * dx * moveaxis(y[..., 1:] + y[..., :-1], -1, axis)).sum(axis % y.ndim - y.ndim)
        return dx * (y.sum(-1) - 0.5 * (y[..., 0] + y[..., -1]))
    y, x = promote_dtypes_inexact(y, x)
    x, y = x if x.ndim == 1 else moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    return 0.5 * ((x[..., 1:] - x[..., :-1]) * (y[..., 1:] + y[..., :-1])).sum(-1)


@composite(static=("axis",))
def unwrap(p, discont=None, axis=-1, period=2 * np.pi):
    """`p` with multiples of `period` added, so that neighbours along `axis` differ by at most half of it.

    Args:
        discont: smaller steps stay, half a period at least.

    >>> jnp.unwrap(jnp.array([350., 355., 2., 8.]), period=360)
    Array([350., 355., 362., 368.], dtype=float32)
    """
    check_arraylike("unwrap", p, period, *([] if discont is None else [discont]))
    if dtypes.is_complex(aval_of(p).dtype):
        raise ValueError("jnp.unwrap does not support complex inputs: unwrap jnp.angle(p)")
    p, axis = asarray(p), canonical_axis(axis, ndim_of(p))
    if type(period) is not float:
        p, _ = promote_dtypes(p, period)
    elif not dtypes.is_inexact(p.dtype):
        p = p.astype(float)
    if not p.shape[axis]:
        return p
    half = period // 2 if dtypes.is_integer(p.dtype) else period / 2
    jump = _diff(p, None, None, n=1, axis=axis)
    wrapped = remainder(jump + half, period) - half
    wrapped = where((wrapped == -half) & (jump > 0), half, wrapped)
    change = where(abs_(jump) < (half if discont is None else discont), 0, wrapped - jump)
    return lax.concatenate([_along(p, axis, 0, 1), (_along(p, axis, 1, None) +
                                                    cumsum(change, axis)).astype(p.dtype)], axis)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear interpolation at `x` through the points (xp, fp), xp increasing.

    The result is floating point, and differentiable in fp and x.

    Args:
        x: an array of any shape.
        xp: a vector.
        fp: a vector of the same length.
        left: the value before the first point, that of the first point by default; "extrapolate" goes on with
            the last slope.
        right: the same for after the last point.
        period: the points are repeated with it.

    >>> xp, fp = jnp.array([0., 1., 2.]), jnp.array([0., 10., 0.])
    >>> jnp.interp(jnp.array([0.5, 1.5, 9.]), xp, fp), jnp.interp(9., xp, fp, right="extrapolate")
    (Array([5., 5., 0.], dtype=float32), Array(-70., dtype=float32))
    >>> jnp.interp(jnp.array([-1., 3.]), xp, fp, period=4)
    Array([0., 0.], dtype=float32)
    """
    check_arraylike("interp", x, xp, fp, *(v for v in (left, right, period) if v is not None
                                           and v != "extrapolate" and not isinstance(v, str)))
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"the only valid string value of `{name}` is 'extrapolate', but got: {value!r}; "
                             "or give a number")
    if dtypes.is_complex(aval_of(x).dtype) or dtypes.is_complex(aval_of(xp).dtype):
        raise ValueError(f"complex x values have no order: x is {aval_of(x).str_short()} and xp "
                         f"{aval_of(xp).str_short()}; only "
                         "fp may be complex")
    if ndim_of(xp) != 1 or shape_of(xp) != shape_of(fp):
        raise ValueError(f"xp and fp must be one-dimensional arrays of equal size, got shapes {shape_of(xp)} "
                         f"and {shape_of(fp)}")
    if period is not None and ndim_of(period):
        raise ValueError(f"period must be a scalar; got shape {shape_of(period)}")
    beyond = (isinstance(left, str), isinstance(right, str))
    return _interp(x, xp, fp, None if beyond[0] else left, None if beyond[1] else right, period,
                   extrapolate=beyond)


@composite(static=("extrapolate",))
def _interp(x, xp, fp, left, right, period, *, extrapolate):
    x, xp = (asarray(v) for v in promote_dtypes_inexact(x, xp))
    fp = asarray(promote_dtypes_inexact(fp)[0])
    if period is not None:
        period = abs_(period)
        x, xp = remainder(x, period), remainder(xp, period)
        xp, fp = sort_key_val(xp, fp)
        xp = concatenate([(xp[-1:] - period).astype(xp.dtype), xp, (xp[:1] + period).astype(xp.dtype)])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    i = clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    read = functools.partial(get, mode="promise_in_bounds")
    x0, y0 = read(xp, i - 1), read(fp, i - 1)
    width = read(xp, i) - x0
    # two points at one place: no slope (and no division by zero in the derivative)
    flat = abs_(width) <= dtypes.finfo(xp.dtype).eps ** 2
    out = where(flat, y0, y0 + (x - x0) / where(flat, 1, width) * (read(fp, i) - y0))
    if period is None:
        if not extrapolate[0]:
            out = where(x < xp[0], fp[0] if left is None else left, out)
        if not extrapolate[1]:
            out = where(x > xp[-1], fp[-1] if right is None else right, out)
    return out
