"""Indexing: `x[idx]`, and what `x.at[idx]` writes.

An index is first expanded into entries (`index_entries.py`).  If it holds only ints, slices and traced
scalars it selects a window, read with slice or dynamic_slice.  Everything else becomes one gather or scatter.
What is static of it is a plan, a hashable tuple; what is data (arrays, and in eager calls also the ints) are
operands, so that `x[0]` and `x[1]` are one compiled program.
"""
import functools
import typing
import warnings

import numpy as np

from ...api.composite import composite
from ...api.external.noted_errors import set_error_if
from ...core import dtypes, errors, source_info
from ...core.array import Array
from ...core.avals import aval_of
from ...core.config import state
from ...core.surface.boundary import arrays_of
from ...core.symbolic.dimension import Dimension, largest, max_dim, min_dim, surely
from ...lax import indexing as lax
from ...primitives.arrays import shape as shapes
from ...primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ...primitives.arrays.elementwise import add, clamp_p, convert, ge, lt, mul, or_p, select
from ...primitives.arrays.gather import (
    gather_p, scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p)
from ...primitives.arrays.gather_numbers import (
    CLIP, FILL, PROMISE, GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers)
from ...primitives.arrays.shape import broadcast_in_dim, full, reshape, squeeze_p
from ...primitives.arrays.slicing import concatenate_p, iota_p, rev_p, slice_p
from ...primitives.common import prod, scalar, shape_of, warn_of_imaginary_part
from ...runtime.devices import transfer_guards
from ...runtime.recalled import recall
from ..util import joint_shape
from .index_entries import AXISLESS, as_slices, expand

# --- windows: ints, slices and traced scalars -----------------------------------------------------

class Window(typing.NamedTuple):
    """A box of the operand with a stride; `moving` are the axes that it does not cover, with a start each."""
    sizes: tuple
    strides: tuple
    flipped: tuple
    moving: tuple
    dropped: tuple      # the axes of integers
    shape: tuple


def is_window(entries):
    return all(e.kind != "flag" and (e.kind != "array" or shape_of(e.value) == ()) for e in entries)


def window(shape, entries):
    """(Window, its starts along the moving axes); static starts out of bounds are moved inside."""
    starts, sizes, strides, flipped, dropped, out = [], [], [], [], [], []
    for kind, value, _ in entries:
        if kind == "new":
            out.append(1)
        elif kind == "slice":
            start, size, step = value
            if step < 0 and size != 0:
                start, step = start + (size - 1) * step, -step
                flipped += [len(starts)] * (not surely(size, high=1))
            starts.append(start if size != 0 else 0)
            strides.append(step if not surely(size, high=1) else 1)
            sizes.append((size - 1) * step + 1 if size != 0 else 0)
            out.append(size)
        elif kind != "gap":
            starts.append(min_dim(max_dim(value, 0), shape[len(starts)] - 1) if kind == "int" else value)
            dropped.append(len(sizes))
            strides.append(1)
            sizes.append(1)
    moving = tuple([d for d, n in enumerate(shape) if sizes[d] != n])
    return Window(tuple(sizes), tuple(strides), tuple(flipped), moving, tuple(dropped),
                  tuple(out)), [starts[d] for d in moving]


@functools.lru_cache(maxsize=1024)
def _row(shape):
    """The window that one int selects."""
    return window(shape, expand(shape, 0))[0]


def _all_starts(starts, plan, shape):
    """Starts for every axis: Python ints, or if any is data, scalars of one dtype."""
    starts = dict(zip(plan.moving, starts))
    starts = [starts.get(d, 0) for d in range(len(shape))]
    if all(type(s) is int for s in starts):
        return starts, True
    dtype = lax.index_dtype(starts)
    return [lax._start(s, n, dtype, True) for s, n in zip(starts, shape)], False


def _scalars(starts, shape):
    return [scalar(s, dtypes.int64 if surely(n, low=2**31) else dtypes.int32) for s, n in zip(starts, shape)]


@composite(static=("plan",), whole=False)
def read_window(x, *starts, plan):
    shape = x.shape
    ndim = len(shape)
    strided = plan.strides != (1,) * ndim
    if plan.moving or strided:
        starts, static = _all_starts(starts, plan, shape)
        if static and not (strided or state.trace.staging):
            starts, static = _scalars(starts, shape), False       # one program for all places
        if not static:
            x = dynamic_slice_p.bind(x, *starts, slice_sizes=plan.sizes)
            starts = [0] * ndim
        if static or strided:
            x = slice_p.bind(x, start_indices=tuple(starts), strides=plan.strides if strided else None,
                             limit_indices=tuple([s + n for s, n in zip(starts, plan.sizes)]))
    if plan.flipped:
        x = rev_p.bind(x, dimensions=plan.flipped)
    if plan.dropped:
        x = squeeze_p.bind(x, dimensions=plan.dropped)
    return reshape(x, plan.shape)


@composite(static=("plan",), whole=False)
def write_window(x, y, *starts, plan):
    if prod(plan.shape) == 0:
        return x
    y = reshape(_fit(y, plan.shape, x), plan.sizes)
    if x.aval.explicit is not None or aval_of(y).explicit is not None:
        _check_splits(x.aval, aval_of(y), {d: d for d in range(x.ndim) if d not in plan.moving})
        if any(x.aval.splits[d] for d in plan.moving):
            from ...sharding.explicit import AUTO
            raise errors.ShardingTypeError(f"{scatter_p.whole}: an index cuts {x.aval.str_short()} where it "
                                           f"is split over Explicit mesh axes. Name the sharding, {AUTO}.")
        if None not in (x.aval.explicit, aval_of(y).explicit):
            y = shapes.as_type(y, aval_of(y).update(sharding=x.aval.explicit))
    starts, static = _all_starts(starts, plan, x.shape)
    return dynamic_update_slice_p.bind(x, y, *(_scalars(starts, x.shape) if static else starts))


def _check_splits(x, y, whole):
    """ValueError where mesh axes split a value `y` written to `x` otherwise than the window: `whole` is for
    each axis that it covers which one of x it is."""
    window = [x.splits[whole[d]] if d in whole else () for d in range(y.ndim)]
    if any(own not in ((), other) for own, other in zip(y.splits, window)):
        sizes = ",".join(f"{n}@{'.'.join(axes)}" if axes else str(n) for n, axes in zip(y.shape, window))
        raise ValueError(f"Incompatible types for broadcasting: input type={y.str_short()} and requested "
                         f"type={y.dtype.name}[{sizes}], which the index selects from {x.str_short()}; bring "
                         "the value to it with jax.reshard, or name out_sharding=")


def _fit(y, shape, x):
    """`y` with the dtype and in the memory of `x`, broadcast to `shape`."""
    old = shape_of(y)
    if len(old) > len(shape):
        raise errors.ShapeError(f"Incompatible types for broadcasting: the value of shape {old} has more "
                                f"axes than {tuple(shape)}, the shape that the index selects from an array "
                                f"of shape {x.shape}, and does not broadcast to it")
    lead = len(shape) - len(old)
    if any(a != 1 and a != b for a, b in zip(old, shape[lead:])):
        raise errors.ShapeError(f"Incompatible types for broadcasting: the value of shape {old} does not "
                                f"broadcast to {tuple(shape)}, the shape that the index selects from an "
                                f"array of shape {x.shape}")
    y = shapes.in_memory_of(aval_of(x), convert(y, aval_of(x).dtype))
    return broadcast_in_dim(y, shape, tuple(range(lead, len(shape))))


# --- everything else: one gather or scatter -------------------------------------------------------

class Addresses(typing.NamedTuple):
    """The static part of a gather or scatter.

    `columns` gives for each indexed axis of the operand (axis, how): an int names the operand that holds its
    indices, (start,) a fixed start, (start, size, step, axis in batch, given) an arithmetic sequence, of
    which the start, if it is given, is an operand.  `batch` is
    the shape of the index vectors, `offset` the position and `common` the shape of the index arrays in it.
    """
    columns: tuple
    batch: tuple
    offset: int
    common: tuple
    numbers: GatherDimensionNumbers
    slice_sizes: tuple
    layout: tuple     # the shape of what is read or written, without the axes that None adds
    shape: tuple      # with them
    wraps: tuple      # for each operand: do negative entries count from the end?
    sorted: bool
    unique: bool


def addresses(shape, entries, wrap=True):
    """(Addresses, operands) of an index."""
    arrays = [i for i, e in enumerate(entries) if e.kind in ("int", "array", "flag")]
    common = joint_shape(*[shape_of(entries[i].value) for i in arrays])
    together = arrays and arrays[-1] - arrays[0] == len(arrays) - 1
    if arrays:
        place = arrays[0] if together else 0
    else:
        place = None
    columns, batch, windows, layout, out, operands = [], [], [], [], [], []
    offset, axis, slice_sizes = 0, 0, [1] * len(shape)
    for i, (kind, value, _) in enumerate(entries):
        if i == place:
            offset = len(batch)
            batch += common
            layout += common
            out += common
        if kind in ("int", "array"):
            columns.append((axis, len(operands)))
            # a static index out of bounds needs no more than to stay so
            operands.append(min_dim(max_dim(value, -1), shape[axis]) if kind == "int" else value)
        elif kind == "new":
            out.append(1)
        elif kind == "slice":
            start, size, step = value
            if step == 1 or surely(size, high=1):
                windows.append(len(layout))
                slice_sizes[axis] = size
                if isinstance(start, Array):
                    columns.append((axis, len(operands)))
                    operands.append(start)
                elif size != shape[axis]:
                    columns.append((axis, (start,)))
            else:
                given = isinstance(start, Array)
                columns.append((axis, (len(operands) if given else start, size, step, len(batch), given)))
                operands += [start] if given else []
                batch.append(size)
            layout.append(size)
            out.append(size)
        axis += kind not in AXISLESS
    entries_of = [e for e in entries if e.kind not in AXISLESS]
    single = [a for a, how in columns if entries_of[a].kind != "slice" or type(how) is tuple and len(how) > 1]
    numbers = GatherDimensionNumbers(tuple(windows), tuple(single), tuple([a for a, _ in columns]))
    unique = surely(prod(common), high=1)
    rising = all(type(how) is int or len(how) == 1 or how[2] > 0 for _, how in columns)
    wraps = tuple([wrap and isinstance(v, Array) for v in operands])
    return Addresses(tuple(columns), tuple(batch), offset, common, numbers, tuple(slice_sizes), tuple(layout),
                     tuple(out), wraps, unique and rising, unique), operands


def index_vectors(plan, operands, shape, moved=False):
    """The index vectors as one array; it stays a NumPy constant if all of it is known.  `moved`: are windows
    in steps moved so that they are inside?"""
    dtype = lax.index_dtype(operands)
    dtype = dtypes.int64 if largest(shape) > 2**31 - 1 else dtype
    columns = []
    for axis, how in plan.columns:
        if type(how) is int:
            value = operands[how]
            if isinstance(value, Array):
                value = convert(value, dtype)
                if plan.wraps[how] and not dtypes.is_unsigned(dtype):
                    value = select(lt(value, 0), add(value, shape[axis]), value)
            first = plan.offset + len(plan.common) - len(shape_of(value))
        elif len(how) == 1:
            value, first = how[0], 0
        else:
            start, size, step, first, given = how
            last = shape[axis] - (size - 1) * step - 1 if moved else None
            if given:
                start = _from_the_front(convert(operands[start], dtype), shape[axis], last)
            elif moved and type(start) is type(last) is int and step > 0:
                start = min(max(start, 0), last)
            value = iota_p.bind(dtype=dtype, shape=(size,), dimension=0)
            value = add(mul(value, step), start)
        columns.append(_spread(value, dtype, plan.batch, first))
    if not columns:
        return np.zeros((*plan.batch, 0), dtype)
    if all(isinstance(c, np.ndarray) for c in columns):
        return np.concatenate(columns, -1)
    return columns[0] if len(columns) == 1 else concatenate_p.bind(*columns, dimension=len(plan.batch))


def _from_the_front(start, n, last):
    """Where a window of `n` elements begins, given as an array; from 0 to `last` unless that is None."""
    if not dtypes.is_unsigned(start.dtype):
        start = select(lt(start, 0), add(start, n), start)
    return start if last is None else clamp_p.bind(scalar(0, start.dtype), start, scalar(last, start.dtype))


def _spread(value, dtype, batch, first):
    """Index values, whose axes are those of `batch` from `first` on, as a column of shape (*batch, 1)."""
    value = value.as_value(dtype) if type(value) is Dimension else value
    if isinstance(value, Array) or any(type(d) is Dimension for d in batch):
        value = value if isinstance(value, Array) else np.asarray(value, dtype)
        dims = tuple(range(first, first + len(value.shape)))
        return broadcast_in_dim(value, (*batch, 1), dims)
    value = np.asarray(value, dtype)
    return np.broadcast_to(value.reshape(*value.shape, *[1] * (len(batch) - first - value.ndim + 1)),
                           (*batch, 1))


@composite(static=("plan", "mode", "fill_value", "ordered", "unique"), whole=False)
def read(x, *operands, plan, mode, fill_value, ordered, unique):
    if prod(plan.shape) == 0 and 0 in x.shape:
        return full(plan.shape, 0, x.dtype)
    out = gather_p.bind(x, index_vectors(plan, operands, x.shape, mode is not FILL),
                        dimension_numbers=plan.numbers, slice_sizes=plan.slice_sizes, mode=mode,
                        fill_value=fill_value,
                        indices_are_sorted=ordered or plan.sorted, unique_indices=unique or plan.unique)
    return reshape(out, plan.shape)


_OPERATIONS = {"set": scatter_p, "add": scatter_add_p, "multiply": scatter_mul_p, "min": scatter_min_p,
               "max": scatter_max_p}


@composite(static=("plan", "operation", "mode", "ordered", "unique"), whole=False)
def write(x, y, *operands, plan, operation, mode, ordered, unique):
    if prod(plan.shape) == 0:
        return x
    aval = aval_of(x)
    if operation == "set":
        value = x
    else:       # combine in the common dtype, then go back to that of the operand
        dtype, _ = dtypes.lattice_result(((aval.dtype, aval.weak_type),
                                          (aval_of(y).dtype, aval_of(y).weak_type)))
        value = convert(x, dtype)
    y = reshape(_fit(y, plan.shape, value), plan.layout)
    if aval_of(y).explicit is not None:
        inserted, batching = plan.numbers[1], plan.numbers[3]
        kept = [d for d in range(x.ndim) if d not in inserted and d not in batching]
        windows = dict(zip(sorted(plan.numbers[0]), kept))
        _check_splits(aval, aval_of(y), {d: k for d, k in windows.items() if y.shape[d] == x.shape[k]})
    out = _OPERATIONS[operation].bind(
        value, shapes.in_memory_of(aval, index_vectors(plan, operands, x.shape, mode is CLIP)), y,
        dimension_numbers=ScatterDimensionNumbers(*plan.numbers),
        mode=mode, indices_are_sorted=ordered or plan.sorted, unique_indices=unique or plan.unique)
    if aval_of(out) == aval or dtypes.is_extended(aval.dtype):
        return out
    return convert(out, aval.dtype, aval.weak_type)


def _arrays(shape, index):
    """(axis, array) for the arrays in an index, which are as the user gave them."""
    axes = iter(range(len(shape)))
    for kind, value, mask_size in expand(shape, index, wrap=False):
        axis = None if kind in AXISLESS else next(axes)
        if kind == "array" and mask_size is None:
            yield axis, value


def check_bounds(shape, index, wrap=True):
    """`lax.check_bounds` of the arrays in an index."""
    for axis, value in _arrays(shape, index):
        lax.check_bounds(shape, (axis,), value.reshape(*value.shape, 1), wrap)


def get_noting(x, index, *, wrap=True, **flags):
    """`get` of a user's index, which notes an error where an array in it is out of bounds, if asked to."""
    arrays = list(_arrays(x.shape, index)) if "oob" in state.noting else ()
    if any(value.ndim for _, value in arrays):
        for axis, value in arrays:
            value = convert(value, np.dtype("int32")) if value.dtype.itemsize < 4 else value
            first = -x.shape[axis] if wrap and value.dtype.kind == "i" else 0
            set_error_if(or_p.bind(lt(value, first), ge(value, x.shape[axis])),
                         "Out of bounds encountered before calling `lax.gather`")
    return get(x, index, wrap=wrap, **flags)


# --- the public operations ------------------------------------------------------------------------

def getitem(x, index):
    """`x[index]`.  Out of bounds it is the nearest element (see `.at[].get`)."""
    shape = x.shape
    if shape:
        if type(index) is int:
            size = shape[0]
            if type(size) is not int or not -size <= index < size:
                return get(x, index)
            if size != 1:
                return read_window(x, index + size if index < 0 else index, plan=_row(shape))
            return read_window(x, plan=_row(shape))
        if isinstance(index, Array) and index.aval.ndim == 0 and shape[0] not in (0, 1) and (
                index.aval.dtype.kind in "iu" and not state.check_bounds):
            return read_window(x, index, plan=_row(shape))
    return recall(get_noting, (x, index), {})


def get(x, index, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None, wrap=True):
    """`x.at[index].get(...)`."""
    shape, index = x.shape, as_slices(index)
    entries = expand(shape, index, wrap, mode is None)
    if state.check_bounds and mode is None:
        check_bounds(shape, index, wrap)
    mode = PROMISE if mode is None else GatherScatterMode.from_any(mode)
    if is_window(entries) and (wrap and mode is not FILL or all_inside(shape, entries)):
        plan, starts = window(shape, entries)
        if plan.shape == shape and not (plan.moving or plan.flipped):
            return x
        if transfer_guards.used and any(step != 1 for step in plan.strides):
            with transfer_guards.unasked():     # where a slice in steps is, is a part of a program
                return read_window(x, *starts, plan=plan)
        return read_window(x, *starts, plan=plan)
    plan, operands = addresses(shape, entries, wrap)
    return read(x, *operands, plan=plan, mode=mode, fill_value=fill_key(fill_value, x.dtype),
                ordered=bool(indices_are_sorted), unique=bool(unique_indices))


def fill_key(fill_value, dtype):
    """A fill value as a Python scalar; nan is always one object, so that keys that hold it compare equal."""
    if fill_value is None:
        return None
    value = fill_value if type(fill_value) is int else np.asarray(fill_value).item()
    if type(value) is int:
        scalar(value, dtype)        # raises where it does not fit
    return np.nan if value != value and type(value) is float else value


def all_inside(shape, entries):
    """Is the window static and inside the array?"""
    sizes = iter(shape)
    return all(e.kind in AXISLESS or (n := next(sizes)) is not None
               and (e.kind == "slice" and _slice_is_inside(*e.value, n) or e.kind == "int"
                    and surely(e.value, low=0) and surely(n - e.value, low=1)) for e in entries)


def _slice_is_inside(start, size, step, n):
    if {type(x) for x in (start, size, n)} != {int}:
        return not isinstance(start, Array)
    return size == 0 or 0 <= start < n and 0 <= start + (size - 1) * step < n


def update(x, index, y, operation, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap=True):
    """`x.at[index].<operation>(y)` for the operations that are a scatter."""
    y = arrays_of(y)
    _check_cast(operation, aval_of(x), aval_of(y))
    warn_of_imaginary_part(np.complex64(y) if type(y) is complex else y, aval_of(x).dtype)
    shape = x.shape
    entries = expand(shape, index, wrap, mode is None)
    if state.check_bounds and mode is None:
        check_bounds(shape, index, wrap)
    mode = GatherScatterMode.from_any(mode)
    if operation == "set" and is_window(entries) and all_inside(shape, entries):
        plan, starts = window(shape, entries)
        if not plan.flipped and plan.strides == (1,) * len(shape):
            return write_window(x, y, *starts, plan=plan)
    plan, operands = addresses(shape, entries, wrap)
    return write(x, y, *operands, plan=plan, operation=operation, mode=mode,
                 ordered=bool(indices_are_sorted), unique=bool(unique_indices))


def _check_cast(operation, x, y):
    """Warn where the value's dtype does not go into the array's without loss."""
    if x.dtype == y.dtype:
        return
    dtype, _ = dtypes.lattice_result(((x.dtype, x.weak_type), (y.dtype, y.weak_type)))
    if dtype != x.dtype:
        warnings.warn("scatter inputs have incompatible types: cannot safely cast value from "
                      f"dtype={y.dtype} to dtype={x.dtype}; x.at[...].{operation}(y) keeps the dtype of x. "
                      f"Cast y with .astype({x.dtype}), or x with .astype({dtype}).", FutureWarning,
                      stacklevel=source_info.user_stacklevel())


def apply(x, index, func, *, indices_are_sorted=False, unique_indices=False, mode=None, wrap=True):
    """`x.at[index].apply(func)`: repeated indices apply it repeatedly; differentiable if there are none."""
    flags = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode, wrap=wrap)
    plan, operands = addresses(x.shape, expand(x.shape, index, wrap, mode is None), wrap)
    if state.check_bounds and mode is None:
        check_bounds(x.shape, index, wrap)
    if prod(plan.shape) == 0:
        return x
    if unique_indices or plan.unique:
        return update(x, index, func(get(x, index, **flags)), "set", **flags)
    return lax.scatter_apply(
        x, index_vectors(plan, operands, x.shape), func, ScatterDimensionNumbers(*plan.numbers), mode=mode,
        update_shape=plan.layout, indices_are_sorted=indices_are_sorted)
