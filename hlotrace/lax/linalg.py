"""JAX's `lax.linalg`: factorizations and solvers of batches of matrices, close to LAPACK.

Matrices are the last two axes; all others are batch axes.  They are float32, float64, complex64 or
complex128. Where a factorization fails, its results are NaN.
"""
import operator

from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..core.surface.public import export_names
from ..primitives.arrays.elementwise import add, and_p, convert, div, lt, select
from ..primitives.arrays.shape import broadcast_axis, squeeze_p
from ..primitives.linalg.eigen import EighImplementation, EigImplementation, eig_p, eigh_p
from ..primitives.linalg.factorizations import (
    householder_product_p, lu_p, lu_pivots_to_permutation_p, ormqr_p, qr_p)
from ..primitives.linalg.hessenberg_schur import hessenberg_p, schur_p, tridiagonal_p
from ..primitives.linalg.polar import polar
from ..primitives.linalg.shared import adjoint, check_dtypes, check_square, place, transposed, triangle
from ..primitives.linalg.svd import SvdAlgorithm, svd_p
from ..primitives.linalg.triangular import (
    cholesky_p, cholesky_update_p, symmetric_product_p, triangular_solve_p)
from ..primitives.linalg.tridiagonal import tridiagonal_solve_p

__all__ = ["EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
           "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
           "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
           "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr", "qr_p",
           "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p", "triangular_solve",
           "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p"]


def _symmetrized(name, x):
    check_square(f"linalg.{name}", aval_of(x))
    if dtypes.is_integer(aval_of(x).dtype):
        x = convert(x, dtypes.to_inexact(aval_of(x).dtype))
    return div(add(x, adjoint(x)), 2)


def _bounds(subset_by_index):
    return None if subset_by_index is None else tuple(map(operator.index, subset_by_index))


@composite(static=("symmetrize_input",))
def cholesky(x, *, symmetrize_input=True):
    """The lower triangular L with x = L L^H, of Hermitian positive definite matrices of shape [..., n, n].

    Args:
        symmetrize_input: take (x + x^H) / 2; otherwise only the lower triangle is read.
    Raises:
        ValueError: unless they are square.

    >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky_p.bind(_symmetrized("cholesky", x) if symmetrize_input else x)


def cholesky_update(r_matrix, w_vector):
    """The upper triangular factor of R^T R + w w^T.

    It is found by rotations in O(n^2); the elements below the diagonal of R are unchanged.

    Args:
        r_matrix: real matrices R of shape [..., n, n].
        w_vector: vectors w of shape [..., n].

    >>> lax.linalg.cholesky_update(jnp.array([[2.]]), jnp.array([1.5]))
    Array([[2.5]], dtype=float32)
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


def _widened(*matrices):
    """(matrices of one half dtype in float32, a function that converts back); others as they are."""
    dtype = aval_of(matrices[0]).dtype
    if dtype not in (dtypes.float16, dtypes.bfloat16) or any(aval_of(x).dtype != dtype for x in matrices):
        return matrices, lambda x: x
    return [convert(x, dtypes.float32) for x in matrices], lambda x: convert(x, dtype)


def symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False):
    """alpha a a^T + beta c, of real matrices of shapes [..., m, n] and [..., m, m], c being symmetric.

    Args:
        symmetrize_output: copy the lower triangle into the upper one, which may not be computed.

    >>> lax.linalg.symmetric_product(jnp.array([[1., 2.]]), jnp.array([[3.]]), beta=1.)
    Array([[8.]], dtype=float32)
    """
    (a_matrix, c_matrix), narrow = _widened(a_matrix, c_matrix)
    out = narrow(symmetric_product_p.bind(a_matrix, c_matrix, alpha=float(alpha), beta=float(beta)))
    return add(triangle(out), transposed(triangle(out, inset=1))) if symmetrize_output else out


def triangular_solve(a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
                     unit_diagonal=False):
    """X with op(a) X = b if `left_side`, else with X op(a) = b, for triangular `a`.

    Args:
        a: triangular matrices of shape [..., n, n].
        b: matrices with the batch axes of `a`, or vectors: one axis less.
        lower: which triangle of `a` is read.
        transpose_a: op transposes.
        conjugate_a: op conjugates.
        unit_diagonal: take the diagonal of `a` for ones, and do not read it.
    Raises:
        TypeError: where dtypes or batch axes do not fit.
        ValueError: where sizes do not fit.

    >>> a, b = jnp.array([[2., 0.], [1., 4.]]), jnp.array([[2.], [9.]])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [2.]], dtype=float32)
    """
    (a, b), narrow = _widened(a, b)
    rank = aval_of(a).ndim
    column = rank - 1 if left_side else rank - 2
    vectors = aval_of(b).ndim == rank - 1 >= 1
    if vectors:
        b = broadcast_axis(b, 1, column)
    out = triangular_solve_p.bind(a, b, left_side=bool(left_side), lower=bool(lower),
                                  transpose_a=bool(transpose_a), conjugate_a=bool(conjugate_a),
                                  unit_diagonal=bool(unit_diagonal))
    out = narrow(out)
    return squeeze_p.bind(out, dimensions=(column,)) if vectors else out


def lu(x):
    """The factors P x = L U with partial pivoting, of matrices of shape [..., m, n].

    Returns:
        (lu, pivots, permutation): U in the upper triangle of `lu`, and L, whose diagonal is one, below it;
        the exchanges of row i with row pivots[i], i = 0, 1, ...; and the order of the rows after them, so
        that x[permutation] = L U.

    >>> lax.linalg.lu(jnp.array([[0., 2.], [4., 4.]]))
    [Array([[4., 4.],
           [0., 2.]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32)]
    """
    return lu_p.bind(x)


def lu_pivots_to_permutation(pivots, permutation_size):
    """The order of `permutation_size` rows after row i was exchanged with row pivots[i], i = 0, 1, ...

    Both are int32.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1]), 3)
    Array([1, 0, 2], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=operator.index(permutation_size))


def qr(x, *, pivoting=False, full_matrices=True, use_magma=None):
    """The factors x = Q R, Q orthonormal and R upper triangular, of matrices of shape [..., m, n].

    Args:
        pivoting: x[:, p] = Q R instead, with the diagonal of R falling in size; p is a third result.
        full_matrices: Q [..., m, m] and R [..., m, n], instead of [..., m, k] and [..., k, n], k = min(m, n).
        use_magma: on GPU, whether pivoting uses MAGMA.

    >>> abs(lax.linalg.qr(jnp.array([[3., 1.], [4., 2.]]))[1]).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32)
    """
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices),
                           use_magma=use_magma))


def householder_product(a, taus):
    """The first columns of a product of reflectors I - tau v v^H, as many as `a` has.

    Args:
        a: matrices of shape [..., m, n], whose columns below the diagonal are the vectors v.
        taus: the factors tau, of shape [..., k].

    >>> lax.linalg.householder_product(jnp.array([[1.], [1.]]), jnp.array([1.]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return householder_product_p.bind(a, taus)


def ormqr(a, taus, c, *, left=True, transpose=False):
    """The product Q c (c Q unless `left`) with the Q of a QR factorization, without making Q.

    Args:
        a: matrices of shape [..., m, n] with the reflectors below the diagonal.
        taus: the factors of the reflectors.
        left: on which side of `c` Q is.
        transpose: Q^H in place of Q.

    >>> lax.linalg.ormqr(jnp.array([[1.], [1.]]), jnp.array([1.]), jnp.array([[3.], [4.]]))
    Array([[-4.],
           [-3.]], dtype=float32)
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


def svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    """(U, s, V^H) with x = U diag(s) V^H, of matrices of shape [..., m, n]; s alone unless `compute_uv`.

    Args:
        full_matrices: U of shape [..., m, m] and V^H of [..., n, n], instead of [..., m, k] and [..., k, n],
            k = min(m, n).
        subset_by_index: (start, end) of the values, the largest being 0, to return with their vectors.
        algorithm: a SvdAlgorithm.
    Raises:
        NotImplementedError: for an algorithm that the platform does not have.

    >>> lax.linalg.svd(jnp.diag(jnp.array([3., 4.])), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    s, *vectors = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                             subset_by_index=_bounds(subset_by_index), algorithm=algorithm)
    return (vectors[0], s, vectors[1]) if compute_uv else s


@composite(static=("lower", "symmetrize_input", "sort_eigenvalues", "subset_by_index", "implementation"))
def eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, subset_by_index=None,
         implementation=None):
    """(v, w) with x v = v diag(w), of Hermitian matrices of shape [..., n, n]; w rises, and v is orthonormal.

    Args:
        lower: which triangle is read, without `symmetrize_input`.
        symmetrize_input: take (x + x^H) / 2.
        sort_eigenvalues: False leaves their order to the implementation.
        subset_by_index: (start, end) of the eigenvalues to return with their vectors.
        implementation: an EighImplementation.
    Raises:
        NotImplementedError: for an implementation that the platform does not have.

    >>> lax.linalg.eigh(jnp.diag(jnp.array([2., 1.])))[1]
    Array([1., 2.], dtype=float32)
    """
    x = _symmetrized("eigh", x) if symmetrize_input else x
    return tuple(eigh_p.bind(x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues),
                             subset_by_index=_bounds(subset_by_index), algorithm=implementation))


def eig(x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True, enable_eigvec_derivs=False,
        implementation=None, use_magma=None):
    """[w, vl, vr] of square matrices: x vr = vr diag(w), vl^H x = diag(w) vl^H; all complex.

    Vectors have length one, and their largest component is real.

    Args:
        x: matrices of shape [..., n, n].
        enable_eigvec_derivs: let the vectors be differentiated, which is right only where eigenvalues are
            distinct and each vector has one largest component.
        implementation: an EigImplementation, on GPU; CUSOLVER has no left eigenvectors.
        use_magma: the older form of `implementation`, True for MAGMA and False for LAPACK.

    >>> x = jnp.array([[0., 1.], [-1., 0.]])
    >>> lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    [Array([0.+1.j, 0.-1.j], dtype=complex64)]
    """
    if implementation is None and use_magma is not None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eig_p.bind(x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
                      compute_right_eigenvectors=bool(compute_right_eigenvectors),
                      enable_eigvec_derivs=bool(enable_eigvec_derivs), implementation=implementation)


def schur(x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    """[T, Q] with x = Q T Q^H, of square matrices; T alone unless `compute_schur_vectors`.

    Q is unitary and T upper triangular, but for 2 x 2 blocks of complex eigenvalues of real matrices.

    Raises:
        NotImplementedError: with `sort_eig_vals` or `select_callable`, and for real matrices but on the CPU.

    >>> lax.linalg.schur(jnp.array([[1., 2.], [0., 3.]]), compute_schur_vectors=False)
    [Array([[1., 2.],
           [0., 3.]], dtype=float32)]
    """
    return schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=sort_eig_vals,
                        select_callable=select_callable)


def hessenberg(a):
    """[h, taus]: x = Q H Q^H for square matrices, H with zeros below the first subdiagonal.

    There `h` has Q's reflectors, `taus` their factors; `householder_product` of h[1:, :-1] gives Q[1:, 1:].

    >>> lax.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    [Array([[1., 2.],
           [3., 4.]], dtype=float32), Array([0.], dtype=float32)]
    """
    return hessenberg_p.bind(a)


def tridiagonal(a, *, lower=True):
    """Hermitian matrices made tridiagonal by reflections from both sides.

    Args:
        a: matrices of shape [..., n, n], of which one triangle is read.
        lower: which triangle.
    Returns:
        [a, d, e, taus]: the diagonal d and the one beside it e; in `a` these, and the reflectors in the rest
        of the triangle; and the factors of the reflectors.

    >>> lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 5.]]))[1:3]
    [Array([1., 5.], dtype=float32), Array([2.], dtype=float32)]
    """
    return tridiagonal_p.bind(a, lower=bool(lower))


def tridiagonal_solve(dl, d, du, b, *, perturb_singular=False):
    """X with A X = b, A having the diagonals dl[..., 1:], d and du[..., :-1].

    Args:
        dl: the diagonal below, of shape [..., n].
        d: the diagonal, of shape [..., n].
        du: the diagonal above, of shape [..., n].
        b: of shape [..., n, k].
        perturb_singular: on the CPU and CUDA, change pivots near zero to have a finite result.

    >>> dl, d, du = jnp.array([0., 1.]), jnp.array([2., 2.]), jnp.array([1., 0.])
    >>> lax.linalg.tridiagonal_solve(dl, d, du, jnp.array([[3.], [3.]]))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


@composite(static=("is_hermitian", "max_iterations", "eps"))
def qdwh(x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None):
    """The polar decomposition x = u h, of tall matrices.

    It is found by the QDWH iteration of Nakatsukasa, Bai and Gygi (2010).

    Args:
        x: matrices of shape [..., m, n], m >= n.
        is_hermitian: says that x is, and u is made so exactly.
        max_iterations: at most so many, 10 if None.
        eps: how much the last iteration may change; if None, (4 eps)^(1/3) of the dtype in relative size.
        dynamic_shape: (m, n), the part of x that counts, maybe traced; the rest of the results is zero.
    Returns:
        (u, h, number of iterations, whether they sufficed), u orthonormal and h positive semidefinite.
    Raises:
        ValueError: if a matrix is wide.

    >>> lax.linalg.qdwh(jnp.array([[-3.]]))[:2]
    (Array([[-1.]], dtype=float32), Array([[3.]], dtype=float32))
    """
    aval = aval_of(x)
    check_dtypes("qdwh", aval)
    if aval.ndim < 2 or aval.shape[-2] < aval.shape[-1]:
        raise ValueError(f"The input matrix of shape M x N must have M >= N, got shape {aval.shape}: "
                         "decompose x^H")
    if is_hermitian:
        check_square("qdwh with is_hermitian=True", aval)
    if dynamic_shape is not None:
        inside = [lt(place(aval.shape, axis), size) for axis, size in zip((-2, -1), dynamic_shape)]
        x = select(and_p.bind(*inside), x, 0)
    eps = float(dtypes.finfo(aval.dtype).eps if eps is None else eps)
    u, h, steps, converged = polar(x, 10 if max_iterations is None else operator.index(max_iterations), eps)
    u = div(add(u, adjoint(u)), 2) if is_hermitian else u
    return u, h, convert(steps, dtypes.canonicalize(int), weak_type=True), converged


export_names(globals())
