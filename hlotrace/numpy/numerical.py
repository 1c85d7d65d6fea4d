"""Differences, integration, interpolation, piecewise functions, windows, bits, mapping over axes."""
import functools
import operator

from ..api.composite import composite
from ..api.vmap import vmap
from ..core import dtypes
from ..core.avals import aval_of
from ..core.trace import concrete_or_error
from ..lax import shapes as lax
from ..lax.control_flow import scan
from ..primitives.common import canonical_axes, canonical_axis, np
from ..primitives.elementwise import convert, cos
from .compound import clip, i0, remainder, where
from .creation import asarray, full, ones, zeros
from .indexing import get
from .reductions import cumsum
from .reductions import sum as sum_
from .shaping import broadcast_to, concatenate, expand_dims, moveaxis, ravel, reshape
from .sorting import searchsorted
from .ufuncs import abs as abs_
from .ufuncs import not_equal, sqrt
from .util import broadcast_shapes, cast, check_arraylike, promote_dtypes, promote_dtypes_inexact
from .util import ndim as ndim_of
from .util import shape as shape_of

__all__ = ["apply_along_axis", "apply_over_axes", "bartlett", "blackman", "diff", "ediff1d", "gradient", "hamming",
           "hanning", "interp", "kaiser", "packbits", "piecewise", "polyval", "select", "trapezoid", "trim_zeros",
           "unpackbits", "unwrap"]


def _along(a, axis, *bounds):
    """`a[..., lo:hi, ...]` along one axis."""
    return a[(slice(None),) * axis + (slice(*bounds),)]


# --- differences ------------------------------------------------------------------------------------------------

def diff(a, n=1, axis=-1, prepend=None, append=None):
    """The n-th differences of neighbours along `axis`; of bools, whether they differ."""
    check_arraylike("diff", a, *(v for v in (prepend, append) if v is not None))
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not ndim_of(a):
        raise ValueError(f"diff requires input that is at least one dimensional; got shape {shape_of(a)}")
    return _diff(asarray(a), prepend, append, n=n, axis=canonical_axis(axis, ndim_of(a))) if n else asarray(a)


@composite(static=("n", "axis"))
def _diff(a, prepend, append, *, n, axis):
    def widened(end):
        return end if ndim_of(end) else broadcast_to(end, [1 if i == axis else s for i, s in enumerate(a.shape)])
    parts = [None if prepend is None else widened(prepend), a, None if append is None else widened(append)]
    if prepend is not None or append is not None:
        a = concatenate([p for p in parts if p is not None], axis)
    for _ in range(n):
        after, before = _along(a, axis, 1, None), _along(a, axis, None, -1)
        a = not_equal(after, before) if dtypes.is_bool(a.dtype) else after - before
    return a


def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours in the flattened array, between `to_begin` and `to_end`."""
    given = [v for v in (to_begin, to_end) if v is not None]
    check_arraylike("ediff1d", ary, *given)
    return _ediff1d(asarray(ary), to_end, to_begin)


@composite
def _ediff1d(ary, to_end, to_begin):
    parts = [to_begin, _diff(ravel(ary), None, None, n=1, axis=0), to_end]
    return concatenate([cast(ravel(p), ary.dtype) for p in parts if p is not None])


def gradient(f, *varargs, axis=None, edge_order=None):
    """The slope along each axis (or those in `axis`): central differences inside, one-sided ones at the ends.

    `varargs` is one spacing for all axes, or one for each: a number, or a vector of coordinates.
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    check_arraylike("gradient", f, *varargs)
    axes = canonical_axes(axis, ndim_of(f))
    if not varargs:
        varargs = (1.0,)
    if len(varargs) == 1:
        varargs = varargs * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for {axis=}")
    for i, h in zip(axes, varargs):
        if shape_of(f)[i] < 2:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 elements are "
                             f"required: axis {i} of shape {shape_of(f)}")
        if ndim_of(h) > 1 or ndim_of(h) == 1 and shape_of(h) != (shape_of(f)[i],):
            raise ValueError(f"gradient: the spacing along axis {i} must be a scalar or a vector of its size "
                             f"{shape_of(f)[i]}, got shape {shape_of(h)}")
    results = _gradient(f, varargs, axes=axes)
    return results[0] if len(axes) == 1 else results


@composite(static=("axes",))
def _gradient(f, spacings, *, axes):
    f, = promote_dtypes_inexact(f)
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
    return lax.concatenate([x.astype(a.dtype) for x in (ends[0], inner / steps[1], ends[1])], axis)


# --- integration, interpolation, phases -------------------------------------------------------------------------

def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along `axis` by the trapezoidal rule, over positions `x` or with distance `dx`."""
    check_arraylike("trapezoid", y, *([] if x is None else [x]), dx)
    return _trapezoid(asarray(y), None if x is None else asarray(x), dx, axis=canonical_axis(axis, ndim_of(y)))


@composite(static=("axis",))
def _trapezoid(y, x, dx, *, axis):
    if x is None:
        y, = promote_dtypes_inexact(y)
        y = moveaxis(y, axis, -1)
        return dx * (y.sum(-1) - 0.5 * (y[..., 0] + y[..., -1]))
    y, x = promote_dtypes_inexact(y, x)
    step = x[1:] - x[:-1] if x.ndim == 1 else moveaxis(_diff(x, None, None, n=1, axis=axis), axis, -1)
    y = moveaxis(y, axis, -1)
    return 0.5 * (step * (y[..., 1:] + y[..., :-1])).sum(-1)


def unwrap(p, discont=None, axis=-1, period=2 * np.pi):
    """`p` with multiples of `period` added, so that neighbours along `axis` differ by at most half of it."""
    check_arraylike("unwrap", p, period, *([] if discont is None else [discont]))
    return _unwrap(asarray(p), discont, period, axis=canonical_axis(axis, ndim_of(p)))


@composite(static=("axis",))
def _unwrap(p, discont, period, *, axis):
    p = p.astype(dtypes.to_inexact(p.dtype)) if type(period) is float else promote_dtypes(p, period)[0]
    if not p.shape[axis]:
        return p
    half = period // 2 if dtypes.is_integer(p.dtype) else period / 2
    jump = _diff(p, None, None, n=1, axis=axis)
    wrapped = remainder(jump + half, period) - half
    wrapped = where((wrapped == -half) & (jump > 0), half, wrapped)
    change = where(abs_(jump) < (half if discont is None else discont), 0, wrapped - jump)
    return lax.concatenate([_along(p, axis, 0, 1), (_along(p, axis, 1, None) + cumsum(change, axis)).astype(p.dtype)],
                           axis)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear interpolation at `x` through the points (xp, fp), xp increasing.

    Outside, the values are `left` and `right` (default: the end points), "extrapolate" goes on with the last slope;
    with a `period` the points are repeated.
    """
    check_arraylike("interp", x, xp, fp, *(v for v in (left, right, period) if v is not None and v != "extrapolate"
                                           and not isinstance(v, str)))
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"the only valid string value of `{name}` is 'extrapolate', but got: {value!r}")
    if ndim_of(xp) != 1 or shape_of(xp) != shape_of(fp):
        raise ValueError(f"xp and fp must be one-dimensional arrays of equal size, got shapes {shape_of(xp)} and "
                         f"{shape_of(fp)}")
    if period is not None and ndim_of(period):
        raise ValueError(f"period must be a scalar; got shape {shape_of(period)}")
    beyond = (isinstance(left, str), isinstance(right, str))
    return _interp(x, xp, fp, None if beyond[0] else left, None if beyond[1] else right, period, extrapolate=beyond)


@composite(static=("extrapolate",))
def _interp(x, xp, fp, left, right, period, *, extrapolate):
    x, xp = (asarray(v) for v in promote_dtypes_inexact(x, xp))
    fp = asarray(promote_dtypes_inexact(fp)[0])
    if period is not None:
        period = abs_(period)
        x, xp = remainder(x, period), remainder(xp, period)
        from ..lax.reductions import sort_key_val
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


def polyval(p, x, *, unroll=16):
    """The polynomial with coefficients `p`, highest power first, at `x`, by Horner's rule."""
    check_arraylike("polyval", p, x)
    return _polyval(p, x, unroll=unroll)


@composite(static=("unroll",))
def _polyval(p, x, *, unroll):
    p, x = (asarray(v) for v in promote_dtypes(p, x))
    start = zeros(broadcast_shapes(p.shape[1:], x.shape), x.dtype)
    return scan(lambda total, c: (total * x + c, None), start, p, unroll=unroll)[0]


# --- choices ----------------------------------------------------------------------------------------------------

def select(condlist, choicelist, default=0):
    """Elementwise, the choice of the first condition that holds; `default` where none does."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    return _select(list(condlist), list(choicelist), default)


@composite
def _select(conditions, choices, default):
    *choices, out = promote_dtypes(*choices, default)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        out = where(condition, choice, out)
    return out


def piecewise(x, condlist, funclist, *args, **kw):
    """Each function of `funclist` where its condition holds; one more function is for the rest (default: 0).

    Functions are mapped over the elements of `x` and get `args` and `kw`; numbers stand for constants.  Where
    several conditions hold, the last one counts.
    """
    check_arraylike("piecewise", x)
    x = asarray(x)
    conditions = [broadcast_to(asarray(c, bool), x.shape) for c in condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} "
                         f"functions are expected; got {len(functions)}")
    out = functions.pop() if len(functions) > len(conditions) else 0

    def value(function):
        if not callable(function):
            return full(x.shape, function, x.dtype)
        each = vmap(lambda v: asarray(function(v, *args, **kw)).astype(x.dtype))
        return reshape(each(ravel(x)), x.shape)
    out = value(out)
    for condition, function in zip(conditions, functions):
        out = where(condition, value(function), out)
    return out


# --- mapping over axes ------------------------------------------------------------------------------------------

def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """`func1d` of each vector along `axis`; its result takes the place of that axis."""
    check_arraylike("apply_along_axis", arr)
    arr = asarray(arr)
    axis = canonical_axis(axis, arr.ndim)

    def mapped(vector):
        return func1d(vector, *args, **kwargs)
    for _ in range(axis + 1, arr.ndim):
        mapped = vmap(mapped, in_axes=1, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped)
    return mapped(arr)


def apply_over_axes(func, a, axes):
    """`func(a, axis)` for one axis after another; axes that it removes are put back with size 1."""
    a = asarray(a)
    for axis in axes:
        result = func(a, axis)
        if result.ndim == a.ndim - 1:
            result = expand_dims(result, canonical_axis(axis, a.ndim))
        if result.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = result
    return a


def trim_zeros(filt, trim="fb", axis=None):
    """Without the zeros at the front ("f") and at the back ("b") of each axis, or of those in `axis`."""
    check_arraylike("trim_zeros", filt)
    value = np.asarray(concrete_or_error(filt, "The result of jnp.trim_zeros depends on values"))
    places = np.nonzero(value)
    bounds = [slice(None)] * value.ndim
    for i in canonical_axes(axis, value.ndim):
        low, high = (places[i].min(), places[i].max() + 1) if places[i].size else (0, 0)
        bounds[i] = slice(low if "f" in trim.lower() else None, high if "b" in trim.lower() else None)
    return asarray(filt)[tuple(bounds)]


# --- bits -------------------------------------------------------------------------------------------------------

def _bit_weights(bitorder):
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    return np.arange(8, dtype=np.uint8)[::-1 if bitorder == "big" else 1]


def packbits(a, axis=None, bitorder="big"):
    """Bits (elements that are not 0) along `axis` packed into bytes, the last one filled up with zeros."""
    check_arraylike("packbits", a)
    if not (dtypes.is_integer(aval_of(a).dtype) or dtypes.is_bool(aval_of(a).dtype)):
        raise TypeError("packbits: Expected an input array of integer or boolean data type")
    _bit_weights(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), canonical_axis(axis, ndim_of(a)))
    return _packbits(a, axis=axis, bitorder=bitorder)


@composite(static=("axis", "bitorder"))
def _packbits(a, *, axis, bitorder):
    a = moveaxis(a, axis, -1)
    bits = convert(not_equal(a, 0), dtypes.uint8)
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (a.ndim - 1) + [(0, -a.shape[-1] % 8, 0)])
    bits = bits.reshape(*bits.shape[:-1], -(-a.shape[-1] // 8), 8) << _bit_weights(bitorder)
    return moveaxis(sum_(bits, -1, dtype=dtypes.uint8), -1, axis)


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes along `axis`; `count` of them, or all but the last -count."""
    check_arraylike("unpackbits", a)
    if aval_of(a).dtype != dtypes.uint8:
        raise TypeError(f"unpackbits: Expected an input array of unsigned byte data type, got {aval_of(a).dtype}")
    _bit_weights(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), canonical_axis(axis, ndim_of(a)))
    return _unpackbits(a, axis=axis, count=count, bitorder=bitorder)


@composite(static=("axis", "count", "bitorder"))
def _unpackbits(a, *, axis, count, bitorder):
    a = moveaxis(a, axis, -1)
    bits = (a[..., None] >> _bit_weights(bitorder)) & np.uint8(1)
    bits = bits.reshape(*a.shape[:-1], a.shape[-1] * 8)
    if count is not None:
        missing = max(0, count - bits.shape[-1])
        bits = lax.pad(bits[..., :count], np.uint8(0), [(0, 0, 0)] * (a.ndim - 1) + [(0, missing, 0)])
    return moveaxis(bits, -1, axis)


# --- windows ----------------------------------------------------------------------------------------------------

def _window(name, formula, doc):
    """A window function of M points from its formula in (0, 1, ..., M - 1), M and the parameters."""
    def window(M, *parameters):
        M = operator.index(concrete_or_error(M, f"M argument of jnp.{name}"))
        if M <= 1:
            return ones(M)
        return _windowed(*parameters, formula=formula, M=M)
    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return window


@composite(static=("formula", "M"))
def _windowed(*parameters, formula, M):
    n = lax.iota(dtypes.canonicalize(dtypes.float64), M)
    return formula(n, M, *parameters)


def _cosines(*weights):
    def formula(n, M):
        return sum(w * (-1) ** k * cos(2 * np.pi * k * n / (M - 1)) if k else w for k, w in enumerate(weights))
    return formula


def _kaiser(n, M, beta):
    middle = (M - 1) / 2
    return i0(beta * sqrt(1 - ((n - middle) / middle) ** 2)) / i0(asarray(beta, n.dtype))


hanning = _window("hanning", _cosines(0.5, 0.5), "The Hann window of M points: 0.5 - 0.5 cos(2 pi n / (M - 1)).")
hamming = _window("hamming", _cosines(0.54, 0.46), "The Hamming window of M points.")
blackman = _window("blackman", _cosines(0.42, 0.5, 0.08), "The Blackman window of M points.")
bartlett = _window("bartlett", lambda n, M: 1 - abs_(2 * n + 1 - M) / (M - 1), "The triangular window of M points.")
_kaiser_window = _window("kaiser", _kaiser, None)


def kaiser(M, beta):
    """The Kaiser window of M points; a larger `beta` makes it narrower."""
    return _kaiser_window(M, beta)
