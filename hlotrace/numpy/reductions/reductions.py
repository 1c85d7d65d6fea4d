"""Reductions of `jax.numpy`: sums and extremes, their nan-ignoring forms, running sums, argmax."""
import dataclasses
import functools
import operator
from collections.abc import Callable

from ... import lax
from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.avals import aval_of
from ...core.config import state
from ...core.surface.public import renamed
from ...primitives.arrays import reduce
from ...primitives.arrays.cumulative import cumprod_p, cumsum_p
from ...primitives.arrays.elementwise import add_p, and_p, convert, max_p, min_p, mul_p, ne, or_p, select, sub
from ...primitives.arrays.shape import broadcast_in_dim, full, reduce_sum_p, reshape
from ...primitives.arrays.slicing import concatenate_p
from ...primitives.common import (
    Primitive, as_axes, canonical_axes, canonical_axis, np, prod as size_of, scalar, shape_of)
from ..util import broadcast_to_shape, cast, check_arraylike, dtype_of, ndim, no_out, split_alike

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum",
           "cumulative_prod", "cumulative_sum", "max", "min", "minmax", "nanargmax", "nanargmin",
           "nancumprod", "nancumsum", "nanmax", "nanmin", "nanprod", "nansum", "prod", "ptp", "sum"]


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """A reduction: its primitive, the elementwise one that adds an initial value, the value of nothing."""
    primitive: Primitive
    combine: Primitive
    identity: Callable      # of the dtype
    has_identity: bool      # do users see the reduction of nothing as a value?
    facts: dict = dataclasses.field(default_factory=dict)       # what else is given to the primitive


SUM = Kind(reduce_sum_p, add_p, lambda dtype: scalar(0, dtype), True)
PROD = Kind(reduce.reduce_prod_p, mul_p, lambda dtype: scalar(1, dtype), True)
MAX = Kind(reduce.reduce_max_p, max_p, dtypes.min_value, False)
MIN = Kind(reduce.reduce_min_p, min_p, dtypes.max_value, False)
LARGEST_NUMBER = Kind(reduce.reduce_max_p, max_p, dtypes.min_value, False, {"numbers": True})
ALL = Kind(reduce.reduce_and_p, and_p, lambda dtype: scalar(True, dtype), True)
ANY = Kind(reduce.reduce_or_p, or_p, lambda dtype: scalar(False, dtype), True)


def wider(dtype):
    """The dtype to add up in: 16-bit and smaller floats add up in float32."""
    return dtypes.float32 if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def promoted_integer(dtype):
    """The dtype in which integers and bools are summed: the platform's signed or unsigned one, or wider."""
    if not (dtypes.is_integer(dtype) or dtypes.is_bool(dtype)):
        return dtype
    target = dtypes.canonicalize(dtypes.uint64 if dtypes.is_unsigned(dtype) else dtypes.int64)
    return dtype if dtype.itemsize >= target.itemsize and not dtypes.is_bool(dtype) else target


def split_axes(axis, ndim):
    """(the axes of an array counted from the front, the names of mapped axes that are beside them)."""
    axes = () if axis is None else as_axes(axis)
    names = tuple([a for a in axes if isinstance(a, str)])
    return canonical_axes(tuple([a for a in axes if not isinstance(a, str)]) if names else axis, ndim), names


def reduced_axes(axis, ndim):
    """Those axes, then those names, as one tuple: what is static in a reduction."""
    axes, names = split_axes(axis, ndim)
    return axes + names


def hashable_axis(axis):
    """The argument `axis` for a static parameter: it may be an array, or any collection."""
    if axis is None or type(axis) in (int, str, tuple):
        return axis
    axes = as_axes(axis)
    return operator.index(axes[0]) if len(axes) == 1 and isinstance(axes[0], (Array, np.ndarray)) else axes


def expand_kept(x, axes, shape):
    """The result of a reduction over `axes`, with those axes kept at size 1."""
    return reshape(x, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def is_nan(x):
    return ne(x, x)


def as_mask(where, shape):
    if not dtypes.is_bool(dtype_of(where)):
        raise ValueError(f"where must be None or a boolean array; got dtype {dtype_of(where).name}")
    return broadcast_to_shape(cast(where, dtypes.bool_), shape)


@composite(static=("kind", "axes", "keepdims", "dtype"))
def reduce_array(a, initial, where, kind, axes, keepdims, dtype):
    """The reduction of an array, with every option."""
    computed = wider(dtype) if kind in (SUM, PROD) else dtype
    a = cast(a, computed)
    shape = shape_of(a)
    if where is not None:
        mask, a = split_alike(as_mask(where, shape), broadcast_in_dim(a, shape, tuple(range(len(shape)))))
        a = select(mask, a, kind.identity(computed).item())
    out = kind.primitive.bind(a, axes=axes, **kind.facts)
    if initial is not None:
        out = kind.combine.bind(broadcast_in_dim(cast(initial, computed), shape_of(out), ()), out)
    if keepdims:
        out = expand_kept(out, axes, shape)
    return cast(out, dtype)


@functools.lru_cache(maxsize=4096, typed=True)
def _plan(kind, aval, axis, dtype, promote_integers, x64):
    """(axes, dtype of the result, is the reduction without further options just the primitive?)."""
    axes = canonical_axes(axis, aval.ndim)
    if dtype is None:
        promotes = promote_integers or kind in (SUM, PROD) and dtypes.is_bool(aval.dtype)
        dtype = promoted_integer(aval.dtype) if promotes else aval.dtype
    computed = wider(dtype) if kind in (SUM, PROD) else dtype
    empty = not kind.has_identity and not size_of(aval.shape[i] for i in axes)
    return axes, dtype, aval.dtype == dtype == computed and not aval.weak_type and not empty


def reduction(name, kind, a, axis, dtype, out, keepdims, initial, where, promote_integers=False):
    """Check the arguments of a reduction and do it; a plain one is a single primitive."""
    no_out(name, out)
    check_arraylike(name, a)
    aval = aval_of(a)
    if dtype is not None and dtype is not dtypes.bool_:
        dtype = dtypes.check_user_dtype(dtype, name)
    if axis is not None and type(axis) is not int:
        axis, names = split_axes(axis, aval.ndim)
        if names:
            return _over_names(name, kind, a, axis, names, dtype, keepdims, initial, where, promote_integers)
    if dtype is not None and dtypes.is_bool(np.dtype(dtype)):
        kind = {SUM: ANY, PROD: ALL}.get(kind, kind)        # the ring of truth values, as in NumPy
    axes, dtype, plain = _plan(kind, aval, axis, dtype, promote_integers, state.x64)
    if initial is None and where is None:
        if plain and not keepdims:
            return kind.primitive.bind(a, axes=axes, **kind.facts)
        if not kind.has_identity and not size_of(aval.shape[i] for i in axes):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity: shape "
                             f"{aval.shape}, axis {axis}. Give an initial value with initial=...")
    elif initial is None and not kind.has_identity:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a where mask one "
                         "has to specify 'initial'")
    if initial is not None:
        check_arraylike(name, initial)
        if ndim(initial):
            raise ValueError(f"initial value must be a scalar. Got array of shape {shape_of(initial)}")
    return reduce_array(a, initial, where, kind, axes, bool(keepdims), dtype)


def _over_names(name, kind, a, axis, names, dtype, keepdims, initial, where, promote_integers):
    collective = {SUM: lax.psum, MAX: lax.pmax, LARGEST_NUMBER: lax.pmax, MIN: lax.pmin}.get(kind)
    if collective is None:
        raise NotImplementedError(f"jnp.{name} over the mapped axis {names[0]!r}: sum, max, min, mean and "
                                  "what is made of them take names of axes")
    first = None if kind is SUM else initial
    out = collective(reduction(name, kind, a, axis, dtype, None, keepdims, first, where, promote_integers),
                     names)
    return out if initial is None or kind is not SUM else add_p.bind(
        out, broadcast_to_shape(cast(initial, dtype_of(out)), shape_of(out)))


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """The sum over an axis.

    Args:
        axis: an int, a tuple of them, or None for all axes; the name of a mapped axis is an axis too.
        dtype: what to add up in, and that of the result.  By default small integers and bools add up in int32
            (int64 with x64), unsigned ones in uint32; float16 and bfloat16 add up in float32, then round.
        out: not supported; None.
        keepdims: axes stay at size 1.
        initial: a scalar that is added.
        where: booleans, which broadcast; what is False counts as 0.
        promote_integers: False adds small integers up in their own dtype.

    >>> x = jnp.array([[1., 2.], [3., 4.]])
    >>> jnp.sum(x), jnp.sum(x, axis=0), jnp.sum(x, axis=1, keepdims=True).shape
    (Array(10., dtype=float32), Array([4., 6.], dtype=float32), (2, 1))
    >>> jnp.sum(x, where=x > 1, initial=10.)
    Array(19., dtype=float32)
    >>> jnp.sum(jnp.full(3, 100, jnp.int8)), jnp.sum(jnp.full(3, 100, jnp.int8), dtype=jnp.int8)
    (Array(300, dtype=int32), Array(44, dtype=int8))
    """
    return reduction("sum", SUM, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """The product over `axis`; axes, dtypes, `initial` (a factor) and `where` as for `sum`.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1), jnp.prod(jnp.array([]))
    (Array([ 2, 12], dtype=int32), Array(1., dtype=float32))
    """
    return reduction("prod", PROD, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The maximum over an axis, in the dtype of `a`; NaN where there is a NaN.

    Where the compiler divides arrays over CPU devices, a NaN among thousands may be left out, as in JAX.

    Args:
        axis: an int, a tuple of them, or None for all axes.
        out: not supported; None.
        keepdims: axes stay at size 1.
        initial: a lower bound of the result.
        where: booleans, which broadcast; what is False is left out.
    Raises:
        ValueError: for an empty axis, or a `where`, without `initial`.

    >>> x = jnp.array([[1, 5], [7, 3]])
    >>> jnp.max(x), jnp.max(x, axis=0), jnp.max(x, where=x < 6, initial=0)
    (Array(7, dtype=int32), Array([7, 5], dtype=int32), Array(5, dtype=int32))
    >>> jax.grad(jnp.max)(jnp.array([2., 5., 5.]))       # equal ones share the slope
    Array([0. , 0.5, 0.5], dtype=float32)
    """
    return reduction("max", MAX, a, axis, None, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The minimum over an axis, in the dtype of `a`; NaN where there is a NaN.

    Where the compiler divides arrays over CPU devices, a NaN among thousands may be left out, as in JAX.

    What it takes and raises is as for `max`; `initial` is an upper bound of the result.

    >>> x = jnp.array([[1, 5], [7, 3]])
    >>> jnp.min(x), jnp.min(x, axis=1, keepdims=True).tolist(), jnp.min(jnp.array([1., jnp.nan]))
    (Array(1, dtype=int32), [[1], [3]], Array(nan, dtype=float32))
    """
    return reduction("min", MIN, a, axis, None, out, keepdims, initial, where)


def largest_number(a, axis):
    """The maximum, or -inf, with `axis` kept, for terms that are NaN anyway: it may be left out here."""
    return reduction("max", LARGEST_NUMBER, a, axis, None, None, True, -np.inf, None)


amax, amin = renamed(max, "amax"), renamed(min, "amin")


def minmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """(minimum, maximum) over an axis.

    What it takes is as for `max`; `initial` is a value for both, or a pair (for min, for max).

    >>> jnp.minmax(jnp.array([[3., 1.], [2., 5.]]), axis=0)
    (Array([2., 1.], dtype=float32), Array([3., 5.], dtype=float32))
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return (reduction("minmax", MIN, a, axis, None, out, keepdims, low, where),
            reduction("minmax", MAX, a, axis, None, out, keepdims, high, where))


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Are all elements along `axis` nonzero?  NaN counts as nonzero.

    The result is boolean, True for no elements.  Arguments are those of `max`.

    >>> x = jnp.array([[1, 2], [3, 0]])
    >>> jnp.all(x), jnp.all(x > 0, axis=0), jnp.all(jnp.array([]))
    (Array(False, dtype=bool), Array([ True, False], dtype=bool), Array(True, dtype=bool))
    """
    return reduction("all", ALL, a, axis, dtypes.bool_, out, keepdims, None, where)


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Is any element along `axis` nonzero?  NaN counts as nonzero.

    The result is boolean, False for no elements.  Arguments are those of `max`.

    >>> x = jnp.array([[0, 0], [3, 0]])
    >>> jnp.any(x), jnp.any(x > 0, axis=0), jnp.any(jnp.array([]))
    (Array(True, dtype=bool), Array([ True, False], dtype=bool), Array(False, dtype=bool))
    """
    return reduction("any", ANY, a, axis, dtypes.bool_, out, keepdims, None, where)


@composite(static=("axis", "keepdims"))
def count_nonzero(a, axis=None, keepdims=False):
    """The number of nonzero elements along `axis`, as int32 (int64 with x64).

    >>> jnp.count_nonzero(jnp.array([[1, 0, 2], [0, 0, 3]]), axis=0)
    Array([1, 0, 2], dtype=int32)
    """
    check_arraylike("count_nonzero", a)
    return sum(ne(cast(a, dtype_of(a)), 0) if dtype_of(a) != dtypes.bool_ else a, axis, keepdims=keepdims)


@composite(static=("axis", "out", "keepdims"))
def ptp(a, axis=None, out=None, keepdims=False):
    """The range, maximum less minimum, over `axis`.

    The dtype is that of `a`, so that small integers may wrap around.

    >>> jnp.ptp(jnp.array([[3, 9, 4], [1, 1, 1]]), axis=1)
    Array([6, 0], dtype=int32)
    """
    no_out("ptp", out)
    check_arraylike("ptp", a)
    return sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# --- ignoring nan ---------------------------------------------------------------------------------

@composite(static=("reducer", "fill", "options", "nan_if_none"))
def _without_nan(a, initial, where, reducer, fill, options, nan_if_none):
    options, a = dict(options), cast(a, dtype_of(a))
    missing = is_nan(a)
    out = reducer(select(missing, fill, a), initial=initial, where=where, **options)
    if not nan_if_none:
        return out
    return select(all(missing, options["axis"], keepdims=options["keepdims"]), np.nan, out)


def _nan_reduction(name, reducer, fill, a, axis, out, keepdims, initial, where, nan_if_none=False, **options):
    no_out(name, out)
    check_arraylike(name, a)
    if not dtypes.is_inexact(dtype_of(a)):
        return reducer(a, axis, keepdims=keepdims, initial=initial, where=where, **options)
    options |= {"axis": reduced_axes(axis, ndim(a)), "keepdims": bool(keepdims)}
    return _without_nan(a, initial, where, reducer, fill, tuple(options.items()),
                        nan_if_none and initial is None)


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The sum over `axis` of the elements that are not NaN; 0 where there are none.

    >>> x = jnp.array([[1., jnp.nan], [jnp.nan, jnp.nan]])
    >>> jnp.nansum(x), jnp.nansum(x, axis=1)
    (Array(1., dtype=float32), Array([1., 0.], dtype=float32))
    """
    return _nan_reduction("nansum", sum, 0.0, a, axis, out, keepdims, initial, where, dtype=dtype)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The product over `axis` of the elements that are not NaN; 1 where there are none.

    >>> jnp.nanprod(jnp.array([[2., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([6., 1.], dtype=float32)
    """
    return _nan_reduction("nanprod", prod, 1.0, a, axis, out, keepdims, initial, where, dtype=dtype)


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The maximum over `axis` of the elements that are not NaN; NaN where there are none, without a warning.

    Raises:
        ValueError: for an empty axis without `initial`.

    >>> jnp.nanmax(jnp.array([[2., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([ 3., nan], dtype=float32)
    """
    return _nan_reduction("nanmax", max, -np.inf, a, axis, out, keepdims, initial, where, True)


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The minimum over `axis` of the elements that are not NaN; NaN where there are none, without a warning.

    Raises:
        ValueError: for an empty axis without `initial`.

    >>> jnp.nanmin(jnp.array([[2., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([ 2., nan], dtype=float32)
    """
    return _nan_reduction("nanmin", min, np.inf, a, axis, out, keepdims, initial, where, True)


# --- positions of extremes ------------------------------------------------------------------------

def _flat(a, axis, name):
    """(array with at least the axis to search, that axis): all of a flattened one for None."""
    check_arraylike(name, a)
    aval = aval_of(a)
    if axis is None:
        a, axis, size = reshape(a, (aval.size,)), 0, aval.size
    else:
        axis = canonical_axis(axis, aval.ndim)
        size = aval.shape[axis]
    if not size:
        raise ValueError(f"attempt to get {name} of an empty sequence: shape {aval.shape}, axis {axis}")
    return a, axis


def _position(name, primitive, a, axis, out, keepdims):
    no_out(name, out)
    rank, everything = ndim(a), axis is None
    a, axis = _flat(a, axis, name)
    result = primitive.bind(a, axes=(axis,), index_dtype=dtypes.canonicalize(dtypes.int64))
    if keepdims:
        result = reshape(result, (1,) * rank) if everything else expand_kept(result, (axis,), shape_of(a))
    return result


def argmax(a, axis=None, out=None, keepdims=None):
    """The index of the maximum along `axis`, of the flattened array for None; of the first NaN, if any.

    The first one, if there are several.  The dtype is int32 (int64 with x64).

    Raises:
        ValueError: for an empty axis.

    >>> x = jnp.array([[1, 9, 9], [7, 3, 5]])
    >>> jnp.argmax(x), jnp.argmax(x, axis=1), jnp.argmax(x, axis=0, keepdims=True)
    (Array(1, dtype=int32), Array([1, 0], dtype=int32), Array([[1, 0, 0]], dtype=int32))
    """
    return _position("argmax", reduce.argmax_p, a, axis, out, keepdims)


def argmin(a, axis=None, out=None, keepdims=None):
    """The index of the minimum along `axis`, of the flattened array for None; of the first NaN, if any.

    The first one, if there are several.  The dtype is int32 (int64 with x64).

    Raises:
        ValueError: for an empty axis.

    >>> x = jnp.array([[4, 9, 9], [7, 3, 5]])
    >>> jnp.argmin(x), jnp.argmin(x, axis=1)
    (Array(4, dtype=int32), Array([0, 1], dtype=int32))
    """
    return _position("argmin", reduce.argmin_p, a, axis, out, keepdims)


@composite(static=("name", "position", "fill", "axis", "out", "keepdims"))
def _nan_argument(name, position, fill, a, axis, out, keepdims):
    no_out(name, out)
    check_arraylike(name, a)
    if not dtypes.is_inexact(dtype_of(a)):
        return position(a, axis, keepdims=keepdims)
    axis = None if axis is None else canonical_axis(axis, ndim(a))
    a = cast(a, dtype_of(a))
    missing = is_nan(a)
    out = position(select(missing, fill, a), axis, keepdims=keepdims)
    return select(all(missing, axis, keepdims=keepdims), -1, out)


def nanargmax(a, axis=None, out=None, keepdims=None):
    """The index of the maximum of the elements that are not NaN; -1 where there are none.

    NumPy raises a ValueError where all are NaN; a compiled program cannot.

    >>> jnp.nanargmax(jnp.array([[2., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([ 2, -1], dtype=int32)
    """
    return _nan_argument("nanargmax", argmax, -np.inf, a, axis, out, keepdims)


def nanargmin(a, axis=None, out=None, keepdims=None):
    """The index of the minimum of the elements that are not NaN; -1 where there are none.

    NumPy raises a ValueError where all are NaN; a compiled program cannot.

    >>> jnp.nanargmin(jnp.array([[2., jnp.nan, 3.], [jnp.nan, jnp.nan, jnp.nan]]), axis=1)
    Array([ 0, -1], dtype=int32)
    """
    return _nan_argument("nanargmin", argmin, np.inf, a, axis, out, keepdims)


# --- running sums and products --------------------------------------------------------------------

@composite(static=("primitive", "axis", "dtype", "fill", "first"))
def _running(a, primitive, axis, dtype, fill, first):
    """`fill` replaces NaN and `first` goes before the results, unless None."""
    if fill is not None and dtypes.is_inexact(dtype_of(a)):
        a = cast(a, dtype_of(a))
        a = select(is_nan(a), fill, a)
    counting = dtypes.is_bool(dtype)
    a = cast(cast(a, dtypes.bool_), dtypes.canonicalize(dtypes.int64)) if counting else cast(a, dtype)
    if axis is None:
        a, axis = reshape(a, (aval_of(a).size,)), 0
    out = primitive.bind(a, axis=axis, reverse=False)
    if first is not None:
        shape = tuple(1 if i == axis else n for i, n in enumerate(shape_of(out)))
        out = concatenate_p.bind(full(shape, first, dtype_of(out)), out, dimension=axis)
    return convert(out, dtype) if counting else out


def _cumulative(name, primitive, a, axis, dtype, out, fill=None, promote_integers=False, first=None):
    no_out(name, out)
    check_arraylike(name, a)
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, name)
    else:
        dtype = dtype_of(a)
        dtype = promoted_integer(dtype) if promote_integers or dtypes.is_bool(dtype) else dtype
    if axis is not None and ndim(a) == 0 and canonical_axis(axis, 1) == 0:
        axis = None     # of a scalar, as of [scalar]
    axis = None if axis is None else canonical_axis(axis, ndim(a))
    return _running(a, primitive, axis, dtype, fill, first)


def cumsum(a, axis=None, dtype=None, out=None):
    """The running sum along `axis`, of the flattened array for None, in `dtype`.

    Integers keep their dtype and may wrap (NumPy widens them); bools count in int32 (int64 with x64).

    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]])), jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0).tolist()
    (Array([ 1,  3,  6, 10], dtype=int32), [[1, 2], [4, 6]])
    >>> jnp.cumsum(jnp.array([100, 100], jnp.int8)), jnp.cumsum(jnp.array([True, False, True]))
    (Array([100, -56], dtype=int8), Array([1, 1, 2], dtype=int32))
    """
    return _cumulative("cumsum", cumsum_p, a, axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    """The running product along `axis`, of the flattened array for None.

    Dtypes as for `cumsum`.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4])), jnp.cumprod(jnp.array([0.5, 0.5, 0.5]))
    (Array([ 1,  2,  6, 24], dtype=int32), Array([0.5  , 0.25 , 0.125], dtype=float32))
    """
    return _cumulative("cumprod", cumprod_p, a, axis, dtype, out)


def nancumsum(a, axis=None, dtype=None, out=None):
    """`cumsum` with 0 in place of NaN.

    >>> jnp.nancumsum(jnp.array([1., jnp.nan, 2.]))
    Array([1., 1., 3.], dtype=float32)
    """
    return _cumulative("nancumsum", cumsum_p, a, axis, dtype, out, fill=0.0)


def nancumprod(a, axis=None, dtype=None, out=None):
    """`cumprod` with 1 in place of NaN.

    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _cumulative("nancumprod", cumprod_p, a, axis, dtype, out, fill=1.0)


def _array_api(name, primitive, x, axis, dtype, first, promote_integers):
    check_arraylike(name, x)
    if ndim(x) == 0:
        raise ValueError(f"{name}: The input must be non-scalar to take a cumulative "
                         f"{'sum' if name.endswith('sum') else 'product'}, got a scalar")
    if axis is None:
        if ndim(x) > 1:
            raise ValueError(f"The input array has rank {ndim(x)}, however axis was not set to an explicit "
                             "value. The axis argument is only optional for one-dimensional arrays.")
        axis = 0
    return _cumulative(name, primitive, x, axis, dtype, None, promote_integers=promote_integers, first=first)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The running sum along an axis; small integers become int32.

    Args:
        axis: the axis, which may be left out for a vector only.
        dtype: what to add up in and to give.
        include_initial: put a 0 before the sums.
    Raises:
        ValueError: for a scalar.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3], jnp.int8), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _array_api("cumulative_sum", cumsum_p, x, axis, dtype, 0 if include_initial else None, True)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The running product along an axis; integers keep their dtype.

    Args:
        axis: the axis, which may be left out for a vector only.
        dtype: what to multiply in and to give.
        include_initial: put a 1 before the products.
    Raises:
        ValueError: for a scalar.

    >>> jnp.cumulative_prod(jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1, include_initial=True)
    Array([[  1,   1,   2,   6],
           [  1,   4,  20, 120]], dtype=int32)
    """
    return _array_api("cumulative_prod", cumprod_p, x, axis, dtype, 1 if include_initial else None, False)
