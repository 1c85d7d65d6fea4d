"""What an index says: entries, one for each axis of the array and each None; `ds`, a window as an index."""
import dataclasses
import operator
import typing

import numpy as np

from ...core import dtypes, errors
from ...core.array import Array
from ...core.avals import aval_of, is_arraylike
from ...core.symbolic.dimension import Dimension, max_dim, min_dim, surely
from ...core.trace import Tracer
from ...primitives.common import check_index
from ..arrays.creation import asarray


@dataclasses.dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, which may be a traced scalar; `jax.ds` makes it."""
    start: typing.Any
    size: int
    stride: int = 1


_ABSENT = object()


def as_slices(index):
    """An index with a slice in the place of each Slice that begins at an int."""
    if type(index) is tuple:
        return tuple(map(as_slices, index))
    if type(index) is Slice and not isinstance(index.start, Array):
        return slice(index.start, index.start + index.size, index.stride)
    return index


def ds(start, size=_ABSENT, stride=None):
    """An index that selects `size` elements from `start` on, every `stride`-th.

    As in JAX, what is read of an array from an int on is `start:start + size:stride`.  As an index it raises
    a TypeError for a size that is traced, negative or larger than the axis has.

    Args:
        start: an int, or an array of one integer, which may be traced: where it is read, such a window is
            moved so that it is inside of the array.  `at[...]` writes nothing outside.
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
    scalar, as an index array of length 0 or 1), "gap" (an Ellipsis: it separates arrays even if for no axis).
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
    dtype = item.dtype if type(item) is np.ndarray or isinstance(item, Array) else aval_of(item).dtype
    if not dtypes.is_extended(dtype) and dtypes.is_bool(dtype):
        mask = _concrete_mask(item)
        if mask.ndim == 0:
            return _entries(bool(mask))
        return [Entry("array", a.astype(np.int32), n) for a, n in zip(mask.nonzero(), mask.shape)]
    if not dtypes.is_integer(dtype):
        raise _dtype_error(dtype)
    return [Entry("array", item)]


def _window_entry(item, size, position):
    """A Slice."""
    start, length, stride = item.start, item.size, item.stride
    if not hasattr(type(length), "__index__") or isinstance(length, Array):
        raise TypeError(f"ds: the size of the slice at position {position} must be a static int, but is "
                        f"{length!r:.60}: it says what shape the result has")
    if not is_arraylike(start) or not dtypes.is_integer(aval_of(start).dtype) or aval_of(start).shape:
        raise TypeError(f"ds: the start of the slice at position {position} must be one integer, but is "
                        f"{aval_of(start).str_short() if is_arraylike(start) else repr(start)}")
    if stride < 1:
        raise ValueError(f"ds: the stride {stride} at position {position} must be positive")
    if not 0 <= length <= size or length and (length - 1) * stride >= size:
        steps = f" in steps of {stride}" * (stride != 1)
        raise TypeError(f"ds: the size {length}{steps} of the slice at position {position} is not between 0 "
                        f"and {size}, the size of the axis: a window is inside of it")
    if not isinstance(start, Array):
        start += size * (start < 0)
    return Entry("slice", (start, length, stride))


def _slice_entry(item, size, position):
    if isinstance(item, Slice):
        if Dimension not in (type(size), type(item.start), type(item.size)):
            return _window_entry(item, size, position)
        item = slice(item.start, item.start + item.size * item.stride, item.stride)
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
