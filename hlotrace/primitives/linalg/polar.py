"""The polar decomposition, x = U H with U orthonormal and H positive semidefinite, by products and
factorizations alone.

QDWH: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition"
(2010); the singular value decomposition from it: Nakatsukasa and Higham, "Stable and efficient spectral
divide and conquer algorithms for the symmetric eigenvalue decomposition and the SVD" (2013).
"""
from ..arrays.elementwise import (
    abs_p,
    add,
    and_p,
    convert,
    div,
    eq,
    gt,
    le,
    lt,
    maximum,
    mul,
    or_p,
    power,
    select,
    sqrt,
    sub,
)
from ..arrays.reduce import reduce_max_p, reduce_or_p
from ..arrays.shape import full, reduce_sum
from ..arrays.slicing import rev_p
from ..common import dtype_of, dtypes, np, scalar, shape_of
from .eigen import eigh_p
from .factorizations import qr_p
from .linalg_fallbacks import repeated, scaled, size_squared, total
from .shared import (
    INT32,
    adjoint,
    block,
    columns,
    diagonal,
    eye_like,
    joined,
    matmul,
    real_dtype,
)
from .triangular import cholesky_p, triangular_solve


def _norm(x):
    """The Frobenius norm of each matrix."""
    n = len(shape_of(x))
    return sqrt(reduce_sum(size_squared(x), (n - 2, n - 1)))


def _scale(x):
    """An upper bound of the largest singular value: the root of the product of both norms."""
    size, n = abs_p.bind(x), len(shape_of(x))
    largest = [reduce_max_p.bind(total(size, axis), axes=(n - 2,)) for axis in (-1, -2)]
    bound = sqrt(mul(*largest))
    return select(eq(bound, 0), 1.0, bound)


def _weights(low):
    """Halley's weights a, b, c for singular values between `low` and 1, and the bound that holds after a step
    with them."""
    squared = mul(low, low)
    gap = maximum(sub(1.0, squared), 0.0)
    d = power(div(mul(gap, 4.0), mul(squared, squared)), 1 / 3)
    root = sqrt(add(d, 1.0))
    inner = add(sub(8.0, mul(d, 4.0)), div(mul(sub(2.0, squared), 8.0), mul(squared, root)))
    a = add(root, mul(sqrt(maximum(inner, 0.0)), 0.5))
    b = mul(mul(sub(a, 1.0), sub(a, 1.0)), 0.25)
    c = sub(add(a, b), 1.0)
    return a, b, c, div(mul(low, add(a, mul(b, squared))), add(mul(c, squared), 1.0))


def polar(x, most, eps):
    """(U, H, number of steps, whether they sufficed) of tall matrices; all of a batch take as many steps.

    Args:
        most: at most this many steps.
        eps: how near, relative to the largest, the smallest singular value may be to zero, and what U may
            lack.
    """
    dtype = dtype_of(x)
    near, settled = scalar(5 * eps, real_dtype(dtype)), scalar((4 * eps) ** (1 / 3), real_dtype(dtype))

    def stepper(move):
        def step(i, u, low, _):
            a, b, c, after = _weights(low)
            ratio = div(b, c)
            new = add(scaled(u, _over(u, ratio)), scaled(move(u, c), _over(u, sub(a, ratio))))
            still = gt(_norm(sub(new, u)), mul(_norm(new), settled))
            return [add(i, 1), new, after, reduce_or_p.bind(still, axes=tuple(range(len(shape_of(still)))))]
        return step

    def by_qr(u, c):        # works also where I + c U^H U has lost the smallest singular values
        eye = eye_like(block(u, rows=(0, shape_of(u)[-1])))
        m, below = shape_of(u)[-2], joined([scaled(u, _over(u, sqrt(c))), eye], -2)
        q, _ = qr_p.bind(below, pivoting=False, full_matrices=False, use_magma=None)
        return scaled(matmul(block(q, rows=(0, m)), adjoint(block(q, rows=(m, None)))),
                      _over(u, div(1.0, sqrt(c))))

    def by_cholesky(u, c):
        gram = matmul(adjoint(u), u)
        factor = cholesky_p.bind(add(eye_like(gram), scaled(gram, _over(gram, c))))
        half = triangular_solve(factor, u, left_side=False, transpose_a=True, conjugate_a=True)
        return triangular_solve(factor, half, left_side=False)

    def unfinished(i, u, low, moving):
        far = gt(abs_p.bind(sub(low, 1.0)), near)
        return and_p.bind(lt(i, most), or_p.bind(moving, far))
    state = scalar(0, INT32), scaled(x, convert(div(1.0, _scale(x)),
                                                dtype)), scalar(eps, real_dtype(dtype)), np.bool_(True)
    state = repeated(lambda i, u, low, moving: and_p.bind(unfinished(i, u, low, moving),
                                                          gt(_weights(low)[2], 100.0)), stepper(by_qr),
                     *state)
    i, u, low, moving = repeated(unfinished, stepper(by_cholesky), *state)
    # one step of Newton and Schulz takes away what rounding has left
    u = sub(mul(u, 1.5), mul(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = matmul(adjoint(u), x)
    h = div(add(h, adjoint(h)), 2)
    converged = and_p.bind(eq(moving, False), le(abs_p.bind(sub(low, 1.0)), near))
    return u, h, i, converged


def _over(x, number):
    """A number as a factor of matrices of this dtype."""
    return convert(number, dtype_of(x))


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
    s, v = maximum(rev_p.bind(w, dimensions=(last,)), 0.0), rev_p.bind(v, dimensions=(last + 1,))
    # where singular values vanish, so do columns of U V: another factorization fills them up
    u, r = qr_p.bind(matmul(u, v), pivoting=False, full_matrices=False, use_magma=None)
    diag = diagonal(r)
    size = convert(abs_p.bind(diag), dtype_of(x))
    u = mul(u, columns(select(eq(size, 0), full(shape_of(size), 1, dtype_of(x)), div(diag, size)), n))
    if m > n:
        thin = matmul(block(q, cols=(0, n)), u) if full_matrices else matmul(q, u)
        u = joined([thin, block(q, cols=(n, None))]) if full_matrices else thin
    return [s, u, adjoint(v)]
