"""NumPy's products: matmul and its kin, einsum, tensordot, kron, cross, trace, convolve.

Each names the axes of its operands by letters and leaves the rest to `primitives.arrays.contract.contract`.
"""
import functools
import operator
import string

from ..api.composite import composite
from ..core import dtypes, errors
from ..core.avals import aval_of
from ..core.symbolic.dimension import is_symbolic_dim, max_dim, min_dim
from ..placement.out_sharding import over_auto_axes, unreduced_axes, with_out_sharding
from ..primitives.arrays.contract import contract, dot_general_p, natural_labels, reduce_axes, unreduced_dot
from ..primitives.arrays.conv import ConvDimensionNumbers, conv_general_dilated_p
from ..primitives.arrays.elementwise import conj_p, convert, mul, sub
from ..primitives.arrays.precision import canonical_precision
from ..primitives.arrays.reduce import reduce_or_p
from ..primitives.arrays.shape import move_axis, reduce_sum, reshape, squeeze_p, transpose
from ..primitives.arrays.slicing import concatenate_p, pad_p, rev_p, slice_p
from ..primitives.common import canonical_axes, canonical_axis, np, prod, scalar
from .util import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    ndim,
    promote_dtypes,
    promote_dtypes_inexact,
    result_type,
)
from .util import shape as shape_of

_LETTERS = string.ascii_letters


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
    (a, a_labels), (b, b_labels) = (_drop_singletons(x, c, sizes) for x, c in ((a, a_labels), (b, b_labels)))
    return contract(a, a_labels, b, b_labels, out, precision, preferred, dot)


def _drop_singletons(x, labels, sizes):
    """`x` without axes of size 1 whose letter is longer in another operand."""
    axes = [i for i, (c, n) in enumerate(zip(labels, shape_of(x))) if n == 1 != sizes[c]]
    if not axes:
        return x, labels
    return squeeze_p.bind(x, dimensions=tuple(axes)), "".join(c for i,
                                                              c in enumerate(labels) if i not in axes)


def _product(name, a, a_labels, b, b_labels, out, precision=None, preferred=None, conjugate=False,
             dot=None):
    """The sum of a * b over the letters that `out` lacks; capital letters broadcast, others must agree."""
    a_shape, b_shape = shape_of(a), shape_of(b)
    sizes = dict(zip(a_labels, a_shape))
    for j, (c, n) in enumerate(zip(b_labels, b_shape)):
        m = sizes.get(c, n)
        if m != n and not (c.isupper() and 1 in (m, n)):
            i = a_labels.index(c)
            raise errors.ShapeError(
                f"{name}: axis {i} of the first operand (shape {a_shape}) has size {m} but axis {j} of the "
                f"second (shape {b_shape}) has size {n}; "
                + ("batch axes must be equal or 1" if c.isupper()
                   else "they are summed together and must be equal")
                + f" ('{a_labels},{b_labels}->{out}')")
    if preferred is not None:
        preferred = dtypes.check_user_dtype(preferred, name)
    return _contract(a, b, a_labels, b_labels, out, canonical_precision(precision), preferred, conjugate,
                     dot)


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
        a: an array.
        b: an array.
        precision: what `lax.dot_general` takes.
        preferred_element_type: the dtype to add up in and to give; else the promoted one.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: for scalars.
        ShapeError: where the inner sizes differ.

    >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([[0, 1], [1, 0]])
    >>> jnp.matmul(a, b), a @ jnp.array([1, 10])
    (Array([[2, 1],
           [4, 3]], dtype=int32), Array([21, 43], dtype=int32))
    >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
    (5, 2, 4)
    >>> a @ jnp.ones(3)
    Traceback (most recent call last):
        ...
    hlotrace.errors.ShapeError: (a: int32[2,2]) @ (float32[3]): axis 1 of the first operand (shape (2, 2)) has
    ...
    """
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
    a, b, dot = _for_result(a, b, out_sharding, "jnp.dot")
    return with_out_sharding(_dot(a, b, precision, preferred_element_type, dot), out_sharding, "jnp.dot")


@composite(static=("precision", "preferred", "dot"))
def _dot(a, b, precision, preferred, dot=None):
    check_arraylike("dot", a, b)
    a_labels = _LETTERS[:ndim(a)]
    b_labels = _LETTERS[ndim(a):ndim(a) + ndim(b)]
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


def _core_sizes(name, x1, x2, axis1, axis2):
    if shape_of(x1)[axis1] != shape_of(x2)[axis2]:
        raise ValueError(f"{name}: inconsistent size for core dimension: {shape_of(x1)[axis1]} (axis {axis1} "
                         f"of shape {shape_of(x1)}) vs {shape_of(x2)[axis2]} (axis {axis2} of shape "
                         f"{shape_of(x2)})")


def matvec(x1, x2, /):
    """Matrices (..., n, m) times vectors (..., m); leading axes broadcast.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_arraylike("matvec", x1, x2)
    _need_rank("matvec", (2, 1), x1, x2)
    _core_sizes("matvec", x1, x2, -1, -1)
    a, b, batch = _batch_letters(ndim(x1) - 2, ndim(x2) - 1)
    return _product("matvec", x1, a + "mk", x2, b + "k", batch + "m")


def vecmat(x1, x2, /):
    """Conjugated vectors (..., n) times matrices (..., n, m); leading axes broadcast.

    >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    check_arraylike("vecmat", x1, x2)
    _need_rank("vecmat", (1, 2), x1, x2)
    _core_sizes("vecmat", x1, x2, -1, -2)
    a, b, batch = _batch_letters(ndim(x1) - 1, ndim(x2) - 2)
    return _product("vecmat", x1, a + "k", x2, b + "kn", batch + "n", conjugate=True)


def inner(a, b, *, precision=None, preferred_element_type=None):
    """The sum over the last axes of both operands; with a scalar, the product.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10])), jnp.inner(jnp.array([1, 2]), 3)
    (Array([21, 43], dtype=int32), Array([3, 6], dtype=int32))
    """
    check_arraylike("inner", a, b)
    a_labels, b_labels = _LETTERS[:ndim(a)], _LETTERS[ndim(a):ndim(a) + ndim(b)]
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
    _no_out("outer", out)
    a, b = (reshape(x, (prod(shape_of(x)),)) for x in (a, b))
    return _product("outer", a, "i", b, "j", "ij")


def _no_out(name, out):
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported: arrays are immutable; "
                                  "use the result.")


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
        a_axes, b_axes = (canonical_axes(tuple(x) if np.ndim(x) else x, r) for x,
                          r in zip(axes, (a_rank, b_rank)))
        if len(a_axes) != len(b_axes):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {axes[0]} and "
                            f"{axes[1]}.")
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples "
                        "of ints.")
    a_labels, b_labels = _LETTERS[:a_rank], list(_LETTERS[a_rank:a_rank + b_rank])
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
    rows, columns = _LETTERS[:rank], _LETTERS[rank:2 * rank]
    product = contract(a, rows, b, columns, "".join(map("".join, zip(rows, columns))))
    return reshape(product, [m * n for m, n in zip(shape_of(a), shape_of(b))])


# --- einsum ---------------------------------------------------------------------------------------

def _interleaved(args):
    """(subscripts, operands) of einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    lists = [*args[1::2], *([args[-1]] if len(args) % 2 else [])]
    try:
        labels = sorted({c for sub in lists for c in sub if c is not Ellipsis})
    except TypeError:
        raise TypeError("einsum: the first argument must be a string of subscripts, as in "
                        "einsum('ij,jk->ik', a, b); or each operand is followed by a list of ints and "
                        "Ellipsis") from None
    names = {Ellipsis: "...", **{c: chr(ord("a") + i if i < 26 else ord("A") - 26 + i) for i,
                                 c in enumerate(labels)}}
    texts = ["".join(names[c] for c in sub) for sub in lists]
    count = len(args) // 2
    return ",".join(texts[:count]) + ("->" + texts[count] if len(args) % 2 else ""), args[:2 * count:2]


@functools.lru_cache(maxsize=1024)
def _parse(subscripts, shapes):
    """Letters of each operand and of the result, every ellipsis spelled out.  ValueError if ill-formed."""
    text = subscripts.replace(" ", "")
    inputs_text, arrow, out = text.partition("->")
    inputs = inputs_text.split(",")
    if set("->") & {*inputs_text, *out}:
        raise ValueError("einsum subscripts have one arrow '->', between the operands and the result, got "
                         f"{subscripts!r}")
    if len(inputs) != len(shapes):
        raise ValueError(f"Number of einsum subscripts, {len(inputs)}, must be equal to the number of "
                         f"operands, {len(shapes)}: commas in {inputs_text!r} separate those of each "
                         "operand.")
    for term in (*inputs, out):
        if "." in term.replace("...", "", 1):
            raise ValueError(f"Invalid Ellipses: '{term}' in einsum('{subscripts}') may hold '...' once.")
    ranks = [len(s) - len(t.replace("...", "")) for t, s in zip(inputs, shapes)]
    for i, (term, rank) in enumerate(zip(inputs, ranks)):
        if rank < 0 or rank and "..." not in term:
            raise ValueError(f"subscript '{term}' has {len(term)} letters, but operand {i} of shape "
                             f"{shapes[i]} has {len(shapes[i])} axes: write one letter for each axis, or "
                             "... for those in front")
    longest = max((r for r, t in zip(ranks, inputs) if "..." in t), default=0)
    ellipsis = "".join(chr(0x3b1 + i) for i in range(longest))
    inputs = tuple(t.replace("...", ellipsis[longest - r:]) for t, r in zip(inputs, ranks))
    used = "".join(inputs)
    if arrow:
        out = out.replace("...", ellipsis)
    else:
        out = ellipsis + "".join(c for c in sorted(set(used) - set(ellipsis)) if used.count(c) == 1)
    for c in out:
        if c not in used:
            raise ValueError(f"Output character {c!r} did not appear in the input of einsum('{subscripts}'): "
                             f"a result has axes of its operands, {', '.join(sorted(map(repr, set(used))))}")
        if out.count(c) > 1:
            raise ValueError(f"Output character {c!r} appeared more than once in the output of "
                             f"einsum('{subscripts}'); name each axis of the result once. jnp.diag puts a "
                             "vector on a diagonal.")
    _check_sizes(subscripts, inputs, shapes)
    return inputs, out


def _check_sizes(subscripts, inputs, shapes):
    """ValueError where a letter is for axes of different sizes; size 1 goes with any."""
    sizes = {}
    for i, (term, shape) in enumerate(zip(inputs, shapes)):
        for c, n in zip(term, shape):
            if sizes.setdefault(c, n) in (1, n):
                sizes[c] = n
            elif n != 1:
                raise ValueError(f"Size of label {c!r} for operand {i} ({n}) does not match previous terms "
                                 f"({sizes[c]}). einsum('{subscripts}') got operands of shapes "
                                 f"{', '.join(map(str, shapes))}.")


@functools.lru_cache(maxsize=1024)
def _path(inputs, out, shapes, optimize):
    """The order of contraction: tuples of positions; results go to the end of the list."""
    count = len(inputs)
    if isinstance(optimize, tuple):
        return tuple(p for p in optimize if p != "einsum_path")
    if optimize not in ("auto", "greedy", "optimal", True, False, None):
        raise NotImplementedError(f"einsum: optimize={optimize!r} is not supported: 'auto', 'optimal', "
                                  "'greedy', a path, True and False are")
    names = dict(zip(dict.fromkeys("".join(inputs)), _LETTERS))
    if count <= 2 or not optimize or len(names) < len(set("".join(inputs))):
        return (tuple(range(count)),)
    if any(is_symbolic_dim(n) for shape in shapes for n in shape):
        return ((0, 1),) * (count - 1)
    text = ",".join("".join(names[c] for c in t) for t in inputs) + "->" + "".join(names[c] for c in out)
    if optimize in ("auto", True):
        kind = "optimal" if count <= 4 else "greedy"
    else:
        kind = optimize
    return tuple(np.einsum_path(text, *map(_hollow, shapes), optimize=kind)[0][1:])


def _hollow(shape):
    """A NumPy array of this shape that takes no memory."""
    return np.broadcast_to(np.zeros(()), shape)


def _diagonal(x, i, j):
    """`x` of equal sizes along axes i < j, whose diagonal becomes the last axis."""
    n = shape_of(x)[i]
    x = move_axis(move_axis(x, j, ndim(x) - 1), i, ndim(x) - 2)
    x = reshape(x, (*shape_of(x)[:-2], n * n))
    start, limit = (0,) * ndim(x), shape_of(x)
    return slice_p.bind(x, start_indices=start, limit_indices=limit, strides=(1,) * (ndim(x) - 1) + (n + 1,))


def _distinct(x, labels):
    """`x` with diagonals taken until no letter appears twice."""
    for j, c in enumerate(labels):
        i = labels.index(c)
        if i != j:
            return _distinct(_diagonal(x, i, j), labels[:i] + labels[i + 1:j] + labels[j + 1:] + c)
    return x, labels


@composite(static=("inputs", "out", "path", "precision", "preferred"))
def _einsum(operands, inputs, out, path, precision, preferred, dot=None):
    operands = promote_dtypes(*operands)
    sizes = {}
    for x, labels in zip(operands, inputs):
        sizes.update((c, n) for c, n in zip(labels, shape_of(x)) if n != 1 or c not in sizes)
    terms = [_drop_singletons(*_distinct(x, labels), sizes) for x, labels in zip(operands, inputs)]
    for positions in path:
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)][::-1]
        while len(chosen) > 1:
            (x, x_labels), (y, y_labels), *chosen = chosen
            others = [labels for _, labels in (*chosen, *terms)]
            needed = "".join(dict.fromkeys(out + "".join(others)))
            kept = natural_labels(x_labels, y_labels, needed) if others else out
            chosen.insert(0, (contract(x, x_labels, y, y_labels, kept, precision, preferred, dot), kept))
        terms += chosen
    (x, labels), = terms
    x = reduce_axes(x, tuple(i for i, c in enumerate(labels) if c not in out))
    labels = "".join(c for c in labels if c in out)
    x = transpose(x, [labels.index(c) for c in out])
    return x if preferred is None else convert(x, preferred)


def _arguments(name, subscripts, operands):
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    check_arraylike(name, *operands)
    return subscripts, operands, tuple(map(shape_of, operands))


def einsum(subscripts, /, *operands, out=None, optimize="auto", precision=None, preferred_element_type=None,
           out_sharding=None, _dot_general=None):
    """Einstein summation: einsum('bij,bjk->bik', x, y), or einsum(x, [0, 1], y, [1, 2]).

    Without '->' the result has the ellipsis axes and then, sorted, the letters that appear once.  A letter
    twice in one operand takes its diagonal; axes of size 1 broadcast.

    Args:
        subscripts: a letter for each axis.
        operands: arrays.
        out: not supported; None.
        optimize: 'auto', a name that np.einsum_path knows, a path, or False (left to right).
        precision: what `lax.dot_general` takes.
        preferred_element_type: the dtype to add up in and to give; else the promoted one.
        out_sharding: the sharding of the result.
        _dot_general: does the products of two operands, called as `lax.dot_general` is.

    >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1])
    >>> jnp.einsum("ij,j->i", a, b)
    Array([12, 34], dtype=int32)
    >>> jnp.einsum("ii", a)
    Array(5, dtype=int32)
    >>> jnp.einsum("ij->ji", a)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    >>> jnp.einsum("i,i,ij", b, b, a)
    Array([103, 204], dtype=int32)
    >>> jnp.einsum("...ij,...jk", jnp.ones((7, 2, 3)), jnp.ones((3, 4))).shape
    (7, 2, 4)
    """
    _no_out("einsum", out)
    subscripts, operands, shapes = _arguments("einsum", subscripts, operands)
    inputs, out = _parse(subscripts, shapes)
    path = _path(inputs, out, shapes, tuple(optimize) if isinstance(optimize, list) else optimize)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, "einsum")
    unreduced = unreduced_axes(out_sharding, "jnp.einsum", *operands)
    if unreduced:
        if _dot_general is not None:
            raise NotImplementedError(f"einsum: out_sharding={out_sharding} is unreduced, and that is "
                                      "without _dot_general")
        _dot_general = functools.partial(unreduced_dot if len(operands) < 3 else _dot_on_a_path, unreduced)
        preferred_element_type = preferred_element_type or result_type(*operands)
    elif out_sharding is not None:
        operands = over_auto_axes(*operands)
    # what the user's function does is not cached: it may close over anything
    if _dot_general is not None:
        if not callable(_dot_general):
            raise TypeError("einsum: _dot_general is a function that is called as lax.dot_general is, got "
                            f"{_dot_general!r}")
        if preferred_element_type is None:      # what it computes in may be narrower
            preferred_element_type = result_type(*operands)
        result = _einsum.__wrapped__(operands, inputs, out, path, precision, preferred_element_type,
                                     _dot_general)
    else:
        result = _einsum(tuple(operands), inputs, out, path, canonical_precision(precision),
                         preferred_element_type)
    return with_out_sharding(result, out_sharding, "jnp.einsum")


def _dot_on_a_path(unreduced, x, y, dimension_numbers, precision=None, preferred_element_type=None):
    """One product of several: unreduced over those of the mesh axes that split what it contracts."""
    axes = [{name for dim in dims for name in aval_of(v).splits[dim]}
            for v, dims in zip((x, y), dimension_numbers[0])]
    here = unreduced & axes[0] & axes[1]
    if here:
        return unreduced_dot(here, x, y, dimension_numbers, precision, preferred_element_type)
    return dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, precision=precision,
                              preferred_element_type=preferred_element_type)


def einsum_path(subscripts, /, *operands, optimize="auto"):
    """(path, description) of the order in which einsum would contract; the path can be given as `optimize`.

    >>> x, y = jnp.ones((10, 1000)), jnp.ones((1000, 2))
    >>> jnp.einsum_path("ij,jk,kl", x, y, jnp.ones((2, 3)))[0]
    [(0, 1), (0, 1)]
    """
    subscripts, operands, shapes = _arguments("einsum_path", subscripts, operands)
    kind = "optimal" if optimize == "auto" else optimize
    path, info = np.einsum_path(subscripts, *map(_hollow, shapes), optimize=kind)
    return path[1:], info


def multi_dot(arrays, *, precision=None):
    """The product of a chain of matrices in the cheapest order; the first and last may be vectors."""
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    ranks = [ndim(x) for x in arrays]
    if len(arrays) < 2 or any(r != 2 for r in ranks[1:-1]) or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the first and "
                         "last array which may be 1 or 2 dimensional. Got array shapes "
                         f"{[shape_of(x) for x in arrays]}")
    terms = [_LETTERS[i:i + 2] for i in range(len(arrays))]
    terms[0], terms[-1] = terms[0][-ranks[0]:], terms[-1][:ranks[-1]]
    out = terms[0][:-1] + terms[-1][1:]
    return einsum(f"{','.join(terms)}->{out}", *arrays, precision=precision)


# --- cross, trace, convolve -----------------------------------------------------------------------

@composite(static=("axisa", "axisb", "axisc", "axis"))
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of 2 or 3 components; of two 2-vectors, the scalar one.

    Args:
        a: an array of vectors.
        b: an array of vectors.
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
    batch = broadcast_shapes(shape_of(a)[:-1], shape_of(b)[:-1])
    a, b = (broadcast_to_shape(pad_p.bind(x, scalar(0, aval_of(x).dtype),
                                          padding_config=((0, 0, 0),) * (ndim(x) - 1) + ((0, 3 - n, 0),)),
                               (*batch, 3)) for x, n in zip((a, b), sizes))

    def component(i):
        return sub(mul(_part(a, (i + 1) % 3), _part(b, (i + 2) % 3)),
                   mul(_part(a, (i + 2) % 3), _part(b, (i + 1) % 3)))
    if sizes == (2, 2):
        return reshape(component(2), batch)
    out = concatenate_p.bind(*map(component, range(3)), dimension=len(batch))
    return move_axis(out, len(batch), canonical_axis(axisc, len(batch) + 1, "axisc"))


def _part(x, i):
    """Component i along the last axis, which stays with size 1."""
    shape = shape_of(x)
    return slice_p.bind(x, start_indices=(0,) * (len(shape) - 1) + (i,), limit_indices=(*shape[:-1], i + 1),
                        strides=None)


@composite(static=("offset", "axis1", "axis2", "dtype"))
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum along a diagonal of axes axis1 and axis2; leading axes stay.

    Small integers are summed in the default integer type.

    >>> x = jnp.arange(9).reshape(3, 3)
    >>> jnp.trace(x), jnp.trace(x, offset=1), jnp.trace(jnp.ones((2, 3, 4)), axis1=1, axis2=2)
    (Array(12, dtype=int32), Array(6, dtype=int32), Array([3., 3.], dtype=float32))
    """
    check_arraylike("trace", a)
    _no_out("trace", out)
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
    size = max_dim(min_dim(rows + min(offset, 0), cols - max(offset, 0)), 0)
    start = (0,) * (ndim(x) - 2) + (max(offset, 0), max(-offset, 0)) if size else (0,) * ndim(x)
    limit = (*shape_of(x)[:-2], start[-2] + size, start[-1] + size)
    square = slice_p.bind(x, start_indices=start, limit_indices=limit, strides=None)
    diagonal = convert(_diagonal(square, ndim(x) - 2, ndim(x) - 1), dtype, aval_of(a).weak_type)
    if dtype == dtypes.bool_:
        return reduce_or_p.bind(diagonal, axes=(ndim(diagonal) - 1,))
    return reduce_sum(diagonal, (ndim(diagonal) - 1,))


def _correlate(name, a, v, mode, precision, preferred):
    """sum_k a[n + k] v[k] of vectors, a the longer one."""
    k = shape_of(v)[0]
    pads = {"full": (k - 1, k - 1), "same": (k // 2, k - k // 2 - 1), "valid": (0, 0)}
    if mode not in pads:
        raise errors.not_one_of(f"{name}: mode", mode, pads)
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


__all__ = ["convolve", "correlate", "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul",
           "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat"]
