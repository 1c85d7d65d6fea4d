"""Shapes and axes of arrays: reshape, transpose, squeeze, broadcast."""
from ...api.composite import composite
from ...core import errors
from ...core.array import Array
from ...core.avals import aval_of
from ...core.symbolic.dimension import is_constant_shape
from ...lax import shapes as lax
from ...lax.shapes import broadcast_shapes
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.shape import reshape as reshape_array
from ...primitives.arrays.slicing import slice_along
from ...primitives.common import as_axes, canonical_axes, canonical_axis, canonical_shape, np, prod, sizes_of
from ..util import (
    broadcast_to_shape, check_arraylike, joint_shape, ndim as ndim_of, shape as shape_of, split_alike)
from .creation import asarray

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
           "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel",
           "reshape", "resize", "rollaxis", "shape", "size", "squeeze", "swapaxes", "transpose"]


# --- what an array is like ------------------------------------------------------------------------

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


# --- reshape --------------------------------------------------------------------------------------

def new_shape(name, old, wanted):
    """The shape that `wanted`, in which one size may be -1, means.  TypeError if it does not fit."""
    wanted = sizes_of(wanted, f"{name}: shape")
    total = prod(old)
    if wanted.count(-1) > 1 or any([n < -1 for n in wanted]):
        raise errors.ShapeError(f"{name}: can only specify one unknown axis size with a `-1` value, and no "
                                f"other negative one, got {wanted}")
    known = prod([n for n in wanted if n != -1])
    if -1 in wanted:
        if not known or total % known:
            unknown = not is_constant_shape((total, known))
            told = (f"Cannot divide evenly the sizes of shapes {old} and {wanted}. The remainder "
                    f"{total % known} should be 0: ") if unknown else ""
            raise (errors.InconclusiveDimensionOperation if unknown else errors.ShapeError)(
                f"{told}cannot reshape array of shape {old} (size {total}) into shape {wanted}: the sizes "
                f"without -1 multiply to {known}, which does not divide {total}")
        wanted = tuple([total // known if n == -1 else n for n in wanted])
    elif known != total:
        raise errors.ShapeError(f"cannot reshape array of shape {old} (size {total}) into shape {wanted} "
                                f"(size {known}); one size given as -1 takes what the others leave")
    return wanted


def reshape(a, shape, order="C", *, copy=None, out_sharding=None):
    """The elements under another shape, in row-major order, or column-major with order="F".

    Args:
        shape: an int or a tuple; one size may be -1, which takes what the others leave.
        order: "C" or "F".
        copy: True for memory of its own.
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
    hlotrace.errors.ShapeError: jnp.reshape(int32[6], (4, -1)): cannot reshape array of shape (6,) ...
    """
    check_arraylike("reshape", a)
    if out_sharding is not None:
        a, = over_auto_axes(a)
    shape = new_shape("reshape", shape_of(a), shape)
    a = a if isinstance(a, Array) else asarray(a)
    if order not in ("C", "F"):
        raise (NotImplementedError if order in ("A", "K") else ValueError)(
            f"np.reshape order={order} is not implemented: it must be 'C' (rows first) or 'F' (columns first)"
            if order in ("A", "K") else f"Unexpected value for 'order' argument: {order}; it is 'C' or 'F'")
    result = reshape_array(a, shape) if order == "C" else _reshape_columns(a, shape=shape)
    if copy:
        result = asarray(result, copy=True)
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
    if order == "C" and out_sharding is None and isinstance(a, Array):
        return reshape_array(a, (a.aval.size,))
    return reshape(a, -1, order, out_sharding=out_sharding)


@composite(static=("new_shape",))
def resize(a, new_shape):
    """The elements, repeated as often as needed, under a new shape.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
    Array([[1, 2, 3, 1],
           [2, 3, 1, 2]], dtype=int32)
    """
    check_arraylike("resize", a)
    shape, flat = canonical_shape(new_shape, "resize: new_shape"), lax.reshape(a, (aval_of(a).size,))
    if not flat.shape[0]:
        return lax.full(shape, 0, flat.dtype)
    copies = lax.tile(flat, (-(-prod(shape) // flat.shape[0]),))
    return lax.reshape(slice_along(copies, 0, 0, prod(shape)), shape)


# --- axes -----------------------------------------------------------------------------------------

def transpose(a, axes=None):
    """The axes in another order; without `axes`, in reverse.

    Args:
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
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got permutation "
                        f"{tuple(axes)} for operand shape {shape_of(a)}")
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
        raise ValueError("matrix_transpose requires at least 2 dimensions: x must be at least "
                         f"two-dimensional for matrix_transpose; got shape {shape_of(x)}")
    return swapaxes(x, -1, -2)


def moveaxis(a, source, destination):
    """The axes `source` moved to the positions `destination`; the others keep their order.

    Args:
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
    ValueError: jnp.squeeze(x: float32[1,3,1], axis=1): cannot select an axis to squeeze out ...
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


# --- broadcasting ---------------------------------------------------------------------------------

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
    """A tuple of the arrays, each repeated to their common shape; the dtypes stay.

    Raises:
        ValueError: where the shapes do not broadcast.

    >>> [x.tolist() for x in jnp.broadcast_arrays(jnp.array([1, 2]), jnp.array([[5], [6]]))]
    [[[1, 2], [1, 2]], [[5, 5], [6, 6]]]
    """
    check_arraylike("broadcast_arrays", *args)
    shapes = [*map(shape_of, args)]
    common = joint_shape(*shapes)
    spread = [broadcast_to_shape(a, common) for a in args]
    return tuple([asarray(a) for a in (split_alike(*spread) if len({*shapes}) > 1 else spread)])
