"""Solving with matrices and with their factors: triangular, LU, Cholesky.

Matrices have the shape (..., n, n), and leading axes broadcast.  A right-hand side is one vector (n,),
matrices (..., n, k), or vectors (..., n) where it has one axis less than the matrices and its shape
broadcasts against theirs.
"""
from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core import dtypes
from ...core.errors import check_choice, fits
from ...lax import linalg
from ...numpy.factorizations import adjoint, inexact, inexact_of, product, square
from ...numpy.linalg import after_lu
from ...numpy.util import promotes

__all__ = ["cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve", "solve",
           "solve_triangular"]


def _solved(name, solver, b, *factors):
    """solver(*factors, b) for one matrix and a right-hand side (n, k), over leading axes."""
    a = factors[0]
    n = a.shape[-1]
    vectors = b.ndim == 1 or b.ndim == a.ndim - 1 and fits(b.shape, a.shape[:-1])
    if b.ndim == 0 or b.shape[-1 if vectors else -2] != n:
        raise ValueError(f"{name}: the matrix has shape {a.shape}, so b must have shape ({n},) or [..., {n}, "
                         f"k], got shape {b.shape}")
    signature = ",".join(["(n,n)", *["(n)"] * (len(factors) - 1), "(n,k)"]) + "->(n,k)"
    out = jnp.vectorize(solver, signature=signature)(*factors, b[..., None] if vectors else b)
    return out[..., 0] if vectors else out


# --- triangular and Cholesky ----------------------------------------------------------------------

_TRANSPOSES = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None,
                     check_finite=True):
    """x with op(a) x = b for triangular a.

    Args:
        trans: op is nothing, the transpose or the adjoint for 0, 1, 2 or "N", "T", "C".
        lower: which triangle is read.
        unit_diagonal: the diagonal is not read, and is ones.

    >>> jax.scipy.linalg.solve_triangular(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    if trans not in _TRANSPOSES:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    return _triangular("solve_triangular", a, b, _TRANSPOSES[trans], bool(lower), bool(unit_diagonal))


@composite(static=("name", "trans", "lower", "unit_diagonal"))
def _triangular(name, a, b, trans, lower, unit_diagonal=False):
    a, b = inexact_of(a, b)
    return _solved(name, lambda a, b: linalg.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=trans > 0, conjugate_a=trans == 2,
        unit_diagonal=unit_diagonal),
        b, square(name, a))


@composite(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """U with a = U^H U, or with `lower` L with a = L L^H; NaN where there is none.

    Args:
        lower: which triangle is read, and returned.

    >>> jax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    a = square("cholesky", jnp.asarray(a))
    factor = linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(cholesky(a, lower), lower), for cho_solve.

    >>> jax.scipy.linalg.cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """x with a x = b, from cho_factor(a).

    >>> jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(jnp.array([[4.]])), jnp.array([8.]))
    Array([2.], dtype=float32)
    """
    c, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    return _triangular("cho_solve", c, _triangular("cho_solve", c, b, first, bool(lower)), second,
                       bool(lower))


# --- LU -------------------------------------------------------------------------------------------

def lu_factor(a, overwrite_a=False, check_finite=True):
    """(lu, pivots): L below the diagonal and U in the upper triangle; int32 pivots.

    Row i is exchanged with row pivots[i], i = 0, 1, ...

    >>> jax.scipy.linalg.lu_factor(jnp.array([[0., 2.], [4., 4.]]))
    (Array([[4., 4.],
           [0., 2.]], dtype=float32), Array([1, 1], dtype=int32))
    """
    packed, pivots, _ = linalg.lu(*inexact_of(a))
    return packed, pivots


@composite(static=("trans", "overwrite_b", "check_finite"))
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """x with op(a) x = b from lu_factor(a); op is nothing, the transpose or the adjoint (`trans` 0, 1, 2).

    >>> factors = jax.scipy.linalg.lu_factor(jnp.array([[0., 2.], [4., 4.]]))
    >>> jax.scipy.linalg.lu_solve(factors, jnp.array([2., 8.]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    if not isinstance(lu_and_piv, (tuple, list)) or len(lu_and_piv) != 2:
        raise ValueError("lu_solve: lu_and_piv must be what lu_factor gives, (lu, piv), got "
                         f"{type(lu_and_piv).__name__}")
    packed, pivots = lu_and_piv
    packed, b = inexact_of(packed, b)
    order = linalg.lu_pivots_to_permutation(pivots, square("lu_solve", packed).shape[-1])
    return _solved("lu_solve", lambda packed, order, b: after_lu(packed, order, b, trans), b, packed, order)


@composite(static=("permute_l", "overwrite_a", "check_finite"))
@promotes()
def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """(P, L, U) with a = P L U for matrices (..., m, n), k = min(m, n).

    Args:
        permute_l: return (P L, U).
    Returns:
        P (m, m) is a permutation, L (m, k) has ones on its diagonal, U is (k, n).

    >>> jax.scipy.linalg.lu(jnp.array([[0., 2.], [4., 4.]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    packed, _, order = linalg.lu(*inexact_of(a))
    m, n = packed.shape[-2:]
    k = min(m, n)
    low, up = jnp.tril(packed[..., :k], -1) + jnp.eye(m, k, dtype=packed.dtype), jnp.triu(packed[..., :k, :])
    if permute_l:
        return jnp.take_along_axis(low, jnp.argsort(order)[..., None], -2), up
    return (order[..., None, :] == jnp.arange(m)[:, None]).astype(dtypes.real_of(packed.dtype)), low, up


# --- dense ----------------------------------------------------------------------------------------

def det(a, overwrite_a=False, check_finite=True):
    """The determinants of square matrices (..., n, n).

    >>> jax.scipy.linalg.det(jnp.array([[2., 0.], [0., 4.]]))
    Array(8., dtype=float32)
    """
    return jnp.linalg.det(a)


def inv(a, overwrite_a=False, check_finite=True):
    """The inverses of square matrices (..., n, n).

    >>> jax.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


@composite(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a"))
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, debug=False, check_finite=True,
          assume_a="gen"):
    """x with a x = b, as jnp.linalg.solve.

    Args:
        lower: the triangle that is read for assume_a="pos".
        assume_a: "gen" for any matrices, "sym" and "her" for symmetric and Hermitian ones, which are solved
            alike, "pos" for positive definite ones, by Cholesky's factors.

    >>> jax.scipy.linalg.solve(jnp.array([[4.]]), jnp.array([2.]), assume_a='pos')
    Array([0.5], dtype=float32)
    """
    check_choice("assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)

    def one(a, b):
        factor, read = cho_factor(lax.stop_gradient(a), lower), jnp.tril if lower else jnp.triu
        a = read(a) + adjoint(read(a, -1 if lower else 1))      # what the factor is of
        # of the transpose
        return lax.custom_linear_solve(lambda x: product(a, x), b, lambda _, b: cho_solve(factor, b),
                                       lambda _, b: jnp.conj(cho_solve(factor, jnp.conj(b))))
    a, b = inexact("solve", a, b)
    return _solved("solve", one, b, square("solve", a))
