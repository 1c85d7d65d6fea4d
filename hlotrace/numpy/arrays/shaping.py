"""Functions that move elements without computing: reshape, transpose, join, split, repeat, roll, flip."""
import itertools
import math
import operator
from collections.abc import Iterator
from functools import partial

from ...api.composite import composite
from ...core import dtypes, errors
from ...core.array import Array
from ...core.avals import aval_of
from ...core.symbolic.dimension import as_size, is_constant_shape, max_dim, min_dim, surely
from ...core.trace import concrete_or_error, is_concrete
from ...lax import shapes as lax
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.cumulative import cumsum_p
from ...primitives.arrays.dynamic_slice import dynamic_slice_p
from ...primitives.arrays.elementwise import add, convert, minimum, neg, rem_p
from ...primitives.arrays.shape import squeeze_p
from ...primitives.arrays.slicing import slice_p
from ...primitives.common import as_axes, canonical_axes, canonical_axis, canonical_shape, np, prod, scalar
from ..indexing.indexing import get
from ..reductions.sorting import searchsorted
from ..util import (
    MANY,
    broadcast_shapes,
    broadcast_to_shape,
    cast,
    check_arraylike,
    in_pieces,
    promote_dtypes,
)
from ..util import ndim as ndim_of
from ..util import shape as shape_of
from .creation import asarray

__all__ = ["append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays",
           "broadcast_shapes", "broadcast_to", "column_stack", "concat", "concatenate", "dsplit", "dstack",
           "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "matrix_transpose", "moveaxis",
           "ndim", "permute_dims", "ravel", "repeat", "reshape", "resize", "roll", "rollaxis", "rot90",
           "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vsplit",
           "vstack"]


# --- what an array is like
# --------------------------------------------------------------------------------------

def shape(a):
    """The sizes of the axes, a tuple of ints; of a list, those of the array that it would be.

    >>> jnp.shape(jnp.ones((2, 3))), jnp.shape(5)
    ((2, 3), ())
    """
    if isinstance(a, (list, tuple, type(None))):
        return np.shape(a)
    if isinstance(sizes := getattr(a, "shape", None), tuple):
        return sizes
    check_arraylike("shape", a)
    return ()


def ndim(a):
    """The number of axes, an int; of a list, those of the array that it would be.

    >>> jnp.ndim(jnp.ones((2, 3))), jnp.ndim(5)
    (2, 0)
    """
    return len(shape(a))


def size(a, axis=None):
    """The number of elements, or of positions along `axis` (an int or a sequence of them).

    >>> x = jnp.ones((2, 3, 4))
    >>> jnp.size(x), jnp.size(x, 1), jnp.size(x, (0, 2))
    (24, 3, 8)
    """
    sizes = shape(a)
    return prod(sizes[i] for i in canonical_axes(axis, len(sizes)))


# --- reshape
# ----------------------------------------------------------------------------------------------------

def new_shape(name, old, wanted):
    """The shape that `wanted`, in which one size may be -1, means.  TypeError if it does not fit."""
    try:
        wanted = (as_size(wanted),)
    except TypeError:
        wanted = tuple(map(as_size, wanted))
    total = prod(old)
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise ValueError(f"{name}: the shape {wanted} may have one size -1, and no other negative one")
    known = prod(n for n in wanted if n != -1)
    if -1 in wanted:
        if not known or total % known:
            unknown = not is_constant_shape((total, known))
            raise (errors.InconclusiveDimensionOperation if unknown else TypeError)(
                f"cannot reshape array of shape {old} (size {total}) into shape {wanted}: the sizes without "
                f"-1 multiply to {known}, which does not divide {total}")
        wanted = tuple(total // known if n == -1 else n for n in wanted)
    elif known != total:
        raise TypeError(f"cannot reshape array of shape {old} (size {total}) into shape {wanted} (size "
                        f"{known}); one size given as -1 takes what the others leave")
    return wanted


def reshape(a, shape, order="C", *, copy=None, out_sharding=None):
    """The elements under another shape, in row-major order, or column-major with order="F".

    Args:
        a: an array.
        shape: an int or a tuple; one size may be -1, which takes what the others leave.
        order: "C" or "F".
        copy: True for memory of its own.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: where the sizes do not fit.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    >>> jnp.reshape(jnp.arange(6), (2, 3), order="F")
    Array([[0, 2, 4],
           [1, 3, 5]], dtype=int32)
    >>> jnp.reshape(jnp.arange(6), (4, -1))
    Traceback (most recent call last):
        ...
    TypeError: jnp.reshape(int32[6], (4, -1)): cannot reshape array of shape (6,) (size 6) into shape (4, -1):
    ...
    """
    check_arraylike("reshape", a)
    if out_sharding is not None:
        a, = over_auto_axes(a)
    shape = new_shape("reshape", shape_of(a), shape)
    a = a if isinstance(a, Array) else asarray(a)
    if order not in ("C", "F"):
        raise (NotImplementedError if order in ("A", "K") else ValueError)(
            f"order must be 'C' (rows first) or 'F' (columns first), got {order!r}")
    result = asarray(lax.reshape(a, shape), copy=copy) if order == "C" else _reshape_columns(a, shape=shape)
    return with_out_sharding(result, out_sharding, "jnp.reshape")


@composite(static=("shape",))
def _reshape_columns(a, *, shape):
    return _reversed(lax.reshape(_reversed(a), shape[::-1]))


def _reversed(a):
    return lax.transpose(a, range(ndim_of(a) - 1, -1, -1))


def ravel(a, order="C", *, out_sharding=None):
    """The elements as a vector, row by row, or column by column with order="F"; see `reshape`.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.ravel(x), jnp.ravel(x, order="F")
    (Array([1, 2, 3, 4], dtype=int32), Array([1, 3, 2, 4], dtype=int32))
    """
    if out_sharding is not None:
        a, = over_auto_axes(a)
    return with_out_sharding(reshape(a, -1 if math.prod(shape_of(a)) else (0,), order), out_sharding,
                             "jnp.ravel")


def resize(a, new_shape):
    """The elements, repeated as often as needed, under a new shape.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
    Array([[1, 2, 3, 1],
           [2, 3, 1, 2]], dtype=int32)
    """
    check_arraylike("resize", a)
    return _resize(a, shape=canonical_shape(new_shape, "resize: new_shape"))


@composite(static=("shape",))
def _resize(a, *, shape):
    flat, wanted = lax.reshape(a, (aval_of(a).size,)), prod(shape)
    if not flat.shape[0]:
        return lax.full(shape, 0, flat.dtype)
    copies = lax.tile(flat, (-(-wanted // flat.shape[0]),))
    return lax.reshape(slice_p.bind(copies, start_indices=(0,), limit_indices=(wanted,), strides=None), shape)


# --- axes
# -------------------------------------------------------------------------------------------------------

def transpose(a, axes=None):
    """The axes in another order; without `axes`, in reverse.

    Args:
        a: an array.
        axes: one int for each axis, negative ones from the end.

    Raises:
        TypeError: for a wrong number of axes.
        ValueError: for repeated ones.

    >>> x = jnp.ones((2, 3, 4))
    >>> jnp.transpose(x).shape, jnp.transpose(x, (1, 0, -1)).shape
    ((4, 3, 2), (3, 2, 4))
    """
    check_arraylike("transpose", a)
    n = ndim_of(a)
    axes = range(n)[::-1] if axes is None else canonical_axes(tuple(axes), n)
    if len(axes) != n:
        raise TypeError(f"transpose: axes {tuple(axes)} must name each of the {n} axes of an array of shape "
                         f"{shape_of(a)}")
    return lax.transpose(a if isinstance(a, Array) else asarray(a), axes)


def permute_dims(a, /, axes):
    """`transpose` with the axes given.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x, /):
    """The last two axes exchanged.

    Raises:
        ValueError: for less than two axes.

    >>> jnp.matrix_transpose(jnp.array([[[1, 2], [3, 4]]]))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    check_arraylike("matrix_transpose", x)
    if ndim_of(x) < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got shape {shape_of(x)}")
    return swapaxes(x, -1, -2)


def moveaxis(a, source, destination):
    """The axes `source` moved to the positions `destination`; the others keep their order.

    Args:
        a: an array.
        source: an int or a sequence of them.
        destination: the same number of ints.

    >>> x = jnp.ones((2, 3, 4))
    >>> jnp.moveaxis(x, 0, -1).shape, jnp.moveaxis(x, (0, 1), (2, 0)).shape
    ((3, 4, 2), (3, 4, 2))
    """
    check_arraylike("moveaxis", a)
    n = ndim_of(a)
    source, destination = canonical_axes(source, n, "source"), canonical_axes(destination, n, "destination")
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}: source and "
                         "destination must name as many axes")
    order = [i for i in range(n) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(a, order)


def rollaxis(a, axis, start=0):
    """`axis` moved to the position before `start`.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape, jnp.rollaxis(jnp.ones((2, 3, 4)), 0, 2).shape
    ((4, 2, 3), (3, 2, 4))
    """
    check_arraylike("rollaxis", a)
    n = ndim_of(a)
    axis = canonical_axis(axis, n)
    if not -n <= start <= n:
        raise ValueError(f"rollaxis: start={start} must satisfy {-n}<=start<={n}")
    start = start + n if start < 0 else start
    return moveaxis(a, axis, start - (axis < start))


def swapaxes(a, axis1, axis2):
    """Two axes exchanged.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    check_arraylike("swapaxes", a)
    order = list(range(ndim_of(a)))
    axis1, axis2 = canonical_axis(axis1, len(order), "axis1"), canonical_axis(axis2, len(order), "axis2")
    order[axis1], order[axis2] = axis2, axis1
    return transpose(a, order)


def squeeze(a, axis=None):
    """Without the axes of size 1, or without the given ones, which must have size 1.

    >>> x = jnp.ones((1, 3, 1))
    >>> jnp.squeeze(x).shape, jnp.squeeze(x, axis=0).shape
    ((3,), (3, 1))
    >>> jnp.squeeze(x, axis=1)
    Traceback (most recent call last):
        ...
    ValueError: jnp.squeeze(x: float32[1,3,1], axis=1): axis 1 of an array of shape (1, 3, 1) has size 3, and
    ...
    """
    check_arraylike("squeeze", a)
    if axis is None:
        axis = [i for i, n in enumerate(shape_of(a)) if n == 1]
    return lax.squeeze(a if isinstance(a, Array) else asarray(a), canonical_axes(axis, ndim_of(a)))


def expand_dims(a, axis):
    """New axes of size 1 at the places `axis` of the result.

    Args:
        axis: an int or several of them, negative ones from the end of the result.

    >>> x = jnp.ones((2, 3))
    >>> jnp.expand_dims(x, 0).shape, jnp.expand_dims(x, (0, -1)).shape
    ((1, 2, 3), (1, 2, 3, 1))
    """
    check_arraylike("expand_dims", a)
    return lax.expand_dims(a if isinstance(a, Array) else asarray(a), as_axes(axis))


def _atleast(n, place):
    """`atleast_1d` and its kin; `place` gives the shape from that of an array with fewer axes."""
    def convert_all(*arys):
        check_arraylike(name, *arys)
        arys = [asarray(a) for a in arys]
        results = [a if a.ndim >= n else lax.reshape(a, place(a.shape)) for a in arys]
        return results[0] if len(results) == 1 else results
    convert_all.__name__ = convert_all.__qualname__ = name = f"atleast_{n}d"
    convert_all.__doc__ = f"""Each array with at least {n} axes, new ones of size 1; a list of several.

    >>> [x.shape for x in jnp.{name}(5, jnp.ones(3), jnp.ones((1, 2, 3, 4)))]
    [{place(())}, {(3,) if n == 1 else place((3,))}, (1, 2, 3, 4)]
    """
    return convert_all


atleast_1d = _atleast(1, lambda s: (1,))
atleast_2d = _atleast(2, lambda s: (1, 1)[len(s):] + s)
atleast_3d = _atleast(3, lambda s: ((1, *s, 1) if len(s) == 1 else (*s, 1, 1, 1)[:3]))


# --- broadcasting
# -----------------------------------------------------------------------------------------------

def broadcast_to(array, shape, *, out_sharding=None):
    """`array` repeated to `shape` by NumPy's rules.

    Axes are aligned at the end; those of size 1 are repeated, new ones come in front.

    Raises:
        ValueError: where that does not fit.

    >>> jnp.broadcast_to(jnp.array([[1], [2]]), (2, 3))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    check_arraylike("broadcast_to", array)
    if out_sharding is not None:
        array, = over_auto_axes(array)
    result = asarray(broadcast_to_shape(array, canonical_shape(shape, "broadcast_to: shape")))
    return with_out_sharding(result, out_sharding, "jnp.broadcast_to")


def broadcast_arrays(*args):
    """A list of the arrays, each repeated to their common shape; the dtypes stay.

    Raises:
        ValueError: where the shapes do not broadcast.

    >>> [x.tolist() for x in jnp.broadcast_arrays(jnp.array([1, 2]), jnp.array([[5], [6]]))]
    [[[1, 2], [1, 2]], [[5, 5], [6, 6]]]
    """
    check_arraylike("broadcast_arrays", *args)
    common = broadcast_shapes(*map(shape_of, args))
    return [asarray(broadcast_to_shape(a, common)) for a in args]


# --- joining
# ----------------------------------------------------------------------------------------------------

def _sequence(name, arrays):
    """A list of the arrays to join.  TypeError for what is not a sequence of arrays."""
    if isinstance(arrays, (np.ndarray, Array)):
        check_arraylike(name, arrays)
        arrays = list(arrays) if isinstance(arrays, np.ndarray) else unstack(arrays)
    if isinstance(arrays, Iterator) or not (hasattr(arrays, "__iter__") or hasattr(arrays, "__getitem__")):
        raise TypeError(f"{name} takes a sequence of arrays, got {type(arrays)}; put them into a list: "
                        f"{name}([a, b])")
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"Need at least one array to {name}.")
    check_arraylike(name, *arrays)
    return arrays


@composite(static=("axis", "dtype"))
def _join(arrays, *, axis, dtype):
    arrays = promote_dtypes(*arrays) if dtype is None else [cast(a, dtype) for a in arrays]
    return lax.concatenate(arrays, axis)


def _joined(arrays, axis, dtype):
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "concatenate")
    return asarray(arrays[0], dtype) if len(arrays) == 1 else _many(_join, arrays, axis, dtype)


def _many(first, arrays, axis, dtype):
    if dtype is None and len(arrays) > MANY:
        # all of them: promoted in pieces, values could be rounded twice
        arrays = promote_dtypes(*arrays)
    return in_pieces(partial(first, axis=axis, dtype=dtype), partial(_join, axis=axis, dtype=dtype), arrays)


def concatenate(arrays, axis=0, dtype=None):
    """The arrays one after another along `axis`, promoted to one dtype.

    Args:
        arrays: a sequence of arrays that agree in all other axes, or one array, whose slices along the first
            axis are joined.
        axis: the axis; None flattens all of them.
        dtype: that of the result instead of the promoted one.

    Raises:
        ValueError: for none, or for scalars.
        TypeError: for sizes that differ.

    >>> x, y = jnp.array([[1, 2]]), jnp.array([[3., 4.]])
    >>> jnp.concatenate([x, y])
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    >>> jnp.concatenate([x, y], axis=1), jnp.concatenate([x, y], axis=None, dtype=jnp.int8)
    (Array([[1., 2., 3., 4.]], dtype=float32), Array([1, 2, 3, 4], dtype=int8))
    """
    arrays = _sequence("concatenate", arrays)
    if axis is None:
        arrays, axis = [ravel(a) for a in arrays], 0
    if not ndim_of(arrays[0]):
        raise ValueError("Zero-dimensional arrays cannot be concatenated; see jnp.stack. Arrays to be joined "
                         "are passed in one list: concatenate([a, b]).")
    return _joined(arrays, canonical_axis(axis, ndim_of(arrays[0])), dtype)


def concat(arrays, /, *, axis=0):
    """`concatenate`, under the name of the array API standard.

    >>> jnp.concat([jnp.zeros((2, 1)), jnp.ones((2, 2))], axis=1)
    Array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    return concatenate(arrays, axis)


def stack(arrays, axis=0, out=None, dtype=None):
    """The arrays, of equal shapes, along a new axis.

    Args:
        arrays: a sequence of arrays.
        axis: where the new axis is.
        out: not supported; None.
        dtype: that of the result instead of the promoted one.

    Raises:
        ValueError: for none and for shapes that differ.

    >>> x, y = jnp.array([1, 2]), jnp.array([3, 4])
    >>> jnp.stack([x, y]).tolist(), jnp.stack([x, y], axis=-1).tolist()
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]])
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported: arrays are immutable")
    arrays = _sequence("stack", arrays)
    shapes = {shape_of(a) for a in arrays}
    if len(shapes) > 1:
        raise ValueError("All input arrays must have the same shape; stack got "
                         f"{[shape_of(a) for a in arrays]}")
    axis = canonical_axis(axis, ndim_of(arrays[0]) + 1)
    return _many(_stack, arrays, axis, None if dtype is None else dtypes.check_user_dtype(dtype, "stack"))


@composite(static=("axis", "dtype"))
def _stack(arrays, *, axis, dtype):
    return _join([lax.expand_dims(a, (axis,)) for a in promote_dtypes(*arrays)], axis=axis, dtype=dtype)


def _stacker(name, prepare, axis, doc):
    def stacked(tup, dtype=None):
        arrays = [prepare(a) for a in _sequence(name, tup)]
        return concatenate(arrays, axis if ndim_of(arrays[0]) > axis else 0, dtype)
    stacked.__name__ = stacked.__qualname__ = name
    stacked.__doc__ = doc
    return stacked


hstack = _stacker("hstack", atleast_1d, 1, """The arrays joined along the second axis, or vectors joined.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    >>> jnp.hstack([jnp.zeros((2, 1)), jnp.ones((2, 3))]).shape
    (2, 4)
    """)
vstack = _stacker("vstack", atleast_2d, 0, """The arrays joined along the first axis; vectors become rows.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
    Array([[1, 2],
           [3, 4],
           [5, 6]], dtype=int32)
    """)
dstack = _stacker("dstack", atleast_3d, 2, """The arrays joined along the third axis.

    >>> jnp.dstack([jnp.array([[1, 2]]), jnp.array([[3, 4]])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """)
_columns = _stacker("column_stack", lambda a: reshape(a, (size(a), 1)) if ndim_of(a) < 2 else a, 1, None)


def column_stack(tup):
    """The arrays joined along the second axis; vectors become columns.

    >>> jnp.column_stack([jnp.arange(3), jnp.ones((3, 2))])
    Array([[0., 1., 1.],
           [1., 1., 1.],
           [2., 1., 1.]], dtype=float32)
    """
    return _columns(tup)


def block(arrays):
    """An array from nested lists of blocks: the innermost lists are joined along the last axis.

    Raises:
        TypeError: for tuples.
        ValueError: for lists that are empty or differ in depth.

    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    def depth_of(x):
        if isinstance(x, tuple):
            raise TypeError("block arguments must be nested lists, not tuples")
        if not isinstance(x, list):
            return 0
        if not x:
            raise ValueError("block does not allow empty list arguments")
        depths = {depth_of(v) for v in x}
        if len(depths) > 1:
            raise ValueError("block list depths are mismatched")
        return depths.pop() + 1
    depth = depth_of(arrays)
    leaves = [arrays]
    for _ in range(depth):
        leaves = list(itertools.chain.from_iterable(leaves))
    check_arraylike("block", *leaves)
    return _block(arrays, depth=depth, rank=max(depth, *map(ndim_of, leaves)))


@composite(static=("depth", "rank"))
def _block(arrays, *, depth, rank):
    if not depth:
        return asarray(lax.reshape(arrays, (1,) * (rank - ndim_of(arrays)) + shape_of(arrays)))
    return concatenate([_block(a, depth=depth - 1, rank=rank) for a in arrays], rank - depth)


def append(arr, values, axis=None):
    """`values` behind `arr`; the dtype is the promoted one.

    Args:
        arr: an array.
        values: an array, with as many axes where there is an `axis`.
        axis: the axis; None flattens both.

    >>> jnp.append(jnp.array([[1, 2]]), 3), jnp.append(jnp.array([[1, 2]]), jnp.array([[3, 4]]), axis=0)
    (Array([1, 2, 3], dtype=int32), Array([[1, 2],
           [3, 4]], dtype=int32))
    """
    return concatenate([arr, values], axis)


# --- splitting
# --------------------------------------------------------------------------------------------------

@composite(static=("bounds", "axis"))
def _slices(a, *, bounds, axis):
    parts = []
    for lo, hi in bounds:
        starts, limits = [0] * a.ndim, list(a.shape)
        starts[axis], limits[axis] = lo, hi
        parts.append(slice_p.bind(a, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None))
    return parts


def array_split(ary, indices_or_sections, axis=0):
    """A list of parts along `axis`: a number of nearly equal ones, or those between the given indices.

    Both are known under jit too.  The first parts are longer by one where the axis cannot be divided.

    >>> [part.tolist() for part in jnp.array_split(jnp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    >>> [part.tolist() for part in jnp.array_split(jnp.arange(5), [1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis, even=False)


def split(ary, indices_or_sections, axis=0):
    """A list of equal parts along `axis`, or of those between the given indices; see `array_split`.

    Raises:
        ValueError: where the axis cannot be divided.

    >>> jnp.split(jnp.arange(6).reshape(2, 3), 3, axis=1)
    [Array([[0],
           [3]], dtype=int32), Array([[1],
           [4]], dtype=int32), Array([[2],
           [5]], dtype=int32)]
    >>> jnp.split(jnp.arange(5), 2)
    Traceback (most recent call last):
        ...
    ValueError: jnp.split(int32[5], 2): axis 0 of size 5 does not divide into 2 equal parts; jnp.array_split
    ...
    """
    return _split("split", ary, indices_or_sections, axis, even=True)


def _split(name, ary, sections, axis, even):
    check_arraylike(name, ary)
    axis = canonical_axis(axis, ndim_of(ary))
    n = shape_of(ary)[axis]
    sections = concrete_or_error(sections, f"indices_or_sections of jnp.{name} must be known")
    if ndim_of(sections) or isinstance(sections, (list, tuple)):
        points = [max_dim(0, min_dim(i + n if surely(i, high=-1) else i, n)) for i in map(as_size, sections)]
        bounds = tuple((lo, max_dim(lo, hi)) for lo, hi in zip([0, *points], [*points, n]))
    else:
        parts = operator.index(sections)
        if parts <= 0:
            raise ValueError(f"{name}: the number of sections must be larger than 0, got {parts}")
        if even and n % parts:
            raise ValueError(f"{name}: axis {axis} of size {n} does not divide into {parts} equal parts; "
                             "jnp.array_split makes unequal ones")
        ends = list(itertools.accumulate(n // parts + (i < n % parts) for i in range(parts)))
        bounds = tuple(zip([0, *ends], ends))
    return _slices(ary, bounds=bounds, axis=axis)


def hsplit(ary, indices_or_sections):
    """`split` along the second axis; a vector along its only one.

    >>> [part.shape for part in jnp.hsplit(jnp.ones((2, 6)), 3)]
    [(2, 2), (2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 1 if ndim_of(ary) > 1 else 0)


def vsplit(ary, indices_or_sections):
    """`split` along the first axis.

    >>> [part.shape for part in jnp.vsplit(jnp.ones((4, 3)), [1])]
    [(1, 3), (3, 3)]
    """
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    """`split` along the third axis.

    >>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return split(ary, indices_or_sections, 2)


def unstack(x, /, *, axis=0):
    """The entries along `axis`, as a tuple.

    The inverse of `stack`.

    Raises:
        ValueError: for a scalar.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]])), jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)[0]
    ((Array([1, 2], dtype=int32), Array([3, 4], dtype=int32)), Array([1, 3], dtype=int32))
    """
    check_arraylike("unstack", x)
    if not ndim_of(x):
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    axis = canonical_axis(axis, ndim_of(x))
    if aval_of(x).splits[axis]:
        raise errors.ShardingTypeError("unstack operand cannot be sharded on the unstacking axis "
                                       f"{axis}, got {aval_of(x).str_short()}: reshard it first, with jax.reshard")
    return tuple(_rows(x, axis=axis))


@composite(static=("axis",))
def _rows(x, *, axis):
    return [squeeze_p.bind(part, dimensions=(axis,))
            for part in _slices(x, bounds=tuple((i, i + 1) for i in range(shape_of(x)[axis])), axis=axis)]


# --- repeating
# --------------------------------------------------------------------------------------------------

def tile(A, reps):
    """`A` repeated reps[i] times along axis i; reps and shape are aligned at the end.

    Args:
        reps: an int or a sequence of them; what is missing on either side is 1.

    >>> jnp.tile(jnp.array([1, 2]), 2), jnp.tile(jnp.array([1, 2]), (2, 1))
    (Array([1, 2, 1, 2], dtype=int32), Array([[1, 2],
           [1, 2]], dtype=int32))
    """
    check_arraylike("tile", A)
    reps = canonical_shape(reps, "tile: reps")
    rank = max(len(reps), ndim_of(A))
    return _tile(A, shape=(1,) * (rank - ndim_of(A)) + shape_of(A), reps=(1,) * (rank - len(reps)) + reps)


@composite(static=("shape", "reps"))
def _tile(a, *, shape, reps):
    return lax.tile(lax.reshape(a, shape), reps)


def repeat(a, repeats, axis=None, *, total_repeat_length=None, out_sharding=None):
    """Each entry along `axis` repeated.

    Args:
        a: an array.
        repeats: how often, a number or one for each entry; an array under jit needs `total_repeat_length`.
        axis: the axis; None flattens the array.
        total_repeat_length: longer results are cut off there, shorter ones are filled with the last entry.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: for repeats that are no integers.
        ValueError: for negative ones or a wrong number.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.repeat(x, 2), jnp.repeat(x, jnp.array([0, 2]), axis=0)
    (Array([1, 1, 2, 2, 3, 3, 4, 4], dtype=int32), Array([[3, 4],
           [3, 4]], dtype=int32))
    >>> jax.jit(lambda n: jnp.repeat(jnp.arange(3), n, total_repeat_length=5))(jnp.array([2, 0, 1]))
    Array([0, 0, 2, 2, 2], dtype=int32)
    """
    check_arraylike("repeat", a)
    if not isinstance(repeats, (list, tuple)):
        check_arraylike("repeat", repeats)
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, ndim_of(a))
    n = shape_of(a)[axis]
    if out_sharding is not None:
        a, = over_auto_axes(a)
    elif aval_of(a).splits[axis]:
        raise ValueError(f"Please pass sharding to `jnp.repeat` via `out_sharding` parameter: axis {axis} of "
                         f"{aval_of(a).str_short()} is split over mesh axes of type Explicit")
    if not is_concrete(repeats) and total_repeat_length is None:
        raise errors.sized_by_values(repeats, "total_repeat_length=")
    if total_repeat_length is None:
        known = np.asarray(concrete_or_error(repeats))
        if known.dtype.kind not in "iub":
            raise TypeError(f"repeats must be integers, got dtype {known.dtype}")
        if known.size and known.min() < 0:
            raise ValueError(f"repeats must be non-negative, got {known.min()}")
        if known.size == 1:
            return with_out_sharding(_repeat(a, times=int(known.item()), axis=axis), out_sharding,
                                     "jnp.repeat")
        if known.shape != (n,):
            raise ValueError(f"'repeats' must have a single element or one for each of the {n} entries of "
                             f"axis {axis}, got shape {known.shape}")
        indices = np.repeat(np.arange(n, dtype=np.int32), known)
    else:
        indices = _repeat_indices(asarray(repeats), n=n, total=operator.index(total_repeat_length))
    result = get(a, (slice(None),) * axis + (indices,), mode="promise_in_bounds")
    return with_out_sharding(result, out_sharding, "jnp.repeat")


@composite(static=("times", "axis"))
def _repeat(a, *, times, axis):
    shape = shape_of(a)
    spread = (*shape[:axis + 1], times, *shape[axis + 1:])
    out = lax.broadcast_in_dim(a, spread, [i for i in range(len(spread)) if i != axis + 1])
    return lax.reshape(out, (*shape[:axis], shape[axis] * times, *shape[axis + 1:]))


@composite(static=("n", "total"))
def _repeat_indices(repeats, *, n, total):
    """Which entry is at each position: the first whose running total of repeats is beyond it."""
    ends = cumsum_p.bind(broadcast_to_shape(repeats, (n,)), axis=0, reverse=False)
    places = lax.iota(ends.dtype, total)
    return minimum(searchsorted(ends, places, side="right"), n - 1)


# --- flipping and rolling
# ---------------------------------------------------------------------------------------

def flip(m, axis=None):
    """The elements in reverse order along `axis`, an int or a sequence of them (None: all axes).

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.flip(x).tolist(), jnp.flip(x, axis=1).tolist()
    ([[4, 3], [2, 1]], [[2, 1], [4, 3]])
    """
    check_arraylike("flip", m)
    axes = canonical_axes(axis, ndim_of(m))
    return lax.rev(m if isinstance(m, Array) else asarray(m), axes)


def fliplr(m):
    """The columns in reverse order.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m):
    """The rows in reverse order.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m, k=1, axes=(0, 1)):
    """Turned by k quarters of a circle, from the first of `axes` to the second.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.rot90(x).tolist(), jnp.rot90(x, -1).tolist()
    ([[2, 4], [1, 3]], [[3, 1], [4, 2]])
    """
    check_arraylike("rot90", m)
    if len(axes) != 2:
        raise ValueError(f"rot90 requires two axes, got {axes}")
    first, second = canonical_axes(tuple(axes), ndim_of(m))
    return _rot90(m, k=operator.index(k) % 4, first=first, second=second)


@composite(static=("k", "first", "second"))
def _rot90(m, *, k, first, second):
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second) if k else asarray(m)


def roll(a, shift, axis=None):
    """The elements moved by `shift` along `axis`, around the end.

    Args:
        a: an array.
        shift: an int or several, which may be traced; then one program does for all of them.
        axis: as many axes as shifts; None moves the elements of the flattened array.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.roll(x, 1), jnp.roll(x, (1, -1), axis=(0, 1))
    (Array([[5, 0, 1],
           [2, 3, 4]], dtype=int32), Array([[4, 5, 3],
           [1, 2, 0]], dtype=int32))
    """
    check_arraylike("roll", a)
    if isinstance(shift, (list, tuple)):
        shifts = shift
    elif not ndim_of(shift):
        shifts = [shift]
    else:
        shifts = unstack(asarray(shift))
    if axis is None:
        return _roll_flat(a, sum(shifts))
    axes = tuple(canonical_axis(i, ndim_of(a)) for i in as_axes(axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"roll: shift {shift} and axis {axis} must have equal lengths, or one of them "
                         "length 1")
    count = len(axes) if len(shifts) == 1 else len(shifts)
    shifts, axes = (list(pair) * count if len(pair) == 1 else list(pair) for pair in (shifts, axes))
    if all(isinstance(s, (int, np.integer)) for s in shifts):
        return _roll_by(a, shifts=tuple(map(int, shifts)), axes=tuple(axes))
    return _roll(a, shifts, axes=tuple(axes))


@composite
def _roll_flat(a, shift):
    return reshape(roll(ravel(a), shift, 0), shape_of(a))


def _whole(a, lo, hi, axis):
    """`a` from `lo` to `hi` along one axis."""
    return _slices(a, bounds=((lo, hi),), axis=axis)[0]


@composite(static=("shifts", "axes"))
def _roll_by(a, *, shifts, axes):
    a = asarray(a)
    for by, axis in zip(shifts, axes):
        n = a.shape[axis]
        cut = -by % n if n else 0
        if cut:
            a = lax.concatenate([_whole(a, cut, n, axis), _whole(a, 0, cut, axis)], axis)
    return a


@composite(static=("axes",))
def _roll(a, shifts, *, axes):
    """A window of the array repeated twice, that begins `shift` before its middle."""
    a = asarray(a)
    for by, axis in zip(shifts, axes):
        n = a.shape[axis]
        if n:
            start = rem_p.bind(neg(convert(asarray(by), dtypes.int32)), scalar(n, dtypes.int32))
            start = rem_p.bind(add(start, n), scalar(n, dtypes.int32))
            starts = [scalar(0, dtypes.int32)] * a.ndim
            starts[axis] = start
            a = dynamic_slice_p.bind(lax.concatenate([a, a], axis), *starts, slice_sizes=a.shape)
    return a
