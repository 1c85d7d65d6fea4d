"""Sorting and searching of `jax.numpy`: sort, argsort, top_k, searchsorted, digitize."""
import operator

from ...api.composite import composite
from ...core import dtypes
from ...core.avals import aval_of
from ...core.errors import check_choice, did_you_mean
from ...core.symbolic.dimension import is_symbolic_dim, surely
from ...lax.control_flow import fori_loop
from ...lax.reductions import top_k as lax_top_k
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.bit_formats import bitcast_convert_type_p
from ...primitives.arrays.shape import broadcast_in_dim, full, reduce_sum, reshape
from ...primitives.arrays.slicing import concatenate_p, iota_p, rev_p, slice_along
from ...primitives.arrays.sort import sort as sort_arrays, take_along
from ...primitives.common import canonical_axis, np, scalar, shape_of, static_int
from ..util import cast, check_arraylike, dtype_of, ndim, promote_dtypes, shape

__all__ = ["argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
           "sort_complex", "top_k"]


def flat(x):
    return reshape(x, (aval_of(x).size,))


def index_dtype():
    return dtypes.canonicalize(dtypes.int64)


def positions(shape, axis=0, dtype=None):
    """An integer array that counts along `axis`."""
    return iota_p.bind(dtype=dtype or index_dtype(), shape=tuple(shape), dimension=axis)


# --- sort -----------------------------------------------------------------------------------------

def _check_sort(name, a, axis, kind, order):
    check_arraylike(name, a)
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
                        "specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    return None if axis is None else canonical_axis(axis, ndim(a))


@composite(static=("axis", "kind", "order", "stable", "descending"))
def sort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """`a` in order along `axis`.

    NaN counts as the greatest; complex numbers go by real, then imaginary part.

    Args:
        axis: the axis; None flattens the array.
        kind: not supported; None.
        order: not supported; None.
        stable: whether equal elements keep their order.
        descending: from the greatest.

    >>> jnp.sort(jnp.array([3., jnp.nan, -1.]))
    Array([-1.,  3., nan], dtype=float32)
    >>> jnp.sort(jnp.array([[3, 1], [2, 9]]), axis=0, descending=True)
    Array([[3, 9],
           [2, 1]], dtype=int32)
    """
    axis = _check_sort("sort", a, axis, kind, order)
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    a, = sort_arrays(a, dimension=axis, is_stable=stable)
    return rev_p.bind(a, dimensions=(axis,)) if descending else a


@composite(static=("axis", "stable", "descending", "dtype"))
def _argsort(a, axis, stable, descending, dtype):
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    places = positions(shape_of(a), axis, dtype)
    if not descending:
        return sort_arrays(a, places, dimension=axis, is_stable=stable)[1]
    # sorted backwards and read backwards, so that equal elements keep their order
    a, places = (rev_p.bind(x, dimensions=(axis,)) for x in (a, places))
    return rev_p.bind(sort_arrays(a, places, dimension=axis, is_stable=stable)[1], dimensions=(axis,))


def argsort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False, dtype=None):
    """The indices that sort `a` along `axis` (flattened for None), as int32 or `dtype`.

    Equal elements keep their order.  `take_along_axis` puts other arrays into that order.

    >>> x = jnp.array([30, 10, 20])
    >>> jnp.argsort(x), jnp.argsort(x, descending=True)
    (Array([1, 2, 0], dtype=int32), Array([0, 2, 1], dtype=int32))
    >>> jnp.take_along_axis(jnp.array([7, 8, 9]), jnp.argsort(x), axis=0)
    Array([8, 9, 7], dtype=int32)
    """
    dtype = index_dtype() if dtype is None else dtypes.check_user_dtype(dtype, "argsort")
    return _argsort(a, _check_sort("argsort", a, axis, kind, order), bool(stable), bool(descending), dtype)


@composite(static=("axis", "batch_size"))
def lexsort(keys, axis=-1, *, batch_size=16):
    """The indices that sort by several keys of one shape; the last key counts most.

    Args:
        keys: a sequence of arrays, or an array whose first axis runs over the keys.
        batch_size: changes nothing; in JAX, how many keys are sorted by at a time.

    >>> surname, name = jnp.array([2, 1, 2]), jnp.array([5, 9, 3])
    >>> jnp.lexsort((name, surname))             # by surname, those of equal surnames by name
    Array([1, 2, 0], dtype=int32)
    """
    if not isinstance(keys, (list, tuple)):
        check_arraylike("lexsort", keys)
        keys = [reshape(slice_along(keys, 0, i, i + 1), shape(keys)[1:])
                for i in range(shape(keys)[0] if ndim(keys) else 0)]
    keys = tuple(keys)
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    check_arraylike("lexsort", *keys)
    if len({shape(k) for k in keys}) > 1:
        raise ValueError(f"all keys need to be the same shape, got {', '.join(str(shape(k)) for k in keys)}")
    axis = canonical_axis(axis, ndim(keys[0])) if ndim(keys[0]) else 0
    if not shape_of(keys[0]):
        return scalar(0, index_dtype())
    keys = [cast(k, dtype_of(k)) for k in keys[::-1]]
    return sort_arrays(*keys, positions(shape_of(keys[0]), axis), dimension=axis, num_keys=len(keys))[-1]


def _check_partition(name, a, kth, axis):
    check_arraylike(name, a)
    axis = canonical_axis(operator.index(axis), ndim(a))
    return axis, canonical_axis(kth, shape(a)[axis], "kth")


def partition(a, kth, axis=-1):
    """`a` rearranged along `axis` so that the `kth` element is where sorting puts it, smaller ones before it.

    Up to it they ascend, from there on they descend; complex numbers are sorted.

    Args:
        kth: an int, known under jit too.

    >>> jnp.partition(jnp.array([7, 1, 5, 3]), 1)
    Array([1, 3, 7, 5], dtype=int32)
    """
    axis, kth = _check_partition("partition", a, kth, axis)
    ordered = sort(a, axis)
    if dtypes.is_complex(dtype_of(a)):
        return ordered
    at = [slice(None)] * axis
    return concatenate_p.bind(ordered[*at, :kth + 1], rev_p.bind(ordered[*at, kth + 1:], dimensions=(axis,)),
                              dimension=axis)


def argpartition(a, kth, axis=-1):
    """The indices of the elements of `a` up to the `kth` least, ascending, then those of the others in order.

    int32 (int64 with x64).

    >>> jnp.argpartition(jnp.array([7, 1, 5, 3]), 1)
    Array([1, 3, 0, 2], dtype=int32)
    """
    axis, kth = _check_partition("argpartition", a, kth, axis)
    at = [slice(None)] * axis
    order = argsort(a, axis)
    places = concatenate_p.bind(order[*at, :kth + 1], sort(order[*at, kth + 1:], axis), dimension=axis)
    return e.convert(places, dtypes.int32, aval_of(a).weak_type)


@composite
def sort_complex(a):
    """`a` as complex numbers, sorted along the last axis by real part, then by imaginary part.

    >>> jnp.sort_complex(jnp.array([2, 1 + 2j, 1 - 2j]))
    Array([1.-2.j, 1.+2.j, 2.+0.j], dtype=complex64)
    """
    check_arraylike("sort_complex", a)
    canonical_axis(-1, ndim(a))
    dtype = dtype_of(a)
    a = cast(a, dtype if dtypes.is_complex(dtype) else dtypes.complex_of(dtypes.to_inexact(dtype)))
    return sort_arrays(a, dimension=ndim(a) - 1)[0]


def top_k(a, k, /, *, axis=-1, mode="largest", sorted=True):
    """(values, int32 indices) of the k greatest elements of `a` along `axis`, the greatest first.

    Equal ones keep their order.  NaN counts as the greatest, -0. as less than 0.  No complex numbers.

    Args:
        mode: "smallest" gives the k least instead, the least first.
        sorted: accepted; they come in order also for False.

    >>> jnp.top_k(jnp.array([3, 1, 4, 1, 5]), 2)
    (Array([5, 4], dtype=int32), Array([4, 2], dtype=int32))
    """
    check_arraylike("top_k", a)
    check_choice("mode", mode, ("largest", "smallest"))
    if dtypes.is_complex(dtype_of(a)):
        raise ValueError(f"top_k: complex numbers have no order, got {aval_of(a).str_short()}")
    axis = canonical_axis(operator.index(axis), ndim(a))
    return tuple(_top_k(a, static_int(k, "k"), axis, mode))


@composite(static=("k", "axis", "mode"))
def _top_k(a, k, axis, mode):
    if mode == "largest":
        return lax_top_k(a, k, axis=axis)
    if not dtypes.is_float(dtype_of(a)):    # ~x turns the order round
        values, places = lax_top_k(e.not_p.bind(a), k, axis=axis)
        return e.not_p.bind(values), places
    places = lax_top_k(e.not_p.bind(_as_ordered_ints(a)), k, axis=axis)[1]
    return take_along(a, places, axis, unique=True), places


def _as_ordered_ints(x):
    """Floats as ints of their width in the same order, -0. before 0 and NaN after all, whatever its sign:
    GPUs and CPUs choose that otherwise."""
    if dtype_of(x).itemsize == 1:   # some have no sign, or no NaN
        x = cast(x, dtypes.float32)
    dtype = dtype_of(x)
    signed = np.dtype(f"int{8 * dtype.itemsize}")
    bits = bitcast_convert_type_p.bind(e.select(e.ne(x, x), scalar(np.nan, dtype), x), new_dtype=signed)
    return e.select(e.lt(bits, 0), e.xor_p.bind(bits, scalar(np.iinfo(signed).max, signed)), bits)


# --- searching ------------------------------------------------------------------------------------

def _before(x, y):
    """x < y with NaN after all else, elementwise; complex numbers by real, then by imaginary part."""
    if dtypes.is_complex(dtype_of(x)):
        (a, b), (c, d) = ((e.real(z), e.imag_p.bind(z)) for z in (x, y))
        return e.or_p.bind(_before(a, c), e.and_p.bind(e.not_p.bind(_before(c, a)), _before(b, d)))
    if not dtypes.is_float(dtype_of(x)):
        return e.lt(x, y)
    return e.or_p.bind(e.lt(x, y), e.and_p.bind(e.ne(y, y), e.eq(x, x)))


def _goes_after(a, v, side):
    """Does `v` belong after `a`?"""
    return _before(a, v) if side == "left" else e.not_p.bind(_before(v, a))


def _by_bisection(a, v, side):
    """The insertion point of each of `v` (m,) in sorted `a` (n,), by a loop of log2(n) steps."""
    n = shape_of(a)[0]

    def step(_, bounds):
        low, high = bounds
        middle = e.shift_right_logical_p.bind(e.add(low, high), full(shape_of(low), 1, dtypes.int32))
        after = _goes_after(take_along(a, e.minimum(middle, n - 1), 0), v, side)
        open_ = e.lt(low, high)
        return (e.select(e.and_p.bind(open_, after), e.add(middle, 1), low),
                e.select(e.and_p.bind(open_, e.not_p.bind(after)), middle, high))
    bounds = (full(shape_of(v), 0, dtypes.int32), full(shape_of(v), n, dtypes.int32))
    return fori_loop(0, 31 if is_symbolic_dim(n) else n.bit_length(), step, bounds)[0]


def _by_sorting(a, v, side):
    """The insertion points of `v` in `a` from the ranks of their elements among each other."""
    m, n = shape_of(v)[0], shape_of(a)[0]

    def ranks(x):
        places = positions(shape_of(x), 0, dtypes.int32)
        return sort_arrays(sort_arrays(x, places, dimension=0)[1], places, dimension=0)[1]
    start = 0 if side == "left" else n       # the side of equal elements on which `v` sorts
    together = concatenate_p.bind(*((v, a) if side == "left" else (a, v)), dimension=0)
    return e.sub(slice_along(ranks(together), 0, start, start + m), ranks(v))


def _by_comparing(a, v, side):
    """The insertion points of `v` in `a` as counts of the elements before them: m * n comparisons."""
    target = (shape_of(v)[0], shape_of(a)[0])
    after = _goes_after(broadcast_in_dim(a, target, (1,)), broadcast_in_dim(v, target, (0,)), side)
    return reduce_sum(e.convert(after, dtypes.int32), (1,))


_SEARCHES = {"compare_all": _by_comparing, "scan": _by_bisection, "scan_unrolled": _by_bisection,
             "sort": _by_sorting}


@composite(static=("side", "method"))
def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    """Where in the sorted vector `a` to put each of `v` to keep it sorted.

    NaN counts as the greatest.

    Args:
        a: a vector; it and `v` are promoted to one dtype.
        side: before equal elements ('left') or after them ('right').
        sorter: the indices that sort `a`.
        method: 'scan' and 'scan_unrolled' bisect, 'sort' sorts all together, 'compare_all' compares pairs.
    Returns:
        int32 of the shape of `v`.

    >>> a = jnp.array([10, 20, 20, 30])
    >>> jnp.searchsorted(a, jnp.array([5, 20, 99])), jnp.searchsorted(a, 20, side="right")
    (Array([0, 1, 4], dtype=int32), Array(3, dtype=int32))
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument {side=}, expected 'left' or 'right'"
                         + did_you_mean(side, ("left", "right")))
    if method not in _SEARCHES:
        raise ValueError(f"invalid argument {method=}, expected one of {sorted(_SEARCHES)}")
    if ndim(a) != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {shape(a)}: vmap goes over the rows of a "
                         "table")
    if sorter is not None:
        check_arraylike("searchsorted", sorter)
        if not dtypes.is_integer(dtype_of(sorter)) or shape(sorter) != shape(a):
            raise ValueError(f"sorter must hold integers in the shape of a, {shape(a)}; got "
                             f"{aval_of(sorter).str_short()}")
    a, v = promote_dtypes(a, v)
    if sorter is not None:
        a = take_along(a, sorter, 0)
    if not shape_of(a)[0]:
        return full(shape_of(v), 0, dtypes.int32)
    found = _SEARCHES[method](a, flat(cast(v, dtype_of(v))), side)
    return reshape(e.convert(found, index_dtype() if surely(shape_of(a)[0], low=2**31) else dtypes.int32),
                   shape_of(v))


@composite(static=("right", "method"))
def digitize(x, bins, right=False, *, method=None):
    """The index of the bin that each of `x` is in, as int32; 0 and len(bins) are outside.

    Args:
        bins: a vector, monotonic, up or down.
        right: bins[i-1] < x <= bins[i], instead of bins[i-1] <= x < bins[i], for bins that go up.
        method: as for `searchsorted`.
    Raises:
        ValueError: for bins that are not a vector.

    >>> jnp.digitize(jnp.array([-1., 0.5, 1., 7.]), jnp.array([0., 1., 2.]))
    Array([0, 1, 2, 3], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    if ndim(bins) != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got shape {shape(bins)}: vmap goes "
                         "over its rows")
    method = method or "scan"
    n, = shape_of(bins)
    if not n:
        return full(shape_of(x), 0, dtypes.int32)
    side = "left" if right else "right"
    upward = searchsorted(bins, x, side, method=method)
    downward = e.sub(n, searchsorted(rev_p.bind(bins, dimensions=(0,)), x, side, method=method))
    first, last = (slice_along(bins, 0, i, i + 1) for i in (0, n - 1))
    return e.select(reshape(_before(last, first), ()), downward, upward)
