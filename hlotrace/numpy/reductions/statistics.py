"""Statistics of `jax.numpy`: means, variances, medians and quantiles, and their nan-ignoring forms."""
from ... import lax
from ...api.composite import composite
from ...api.custom_derivatives import custom_jvp
from ...core import dtypes
from ...core.avals import aval_of
from ...core.errors import check_choice
from ...core.symbolic.dimension import is_symbolic_dim
from ...placement.out_sharding import over_auto_axes, with_out_sharding
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.cumulative import cumsum_p
from ...primitives.arrays.reduce import argmax_p
from ...primitives.arrays.shape import broadcast_in_dim, full, kept_axes, reduce_sum, reshape, transpose
from ...primitives.arrays.slicing import iota_p, slice_along
from ...primitives.arrays.sort import sort, take_along
from ...primitives.arrays.transcendental import sqrt
from ...primitives.common import canonical_axes, np, prod, shape_of
from ...runtime.devices import transfer_guards
from ..arrays.creation import asarray
from ..arrays.joining import concatenate
from ..arrays.shaping import atleast_2d
from ..contraction import matmul
from ..elementwise.ufuncs import absolute, conj
from ..util import (
    broadcast_to_shape, cast, check_arraylike, dtype_of, ndim, no_out, promote_dtypes_inexact, promotes,
    shape)
from .reductions import as_mask, hashable_axis, is_nan, reduced_axes, sum as sum_, wider

__all__ = ["average", "corrcoef", "cov", "mean", "median", "nanmean", "nanmedian", "nanpercentile",
           "nanquantile", "nanstd", "nanvar", "percentile", "quantile", "std", "var"]


# --- mean, variance -------------------------------------------------------------------------------

def _count(a, axes, keepdims, mask, dtype):
    """How many elements go into each result: a constant, or an array where there is a mask."""
    if mask is None:
        names = tuple([i for i in axes if isinstance(i, str)])
        count = prod(shape(a)[i] for i in axes if not isinstance(i, str))
        return cast(lax.psum(count, names) if names else count, dtype)
    return sum_(cast(mask, dtype), axes, keepdims=keepdims)


@composite(static=("axis", "keepdims", "dtype"), name="mean")
def _mean(a, where, axis, keepdims, dtype):
    check_arraylike("mean", a)
    axes = reduced_axes(axis, ndim(a))
    dtype = dtypes.to_inexact(dtype_of(a)) if dtype is None else dtype
    computed = wider(dtype)
    mask = None if where is None else as_mask(where, shape(a))
    total = cast(sum_(cast(a, computed), axes, keepdims=keepdims, where=mask), computed)
    count = _count(a, axes, keepdims, mask, computed)
    return cast(e.div(total, cast(count, computed)), dtype)


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """The mean over `axis`: an int, a tuple of them, or None for all; NaN where there are no elements.

    Integers and bools give float32, with x64 too; float16 and bfloat16 add up in float32, and are rounded.

    Args:
        dtype: what to compute in and to give.
        out: not supported; None.
        keepdims: axes stay at size 1.
        where: booleans that say which elements count.

    >>> x = jnp.array([[1, 2], [3, 6]])
    >>> jnp.mean(x), jnp.mean(x, axis=0), jnp.mean(x, where=x > 1)
    (Array(3., dtype=float32), Array([2., 4.], dtype=float32), Array(3.6666667, dtype=float32))
    """
    no_out("mean", out)
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, "mean")
    return _mean(a, where, hashable_axis(axis), bool(keepdims), dtype)


@composite(static=("axis", "returned", "keepdims"))
def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """The mean over `axis` weighted by `weights`, of the shape of `a` or of its `axis`.

    `returned=True` gives (average, sum of the weights).

    Raises:
        ValueError: for weights that do not fit.

    >>> jnp.average(jnp.array([[1., 2.], [3., 6.]]), axis=1, weights=jnp.array([3., 1.]))
    Array([1.25, 3.75], dtype=float32)
    >>> jnp.average(jnp.array([1, 5]), weights=jnp.array([1, 3]), returned=True)
    (Array(4., dtype=float32), Array(4., dtype=float32))
    """
    check_arraylike("average", a, *(() if weights is None else (weights,)))
    axes = canonical_axes(axis, ndim(a))
    if weights is not None and shape(weights) != shape(a):
        if axis is None:
            raise ValueError(f"Axis must be specified when shapes of a and weights differ: {shape(a)} and "
                             f"{shape(weights)}.")
        if shape(weights) != tuple(shape(a)[i] for i in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis: "
                             f"{shape(a)} along {axis}, got {shape(weights)}: give one for each entry of "
                             "that axis.")
    if weights is None:
        a, = promote_dtypes_inexact(a)
        result = mean(a, axes, keepdims=keepdims)
        if not returned:
            return result
        return result, full(shape_of(result), prod([shape(a)[i] for i in axes]), dtype_of(result))
    a, weights = promote_dtypes_inexact(a, weights)
    if shape(weights) != shape(a):      # one weight for each position along the axes
        order = sorted(range(len(axes)), key=axes.__getitem__)
        weights = broadcast_in_dim(transpose(weights, order), shape(a), tuple(sorted(axes)))
    dtype = dtype_of(a)
    a, weights = (cast(x, wider(dtype)) for x in (a, weights))
    total = sum_(weights, axes, keepdims=keepdims)
    result = cast(e.div(sum_(e.mul(a, weights), axes, keepdims=keepdims), total), dtype)
    return (result, cast(total, dtype)) if returned else result


@composite(static=("axis", "keepdims", "dtype", "name"))
def _var(a, where, center, correction, axis, keepdims, dtype, name):
    check_arraylike(name, a)
    axes = reduced_axes(axis, ndim(a))
    if dtype is None:
        dtype = dtypes.real_of(dtypes.to_inexact(dtype_of(a)))
    elif not dtypes.is_inexact(dtype):
        raise ValueError(f"dtype argument to jnp.{name} must be inexact; got {dtype}")
    elif dtypes.is_complex(dtype_of(a)) and not dtypes.is_complex(dtype):
        raise ValueError(f"jax.numpy.{name} does not yet support real dtype parameters when computing the "
                         f"variance of an array of complex values: got dtype {dtype}")
    computed = wider(dtypes.complex_of(dtype) if dtypes.is_complex(dtype_of(a)) else dtype)
    a = cast(a, computed)
    mask = None if where is None else as_mask(where, shape(a))
    if mask is not None:        # a NaN that does not count has no slope either
        a = e.select(mask, a, 0)
    if center is None:
        center = mean(a, axes, keepdims=True, where=mask)
    centered = e.sub(a, broadcast_to_shape(cast(center, computed), shape(a)))
    squares = (e.real(e.mul(centered, e.conj_p.bind(centered))) if dtypes.is_complex(computed)
               else e.square(centered))
    kind = dtypes.real_of(computed)
    count = e.sub(_count(a, axes, keepdims, mask, kind), cast(correction, kind))
    total = sum_(squares, axes, keepdims=keepdims, where=mask)
    count = broadcast_to_shape(count, shape_of(total))
    found = cast(e.select(e.gt(count, 0), e.div(total, count), np.nan), dtype)
    return sqrt(found) if name == "std" else found


def _variance(name, a, axis, dtype, out, ddof, keepdims, where, center, correction):
    no_out(name, out)
    if correction is not None:
        if not isinstance(ddof, int) or ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    dtype = None if dtype is None else dtypes.check_user_dtype(dtype, name)
    return _var(a, where, center, ddof, hashable_axis(axis), bool(keepdims), dtype, name)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """The variance over `axis`: the mean of |a - mean|^2, divided by n - ddof instead of n.

    Dtypes and other arguments are as for `mean`; complex `a` has a real variance.  NaN where n <= ddof.

    Args:
        ddof: what is taken off the divisor.
        mean: a mean computed before, with keepdims.
        correction: another name of `ddof`.

    >>> x = jnp.array([1., 2., 3., 6.])
    >>> jnp.var(x), jnp.var(x, ddof=1), jnp.var(x.reshape(2, 2), axis=1)
    (Array(3.5, dtype=float32), Array(4.6666665, dtype=float32), Array([0.25, 2.25], dtype=float32))
    """
    return _variance("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """The standard deviation over `axis`, the square root of `var`.

    >>> x = jnp.array([[1., 3.], [2., 2.]])
    >>> jnp.std(x, axis=1), jnp.std(x, axis=1, ddof=1)
    (Array([1., 0.], dtype=float32), Array([1.4142135, 0.       ], dtype=float32))
    """
    return _variance("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _without_nan(name, function, a, out, where, **options):
    no_out(name, out)
    check_arraylike(name, a)
    if dtypes.is_inexact(dtype_of(a)):
        there = e.not_p.bind(is_nan(cast(a, dtype_of(a))))
        where = there if where is None else e.and_p.bind(there, as_mask(where, shape(a)))
    return function(a, where=where, **options)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """The mean over `axis` of the elements that are not NaN; NaN where there are none.

    >>> jnp.nanmean(jnp.array([[1., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([ 2., nan], dtype=float32)
    """
    return _without_nan("nanmean", mean, a, out, where, axis=axis, dtype=dtype, keepdims=keepdims)


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """The variance over `axis` of the elements that are not NaN; NaN where there are not more than `ddof`.

    >>> jnp.nanvar(jnp.array([1., jnp.nan, 3.])), jnp.nanvar(jnp.array([1., jnp.nan]), ddof=1)
    (Array(1., dtype=float32), Array(nan, dtype=float32))
    """
    return _without_nan("nanvar", var, a, out, where, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims,
                        mean=mean)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """The standard deviation over `axis` of the elements that are not NaN.

    >>> jnp.nanstd(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    return _without_nan("nanstd", std, a, out, where, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims,
                        mean=mean)


# --- covariance -----------------------------------------------------------------------------------

@promotes("m", "y")
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    """The covariance matrix of variables, the rows of `m` and `y`: E[(a - E a) conj(b - E b)].

    float16 and bfloat16 are computed in float32.

    Args:
        m: a variable (n,), or k of them (k, n), with `rowvar=False` (n, k).
        y: more variables.
        rowvar: variables are rows.
        bias: divide by n instead of n - 1.
        ddof: divide by n - `ddof` instead; it goes before `bias`.
        fweights: ints (n,), how often each observation is there.
        aweights: (n,), how much it counts; their absolute values are taken.
        dtype: what to compute in and to give.
    Returns:
        (k, k), of shape () for one variable; inf or NaN where the divisor is not above zero.

    >>> jnp.cov(jnp.array([[0., 1., 2.], [2., 1., 0.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    variables = (m,) if y is None else (m, y)
    weights = {"fweights": fweights, "aweights": aweights}
    weights = {name: w for name, w in weights.items() if w is not None}
    check_arraylike("cov", *variables, *weights.values())
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "cov")
        if not dtypes.is_inexact(dtype):
            raise ValueError(f"cov: dtype must be floating point or complex, got {dtype.name}")
    if any(ndim(x) > 2 for x in variables):
        raise ValueError("cov: m has more than 2 dimensions, or y has: a variable is a vector, and several "
                         f"are a matrix; got shapes {', '.join(str(shape(x)) for x in variables)}")
    variables = [x.T if ndim(x) == 2 and not rowvar else x for x in map(asarray, variables)]
    samples = shape(variables[0])[-1:] or (1,)
    if any((shape(x)[-1:] or (1,)) != samples for x in variables):
        raise TypeError(f"cov: m and y must have equally many observations, got {samples[0]} and "
                        f"{(shape(variables[1])[-1:] or (1,))[0]}: shapes {shape(m)} and {shape(y)}, "
                        f"{rowvar=}")
    for name, w in weights.items():
        if shape(w) != samples:
            what = "cannot handle multidimensional" if ndim(w) > 1 else "incompatible numbers of samples and"
            raise RuntimeError(f"cov: {what} {name}: it must have shape {samples}, a weight for each "
                               f"observation; got {shape(w)}")
    if fweights is not None and not dtypes.is_integer(dtype_of(fweights)):
        raise TypeError("cov: fweights must be integers, how often each observation is there; got "
                        f"{dtype_of(fweights)}: aweights takes others")
    if ddof is None:
        ddof = 0 if bias else 1
    return _cov(variables, fweights, aweights, ddof, dtype)


@composite(static=("dtype",))
def _cov(variables, fweights, aweights, ddof, dtype):
    x = concatenate([atleast_2d(v) for v in promote_dtypes_inexact(*variables)])
    dtype = dtype_of(x) if dtype is None else dtype
    x = cast(x, wider(dtype))
    kind = dtypes.real_of(dtype_of(x))
    ones = full(shape_of(x)[1:], 1, kind)
    often, much = (ones if w is None else cast(absolute(w), kind) for w in (fweights, aweights))
    weights = e.mul(often, much)
    total = sum_(weights)
    # Unbiased for repeated observations; of aweights, as in NumPy, n is total ** 2 / sum(often * much ** 2)
    divisor = e.sub(total, e.mul(cast(ddof, kind), e.div(sum_(e.mul(weights, much)), total)))
    x = x - (sum_(x * weights, 1) / total)[:, None]
    return (matmul(x * weights, conj(x).T) / e.maximum(divisor, 0.0)).squeeze().astype(dtype)


@promotes("x", "y")
def corrcoef(x, y=None, rowvar=True, dtype=None):
    """The matrix of Pearson's correlation coefficients of variables, the rows of `x` and `y`: see `cov`.

    Real and imaginary parts are kept within -1 and 1.  A variable that does not vary has NaN.  One variable
    gives 1 of shape ().

    >>> jnp.corrcoef(jnp.array([0., 1., 2.]), jnp.array([4., 2., 0.]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    dtype = dtypes.to_inexact(dtype_of(x)) if dtype is None else dtypes.check_user_dtype(dtype, "corrcoef")
    return cast(_corrcoef(cov(x, y, rowvar, dtype=wider(dtype))), dtype)     # float16's variances may be inf


@composite
def _corrcoef(c):
    if not ndim(c):
        return c / c
    deviation = sqrt(c.diagonal().real)
    c = c / deviation[:, None] / deviation
    parts = (e.real(c), e.imag_p.bind(c)) if dtypes.is_complex(c.dtype) else (c,)
    parts = [e.maximum(e.minimum(part, 1.0), -1.0) for part in parts]
    return e.complex_p.bind(*parts) if len(parts) == 2 else parts[0]


# --- quantiles ------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@custom_jvp
def _ranked(rows, places):
    """The elements that are at `places` (m, k) of `rows` (m, n) once these are sorted."""
    return take_along(sort(rows, dimension=1)[0], places, 1)


@_ranked.defjvp
def _ranked_jvp(primals, tangents):     # no tangent is put in order but those that are taken
    (rows, places), (tangent, _) = primals, tangents
    numbers = iota_p.bind(dtype=dtypes.int32, shape=shape_of(rows), dimension=1)
    ranked, order = sort(rows, numbers, dimension=1)
    return take_along(ranked, places, 1), take_along(tangent, take_along(order, places, 1), 1)


def _at(rows, *positions):
    """The elements of the rows (m, n), once sorted, at each of some whole float positions (m, k), clamped to
    the row, and the last of each row.
    """
    m, n = shape_of(rows)
    shape = shape_of(positions[0])
    most, k = full(shape, n - 1, dtype_of(rows)) if is_symbolic_dim(n) else float(n - 1), shape[1]
    inside = [e.maximum(e.minimum(position, most), 0.0) for position in positions]
    places = e.convert(concatenate([*inside, full((m, 1), n - 1, dtype_of(rows))], 1), dtypes.int32)
    found, ends = _ranked(rows, places), [k * i for i in range(len(positions) + 1)]
    return [slice_along(found, 1, start, end) for start, end in zip(ends, [*ends[1:], ends[-1] + 1])]


def _at_fraction(rows, counts, q, method):
    """The quantiles `q` (m, k) of the first `counts` (m, k) elements of sorted rows (m, n); their last."""
    if method == "inverted_cdf":
        return _at(rows, e.sub(e.ceil_p.bind(e.mul(counts, q)), 1.0))
    position = e.mul(e.sub(counts, 1.0), q)
    if method == "nearest":      # halves go to the even position, as in NumPy
        return _at(rows, e.round_p.bind(position, rounding_method=1))
    floor, ceiling = e.floor_p.bind(position), e.ceil_p.bind(position)
    if method in ("lower", "higher"):
        return _at(rows, floor if method == "lower" else ceiling)
    low, high, last = _at(rows, floor, ceiling)
    if method == "midpoint":
        return e.mul(e.add(low, high), 0.5), last
    fraction = e.sub(position, floor)
    return e.add(e.mul(low, e.sub(1.0, fraction)), e.mul(high, fraction)), last


def _at_weight(rows, weights, q):
    """The least elements of sorted rows (m, n) up to which they hold the shares `q` (m, k) of the weight."""
    (m, n), k = shape_of(rows), shape_of(q)[1]
    running = broadcast_in_dim(cumsum_p.bind(weights, axis=1, reverse=False), (m, k, n), (0, 2))
    wanted = e.mul(broadcast_in_dim(reduce_sum(weights, (1,)), (m, k), (0,)), q)
    enough = e.and_p.bind(e.ge(running, broadcast_in_dim(wanted, (m, k, n), (0, 1))),
                          e.gt(broadcast_in_dim(weights, (m, k, n), (0, 2)), 0.0))
    return take_along(rows, argmax_p.bind(enough, axes=(2,), index_dtype=dtypes.int32), 1)


@composite(static=("axes", "keepdims", "method", "skip_nan"))
def _quantile(a, q, weights, axes, keepdims, method, skip_nan):
    dtype, shape, of = dtypes.to_inexact(dtype_of(a)), shape_of(a), aval_of(a)
    a, q = cast(a, wider(dtype)), cast(q, wider(dtype))
    if not any(of.splits[i] for i in axes):     # rows are made of axes that may be split
        a, = over_auto_axes(a)
        weights = weights if weights is None else over_auto_axes(weights)[0]
    kept, n = kept_axes(len(shape), axes), prod(shape[i] for i in axes)
    rest = tuple(shape[i] for i in kept)
    target = (prod(rest), prod(shape_of(q)))

    def as_rows(x):
        return reshape(transpose(x, (*kept, *axes)), (prod(rest), n))
    rows, fractions = as_rows(a), broadcast_in_dim(reshape(q, target[1:]), target, (1,))
    if weights is None:
        counts = full(target, n, dtype_of(rows))
        if skip_nan:
            missing = reduce_sum(e.convert(is_nan(rows), dtype_of(rows)), (1,))
            counts = e.sub(counts, broadcast_in_dim(missing, target, (0,)))
        out, last = _at_fraction(rows, counts, fractions, method)
    else:
        if shape_of(weights) != shape:
            weights = broadcast_in_dim(weights, shape, axes)
        weights = e.select(is_nan(rows), 0.0, as_rows(cast(weights, dtype_of(rows))))
        rows, weights = sort(rows, weights, dimension=1)
        out, last = _at_weight(rows, weights, fractions), slice_along(rows, 1, n - 1, n)
    if not skip_nan:
        spoilt = broadcast_in_dim(is_nan(last), target, (0, 1))      # NaN is sorted last
        out = e.select(spoilt, np.nan, out)
    rest = tuple(1 if i in axes else n for i, n in enumerate(shape)) if keepdims else rest
    out = cast(reshape(transpose(out, (1, 0)), (*shape_of(q), *rest)), dtype)
    if of.explicit is None:
        return out
    from ...primitives.parallel.sharding import as_type  # few programs are over Explicit axes
    entries = [None if i in axes else entry for i, entry in enumerate(of.explicit.spec)
               if i in kept or keepdims]
    spec = of.explicit.with_entries(*[None] * ndim(q), *entries)
    return as_type(out, aval_of(out).update(sharding=spec))


def _quantiles(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan):
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    check_arraylike(name, a, q)
    if dtypes.is_complex(dtype_of(a)) or dtypes.is_complex(dtype_of(q)):
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined: take "
                         "those of x.real and x.imag.")
    if ndim(q) > 1:
        raise ValueError(f"q must have rank <= 1, got shape {shape(q)}: flatten it with .ravel()")
    check_choice("method", method, _METHODS)
    axes = canonical_axes(axis, ndim(a))
    if not prod(shape(a)[i] for i in axes):
        raise ValueError(f"{name} of an empty axis is not defined: shape {shape(a)}, axis {axis}")
    if weights is not None:
        check_arraylike(name, weights)
        if method != "inverted_cdf":
            raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' "
                                      "supports weights.")
        if shape(weights) != shape(a) and (axis is None or len(axes) != 1
                                           or shape(weights) != (shape(a)[axes[0]],)):
            raise ValueError(f"{name}: weights of shape {shape(weights)} must have the shape of the array, "
                             f"{shape(a)}, or of its one axis")
    return _quantile(a, q, weights, axes, bool(keepdims), method, skip_nan)


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
             weights=None):
    """The quantiles over an axis; NaN where there is a NaN.

    Integers become the default float.

    Args:
        q: 0 to 1, a scalar or a vector, whose axis comes first in the result.
        axis: an int, a tuple of them, or None for all axes.
        out: not supported; None.
        overwrite_input: not supported; False.
        method: 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'; weights need the last.
        keepdims: axes stay at size 1.
        weights: of the shape of `a` or of its axis.
    Raises:
        ValueError: for `out` and `overwrite_input`.

    >>> x = jnp.array([[1., 2., 3., 10.], [0., 0., 4., 4.]])
    >>> jnp.quantile(x, 0.5, axis=1), jnp.quantile(x, jnp.array([0., 0.5, 1.]), axis=1).shape
    (Array([2.5, 2. ], dtype=float32), (3, 2))
    >>> jnp.quantile(x[0], 0.4)
    Array(2.2, dtype=float32)
    >>> jnp.quantile(x[0], 0.4, method="lower")
    Array(2., dtype=float32)
    >>> jnp.quantile(x[0], 0.4, method="nearest")
    Array(2., dtype=float32)
    """
    return _quantiles("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
                weights=None):
    """`quantile` of the elements that are not NaN; NaN where there are none.

    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantiles("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


def _fraction(q):
    check_arraylike("percentile", q)
    q, = promote_dtypes_inexact(q)
    return e.div(q, 100.0)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               weights=None, out_sharding=None):
    """`quantile` with `q` from 0 to 100.

    >>> jnp.percentile(jnp.arange(11.), jnp.array([10, 50, 90])).round(4)
    Array([1., 5., 9.], dtype=float32)
    """
    if out_sharding is not None:
        a, = over_auto_axes(a)
    result = quantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)
    return with_out_sharding(result, out_sharding, "jnp.percentile")


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
                  weights=None):
    """`nanquantile` with `q` from 0 to 100.

    >>> jnp.nanpercentile(jnp.array([1., jnp.nan, 3.]), 75)
    Array(2.5, dtype=float32)
    """
    return nanquantile(a, _fraction(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def _half():
    """0.5, which the user did not give: no transfer guard is asked."""
    if not transfer_guards.used:
        return 0.5
    with transfer_guards.unasked():
        return asarray(0.5)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The median over `axis`, the mean of the middle two for an even count; NaN where there is a NaN.

    Integers become the default float.

    >>> jnp.median(jnp.array([1, 9, 4, 2])), jnp.median(jnp.array([[1, 2], [3, 8]]), axis=0)
    (Array(3., dtype=float32), Array([2., 5.], dtype=float32))
    """
    check_arraylike("median", a)
    return quantile(*promote_dtypes_inexact(a), _half(), axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The median over `axis` of the elements that are not NaN.

    >>> jnp.nanmedian(jnp.array([[1., jnp.nan, 3.], [7., 8., 9.]]), axis=1)
    Array([2., 8.], dtype=float32)
    """
    check_arraylike("nanmedian", a)
    return nanquantile(*promote_dtypes_inexact(a), _half(), axis, out, overwrite_input, "midpoint", keepdims)
