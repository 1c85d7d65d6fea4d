"""`pad`, in all its modes."""
import operator

from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.errors import check_choice
from ...core.pytrees import pytree
from ...core.symbolic.dimension import is_symbolic_dim
from ...core.trace import concrete_or_error
from ...lax import shapes as lax
from ...primitives.arrays.elementwise import convert
from ...primitives.arrays.slicing import slice_along
from ...primitives.common import np, scalar
from ..mapping import apply_along_axis
from ..reductions.reductions import max as max_, min as min_
from ..reductions.statistics import mean, median
from ..util import broadcast_to_shape, cast, check_arraylike, dtype_of, ndim as ndim_of, shape as shape_of
from .creation import asarray
from .ranges import linspace

__all__ = ["pad"]

_STATISTICS = {"maximum": max_, "minimum": min_, "mean": mean, "median": median}
_OPTIONS = {"constant": {"constant_values"}, "edge": set(), "empty": set(), "linear_ramp": {"end_values"},
            "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}, "wrap": set(),
            **{name: {"stat_length"} for name in _STATISTICS}}


def pad(array, pad_width, mode="constant", **kwargs):
    """`array` made longer at both ends of each axis; the dtype stays.

    Args:
        pad_width: n, (before, after), or one such pair for each axis; ints known under jit too.
        mode: "constant" (constant_values=), "edge", "linear_ramp" (end_values=), "maximum", "mean", "median",
            "minimum" (stat_length=), "reflect", "symmetric" (reflect_type="even" or "odd"), "wrap", "empty",
            or a function of (padded vector, pair of widths, axis, kwargs) that returns the vector.
    Raises:
        ValueError: for negative widths.
        NotImplementedError: for an unknown mode.

    >>> x = jnp.array([1, 2, 3])
    >>> jnp.pad(x, 2), jnp.pad(x, (1, 0), constant_values=9)
    (Array([0, 0, 1, 2, 3, 0, 0], dtype=int32), Array([9, 1, 2, 3], dtype=int32))
    >>> jnp.pad(x, 2, mode="reflect"), jnp.pad(x, 2, mode="wrap")
    (Array([3, 2, 1, 2, 3, 2, 1], dtype=int32), Array([2, 3, 1, 2, 3, 1, 2], dtype=int32))
    >>> jnp.pad(x, 2, mode="edge"), jnp.pad(x, 2, mode="linear_ramp")
    (Array([1, 1, 1, 2, 3, 3, 3], dtype=int32), Array([0, 0, 1, 2, 3, 1, 0], dtype=int32))
    >>> jnp.pad(jnp.ones((1, 2)), ((0, 1), (2, 0)))
    Array([[0., 0., 1., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    check_arraylike("pad", array)
    widths = _widths(pad_width, ndim_of(array))
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    check_choice("mode", mode, _OPTIONS, NotImplementedError)
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        own = ", ".join(sorted(_OPTIONS[mode])) or "none"
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {', '.join(sorted(unknown))}; it "
                         f"takes {own}")
    if mode not in ("constant", "empty"):
        for n, width in zip(shape_of(array), widths):
            if n == 0 and any(width):
                raise ValueError(f"Cannot apply {mode!r} padding to empty axis: the array has shape "
                                 f"{shape_of(array)}")
    if mode in ("constant", "empty"):
        given = kwargs.get("constant_values", 0)
        values = _values(given, array)
        if ndim_of(array) and not _has_arrays(given) and np.ndim(given) == 0:
            return _filled(asarray(array), values[0, 0], widths=widths)
        return _constant(asarray(array), values, widths=widths)
    if mode == "linear_ramp":
        return _ramp(asarray(array), _values(kwargs.get("end_values", 0), array), widths=widths)
    if mode in _STATISTICS:
        lengths = kwargs.get("stat_length")
        if lengths is not None:
            lengths = tuple(tuple(map(operator.index, pair))
                            for pair in _pairs(lengths, ndim_of(array)).tolist())
            if any(n < 1 for pair in lengths for n in pair):
                raise ValueError(f"stat_length of 0 yields no value for padding: it must be positive, got "
                                 f"{lengths}, to compute {mode}")
        return _statistic(asarray(array), widths=widths, mode=mode, lengths=lengths)
    kind = kwargs.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    return _rearranged(asarray(array), widths=widths, mode=mode, odd=kind == "odd")


def _widths(pad_width, ndim):
    """((before, after), ...) for each axis."""
    known = np.asarray(concrete_or_error(pad_width, "pad_width of jnp.pad must be known"))
    integral = np.issubdtype(known.dtype, np.integer) or any(map(is_symbolic_dim, known.flat))
    if known.size and not integral:
        raise TypeError("`pad_width` must be of integral type.")
    if (known < 0).any():
        raise ValueError(f"pad: index can't contain negative values, got pad_width {pad_width}; a slice "
                         "makes an array smaller, and so does lax.pad")
    return tuple(map(tuple, _pairs(known, ndim, "pad_width").tolist()))


def _pairs(value, ndim, name="value"):
    """A value for each side of each axis: an array of shape (ndim, 2)."""
    if not isinstance(value, Array):
        value = asarray(value) if _has_arrays(value) else np.asarray(value)
    shape = shape_of(value)
    if shape not in ((), (1,), (2,), (1, 2), (ndim, 2)):
        raise ValueError(f"jnp.pad: {name} with nd={ndim} has unsupported shape {shape}: an array of {ndim} "
                         f"axes takes one pair (before, after) for each. Valid shapes are ({ndim}, 2), (1, "
                         "2), (2,), (1,), or ().")
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value, (ndim, 2))
    return broadcast_to_shape(value, (ndim, 2))


def _values(value, array):
    """`_pairs` of numbers that the padded array will hold."""
    for number in pytree.tree_leaves(value):
        if type(number) is int:
            scalar(number, dtype_of(array))     # raises where it does not fit
    return _pairs(value, ndim_of(array))


def _has_arrays(value):
    return isinstance(value, Array) or isinstance(value, (list, tuple)) and any(map(_has_arrays, value))


def _repeated(a, axis, n):
    """`a`, of size 1 along `axis`, n times."""
    return lax.broadcast_in_dim(a, [n if i == axis else s for i, s in enumerate(a.shape)], range(a.ndim))


def _enclosed(before, a, after, axis):
    pieces = [p for p in (before, a, after) if p.shape[axis]]
    return lax.concatenate(pieces, axis) if len(pieces) > 1 else a


@composite(static=("widths",))
def _filled(a, value, *, widths):
    """`a` with one value on all sides."""
    return convert(lax.pad(a, cast(value, a.dtype), [(*width, 0) for width in widths]), a.dtype, a.weak_type)


@composite(static=("widths",))
def _constant(a, values, *, widths):
    weak = a.weak_type
    for axis, width in enumerate(widths):
        for side in range(2):
            config = [(0, 0, 0)] * a.ndim
            config[axis] = (0, width[1], 0) if side else (width[0], 0, 0)
            if width[side]:
                a = lax.pad(a, cast(values[axis, side], a.dtype), config)
    return convert(a, a.dtype, weak)


@composite(static=("widths",))
def _ramp(a, ends, *, widths):
    weak = a.weak_type
    for axis, width in enumerate(widths):
        sides = []
        for side, n in enumerate(width):
            edge = a.shape[axis] - 1 if side else 0
            ramp = linspace(cast(ends[axis, side], a.dtype),
                            lax.squeeze(slice_along(a, axis, edge, edge + 1), (axis,)), n, endpoint=False,
                            dtype=a.dtype, axis=axis)
            sides.append(lax.rev(ramp, (axis,)) if side else ramp)
        a = _enclosed(sides[0], a, sides[1], axis)
    return convert(a, a.dtype, weak)


@composite(static=("widths", "mode", "lengths"))
def _statistic(a, *, widths, mode, lengths):
    weak = a.weak_type
    for axis, width in enumerate(widths):
        size, sides = a.shape[axis], []
        for side, n in enumerate(width):
            length = size if lengths is None else min(lengths[axis][side], size)
            value = _STATISTICS[mode](slice_along(a, axis, *((size - length, size) if side else (0, length))),
                                      axis=axis, keepdims=True)
            if dtypes.is_integer(a.dtype):
                value = value.round()
            sides.append(_repeated(convert(value, a.dtype), axis, n))
        a = _enclosed(sides[0], a, sides[1], axis)
    return convert(a, a.dtype, weak)


@composite(static=("widths", "mode", "odd"))
def _rearranged(a, *, widths, mode, odd):
    """edge, reflect, symmetric, wrap: every element of the result is an element of the array."""
    for axis, width in enumerate(widths):
        n = a.shape[axis]
        if not any(width):
            continue
        if is_symbolic_dim(n):
            a = _joined(a, width, mode, axis, odd)
            continue
        indices = np.pad(np.arange(n), width, mode)
        before, after = indices[:width[0]], indices[width[0] + n:]
        padded = lax.concatenate([*_runs(a, before, axis), a, *_runs(a, after, axis)], axis)
        if odd and (n > 1 or mode == "symmetric"):
            padded = _odd(a, padded, width, mode, axis)
        a = padded
    return a


def _joined(a, width, mode, axis, odd):
    """`_rearranged` along an axis of a size that is not known: its ends, which must be long enough."""
    n, (before, after) = a.shape[axis], width
    if odd:
        raise NotImplementedError(f"jnp.pad: reflect_type='odd' is not supported along the size {n}, whose "
                                  "value is not known yet; 'even' is")
    if mode == "edge":
        ends = [_repeated(slice_along(a, axis, i, i + 1), axis, w) for i, w in ((0, before), (n - 1, after))]
    elif mode == "wrap":
        ends = [slice_along(a, axis, n - before, n), slice_along(a, axis, 0, after)]
    else:
        skipped = int(mode == "reflect")
        ends = [lax.rev(slice_along(a, axis, skipped, before + skipped), (axis,)),
                lax.rev(slice_along(a, axis, n - after - skipped, n - skipped), (axis,))]
    return lax.concatenate([ends[0], a, ends[1]], axis)


def _runs(a, indices, axis):
    """Parts of `a` at static indices along an axis: runs of them that rise, fall or repeat become slices."""
    pieces, i = [], 0
    while i < len(indices):
        step, j = 1, i + 1
        if j < len(indices) and abs(int(indices[j]) - int(indices[i])) <= 1:
            step = int(indices[j]) - int(indices[i])
            while j < len(indices) and indices[j] - indices[j - 1] == step:
                j += 1
        lo, hi = sorted((int(indices[i]), int(indices[j - 1])))
        piece = slice_along(a, axis, lo, hi + 1)
        if step == 0:
            piece = _repeated(piece, axis, j - i)
        pieces.append(lax.rev(piece, (axis,)) if step < 0 else piece)
        i = j
    return pieces


def _odd(a, padded, width, mode, axis):
    """Reflection in a point: 2 * edge - value.

    Two reflections are a shift by twice the difference of the edges.
    """
    n = a.shape[axis]
    period = n if mode == "symmetric" else n - 1
    count = np.arange(-width[0], n + width[1]) // period
    if mode == "reflect":      # the last element is its own reflection
        count = np.where((np.arange(-width[0], n + width[1]) == n - 1), 0, count)
    flipped, shifts = count % 2, count - count % 2
    column = [1] * a.ndim
    column[axis] = len(count)

    def along(values):
        return values.astype(a.dtype).reshape(column)
    first, last = slice_along(a, axis, 0, 1), slice_along(a, axis, n - 1, n)
    return along(1 - 2 * flipped) * padded + along(2 * flipped + shifts) * last - along(shifts) * first


def _by_function(array, widths, function, kwargs):
    """NumPy's protocol: the function gets each vector of the padded array, axis by axis."""
    padded = _filled(asarray(array), np.int32(0), widths=widths)
    for axis, width in enumerate(widths):
        padded = apply_along_axis(function, axis, padded, width, axis, kwargs)
    return padded
