"""Where conditions hold: `where`, `nonzero` and its kin, choices between values."""
from ...api.composite import composite
from ...api.vmap import vmap
from ...core import dtypes, errors
from ...core.array import Array
from ...core.symbolic.dimension import as_size, surely
from ...core.trace import concrete_or_error, is_concrete
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.cumulative import cumsum_p
from ...primitives.arrays.elementwise import add, convert, div, lt, ne, rem_p
from ...primitives.arrays.shape import broadcast_in_dim, full, reshape
from ...primitives.arrays.slicing import concatenate_p
from ...primitives.common import np, prod, shape_of
from ...runtime.devices import transfer
from ..arrays.creation import asarray
from ..arrays.shaping import broadcast_to, ravel
from ..reductions.sorting import flat, index_dtype, positions, searchsorted
from ..util import (
    broadcast_to_shape, cast, check_arraylike, dtype_of, joint_shape, ndim, promote_dtypes, shape,
    split_alike)

__all__ = ["argwhere", "flatnonzero", "nonzero", "piecewise", "select", "where"]


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """x where the condition holds (is not 0), else y; all three broadcast.

    x and y get one dtype.  Both are computed: to keep NaN out of a derivative, make operands safe first.

    With the condition alone: `nonzero(condition, size=size, fill_value=fill_value)`.

    >>> x = jnp.array([-4., 0., 9.])
    >>> jnp.where(x > 0, x, 0)
    Array([0., 0., 9.], dtype=float32)
    >>> jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0).sum())(x)
    Array([0.        , 0.        , 0.16666667], dtype=float32)
    >>> jnp.where(x), jnp.where(x, size=3, fill_value=-1)
    ((Array([0, 2], dtype=int32),), (Array([ 0,  2, -1], dtype=int32),))
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments of where cannot be used with x and y: they are for "
                         "where(condition), the indices of what is true")
    if (isinstance(condition, Array) and isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval
            and condition.aval.shape == x.aval.shape and condition.aval.dtype == dtypes.bool_):
        return e.select_n_p.bind(condition, y, x)
    return _where(condition, x, y)


@composite
def _where(condition, x, y):
    check_arraylike("where", condition, x, y)
    if not dtypes.is_bool(dtype_of(condition)):
        condition = ne(condition, 0)
    x, y = promote_dtypes(x, y)
    target = joint_shape(shape(condition), shape(x), shape(y))
    spread = not shape(condition) == shape(x) == shape(y)
    x, y = broadcast_to_shape(x, target), broadcast_to_shape(y, target)
    if ndim(condition):
        condition = broadcast_to_shape(condition, target)
    return e.select_n_p.bind(*split_alike(condition, y, x) if spread else (condition, y, x))


# --- positions of what is true --------------------------------------------------------------------

def check_known(x):
    """ConcretizationTypeError for a value that decides how many results there are, under jit."""
    if not is_concrete(x):
        raise errors.sized_by_values(x)


def known(x):
    """The NumPy value that decides how many results there are.  ConcretizationTypeError under jit."""
    check_known(x)
    return np.asarray(transfer.whole(concrete_or_error(x)))


def checked_size(size):
    size = as_size(size)
    if surely(size, high=-1):
        raise ValueError(f"size must be a non-negative int, got {size}")
    return size


def where_true(mask, size, absent):
    """The first `size` positions at which a vector of bool is true; `absent` where there are no more."""
    running = cumsum_p.bind(convert(mask, dtypes.int32), axis=0, reverse=False)
    place = convert(searchsorted(running, add(positions((size,), 0, dtypes.int32), 1)), index_dtype())
    return e.select(lt(place, shape_of(mask)[0]), place, absent)


@composite(static=("size",))
def _nonzero(a, fill_values, size):
    a = cast(a, dtype_of(a))
    dims = shape_of(a)
    if not prod(dims):
        return tuple(broadcast_in_dim(cast(f, index_dtype()), (size,), ()) for f in fill_values)
    mask = flat(a if dtypes.is_bool(dtype_of(a)) else ne(a, 0))
    place, result = where_true(mask, size, -1), []
    for d, fill_value in enumerate(fill_values):
        below = prod(dims[d + 1:])
        coordinate = rem_p.bind(div(place, below), full((size,), dims[d], index_dtype()))
        filling = broadcast_in_dim(cast(fill_value, index_dtype()), (size,), ())
        result.append(e.select(lt(place, 0), filling, coordinate))
    return tuple(result)


def nonzero(a, *, size=None, fill_value=None):
    """The indices of the nonzero elements, a tuple with one int32 vector for each axis.

    Args:
        size: how many, the first ones, for use under jit.
        fill_value: what fills the result up to `size`, 0 by default; a number, or one for each axis.
    Raises:
        ConcretizationTypeError: under jit without `size`.

    >>> jnp.nonzero(jnp.array([[0, 7], [8, 0]]))
    (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    >>> jax.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1))(jnp.array([0, 5, 6, 0]))
    (Array([ 1,  2, -1], dtype=int32),)
    """
    check_arraylike("nonzero", a)
    if not ndim(a):
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
                         "instead.")
    if size is None:
        return tuple(transfer.beside(a, i.astype(index_dtype())) for i in np.nonzero(known(a)))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * ndim(a)
    if len(fills) != ndim(a) or any(f is not None and ndim(f) for f in fills):
        raise ValueError(f"fill_value must be a scalar or a tuple of length {ndim(a)}; got {fill_value}")
    return _nonzero(a, tuple(0 if f is None else f for f in fills), checked_size(size))


def flatnonzero(a, *, size=None, fill_value=None):
    """The indices of the nonzero elements of the flattened array; `size` and `fill_value` as for `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[0, 7], [8, 0]]))
    Array([1, 2], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    return nonzero(flat(a), size=size, fill_value=fill_value)[0]


def argwhere(a, *, size=None, fill_value=None):
    """The indices of the nonzero elements, one row each; `size` and `fill_value` as for `nonzero`.

    >>> jnp.argwhere(jnp.array([[0, 7], [8, 9]]))
    Array([[0, 1],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    found = nonzero(a if ndim(a) else flat(a), size=size, fill_value=fill_value)
    columns = [reshape(i, (*shape_of(i), 1)) for i in found[:ndim(a)]]
    if columns:
        return concatenate_p.bind(*columns, dimension=1)
    return full((*shape_of(found[0]), 0), 0, index_dtype())


# --- choices --------------------------------------------------------------------------------------

@composite
def select(condlist, choicelist, default=0):
    """Elementwise, the choice of the first condition that holds; `default` where none does.

    All arrays broadcast, and the choices are promoted to one dtype.

    Args:
        choicelist: the same number of arrays.
        default: a scalar.

    >>> x = jnp.array([-2, 1, 5])
    >>> jnp.select([x < 0, x > 3], [-x, 10 * x], default=-1)
    Array([ 2, -1, 50], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs "
                         f"{len(choicelist)}): give one choice for each condition, and default= for where "
                         "none holds")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    *choices, out = promote_dtypes(*choicelist, default)
    alike = split_alike(*condlist, *choices)
    conditions, choices = alike[:len(condlist)], alike[len(condlist):]
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        out = where(condition, choice, out)
    return out


def piecewise(x, condlist, funclist, *args, **kw):
    """Each function of `funclist` where its condition holds; where several hold, the last one counts.

    Args:
        funclist: as many functions, which are mapped over the elements of `x`, or numbers, which are
            constants; one more is for the rest (default: 0).

    >>> x = jnp.array([-2., 0., 3.])
    >>> jnp.piecewise(x, [x < 0, x > 0], [lambda v, by: -v, lambda v, by: by * v, 7], by=10)
    Array([ 2.,  7., 30.], dtype=float32)
    """
    check_arraylike("piecewise", x)
    x = asarray(x)
    conditions = [broadcast_to(asarray(c, bool), x.shape) for c in condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or "
                         f"{len(conditions) + 1} functions are expected; got {len(functions)}")
    out = functions.pop() if len(functions) > len(conditions) else 0

    def value(function):
        if not callable(function):
            if np.ndim(function):
                raise ValueError(f"what is not a function must be a scalar, got {function!r:.60} of shape "
                                 f"{np.shape(function)}")
            return broadcast_to(asarray(function).astype(x.dtype), x.shape)
        each = vmap(lambda v: asarray(function(v, *args, **kw)).astype(x.dtype))
        return reshape(each(ravel(x)), x.shape)
    out = value(out)
    for condition, function in zip(conditions, functions):
        out = where(condition, value(function), out)
    return out
