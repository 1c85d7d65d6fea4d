"""Selection: elements and slices of an array read, written, removed and added: take, put, delete, ..."""
import numpy as np

from ...api.composite import composite
from ...core import dtypes, errors
from ...core.avals import aval_of
from ...core.config import state
from ...core.symbolic.dimension import is_symbolic_dim, max_dim, min_dim
from ...core.trace import concrete_or_error, is_concrete
from ...primitives.arrays.elementwise import add, convert, lt, select, select_n_p
from ...primitives.arrays.gather import gather_p
from ...primitives.arrays.gather_numbers import GatherDimensionNumbers, GatherScatterMode
from ...primitives.arrays.shape import broadcast_in_dim, reshape
from ...primitives.common import canonical_axes, canonical_axis, check_index
from ...runtime.devices import transfer
from ..arrays.creation import asarray, zeros
from ..arrays.ranges import arange
from ..arrays.shaping import broadcast_to, moveaxis, ravel
from ..elementwise.arithmetic import clip, remainder
from ..reductions.reductions import cumsum
from ..reductions.sorting import argsort, sort
from ..util import broadcast_args, check_arraylike, dtype_of, joint_shape, no_out, promote_dtypes
from .conditions import nonzero, where
from .indexing import check_bounds, fill_key, get, getitem, update

__all__ = ["choose", "compress", "delete", "extract", "fill_diagonal", "insert", "place", "put",
           "put_along_axis", "take", "take_along_axis", "trim_zeros"]


def _not_inplace(name, inplace):
    if inplace:
        raise ValueError(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
                         f"immutable: write x = jnp.{name}(x, ..., inplace=False), or x = "
                         "x.at[index].set(values)")


def _flat_or_axis(x, axis):
    """(array, axis counted from the front): flattened for axis None."""
    x = asarray(x)
    return (reshape(x, (x.size,)), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


def _along(axis, index):
    return (*[slice(None)] * axis, index)


# --- reading --------------------------------------------------------------------------------------

def take(a, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False,
         fill_value=None):
    """The slices of `a` at `indices` along `axis`.

    Args:
        indices: ints of any shape, which takes the place of `axis`.
        axis: the axis; None flattens the array.
        out: not supported; None.
        mode: for what is out of bounds.  "fill" (the default) gives `fill_value`,
            "clip" the nearest element and counts no negative index from the end, "wrap" counts around.
        unique_indices: a promise that may make it faster.
        indices_are_sorted: a promise that may make it faster.
        fill_value: NaN by default; of integers, which have none, the least, of unsigned ones the greatest.

    >>> x = jnp.array([[1., 2., 3.], [4., 5., 6.]])
    >>> jnp.take(x, jnp.array([2, 0]), axis=1).tolist(), jnp.take(x, 4)
    ([[3.0, 1.0], [6.0, 4.0]], Array(5., dtype=float32))
    >>> jnp.take(x[0], jnp.array([0, -1, 7])), jnp.take(x[0], jnp.array([0, -1, 7]), mode="clip")
    (Array([ 1.,  3., nan], dtype=float32), Array([1., 1., 3.], dtype=float32))
    """
    no_out("take", out)
    check_arraylike("take", a, indices)
    if mode == "raise":
        raise NotImplementedError("mode='raise' is not supported for arrays of indices: 'fill', 'clip' and "
                                  "'wrap' are; an int out of bounds raises by default")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take: choose one of 'fill', 'clip' or 'wrap'"
                         f"{errors.did_you_mean(mode, ('fill', 'clip', 'wrap'))}")
    if dtypes.is_bool(aval_of(indices).dtype) or not aval_of(indices).size:
        indices = asarray(indices).astype(int)      # an empty array has no dtype that means anything
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise ValueError(f"take: indices must have an integer type, got {aval_of(indices).dtype}: convert "
                         "them with .astype(int)")
    a, axis = _flat_or_axis(a, axis)
    if a.shape[axis] == 0 and aval_of(indices).size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode is None and fill_value is None:
        check_index(indices, a.shape[axis], axis,
                    advice='Say what else is meant with mode="fill", "clip" or "wrap"')
        if state.check_bounds:
            check_bounds(a.shape, _along(axis, asarray(indices)))
    if mode == "wrap":
        indices = remainder(indices, a.shape[axis])
    return get(a, _along(axis, indices), mode="clip" if mode in ("clip", "wrap") else "fill",
               fill_value=fill_value, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
               wrap=mode in (None, "fill"))


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None, *, wrap_negative_indices=None):
    """`arr[i, indices[i, j], ...]`: entries along `axis`, chosen for each position of the other axes.

    Args:
        indices: ints with as many axes as `arr`; the other axes broadcast.
        mode: out of bounds, "fill" (the default) gives `fill_value`, "clip" the nearest entry.
        fill_value: as in `take`.
        wrap_negative_indices: they count from the end, as by default unless `mode` is "promise_in_bounds".

    >>> x = jnp.array([[30, 10, 20], [5, 6, 4]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[10, 20, 30],
           [ 4,  5,  6]], dtype=int32)
    >>> jnp.take_along_axis(x, jnp.argmin(x, axis=1, keepdims=True), axis=1)
    Array([[10],
           [ 4]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {aval_of(indices).dtype}")
    if axis is None:
        if aval_of(indices).ndim != 1:
            raise ValueError("take_along_axis indices must be 1D if axis=None, got shape "
                             f"{aval_of(indices).shape}")
        arr, axis = _flat_or_axis(arr, None)
    ndim, indices_ndim = aval_of(arr).ndim, aval_of(indices).ndim
    if ndim != indices_ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices_ndim} vs. "
                         f"{ndim}: give indices new axes with indices[..., None] or [None], or use take")
    unsaid, mode = mode is None and fill_value is None, GatherScatterMode.from_any(mode)
    wrap = (mode is not GatherScatterMode.PROMISE_IN_BOUNDS if wrap_negative_indices is None
            else bool(wrap_negative_indices))
    if state.check_bounds and unsaid:
        check_bounds(aval_of(arr).shape, _along(canonical_axis(axis, ndim), asarray(indices)), wrap)
    return _take_along(arr, indices, axis=canonical_axis(axis, ndim), mode=mode,
                       fill_value=fill_key(fill_value, dtype_of(arr)), wrap=wrap)


@composite(static=("axis", "mode", "fill_value", "wrap"))
def _take_along(x, indices, *, axis, mode, fill_value, wrap):
    shape, where = x.shape, aval_of(indices).shape
    joint_shape(*[s[:axis] + s[axis + 1:] for s in (shape, where)])
    # an axis that only `x` has is read whole; one that both have is a batching dimension
    whole = tuple(d for d, (n, m) in enumerate(zip(shape, where)) if d != axis and m == 1 != n)
    kept = [d for d in range(len(shape)) if d not in whole]
    batching = tuple(d for d in kept if d != axis and shape[d] == where[d])
    collapsed = tuple(d for d in kept if d not in batching)
    numbers = GatherDimensionNumbers(whole, collapsed, (axis,), batching,
                                     tuple(kept.index(d) for d in batching))
    if where[axis] and not shape[axis]:
        raise IndexError(f"take_along_axis: non-empty indices along axis {axis}, which has size 0 in an "
                         f"array of shape {shape}")
    sizes = tuple(n if d in whole else min_dim(n, 1) for d, n in enumerate(shape))
    if 0 in sizes:
        out = [max(n, m) if n and m else 0 for n, m in zip(shape, where)]
        out[axis] = where[axis]
        return zeros(tuple(out), x.dtype)
    indices = convert(indices, dtypes.int64 if aval_of(indices).dtype.itemsize == 8 else dtypes.int32)
    if wrap:
        indices = select(lt(indices, 0), add(indices, shape[axis]), indices)
    return gather_p.bind(x, reshape(indices, (*[where[d] for d in kept], 1)), dimension_numbers=numbers,
                         slice_sizes=sizes, mode=mode, fill_value=fill_value, indices_are_sorted=False,
                         unique_indices=False)


def choose(a, choices, out=None, mode="raise"):
    """For each element of the integer array `a`, the element at its place in `choices[a]`; all broadcast.

    Args:
        out: not supported; None.
        mode: where out of bounds; "raise" needs concrete `a`, "clip" takes the nearest, "wrap" counts around.

    >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), 10])
    Array([ 1, 10,  3], dtype=int32)
    """
    no_out("choose", out)
    choices = list(choices)
    check_arraylike("choose", a, *choices)
    if not dtypes.is_integer(aval_of(a).dtype):
        raise ValueError(f"`a` array must be integer typed, got {aval_of(a).dtype}")
    n = len(choices)
    if mode == "raise":
        known = concrete_or_error(a, "choose with mode='raise' needs a concrete array: use mode='clip' or "
                                  "'wrap'")
        values = np.asarray(transfer.whole(known))
        if ((values < 0) | (values >= n)).any():
            raise ValueError(f"a holds {values[(values < 0) | (values >= n)].flat[0]}, and with {n} choices "
                             f"an entry is 0 to {n - 1}; mode='clip' or 'wrap' mends those outside")
    elif mode not in ("clip", "wrap"):
        raise errors.not_one_of("mode", mode, ("raise", "wrap", "clip"))
    return _choose(a, *choices, wrap=mode == "wrap")


@composite(static=("wrap",))
def _choose(a, *choices, wrap):
    n = len(choices)
    a = remainder(a, n) if wrap else clip(a, 0, n - 1)
    a, *choices = broadcast_args(a, *promote_dtypes(*choices))
    a = convert(a, dtypes.int32)
    choices = [broadcast_in_dim(c, aval_of(a).shape, ()) if aval_of(c).ndim == 0 else c for c in choices]
    return select_n_p.bind(a, *choices)


def compress(condition, a, axis=None, *, size=None, fill_value=0, out=None):
    """The slices of `a` along an axis where a condition is true.

    Args:
        condition: a vector of bools.
        axis: the axis; None flattens the array.
        size: that many slices; needed under a trace.
        fill_value: what fills the result up to `size`.
        out: not supported; None.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[1, 3],
           [4, 6]], dtype=int32)
    """
    no_out("compress", out)
    check_arraylike("compress", condition, a)
    if aval_of(condition).ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {aval_of(condition).shape}")
    a, axis = _flat_or_axis(a, axis)
    n = a.shape[axis]
    condition = asarray(condition).astype(bool)
    if size is None:
        chosen = np.flatnonzero(np.asarray(concrete_argument(condition, "compress", "condition")))
        if chosen.size and chosen[-1] >= n:
            raise ValueError(f"compress: condition is true at {chosen[-1]}, but axis {axis} of the array of "
                             f"shape {a.shape} has size {n}")
        return getitem(a, _along(axis, chosen))
    chosen, = nonzero(condition, size=size, fill_value=max_dim(n, condition.shape[0]))
    return get(a, _along(axis, chosen), mode="fill", fill_value=fill_value)


def concrete_argument(value, name, argument):
    if not is_concrete(value):
        raise errors.ConcretizationTypeError(
            f"{name}: {argument} must be concrete, because the shape of the result depends on it, but it is "
            f"a traced array of type {aval_of(value).str_short()}. Give size=... where there is such an "
            "argument, or compute it outside the transformed function.")
    return concrete_or_error(value)


def extract(condition, arr, *, size=None, fill_value=0):
    """The elements of `arr` where `condition` is true, as a 1-D array.  For `size` see `compress`.

    >>> x = jnp.array([[1, 5], [7, 2]])
    >>> jnp.extract(x > 2, x), jnp.extract(x > 2, x, size=3)
    (Array([5, 7], dtype=int32), Array([5, 7, 0], dtype=int32))
    """
    return compress(ravel(condition), arr, size=size, fill_value=fill_value)


# --- writing --------------------------------------------------------------------------------------

def put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None):
    """`arr` with `values` written where `take_along_axis` would read.

    Arrays are immutable, so it returns the changed one, where NumPy writes into `arr`; `inplace=False` is
    required.

    >>> x = jnp.array([[30, 10, 20], [5, 6, 4]])
    >>> jnp.put_along_axis(x, jnp.argmax(x, axis=1, keepdims=True), 0, axis=1, inplace=False)
    Array([[ 0, 10, 20],
           [ 5,  0,  4]], dtype=int32)
    """
    _not_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    shape = aval_of(arr).shape
    arr, axis = _flat_or_axis(arr, axis)
    if aval_of(indices).ndim != arr.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {aval_of(indices).ndim} "
                         f"vs. {arr.ndim}")
    index = list(np.ogrid[tuple(map(slice, arr.shape))])
    index[axis] = indices
    return reshape(update(arr, tuple(index), values, "set", mode=mode), shape)


def put(a, ind, v, mode=None, *, inplace=True):
    """`a` with the elements at flat positions `ind` replaced by `v`, repeated as needed.

    Args:
        mode: "clip" (the default) or "wrap", for positions out of bounds.
        inplace: False is required.

    >>> jnp.put(jnp.zeros((2, 3)), jnp.array([0, 4]), jnp.array([1, 2]), inplace=False)
    Array([[1., 0., 0.],
           [0., 2., 0.]], dtype=float32)
    """
    _not_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    a = asarray(a)
    if mode is None:
        check_index(ind, a.size, 0, advice='Say what else is meant with mode="clip" or "wrap"')
        if state.check_bounds:
            check_bounds((a.size,), asarray(ind))
    ind, v = ravel(ind), ravel(v)
    if not a.size or not ind.size or not v.size:
        return a
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    ind = remainder(ind, a.size) if mode == "wrap" else clip(ind, 0, a.size - 1)
    v = v[:ind.size] if v.size >= ind.size else getitem(v, np.arange(ind.size) % v.size)
    return reshape(update(reshape(a, (a.size,)), ind, v, "set"), a.shape)


def place(arr, mask, vals, *, inplace=True):
    """`arr` with the elements where `mask` is true replaced by `vals` in turn; `inplace=False` is required.

    >>> x = jnp.arange(6)
    >>> jnp.place(x, x % 2 == 1, jnp.array([-1, -2]), inplace=False)
    Array([ 0, -1,  2, -2,  4, -1], dtype=int32)
    """
    _not_inplace("place", inplace)
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = asarray(arr), asarray(mask), ravel(vals)
    if arr.size != mask.size:
        raise ValueError(f"place: arr and mask must be the same size; got {arr.size} and {mask.size}")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not arr.size:
        return arr
    return _place(arr, mask, vals)


@composite
def _place(arr, mask, vals):
    mask = reshape(mask, (mask.size,)).astype(bool)
    number = remainder(cumsum(mask) - 1, vals.size)
    chosen = select(mask, getitem(vals, number).astype(arr.dtype), reshape(arr, (arr.size,)))
    return reshape(chosen, arr.shape)


def fill_diagonal(a, val, wrap=False, *, inplace=True):
    """`a` with `val` (a scalar, or values used in turn) on its main diagonal.

    Args:
        wrap: for a matrix with more rows than columns, begin again below, one row apart; not supported.
        inplace: False is required.

    >>> jnp.fill_diagonal(jnp.zeros((2, 3)), 5, inplace=False)
    Array([[5., 0., 0.],
           [0., 5., 0.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False: write x = "
                                  "jnp.fill_diagonal(x, value, inplace=False)")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    check_arraylike("fill_diagonal", a, val)
    a = asarray(a)
    if a.ndim < 2:
        raise ValueError(f"array must be at least 2-d, got shape {a.shape}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {a.shape}")
    n = min(a.shape)
    places = arange(n) if is_symbolic_dim(n) else np.arange(n)
    if aval_of(val).ndim:
        val = ravel(val)
        val = getitem(val, places % val.size)
    return update(a, (places,) * a.ndim, val, "set", unique_indices=True)


# --- removing and adding --------------------------------------------------------------------------

def _check_places(name, aval):
    if aval.size and not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise ValueError(f"jnp.{name}: obj must be integer or bool, got obj.dtype={aval.dtype}: convert it "
                         "with int(i) or i.astype(int)")


def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """`arr` without the slices `obj` (an int, slice, mask or array of ints) along `axis` (None: flattened).

    Traced indices are possible where they are a single int, or with assume_unique_indices=True.

    >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
    >>> jnp.delete(x, 1, axis=1).tolist(), jnp.delete(x, jnp.array([0, 5]))
    ([[1, 3], [4, 6]], Array([2, 3, 4, 5], dtype=int32))
    >>> jnp.delete(x, slice(None, None, 2), axis=1)
    Array([[2],
           [5]], dtype=int32)
    """
    arr, axis = _flat_or_axis(arr, axis)
    n = arr.shape[axis]
    if not isinstance(obj, slice):
        check_arraylike("delete", obj)
        aval = aval_of(obj)
        _check_places("delete", aval)
        if dtypes.is_integer(aval.dtype) and (not is_concrete(obj) or is_symbolic_dim(n)) and (
                assume_unique_indices or aval.size == 1):
            return _delete_unique(arr, ravel(obj), axis=axis)
        obj = np.asarray(concrete_argument(obj, "delete", "'obj' array argument"))
        for i in obj.ravel() if dtypes.is_integer(obj.dtype) else ():
            if not -n <= i < n:
                raise IndexError(f"delete: index {i} is out of bounds for axis {axis} with size {n}: ints "
                                 f"from {-n} to {n - 1} are inside")
    return getitem(arr, _along(axis, np.delete(np.arange(n), obj)))


@composite(static=("axis",))
def _delete_unique(arr, obj, *, axis):
    n = arr.shape[axis]
    obj = sort(clip(where(obj < 0, obj + n, obj), 0, n - 1)) - arange(obj.size)
    kept = arange(n - obj.size)
    return getitem(arr, _along(axis, kept + (kept[None] >= obj[:, None]).sum(0)))


def insert(arr, obj, values, axis=None):
    """`arr` with `values` inserted along an axis; the dtype is that of `arr`.

    Args:
        obj: before which positions: an int, a slice or an array of ints, clipped where out of bounds.
        axis: the axis; None flattens both.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9), jnp.insert(jnp.array([[1, 2], [3, 4]]), 1, 0, axis=1).tolist()
    (Array([1, 9, 2, 3], dtype=int32), [[1, 0, 2], [3, 0, 4]])
    >>> jnp.insert(jnp.array([1, 2, 3]), jnp.array([0, 3]), jnp.array([8, 9]))
    Array([8, 1, 2, 3, 9], dtype=int32)
    """
    check_arraylike("insert", arr, values, *(() if isinstance(obj, slice) else (obj,)))
    arr, axis = _flat_or_axis(arr, axis)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    _check_places("insert", aval_of(obj))
    check_index(obj, n, axis, after=1)
    if aval_of(obj).dtype == np.bool_:
        obj = np.flatnonzero(np.asarray(concrete_argument(obj, "insert", "'obj' mask")))
    values = asarray(values)
    if aval_of(obj).ndim == 0:      # a single place takes all the values, whose first axis is then `axis`
        values = reshape(values, (*[1] * (arr.ndim - values.ndim), *values.shape))
        values = moveaxis(values, 0, axis)
    return _insert(arr, ravel(obj), values, axis=axis)


@composite(static=("axis",))
def _insert(arr, places, values, *, axis):
    n = arr.shape[axis]
    if places.size == 1:
        places = broadcast_to(places, (values.shape[axis] if values.ndim > axis else 1,))
    m = places.size
    places = clip(where(places < 0, places + n, places), 0, n)
    order = argsort(places)
    places = update(places, order, np.arange(m, dtype=places.dtype), "add", unique_indices=True)
    shape = (*arr.shape[:axis], n + m, *arr.shape[axis + 1:])
    inserted = update(zeros(n + m, bool), places, True, "set", unique_indices=True)
    old = get(arr, _along(axis, cumsum(~inserted) - 1), mode="clip")
    old = old if n else zeros(shape, arr.dtype)
    return update(old, _along(axis, places), values.astype(arr.dtype), "set", unique_indices=True)


def trim_zeros(filt, trim="fb", axis=None):
    """Without the zeros at the front ("f") and at the back ("b") of each axis, or of those in `axis`.

    The values say how long the result is: not under jit.

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0])), jnp.trim_zeros(jnp.array([0, 1, 0]), trim="f")
    (Array([1, 0, 2], dtype=int32), Array([1, 0], dtype=int32))
    """
    check_arraylike("trim_zeros", filt)
    value = np.asarray(transfer.whole(concrete_or_error(
        filt, "The result of jnp.trim_zeros depends on values")))
    places = np.nonzero(value) if value.ndim else ()
    bounds = [slice(None)] * value.ndim
    for i in canonical_axes(axis, value.ndim):
        low, high = (places[i].min(), places[i].max() + 1) if places[i].size else (value.shape[i], 0)
        bounds[i] = slice(low if "f" in trim.lower() else None, high if "b" in trim.lower() else None)
    return asarray(filt)[tuple(bounds)]
