"""Arrays joined into one, and one split into several: concatenate, stack, block, split."""
import itertools
import operator
from collections.abc import Iterator

from ...api.composite import composite
from ...core import dtypes, errors
from ...core.array import Array
from ...core.avals import aval_of
from ...core.symbolic.dimension import as_size, max_dim, min_dim, surely
from ...core.trace import concrete_or_error
from ...lax import shapes as lax
from ...primitives.arrays.shape import squeeze_p
from ...primitives.arrays.slicing import slice_along
from ...primitives.common import canonical_axis, np
from ..util import MANY, cast, check_arraylike, in_pieces, ndim as ndim_of, promote_dtypes, shape as shape_of
from .creation import asarray
from .shaping import atleast_1d, atleast_2d, atleast_3d, ravel, reshape, size

__all__ = ["append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
           "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack"]


# --- joining --------------------------------------------------------------------------------------

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
def _join(*arrays, axis, dtype):
    arrays = promote_dtypes(*arrays) if dtype is None else [cast(a, dtype) for a in arrays]
    return lax.concatenate(arrays, axis)


def _many(first, arrays, axis, dtype):
    if dtype is None and len(arrays) > MANY:
        # all of them: promoted in pieces, values could be rounded twice
        arrays = promote_dtypes(*arrays)
    return in_pieces(lambda arrays: first(*arrays, axis=axis, dtype=dtype),
                     lambda arrays: _join(*arrays, axis=axis, dtype=dtype), arrays)


def concatenate(arrays, axis=0, dtype=None):
    """The arrays one after another along `axis`, promoted to one dtype.

    Args:
        arrays: a sequence of arrays that agree in all other axes, or an array, whose rows are joined.
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
    axis = canonical_axis(axis, ndim_of(arrays[0]))
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "concatenate")
    return asarray(arrays[0], dtype) if len(arrays) == 1 else _many(_join, arrays, axis, dtype)


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
def _stack(*arrays, axis, dtype):
    return _join(*[lax.expand_dims(a, (axis,)) for a in promote_dtypes(*arrays)], axis=axis, dtype=dtype)


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
            raise ValueError("block arguments must be nested lists, not tuples")
        if not isinstance(x, list):
            return 0
        if not x:
            raise ValueError("block does not allow empty list arguments")
        depths = {depth_of(v) for v in x}
        if len(depths) > 1:
            raise ValueError("Mismatched list depths in jax.numpy.block")
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
        values: an array, with as many axes where there is an `axis`.
        axis: the axis; None flattens both.

    >>> jnp.append(jnp.array([[1, 2]]), 3), jnp.append(jnp.array([[1, 2]]), jnp.array([[3, 4]]), axis=0)
    (Array([1, 2, 3], dtype=int32), Array([[1, 2],
           [3, 4]], dtype=int32))
    """
    return concatenate([arr, values], axis)


# --- splitting ------------------------------------------------------------------------------------

@composite(static=("bounds", "axis"))
def slices(a, *, bounds, axis):
    return [slice_along(a, axis, lo, hi) for lo, hi in bounds]


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
                             f"jnp.array_split makes unequal ones (array split does not result in an equal "
                             f"division: rest is {n % parts})")
        size, longer = divmod(n, parts)
        ends = list(itertools.accumulate([size + 1] * longer + [size] * (parts - longer)))
        bounds = tuple(zip([0, *ends], ends))
    return slices(ary, bounds=bounds, axis=axis)


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
                                       f"{axis}, got {aval_of(x).str_short()}: reshard it first, with "
                                       "jax.reshard")
    return tuple(_rows(x, axis=axis))


@composite(static=("axis",))
def _rows(x, *, axis):
    return [squeeze_p.bind(part, dimensions=(axis,))
            for part in slices(x, bounds=tuple((i, i + 1) for i in range(shape_of(x)[axis])), axis=axis)]
