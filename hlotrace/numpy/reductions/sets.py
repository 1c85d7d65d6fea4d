"""Sets: `unique` and its kin, set operations, `isin`.

How many results there are depends on the values.  Outside jit it is looked up; under jit `size=` gives it,
and results are cut off or filled up to that size.
"""
from typing import NamedTuple

from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.avals import aval_of
from ...core.symbolic.dimension import surely
from ...primitives.arrays.cumulative import cummax_p, cummin_p, cumsum_p
from ...primitives.arrays.elementwise import add, and_p, convert, eq, lt, minimum, ne, not_p, select, sub
from ...primitives.arrays.reduce import reduce_or_p
from ...primitives.arrays.shape import broadcast_in_dim, full, move_axis, reshape
from ...primitives.arrays.slicing import concatenate_p, slice_along
from ...primitives.arrays.sort import sort, take_along
from ...primitives.common import canonical_axis, np, prod, shape_of
from ..indexing.conditions import check_known, checked_size, known, where_true
from ..util import broadcast_to_shape, cast, check_arraylike, dtype_of, ndim, promote_dtypes, shape
from .sorting import flat, index_dtype, positions, searchsorted

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
           "unique_inverse", "unique_values"]


def _last_if_nan(x):
    """A vector in which complex numbers with a part that is NaN are NaN, so that they are last in order."""
    return select(ne(x, x), np.nan, x) if dtypes.is_complex(dtype_of(x)) else x


# --- unique ---------------------------------------------------------------------------------------

@composite(static=("axis", "equal_nan"))
def _sorted_rows(a, axis, equal_nan):
    """(rows in order, where they came from, which differ from the one before), a row an entry of `axis`."""
    a = cast(a, dtype_of(a))
    rows = flat(a) if axis is None else move_axis(a, axis, 0)
    n = shape_of(rows)[0]
    rows = reshape(rows, (n, prod(shape_of(rows)[1:])))
    width = shape_of(rows)[1]
    if not width:
        return rows, positions((n,)), eq(positions((n,)), 0)
    columns = [reshape(slice_along(rows, 1, i, i + 1), (n,)) for i in range(width)]
    *columns, order = sort(*map(_last_if_nan, columns), positions((n,)), dimension=0, num_keys=width)
    rows = concatenate_p.bind(*[reshape(c, (n, 1)) for c in columns], dimension=1)
    if surely(n, high=1):
        return rows, order, full((n,), True, dtypes.bool_)
    before, after = slice_along(rows, 0, 0, n - 1), slice_along(rows, 0, 1, n)
    differ = ne(before, after)
    if equal_nan and dtypes.is_inexact(dtype_of(rows)):
        differ = and_p.bind(differ, not_p.bind(and_p.bind(ne(before, before), ne(after, after))))
    differ = reduce_or_p.bind(differ, axes=(1,))
    return rows, order, concatenate_p.bind(full((1,), True, dtypes.bool_), differ, dimension=0)


@composite(static=("size",))
def _unique_parts(rows, order, first, fill_value, size):
    """(values, first indices, inverse, counts) of `size` distinct rows."""
    n = shape_of(rows)[0]
    starts = where_true(first, size + 1, n)
    begin, end = slice_along(starts, 0, 0, size), slice_along(starts, 0, 1, size + 1)
    absent = eq(begin, n)
    begin = select(absent, 0, begin)
    values = take_along(rows, broadcast_in_dim(begin, (size, shape_of(rows)[1]), (0,)), 0)
    if fill_value is not None:
        values = select(broadcast_in_dim(absent, shape_of(values), (0,)), fill_value, values)
    group = sub(cumsum_p.bind(convert(first, index_dtype()), axis=0, reverse=False), 1)
    inverse = sort(order, group, dimension=0)[1]
    counts = select(absent, 0, sub(end, begin))
    return values, take_along(order, begin, 0), inverse, counts


def _unique(name, ar, axis, equal_nan, size, fill_value):
    """All that `unique` can return: (values, first indices, inverse, counts)."""
    check_arraylike(name, ar)
    axis = None if axis is None else canonical_axis(axis, ndim(ar) or 1)
    if size is None:
        check_known(ar)
    given = shape(ar)
    if not given:
        ar, axis = flat(ar), None
    n = aval_of(ar).size if axis is None else shape(ar)[axis]
    rest = () if axis is None else tuple(s for i, s in enumerate(shape(ar)) if i != axis)
    if not n:
        size = checked_size(size or 0)
        if size and fill_value is None:
            raise ValueError(f"jnp.{name}: for zero-sized input with nonzero size argument, fill_value must "
                             "be specified")
        values, none = full((size, prod(rest)), 0, dtype_of(ar)), full((size,), 0, index_dtype())
        if size:
            values = _filling(name, fill_value, ar, size, rest)
        parts = values, none, full((0,), 0, index_dtype()), none
    else:
        rows, order, first = _sorted_rows(ar, axis, bool(equal_nan))
        size = int(np.sum(known(first))) if size is None else checked_size(size)
        if fill_value is not None:
            fill_value = _filling(name, fill_value, ar, size, rest)
        parts = _unique_parts(rows, order, first, fill_value, size)
    values, index, inverse, counts = parts
    values = reshape(values, (size, *rest))
    values = move_axis(values, 0, axis or 0)
    return _typed(values, ar), index, reshape(inverse, given) if axis is None else inverse, counts


def _filling(name, fill_value, ar, size, rest):
    """[size, product of rest] of a fill value that broadcasts to [size, *rest]."""
    filling = cast(fill_value, dtype_of(ar))
    try:
        return reshape(broadcast_to_shape(filling, (size, *rest)), (size, prod(rest)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"jnp.{name}: fill_value of shape {shape(filling)} does not broadcast to the shape "
                         f"of the result, {(size, *rest)}") from error


def _typed(values, *arrays):
    """`values` of the type that the arrays have together, which is weak where all are."""
    return convert(values, dtype_of(values), all(aval_of(x).weak_type for x in arrays))


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True,
           size=None, fill_value=None, sorted=True):
    """The distinct elements in order, or the distinct slices along an axis.

    Args:
        return_index: return the index of the first of each too.
        return_inverse: return for each element the number of its value too.
        return_counts: return how often each occurs too.
        equal_nan: all NaNs are one value.
        size: how many there are, for use under jit.
        fill_value: what fills the results up, a value or a slice along `axis`; by default the least.
        sorted: accepted; they are in order also for False.
    Raises:
        ConcretizationTypeError: under jit without `size`.

    >>> jnp.unique(jnp.array([3, 1, 3, 2]))
    Array([1, 2, 3], dtype=int32)
    >>> values, index, inverse, counts = jnp.unique(jnp.array([3, 1, 3]), return_index=True,
    ...                                             return_inverse=True, return_counts=True)
    >>> index, inverse, counts
    (Array([1, 0], dtype=int32), Array([1, 0, 1], dtype=int32), Array([1, 2], dtype=int32))
    >>> jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0)
    Array([[0, 5],
           [1, 2]], dtype=int32)
    >>> jax.jit(lambda x: jnp.unique(x, size=4, fill_value=-1))(jnp.array([3, 1, 3]))
    Array([ 1,  3, -1, -1], dtype=int32)
    """
    values, *others = _unique("unique", ar, axis, equal_nan, size, fill_value)
    chosen = [x for x, wanted in zip(others, (return_index, return_inverse, return_counts)) if wanted]
    return (values, *chosen) if chosen else values


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x, /, *, size=None, fill_value=None):
    """(values, indices, inverse_indices, counts) of the distinct elements; every NaN is distinct.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueAllResult(*_unique("unique_all", x, None, False, size, fill_value))


def unique_counts(x, /, *, size=None, fill_value=None):
    """(values, counts) of the distinct elements; every NaN is distinct.

    >>> values, counts = jnp.unique_counts(jnp.array([3, 1, 3]))
    >>> values, counts
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    values, _, _, counts = _unique("unique_counts", x, None, False, size, fill_value)
    return _UniqueCountsResult(values, counts)


def unique_inverse(x, /, *, size=None, fill_value=None):
    """(values, inverse_indices) of the distinct elements; every NaN is distinct.

    >>> values, places = jnp.unique_inverse(jnp.array([[3, 1], [3, 2]]))
    >>> values, values[places].tolist()
    (Array([1, 2, 3], dtype=int32), [[3, 1], [3, 2]])
    """
    values, _, inverse, _ = _unique("unique_inverse", x, None, False, size, fill_value)
    return _UniqueInverseResult(values, inverse)


def unique_values(x, /, *, size=None, fill_value=None):
    """The distinct elements; every NaN is distinct.

    >>> jnp.unique_values(jnp.array([2., jnp.nan, 1., jnp.nan, 2.]))
    Array([ 1.,  2., nan, nan], dtype=float32)
    """
    return _unique("unique_values", x, None, False, size, fill_value)[0]


# --- set operations -------------------------------------------------------------------------------

def _chosen(values, mask, size, fill_value, *others):
    """The elements of `values` where `mask` is true, `size` of them; so of `others`: (vector, filling)."""
    size = int(np.sum(known(mask))) if size is None else checked_size(size)
    return _compress(values, mask, fill_value, others, size)


@composite(static=("size",))
def _compress(values, mask, fill_value, others, size):
    if not shape_of(values)[0]:
        values = full((1,), 0, dtype_of(values))
        mask = full((1,), False, dtypes.bool_)
        others = tuple((full((1,), 0, index_dtype()), f) for _, f in others)
    place = where_true(mask, size, -1)
    absent, place = lt(place, 0), select(lt(place, 0), 0, place)

    def take(x, filling):
        filling = broadcast_in_dim(cast(filling, dtype_of(x)), (size,), ())
        return select(absent, filling, take_along(x, place, 0))
    return (take(values, fill_value), *(take(*o) for o in others))


def _first_true(values, mask):
    """The first element of `values` at which `mask` is true, or 0."""
    place = where_true(mask, 1, -1)
    found = take_along(values, select(lt(place, 0), 0, place), 0)
    return reshape(select(lt(place, 0), full((1,), 0, dtype_of(values)), found), ())


@composite
def _merged(ar1, ar2):
    """Both arrays as one sorted vector: (values, from the second?, index there, first, last of a group)."""
    a, b = promote_dtypes(flat(ar1), flat(ar2))
    m, n = shape_of(a)[0], shape_of(b)[0]
    second = concatenate_p.bind(full((m,), 0, dtypes.int32), full((n,), 1, dtypes.int32), dimension=0)
    places = concatenate_p.bind(positions((m,)), positions((n,)), dimension=0)
    values, second, places = sort(_last_if_nan(concatenate_p.bind(a, b, dimension=0)), second, places,
                                  dimension=0, num_keys=2)
    before, after = (slice_along(values, 0, i, m + n - 1 + i) for i in (0, 1))
    same_array = eq(*(slice_along(second, 0, i, m + n - 1 + i) for i in (0, 1)))
    same_nan = and_p.bind(ne(before, before), same_array)       # the NaNs of one array are one value
    change = and_p.bind(ne(before, after), not_p.bind(same_nan))
    edge, line = full((1,), True, dtypes.bool_), positions((m + n,))
    starts, ends = (concatenate_p.bind(*pair, dimension=0) for pair in ((edge, change), (change, edge)))
    first = cummax_p.bind(select(starts, line, 0), axis=0, reverse=False)
    last = cummin_p.bind(select(ends, line, m + n - 1), axis=0, reverse=True)
    return values, second, places, first, last


@composite
def _common(values, second, places, first, last):
    """(mask at the first element of each common value, its index in the first array, in the second)."""
    running = cumsum_p.bind(second, axis=0, reverse=False)
    begins = eq(positions(shape_of(values)), first)
    mask = and_p.bind(begins, and_p.bind(eq(second, 0), eq(take_along(second, last, 0), 1)))
    # in a group those of the first array come first, then `from_second` of the second
    from_second = convert(sub(take_along(running, last, 0), running), index_dtype())
    follower = minimum(add(sub(last, from_second), 1), shape_of(values)[0] - 1)
    return mask, places, take_along(places, follower, 0)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None):
    """The values common to both arrays, in order.

    Args:
        assume_unique: changes nothing.
        return_indices: return also where each first occurs in both.
        size: how many there are, for use under jit.
        fill_value: what fills the result up, by default the least common value.

    >>> jnp.intersect1d(jnp.array([3, 1, 2, 3]), jnp.array([5, 3, 2]))
    Array([2, 3], dtype=int32)
    >>> jnp.intersect1d(jnp.array([3, 1]), jnp.array([5, 3]), return_indices=True)
    (Array([3], dtype=int32), Array([0], dtype=int32), Array([1], dtype=int32))
    """
    check_arraylike("intersect1d", ar1, ar2)
    if size is None:
        check_known(ar1), check_known(ar2)
    lengths = aval_of(ar1).size, aval_of(ar2).size
    if not all(lengths):
        values = full((0,), 0, dtype_of(promote_dtypes(ar1, ar2)[0]))
        mask, in_first, in_second = full((0,), False, dtypes.bool_), None, None
    else:
        values, *rest = _merged(ar1, ar2)
        mask, in_first, in_second = _common(values, *rest)
    if fill_value is None:
        fill_value = _first_true(values, mask) if all(lengths) else 0
    found = _chosen(values, mask, size, fill_value, (in_first, lengths[0]), (in_second, lengths[1]))
    found = _typed(found[0], ar1, ar2), *found[1:]
    return found if return_indices else found[0]


def union1d(ar1, ar2, *, size=None, fill_value=None):
    """The distinct values of both arrays, in order; `size` and `fill_value` as for `unique`.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3])), jnp.union1d(1, 2, size=3, fill_value=0)
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32, weak_type=True))
    """
    check_arraylike("union1d", ar1, ar2)
    a, b = promote_dtypes(flat(ar1), flat(ar2))
    return _typed(_unique("union1d", concatenate_p.bind(a, b, dimension=0), None, True, size, fill_value)[0],
                  ar1, ar2)


def setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The distinct values of `ar1` that are not in `ar2`, in order.

    Args:
        assume_unique: the values come in the order that they have.
        size: how many there are, for use under jit.
        fill_value: what fills the result up, by default 0.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2, 3]), jnp.array([2, 7]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("setdiff1d", ar1, ar2)
    if size is None:
        check_known(ar1), check_known(ar2)
    values = flat(ar1)
    mask = isin(values, ar2, invert=True)
    if not assume_unique and shape_of(values)[0]:
        rows, _, first = _sorted_rows(values, None, True)
        values = reshape(rows, shape_of(values))
        mask = and_p.bind(first, isin(values, ar2, invert=True))
    return _typed(_chosen(values, mask, size, 0 if fill_value is None else fill_value)[0], ar1)


def setxor1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The distinct values that are in one of the arrays only, in order.

    Args:
        assume_unique: changes nothing.
        size: how many there are, for use under jit.
        fill_value: what fills the result up, by default the least.

    >>> jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([2, 7]))
    Array([1, 3, 7], dtype=int32)
    """
    check_arraylike("setxor1d", ar1, ar2)
    if size is None:
        check_known(ar1), check_known(ar2)
    if not aval_of(ar1).size or not aval_of(ar2).size:
        return union1d(ar1, ar2, size=size, fill_value=fill_value)
    values, second, _, first, last = _merged(ar1, ar2)
    alone = eq(take_along(second, first, 0), take_along(second, last, 0))
    mask = and_p.bind(eq(positions(shape_of(values)), first), alone)
    fill_value = _first_true(values, mask) if fill_value is None else fill_value
    return _typed(_chosen(values, mask, size, fill_value)[0], ar1, ar2)


@composite(static=("assume_unique", "invert", "method"))
def isin(element, test_elements, assume_unique=False, invert=False, *, method="auto"):
    """Is each element one of `test_elements`?  NaN never is.

    Args:
        test_elements: an array; both are promoted to one dtype.
        assume_unique: changes nothing.
        invert: return the contrary.
        method: 'compare_all' compares all pairs, 'binary_search' and 'sort' sort first; 'auto' chooses.

    >>> jnp.isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 4, 9]))
    Array([[False,  True],
           [False,  True]], dtype=bool)
    """
    check_arraylike("isin", element, test_elements)
    if method not in ("compare_all", "binary_search", "sort", "auto"):
        raise ValueError(f"method={method!r} is not implemented; options are 'compare_all', 'binary_search', "
                         "'sort', and 'auto'")
    element, test = promote_dtypes(element, flat(test_elements))
    x, n = flat(cast(element, dtype_of(element))), shape_of(test)[0]
    m = shape_of(x)[0]
    if method == "compare_all" or method == "auto" and n <= 32 or not n:
        equal = eq(broadcast_in_dim(x, (m, n), (0,)), broadcast_in_dim(test, (m, n), (1,)))
        found = reduce_or_p.bind(equal, axes=(1,))
    else:
        test, = sort(test, dimension=0)
        place = searchsorted(test, x, method="sort" if method == "sort" else "scan")
        found = eq(take_along(test, minimum(place, n - 1), 0), x)
    return reshape(not_p.bind(found) if invert else found, shape_of(element))
