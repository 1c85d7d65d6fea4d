"""Grids and indices: coordinates of points, indices of diagonals and triangles, `s_`, `r_`, `c_`."""
import functools
import operator

import numpy as np

from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.avals import aval_of
from ...core.errors import check_choice, not_one_of
from ...core.trace import concrete_or_error
from ...lax import shapes as lax
from ...primitives.arrays.shape import reshape
from ...primitives.arrays.slicing import iota_p
from ...primitives.common import as_axes, canonical_shape, check_index, prod, scalar, static_int
from ...runtime.devices import transfer
from ..elementwise.arithmetic import clip, remainder
from ..elementwise.ufuncs import maximum
from ..indexing.conditions import nonzero, where
from ..indexing.selection import concrete_argument
from ..util import check_arraylike, ndim, promote_dtypes, shape as shape_of
from .creation import asarray, ones, zeros
from .joining import concatenate, stack
from .ranges import arange, linspace

__all__ = ["c_", "diag_indices", "diag_indices_from", "index_exp", "indices", "ix_", "mask_indices",
           "meshgrid", "mgrid", "ogrid", "r_", "ravel_multi_index", "s_", "tril_indices", "tril_indices_from",
           "triu_indices", "triu_indices_from", "unravel_index"]

s_, index_exp = np.s_, np.index_exp


# --- grids ----------------------------------------------------------------------------------------

def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """A tuple of arrays: the coordinates, along each axis, of the points of a grid.

    Args:
        xi: vectors or scalars.
        copy: True.
        sparse: axes of size 1 instead of repeated values.
        indexing: "xy" has the second one run along the first axis, "ij" keeps the order.
    Raises:
        ValueError: for `copy=False`.

    >>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[10, 10, 10], [20, 20, 20]])
    >>> [v.shape for v in jnp.meshgrid(jnp.arange(3), jnp.arange(2), indexing="ij", sparse=True)]
    [(3, 1), (1, 2)]
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    check_choice("indexing", indexing, ("xy", "ij"))
    if any(ndim(x) > 1 for x in xi):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
                         f"{[shape_of(x) for x in xi]}: flatten them with .ravel()")
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) >= 2:
        axes[:2] = 1, 0
    xi = [lax.reshape(x, (aval_of(x).size,)) for x in xi]
    shape = [1] * len(xi)
    for x, axis in zip(xi, axes):
        shape[axis] = x.shape[0]
    return tuple([lax.broadcast_in_dim(x, [n if not sparse or i == axis else 1 for i, n in enumerate(shape)],
                                       (axis,)) for x, axis in zip(xi, axes)])


def _range(s):
    """The numbers of a slice; an imaginary step is a number of points."""
    start, step = s.start or 0, 1 if s.step is None else s.step
    if isinstance(step, complex):
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


class _Grid:
    """`mgrid[a:b:c, ...]` and `ogrid[...]`: ranges from slices; an imaginary step is a number of points.

    >>> jnp.mgrid[0:2, 0:3:2].tolist(), jnp.mgrid[0:1:3j]
    ([[[0, 0], [1, 1]], [[0, 2], [0, 2]]], Array([0. , 0.5, 1. ], dtype=float32))
    >>> [x.shape for x in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __init__(self, name, sparse):
        self.name, self.sparse = name, sparse

    __iter__ = None     # else Python would count up without an end

    def __getitem__(self, key):
        if isinstance(key, slice):
            return _range(key)
        ranges = promote_dtypes(*map(_range, key))
        grids = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return grids
        if grids:
            return lax.stack(grids)
        return zeros((0,), int)

    def __repr__(self):
        return f"hlotrace.numpy.{self.name}"


mgrid, ogrid = _Grid("mgrid", False), _Grid("ogrid", True)


# --- indices --------------------------------------------------------------------------------------

def _int_array(x):
    return asarray(np.asarray(x).astype(dtypes.canonicalize(np.int64)))


def _int_arrays(arrays):
    return tuple(map(_int_array, arrays))


def ix_(*args):
    """1-D index arrays reshaped so that together they index the grid of all their combinations.

    >>> x = jnp.arange(12).reshape(3, 4)
    >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
    Array([[ 1,  3],
           [ 9, 11]], dtype=int32)
    """
    check_arraylike("ix_", *args)
    result = []
    for i, a in enumerate(args):
        a = asarray(a)
        if a.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {a.shape} at "
                             f"position {i}")
        if not a.size:
            a = a.astype(int)
        elif dtypes.is_bool(a.dtype):
            a = _int_array(np.flatnonzero(np.asarray(concrete_argument(a, "ix_", "a boolean argument"))))
        result.append(reshape(a, (*[1] * i, a.size, *[1] * (len(args) - 1 - i))))
    return tuple(result)


def indices(dimensions, dtype=None, sparse=False):
    """The index of every element of an array, for each axis.

    Args:
        dtype: that of the result, the default integer by default.
        sparse: a tuple of arrays with axes of size 1, instead of one array.

    >>> rows, columns = jnp.indices((2, 3))
    >>> rows.tolist(), columns.tolist()
    ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    dimensions = canonical_shape(dimensions)
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, "indices")
    grids = [iota_p.bind(dtype=dtype, dimension=i,
                  shape=tuple(n if i == j else 1 for j, n in enumerate(dimensions)) if sparse else dimensions)
             for i in range(len(dimensions))]
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else zeros((0,), dtype)


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of an array with `ndim` axes of size `n`.

    >>> jnp.eye(3).at[jnp.diag_indices(3)].add(4)
    Array([[5., 0., 0.],
           [0., 5., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0 or ndim < 1:
        name, value = ("n", n) if n < 0 else ("ndim", ndim)
        raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (_int_array(np.arange(n)),) * ndim


def diag_indices_from(arr):
    """The indices of the main diagonal of `arr`, whose axes must have equal sizes.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = aval_of(arr).shape
    if len(shape) < 2:
        raise ValueError(f"input array must be at least 2-d, got shape {shape}")
    if len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def tril_indices(n, k=0, m=None):
    """The indices of the lower triangle of an n by m matrix, up to diagonal k.

    Two int32 vectors: rows and columns.

    >>> jnp.arange(9).reshape(3, 3)[jnp.tril_indices(3)], jnp.tril_indices(2, k=-1)
    (Array([0, 3, 4, 6, 7, 8], dtype=int32), (Array([1], dtype=int32), Array([0], dtype=int32)))
    """
    return _int_arrays(np.tril_indices(operator.index(n), operator.index(k), m))


def triu_indices(n, k=0, m=None):
    """The indices of the upper triangle of an n by m matrix, from diagonal k on.

    Two int32 vectors: rows and columns.

    >>> jnp.arange(9).reshape(3, 3)[jnp.triu_indices(3)], jnp.triu_indices(2, k=1)
    (Array([0, 1, 2, 4, 5, 8], dtype=int32), (Array([0], dtype=int32), Array([1], dtype=int32)))
    """
    return _int_arrays(np.triu_indices(operator.index(n), operator.index(k), m))


def _matrix_shape(arr):
    if ndim(arr) != 2:
        raise ValueError(f"Only 2-D inputs are accepted: input array must be 2-d, got shape {shape_of(arr)}")
    return shape_of(arr)


def tril_indices_from(arr, k=0):
    """`tril_indices` for the shape of the matrix `arr`.

    >>> jnp.tril_indices_from(jnp.ones((2, 3)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _matrix_shape(arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr, k=0):
    """`triu_indices` for the shape of the matrix `arr`.

    >>> jnp.triu_indices_from(jnp.ones((2, 3)), k=1)
    (Array([0, 0, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    n, m = _matrix_shape(arr)
    return triu_indices(n, k, m)


def mask_indices(n, mask_func, k=0, *, size=None):
    """The indices at which `mask_func(ones((n, n)), k)` is not zero.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def unravel_index(indices, shape):
    """Flat indices into an array of `shape` as a tuple of indices, one for each axis.

    Indices out of bounds are clipped.

    >>> jnp.unravel_index(jnp.array([0, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([0, 2], dtype=int32))
    >>> jnp.unravel_index(jnp.argmax(jnp.array([[1, 2], [9, 4]])), (2, 2))
    (Array(1, dtype=int32), Array(0, dtype=int32))
    """
    check_arraylike("unravel_index", indices)
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise TypeError(f"unravel_index: indices must have an integer type, got {aval_of(indices).dtype}: "
                        "convert them with .astype(int)")
    shape = as_axes(shape)
    if any(isinstance(n, Array) for n in shape):
        return _unravel_traced(indices, *shape)
    shape = tuple(static_int(n, "a size in shape") for n in shape)
    check_index(indices, prod(shape))
    return _unravel(indices, shape=shape)


def _by_axis(indices, shape, larger):
    total = functools.reduce(operator.mul, shape, 1)
    rest = clip(where(indices < 0, indices + total, indices), 0, larger(total - 1, 0))
    result = []
    for n in reversed(shape):
        result.append(rest % larger(n, 1))
        rest = rest // larger(n, 1)
    return tuple(reversed(result))


@composite()
def _unravel_traced(indices, *shape):
    return _by_axis(indices, shape, maximum)


@composite(static=("shape",))
def _unravel(indices, *, shape):
    return _by_axis(indices, shape, max)


def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, dtype=None):
    """Flat indices into an array of shape `dims` from one index array for each axis.

    Args:
        multi_index: a tuple of arrays of ints.
        mode: out of bounds; "raise" needs concrete indices, "clip" takes the nearest, "wrap" counts around.
        order: "C" for rows first, "F" for columns first.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([0, 2])), (2, 3))
    Array([0, 5], dtype=int32)
    >>> jnp.ravel_multi_index((jnp.array([5]), jnp.array([-1])), (2, 3), mode="clip")
    Array([3], dtype=int32)
    """
    dims = tuple(static_int(n, "a size in dims") for n in dims)
    if len(multi_index) != len(dims):
        raise ValueError(f"multi_index has {len(multi_index)} arrays and dims {dims} has {len(dims)} sizes "
                         f"(len(multi_index)={len(multi_index)} != len(dims)={len(dims)}): give one array "
                         "for each axis")
    check_arraylike("ravel_multi_index", *multi_index)
    for i in multi_index:
        if not dtypes.is_integer(aval_of(i).dtype):
            raise TypeError("only int indices permitted")
    check_choice("order", order, ("C", "F"))
    if mode == "raise":
        for i, n in zip(multi_index, dims):
            values = np.asarray(transfer.whole(concrete_or_error(
                i, "ravel_multi_index with mode='raise' needs concrete indices: use mode='wrap' or "
                   "mode='clip'")))
            if ((values < 0) | (values >= n)).any():
                raise ValueError(f"invalid entry in coordinates array: an index from {values.min()} to "
                                 f"{values.max()} along an axis of size {n}: use mode='clip' or mode='wrap'")
    elif mode not in ("clip", "wrap"):
        raise not_one_of("mode", mode, ("raise", "clip", "wrap"))
    flat = _ravel(*multi_index, dims=dims, wrap=mode == "wrap", order=order)
    return flat if dtype is None else flat.astype(dtype)


@composite(static=("dims", "wrap", "order"))
def _ravel(*multi_index, dims, wrap, order):
    pairs = list(zip(multi_index, dims))
    total = scalar(0, dtypes.canonicalize(np.int64))
    for i, n in (pairs if order == "C" else reversed(pairs)):
        total = total * n + (remainder(i, n) if wrap else clip(i, 0, n - 1))
    return asarray(total)


# --- r_ and c_ ------------------------------------------------------------------------------------

class _AxisConcat:
    """`r_[...]` and `c_[...]`: slices become ranges, and everything is concatenated along an axis.

    A first entry "axis,ndmin,trans1d" sets the axis, the least number of axes of each part, and the position
    of the axes of a part with fewer; "r" and "c" make matrices of `r_[...]`.

    >>> jnp.r_[1:4, 0, 7.5], jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])].tolist()
    (Array([1. , 2. , 3. , 0. , 7.5], dtype=float32, weak_type=True), [[1, 3], [2, 4]])
    """

    __iter__ = None     # else Python would count up without an end

    def __getitem__(self, key):
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        parts = list(key) if isinstance(key, tuple) else [key]
        if parts and isinstance(parts[0], str):
            directive = parts.pop(0)
            if directive in ("r", "c"):
                if ndmin < 2:       # those of c_ are matrices already
                    axis = trans1d = -1 if directive == "r" else 0
                    ndmin = 2
            else:
                try:
                    given = [int(v) for v in directive.split(",")]
                    axis, ndmin, trans1d = (*given, *(axis, ndmin, trans1d)[len(given):])
                except ValueError:
                    raise ValueError(f"could not understand directive {directive!r}") from None
        if any(isinstance(p, str) for p in parts):
            raise ValueError("special directives must be the first entry.")
        return concatenate([self._part(p, ndmin, trans1d) for p in parts], axis=axis)

    @staticmethod
    def _part(item, ndmin, trans1d):
        if isinstance(item, slice):
            item = _range(item)
        item = asarray(item)
        missing = max(ndmin, 1) - item.ndim
        if missing <= 0:
            return item
        before = trans1d if trans1d >= 0 else trans1d + missing + 1
        return reshape(item, (*[1] * before, *item.shape, *[1] * (missing - before)))


class RClass(_AxisConcat):
    __doc__ = _AxisConcat.__doc__
    axis, ndmin, trans1d = 0, 1, -1


class CClass(_AxisConcat):
    __doc__ = _AxisConcat.__doc__
    axis, ndmin, trans1d = -1, 2, 0


r_, c_ = RClass(), CClass()
