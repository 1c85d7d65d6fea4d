"""NumPy's products of two arrays: matmul and its kin, tensordot, kron, cross, trace, convolve.

Each names the axes of its operands by letters and leaves the rest to `primitives.arrays.contract.contract`.
"""
import functools
import operator
import string

from ..api.composite import composite
from ..core import dtypes, errors
from ..core.avals import aval_of
from ..core.symbolic.dimension import max_dim, min_dim
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays.contract import contract, unreduced_dot
from ..primitives.arrays.conv import ConvDimensionNumbers, conv_general_dilated_p
from ..primitives.arrays.elementwise import conj_p, convert, mul, sub
from ..primitives.arrays.precision import canonical_precision
from ..primitives.arrays.reduce import reduce_or_p
from ..primitives.arrays.shape import move_axis, reduce_sum, reshape, squeeze_p
from ..primitives.arrays.slicing import concatenate_p, rev_p, slice_along, slice_p, zero_padded
from ..primitives.common import canonical_axes, canonical_axis, np, prod
from .indexing.conditions import where
from .util import (
    broadcast_to_shape, check_arraylike, joint_shape, ndim, no_out, promote_dtypes, promote_dtypes_inexact,
    shape as shape_of)

LETTERS = string.ascii_letters


# --- two operands ---------------------------------------------------------------------------------

def _for_result(a, b, out_sharding, what):
    """The operands, and what to compute their product by or None, for a result with this sharding."""
    if out_sharding is None:
        return a, b, None
    unreduced = unreduced_axes(out_sharding, what, a, b)
    return (a, b, functools.partial(unreduced_dot, unreduced)) if unreduced else (*over_auto_axes(a, b), None)


@composite(static=("a_labels", "b_labels", "out", "precision", "preferred", "conjugate", "dot"))
def _contract(a, b, a_labels, b_labels, out, precision, preferred, conjugate, dot=None):
    a, b = promote_dtypes(a, b)
    if conjugate and dtypes.is_complex(aval_of(a).dtype):
        a = conj_p.bind(a)
    sizes = dict(zip(a_labels + b_labels, shape_of(a) + shape_of(b)))
    for labels, x in ((a_labels, a), (b_labels, b)):      # an axis of size 1 gives way to a longer one
        sizes.update((c, n) for c, n in zip(labels, shape_of(x)) if n != 1)
    (a, a_labels), (b, b_labels) = (drop_singletons(x, c, sizes) for x, c in ((a, a_labels), (b, b_labels)))
    return contract(a, a_labels, b, b_labels, out, precision, preferred or aval_of(a).dtype, dot)


def drop_singletons(x, labels, sizes):
    """`x` without axes of size 1 whose letter is longer in another operand."""
    axes = [i for i, (c, n) in enumerate(zip(labels, shape_of(x))) if n == 1 != sizes[c]]
    if not axes:
        return x, labels
    return squeeze_p.bind(x, dimensions=tuple(axes)), "".join(c
                                                              for i, c in enumerate(labels) if i not in axes)


def _product(name, a, a_labels, b, b_labels, out, precision=None, preferred=None, conjugate=False, dot=None):
    """The sum of a * b over the letters that `out` lacks; capital letters broadcast, others must agree."""
    a_shape, b_shape = shape_of(a), shape_of(b)
    sizes = dict(zip(a_labels, a_shape))
    for j, (c, n) in enumerate(zip(b_labels, b_shape)):
        m = sizes.get(c, n)
        if m != n and not (c.isupper() and 1 in (m, n)):
            i = a_labels.index(c)
            rule = "batch axes must be equal or 1" if c.isupper() else (
                f"dot_general requires contracting dimensions to have the same shape, got ({m},) and ({n},)")
            raise errors.ShapeError(
                f"{name}: {rule}: axis {i} of the first operand (shape {a_shape}) has size {m} but axis {j} "
                f"of the second (shape {b_shape}) has size {n}, which must be equal "
                f"('{a_labels},{b_labels}->{out}')")
    if preferred is not None:
        preferred = dtypes.check_user_dtype(preferred, name)
    return _contract(a, b, a_labels, b_labels, out, canonical_precision(precision), preferred, conjugate, dot)


def _batch_letters(a_rank, b_rank):
    """Letters for batch axes that broadcast against each other: of a, of b, of the result."""
    letters = string.ascii_uppercase[:max(a_rank, b_rank, 0)]
    return letters[len(letters) - max(a_rank, 0):], letters[len(letters) - max(b_rank, 0):], letters


def _need_rank(name, rank, *operands):
    for i, (x, n) in enumerate(zip(operands, rank)):
        if ndim(x) < n:
            raise ValueError(f"{name}: operand {i} must have ndim at least {n}, but it has ndim {ndim(x)}; a "
                             "product with a scalar is written *")


def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Matrix product over the last two axes; leading axes broadcast.

    A vector is a row on the left, a column on the right.

    Args:
        precision: what `lax.dot_general` takes.
        preferred_element_type: the dtype to add up in and to give; else the promoted one.
    Raises:
        ValueError: for scalars.
        ShapeError: where the inner sizes differ.

    >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([[0, 1], [1, 0]])
    >>> jnp.matmul(a, b).tolist(), a @ jnp.array([1, 10])
    ([[2, 1], [4, 3]], Array([21, 43], dtype=int32))
    >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
    (5, 2, 4)
    >>> a @ jnp.ones(3)
    Traceback (most recent call last):
        ...
    hlotrace.errors.ShapeError: (a: int32[2,2]) @ (float32[3]): dot_general requires contracting ...
    """
    if out_sharding is None:
        return _matmul(a, b, precision, preferred_element_type)
    a, b, dot = _for_result(a, b, out_sharding, "jnp.matmul")
    return with_out_sharding(_matmul(a, b, precision, preferred_element_type, dot), out_sharding,
                             "jnp.matmul")


@composite(static=("precision", "preferred", "dot"))
def _matmul(a, b, precision, preferred, dot=None):
    check_arraylike("matmul", a, b)
    _need_rank("matmul", (1, 1), a, b)
    a_core, b_core = "mk"[ndim(a) == 1:], "kn"[:ndim(b)]
    a_batch, b_batch, batch = _batch_letters(ndim(a) - 2, ndim(b) - 2)
    if aval_of(a).explicit is not aval_of(b).explicit:
        from ..sharding.explicit import check_alike
        shared = [(i, b_batch.index(c)) for i, c in enumerate(a_batch) if c in b_batch]
        shared = [(i, j) for i, j in shared if a.shape[i] == b.shape[j]]
        if shared:
            check_alike("Incompatible types for matmul arguments", aval_of(a), aval_of(b), shared, ValueError)
    out = batch + a_core[:-1] + b_core[1:]
    return _product("matmul", a, a_batch + a_core, b, b_batch + b_core, out, precision, preferred, dot=dot)


def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """The sum over the last axis of a and the second to last (or only) axis of b; with a scalar, the product.

    For matrices it is `matmul`; for more axes the result has the other axes of a, then those of b.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4])), jnp.dot(jnp.ones((2, 3, 4)), jnp.ones((5, 4, 6))).shape
    (Array(11, dtype=int32), (2, 3, 5, 6))
    """
    if out_sharding is None:
        return _dot(a, b, precision, preferred_element_type)
    a, b, dot = _for_result(a, b, out_sharding, "jnp.dot")
    return with_out_sharding(_dot(a, b, precision, preferred_element_type, dot), out_sharding, "jnp.dot")


@composite(static=("precision", "preferred", "dot"))
def _dot(a, b, precision, preferred, dot=None):
    check_arraylike("dot", a, b)
    a_labels = LETTERS[:ndim(a)]
    b_labels = LETTERS[ndim(a):ndim(a) + ndim(b)]
    out = a_labels + b_labels
    if a_labels and b_labels:
        shared, axis = a_labels[-1], max(ndim(b) - 2, 0)
        out = a_labels[:-1] + b_labels[:axis] + b_labels[axis + 1:]
        b_labels = b_labels[:axis] + shared + b_labels[axis + 1:]
    return _product("dot", a, a_labels, b, b_labels, out, precision, preferred, dot=dot)


def vdot(a, b, *, precision=None, preferred_element_type=None):
    """The inner product of the flattened operands, a conjugated.

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 2]))
    Array(5.+0.j, dtype=complex64)
    """
    check_arraylike("vdot", a, b)
    a, b = (reshape(x, (prod(shape_of(x)),)) for x in (a, b))
    return _product("vdot", a, "k", b, "k", "", precision, preferred_element_type, conjugate=True)


def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """The inner products along `axis`, x1 conjugated; the other axes broadcast.

    >>> jnp.vecdot(jnp.array([[1., 2.], [3., 4.]]), jnp.array([1., 10.]))
    Array([21., 43.], dtype=float32)
    """
    check_arraylike("jnp.vecdot", x1, x2)
    _need_rank("vecdot", (1, 1), x1, x2)
    x1, x2 = (move_axis(x, canonical_axis(axis, ndim(x)), ndim(x) - 1) for x in (x1, x2))
    if shape_of(x1)[-1] != shape_of(x2)[-1]:
        raise ValueError(f"axes must match; got shapes {shape_of(x1)} and {shape_of(x2)} with axis={axis}")
    a, b, batch = _batch_letters(ndim(x1) - 1, ndim(x2) - 1)
    return _product("vecdot", x1, a + "k", x2, b + "k", batch, precision, preferred_element_type,
                    conjugate=True)


def _with_vectors(name, x1, x2, core1, core2, out, conjugate=False):
    """The product along "k", a letter of each operand's last axes; leading axes broadcast."""
    check_arraylike(name, x1, x2)
    _need_rank(name, (len(core1), len(core2)), x1, x2)
    axis1, axis2 = core1.index("k") - len(core1), core2.index("k") - len(core2)
    if shape_of(x1)[axis1] != shape_of(x2)[axis2]:
        raise ValueError(f"{name}: inconsistent size for core dimension 'n': {shape_of(x1)[axis1]} (axis "
                         f"{axis1} of shape {shape_of(x1)}) vs {shape_of(x2)[axis2]} (axis {axis2} of shape "
                         f"{shape_of(x2)})")
    a, b, batch = _batch_letters(ndim(x1) - len(core1), ndim(x2) - len(core2))
    return _product(name, x1, a + core1, x2, b + core2, batch + out, conjugate=conjugate)


def matvec(x1, x2, /):
    """Matrices (..., n, m) times vectors (..., m); leading axes broadcast.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _with_vectors("matvec", x1, x2, "mk", "k", "m")


def vecmat(x1, x2, /):
    """Conjugated vectors (..., n) times matrices (..., n, m); leading axes broadcast.

    >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    return _with_vectors("vecmat", x1, x2, "k", "kn", "n", conjugate=True)


def inner(a, b, *, precision=None, preferred_element_type=None):
    """The sum over the last axes of both operands; with a scalar, the product.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10])), jnp.inner(jnp.array([1, 2]), 3)
    (Array([21, 43], dtype=int32), Array([3, 6], dtype=int32))
    """
    check_arraylike("inner", a, b)
    a_labels, b_labels = LETTERS[:ndim(a)], LETTERS[ndim(a):ndim(a) + ndim(b)]
    out = a_labels + b_labels
    if a_labels and b_labels:
        out = a_labels[:-1] + b_labels[:-1]
        b_labels = b_labels[:-1] + a_labels[-1]
    return _product("inner", a, a_labels, b, b_labels, out, precision, preferred_element_type)


def outer(a, b, out=None):
    """All products of elements of the flattened operands, shape (a.size, b.size).

    >>> jnp.outer(jnp.array([1, 2, 3]), jnp.array([1, 10]))
    Array([[ 1, 10],
           [ 2, 20],
           [ 3, 30]], dtype=int32)
    """
    check_arraylike("outer", a, b)
    no_out("outer", out)
    a, b = (reshape(x, (prod(shape_of(x)),)) for x in (a, b))
    return _product("outer", a, "i", b, "j", "ij")


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None, out_sharding=None):
    """The sum over pairs of axes: the last `axes` of a with the first of b, or (axes of a, axes of b).

    >>> a, b = jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5))
    >>> jnp.tensordot(a, b, axes=([1, 2], [1, 0])).shape, jnp.tensordot(a, b, axes=1).shape
    ((2, 5), (2, 3, 3, 5))
    """
    check_arraylike("tensordot", a, b)
    a_rank, b_rank = ndim(a), ndim(b)
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a_rank, b_rank):
            raise TypeError(f"Number of tensordot axes (axes {axes}) exceeds input ranks ({shape_of(a)} and "
                            f"{shape_of(b)}): axes counts those that are summed over")
        a_axes, b_axes = tuple(range(a_rank - axes, a_rank)), tuple(range(axes))
    elif (isinstance(axes, (tuple, list)) and len(axes) == 2
          and len({isinstance(x, (int, np.integer)) for x in axes}) == 1):
        a_axes, b_axes = (canonical_axes(tuple(x) if np.ndim(x) else x, r)
                          for x, r in zip(axes, (a_rank, b_rank)))
        if len(a_axes) != len(b_axes):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {axes[0]} and "
                            f"{axes[1]}.")
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples "
                        "of ints.")
    a_labels, b_labels = LETTERS[:a_rank], list(LETTERS[a_rank:a_rank + b_rank])
    for i, j in zip(a_axes, b_axes):
        b_labels[j] = a_labels[i]
    b_labels = "".join(b_labels)
    shared = set(a_labels) & set(b_labels)
    out = "".join(c for c in a_labels + b_labels if c not in shared)
    a, b, dot = _for_result(a, b, out_sharding, "jnp.tensordot")
    product = _product("tensordot", a, a_labels, b, b_labels, out, precision, preferred_element_type, dot=dot)
    return with_out_sharding(product, out_sharding, "jnp.tensordot")


@composite
def kron(a, b):
    """The Kronecker product: each element of a times the whole of b.

    >>> jnp.kron(jnp.array([[1, 0], [0, 2]]), jnp.array([[1, 1]]))
    Array([[1, 1, 0, 0],
           [0, 0, 2, 2]], dtype=int32)
    """
    check_arraylike("kron", a, b)
    a, b = promote_dtypes(a, b)
    rank = max(ndim(a), ndim(b))
    a, b = (reshape(x, (1,) * (rank - ndim(x)) + shape_of(x)) for x in (a, b))
    sizes = [m * n for m, n in zip(shape_of(a), shape_of(b))]
    # (m, 1, ...) * (1, n, ...): XLA has nothing to contract, and fuses a product of elements
    a = reshape(a, [n for size in shape_of(a) for n in (size, 1)])
    b = reshape(b, [n for size in shape_of(b) for n in (1, size)])
    return reshape(a * b, sizes)


# --- cross, trace, convolve -----------------------------------------------------------------------

@composite(static=("axisa", "axisb", "axisc", "axis"))
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of 2 or 3 components; of two 2-vectors, the scalar one.

    Args:
        axisa: the axis of `a` that the components are along.
        axisb: that of `b`.
        axisc: that of the result.
        axis: one for all three.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([[0, 1, 0], [0, 0, 1]]))
    Array([[ 0,  0,  1],
           [ 0, -1,  0]], dtype=int32)
    >>> jnp.cross(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(-2, dtype=int32)
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(a, b)
    a, b = (move_axis(x, canonical_axis(i, ndim(x), name), ndim(x) - 1)
            for x, i, name in ((a, axisa, "axisa"), (b, axisb, "axisb")))
    sizes = shape_of(a)[-1], shape_of(b)[-1]
    if not set(sizes) <= {2, 3}:
        raise ValueError("Dimension must be either 2 or 3 for cross product, got vectors of sizes "
                         f"{sizes[0]} (shape {shape_of(a)}) and {sizes[1]} (shape {shape_of(b)})")
    batch = joint_shape(shape_of(a)[:-1], shape_of(b)[:-1])
    a, b = (broadcast_to_shape(zero_padded(x, [*[(0, 0, 0)] * (ndim(x) - 1), (0, 3 - n, 0)]), (*batch, 3))
            for x, n in zip((a, b), sizes))     # padded by nothing too: the result has no weak type

    def component(i):
        return sub(mul(_part(a, (i + 1) % 3), _part(b, (i + 2) % 3)),
                   mul(_part(a, (i + 2) % 3), _part(b, (i + 1) % 3)))
    if sizes == (2, 2):
        return reshape(component(2), batch)
    out = concatenate_p.bind(*map(component, range(3)), dimension=len(batch))
    return move_axis(out, len(batch), canonical_axis(axisc, len(batch) + 1, "axisc"))


def _part(x, i):
    """Component i along the last axis, which stays with size 1."""
    return slice_along(x, -1, i, i + 1)


def merged_diagonal(x, i, j):
    """`x` of equal sizes along axes i < j, whose diagonal becomes the last axis."""
    n = shape_of(x)[i]
    x = move_axis(move_axis(x, j, ndim(x) - 1), i, ndim(x) - 2)
    return slice_along(reshape(x, (*shape_of(x)[:-2], n * n)), -1, 0, n * n, n + 1)


@composite(static=("offset", "axis1", "axis2", "dtype"))
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum along a diagonal of axes axis1 and axis2; leading axes stay.

    Small integers are summed in the default integer type.

    >>> x = jnp.arange(9).reshape(3, 3)
    >>> jnp.trace(x), jnp.trace(x, offset=1), jnp.trace(jnp.ones((2, 3, 4)), axis1=1, axis2=2)
    (Array(12, dtype=int32), Array(6, dtype=int32), Array([3., 3.], dtype=float32))
    """
    check_arraylike("trace", a)
    no_out("trace", out)
    offset = operator.index(offset)
    i, j = canonical_axes((axis1, axis2), ndim(a))
    old = aval_of(a).dtype
    if dtype is not None:
        dtype = dtypes.check_user_dtype(dtype, "trace")
    elif dtypes.is_inexact(old):
        dtype = old
    else:
        wide = dtypes.canonicalize(np.uint64 if dtypes.is_unsigned(old) else np.int64)
        dtype = old if old.itemsize >= wide.itemsize else wide
    x = move_axis(move_axis(a, i, ndim(a) - 1), j - (j > i), ndim(a) - 2)     # axes ..., j, i
    cols, rows = shape_of(x)[-2:]
    if aval_of(x).explicit is not None:     # each device has a part of the diagonal: a mask moves nothing
        mask = np.eye(cols, rows, k=-offset, dtype=bool)
        masked = convert(where(mask, x, np.zeros((), old)), dtype, aval_of(a).weak_type)
        axes = ndim(x) - 2, ndim(x) - 1
        return reduce_or_p.bind(masked, axes=axes) if dtype == dtypes.bool_ else reduce_sum(masked, axes)
    size = max_dim(min_dim(rows + min(offset, 0), cols - max(offset, 0)), 0)
    start = (0,) * (ndim(x) - 2) + (max(offset, 0), max(-offset, 0)) if size else (0,) * ndim(x)
    limit = (*shape_of(x)[:-2], start[-2] + size, start[-1] + size)
    square = slice_p.bind(x, start_indices=start, limit_indices=limit, strides=None)
    diagonal = convert(merged_diagonal(square, ndim(x) - 2, ndim(x) - 1), dtype, aval_of(a).weak_type)
    if dtype == dtypes.bool_:
        return reduce_or_p.bind(diagonal, axes=(ndim(diagonal) - 1,))
    return reduce_sum(diagonal, (ndim(diagonal) - 1,))


def _correlate(name, a, v, mode, precision, preferred):
    """sum_k a[n + k] v[k] of vectors, a the longer one."""
    k = shape_of(v)[0]
    pads = {"full": (k - 1, k - 1), "same": (k // 2, k - k // 2 - 1), "valid": (0, 0)}
    errors.check_choice(f"{name}: mode", mode, pads)
    if preferred is not None:
        preferred = dtypes.check_user_dtype(preferred, name)
    out = conv_general_dilated_p.bind(
        reshape(a, (1, 1, shape_of(a)[0])), reshape(v, (1, 1, k)), window_strides=(1,), padding=(pads[mode],),
        lhs_dilation=(1,), rhs_dilation=(1,), dimension_numbers=ConvDimensionNumbers(*[(0, 1, 2)] * 3),
        feature_group_count=1, batch_group_count=1, precision=canonical_precision(precision,
                                                                                  algorithms=False),
        preferred_element_type=preferred)
    return reshape(out, shape_of(out)[2:])


def _vectors(name, a, v):
    check_arraylike(name, a, v)
    if ndim(a) != 1 or ndim(v) != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs, got shapes {shape_of(a)} and "
                         f"{shape_of(v)}.")
    if 0 in (*shape_of(a), *shape_of(v)):
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shape_of(a)} and {shape_of(v)}.")
    return promote_dtypes_inexact(a, v)


def _reversed(x):
    return rev_p.bind(x, dimensions=(0,))


@composite(static=("mode", "precision", "preferred_element_type"))
def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """sum_k a[n - k] v[k] of vectors; `mode` is 'full', 'same' or 'valid'.

    'full' has len(a) + len(v) - 1 elements, 'same' as many as the longer one, 'valid' those without an edge.

    >>> a, v = jnp.array([1, 2, 3]), jnp.array([1, 10])
    >>> jnp.convolve(a, v)
    Array([ 1., 12., 23., 30.], dtype=float32)
    >>> jnp.convolve(a, v, mode="same")
    Array([ 1., 12., 23.], dtype=float32)
    >>> jnp.convolve(a, v, mode="valid")
    Array([12., 23.], dtype=float32)
    """
    a, v = _vectors("convolve", a, v)
    if shape_of(a)[0] < shape_of(v)[0]:
        a, v = v, a
    return _correlate("convolve", a, _reversed(v), mode, precision, preferred_element_type)


@composite(static=("mode", "precision", "preferred_element_type"))
def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """sum_k a[n + k] conj(v[k]) of vectors; `mode` is 'full', 'same' or 'valid'.

    >>> a, v = jnp.array([1, 2, 3]), jnp.array([1, 10])
    >>> jnp.correlate(a, v), jnp.correlate(a, v, mode="full")
    (Array([21., 32.], dtype=float32), Array([10., 21., 32.,  3.], dtype=float32))
    """
    a, v = _vectors("correlate", a, v)
    if dtypes.is_complex(aval_of(v).dtype):
        v = conj_p.bind(v)
    if shape_of(a)[0] >= shape_of(v)[0]:
        return _correlate("correlate", a, v, mode, precision, preferred_element_type)
    return _reversed(_correlate("correlate", v, a, mode, precision, preferred_element_type))


__all__ = ["convolve", "correlate", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer",
           "tensordot", "trace", "vdot", "vecdot", "vecmat"]
