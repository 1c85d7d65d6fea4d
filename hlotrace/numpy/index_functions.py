"""NumPy's functions about indices: take, put, choose, delete, insert, index grids, `s_`, `c_`, `r_`."""
import operator

import numpy as np

from .. import numpy as jnp
from ..api.composite import composite
from ..core import dtypes, errors
from ..core.avals import aval_of
from ..core.trace import concrete_or_error, is_concrete
from ..primitives.common import bind, canonical_axis, prod, scalar
from ..primitives.elementwise import add, convert, lt, select
from ..primitives.index import PROMISE, GatherDimensionNumbers, GatherScatterMode, gather_p
from ..primitives.shape import broadcast_in_dim, reshape
from .indexing import fill_key, get, getitem, update
from .util import broadcast_args, broadcast_shapes, check_arraylike, promote_dtypes

__all__ = ["c_", "choose", "compress", "delete", "diag_indices", "diag_indices_from", "extract", "fill_diagonal",
           "index_exp", "indices", "insert", "ix_", "mask_indices", "place", "put", "put_along_axis", "r_",
           "ravel_multi_index", "s_", "take", "take_along_axis", "tril_indices", "tril_indices_from", "triu_indices",
           "triu_indices_from", "unravel_index"]

s_, index_exp = np.s_, np.index_exp


def _no_out(name, out):
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported: arrays are immutable.")


def _not_inplace(name, inplace, error=ValueError):
    if inplace:
        raise error(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass "
                    "inplace=False to instead return an updated array.")


def _flat_or_axis(x, axis):
    """(array, axis counted from the front): flattened for axis None."""
    x = jnp.asarray(x)
    return (reshape(x, (x.size,)), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


def _along(axis, index):
    return (*[slice(None)] * axis, index)


# --- reading ----------------------------------------------------------------------------------------------------

def take(a, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, fill_value=None):
    """The slices of `a` at `indices` along `axis` (None: of the flattened array).

    mode "fill" (the default) gives `fill_value`, nan unless given, out of bounds; "clip" the nearest element and
    counts no negative index from the end; "wrap" counts around.
    """
    _no_out("take", out)
    check_arraylike("take", a, indices)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise ValueError(f"take: indices must have an integer type, got {aval_of(indices).dtype}")
    a, axis = _flat_or_axis(a, axis)
    if a.shape[axis] == 0 and aval_of(indices).size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode == "wrap":
        indices = jnp.remainder(indices, a.shape[axis])
    return get(a, _along(axis, indices), mode="clip" if mode in ("clip", "wrap") else "fill", fill_value=fill_value,
               unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, wrap=mode in (None, "fill"))


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None, *, wrap_negative_indices=None):
    """`arr[i, indices[i, j], ...]`: entries of `arr` along `axis`, chosen for each position of the other axes.

    Other axes broadcast.  Out of bounds, `mode` "fill" (the default) gives `fill_value`, "clip" the nearest entry.
    """
    check_arraylike("take_along_axis", arr, indices)
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {aval_of(indices).dtype}")
    if axis is None:
        if aval_of(indices).ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {aval_of(indices).shape}")
        arr, axis = _flat_or_axis(arr, None)
    ndim, indices_ndim = aval_of(arr).ndim, aval_of(indices).ndim
    if ndim != indices_ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices_ndim} vs. {ndim}")
    mode = GatherScatterMode.from_any(mode)
    wrap = mode is not PROMISE if wrap_negative_indices is None else bool(wrap_negative_indices)
    return _take_along(arr, indices, axis=canonical_axis(axis, ndim), mode=mode, fill_value=fill_key(fill_value),
                       wrap=wrap)


@composite(static=("axis", "mode", "fill_value", "wrap"))
def _take_along(x, indices, *, axis, mode, fill_value, wrap):
    shape, where = x.shape, aval_of(indices).shape
    broadcast_shapes(*[s[:axis] + s[axis + 1:] for s in (shape, where)])
    # an axis that only `x` has is read whole; one that both have is a batching dimension
    whole = tuple(d for d, (n, m) in enumerate(zip(shape, where)) if d != axis and m == 1 != n)
    kept = [d for d in range(len(shape)) if d not in whole]
    batching = tuple(d for d in kept if d != axis and shape[d] == where[d])
    collapsed = tuple(d for d in kept if d not in batching)
    numbers = GatherDimensionNumbers(whole, collapsed, (axis,), batching, tuple(kept.index(d) for d in batching))
    if where[axis] and not shape[axis]:
        raise IndexError(f"take_along_axis: non-empty indices along axis {axis}, which has size 0 in an array of shape "
                         f"{shape}")
    sizes = tuple(n if d in whole else min(n, 1) for d, n in enumerate(shape))
    if 0 in sizes:
        return jnp.zeros(tuple(m if d == axis else max(n, m) if n and m else 0
                               for d, (n, m) in enumerate(zip(shape, where))), x.dtype)
    indices = convert(indices, dtypes.int64 if aval_of(indices).dtype.itemsize == 8 else dtypes.int32)
    if wrap:
        indices = select(lt(indices, 0), add(indices, shape[axis]), indices)
    return gather_p.bind(x, reshape(indices, (*[where[d] for d in kept], 1)), dimension_numbers=numbers,
                         slice_sizes=sizes, mode=mode, fill_value=fill_value, indices_are_sorted=False,
                         unique_indices=False)


def choose(a, choices, out=None, mode="raise"):
    """For each element of the integer array `a`, the element at its place in `choices[a]`; all broadcast.

    mode "raise" needs concrete `a`; "clip" and "wrap" mend what is out of bounds.
    """
    _no_out("choose", out)
    check_arraylike("choose", a, *choices)
    if not dtypes.is_integer(aval_of(a).dtype):
        raise ValueError(f"`a` array must be integer typed, got {aval_of(a).dtype}")
    n = len(choices)
    if mode == "raise":
        known = concrete_or_error(a, "choose with mode='raise' needs a concrete array: use mode='clip' or 'wrap'")
        values = np.asarray(known)
        if ((values < 0) | (values >= n)).any():
            raise ValueError("invalid entry in choice array")
    elif mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    return _choose(a, *choices, wrap=mode == "wrap")


@composite(static=("wrap",))
def _choose(a, *choices, wrap):
    n = len(choices)
    a = jnp.remainder(a, n) if wrap else jnp.clip(a, 0, n - 1)
    a, *choices = broadcast_args(a, *promote_dtypes(*choices))
    a = convert(a, dtypes.int32)
    choices = [broadcast_in_dim(c, aval_of(a).shape, ()) if aval_of(c).ndim == 0 else c for c in choices]
    return bind("select_n", a, *choices)


def compress(condition, a, axis=None, *, size=None, fill_value=0, out=None):
    """The slices of `a` along `axis` where the 1-D `condition` is true.

    Under a trace `size` is needed: that many slices, filled up with `fill_value`.
    """
    _no_out("compress", out)
    check_arraylike("compress", condition, a)
    if aval_of(condition).ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {aval_of(condition).shape}")
    a, axis = _flat_or_axis(a, axis)
    n = a.shape[axis]
    condition = jnp.asarray(condition).astype(bool)
    if size is None:
        chosen = np.flatnonzero(np.asarray(_known(condition, "compress", "condition")))
        if chosen.size and chosen[-1] >= n:
            raise IndexError(f"compress: condition is true at {chosen[-1]}, but axis {axis} of the array of shape "
                             f"{a.shape} has size {n}")
        return getitem(a, _along(axis, chosen))
    chosen, = jnp.nonzero(condition, size=size, fill_value=max(n, condition.shape[0]))
    return get(a, _along(axis, chosen), mode="fill", fill_value=fill_value)


def _known(value, name, argument):
    if not is_concrete(value):
        raise errors.ConcretizationTypeError(
            f"{name}: {argument} must be concrete, because the shape of the result depends on it, but it is a traced "
            f"array of type {aval_of(value).str_short()}. Give size=... where there is such an argument, or compute "
            "it outside the transformed function.")
    return concrete_or_error(value)


def extract(condition, arr, *, size=None, fill_value=0):
    """The elements of `arr` where `condition` is true, as a 1-D array.  For `size` see `compress`."""
    return compress(jnp.ravel(condition), arr, size=size, fill_value=fill_value)


# --- writing ----------------------------------------------------------------------------------------------------

def put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None):
    """`arr` with `values` written where `take_along_axis` would read.  `inplace=False` is required."""
    _not_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    shape = aval_of(arr).shape
    arr, axis = _flat_or_axis(arr, axis)
    if aval_of(indices).ndim != arr.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {aval_of(indices).ndim} vs. "
                         f"{arr.ndim}")
    index = [i for i in np.ogrid[tuple(map(slice, arr.shape))]]
    index[axis] = indices
    return reshape(update(arr, tuple(index), values, "set", mode=mode), shape)


def put(a, ind, v, mode=None, *, inplace=True):
    """`a` with the elements at flat positions `ind` replaced by `v`, repeated as needed.  `inplace=False` is required.

    mode: "clip" (the default) or "wrap", for positions out of bounds.
    """
    _not_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    a, ind, v = jnp.asarray(a), jnp.ravel(ind), jnp.ravel(v)
    if not a.size or not ind.size or not v.size:
        return a
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    ind = jnp.remainder(ind, a.size) if mode == "wrap" else jnp.clip(ind, 0, a.size - 1)
    v = v[:ind.size] if v.size >= ind.size else getitem(v, np.arange(ind.size) % v.size)
    return reshape(update(reshape(a, (a.size,)), ind, v, "set"), a.shape)


def place(arr, mask, vals, *, inplace=True):
    """`arr` with the elements where `mask` is true replaced by `vals` in turn.  `inplace=False` is required."""
    _not_inplace("place", inplace)
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = jnp.asarray(arr), jnp.asarray(mask), jnp.ravel(vals)
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
    number = jnp.remainder(jnp.cumsum(mask) - 1, vals.size)
    chosen = select(mask, getitem(vals, number).astype(arr.dtype), reshape(arr, (arr.size,)))
    return reshape(chosen, arr.shape)


def fill_diagonal(a, val, wrap=False, *, inplace=True):
    """`a` with `val` (a scalar, or values used in turn) on its main diagonal.  `inplace=False` is required."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    check_arraylike("fill_diagonal", a, val)
    a = jnp.asarray(a)
    if a.ndim < 2:
        raise ValueError(f"array must be at least 2-d, got shape {a.shape}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {a.shape}")
    n = min(a.shape)
    if aval_of(val).ndim:
        val = jnp.ravel(val)
        val = getitem(val, np.arange(n) % val.size)
    return update(a, (np.arange(n),) * a.ndim, val, "set", unique_indices=True)


# --- removing and adding ----------------------------------------------------------------------------------------

def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """`arr` without the slices `obj` (an int, slice, mask or array of ints) along `axis` (None: flattened).

    Traced indices are possible where they are a single int, or with assume_unique_indices=True.
    """
    arr, axis = _flat_or_axis(arr, axis)
    n = arr.shape[axis]
    if not isinstance(obj, slice):
        check_arraylike("delete", obj)
        aval = aval_of(obj)
        if not is_concrete(obj) and dtypes.is_integer(aval.dtype) and (assume_unique_indices or aval.size == 1):
            return _delete_unique(arr, jnp.ravel(obj), axis=axis)
        obj = np.asarray(_known(obj, "delete", "'obj' array argument"))
    return getitem(arr, _along(axis, np.delete(np.arange(n), obj)))


@composite(static=("axis",))
def _delete_unique(arr, obj, *, axis):
    n = arr.shape[axis]
    obj = jnp.sort(jnp.clip(jnp.where(obj < 0, obj + n, obj), 0, n - 1)) - jnp.arange(obj.size)
    kept = jnp.arange(n - obj.size)
    return getitem(arr, _along(axis, kept + (kept[None] >= obj[:, None]).sum(0)))


def insert(arr, obj, values, axis=None):
    """`arr` with `values` inserted before the positions `obj` (an int, slice or array of ints) along `axis`."""
    check_arraylike("insert", arr, values, *(() if isinstance(obj, slice) else (obj,)))
    arr, axis = _flat_or_axis(arr, axis)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if aval_of(obj).dtype == np.bool_:
        obj = np.flatnonzero(np.asarray(_known(obj, "insert", "'obj' mask")))
    values = jnp.asarray(values)
    if aval_of(obj).ndim == 0:      # a single place takes all the values, whose first axis is then `axis`
        values = reshape(values, (*[1] * (arr.ndim - values.ndim), *values.shape))
        values = jnp.moveaxis(values, 0, axis)
    return _insert(arr, jnp.ravel(obj), values, axis=axis)


@composite(static=("axis",))
def _insert(arr, places, values, *, axis):
    n = arr.shape[axis]
    if places.size == 1:
        places = jnp.broadcast_to(places, (values.shape[axis] if values.ndim > axis else 1,))
    m = places.size
    places = jnp.clip(jnp.where(places < 0, places + n, places), 0, n)
    order = jnp.argsort(places)
    places = update(places, order, np.arange(m, dtype=places.dtype), "add", unique_indices=True)
    shape = (*arr.shape[:axis], n + m, *arr.shape[axis + 1:])
    inserted = update(jnp.zeros(n + m, bool), places, True, "set", unique_indices=True)
    old = get(arr, _along(axis, jnp.cumsum(~inserted) - 1), mode="clip")
    old = old if n else jnp.zeros(shape, arr.dtype)
    return update(old, _along(axis, places), values.astype(arr.dtype), "set", unique_indices=True)


# --- grids of indices -------------------------------------------------------------------------------------------

def _int_array(x):
    return jnp.asarray(np.asarray(x).astype(dtypes.canonicalize(np.int64)))


def _int_arrays(arrays):
    return tuple(map(_int_array, arrays))


def ix_(*args):
    """1-D index arrays reshaped so that together they index the grid of all their combinations."""
    check_arraylike("ix_", *args)
    result = []
    for i, a in enumerate(args):
        a = jnp.asarray(a)
        if a.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {a.shape} at position {i}")
        if dtypes.is_bool(a.dtype):
            a = _int_array(np.flatnonzero(np.asarray(_known(a, "ix_", "a boolean argument"))))
        result.append(reshape(a, (*[1] * i, a.size, *[1] * (len(args) - 1 - i))))
    return tuple(result)


def indices(dimensions, dtype=None, sparse=False):
    """The index of every element of an array of shape `dimensions`, for each axis: stacked, or a sparse tuple."""
    dimensions = tuple(map(operator.index, dimensions))
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, "indices")
    grids = [bind("iota", dtype=dtype, dimension=i,
                  shape=tuple(n if i == j else 1 for j, n in enumerate(dimensions)) if sparse else dimensions)
             for i in range(len(dimensions))]
    if sparse:
        return tuple(grids)
    return jnp.stack(grids) if grids else jnp.zeros((0,), dtype)


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of an array with `ndim` axes of size `n`."""
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0 or ndim < 1:
        raise ValueError(f"diag_indices needs n >= 0 and ndim >= 1, got n={n} and ndim={ndim}")
    return (_int_array(np.arange(n)),) * ndim


def diag_indices_from(arr):
    """The indices of the main diagonal of `arr`, whose axes must have equal sizes."""
    shape = aval_of(arr).shape
    if len(shape) < 2:
        raise ValueError(f"input array must be at least 2-d, got shape {shape}")
    if len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def tril_indices(n, k=0, m=None):
    """The indices of the lower triangle of an n by m matrix, up to diagonal k."""
    return _int_arrays(np.tril_indices(n, k, m))


def triu_indices(n, k=0, m=None):
    """The indices of the upper triangle of an n by m matrix, from diagonal k on."""
    return _int_arrays(np.triu_indices(n, k, m))


def _matrix_shape(arr):
    if len(arr.shape) != 2:
        raise ValueError(f"input array must be 2-d, got shape {arr.shape}")
    return arr.shape


def tril_indices_from(arr, k=0):
    """`tril_indices` for the shape of the matrix `arr`."""
    n, m = _matrix_shape(arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr, k=0):
    """`triu_indices` for the shape of the matrix `arr`."""
    n, m = _matrix_shape(arr)
    return triu_indices(n, k, m)


def mask_indices(n, mask_func, k=0, *, size=None):
    """The indices at which `mask_func(ones((n, n)), k)` is not zero."""
    return jnp.nonzero(mask_func(jnp.ones((n, n)), k), size=size)


def unravel_index(indices, shape):
    """Flat indices into an array of `shape` as a tuple of indices, one for each axis; clamped where out of bounds."""
    check_arraylike("unravel_index", indices)
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise TypeError(f"unravel_index: indices must have an integer type, got {aval_of(indices).dtype}")
    shape = (operator.index(shape),) if not isinstance(shape, (tuple, list)) else tuple(map(operator.index, shape))
    return _unravel(indices, shape=shape)


@composite(static=("shape",))
def _unravel(indices, *, shape):
    total = prod(shape)
    rest = jnp.clip(jnp.where(indices < 0, indices + total, indices), 0, max(total - 1, 0))
    result = []
    for n in reversed(shape):
        result.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    return tuple(reversed(result))


def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, dtype=None):
    """Flat indices into an array of shape `dims` from one index array for each axis.

    mode "raise" needs concrete indices; "clip" and "wrap" mend what is out of bounds.
    """
    dims = tuple(map(operator.index, dims))
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    check_arraylike("ravel_multi_index", *multi_index)
    for i in multi_index:
        if not dtypes.is_integer(aval_of(i).dtype):
            raise TypeError("only int indices permitted")
    if order not in ("C", "F"):
        raise ValueError(f"order={order!r} not understood. Must be 'C' or 'F'")
    if mode == "raise":
        for i, n in zip(multi_index, dims):
            values = np.asarray(concrete_or_error(i, "ravel_multi_index with mode='raise' needs concrete indices: use "
                                                     "mode='wrap' or mode='clip'"))
            if ((values < 0) | (values >= n)).any():
                raise ValueError("invalid entry in coordinates array")
    elif mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'clip', or 'wrap'")
    flat = _ravel(*multi_index, dims=dims, wrap=mode == "wrap", order=order)
    return flat if dtype is None else flat.astype(dtype)


@composite(static=("dims", "wrap", "order"))
def _ravel(*multi_index, dims, wrap, order):
    pairs = list(zip(multi_index, dims))
    total = scalar(0, dtypes.canonicalize(np.int64))
    for i, n in (pairs if order == "C" else reversed(pairs)):
        total = total * n + (jnp.remainder(i, n) if wrap else jnp.clip(i, 0, n - 1))
    return jnp.asarray(total)


# --- r_ and c_ --------------------------------------------------------------------------------------------------

class _Concatenator:
    """`r_[...]` and `c_[...]`: slices become ranges, and everything is concatenated along an axis.

    A first entry "axis,ndmin,trans1d" sets the axis, the least number of axes of each part, and where a part with
    fewer axes has its own; "r" and "c" make matrices.
    """

    def __init__(self, axis, ndmin, trans1d):
        self.defaults = axis, ndmin, trans1d

    def __getitem__(self, key):
        axis, ndmin, trans1d = self.defaults
        parts = list(key) if isinstance(key, tuple) else [key]
        if parts and isinstance(parts[0], str):
            directive = parts.pop(0)
            if directive in ("r", "c"):
                ndmin, trans1d = 2, -1 if directive == "r" else 0
                axis = -1 if directive == "r" else 0
            else:
                try:
                    given = [int(v) for v in directive.split(",")]
                    axis, ndmin, trans1d = (*given, *(axis, ndmin, trans1d)[len(given):])
                except ValueError:
                    raise ValueError(f"could not understand directive {directive!r}") from None
        if any(isinstance(p, str) for p in parts):
            raise ValueError("special directives must be the first entry.")
        return jnp.concatenate([self._part(p, ndmin, trans1d) for p in parts], axis=axis)

    @staticmethod
    def _part(item, ndmin, trans1d):
        if isinstance(item, slice):
            start, step = item.start or 0, 1 if item.step is None else item.step
            item = (jnp.linspace(start, item.stop, int(abs(step))) if isinstance(step, complex)
                    else jnp.arange(start, item.stop, step))
        item = jnp.asarray(item)
        missing = max(ndmin, 1) - item.ndim
        if missing <= 0:
            return item
        before = trans1d if trans1d >= 0 else trans1d + missing + 1
        return reshape(item, (*[1] * before, *item.shape, *[1] * (missing - before)))


r_ = _Concatenator(0, 1, -1)
c_ = _Concatenator(-1, 2, 0)
