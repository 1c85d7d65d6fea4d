"""Linear algebra of large matrices that are given sparse, or by what they do to vectors."""
import operator

from ... import lax, numpy as jnp
from ...core.surface.public import export_names
from ...core.trace import is_concrete
from ...numpy.util import promotes
from . import ad as ad
from .bcsr import BCSR

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(data, indices, indptr, b, tol=1e-6, reorder=1):
    """The solution x of A x = b, where A is a square matrix in CSR format.

    It runs on every platform and has derivatives with respect to `data` and `b` and a rule for vmap.  A
    singular matrix gives inf or NaN.  The matrix is made dense and factorized with pivoting, so it must not
    be larger than memory holds.

    Args:
        indices: their columns.
        indptr: where each row begins.
        tol: for the sparse solvers of NVIDIA, as in JAX; here it changes nothing.
        reorder: 0 to 3, alike.

    >>> from hlotrace.experimental import sparse
    >>> mat = sparse.CSR.fromdense(jnp.array([[2., 0.], [1., 4.]]))
    >>> sparse.linalg.spsolve(mat.data, mat.indices, mat.indptr, jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    if not isinstance(reorder, int) or reorder not in range(4) or is_concrete(tol) and not tol >= 0:
        raise ValueError(f"spsolve: reorder must be 0, 1, 2 or 3 and tol not negative, got {reorder!r} and "
                         f"{tol!r}")
    data, b, n = jnp.asarray(data), jnp.asarray(b), jnp.shape(indptr)[-1] - 1
    if b.shape != (n,):
        raise ValueError(f"spsolve: b must be a vector of size {n}, as indptr has {n + 1} elements, got "
                         f"shape {b.shape}")
    return jnp.linalg.solve(BCSR((data, indices, indptr), shape=(n, n)).todense(), b)


def lobpcg_standard(A, X, m=100, tol=None):
    """The largest eigenvalues of a Hermitian matrix, with vectors, by a method that only multiplies by it.

    A. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
    gradient method", 2001, without preconditioner; bases are made orthonormal by Householder's reflections.

    Args:
        A: an array or a sparse array (n, n), or a function that multiplies a matrix (n, k) by it.
        X: where the search begins, floats (n, k), with 5 k < n.
        m: the most iterations.
        tol: a vector v with |v| = 1 is found if |A v - t v| is at most 10 n tol (t + |A v|); the resolution
            of the dtype by default.
    Returns:
        (eigenvalues (k,), the largest first; vectors (n, k); the number of iterations).
    Raises:
        ValueError: for an X that is too wide.

    >>> from hlotrace.experimental import sparse
    >>> A, X = jnp.diag(jnp.arange(1., 21.)), jnp.eye(20)[:, 15:17] + 0.1
    >>> sparse.linalg.lobpcg_standard(A, X)[0].round(2)
    Array([20., 19.], dtype=float32)
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or not jnp.issubdtype(X.dtype, jnp.inexact):
        raise ValueError("lobpcg_standard: X must be floats of shape (n, k), got "
                         f"{X.dtype.name}{list(X.shape)}")
    n, k = X.shape
    if 5 * k >= n or not k:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {5 * k}, {n}): lobpcg_standard is for "
                         "few eigenvalues of large matrices; jnp.linalg.eigh gives all")
    if not callable(A) and tuple(A.shape) != (n, n):
        raise ValueError(f"lobpcg_standard: A must have shape {(n, n)}, as X has {n} rows, got {A.shape}")
    times = A if callable(A) else lambda x: A @ x
    m, tol = operator.index(m), jnp.finfo(X.dtype).eps if tol is None else tol

    def ritz(basis):
        """(eigenvalues, coefficients, basis, A @ basis) of what is largest in the space of `basis`."""
        sizes = jnp.linalg.norm(basis, axis=0)
        basis = jnp.linalg.qr(basis / jnp.where(sizes > 0, sizes, 1)[None])[0]
        image = times(basis)
        values, vectors = jnp.linalg.eigh(basis.conj().T @ image)
        return values[::-1][:k], vectors[:, ::-1][:, :k], basis, image

    @promotes()
    def moved(values, vectors, basis, image):
        X, AX = basis @ vectors, image @ vectors
        residual = AX - X * values
        limit = 10 * n * tol * (values + jnp.linalg.norm(AX, axis=0))
        return X, residual, (jnp.linalg.norm(residual, axis=0) > limit).any()

    def step(state):
        i, _, X, P, residual, _ = state
        values, vectors, basis, image = ritz(jnp.concatenate([X, residual, P], axis=1))
        X, residual, goes_on = moved(values, vectors, basis, image)
        return i + 1, values, X, basis[:, k:] @ vectors[k:], residual, goes_on
    values, *first = ritz(X)
    X, residual, goes_on = moved(values, *first)
    start = 0, values, X, jnp.zeros_like(X), residual, goes_on
    i, values, X, *_ = lax.while_loop(lambda s: (s[0] < m) & s[-1], step, start)
    return values, X, i


export_names(globals(), "ad")
