"""Elements repeated, turned round and moved along axes: tile, repeat, flip, rot90, roll."""
import contextlib
import operator

from ...api.composite import composite
from ...core import dtypes, errors
from ...core.array import Array
from ...core.avals import aval_of
from ...core.symbolic.dimension import as_size
from ...core.trace import concrete_or_error, is_concrete
from ...lax import shapes as lax
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays.cumulative import cumsum_p
from ...primitives.arrays.dynamic_slice import dynamic_slice_p
from ...primitives.arrays.elementwise import add, convert, minimum, neg, rem_p
from ...primitives.common import as_axes, canonical_axes, canonical_axis, canonical_shape, np, scalar
from ...runtime.devices import transfer_guards
from ..indexing.indexing import get
from ..reductions.sorting import searchsorted
from ..util import broadcast_to_shape, check_arraylike, ndim as ndim_of, shape as shape_of
from .creation import asarray
from .joining import slices, unstack
from .shaping import ravel, reshape, swapaxes

__all__ = ["flip", "fliplr", "flipud", "repeat", "roll", "rot90", "tile"]


# --- repeating ------------------------------------------------------------------------------------

@composite(static=("reps",))
def tile(A, reps):
    """`A` repeated reps[i] times along axis i; reps and shape are aligned at the end.

    Args:
        reps: an int or a sequence of them; what is missing on either side is 1.

    >>> jnp.tile(jnp.array([1, 2]), 2), jnp.tile(jnp.array([1, 2]), (2, 1)).tolist()
    (Array([1, 2, 1, 2], dtype=int32), [[1, 2], [1, 2]])
    """
    check_arraylike("tile", A)
    reps = canonical_shape(reps, "tile: reps")
    rank = max(len(reps), ndim_of(A))
    a = lax.reshape(A, (1,) * (rank - ndim_of(A)) + shape_of(A))
    return lax.tile(a, (1,) * (rank - len(reps)) + reps)


def repeat(a, repeats, axis=None, *, total_repeat_length=None, out_sharding=None):
    """Each entry along `axis` repeated.

    Args:
        repeats: how often, a number or one for each entry; an array under jit needs `total_repeat_length`.
        axis: the axis; None flattens the array.
        total_repeat_length: longer results are cut off there, shorter ones are filled with the last entry.
    Raises:
        TypeError: for repeats that are no integers.
        ValueError: for negative ones or a wrong number.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.repeat(x, 2), jnp.repeat(x, jnp.array([0, 2]), axis=0).tolist()
    (Array([1, 1, 2, 2, 3, 3, 4, 4], dtype=int32), [[3, 4], [3, 4]])
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
        indices = _repeat_indices(asarray(repeats), n=n, total=as_size(total_repeat_length))
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


# --- flipping and rolling -------------------------------------------------------------------------

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


@composite(static=("k", "axes"))
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
    k = operator.index(k) % 4
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second) if k else asarray(m)


def roll(a, shift, axis=None):
    """The elements moved by `shift` along `axis`, around the end.

    Args:
        shift: an int or several, which may be traced; then one program does for all of them.
        axis: as many axes as shifts; None moves the elements of the flattened array.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.roll(x, 1).tolist(), jnp.roll(x, (1, -1), axis=(0, 1)).tolist()
    ([[5, 0, 1], [2, 3, 4]], [[4, 5, 3], [1, 2, 0]])
    """
    check_arraylike("roll", a)
    if isinstance(shift, (list, tuple)):
        shifts = shift
    elif not ndim_of(shift):
        shifts = [shift]
    else:
        shifts = unstack(asarray(shift))
    if axis is None:
        with transfer_guards.unasked() if isinstance(shift, int) else contextlib.nullcontext():
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
    return slices(a, bounds=((lo, hi),), axis=axis)[0]


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
