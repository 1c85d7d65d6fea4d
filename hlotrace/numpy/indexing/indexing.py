"""Indexing: `x[idx]`, and what `x.at[idx]` writes.

An index expression is first expanded into entries, one for each axis of the array (and each None).  If it
holds only ints, slices and traced scalars it selects a window, read with slice or dynamic_slice.  Everything
else becomes one gather or scatter.  What is static of it is a plan, a hashable tuple; what is data (arrays,
and in eager calls also the ints) are operands, so that `x[0]` and `x[1]` are one compiled program.
"""
import dataclasses
import functools
import operator
import typing
import warnings

import numpy as np

from ...api.composite import composite
from ...api.external.noted_errors import set_error_if
from ...core import dtypes, errors, source_info
from ...core.array import Array
from ...core.avals import aval_of, is_arraylike
from ...core.config import state
from ...core.surface.boundary import arrays_of
from ...core.symbolic.dimension import Dimension, largest, max_dim, min_dim, surely
from ...core.trace import Tracer
from ...lax import indexing as lax
from ...primitives.arrays import shape as shapes
from ...primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ...primitives.arrays.elementwise import add, convert, ge, lt, mul, or_p, select
from ...primitives.arrays.gather import (
    gather_p, scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p)
from ...primitives.arrays.gather_numbers import (
    FILL, PROMISE, GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers)
from ...primitives.arrays.shape import broadcast_in_dim, full, reshape, squeeze_p
from ...primitives.arrays.slicing import concatenate_p, iota_p, rev_p, slice_p
from ...primitives.common import check_index, prod, scalar, shape_of, warn_of_imaginary_part
from ...runtime.devices import transfer_guards
from ..arrays.creation import asarray
from ..util import joint_shape

__all__: list[str] = []


# --- expanding an index expression ----------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, which may be a traced scalar; `jax.ds` makes it."""
    start: typing.Any
    size: int
    stride: int = 1


_ABSENT = object()


def ds(start, size=_ABSENT, stride=None):
    """An index that selects `size` elements from `start` on: `start:start + size:stride`.

    As an index it raises a TypeError for a size that is traced, negative or larger than the axis, and a
    NotImplementedError for a traced start with a stride.

    Args:
        start: an int, or an array of one integer, which may be traced; such a window is moved so that it is
            inside of the array, and has no stride.
        size: an int; `ds(n)` is `:n`, `ds(None)` is `:`.
        stride: an int, 1 for None.
    Raises:
        ValueError: for a negative stride.

    >>> jax.jit(lambda x, i: x[jax.ds(i, 3)])(jnp.arange(10), 4)
    Array([4, 5, 6], dtype=int32)
    """
    if size is _ABSENT:
        start, size = (start, None) if start is None else (0, start)
    if start is None:
        return slice(None, size, stride)
    if stride is not None and stride < 0:
        raise ValueError(f"ds: the stride {stride} is negative; reverse what is selected, with [::-1]")
    return Slice(start, size, 1 if stride is None else stride)


class Entry(typing.NamedTuple):
    """One part of an index.

    kind "slice": value is (start, size, step); "int": a Python int, counted from the front; "array": an
    integer array or traced scalar; and without an axis of the operand: "new" (None), "flag" (a boolean
    scalar, as an index array of length 0 or 1), "gap" (an Ellipsis, which separates arrays even where it
    is for no axis).
    """
    kind: str
    value: typing.Any = None
    mask_size: int | None = None


NEW, GAP = Entry("new"), Entry("gap")
AXISLESS = ("new", "flag", "gap")


def _dtype_error(dtype):
    return TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}: convert it "
                     "with int(i) or i.astype(int), or divide with // where it comes from")


def _concrete_mask(mask):
    known = mask.concrete() if isinstance(mask, Tracer) else mask
    if known is None:
        raise errors.NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {mask.aval.str_short()} while {mask.under()} is "
            "tracing. The shape of the result would depend on the values: use jnp.where(mask, x, y) to keep "
            "the shape, jnp.sum(x, where=mask) and kin to reduce, or x[jnp.nonzero(mask, size=n)] for n "
            "elements.")
    return np.asarray(known)


def _entries(item):
    """What one item of an index says, not yet fitted to an axis; a mask says as much as it has axes."""
    if item is None:
        return [NEW]
    if item is Ellipsis:
        return [GAP]
    if type(item) is int:
        return [Entry("int", item)]
    if isinstance(item, (slice, Slice)):
        return [Entry("slice", item)]
    if isinstance(item, (bool, np.bool_)):
        return [Entry("flag", np.zeros(int(item), np.int32))]
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}: an array has no named "
                        "fields; keep several arrays in a dict, or name the axes by ints")
    if isinstance(item, (list, tuple)):
        item = np.asarray(item) if len(item) else np.zeros(0, np.int32)
    if isinstance(item, (int, np.integer)):
        return [Entry("int", int(item))]
    if not is_arraylike(item):
        if hasattr(item, "__index__"):
            return [Entry("int", item.__index__())]
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
                         f"boolean arrays are valid indices. Got {item!r}")
    dtype = item.dtype if isinstance(item, (np.ndarray, Array)) else aval_of(item).dtype
    if not dtypes.is_extended(dtype) and dtypes.is_bool(dtype):
        mask = _concrete_mask(item)
        if mask.ndim == 0:
            return _entries(bool(mask))
        return [Entry("array", a.astype(np.int32), n) for a, n in zip(mask.nonzero(), mask.shape)]
    if not dtypes.is_integer(dtype):
        raise _dtype_error(dtype)
    return [Entry("array", item)]


def _traced_start(item, size, position):
    """A Slice whose start is an array."""
    start, length, stride = item.start, item.size, item.stride
    if not hasattr(type(length), "__index__") or isinstance(length, Array):
        raise TypeError(f"ds: the size of the slice at position {position} must be a static int, but is "
                        f"{length!r:.60}: it says what shape the result has")
    if not dtypes.is_integer(aval_of(start).dtype) or start.shape:
        raise TypeError(f"ds: the start of the slice at position {position} must be one integer, but is "
                        f"{aval_of(start).str_short()}")
    if stride != 1:
        raise NotImplementedError(f"ds: stride={stride} with a start that is an array, at position "
                                  f"{position}: index with start + {stride} * jnp.arange({length})")
    if not 0 <= length <= size:
        raise TypeError(f"ds: the size {length} of the slice at position {position} is not between 0 and "
                        f"{size}, the size of the axis: a window of a traced start is inside of it")
    return Entry("slice", (start, length, 1))


def _slice_entry(item, size, position):
    if isinstance(item, Slice):
        if isinstance(item.start, Array):
            return _traced_start(item, size, position)
        item = slice(item.start, item.start + item.size, item.stride)
    if any(isinstance(part, Tracer) and part.concrete() is None
           for part in (item.start, item.stop, item.step)):
        raise errors.traced_slice(item, position)
    for name in "start", "stop", "step":
        part = getattr(item, name)
        if part is not None and not hasattr(type(part), "__index__") and type(part) is not Dimension:
            raise TypeError(f"Slice entries must be integers, but the {name} at position {position} is "
                            f"{part!r:.60}: convert it with int(...), or divide with // where it comes from")
    if item.step == 0:
        raise ValueError(f"slice step cannot be zero, at position {position}: write 1, or -1 to reverse")
    if Dimension in (type(size), type(item.start), type(item.stop)):
        return _symbolic_slice(item, size)
    start, stop, step = item.indices(size)
    return Entry("slice", (start, len(range(start, stop, step)), step))


def _symbolic_slice(item, size):
    """As slice.indices has it, where sizes are symbolic."""
    step = 1 if item.step is None else operator.index(item.step)
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def place(part, default):
        if part is None:
            return default
        return max_dim(low, min_dim(high, part + size if surely(part, high=-1) else part))
    start, stop = place(item.start, low if step > 0 else high), place(item.stop, high if step > 0 else low)
    span, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    return Entry("slice", (start, max_dim(0, (span + stride - 1) // stride), step))


def _wrapped(values, size):
    """A NumPy index array with negative entries counted from the front, as int32 (int64 for huge axes)."""
    if not np.issubdtype(values.dtype, np.integer):
        raise _dtype_error(values.dtype)
    wide = values.astype(np.int64)
    if type(size) is int:
        wide = np.where(wide < 0, wide + size, wide)
    return wide if surely(size, low=2**31) else np.clip(wide, -2**31, 2**31 - 1).astype(np.int32)


MODES = 'Say what else is meant with mode=, as in x.at[i].get(mode="fill") or x.at[i].set(y, mode="drop")'


def expand(shape, index, wrap=True, inside=False):
    """The entries of `index` for an array of `shape`; negative static indices count from the end if `wrap`.

    Raises:
        IndexError: for static indices out of bounds, if `inside` and an option asks for it (`check_index`).
    """
    if not isinstance(index, tuple):
        if isinstance(index, (list, range)):
            raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; use "
                            "`arr[array(seq)]` instead of `arr[seq]`: wrap the list in jnp.array, or write "
                            "a tuple.")
        index = (index,)
    entries = [e for item in index for e in _entries(item)]
    if entries.count(GAP) > 1:
        raise IndexError("an index can only have a single ellipsis ('...'): write ':' for each axis where "
                         "another is left out")
    used = len([e for e in entries if e.kind not in AXISLESS])
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed: "
                         + ("a number is read as it is, with x or float(x)" if not shape else
                            f"leave out {used - len(shape)}, or give the array a new axis with x[..., None]"))
    gap = entries.index(GAP) if GAP in entries else len(entries)
    entries[gap + 1:gap + 1] = [Entry("slice", slice(None))] * (len(shape) - used)
    axes = iter(range(len(shape)))
    return [e if e.kind in AXISLESS else _fitted(e, shape, next(axes), wrap, inside) for e in entries]


def _fitted(entry, shape, axis, wrap, inside):
    """An entry as it applies to that axis."""
    (kind, value, mask_size), size = entry, shape[axis]
    if kind == "slice":
        return _slice_entry(value, size, axis)
    if size == 0 and (kind == "int" or np.ndim(value) == 0):
        raise errors.empty_axis(value if kind == "int" else "an index", axis)
    if mask_size is not None and mask_size != size:
        raise IndexError(f"boolean index did not match shape of indexed array in index {axis}: got "
                         f"{mask_size}, expected {size} (array shape {tuple(shape)}): a mask has the sizes "
                         "of the axes that it indexes")
    if kind == "int":
        if inside and type(size) is int and not 0 <= value < size:
            check_index(value, size, axis, first=-size if wrap else 0, advice=MODES)
            if not -size * wrap <= value < size:        # as data, which checkify's index checks look at
                return Entry("array", np.asarray(max(min(value, 2**31 - 1), -2**31), np.int32))
        place = value + size if wrap and value < 0 else value
        if type(size) is not int and not (surely(place, low=0) and surely(size - place, low=1)):
            known = type(place) is not Dimension
            return Entry("array", np.asarray(place, np.int32) if known else place.as_value(dtypes.int32))
        return Entry("int", place)
    if not wrap or not isinstance(value, np.ndarray):
        return entry
    counts_back = type(size) is not int and (value < 0).any()       # from an end that is not known
    return Entry("array", asarray(value) if counts_back else _wrapped(value, size))


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
    indices, (start,) a fixed start, (start, size, step, axis in batch) an arithmetic sequence.  `batch` is
    the shape of the index vectors, `offset` the position and `common` the shape of the broadcast index arrays
    in it.
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
                columns.append((axis, (start, size, step, len(batch))))
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


def index_vectors(plan, operands, shape):
    """The index vectors as one array; it stays a NumPy constant if all of it is known."""
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
            start, size, step, first = how
            value = iota_p.bind(dtype=dtype, shape=(size,), dimension=0)
            value = add(mul(value, step), start)
        columns.append(_spread(value, dtype, plan.batch, first))
    if not columns:
        return np.zeros((*plan.batch, 0), dtype)
    if all(isinstance(c, np.ndarray) for c in columns):
        return np.concatenate(columns, -1)
    return columns[0] if len(columns) == 1 else concatenate_p.bind(*columns, dimension=len(plan.batch))


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
    out = gather_p.bind(x, index_vectors(plan, operands, x.shape), dimension_numbers=plan.numbers,
                        slice_sizes=plan.slice_sizes, mode=mode, fill_value=fill_value,
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
        value, shapes.in_memory_of(aval, index_vectors(plan, operands, x.shape)), y,
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
    return get_noting(x, index)


def get(x, index, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None, wrap=True):
    """`x.at[index].get(...)`."""
    shape = x.shape
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
               and (e.kind == "slice" and not isinstance(e.value[0], Array) or e.kind == "int"
                    and surely(e.value, low=0) and surely(n - e.value, low=1)) for e in entries)


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
