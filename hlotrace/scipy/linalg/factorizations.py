"""Factorizations under SciPy's names: eigenvalues, singular values, QR, Hessenberg and Schur forms."""
import functools

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core import dtypes
from ...core.errors import check_choice
from ...lax import linalg
from ...numpy.factorizations import adjoint, inexact_of, product, square
from ...numpy.util import promotes
from ...primitives.common import static_int

__all__ = ["eigh", "eigh_tridiagonal", "hessenberg", "qr", "qr_multiply", "rsf2csf", "schur", "svd"]


# --- Hermitian matrices ---------------------------------------------------------------------------

def eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True,
         eigvals=None, type=1, check_finite=True):
    """(rising eigenvalues w, eigenvectors v as columns) of Hermitian matrices; w alone if eigvals_only.

    Args:
        a: matrices (..., n, n), taken as (a + a^H) / 2.
        b: positive definite matrices, taken alike; the identity for None.
        lower: which triangle is read.
        eigvals_only: return w alone.
        overwrite_a: accepted, and not used, as the other options of LAPACK are.
        overwrite_b: not used.
        turbo: not used.
        eigvals: not supported; None.
        type: the problem, 1 for a v = b v w, 2 for a b v = v w, 3 for b a v = v w.
        check_finite: not used.

    >>> jax.scipy.linalg.eigh(jnp.array([[2., 0.], [0., 1.]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if eigvals is not None:
        raise NotImplementedError("eigh: eigvals, which selects some of the eigenvalues, is not taken; slice "
                                  "the results")
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    v, w = _eigh(a, b, lower=bool(lower), type=type)
    return w if eigvals_only else (w, v)


@composite(static=("lower", "type"))
def _eigh(a, b, lower, type):
    if b is None:
        return linalg.eigh(square("eigh", jnp.asarray(a)), lower=lower)
    a, b = inexact_of(a, b)
    if square("eigh", a).shape[-2:] != square("eigh", b).shape[-2:]:
        raise ValueError(f"eigh: a and b must have equal sizes, got shapes {a.shape} and {b.shape}")
    factor = linalg.cholesky(b)
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, factor = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in ((a + adjoint(a)) / 2, factor))
    solve = functools.partial(linalg.triangular_solve, factor, lower=True)
    if type == 1:
        a = solve(solve(a, left_side=True), transpose_a=True, conjugate_a=True)
    else:
        a = product(adjoint(factor), product(a, factor))
    v, w = linalg.eigh(a, lower=lower)
    return (product(factor, v) if type == 3 else solve(v, left_side=True, transpose_a=True,
                                                       conjugate_a=True)), w


def eigh_tridiagonal(d, e, *, eigvals_only=False, select="a", select_range=None, tol=None, key=None):
    """(rising eigenvalues, eigenvectors as columns) of a Hermitian tridiagonal matrix.

    Args:
        d: the diagonal (n,).
        e: the diagonal below it (n - 1,).
        eigvals_only: return the eigenvalues alone.
        select: "a" for all, "i" for those with the numbers of `select_range`.
        select_range: (first, last), both included.
        tol: an error that is allowed; they are as exact as the dtype has them.

    >>> jax.scipy.linalg.eigh_tridiagonal(jnp.array([2., 1.]), jnp.array([0.]), eigvals_only=True).round(3)
    Array([1., 2.], dtype=float32)
    """
    if key is not None:
        raise NotImplementedError("eigh_tridiagonal: key is of methods that iterate, as this does not; leave "
                                  "it out")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented: compute all, and "
                                  "mask some")
    check_choice("select", select, ("a", "i"))
    if select == "i" and select_range is None:
        raise ValueError("for select='i', select_range must be specified: (first, last), both included")
    d, e = inexact_of(d, e)
    if d.ndim != 1 or e.shape != (max(len(d) - 1, 0),):
        raise TypeError("eigh_tridiagonal: d must be a vector and e one that is shorter by one, got shapes "
                        f"{d.shape} and {e.shape}; jax.vmap takes batches")
    bounds = None if select == "a" else (static_int(select_range[0], "select_range"),
                                         static_int(select_range[1], "select_range") + 1)
    v, w = linalg.eigh(jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1))
    w, v = (w, v) if bounds is None else (w[bounds[0]:bounds[1]], v[:, bounds[0]:bounds[1]])
    return w if eigvals_only else (w, v)


# --- singular values -------------------------------------------------------------------------------------

_DRIVERS = {"gesdd": None, "gesvd": linalg.SvdAlgorithm.QR}


def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """(U, s, V^H) with a = U diag(s) V^H and s falling, of matrices (..., m, n); s alone unless compute_uv.

    Args:
        full_matrices: U (..., m, m) and V^H (..., n, n); else (..., m, k) and (..., k, n), k = min(m, n).
        lapack_driver: "gesdd", or "gesvd", which is slower and more careful, where the platform has it.

    >>> jax.scipy.linalg.svd(jnp.array([[0., 3.], [4., 0.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    check_choice("lapack_driver", lapack_driver, _DRIVERS)
    return linalg.svd(*inexact_of(a), full_matrices=full_matrices, compute_uv=compute_uv,
                      algorithm=_DRIVERS[lapack_driver])


# --- QR -------------------------------------------------------------------------------------------

def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """(Q, R) with a = Q R, of matrices (..., m, n); with `pivoting` (Q, R, p) with a[:, p] = Q R.

    Args:
        mode: "full" for Q (..., m, m) and R (..., m, n), "economic" for (..., m, k) and (..., k, n), k =
            min(m, n), "r" for the full R without Q.

    >>> abs(jax.scipy.linalg.qr(jnp.array([[3., 1.], [4., 2.]]), mode='r')[0]).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    check_choice("mode", mode, ("full", "r", "economic"))
    out = linalg.qr(*inexact_of(a), pivoting=pivoting, full_matrices=mode != "economic")
    return out[1:] if mode == "r" else out


def qr_multiply(a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False):
    """(c @ Q, R), or for mode="left" (Q @ c, R), from the economic QR of matrices; with `pivoting` p behind.

    Args:
        a: matrices (..., m, n).
        c: matrices; a vector is a row on the left of Q, a column on its right.
        mode: "right" or "left", the side of `c` that Q is on.
        pivoting: with R for a[:, p].
        conjugate: with the conjugate of Q.

    >>> abs(jax.scipy.linalg.qr_multiply(jnp.array([[3.], [4.]]), jnp.array([[3., 4.]]))[0]).round(3)
    Array([[5.]], dtype=float32)
    """
    check_choice("mode", mode, ("right", "left"))
    a, c = inexact_of(a, c)
    q, *rest = linalg.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    if mode == "right":
        factors, axis, size, said = (c, q), -1, q.shape[-2], ("c @ Q", "columns")
    else:
        factors, axis, size, said = (q, c), max(c.ndim - 2, 0), q.shape[-1], ("Q @ c", "rows")
    if not c.ndim or c.shape[axis] != size:
        raise ValueError(f"qr_multiply: for {said[0]}, Q having shape {q.shape[-2:]}, c must have {size} "
                         f"{said[1]}, got shape {c.shape}")
    return product(*factors), *rest


# --- Hessenberg and Schur forms -------------------------------------------------------------------

def hessenberg(a, *, calc_q=False, overwrite_a=False, check_finite=True):
    """H with a = Q H Q^H, zero below the first subdiagonal, of square matrices; with `calc_q` (H, Q).

    >>> jax.scipy.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    packed, taus = linalg.hessenberg(square("hessenberg", a))
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    n = packed.shape[-1]
    q = jnp.broadcast_to(jnp.eye(n, dtype=packed.dtype), packed.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(linalg.householder_product(packed[..., 1:, :-1], taus))
    return h, q


def schur(a, output="real"):
    """[T, Z] with a = Z T Z^H, Z unitary, of square matrices (..., n, n).

    Args:
        output: "complex" for T upper triangular; "real" keeps real matrices real, with blocks of 2 by 2 on
            the diagonal of T for pairs of complex eigenvalues.

    >>> jax.scipy.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    check_choice("output", output, ("real", "complex"))
    a = square("schur", a)
    return linalg.schur(a.astype(dtypes.complex_of(a.dtype)) if output == "complex" else a)


@composite(static=("check_finite",))
@promotes("T", "Z")
def rsf2csf(T, Z, check_finite=True):
    """The complex Schur form from a real one: each block of 2 by 2 is made a triangle.

    Args:
        T: of the real form, as `schur` gives it.
        Z: of the real form.
        check_finite: not used.

    >>> jax.scipy.linalg.rsf2csf(jnp.array([[1., 2.], [0., 3.]]), jnp.eye(2))[0]
    Array([[1.+0.j, 2.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    T, Z = inexact_of(T, Z)
    if square("rsf2csf", T).shape[-2:] != square("rsf2csf", Z).shape[-2:]:
        raise ValueError(f"rsf2csf: T and Z must have equal sizes, got shapes {T.shape} and {Z.shape}")
    return jnp.vectorize(_triangularized, signature="(n,n),(n,n)->(n,n),(n,n)")(T, Z)


def _triangularized(t, z):
    """Rotations of two neighbours, last pair first (Golub and Van Loan, "Matrix Computations", 7.4)."""
    n = len(t)
    t, z = t.astype(dtypes.complex_of(t.dtype)), z.astype(dtypes.complex_of(z.dtype))

    def step(k, state):
        t, z = state
        m = n - 1 - k
        rows = lambda x: lax.dynamic_slice_in_dim(x, m - 1, 2, 0)
        (a, b), (c, d) = lax.dynamic_slice_in_dim(rows(t), m - 1, 2, 1)
        half = (a - d) / 2
        shift = half + jnp.sqrt(half * half + b * c)            # an eigenvalue of the block, less d
        size = jnp.sqrt(jnp.abs(shift) ** 2 + jnp.abs(c) ** 2)
        turns = c != 0
        cos, sin = jnp.where(turns, shift / size, 1), jnp.where(turns, c / size, 0)
        g = jnp.array([[jnp.conj(cos), sin], [-sin, cos]])
        after = jnp.where(jnp.arange(n) >= m - 1, product(g, rows(t)), rows(t))
        t = lax.dynamic_update_slice_in_dim(t, after, m - 1, 0)

        def turned(x):
            pair = lax.dynamic_slice_in_dim(x, m - 1, 2, 1)
            return lax.dynamic_update_slice_in_dim(x, product(pair, adjoint(g)), m - 1, 1)
        return turned(t).at[m, m - 1].set(0), turned(z)
    return lax.fori_loop(0, n - 1, step, (t, z)) if n > 1 else (t, z)
