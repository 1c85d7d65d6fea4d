# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import enum
from hlotrace.typing import ArrayLike
from typing import Any

__all__ = [
    'EigImplementation', 'EighImplementation', 'SvdAlgorithm', 'cholesky', 'cholesky_p', 'cholesky_update',
    'cholesky_update_p', 'eig', 'eig_p', 'eigh', 'eigh_p', 'hessenberg', 'hessenberg_p', 'householder_product',
    'householder_product_p', 'lu', 'lu_p', 'lu_pivots_to_permutation', 'lu_pivots_to_permutation_p', 'ormqr', 'ormqr_p',
    'qdwh', 'qr', 'qr_p', 'schur', 'schur_p', 'svd', 'svd_p', 'symmetric_product', 'symmetric_product_p', 'triangular_solve',
    'triangular_solve_p', 'tridiagonal', 'tridiagonal_p', 'tridiagonal_solve', 'tridiagonal_solve_p',
]

class EigImplementation(enum.Enum):
    CUSOLVER = 'cusolver'
    MAGMA = 'magma'
    LAPACK = 'lapack'

class EighImplementation(enum.Enum):
    QR = 'qr'
    JACOBI = 'jacobi'
    QDWH = 'qdwh'

class SvdAlgorithm(enum.Enum):
    DEFAULT = 'default'
    QR = 'QR'
    JACOBI = 'Jacobi'
    POLAR = 'polar'
    DIVIDE_AND_CONQUER = 'divide_and_conquer'

def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Any: ...
cholesky_p: Any
def cholesky_update(r_matrix: Any, w_vector: Any) -> Any: ...
cholesky_update_p: Any
def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False, implementation: Any = None, use_magma: Any = None,
) -> Any: ...
eig_p: Any
def eigh(
    x: ArrayLike, *, lower: ArrayLike = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: Any = None, implementation: Any = None,
) -> Any: ...
eigh_p: Any
def hessenberg(a: ArrayLike) -> Any: ...
hessenberg_p: Any
def householder_product(a: ArrayLike, taus: Any) -> Any: ...
householder_product_p: Any
def lu(x: ArrayLike) -> Any: ...
lu_p: Any
def lu_pivots_to_permutation(pivots: Any, permutation_size: Any) -> Any: ...
lu_pivots_to_permutation_p: Any
def ormqr(a: ArrayLike, taus: Any, c: Any, *, left: ArrayLike = True, transpose: bool = False) -> Any: ...
ormqr_p: Any
def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: Any = None, eps: Any = None, dynamic_shape: Any = None,
) -> Any: ...
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: Any = None) -> Any: ...
qr_p: Any
def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None,
) -> Any: ...
schur_p: Any
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: Any = None, algorithm: Any = None,
) -> Any: ...
svd_p: Any
def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: ArrayLike = 1.0, beta: Any = 0.0, symmetrize_output: bool = False,
) -> Any: ...
symmetric_product_p: Any
def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: ArrayLike = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any: ...
triangular_solve_p: Any
def tridiagonal(a: ArrayLike, *, lower: ArrayLike = True) -> Any: ...
tridiagonal_p: Any
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: ArrayLike, *, perturb_singular: bool = False) -> Any: ...
tridiagonal_solve_p: Any
