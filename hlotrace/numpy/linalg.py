"""NumPy's linear algebra: products, norms, solving, factorizations of (..., m, n) matrices."""
import functools

from ..api.composite import composite
from ..api.custom_batching import custom_vmap
from ..api.custom_derivatives import custom_jvp
from ..core import dtypes
from ..core.errors import ShapeError
from ..core.surface.public import export_names as _offer
from ..lax import linalg as lax
from ..lax.control_flow import cond as branch
from ..lax.elementwise import stop_gradient
from ..lax.solves import custom_linear_solve
from ..primitives.common import canonical_axes, np, prod, static_int
from ..primitives.linalg.factorizations import geqrf_p
from .arrays.creation import asarray, ones, zeros, zeros_like
from .arrays.ranges import arange
from .arrays.shaping import broadcast_to, expand_dims, matrix_transpose, moveaxis, reshape
from .arrays.triangles import diagonal as _diagonal, eye
from .contraction import cross as _cross, matmul, outer as _outer, tensordot, trace as _trace, vecdot
from .einstein_sums import einsum as _einsum
from .elementwise.ufuncs import abs, conj, isnan, log, real, sign, sqrt
from .factorizations import (
    SlogdetResult, adjoint, cholesky, eig, eigh, eigvals, eigvalsh, eps, inexact, matrices, product, qr,
    square, svd, svdvals)
from .indexing.conditions import where
from .mapping import vectorize
from .reductions.reductions import amax, amin, any, prod as _prod, sum, wider
from .reductions.sorting import argsort
from .util import check_arraylike, promotes

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
           "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot",
           "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
           "tensorsolve", "trace", "vecdot", "vector_norm"]


# --- products -------------------------------------------------------------------------------------

def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three elements along `axis`; the other axes broadcast.

    >>> jnp.linalg.cross(jnp.array([1., 0., 0.]), jnp.array([0., 1., 0.]))
    Array([0., 0., 1.], dtype=float32)
    """
    check_arraylike("linalg.cross", x1, x2)
    x1, x2 = asarray(x1), asarray(x2)
    if [x.shape[axis] if x.ndim else 1 for x in (x1, x2)] != [3, 3]:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors along axis {axis}, "
                         f"but they have shapes {x1.shape} and {x2.shape}; jnp.cross also takes vectors of 2")
    return _cross(x1, x2, axis=axis)


def outer(x1, x2, /):
    """All products of elements of two vectors, shape (m, n).

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("linalg.outer", x1, x2)
    x1, x2 = asarray(x1), asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} "
                         f"x2.ndim={x2.ndim}; jnp.outer flattens them")
    return _outer(x1, x2)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices (..., m, n), as the last axis; `offset` counts to the right of the main one.

    >>> jnp.linalg.diagonal(jnp.arange(4).reshape(2, 2))
    Array([0, 3], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of matrices (..., m, n).

    >>> jnp.linalg.trace(jnp.arange(4).reshape(2, 2))
    Array(3, dtype=int32)
    """
    return _trace(x, offset, -2, -1, dtype)


@composite(static=("n",))
def matrix_power(a, n):
    """The product of n times the square matrices a (..., m, m); of their inverses where n is negative.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [1, 0]]), 5)
    Array([[8, 5],
           [5, 3]], dtype=int32)
    """
    check_arraylike("matrix_power", a)
    a, n = asarray(a), static_int(n, "exponent")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        what = ("Last 2 dimensions of the array must be square" if a.ndim > 1
                else f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
        raise TypeError(f"{what}: matrix_power takes matrices of shape [..., m, m], got shape {a.shape}")
    if n == 0:
        if a.ndim > 2:
            return asarray(eye(a.shape[-1], dtype=a.dtype) + 0 * a)
        return eye(a.shape[-1], dtype=a.dtype)
    a, n, out = inv(a) if n < 0 else a, -n if n < 0 else n, None
    while n:
        if n & 1:
            out = a if out is None else product(out, a)
        n >>= 1
        a = product(a, a) if n else a
    return out


def multi_dot(arrays, *, precision=None):
    """The product of two or more matrices in the order that takes the fewest operations.

    The first may be a vector, which is a row, the last one a column.

    >>> jnp.linalg.multi_dot([jnp.ones((1, 2)), jnp.ones((2, 3)), jnp.ones((3, 1))])
    Array([[6.]], dtype=float32)
    """
    arrays = list(arrays)
    check_arraylike("multi_dot", *arrays)
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(arrays)}")
    arrays = [asarray(x) for x in arrays]
    shapes = [x.shape for x in arrays]
    first, *inner, last = map(len, shapes)
    if inner.count(2) != len(inner) or not {first, last} <= {1, 2}:
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the first and "
                         f"last array which may be 1 or 2 dimensional. Got array shapes {shapes}")
    for i, (left, right) in enumerate(zip(shapes, shapes[1:])):
        if left[-1] != right[0]:
            raise ValueError("multi_dot: last dimension of each array must match first dimension of "
                             f"following array: {left[-1]} of array {i} and {right[0]}, got shapes {shapes}")
    first = len(shapes[0]) == 1
    starts = [first, *range(1, len(arrays))]        # of the letters of each array's axes
    operands = [part for i, x in zip(starts, arrays) for part in (x, list(range(i, i + x.ndim)))]
    ends = [0] * (not first) + [len(arrays)] * (len(shapes[-1]) == 2)
    return _einsum(*operands, ends, optimize="optimal", precision=precision)


# --- norms ----------------------------------------------------------------------------------------

@composite(static=("ord", "axis", "keepdims"))
def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors along one axis, of matrices over two axes; by default of all as one vector.

    Args:
        ord: of a vector a number, the p of sum(abs(x)**p)**(1/p), with 0 for the number of nonzeros and inf,
            -inf for the largest and smallest absolute value; of a matrix "fro", "nuc" for the sum of the
            singular values, 1, -1 for the largest and smallest sum of a column, inf, -inf of a row, 2, -2 the
            largest and smallest singular value.
        axis: one axis, or two.
        keepdims: axes stay at size 1.
    Raises:
        ValueError: for another order or number of axes.

    >>> jnp.linalg.norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    x, = inexact("linalg.norm", x)
    if axis is None and ord is None:
        return _vector_norm(x, 2, None, keepdims)
    axes = canonical_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a "
                     f"vector-norm, or two axes to compute a matrix-norm. The array has shape {x.shape}; "
                     "without ord and axis, it is one vector.")


def _vector_norm(x, ord, axes, keepdims):
    if (wide := wider(x.dtype)) != x.dtype:     # squares and powers of float16 leave its range early
        return _vector_norm(x.astype(wide), ord, axes, keepdims).astype(x.dtype)
    over = {"axis": axes, "keepdims": keepdims}
    if isinstance(ord, str):
        raise ValueError(f"Invalid order {ord!r} for vector norm: give a number, as 1, 2 or jnp.inf")
    if ord == 2:
        return sqrt(sum(real(x * conj(x)), **over))
    size = abs(x)
    if ord == 0:
        return sum((x != 0).astype(size.dtype), **over)
    if ord in (np.inf, -np.inf):
        return amax(size, initial=0, **over) if ord > 0 else amin(size, **over)
    if ord == 1:
        return sum(size, **over)
    return sum(size ** ord, **over) ** (1 / ord)


def _matrix_norm(x, ord, axes, keepdims):
    rows, columns = axes
    if ord == "fro":
        return _vector_norm(x, 2, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = sum(abs(x), along, keepdims=True)
        out = (amax(sums, over, initial=0, keepdims=True) if ord > 0
               else amin(sums, over, keepdims=True)).squeeze(axes)
    elif ord in (2, -2, "nuc"):
        s = svdvals(moveaxis(x, axes, (-2, -1)))
        if ord == "nuc":
            out = sum(s, -1)
        elif ord == 2:
            out = amax(s, -1, initial=0)
        else:
            out = amin(s, -1)
    else:
        raise ValueError(f"Invalid order {ord!r} for matrix norm: it is 'fro', 'nuc', 1, -1, 2, -2, jnp.inf "
                         "or -jnp.inf")
    return expand_dims(out, axes) if keepdims else out


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of matrices (..., m, n); for `ord` see `norm`.

    >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]), ord=1)
    Array(4., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


@composite(static=("axis", "keepdims", "ord"))
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of vectors along `axis`, or of all elements along several axes as one vector.

    For `ord` see `norm`.

    >>> jnp.linalg.vector_norm(jnp.array([[3., 4.], [6., 8.]]), axis=1)
    Array([ 5., 10.], dtype=float32)
    """
    if ord in (1, np.inf, -np.inf):
        check_arraylike("linalg.vector_norm", x)
        x = asarray(x)
    else:
        x, = inexact("linalg.vector_norm", x)
    return _vector_norm(x, 2 if ord is None else ord, canonical_axes(axis, x.ndim), keepdims)


@composite(static=("p",))
def cond(x, p=None):
    """How many times larger a relative error may become in solving with the matrices x: norm(x) norm(inv(x)).

    Args:
        x: matrices (..., m, n).
        p: the order of `norm`; None is 2, and like -2 takes matrices that are not square.

    >>> jnp.linalg.cond(jnp.diag(jnp.array([2., 8.])))
    Array(4., dtype=float32)
    """
    x = matrices("linalg.cond", x)
    if 0 in x.shape[-2:]:
        raise ValueError(f"linalg.cond: the matrices must not be empty, got shape {x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        out = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        out = norm(x, p, (-2, -1)) * norm(inv(square("linalg.cond", x)), p, (-2, -1))
    return where(isnan(out) & ~any(isnan(x), (-2, -1)), np.inf, out)


@composite(static=("hermitian",))
@promotes()
def matrix_rank(M, rtol=None, *, hermitian=False, tol=None):
    """How many singular values of M are above `tol`, or above `rtol` times the largest.

    Args:
        M: matrices (..., m, n).
        rtol: max(m, n) times the machine epsilon by default.
        hermitian: they are; the singular values are found as eigenvalues.
        tol: an absolute bound.

    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    M, = inexact("linalg.matrix_rank", M)
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    if M.ndim < 2:
        return any(M != 0).astype(int)
    s = svd(M, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        rtol = eps(s, *M.shape[-2:]) if rtol is None else rtol
        tol = asarray(rtol)[..., None] * amax(s, -1, initial=0, keepdims=True)
    else:
        tol = asarray(tol)[..., None]
    return sum(s > tol, -1)


# --- solving --------------------------------------------------------------------------------------

@composite(equation=True)
def solve(a, b):
    """x with a @ x = b, for square matrices a (..., n, n) and b (n,) or (..., n, k); leading axes broadcast.

    Where a is singular, the result is inf or NaN.

    >>> jnp.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 2.]))
    Array([1. , 0.5], dtype=float32)
    """
    a, b = inexact("linalg.solve", a, b)
    square("linalg.solve", a)
    n = a.shape[-1]
    if b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != n:
        several = ""
        if b.ndim > 1 and b.shape[-1] == n:
            several = "; vectors of a batch are matrices of one column, b[..., None]"
        raise ShapeError(f"linalg.solve: a has shape {a.shape}, so b must have shape ({n},) or [..., {n}, "
                         f"k], got shape {b.shape}{several}")
    return vectorize(_solve, signature="(m,m),(m)->(m)" if b.ndim == 1 else "(m,m),(m,n)->(m,n)")(a, b)


def _solve(a, b):
    packed, _, order = lax.lu(stop_gradient(a))
    return custom_linear_solve(lambda x: product(a, x), b, lambda _, b: after_lu(packed, order, b),
                               lambda _, b: after_lu(packed, order, b, trans=1))


def after_lu(packed, order, b, trans=0):
    """x with op(a) x = b from the LU factors of a; op: nothing, transposed, conjugated too (trans 0, 1, 2).
    """
    column = b.ndim == 1
    b = b[:, None] if column else b
    triangle = functools.partial(lax.triangular_solve, packed, left_side=True, transpose_a=trans > 0,
                                 conjugate_a=trans == 2)
    if trans:
        x = triangle(triangle(b), lower=True, unit_diagonal=True)[argsort(order)]
    else:
        x = triangle(triangle(b[order], lower=True, unit_diagonal=True))
    return x[:, 0] if column else x


@composite(equation=True)
def inv(a):
    """The inverses of square matrices (..., n, n); inf or NaN where there is none.

    To solve with a, `solve` is better.

    >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = square("linalg.inv", a)
    return solve(a, eye(a.shape[-1], dtype=a.dtype))


@composite(static=("ind",))
def tensorinv(a, ind=2):
    """The inverse of a as a map from its axes behind the first `ind` to these.

    tensordot(out, a, ind) is the identity.

    >>> jnp.linalg.tensorinv(2 * jnp.eye(4).reshape(2, 2, 2, 2))[0, 0]
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    a, = inexact("linalg.tensorinv", a)
    ind = static_int(ind, "ind")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    if prod(a.shape[:ind]) != prod(a.shape[ind:]):
        raise ValueError("tensorinv is only possible when the product of the first `ind` dimensions equals "
                         f"that of the remaining dimensions. got shape {a.shape} with {ind=}.")
    n = prod(a.shape[:ind])
    return reshape(inv(reshape(a, (n, n))), a.shape[ind:] + a.shape[:ind])


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end before.

    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = inexact("linalg.tensorsolve", a, b)
    if axes is not None:
        a = moveaxis(a, axes, [a.ndim - len(axes) + i for i in range(len(axes))])
    behind = a.shape[b.ndim:]
    if a.shape[:b.ndim] != b.shape or prod(behind) != b.size:
        raise ValueError("After moving axes to end, leading shape of a must match shape of b, and the "
                         f"others must multiply to its size, {b.size}. got a.shape={a.shape}, "
                         f"b.shape={b.shape}")
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,))), behind)


@custom_jvp
def _pseudoinverse(_a, p):
    """The pseudoinverse p of _a, with the derivative that it has at constant rank."""
    return p


@_pseudoinverse.defjvp
@promotes()
def _pseudoinverse_jvp(primals, tangents):
    """Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate", SIAM Journal on Numerical Analysis 10, 1973, equation 4.12."""
    (a, p), (da, _) = primals, tangents
    p = out = _pseudoinverse(a, p)
    if wide := a.shape[-2] < a.shape[-1]:       # of the tall adjoint: no product is larger than a
        a, p, da = adjoint(a), adjoint(p), adjoint(da)
    daH, pH = adjoint(da), adjoint(p)
    small, columns = product(daH, pH), product(product(p, pH), daH)
    dp = product(small - product(p, product(a, small) + da) - product(columns, a), p) + columns
    return out, adjoint(dp) if wide else dp


def _inverse_of(a, u, s, vh, kept):
    """The pseudoinverse of a = u diag(s) vh with the singular values that are `kept`."""
    u, s, vh = (stop_gradient(x) for x in (u, s, vh))
    scale = where(kept, 1 / where(kept, s, 1), 0).astype(u.dtype)
    return _pseudoinverse(a, product(adjoint(vh), adjoint(u) * scale[..., None]))


@composite(static=("hermitian",))
@promotes()
def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    """The Moore-Penrose inverses (..., n, m) of matrices (..., m, n).

    Args:
        rtol: singular values up to it times the largest are zero; by default 10 max(m, n) machine epsilons.
        hermitian: they are; the singular values are found as eigenvalues.
        rcond: another name of `rtol`.

    >>> jnp.linalg.pinv(jnp.array([[2.], [0.]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    a = matrices("linalg.pinv", a)
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    rtol = rcond if rtol is None else rtol
    a = (a + adjoint(a)) / 2 if hermitian else a    # as its eigenvalues are found: derivatives are of this
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    rtol = 10 * eps(s, *a.shape[-2:]) if rtol is None else rtol
    return _inverse_of(a, u, s, vh, s > asarray(rtol, s.dtype)[..., None] *
                       amax(s, -1, initial=0, keepdims=True))


@promotes("a", "b")
def lstsq(a, b, rcond=None, *, numpy_resid=False):
    """The smallest x that minimizes norm(a @ x - b), for one matrix a.

    Args:
        a: a matrix (m, n).
        b: a vector (m,) or a matrix (m, k).
        rcond: singular values up to it times the largest count as zero; by default, or where it is negative,
            max(m, n) times the machine epsilon.
        numpy_resid: residuals are empty where a has a rank below n or m <= n, as NumPy has it, which needs
            the rank to be known, not traced.
    Returns:
        (x, residuals, rank, singular values); residuals: the squared norms of the difference's columns.

    >>> jnp.linalg.lstsq(jnp.array([[1.], [1.]]), jnp.array([1., 3.]))[0].round(2)
    Array([2.], dtype=float32)
    """
    a, b = inexact("linalg.lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        which, needed = (a, "two") if a.ndim != 2 else (b, "one or two")
        raise TypeError(f"{which.ndim}-dimensional array given. Array must be {needed}-dimensional: a is a "
                        f"matrix and b a vector or a matrix, got shapes {a.shape} and {b.shape}; jax.vmap "
                        "takes batches")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match: they are the rows of a and b, of "
                         f"shapes {a.shape} and {b.shape}")
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid and (a.shape[0] <= a.shape[1] or rank < a.shape[1]):
        residuals = residuals[:0]
    return x, residuals, rank, s


@composite
def _lstsq(a, b, rcond):
    u, s, vh = lax.svd(a, full_matrices=False)
    least = eps(s, *a.shape)
    rcond = asarray(least if rcond is None else rcond, s.dtype)
    kept = s > where(rcond < 0, least, rcond) * amax(s, -1, initial=0)
    x = product(_inverse_of(a, u, s, vh, kept), b)
    if b.size:
        missed = reshape(b - product(a, x), (b.shape[0], -1))
    else:
        missed = zeros((0, prod(b.shape[1:])), b.dtype)
    return x, sum(real(missed * conj(missed)), 0), sum(kept), s


# --- determinants ---------------------------------------------------------------------------------

@composite(equation=True)
def det(a):
    """The determinants of square matrices (..., n, n); their derivatives are right for singular ones too.

    >>> jnp.linalg.det(jnp.array([[2., 0.], [0., 4.]]))
    Array(8., dtype=float32)
    """
    a = square("linalg.det", a)
    a = a.astype(a.dtype)       # of a strong type, as LAPACK's results are
    if a.shape[-1] == 0:
        return ones(a.shape[:-2], a.dtype)
    if a.shape[-1] == 1:
        return a[..., 0, 0]
    if a.shape[-1] == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if a.shape[-1] == 3:
        return sum(a[..., 0, :] * _cross(a[..., 1, :], a[..., 2, :]), -1)
    return _det(a)


def _pivots(a):
    """(the diagonal of U, the sign of the permutation) of a = P^T L U."""
    packed, pivots, _ = lax.lu(a)
    exchanges = sum(pivots != arange(a.shape[-1]), -1)
    return diagonal(packed), where(exchanges % 2 == 0, 1, -1).astype(a.dtype)


@custom_jvp
@promotes()
def _det(a):
    u, parity = _pivots(a)
    return _prod(u, -1) * parity


@custom_vmap
def _missing_rank(a, singular):
    """(u, v) such that a + u v^T is regular, for matrices that lack one rank (`singular`); else zeros."""
    def of_singular():
        u, s, vh = lax.svd(a)
        one = singular & (s[..., -2] > eps(s, *a.shape[-2:]) * s[..., 0])
        return where(one[..., None], s[..., :1] * u[..., -1], 0), where(one[..., None], vh[..., -1, :], 0)
    none = zeros(a.shape[:-1], a.dtype)
    return branch(any(singular), of_singular, lambda: (none, none))


@_missing_rank.def_vmap
def _missing_rank_vmap(size, mapped, a, singular):
    """The function takes batches: whether any matrix is singular stays one condition."""
    a, singular = (x if m else broadcast_to(x, (size, *x.shape)) for x, m in zip((a, singular), mapped))
    return _missing_rank(a, singular), (True, True)


@_det.defjvp
@promotes()
def _det_jvp(primals, tangents):
    """The derivative by an entry is its cofactor.  Those of a, det(a) inv(a)^T, are had from a regular matrix
    b = a + u v^T by the formula of Sherman and Morrison; matrices that lack more than one rank have none."""
    (a,), (da,) = primals, tangents
    out = _det(a)
    u, v = _missing_rank(stop_gradient(a), stop_gradient(out) == 0)
    b = a + u[..., :, None] * v[..., None, :]
    size = _det(b)[..., None, None]
    inverse = inv(where(stop_gradient(size) == 0, eye(a.shape[-1], dtype=a.dtype), b))
    column, row = product(inverse, u[..., None]), product(v[..., None, :], inverse)
    left = 1 - product(v[..., None, :], column)
    return out, sum(size * matrix_transpose(left * inverse + column * row) * da, (-2, -1))


def slogdet(a, *, method=None):
    """(sign, logarithm of the absolute value) of the determinants of square matrices, without overflow.

    Args:
        a: matrices (..., n, n).
        method: "lu", which None is, or "qr", for real matrices.

    >>> jnp.linalg.slogdet(jnp.array([[-1., 0.], [0., 1.]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}")
    a = square("linalg.slogdet", a)
    if a.dtype in (dtypes.float16, dtypes.bfloat16):
        return SlogdetResult(*[x.astype(a.dtype) for x in slogdet(a.astype(dtypes.float32), method=method)])
    if method == "qr" and dtypes.is_complex(a.dtype):
        raise NotImplementedError(f"slogdet: method='qr' is for real matrices, got {a.dtype.name}; 'lu' "
                                  "takes all")
    return SlogdetResult(*_slogdet(a, method == "qr"))


@composite(static=("by_qr",), name="slogdet", equation=True)
@functools.partial(custom_jvp, nondiff_argnums=(1,))
@promotes()
def _slogdet(a, by_qr):
    if by_qr:       # each reflector that is not the identity changes the sign
        packed, taus = geqrf_p.bind(a)
        u, parity = diagonal(packed), where(sum(taus != 0, -1) % 2 == 0, 1, -1).astype(a.dtype)
    else:
        u, parity = _pivots(a)
    return _prod(sign(u), -1) * parity, sum(log(abs(u)), -1)


@_slogdet.__wrapped__.defjvp
@promotes()
def _slogdet_jvp(by_qr, primals, tangents):
    (a,), (da,) = primals, tangents
    turn, size = _slogdet(a, by_qr)
    change = trace(solve(a, da))
    if not dtypes.is_complex(a.dtype):
        return (turn, size), (zeros_like(turn), change)
    return (turn, size), (turn * (change - real(change)), real(change))


_offer(globals())
