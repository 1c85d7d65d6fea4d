"""Functions of matrices, the polar decomposition, and Sylvester's equation.

A function of a triangular matrix is triangular and commutes with it, so its columns follow from those before
them, each by one triangular solve (`_by_columns`); any matrix is made triangular by its Schur form.
"""
import functools
import math

from ... import lax, numpy as jnp
from ...api.autodiff import jvp
from ...api.composite import composite
from ...api.custom_derivatives import custom_jvp
from ...core import dtypes
from ...core.errors import check_choice
from ...lax import linalg
from ...numpy.factorizations import adjoint, inexact_of, product, square
from ...numpy.util import promotes
from ...primitives.common import static_int

__all__ = ["expm", "expm_frechet", "funm", "polar", "solve_sylvester", "sqrtm"]


def _schur(a):
    """(T, U) with a = U T U^H, complex, T upper triangular."""
    return linalg.schur(a.astype(dtypes.complex_of(a.dtype)))


def _by_columns(shape, dtype, column):
    """The matrix Y whose columns are column(j, Y) in turn, those that are not yet known being zero."""
    return lax.fori_loop(0, shape[1], lambda j, y: y.at[:, j].set(column(j, y)), jnp.zeros(shape, dtype))


def _column(a, b, j):
    """The solution of the first j equations of a x = b, a being upper triangular; zero behind.

    A zero on the diagonal counts as 1, so that what is no equation, 0 x = 0, has the solution 0.
    """
    i = jnp.arange(len(b))
    a = jnp.where(i < j, a, 0)
    a = a.at[i, i].set(jnp.where((i < j) & (a[i, i] != 0), a[i, i], 1))
    return linalg.triangular_solve(a, jnp.where(i < j, b, 0)[:, None], left_side=True)[:, 0]


# --- Sylvester ------------------------------------------------------------------------------------

@composite(static=("method",))
@promotes("A", "B", "C")
def solve_sylvester(A, B, C, *, method="schur", tol=1e-8):
    """X with A X + X B = C.

    NaN where an eigenvalue of A and one of B have a sum below `tol`: there is no solution, or many.

    Args:
        A: (..., m, m).
        B: (..., n, n).
        C: (..., m, n).
        method: "schur" (Bartels and Stewart, "Solution of the matrix equation AX + XB = C", Communications of
            the ACM 15, 1972), or "eigen" by eigenvectors, quicker, and inexact if these nearly depend.
        tol: the least sum of eigenvalues.

    >>> jax.scipy.linalg.solve_sylvester(jnp.array([[1.]]), jnp.array([[3.]]), jnp.array([[8.]]))
    Array([[2.]], dtype=float32)
    """
    check_choice("method", method, ("schur", "eigen"))
    A, B, C = inexact_of(A, B, C)
    if not (min(A.ndim, B.ndim, C.ndim) > 1 and A.shape[-2:] + B.shape[-2:] == 2 * C.shape[-2:-1] + 2 *
            C.shape[-1:]):
        raise ValueError("solve_sylvester: A must have shape [..., m, m], B [..., n, n] and C [..., m, n], "
                         f"got shapes {A.shape}, {B.shape} and {C.shape}")
    return jnp.vectorize(lambda A, B, C: _sylvester(A, B, C, tol, method == "schur"),
                         signature="(m,m),(n,n),(m,n)->(m,n)")(A, B, C)


def _sylvester(A, B, C, tol, by_schur):
    decomposed = _schur if by_schur else lambda a: linalg.eig(a, compute_left_eigenvectors=False)
    a, b = decomposed(lax.stop_gradient(A)), decomposed(lax.stop_gradient(B))
    sums = jnp.add.outer(*(jnp.diag(t) if by_schur else t for t, _ in (a, b)))
    solve = _by_schur if by_schur else _by_vectors
    # transposed, it is B X^T + X^T A = C^T
    x = lax.custom_linear_solve(lambda x: product(A, x) + product(x, B), C, lambda _, c: solve(*a, *b, c),
                                lambda _, c: solve(*b, *a, c.T).T)
    return jnp.where((jnp.abs(sums) < tol).any(), jnp.nan, x)


def _by_schur(r, u, s, v, c):
    f = product(adjoint(u), c, v)
    eye = jnp.eye(len(r), dtype=r.dtype)
    y = _by_columns(f.shape, f.dtype, lambda j, y: linalg.triangular_solve(
        r + s[j, j] * eye, f[:, j, None] - product(y, s[:, j, None]), left_side=True)[:, 0])
    return _of_kind(c, product(u, y, adjoint(v)))


def _by_vectors(w, u, z, v, c):
    y = product(jnp.linalg.solve(u, c.astype(u.dtype)), v) / jnp.add.outer(w, z)
    return _of_kind(c, jnp.linalg.solve(v.T, product(u, y).T).T)


def _of_kind(c, x):
    return x if dtypes.is_complex(c.dtype) else x.real


# --- functions ------------------------------------------------------------------------------------

@composite(static=("upper_triangular", "max_squarings"))
@promotes()
def expm(A, *, upper_triangular=False, max_squarings=16):
    """The exponentials of square matrices (..., n, n), by scaling, a Pade approximant and squaring.

    Source: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM Journal
    on Matrix Analysis and Applications 26, 2005.

    Args:
        upper_triangular: they are, which makes solving quicker.
        max_squarings: where two more were needed, as norms are large, the result is NaN.

    >>> jax.scipy.linalg.expm(jnp.array([[0., 1.], [0., 0.]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    A = square("expm", A)
    count = static_int(max_squarings, "max_squarings") + 1      # the last, as JAX rounds what is needed down
    double = dtypes.finfo(A.dtype).bits == 64
    degree, radius = (13, 5.371920351148152) if double else (7, 3.925724783138660)
    size = jnp.linalg.norm(A, 1, (-2, -1))
    squarings = jnp.where(size > radius, jnp.ceil(jnp.log2(size / radius)), 0)
    squarings = lax.stop_gradient(squarings)[..., None, None]
    odd, even = _pade(A * jnp.exp2(-squarings).astype(A.dtype), degree)
    # odd + even over even - odd; they commute, and transposed they have LAPACK's layout
    if upper_triangular:
        half = linalg.triangular_solve(even - odd, odd)
    else:
        half = jnp.matrix_transpose(jnp.linalg.solve(*map(jnp.matrix_transpose, (even - odd, odd))))
    out = 2 * half + jnp.eye(A.shape[-1], dtype=A.dtype)

    def step(state):
        i, x = state
        # for the others zeros are squared, since infinities would have NaN for a derivative
        going = i < squarings
        y = jnp.where(going, x, 0)
        return i + 1, jnp.where(going, product(y, y), x)
    out = lax.while_loop(lambda state: (state[0] < jnp.minimum(squarings, count)).any(), step,
                         (jnp.zeros((), size.dtype), out), max_steps=count)[1]
    return jnp.where(squarings > count, jnp.nan, out)


def _pade(a, m):
    """The odd and the even part of the numerator of the Pade approximant [m/m] of exp at `a`; m is 7 or 13.

    Its coefficients are binomial(m, k) (2 m - k)! / (2 m)!.
    """
    c = [math.comb(m, k) * math.factorial(2 * m - k) / math.factorial(2 * m) for k in range(m + 1)]
    squares = product(a, a)
    powers = [jnp.eye(a.shape[-1], dtype=a.dtype), squares, product(squares, squares)]
    powers.append(product(squares, powers[2]))

    def total(first):
        low = sum(c[2 * k + first] * p for k, p in enumerate(powers))
        if m == 7:
            return low
        return low + product(powers[3], sum(c[2 * k + 6 + first] * p for k, p in enumerate(powers) if k))
    return product(a, total(1)), total(0)


@promotes("A", "E")
def expm_frechet(A, E, *, method=None, compute_expm=True):
    """(expm(A), its derivative in the direction E) for square matrices.

    Args:
        E: the directions.
        method: "SPS", which None is, differentiates scaling, Pade approximant and squaring (Al-Mohy and
            Higham, SIAM Journal on Matrix Analysis and Applications 30, 2009); "blockEnlarge" takes the
            exponential of [[A, E], [0, A]].
        compute_expm: False returns the derivative alone.

    >>> jax.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    check_choice("method", "SPS" if method is None else method, ("SPS", "blockEnlarge"))
    A, E = inexact_of(A, E)
    if square("expm_frechet", A).shape != E.shape:
        raise ValueError(f"expm_frechet: A and E must have one shape, got {A.shape} and {E.shape}")
    if method == "blockEnlarge":
        both = expm(jnp.block([[A, E], [jnp.zeros_like(A), A]]))
        n = A.shape[-1]
        out, change = both[..., :n, :n], both[..., :n, n:]
    else:
        out, change = jvp(expm, (A,), (E,))
    return (out, change) if compute_expm else change


@composite(static=("blocksize",))
@promotes()
def sqrtm(A, blocksize=1):
    """The principal square roots of square matrices (..., n, n), complex; useless where there are none.

    Source: A. Bjorck and S. Hammarling, "A Schur method for the square root of a matrix", Linear Algebra and
    its Applications 52, 1983.

    >>> jax.scipy.linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: blocksize, which SciPy's quicker method takes, must be 1")
    return _sqrtm(square("sqrtm", A))


@custom_jvp
def _sqrtm(a):
    return jnp.vectorize(_square_root, signature="(n,n)->(n,n)")(a)


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    """X X = A has the tangent X dX + dX X = dA."""
    x = _sqrtm(*primals)
    return x, solve_sylvester(x, x, tangents[0].astype(x.dtype), tol=0)


def _square_root(a):
    t, u = _schur(a)
    i = jnp.arange(len(t))

    def column(j, r):
        root = jnp.sqrt(t[j, j])
        x = _column(r + root * jnp.eye(len(t), dtype=t.dtype), t[:, j], j)
        unsolved = (jnp.diag(r) + root == 0) & (x != 0)
        return jnp.where(i == j, root, jnp.where(unsolved, jnp.nan, x))
    return product(u, _by_columns(t.shape, t.dtype, column), adjoint(u))


def funm(A, func, disp=True):
    """An elementwise function as a function of square matrices; the result is complex.

    Eigenvalues that are nearly equal make it inexact.  Source: B. N. Parlett, "A recurrence among the
    elements of functions of triangular matrices", Linear Algebra and its Applications 14, 1976.

    Args:
        func: elementwise, on complex arrays.
        disp: False returns also an estimate of the relative error.

    >>> jax.scipy.linalg.funm(jnp.diag(jnp.array([1., 4.])), jnp.sqrt).real
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    a = square("funm", jnp.asarray(A))
    if a.ndim > 2:
        raise ValueError(f"funm: A must be one square matrix, got shape {a.shape}; jax.vmap takes batches")
    t, u = _schur(a)
    values = func(jnp.diag(t))
    out = product(u, _of_triangle(t, values), adjoint(u))
    if disp:
        return out
    i, eps = jnp.arange(len(t)), dtypes.finfo(t.dtype).eps
    gaps = jnp.where(i[:, None] > i, jnp.abs(jnp.diag(t)[:, None] - jnp.diag(t)), jnp.abs(t[0, 0]))
    return out, jnp.clip(eps * jnp.linalg.norm(jnp.triu(t, 1), 1) / jnp.min(gaps), eps, 1)


@composite
def _of_triangle(t, values):
    """The function of an upper triangular matrix that has these values at its eigenvalues."""
    i = jnp.arange(len(t))

    def column(j, f):
        before = jnp.where(i < j, t[:, j], 0)
        x = _column(t - t[j, j] * jnp.eye(len(t), dtype=t.dtype), product(f, before) - values[j] * before, j)
        return jnp.where(i == j, values[j], x)
    return _by_columns(t.shape, jnp.result_type(t, values), column)


# --- polar ----------------------------------------------------------------------------------------

@promotes()
def polar(a, side="right", *, method="qdwh", eps=None, max_iterations=None):
    """(U, P) with a = U P, or P U for side="left": P positive semidefinite, U orthonormal.

    Source: Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition", SIAM Journal on Matrix Analysis and Applications 31, 2010.

    Args:
        a: matrices (..., m, n); U has orthonormal columns, or rows where n > m.
        side: "right" or "left", where P is.
        method: "qdwh", which iterates and takes m >= n on the right, m <= n on the left, or "svd".
        eps: how much the last iteration of "qdwh" may have changed.
        max_iterations: of "qdwh".

    >>> jax.scipy.linalg.polar(jnp.array([[-3.]]))
    (Array([[-1.]], dtype=float32), Array([[3.]], dtype=float32))
    """
    check_choice("side", side, ("right", "left"))
    check_choice("method", method, ("qdwh", "svd"))
    a, = inexact_of(a)
    if a.ndim < 2:
        raise ValueError("polar: a matrix or a batch of them is needed, of shape [..., m, n], got shape "
                         f"{a.shape}")
    if method == "qdwh" and (a.shape[-1] > a.shape[-2] if side == "right" else a.shape[-2] > a.shape[-1]):
        raise NotImplementedError(f"polar: method='qdwh' with side={side!r} takes matrices (m, n) with m "
                                  f"{'>=' if side == 'right' else '<='} n, got shape {a.shape}; "
                                  "method='svd' takes all")
    if side == "right":
        return _polar(a, method, eps, max_iterations)
    u, p = _polar(adjoint(a), method, eps, max_iterations)
    return adjoint(u), p


@composite(static=("method", "eps", "max_iterations"))
@functools.partial(custom_jvp, nondiff_argnums=(1, 2, 3))
def _polar(a, method, eps, max_iterations):
    if method == "qdwh":
        return linalg.qdwh(a, max_iterations=max_iterations, eps=eps)[:2]
    u, s, vh = linalg.svd(a, full_matrices=False)
    return product(u, vh), product(adjoint(vh) * s[..., None, :].astype(a.dtype), vh)


@_polar.__wrapped__.defjvp
def _polar_jvp(method, eps, max_iterations, primals, tangents):
    """U^H dU = W is skew-Hermitian, and P W + W P = U^H dA - dA^H U; the rest of dA turns U alone.

    Source: C. Kenney and A. J. Laub, "Polar decomposition and matrix sign function condition estimates", SIAM
    Journal on Scientific and Statistical Computing 12, 1991.
    """
    (a,), (da,) = primals, tangents
    u, p = _polar(a, method, eps, max_iterations)
    seen = product(adjoint(u), da)
    values, vectors = jnp.linalg.eigh(lax.stop_gradient(p))

    def solve(_, c):
        c = product(adjoint(vectors), c, vectors) / (values[..., :, None] + values[..., None, :])
        return product(vectors, c, adjoint(vectors))
    turn = lax.custom_linear_solve(lambda x: product(p, x) + product(x, p), seen - adjoint(seen), solve,
                                   lambda _, c: solve(_, c.mT).mT)
    du = product(u, turn)
    if a.shape[-2] > a.shape[-1]:
        du = du + adjoint(jnp.linalg.solve(p, adjoint(da - product(u, seen))))
    return (u, p), (du, seen - product(turn, p))
