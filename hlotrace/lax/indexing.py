"""Slices, gathers and scatters: the public functions over `primitives/arrays/gather.py` and
`primitives/arrays/dynamic_slice.py`."""
import operator

from ..api.composite import composite
from ..core import dtypes
from ..core.array import Array
from ..core.avals import ShapedArray, aval_of
from ..core.config import state
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.programs import embed_constants
from ..core.symbolic.dimension import Dimension, as_size
from ..core.trace import Tracer
from ..primitives.arrays import gather as _gather
from ..primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.arrays.elementwise import add, convert, lt, neg, select
from ..primitives.arrays.gather import gather_p
from ..primitives.arrays.gather_numbers import (
    PROMISE, GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, window_sizes)
from ..primitives.arrays.shape import full, new_axis, reshape, squeeze_p
from ..primitives.arrays.slicing import concatenate_p, slice_p
from ..primitives.common import canonical_axis, check_index, dtype_of, is_constant, np, scalar, shape_of
from ..primitives.programs.checks import outside, report_all

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "dynamic_index_in_dim",
           "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
           "dynamic_update_slice_in_dim", "gather", "index_in_dim", "index_take", "scatter", "scatter_add",
           "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "slice",
           "slice_in_dim"]

_INT_MAX = 2**31 - 1


# --- bounds at run time ---------------------------------------------------------------------------

def check_bounds(shape, axes, indices, wraps=False, window=()):
    """Make the program raise IndexError, when it has run, where an index is out of bounds.

    It is called where `state.check_bounds` is set.

    Args:
        axes: the axes that the last axis of `indices` counts along.
        indices: the positions where a window begins.
        wraps: negative indices count from the end.
        window: the sizes of the window, by default one element.
    """
    lasts = tuple([shape[a] - (window[a] if window else 1) for a in axes])
    _look(indices, shape=tuple(shape), axes=tuple(axes), lasts=lasts, window=tuple(window),
          firsts=tuple([-shape[a] if wraps else 0 for a in axes]))


@composite(static=("shape", "axes", "lasts", "firsts", "window"))
def _look(indices, *, shape, axes, lasts, firsts, window):
    report_all(outside(shape, axes, indices, lasts, firsts, window))


# --- static slices --------------------------------------------------------------------------------

def slice(operand, start_indices, limit_indices, strides=None):
    """The elements at `start, start + stride, ...` below `limit` along each axis.

    Args:
        start_indices: ints, one for each axis.
        limit_indices: ints, one for each axis.
        strides: positive ints, one for each axis; 1 for None.
    Raises:
        TypeError: unless 0 <= start <= limit <= size.

    >>> lax.slice(jnp.arange(10), (1,), (8,), (3,))
    Array([1, 4, 7], dtype=int32)
    """
    strides = None if strides is None else tuple(map(operator.index, strides))
    return slice_p.bind(operand, start_indices=tuple(map(as_size, start_indices)),
                        limit_indices=tuple(map(as_size, limit_indices)), strides=strides)


def _from_start(index, size):
    return index + size if index < 0 else index


def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """`slice` along one axis; None means from the start or to the end, negative indices count from the end.

    >>> lax.slice_in_dim(jnp.arange(6).reshape(2, 3), 1, None, axis=1)
    Array([[1, 2],
           [4, 5]], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    start = 0 if start_index is None else _from_start(start_index, shape[axis])
    limit = shape[axis] if limit_index is None else _from_start(limit_index, shape[axis])
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice(operand, starts, limits, None if stride == 1 else strides)


def index_in_dim(operand, index, axis=0, keepdims=True):
    """The entry at static `index` along an axis.

    Raises:
        IndexError: where it is out of bounds.

    >>> lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis, index = canonical_axis(axis, len(shape)), operator.index(index)
    size = shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    result = slice_in_dim(operand, index % size, index % size + 1, 1, axis)
    return result if keepdims else squeeze_p.bind(result, dimensions=(axis,))


# --- dynamic slices -------------------------------------------------------------------------------

def index_dtype(values):
    """The dtype in which index values of any integer types are compared: int32, or a wider one of theirs."""
    avals = [aval_of(v) for v in values if type(v) is not int]
    wide = [a.dtype for a in avals if a.dtype.itemsize >= 4]
    if len(set(wide)) == 1:
        return wide[0]
    return dtypes.int64 if any(d.itemsize == 8 for d in wide) else dtypes.int32


def _start(value, size, dtype, negative):
    """A scalar start of `dtype`; a negative one counts from the end if `negative`."""
    if isinstance(value, (int, np.integer)):
        value = int(value) + (size if value < 0 and negative else 0)
        return scalar(value if type(value) is Dimension else max(min(value, _INT_MAX), -1 - _INT_MAX), dtype)
    value = convert(value, dtype)
    if not negative or dtypes.is_unsigned(dtype):
        return value
    return select(lt(value, 0), add(value, scalar(size, dtype)), value)


def _starts(name, operand, start_indices, negative):
    shape = aval_of(operand).shape
    if not isinstance(start_indices, (tuple, list)):
        aval = aval_of(start_indices)
        if aval.ndim != 1:
            raise ValueError(f"{name}: start_indices must be a sequence of scalars or an array with one "
                             f"axis, got shape {aval.shape}")
        start_indices = [reshape(slice(start_indices, (i,), (i + 1,)), ()) if isinstance(start_indices, Array)
                         else start_indices[i] for i in range(aval.size)]
    if len(start_indices) != len(shape):
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(start_indices)} vs {shape})")
    given = [dtypes.canonicalize(aval_of(v).dtype) for v in start_indices if type(v) is not int]
    if len(set(given)) > 1 or not all(map(dtypes.is_integer, given)):
        raise TypeError(f"index arguments to {name} must be integers of the same type, got: "
                        f"{', '.join(d.name for d in given)}: convert with .astype(int)")
    dtype = index_dtype(start_indices)
    if isinstance(negative, bool):
        negative = [negative] * len(shape)
    return [_start(*each, dtype=dtype, negative=n) for *each, n in zip(start_indices, shape, negative)]


def _check_starts(shape, given, starts, window, negative):
    """`check_bounds` for the `starts` of a window: where it is one element, for those that were `given`."""
    for axis, (size, width) in enumerate(zip(shape, window)):
        wraps = width == 1 and (negative if isinstance(negative, bool) else negative[axis])
        start = given[axis] if wraps else starts[axis]
        if not (is_constant(start) and -size * wraps <= start <= size - width):
            check_bounds(shape, (axis,), reshape(convert(start, dtype_of(starts[axis])), (1,)), wraps, window)


def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True):
    """The window of `slice_sizes` that begins at `start_indices`, which may be traced.

    Negative starts count from the end; a window that sticks out is moved inside.

    >>> lax.dynamic_slice(jnp.arange(10), (jnp.int32(3),), (4,))
    Array([3, 4, 5, 6], dtype=int32)
    """
    starts = _starts("dynamic_slice", operand, start_indices, allow_negative_indices)
    slice_sizes = tuple(map(as_size, slice_sizes))
    if state.check_bounds:
        _check_starts(aval_of(operand).shape, start_indices, starts, slice_sizes, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=slice_sizes)


def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """`dynamic_slice` along one axis.

    >>> lax.dynamic_slice_in_dim(jnp.arange(6).reshape(2, 3), 1, 2, axis=1)
    Array([[1, 2],
           [4, 5]], dtype=int32)
    """
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _checked_axis(operand, index, axis, wraps):
    shape = aval_of(operand).shape
    axis = canonical_axis(axis, len(shape))
    check_index(index, shape[axis], axis, first=None if wraps else 0)
    return axis


def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """The entry at `index`, which may be traced, along one axis.

    An index out of bounds reads the nearest entry.

    >>> lax.dynamic_index_in_dim(jnp.arange(6).reshape(2, 3), 1, keepdims=False)
    Array([3, 4, 5], dtype=int32)
    """
    axis = _checked_axis(operand, index, axis, allow_negative_indices)
    result = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return result if keepdims else squeeze_p.bind(result, dimensions=(axis,))


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True):
    """`operand` with `update` written over the window that begins at `start_indices`, moved inside as needed.

    >>> lax.dynamic_update_slice(jnp.zeros(5, int), jnp.array([1, 2]), (2,))
    Array([0, 0, 1, 2, 0], dtype=int32)
    """
    starts = _starts("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    if state.check_bounds:
        _check_starts(aval_of(operand).shape, start_indices, starts, aval_of(update).shape,
                      allow_negative_indices)
    if aval_of(operand).explicit is not aval_of(update).explicit:
        from ..sharding.explicit import check_alike
        check_alike("dynamic_update_slice operand sharding must be equal to update sharding",
                    aval_of(operand), aval_of(update))
    result = dynamic_update_slice_p.bind(operand, update, *starts)
    return convert(result, result.dtype)        # of a strong type


def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """`dynamic_update_slice` along one axis.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(5, int), jnp.array([1, 2]), 2, 0)
    Array([0, 0, 1, 2, 0], dtype=int32)
    """
    ndim = aval_of(operand).ndim
    starts = [0] * ndim
    starts[canonical_axis(axis, ndim)] = start_index
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """`operand` with `update` written at `index`, which may be traced, along one axis.

    `update` may lack that axis.  An index out of bounds writes the nearest entry.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 2), int), jnp.array([1, 2]), 1, 0)
    Array([[0, 0],
           [1, 2]], dtype=int32)
    """
    axis = _checked_axis(operand, index, axis, allow_negative_indices)
    if aval_of(update).ndim != aval_of(operand).ndim:
        update = new_axis(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)


# --- gather and scatter ---------------------------------------------------------------------------

def _indices(name, indices):
    """Index arrays narrower than 32 bits are widened, so that bounds fit their dtype."""
    aval = aval_of(indices)
    if not dtypes.is_integer(aval.dtype):
        raise ValueError(f"{name}: indices must have an integer type, got {aval.str_short()}: convert them "
                        "with .astype(int)")
    return convert(indices, dtypes.int32) if aval.dtype.itemsize < 4 else indices


def _numbers(cls, name, dimension_numbers):
    if not isinstance(dimension_numbers, cls):
        raise TypeError(f"{name}: dimension_numbers must be a {cls.__name__}, got {dimension_numbers!r}")
    return cls(*map(tuple, dimension_numbers))


def gather(operand, start_indices, dimension_numbers, slice_sizes, *, unique_indices=False,
           indices_are_sorted=False, mode=None, fill_value=None):
    """One window of `operand` for each vector along the last axis of `start_indices`.

    Args:
        start_indices: integers; the last axis holds the vectors.
        dimension_numbers: `offset_dims` are the axes of the result that the window has, without
            `collapsed_slice_dims`; its others are those of `start_indices` but the last.  `start_index_map`
            says which operand axis each entry of an index vector counts along; the operand's
            `operand_batching_dims` go together with the indices' `start_indices_batching_dims`.
        slice_sizes: the sizes of the window, one for each axis of `operand`.
        unique_indices: a promise that no element is read twice.
        indices_are_sorted: a promise that the vectors ascend.
        mode: a `GatherScatterMode`; the default promises that no window is out of bounds.
        fill_value: what mode="fill" reads out of bounds; NaN, or the least or largest number, for None.

    >>> numbers = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    slice_sizes = tuple(map(as_size, slice_sizes))
    numbers, indices = _numbers(GatherDimensionNumbers, "gather",
                                dimension_numbers), _indices("gather", start_indices)
    if state.check_bounds and mode is None:
        check_bounds(shape_of(operand), numbers.start_index_map, indices, False, slice_sizes)
    return gather_p.bind(operand, indices, slice_sizes=slice_sizes, dimension_numbers=numbers,
                         indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
                         mode=PROMISE if mode is None else GatherScatterMode.from_any(mode),
                         fill_value=fill_value)


def _scatter_function(name, effect, result):
    primitive = getattr(_gather, f"{name}_p")

    def function(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                 unique_indices=False, mode=None):
        numbers, indices = _numbers(ScatterDimensionNumbers, name,
                                    dimension_numbers), _indices(name, scatter_indices)
        if state.check_bounds and mode is None:
            check_bounds(shape_of(operand), numbers.scatter_dims_to_operand_dims, indices, False,
                         window_sizes(numbers, shape_of(operand), shape_of(updates)))
        return primitive.bind(
            operand, indices, updates, indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode), dimension_numbers=numbers)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`operand` with one window of `updates` {effect} for each vector of indices.

    Args:
        scatter_indices: integers; the last axis holds the vectors.
        updates: the windows.
        dimension_numbers: `scatter_dims_to_operand_dims` says which operand axis each entry of a vector
            counts along; the axes of `updates` in `update_window_dims` are the window without
            `inserted_window_dims`.
        indices_are_sorted: a promise that the vectors ascend.
        unique_indices: a promise that no element is addressed twice.
        mode: a `GatherScatterMode`; windows out of bounds are dropped unless it is CLIP.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.{name}(jnp.array([2, 3, 4]), jnp.array([[0], [2]]), jnp.array([3, 3]), numbers)
    Array({result}, dtype=int32)
    """
    return function


scatter = _scatter_function("scatter", "written over it", "[3, 3, 3]")
scatter_add = _scatter_function("scatter_add", "added to it", "[5, 3, 7]")
scatter_mul = _scatter_function("scatter_mul", "multiplied into it", "[ 6,  3, 12]")
scatter_min = _scatter_function("scatter_min", "joined by the minimum", "[2, 3, 3]")
scatter_max = _scatter_function("scatter_max", "joined by the maximum", "[3, 3, 4]")


def scatter_sub(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """`scatter_add` of the negated updates.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([1., 10.]), numbers)
    Array([  0.,   0., -11.], dtype=float32)
    """
    return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, mode=mode,
                       indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def scatter_apply(operand, scatter_indices, func, dimension_numbers, *, update_shape=(),
                  indices_are_sorted=False, unique_indices=False, mode=None):
    """`operand` with an elementwise function applied to each addressed element.

    It is applied once for each time an element is addressed, and is not differentiable.  Other arguments are
    those of `scatter`.

    Args:
        update_shape: the shape that updates would have.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x, where = jnp.array([1., 2.]), jnp.array([[1], [1]])
    >>> lax.scatter_apply(x, where, lambda x: x * 10, numbers, update_shape=(2,))
    Array([  1., 200.], dtype=float32)
    """
    aval = aval_of(operand)
    element = ShapedArray((), aval.dtype, aval.weak_type)
    jaxpr = trace_to_jaxpr(lambda x: [convert(func(x), aval.dtype)], [element], "scatter_apply")
    if jaxpr.out_avals[0].shape != ():
        raise TypeError("scatter_apply: the function must map a scalar to a scalar, but its result has "
                        f"shape {jaxpr.out_avals[0].shape}")
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise NotImplementedError("scatter_apply: the function may not close over traced values; read the "
                                  "elements with x.at[idx].get(), compute, and write them with "
                                  "x.at[idx].set(...)")
    return _gather.scatter_apply_p.bind(
        operand, _indices("scatter_apply", scatter_indices), full(tuple(update_shape), 0, aval.dtype),
        dimension_numbers=_numbers(ScatterDimensionNumbers, "scatter_apply", dimension_numbers),
        update_jaxpr=embed_constants(jaxpr), indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices), mode=GatherScatterMode.from_any(mode))


def index_take(src, idxs, axes):
    """The slices of `src` at positions `idxs` along `axes`.

    Args:
        idxs: one array of positions for each of `axes`, all of one shape.
        axes: axes of `src`.

    >>> lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([2, 0]),), (0,))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    aval = aval_of(src)
    axes = tuple(canonical_axis(a, aval.ndim) for a in axes)
    columns = [reshape(i, (*aval_of(i).shape, 1)) for i in idxs]
    batch = aval_of(columns[0]).ndim - 1
    indices = concatenate_p.bind(*columns, dimension=batch)
    sizes = tuple(1 if d in axes else n for d, n in enumerate(aval.shape))
    offset = tuple(range(batch, batch + aval.ndim - len(axes)))
    return gather(src, indices, GatherDimensionNumbers(offset, tuple(sorted(axes)), axes), sizes, mode="clip")
