"""Factorizations of (..., m, n) matrices, and what linear algebra does with its arguments."""
import functools
from typing import NamedTuple

from ..api.composite import composite
from ..core import dtypes
from ..core.array import Array
from ..core.errors import ShapeError, not_one_of
from ..lax import linalg as lax
from ..primitives.linalg.factorizations import geqrf_p
from .arrays.creation import asarray
from .arrays.rolling import flip
from .arrays.shaping import matrix_transpose
from .contraction import matmul
from .elementwise.ufuncs import abs, conj
from .indexing.conditions import where
from .indexing.selection import take_along_axis
from .reductions.sorting import argsort
from .util import check_arraylike, promote_dtypes_inexact


class EigResult(NamedTuple):
    """Eigenvalues (..., n), and eigenvectors as the columns of (..., n, n)."""
    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Rising eigenvalues (..., n), and orthonormal eigenvectors as the columns of (..., n, n)."""
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Q with orthonormal columns, and R upper triangular."""
    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, falling singular values, conjugated right ones as rows."""
    U: Array
    S: Array
    Vh: Array


# --- arguments ------------------------------------------------------------------------------------

def inexact(name, *args):
    """Arrays of one floating or complex dtype, made of the arguments."""
    check_arraylike(name, *args)
    return inexact_of(*args)


def inexact_of(*args):
    """As `inexact`, also of lists, which scipy.linalg takes."""
    return promote_dtypes_inexact(*map(asarray, args))


def matrices(name, x):
    x, = inexact(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: a matrix or a batch of them is needed, of shape [..., m, n], got shape "
                         f"{x.shape}; x[:, None] makes a column of a vector")
    return x


def square(name, x):
    x, = inexact(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"Argument to {name} must have shape [..., n, n], a square matrix or a batch of "
                         f"them, got {x.shape}")
    return x


def adjoint(x):
    return conj(matrix_transpose(x))


def product(*factors):
    """The product of matrices from left to right, as exact as the device can."""
    return functools.reduce(functools.partial(matmul, precision="highest"), factors)


def eps(x, *sizes):
    return float(dtypes.finfo(x.dtype).eps) * max(1, *sizes)


# --- factorizations -------------------------------------------------------------------------------

@composite(static=("upper", "symmetrize_input"))
def cholesky(a, *, upper=False, symmetrize_input=True):
    """L with a = L L^H, or with `upper` L^H, for Hermitian positive definite matrices; NaN for others.

    Args:
        a: matrices (..., n, n).
        symmetrize_input: take (a + a^H) / 2; otherwise only the lower triangle is read.

    >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    factor = lax.cholesky(square("linalg.cholesky", a), symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def eigh(a, UPLO=None, symmetrize_input=True):
    """(eigenvalues, eigenvectors) of Hermitian matrices: rising values, orthonormal columns.

    Args:
        a: matrices (..., n, n).
        UPLO: which triangle is read, "L" (which None is) or "U".
        symmetrize_input: take (a + a^H) / 2 instead.

    >>> jnp.linalg.eigh(jnp.array([[2., 1.], [1., 2.]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    v, w = lax.eigh(square("linalg.eigh", a), lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """The eigenvalues that eigh gives.

    >>> jnp.linalg.eigvalsh(jnp.array([[2., 1.], [1., 2.]]))
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a):
    """(eigenvalues, eigenvectors as columns of length one) of square matrices, complex and in no order.

    The eigenvalues can be differentiated; for the vectors see `enable_eigvec_derivs` of lax.linalg.eig.

    >>> jnp.linalg.eig(jnp.array([[0., 1.], [-1., 0.]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, v = lax.eig(square("linalg.eig", a), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a):
    """The eigenvalues (..., n) of square matrices (..., n, n), complex and in no order.

    >>> jnp.linalg.eigvals(jnp.array([[2., 1.], [0., 3.]]))
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    a = square("linalg.eigvals", a)
    return lax.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def qr(a, mode="reduced"):
    """(Q, R) with a = Q R, Q with orthonormal columns and R upper triangular, of matrices (..., m, n).

    Args:
        a: the matrices; k is min(m, n).
        mode: "reduced" (or "full") for Q (..., m, k) and R (..., k, n); "complete" for Q (..., m, m) and R
            (..., m, n); "r" for the R of "reduced" alone; "raw" for LAPACK's reflectors (..., n, m),
            transposed, and their factors (..., k).

    >>> abs(jnp.linalg.qr(jnp.array([[3., 1.], [4., 2.]])).R).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    a, = inexact("linalg.qr", a)
    if mode not in ("reduced", "complete", "r", "raw", "full"):
        raise not_one_of("mode", mode, ("reduced", "complete", "r", "raw"))
    if mode == "raw":
        packed, taus = geqrf_p.bind(a)
        return QRResult(matrix_transpose(packed), taus)
    q, r = lax.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None):
    """(U, S, Vh) with a = U diag(S) Vh and S falling, of matrices (..., m, n); S alone unless `compute_uv`.

    Args:
        full_matrices: U (..., m, m) and Vh (..., n, n); else (..., m, k) and (..., k, n), k = min(m, n).
        hermitian: a is; its eigenvalues are found.
        subset_by_index: (start, end) of the values to return with their vectors; full_matrices must be False.

    >>> jnp.linalg.svd(jnp.diag(jnp.array([3., 4.]))).S
    Array([4., 3.], dtype=float32)
    """
    if not hermitian:
        a, = inexact("linalg.svd", a)
        out = lax.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
        return SVDResult(*out) if compute_uv else out
    if full_matrices and subset_by_index is not None:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be set: give "
                         "full_matrices=False")
    kept = slice(*(subset_by_index or (None,)))
    out = _svd_hermitian(square("linalg.svd", a))
    out = SVDResult(out[0][..., kept], out[1][..., kept], out[2][..., kept, :])
    return out if compute_uv else out.S


@composite
def _svd_hermitian(a):
    v, w = lax.eigh(a)
    order = flip(argsort(abs(w), -1), -1)
    v, w = take_along_axis(v, order[..., None, :], -1), take_along_axis(w, order, -1)
    turned = v * where(w < 0, -1, 1).astype(v.dtype)[..., None, :]
    return v, abs(w), adjoint(turned)


def svdvals(x, /):
    """The singular values (..., min(m, n)) of matrices (..., m, n), falling.

    >>> jnp.linalg.svdvals(jnp.array([[0., 3.], [4., 0.]]))
    Array([4., 3.], dtype=float32)
    """
    return lax.svd(*inexact("linalg.svdvals", x), full_matrices=False, compute_uv=False)
