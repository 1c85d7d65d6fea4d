"""How much is where: bincount, and histograms of numbers and of points."""
import math
import operator

from ...api.composite import composite
from ...core import dtypes, errors
from ...core.avals import aval_of
from ...core.symbolic.dimension import as_size, max_dim
from ...core.trace import concrete_or_error, is_concrete
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.gather import scatter_add_p
from ...primitives.arrays.gather_numbers import FILL, ScatterDimensionNumbers
from ...primitives.arrays.shape import broadcast_in_dim, full, reduce_sum, reshape
from ...primitives.arrays.slicing import concatenate_p, slice_along
from ...primitives.common import np, shape_of, static_int
from ...runtime.devices import transfer
from ..arrays.creation import asarray
from ..util import cast, check_arraylike, dtype_of, ndim, promote_dtypes, promote_dtypes_inexact, shape
from .reductions import max as max_, min as min_, wider
from .sorting import flat, index_dtype, positions, searchsorted

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


@composite(static=("length",))
def _bincount(x, weights, length):
    weights = full(shape_of(x), 1, index_dtype()) if weights is None else cast(weights, dtype_of(weights))
    x = e.convert(x, dtypes.int32) if aval_of(x).dtype.itemsize < 4 else x
    x = e.convert(e.maximum(x, 0), index_dtype())
    wide = wider(dtype_of(weights))
    return cast(scatter_add_p.bind(
        full((length,), 0, wide), reshape(x, (*shape_of(x), 1)), cast(weights, wide), mode=FILL,
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)), indices_are_sorted=False,
        unique_indices=False), dtype_of(weights))


def bincount(x, weights=None, minlength=0, *, length=None, out_sharding=None):
    """How often each of 0, 1, ... occurs in the integer vector `x`, or the sum of the `weights` there.

    Args:
        x: a vector; negative entries count as 0, those past the length are left out.
        weights: a vector; the result has its dtype, and is int32 without it.
        minlength: the least length of the result, which is max(x) + 1 by default.
        length: the length of the result, for use under jit.
    Raises:
        TypeError: for an `x` of floats.

    >>> jnp.bincount(jnp.array([1, 3, 1]))
    Array([0, 2, 0, 1], dtype=int32)
    >>> jnp.bincount(jnp.array([0, 1, 1]), weights=jnp.array([.5, 1., 2.]))
    Array([0.5, 3. ], dtype=float32)
    >>> jax.jit(lambda x: jnp.bincount(x, length=3))(jnp.array([0, 2, 5]))
    Array([1, 0, 1], dtype=int32)
    """
    check_arraylike("bincount", x)
    if not (dtypes.is_integer(dtype_of(x)) or dtypes.is_bool(dtype_of(x))):
        raise TypeError(f"x argument to bincount must have an integer type; got {dtype_of(x)}: convert it "
                        "with .astype(int)")
    if ndim(x) != 1:
        raise ValueError(f"only 1-dimensional input supported, got shape {shape(x)}")
    if weights is not None and shape(weights) != shape(x):
        raise ValueError(f"bincount: shape of weights must match shape of x, got {shape(weights)} and "
                         f"{shape(x)}")
    if length is None:
        if not is_concrete(x):
            raise errors.sized_by_values(x, "length=")
        values = np.asarray(transfer.whole(concrete_or_error(x)))
        length = max(operator.index(minlength), int(values.max()) + 1 if values.size else 0)
    if out_sharding is not None:
        x, weights = over_auto_axes(x, weights)
    return with_out_sharding(_bincount(x, weights, max_dim(as_size(length), 0)), out_sharding,
                             "jnp.bincount")


@composite(static=("bins",))
def _even_edges(a, bounds, bins):
    a, = promote_dtypes_inexact(a)
    dtype = dtype_of(a)
    if bounds is None and aval_of(a).size:
        low, high = min_(a), max_(a)
    else:
        low, high = (cast(b, dtype) for b in bounds or (0, 1))
    alone = e.eq(low, high)
    low, high = e.select(alone, e.sub(low, 0.5), low), e.select(alone, e.add(high, 0.5), high)
    t = e.div(positions((bins + 1,), 0, dtype), float(bins))
    low, high = (broadcast_in_dim(b, (bins + 1,), ()) for b in (low, high))
    return e.add(e.mul(low, e.sub(1.0, t)), e.mul(high, t))


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of equal bins.

    Args:
        a: an array; the edges have its dtype, floating point also for integers.
        bins: how many, or an array, which is returned as it is; no names of rules, such as 'auto'.
        range: (low, high); from the least to the greatest element by default.
        weights: not used.

    >>> jnp.histogram_bin_edges(jnp.array([0, 3, 4]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    >>> jnp.histogram_bin_edges(jnp.ones(3), 2, range=(0, 1))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError(f"names of rules for `bins` are not supported, got {bins!r}: give the "
                                  "number of bins, or an array of their edges")
    check_arraylike("histogram_bin_edges", a, bins)
    if ndim(bins) == 1:
        return e.convert(bins, dtypes.to_inexact(dtype_of(a)))
    if ndim(bins) > 1:
        raise ValueError(f"bins must be an int or a 1-dimensional array of edges, got shape {shape_of(bins)}")
    if range is not None:
        if not hasattr(range, "__len__") or len(range) != 2:
            raise ValueError("`range` must be either None or a sequence of scalars (low, high), got "
                             f"{range!r}")
        range = tuple(range)
        if any(dtypes.is_complex(dtype_of(x)) for x in range):
            raise TypeError(f"histogram: range must be two real numbers, got {range}")
    return _even_edges(a, range, static_int(bins, "bins"))


@composite(static=("density",))
def _histogram(a, edges, weights, density):
    (n,), a = shape_of(edges), flat(a)
    last = slice_along(edges, 0, n - 1, n)
    on_last_edge = e.eq(a, broadcast_in_dim(last, shape_of(a), (0,)))
    place = e.select(on_last_edge, n - 1, searchsorted(edges, a, "right"))
    weights = None if weights is None else flat(weights)        # floats would stop counting at 2**24
    counts = cast(slice_along(bincount(place, weights, length=n), 0, 1, n), dtype_of(edges))
    if density:
        ends = (slice_along(edges, 0, i, n - 1 + i) for i in (1, 0))
        total = broadcast_in_dim(reduce_sum(counts, (0,)), (n - 1,), ())
        counts = e.div(e.div(counts, e.sub(*ends)), total)
    return counts


def histogram(a, bins=10, range=None, weights=None, density=None, out_sharding=None):
    """(counts, edges): how many elements of `a`, or how much of their weights, are in each bin.

    All bins are half open but the last, which has both its edges.  Both results have the dtype of `a` and
    `weights`, floating point also for integers.

    Args:
        bins: a number, or an array of edges.
        range: (low, high); from the least to the greatest element by default.
        weights: of the shape of `a`.
        density: make the integral 1.

    >>> jnp.histogram(jnp.array([1., 2., 2., 4.]), bins=3)
    (Array([1., 2., 1.], dtype=float32), Array([1., 2., 3., 4.], dtype=float32))
    >>> jnp.histogram(jnp.array([1., 2., 9.]), bins=jnp.array([0., 2., 4.]), density=True)[0]
    Array([0.25, 0.25], dtype=float32)
    """
    check_arraylike("histogram", a)
    if weights is not None and shape(weights) != shape(a):
        raise ValueError(f"weights should have the same shape as a, got {shape(weights)} and {shape(a)}: one "
                         "for each element.")
    if weights is None:
        a, = promote_dtypes_inexact(a)
    else:
        check_arraylike("histogram", weights)
        a, weights = promote_dtypes_inexact(a, weights)
    edges = histogram_bin_edges(a, bins, range, weights)
    counts = _histogram(a, edges, weights, bool(density))
    return with_out_sharding(counts, out_sharding, "jnp.histogram"), edges


@composite(static=("density",))
def _histogramdd(sample, weights, edges, density):
    sizes, place = [shape_of(x)[0] + 1 for x in edges], 0
    for i, ends in enumerate(edges):
        x = sample[:, i]
        inside = e.select(e.eq(x, broadcast_in_dim(ends[-1], shape_of(x), ())), sizes[i] - 2,
                          searchsorted(ends, x, "right"))
        place = e.add(e.mul(place, sizes[i]), inside) if i else inside
    counts = reshape(bincount(place, weights, length=math.prod(sizes)), sizes)[(slice(1, -1),) * len(edges)]
    if density:
        counts = cast(counts, dtype_of(sample))
        counts = e.div(counts, broadcast_in_dim(counts.sum(), shape_of(counts), ()))
        for i, ends in enumerate(edges):
            counts = e.div(counts, broadcast_in_dim(e.sub(ends[1:], ends[:-1]), shape_of(counts), (i,)))
    return counts


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """(counts, edges): how many of the points `sample`, or how much of their weight, is in each cell.

    Args:
        sample: points as rows (n, d).
        bins: a number for all axes, or a number or edges for each; cells are as the bins of `histogram`.
        range: None, or for each axis None or (low, high).
        weights: (n,).
        density: make the integral 1.
    Returns:
        Counts with d axes, int32 without weights and density; and d vectors of edges, always floats.

    >>> counts, edges = jnp.histogramdd(jnp.array([[0., 0.], [1., 3.], [2., 4.]]), bins=2)
    >>> counts
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    given = (sample,) if weights is None else (sample, weights)
    check_arraylike("histogramdd", *given)
    sample, *weights = promote_dtypes_inexact(*given)
    if ndim(sample) != 2:
        raise ValueError(f"histogramdd: sample must have shape (points, axes), got {shape(sample)}")
    n, d = shape(sample)
    if weights and shape(weights[0]) != (n,):
        raise ValueError(f"histogramdd: weights must have shape ({n},), one for each point, got shape "
                         f"{shape(weights[0])}")
    bins = bins if isinstance(bins, (list, tuple)) or ndim(bins) else [bins] * d
    range = [None] * d if range is None else range
    if len(bins) != d or len(range) != d:
        raise ValueError(f"histogramdd: bins and range must have one entry for each of the {d} axes, got "
                         f"{len(bins)} and {len(range)}")
    edges = [histogram_bin_edges(sample[:, i], asarray(b) if isinstance(b, (list, tuple)) else b, r)
             for i, (b, r) in enumerate(zip(bins, range))]
    return _histogramdd(sample, weights[0] if weights else None, edges, bool(density)), edges


def histogram2d(x, y, bins=10, range=None, weights=None, density=None):
    """(counts, x edges, y edges): the number, or the sum of weights, of points (x, y) in each cell.

    `x` and `y` are vectors; other arguments are those of `histogramdd`.

    Args:
        bins: a number or edges for both axes, or a pair of these.

    >>> counts, x, y = jnp.histogram2d(jnp.array([0., 1., 2.]), jnp.array([0., 3., 4.]), bins=2)
    >>> counts.tolist(), y
    ([[1, 0], [0, 2]], Array([0., 2., 4.], dtype=float32))
    """
    check_arraylike("histogram2d", x, y)
    if ndim(x) != 1 or shape(x) != shape(y):
        raise ValueError(f"histogram2d: x and y must be vectors of one size, got shapes {shape(x)} and "
                         f"{shape(y)}")
    if (ndim(bins) or isinstance(bins, (list, tuple))) and len(bins) != 2:       # edges for both
        bins = [bins, bins]
    columns = [reshape(v, (*shape(v), 1)) for v in promote_dtypes(x, y)]
    counts, edges = histogramdd(concatenate_p.bind(*columns, dimension=1), bins, range, weights, density)
    return counts, *edges
