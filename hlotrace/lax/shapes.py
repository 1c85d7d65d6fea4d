"""Making arrays and changing their shapes: the public functions over `primitives/arrays/shape.py`."""
import functools
import itertools
import operator

from ..core import dtypes, errors
from ..core.avals import aval_of, is_arraylike
from ..core.pytrees import pytree
from ..core.symbolic.dimension import as_size
from ..placement.out_sharding import devices_like, make_with_sharding, over_auto_axes, with_out_sharding
from ..primitives.arrays import shape as _shape
from ..primitives.arrays.elementwise import convert, convert_element_type_p
from ..primitives.arrays.random import random_wrap_p
from ..primitives.arrays.shape import broadcast_in_dim_p, squeeze_p, transpose_p
from ..primitives.arrays.slicing import (
    as_array, concatenate_p, iota_p, optimization_barrier_p, pad_p, rev_p, slice_along)
from ..primitives.common import (
    canonical_axes, canonical_axis, canonical_shape, is_constant, np, prod, scalar, static_int,
    warn_of_imaginary_part)

__all__ = ["broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
           "broadcasted_iota", "collapse", "concatenate", "empty", "expand_dims", "full", "full_like", "iota",
           "optimization_barrier", "pad", "reshape", "rev", "split", "squeeze", "stack", "tile", "transpose",
           "unstack"]


def checked_shape(name, operand):
    """The shape of an operand.  TypeError, naming the function, for what is not an array."""
    if not is_arraylike(operand):
        raise TypeError(f"lax.{name}: an operand of type {type(operand)} is not an array or a number; wrap "
                        "lists in jnp.array(...)")
    return aval_of(operand).shape


# --- arrays of one value, and counting ------------------------------------------------------------

def full(shape, fill_value, dtype=None, *, sharding=None):
    """An array of one scalar.

    Args:
        dtype: that of the array; without it, it has the dtype and the weak type of `fill_value`.
        sharding: a Sharding or a Device, where it is placed: see `device_put`.

    >>> lax.full((2, 3), 7)
    Array([[7, 7, 7],
           [7, 7, 7]], dtype=int32, weak_type=True)
    """
    shape = canonical_shape(shape, "lax.full: shape")
    if checked_shape("full", fill_value) != ():
        raise TypeError("full must be called with scalar fill_value, got fill_value.shape "
                        f"{aval_of(fill_value).shape}; jnp.broadcast_to repeats an array.")
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "full")
        if dtypes.is_extended(dtype) and dtype._rules:
            return dtype._rules.full(shape, fill_value, dtype)
        if dtypes.is_extended(dtype):
            words = full((*shape, *dtype.physical_shape), fill_value, dtype.physical_dtype)
            return make_with_sharding(lambda: random_wrap_p.bind(words, impl=dtype), 0, "lax.full", sharding)
        warn_of_imaginary_part(fill_value, dtype)
        if type(fill_value) in dtypes.python_scalars or isinstance(fill_value, np.floating):
            fill_value = scalar(fill_value, dtype)
        elif is_constant(fill_value):
            fill_value = np.asarray(fill_value, dtype)
        else:
            fill_value = convert(fill_value, dtype)
    return make_with_sharding(
        lambda: broadcast_in_dim_p.bind(fill_value, shape=shape, broadcast_dimensions=()),
        _bytes(shape, aval_of(fill_value).dtype), "lax.full", sharding)


def _bytes(shape, dtype):
    return 0 if dtypes.is_extended(dtype) else prod(shape) * dtype.itemsize


def full_like(x, fill_value, dtype=None, shape=None, sharding=None):
    """`full` with the shape, dtype and weak type of `x`.

    Args:
        x: an array or anything that has a shape and a dtype.
        dtype: in place of that of `x`.
        shape: in place of that of `x`.
        sharding: a Sharding or a Device, where the result is placed: see `device_put`.  Without it, that is
            where `x` is, if that is committed and no other shape is requested.

    >>> lax.full_like(jnp.zeros(3), 2)
    Array([2., 2., 2.], dtype=float32)
    """
    if shape is not None:
        shape = canonical_shape(shape, "lax.full_like: shape")
    if sharding is None and (shape is None or shape == getattr(x, "shape", ())):
        sharding = devices_like(x)
    if is_arraylike(x):
        x = aval_of(x)
    elif not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise TypeError(f"full_like: cannot take a shape and a dtype from a value of type {type(x)}")
    result = full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype,
                  sharding=sharding)
    weak = dtype is None and getattr(x, "weak_type", False)
    return convert_element_type_p.bind(result, new_dtype=result.dtype, weak_type=True) if weak else result


def empty(shape, dtype, *, out_sharding=None):
    """An array of no particular values (zeros).

    >>> lax.empty((2,), jnp.float32)
    Array([0., 0.], dtype=float32)
    """
    shape, dtype = canonical_shape(shape, "lax.empty: shape"), dtypes.check_user_dtype(dtype, "empty")
    return make_with_sharding(lambda: full(shape, 0, dtype), _bytes(shape, dtype), "lax.empty",
                              out_sharding=out_sharding)


def iota(dtype, size):
    """0, 1, ..., size - 1.

    >>> lax.iota(jnp.int32, 4)
    Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (static_int(size, "size",
                                               "; lax.broadcasted_iota takes a shape and the axis that "
                                               "counts"),), 0)


def broadcasted_iota(dtype, shape, dimension, *, out_sharding=None):
    """An array of `shape` that counts 0, 1, ... along `dimension`.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    dtype, shape = dtypes.check_user_dtype(dtype, "iota"), canonical_shape(shape, "iota: shape")
    return make_with_sharding(
        lambda: iota_p.bind(dtype=dtype, shape=shape, dimension=operator.index(dimension)),
        _bytes(shape, dtype), "lax.broadcasted_iota", out_sharding=out_sharding)


# --- broadcasting ---------------------------------------------------------------------------------

def broadcast_shapes(*shapes):
    """The NumPy broadcast of shapes (sequences or ints), as a tuple.

    Raises:
        ShapeError: where they do not fit.

    >>> jnp.broadcast_shapes((2, 1), (3,), 1)
    (2, 3)
    """
    return joint_shape(*[tuple(s) if np.iterable(s) else (s,) for s in shapes])


@functools.lru_cache(maxsize=4096)
def joint_shape(*shapes):
    """`broadcast_shapes` of tuples."""
    for s in shapes:
        if any(isinstance(n, (int, np.integer)) and n < 0 for n in s):
            raise TypeError(f"Only non-negative sizes can be broadcast, got shape {s}")
    longest = max(map(len, shapes), default=0)
    result = []
    for axis in range(-longest, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise errors.incompatible_shapes(shapes, axis)
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcast_in_dim(operand, shape, broadcast_dimensions, *, out_sharding=None):
    """`operand` repeated to `shape`.

    Args:
        broadcast_dimensions: axis i of the operand becomes axis broadcast_dimensions[i] of the result.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        operand, = over_auto_axes(operand)
    rank, dimensions = len(checked_shape("broadcast_in_dim", operand)), tuple(map(operator.index,
                                                                              broadcast_dimensions))
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    if len(dimensions) == rank and order != list(range(rank)):
        operand, dimensions = _shape.transpose(operand, order), tuple(sorted(dimensions))
    out = _shape.broadcast_in_dim(operand, canonical_shape(shape, "broadcast_in_dim: shape"), dimensions)
    return with_out_sharding(as_array(out), out_sharding, "lax.broadcast_in_dim")


def broadcast(operand, sizes, *, out_sharding=None):
    """`operand` repeated along new leading axes of `sizes`.

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    sizes, shape = tuple(sizes), checked_shape("broadcast", operand)
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)),
                            out_sharding=out_sharding)


def broadcast_like(arr, like_arr):
    """`arr` broadcast to the shape of another array, as NumPy does.

    Raises:
        ValueError: where the shapes do not fit.

    >>> lax.broadcast_like(jnp.array([1, 2, 3]), jnp.zeros((2, 3)))
    Array([[1, 2, 3],
           [1, 2, 3]], dtype=int32)
    """
    shape, to = checked_shape("broadcast_like", arr), checked_shape("broadcast_like", like_arr)
    if len(shape) > len(to) or broadcast_shapes(shape, to) != to:
        raise ValueError(f"lax.broadcast_like: shape {shape} does not broadcast to {to}, the shape of "
                         "like_arr")
    return broadcast_in_dim(arr, to, range(len(to) - len(shape), len(to)))


def broadcast_to_rank(x, rank):
    """`x` with leading axes of size 1, so that it has at least `rank` axes.

    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 3).shape
    (1, 1, 2)
    """
    return expand_dims(x, range(rank - len(checked_shape("broadcast_to_rank", x))))


def tile(operand, reps):
    """`operand` repeated reps[i] times along axis i.

    >>> lax.tile(jnp.array([[1, 2]]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    shape, reps = checked_shape("tile", operand), canonical_shape(reps, "tile: reps")
    if len(reps) != len(shape):
        raise TypeError(f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and "
                        f"x.ndim={len(shape)}")
    # an axis that is not repeated stays one axis, split as it is
    pairs = [(n,) if times == 1 else (times, n) for times, n in zip(reps, shape)]
    axes = [end - 1 for end in itertools.accumulate(map(len, pairs))]
    repeated = _shape.broadcast_in_dim(operand, tuple(itertools.chain.from_iterable(pairs)), axes)
    return _shape.reshape(repeated, tuple(r * n for r, n in zip(reps, shape)))


# --- reshaping ------------------------------------------------------------------------------------

def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None):
    """The elements in row-major order, or in the order of the axes in `dimensions`, under another shape.

    >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,))
    Array([1, 2, 3, 4], dtype=int32)
    >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0))
    Array([1, 3, 2, 4], dtype=int32)
    """
    shape = checked_shape("reshape", operand)
    if dimensions is not None and tuple(dimensions) != tuple(range(len(shape))):
        if sorted(dimensions) != list(range(len(shape))):
            raise TypeError(f"reshape dimensions must be a permutation of operand dimensions, got dimensions "
                            f"{tuple(dimensions)} for shape {shape}.")
        operand = _shape.transpose(operand, dimensions)
    if out_sharding is not None:
        operand, = over_auto_axes(operand)
    out = _shape.reshape(operand, canonical_shape(new_sizes, "reshape: new_sizes"))
    return with_out_sharding(as_array(out), out_sharding, "lax.reshape")


def collapse(operand, start_dimension, stop_dimension=None):
    """The axes from `start_dimension` up to `stop_dimension` (all the rest) as one axis.

    >>> lax.collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = checked_shape("collapse", operand)
    lo, hi, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError("Invalid dimension range passed to collapse: "
                         f"{shape}[{start_dimension}:{stop_dimension}]")
    return reshape(operand, (*shape[:lo], prod(shape[lo:hi]), *shape[hi:]))


def expand_dims(array, dimensions):
    """New axes of size 1, at `dimensions` of the result.

    >>> lax.expand_dims(jnp.zeros((2, 3)), (0, 2)).shape
    (1, 2, 1, 3)
    """
    shape, dimensions = checked_shape("expand_dims", array), tuple(dimensions)
    rank = len(shape) + len(dimensions)
    new = canonical_axes(dimensions, rank)
    sizes = iter(shape)
    result = tuple(1 if i in new else next(sizes) for i in range(rank))
    return as_array(_shape.broadcast_in_dim(array, result, tuple(i for i in range(rank) if i not in new)))


def squeeze(array, dimensions):
    """Without the axes `dimensions`, which must have size 1.

    >>> lax.squeeze(jnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    dimensions = canonical_axes(tuple(dimensions), len(checked_shape("squeeze", array)))
    return squeeze_p.bind(array, dimensions=tuple(sorted(dimensions))) if dimensions else as_array(array)


def transpose(operand, permutation):
    """Axis i of the result is axis permutation[i] of the operand.

    >>> lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    shape, permutation = checked_shape("transpose", operand), tuple(map(operator.index, permutation))
    if permutation == tuple(range(len(shape))):
        return as_array(operand)
    return transpose_p.bind(operand, permutation=permutation)


def rev(operand, dimensions):
    """The elements in reverse order along `dimensions`.

    >>> lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    checked_shape("rev", operand)
    dimensions = tuple(map(operator.index, dimensions))
    return rev_p.bind(operand, dimensions=dimensions) if dimensions else as_array(operand)


# --- joining, splitting, padding ------------------------------------------------------------------

def concatenate(operands, dimension):
    """The operands one after another along `dimension`.

    They have one dtype, and equal shapes but for that axis.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    operands = list(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    ranks = {len(checked_shape("concatenate", x)) for x in operands}
    if len(ranks) > 1:
        raise errors.ShapeError("Cannot concatenate arrays with different numbers of dimensions: got "
                                f"{', '.join(str(aval_of(x).shape) for x in operands)}.")
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


def stack(operands, axis=0):
    """The operands, of equal shapes, along a new axis.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    operands = list(operands)
    if not operands:
        raise ValueError("stack requires a non-empty sequence of arrays")
    axis = canonical_axis(axis, len(checked_shape("stack", operands[0])) + 1)
    return concatenate([expand_dims(x, (axis,)) for x in operands], axis)


def split(operand, sizes, axis=0):
    """A list of parts with `sizes` along `axis`; the sizes add up to that of the operand.

    >>> lax.split(jnp.arange(4), (1, 3))
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    shape, sizes = checked_shape("split", operand), canonical_shape(sizes, "split: sizes")
    axis = canonical_axis(axis, len(shape))
    if sum(sizes) != shape[axis]:
        raise ValueError(f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
                         f"{shape}: sizes are those of the parts; jnp.split takes their number")
    return [slice_along(operand, axis, end - n, end) for n, end in zip(sizes, itertools.accumulate(sizes))]


def unstack(x, axis=0):
    """A tuple of the slices of `x` along `axis`, without that axis.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    axis = canonical_axis(axis, len(checked_shape("unstack", x)))
    return tuple(squeeze(part, (axis,)) for part in split(x, [1] * aval_of(x).shape[axis], axis))


def pad(operand, padding_value, padding_config):
    """Padding of `padding_value` by (low, high, interior) along each axis; negative low and high cut away.

    >>> lax.pad(jnp.array([1, 2, 3]), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 3, 0, 0], dtype=int32)
    """
    checked_shape("pad", operand)
    if checked_shape("pad", padding_value) != ():
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)="
                         f"{aval_of(padding_value).shape}")
    config = tuple(tuple(map(as_size, entry)) for entry in padding_config)
    if any(len(entry) != 3 for entry in config):
        raise ValueError(f"pad: each entry of padding_config must be (low, high, interior), got {config}")
    return pad_p.bind(operand, padding_value, padding_config=config)


def optimization_barrier(operand, /):
    """The same pytree of arrays; the compiler moves no computation across it.

    >>> lax.optimization_barrier((jnp.ones(2), 1))
    (Array([1., 1.], dtype=float32), Array(1, dtype=int32, weak_type=True))
    """
    leaves, structure = pytree.tree_flatten(operand)
    for leaf in leaves:
        checked_shape("optimization_barrier", leaf)
    return structure.unflatten(optimization_barrier_p.bind(*leaves)) if leaves else operand
