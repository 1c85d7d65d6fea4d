"""The polar decomposition, x = U H with U orthonormal and H positive semidefinite, by products and factors.

QDWH: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition"
(2010); the singular value decomposition from it: Nakatsukasa and Higham, "Stable and efficient spectral
divide and conquer algorithms for the symmetric eigenvalue decomposition and the SVD" (2013).
"""
from ..arrays import elementwise as e
from ..arrays.reduce import reduce_max_p, reduce_or_p
from ..arrays.shape import full, reduce_sum
from ..arrays.slicing import rev_p
from ..arrays.transcendental import power, sqrt
from ..common import dtype_of, dtypes, np, scalar, shape_of
from .eigen import eigh_p
from .factorizations import qr_p
from .linalg_fallbacks import repeated, scaled, size_squared, total
from .shared import INT32, adjoint, block, columns, diagonal, eye_like, joined, matmul, real_dtype
from .triangular import cholesky_p, triangular_solve


def _norm(x):
    """The Frobenius norm of each matrix."""
    n = len(shape_of(x))
    return sqrt(reduce_sum(size_squared(x), (n - 2, n - 1)))


def _scale(x):
    """An upper bound of the largest singular value: the root of the product of both norms."""
    size, n = e.abs_p.bind(x), len(shape_of(x))
    largest = [reduce_max_p.bind(total(size, axis), axes=(n - 2,)) for axis in (-1, -2)]
    bound = sqrt(e.mul(*largest))
    return e.select(e.eq(bound, 0), 1.0, bound)


def _weights(low):
    """Halley's weights a, b, c for singular values between `low` and 1, and the bound that holds after a step
    with them."""
    squared = e.mul(low, low)
    gap = e.maximum(e.sub(1.0, squared), 0.0)
    d = power(e.div(e.mul(gap, 4.0), e.mul(squared, squared)), 1 / 3)
    root = sqrt(e.add(d, 1.0))
    inner = e.add(e.sub(8.0, e.mul(d, 4.0)), e.div(e.mul(e.sub(2.0, squared), 8.0), e.mul(squared, root)))
    a = e.add(root, e.mul(sqrt(e.maximum(inner, 0.0)), 0.5))
    b = e.mul(e.mul(e.sub(a, 1.0), e.sub(a, 1.0)), 0.25)
    c = e.sub(e.add(a, b), 1.0)
    return a, b, c, e.div(e.mul(low, e.add(a, e.mul(b, squared))), e.add(e.mul(c, squared), 1.0))


def polar(x, most, eps):
    """(U, H, number of steps, whether they sufficed) of tall matrices; all of a batch take as many steps.

    Args:
        most: at most this many steps.
        eps: how near zero the smallest singular value may be, over the largest, and what U may lack.
    """
    dtype = dtype_of(x)
    near, settled = scalar(5 * eps, real_dtype(dtype)), scalar((4 * eps) ** (1 / 3), real_dtype(dtype))

    def stepper(move):
        def step(i, u, low, _):
            a, b, c, after = _weights(low)
            ratio = e.div(b, c)
            new = e.add(scaled(u, _over(u, ratio)), scaled(move(u, c), _over(u, e.sub(a, ratio))))
            still = e.gt(_norm(e.sub(new, u)), e.mul(_norm(new), settled))
            return [e.add(i, 1), new, after, reduce_or_p.bind(still, axes=tuple(range(len(shape_of(still)))))]
        return step

    def by_qr(u, c):        # works also where I + c U^H U has lost the smallest singular values
        eye = eye_like(block(u, rows=(0, shape_of(u)[-1])))
        m, below = shape_of(u)[-2], joined([scaled(u, _over(u, sqrt(c))), eye], -2)
        q, _ = qr_p.bind(below, pivoting=False, full_matrices=False, use_magma=None)
        return scaled(matmul(block(q, rows=(0, m)), adjoint(block(q, rows=(m, None)))),
                      _over(u, e.div(1.0, sqrt(c))))

    def by_cholesky(u, c):
        gram = matmul(adjoint(u), u)
        factor = cholesky_p.bind(e.add(eye_like(gram), scaled(gram, _over(gram, c))))
        half = triangular_solve(factor, u, left_side=False, transpose_a=True, conjugate_a=True)
        return triangular_solve(factor, half, left_side=False)

    def unfinished(i, u, low, moving):
        far = e.gt(e.abs_p.bind(e.sub(low, 1.0)), near)
        return e.and_p.bind(e.lt(i, most), e.or_p.bind(moving, far))
    state = scalar(0, INT32), scaled(x, e.convert(e.div(1.0, _scale(x)),
                                                  dtype)), scalar(eps, real_dtype(dtype)), np.bool_(True)
    state = repeated(lambda i, u, low, moving: e.and_p.bind(unfinished(i, u, low, moving),
                                                            e.gt(_weights(low)[2], 100.0)), stepper(by_qr),
                     *state)
    i, u, low, moving = repeated(unfinished, stepper(by_cholesky), *state)
    # one step of Newton and Schulz takes away what rounding has left
    u = e.sub(e.mul(u, 1.5), e.mul(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = matmul(adjoint(u), x)
    h = e.div(e.add(h, adjoint(h)), 2)
    converged = e.and_p.bind(e.eq(moving, False), e.le(e.abs_p.bind(e.sub(low, 1.0)), near))
    return u, h, i, converged


def _over(x, number):
    """A number as a factor of matrices of this dtype."""
    return e.convert(number, dtype_of(x))


def polar_svd(x, full_matrices):
    """s, U and V^H: of x = U H the eigenvectors of H are V, its eigenvalues s, and U V is U."""
    m, n = shape_of(x)[-2:]
    if m < n:
        s, u, vh = polar_svd(adjoint(x), full_matrices)
        return [s, adjoint(vh), adjoint(u)]
    square = x
    if m > n:
        q, square = qr_p.bind(x, pivoting=False, full_matrices=full_matrices, use_magma=None)
        square = block(square, rows=(0, n))
    eps = float(dtypes.finfo(real_dtype(dtype_of(x))).eps)
    u, h, _, _ = polar(square, 10, eps)
    v, w = eigh_p.bind(h, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None)
    last = len(shape_of(w)) - 1
    s, v = e.maximum(rev_p.bind(w, dimensions=(last,)), 0.0), rev_p.bind(v, dimensions=(last + 1,))
    # where singular values vanish, so do columns of U V: another factorization fills them up
    u, r = qr_p.bind(matmul(u, v), pivoting=False, full_matrices=False, use_magma=None)
    diag = diagonal(r)
    size = e.convert(e.abs_p.bind(diag), dtype_of(x))
    u = e.mul(u, columns(e.select(e.eq(size, 0), full(shape_of(size), 1, dtype_of(x)), e.div(diag, size)), n))
    if m > n:
        thin = matmul(block(q, cols=(0, n)), u) if full_matrices else matmul(q, u)
        u = joined([thin, block(q, cols=(n, None))]) if full_matrices else thin
    return [s, u, adjoint(v)]
