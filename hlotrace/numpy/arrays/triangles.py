"""Diagonals and triangles of matrices, and matrices made of them: eye, tri, tril, diag, vander."""
import operator

from ...api.composite import composite
from ...core import dtypes
from ...core.array import Array
from ...core.avals import ShapedArray, aval_of
from ...lax import shapes as lax
from ...primitives.arrays.elementwise import add, convert, eq, ge, select, sub
from ...primitives.arrays.shape import broadcast_in_dim, reshape
from ...primitives.arrays.slicing import iota_p, pad_p, slice_p
from ...primitives.arrays.transcendental import power
from ...primitives.common import canonical_axis, np, scalar, static_int
from ...runtime.array_impl import ArrayImpl
from ..util import broadcast_to_shape, cast, check_arraylike, ndim, shape as shape_of
from .creation import HOST_BYTES, default_dtype, known_array, made_on, staging

__all__ = ["diag", "diagflat", "diagonal", "eye", "identity", "tri", "tril", "triu", "vander"]


def _positions(n, m, k):
    """Row numbers plus k, and column numbers, of an n x m matrix."""
    rows, columns = (iota_p.bind(dtype=dtypes.int32, shape=(n, m), dimension=i) for i in range(2))
    k = scalar(k, dtypes.int32) if isinstance(k, int) else broadcast_to_shape(k, (n, m))
    return add(rows, k), columns


def _sizes(name, n, m):
    """Both sizes of a matrix, which is square where `m` is None."""
    return [static_int(v, f"{name}: a size", f"; the sizes are two arguments, as in jnp.{name}(3, 4)")
            for v in (n, n if m is None else m)]


def _mask(name, n, m, k, compare, dtype):
    """The matrix compare(row + k, column), as ones and zeros of a dtype."""
    n, m = _sizes(name, n, m)
    if n < 0 or m < 0:
        raise ValueError(f"{name}: negative sizes are not allowed, got {n} and {m}")
    if isinstance(k, Array) and not isinstance(k, ArrayImpl):
        k = cast(k, dtypes.int32)
    else:
        k = operator.index(k)
        if not staging() and n * m <= HOST_BYTES:
            mask = (np.equal if compare is eq else np.greater_equal)(np.arange(n)[:, None] + k, np.arange(m))
            return known_array(mask.astype(dtype), ShapedArray((n, m), dtype))
    return convert(compare(*_positions(n, m, k)), dtype)


def eye(N, M=None, k=0, dtype=None, *, device=None):
    """The N x M matrix with ones on the k-th diagonal.

    Args:
        M: the number of columns, N by default.
        k: which diagonal, above the main one for k > 0.
        dtype: the default float by default.
        device: a Device or a Sharding, where the result is placed.

    >>> jnp.eye(2).tolist(), jnp.eye(2, 3, k=1, dtype=int).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0], [0, 0, 1]])
    """
    dtype = default_dtype(dtype, "eye")
    aval = ShapedArray(tuple(max(0, n) for n in _sizes("eye", N, M)), dtype)
    return made_on(lambda: _mask("eye", N, M, k, eq, dtype), aval, device, None, "eye")


def identity(n, dtype=None):
    """The n x n identity matrix.

    Args:
        dtype: the default float by default.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """The N x M matrix with ones on and below the k-th diagonal; float32 unless `dtype` is given.

    >>> jnp.tri(3).tolist(), jnp.tri(2, 3, k=1, dtype=int).tolist()
    ([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], [[1, 1, 0], [1, 1, 1]])
    """
    dtype = dtypes.check_user_dtype(dtypes.float32 if dtype is None else dtype, "tri")
    return _mask("tri", N, M, k, ge, dtype)


def tril(m, k=0):
    """`m` with zeros above the k-th diagonal of its last two axes.

    Raises:
        ValueError: for less than two axes.

    >>> jnp.tril(jnp.arange(1, 10).reshape(3, 3)).tolist(), jnp.tril(jnp.ones((2, 2), int), k=-1).tolist()
    ([[1, 0, 0], [4, 5, 0], [7, 8, 9]], [[0, 0], [1, 0]])
    """
    return _triangle("tril", m, k, True)


def triu(m, k=0):
    """`m` with zeros below the k-th diagonal of its last two axes.

    Raises:
        ValueError: for less than two axes.

    >>> jnp.triu(jnp.arange(1, 10).reshape(3, 3)).tolist(), jnp.triu(jnp.ones((2, 2), int), k=1).tolist()
    ([[1, 2, 3], [0, 5, 6], [0, 0, 9]], [[0, 1], [0, 0]])
    """
    return _triangle("triu", m, k, False)


@composite(static=("name", "k", "lower"))
def _triangle(name, m, k, lower):
    check_arraylike(name, m)
    if ndim(m) < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {shape_of(m)}")
    k = operator.index(k) - (not lower)
    shape = shape_of(m)
    mask = broadcast_to_shape(ge(*_positions(*shape[-2:], k)), shape)
    zero = lax.full(shape, scalar(0, aval_of(m).dtype))
    return select(mask, m, zero) if lower else select(mask, zero, m)


@composite(static=("offset", "axis1", "axis2"))
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The entries a[i, i + offset] of two axes, as a last axis.

    >>> x = jnp.arange(6).reshape(2, 3)
    >>> jnp.diagonal(x), jnp.diagonal(x, offset=1), jnp.diagonal(jnp.ones((2, 3, 4))).shape
    (Array([0, 4], dtype=int32), Array([1, 5], dtype=int32), (4, 2))
    """
    check_arraylike("diagonal", a)
    if ndim(a) < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {shape_of(a)}")
    axis1, axis2 = canonical_axis(axis1, ndim(a), "axis1"), canonical_axis(axis2, ndim(a), "axis2")
    if axis1 == axis2:
        raise ValueError("axis1 and axis2 cannot be same")
    offset, axes = operator.index(offset), (axis1, axis2)
    # of the flattened matrix, it is every (m + 1)-th element
    a = lax.transpose(a, (*[i for i in range(ndim(a)) if i not in axes], *axes))
    *lead, n, m = a.shape
    first = offset if offset >= 0 else -offset * m
    size = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    stop = first + (size - 1) * (m + 1) + 1 if size else 0
    return slice_p.bind(reshape(a, (*lead, n * m)), start_indices=(*(0,) * len(lead), first if size else 0),
                        limit_indices=(*lead, stop), strides=(*(1,) * len(lead), m + 1))


def diag(v, k=0):
    """The matrix with the vector `v` on its k-th diagonal, or the k-th diagonal of the matrix `v`.

    Raises:
        ValueError: for another number of axes.

    >>> jnp.diag(jnp.array([1, 2]), k=1).tolist(), jnp.diag(jnp.array([[1, 2], [3, 4]]))
    ([[0, 1, 0], [0, 0, 2], [0, 0, 0]], Array([1, 4], dtype=int32))
    """
    check_arraylike("diag", v)
    if ndim(v) == 2:
        return diagonal(v, k)
    if ndim(v) != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {shape_of(v)}; jnp.diagonal takes more "
                         "axes")
    return _diag(v, k=operator.index(k))


@composite(static=("k",))
def _diag(v, *, k):
    n, aval = shape_of(v)[0] + abs(k), aval_of(v)
    zero = scalar(0, aval.dtype)
    padded = pad_p.bind(v, zero, padding_config=((max(0, -k), max(0, k), 0),))
    filled = select(eq(*_positions(n, n, k)), lax.broadcast_in_dim(padded, (n, n), (0,)),
                    lax.full((n, n), zero))
    return convert(filled, aval.dtype, aval.weak_type)


def diagflat(v, k=0):
    """The matrix with the elements of `v` on its k-th diagonal.

    >>> jnp.diagflat(jnp.array([[1, 2], [3, 4]]), k=-1)
    Array([[0, 0, 0, 0, 0],
           [1, 0, 0, 0, 0],
           [0, 2, 0, 0, 0],
           [0, 0, 3, 0, 0],
           [0, 0, 0, 4, 0]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    return convert(_diag(reshape(v, (aval_of(v).size,)), k=operator.index(k)), aval_of(v).dtype)


@composite(static=("N", "increasing"))
def vander(x, N=None, increasing=False):
    """The matrix of powers of the vector `x`: columns x**(N-1), ..., x, 1, or the other way round.

    >>> jnp.vander(jnp.array([1, 2, 3])).tolist(), jnp.vander(jnp.array([2, 3]), 4, increasing=True).tolist()
    ([[1, 1, 1], [4, 2, 1], [9, 3, 1]], [[1, 2, 4, 8], [1, 3, 9, 27]])
    """
    check_arraylike("vander", x)
    if ndim(x) != 1:
        raise ValueError(f"x must be a one-dimensional array, got shape {shape_of(x)}")
    n = shape_of(x)[0] if N is None else operator.index(N)
    if n < 0:
        raise ValueError(f"N must be nonnegative, got {n}")
    dtype, shape = aval_of(x).dtype, (shape_of(x)[0], n)
    powers = iota_p.bind(dtype=dtype, shape=(n,), dimension=0)
    powers = powers if increasing else sub(n - 1, powers)
    return power(broadcast_in_dim(x, shape, (0,)), broadcast_in_dim(powers, shape, (1,)))
