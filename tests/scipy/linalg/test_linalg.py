"""scipy.linalg: values as SciPy's, factors that multiply to the matrix, batches, derivatives, what is refused."""
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp

s = jax.scipy.linalg
RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
M = A[0, :, :3]
V = A[1, 0]
Z = (RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))).astype(np.complex64)
H = Z @ Z.conj().T + np.eye(4, dtype=np.complex64)
S = A[0] @ A[0].T + np.eye(4, dtype=np.float32)

SAME = [        # of one module or the other
    *(lambda m, t=t: m.solve_triangular(Z, Z[0], trans=t) for t in (0, 1, "C")),
    lambda m: m.solve_triangular(A[0], A[1], lower=True, unit_diagonal=True),
    *(lambda m, low=low: m.cho_solve(m.cho_factor(H, lower=low), Z[0]) for low in (True, False)),
    lambda m: m.cholesky(np.triu(H)), lambda m: m.cholesky(np.tril(S), lower=True),
    *(lambda m, t=t: m.lu_solve(m.lu_factor(Z), A[1], t) for t in (0, 1, 2)),
    lambda m: m.lu_factor(M), lambda m: m.lu(M), lambda m: m.lu(M.T), lambda m: m.lu(Z, permute_l=True),
    lambda m: m.det(A[0]), lambda m: m.inv(Z), lambda m: m.solve(A[0], V), lambda m: m.solve(H, A[1], assume_a="her"),
    *(lambda m, low=low: m.solve((np.tril if low else np.triu)(S), A[1], lower=low, assume_a="pos") for low in (0, 1)),
    lambda m: m.eigh(H, eigvals_only=True), *(lambda m, t=t: m.eigh(H, S, type=t, eigvals_only=True) for t in (1, 2, 3)),
    lambda m: m.eigh_tridiagonal(V, M[0], eigvals_only=True),
    lambda m: m.eigh_tridiagonal(V, M[0], eigvals_only=True, select="i", select_range=(1, 2)),
    lambda m: m.svd(M, compute_uv=False), lambda m: m.svd(Z, compute_uv=False, lapack_driver="gesvd"),
    lambda m: m.qr_multiply(M, V), lambda m: m.qr_multiply(M, A[1, :3, :2], mode="left"),
    lambda m: m.qr_multiply(Z, Z, pivoting=True, conjugate=True),
    lambda m: m.expm(np.stack([A[0], A[1] * 5, np.triu(A[0]), A[0] / 99])), lambda m: m.expm(Z),
    lambda m: m.expm_frechet(A[0] * 3, A[1]),
    lambda m: m.expm_frechet(A[0], A[1], method="blockEnlarge", compute_expm=False),
    lambda m: m.sqrtm(S), lambda m: m.sqrtm(Z),
    lambda m: m.funm(A[0], lambda x: x * x + 1j), lambda m: m.funm(S, lambda x: x ** 3),
    lambda m: m.solve_sylvester(A[0], M[:3], M), lambda m: m.solve_sylvester(Z, S, A[1]),
    lambda m: m.polar(M), lambda m: m.polar(Z, side="left"),
]


@pytest.mark.parametrize("start", range(0, len(SAME), 12))
def test_result_is_that_of_scipy(start):
    functions = SAME[start:start + 12]
    found = jax.jit(lambda: [f(s) for f in functions])()
    for f, got in zip(functions, found):
        want = f(scipy.linalg)
        for g, w in zip(*(x if type(x) is tuple else (x,) for x in (got, want))):
            w = np.asarray(w)
            w = w.astype({"f": np.float32, "c": np.complex64, "i": np.int32}[w.dtype.kind])
            same(g / abs(w).max(), w / abs(w).max(), 50)


@jax.jit
def products():
    """Pairs of what must be equal."""
    q, r = s.qr(M)
    e, t = s.qr(M, mode="economic")
    c, p = s.qr(Z, pivoting=True)[:2], s.qr(Z, pivoting=True, mode="r")[1]
    w, v = s.eigh(H, S)
    w2, v2 = s.eigh(H, S, type=2)
    w3, v3 = s.eigh(H, S, type=3)
    d, x = s.eigh_tridiagonal(V, Z[0, :3])
    u, y, h = s.svd(M, full_matrices=False)
    f, g = s.hessenberg(A, calc_q=True)
    k, l = s.schur(A[0])
    m, n = s.schur(A[0], output="complex")
    o, r2 = s.polar(M.T, method="svd")
    many = s.solve_sylvester(A, S, A, method="eigen")
    return [(q @ r, M), (e @ t, M), (c[0] @ c[1], jnp.asarray(Z)[:, p]), (s.qr(M, mode="r")[0], r), (H @ v, S @ v * w),
            (v.conj().T @ S @ v, jnp.eye(4) + 0j), (H @ S @ v2, v2 * w2), (S @ H @ v3, v3 * w3), (u * y @ h, M),
            (g @ f @ g.mT, A), (jnp.tril(f, -2), 0 * A), (l @ k @ l.T, A[0]), (n @ m @ n.conj().T, A[0] + 0j),
            (jnp.tril(m, -1), 0 * Z), (o @ r2, M.T), (A @ many + many @ S, A),
            ((jnp.diag(V) + jnp.diag(Z[0, :3], -1) + jnp.diag(Z[0, :3].conj(), 1)) @ x, x * d)]


def test_factors_multiply_to_the_matrix():
    for got, want in products():
        same(got, want, 200)


def test_a_real_schur_form_made_complex():
    for a in (A[0], A[0] + A[0].T, np.array([[0, 2], [-1, 0]], np.float32)):
        t, z = scipy.linalg.schur(a)
        got = s.rsf2csf(t, z)
        same(got, scipy.linalg.rsf2csf(t, z), 10)


def test_right_hand_sides():
    """Vectors of a batch have one axis less than the matrices, and broadcast against them."""
    a, shapes = jnp.broadcast_to(jnp.eye(3), (5, 3, 3)), {(3,): (5, 3), (5, 3): (5, 3), (1, 3): (5, 3), (3, 4): (5, 3, 4)}
    for solve in (lambda a, b: s.cho_solve((a, True), b), lambda a, b: s.lu_solve(s.lu_factor(a), b), s.solve_triangular):
        for b, out in shapes.items():
            assert jax.eval_shape(solve, a, jnp.ones(b)).shape == out
        assert jax.eval_shape(solve, a[0], jnp.ones((5, 3, 4))).shape == (5, 3, 4)
    assert jax.eval_shape(s.solve, a, jnp.ones((3, 3))).shape == (5, 3, 3)


def test_expm_of_large_and_of_many():
    norms = np.array([1e-3, 1.0, 30.0, 3e6], np.float32)
    many = norms[:, None, None] * np.diag([-1, -2, 0]).astype(np.float32)

    @jax.jit
    def both(many):
        out, back = jax.vjp(lambda x: s.expm(x, upper_triangular=True), many)
        return out, back(jnp.broadcast_to(jnp.diag(jnp.array([1.0, 0, 0])), many.shape))[0]
    (out, _), (_, gradient) = both(many), both(many[:3])
    same(out[:3], np.exp(many[:3]) * np.eye(3), 100, "float32")
    assert np.isnan(out[3]).all()
    same(gradient[:, 0, 0], np.exp(-norms[:3]), 100)
    assert jax.eval_shape(s.expm, jnp.zeros((0, 0))).shape == (0, 0)
    same(s.expm(jnp.array([[2]])), [[np.exp(2)]])
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        same(s.expm(jnp.zeros((2, 2))), np.eye(2, dtype="float32"))


@jax.jit
def without_a_solution():
    nilpotent, one = jnp.eye(2, k=1), jnp.eye(2)
    return (s.sqrtm(nilpotent), s.sqrtm(0 * one), s.solve_sylvester(one, -one, one), s.funm(one, jnp.exp, disp=False)[0],
            s.funm(nilpotent, jnp.exp, disp=False)[1])


def test_equations_without_a_solution():
    root, zero, unsolved, exponential, error = without_a_solution()
    assert np.isnan(root).any() and np.isnan(unsolved).all() and not zero.any() and error == 1
    same(exponential, np.eye(2) * np.exp(1) + 0j)


def test_second_derivatives():
    with jax.enable_x64():
        a, b, h = np.asarray(A[0], np.float64), np.asarray(S, np.float64), 1e-4

        @jax.jit
        def of_line(t):
            def along(t):
                return s.solve(b + t * b @ b, a, assume_a="pos"), s.solve_sylvester(b + t * a @ a.T, b, a)
            return along(t), jax.jacfwd(jax.jacrev(along))(t)
        (here, second), ahead, behind = of_line(0.0), of_line(h)[0], of_line(-h)[0]
        for x, y, z, w in zip(*map(jax.tree.leaves, (here, second, ahead, behind))):
            np.testing.assert_allclose(y, (z - 2 * x + w) / h**2, 1e-4, 1e-4)


def hermitian(a):
    return (a + a.conj().T) / 2


DIFFERENTIABLE = [
    (lambda a, b: (s.solve_sylvester(a, b, a), s.solve_sylvester(b, a, b, method="eigen"), s.sqrtm(b)), A[0], Z),
    (lambda a, b, c: [s.solve(hermitian(x), c, low, assume_a="pos") for x, low in ((a, False), (b, True))], H, S, V),
    (lambda a: (s.polar(a, side="left"), s.polar(a[:, :3], method="svd")), Z),
    (lambda a, b: (s.solve_triangular(a, b, trans=2), s.lu_solve(s.lu_factor(a), b, 1), s.lu(a)[1:], s.qr(a)), Z, A[1]),
    (lambda a, b, c: (s.cho_solve(s.cho_factor(a), c), s.eigh(a, b, eigvals_only=True), abs(s.eigh(a, b)[1])), H, S, V),
    (lambda d, e: s.eigh_tridiagonal(d, e, eigvals_only=True), V, Z[0, :3]),
    (lambda a, b: (s.expm(a), s.qr_multiply(a, b)), 2 * A[0], A[1]),
]


@pytest.mark.parametrize("row", DIFFERENTIABLE)
def test_derivatives(row):
    check_derivatives(*row)


@pytest.mark.parametrize("call, error, words", [
    (lambda: s.solve_triangular(M, V), ValueError, r"square matrix .* got shape \(4, 3\)"),
    (lambda: s.solve_triangular(S, M[:3]), ValueError, r"b must have shape \(4,\) or \[..., 4, k\], got shape \(3, 3\)"),
    (lambda: s.solve_triangular(S, V, trans=3), ValueError, "'T' or 'C', got 3"),
    (lambda: s.lu_solve(s.lu_factor(S), V, trans="T"), ValueError, "0, 1 or 2, got 'T'"),
    (lambda: s.lu(V), TypeError, r"got shape=\(4,\)"), (lambda: s.cholesky(M), ValueError, r"got shape \(4, 3\)"),
    (lambda: s.solve(S, V, assume_a="banded"), ValueError, "'her' or 'pos', got 'banded'"),
    (lambda: s.eigh(S, eigvals=(0, 1)), NotImplementedError, "slice the results"),
    (lambda: s.eigh(S, type=4), ValueError, "type must be 1, 2 or 3"),
    (lambda: s.eigh(S, M[:3]), ValueError, r"shapes \(4, 4\) and \(3, 3\)"),
    (lambda: s.eigh_tridiagonal(V, V), TypeError, r"shapes \(4,\) and \(4,\)"),
    (lambda: s.eigh_tridiagonal(V, M[0], select="i"), ValueError, "both included"),
    (lambda: s.eigh_tridiagonal(V, M[0], select="v", select_range=(0, 1)), NotImplementedError, "select='v'"),
    (lambda: s.eigh_tridiagonal(V, M[0], tol=0.1), NotImplementedError, "tol"),
    (lambda: s.svd(M, lapack_driver="gesv"), ValueError, "did you mean 'gesvd'"),
    (lambda: s.qr(M, mode="complete"), ValueError, "'economic', got 'complete'"),
    (lambda: s.qr_multiply(M, M), ValueError, r"c must have 4 columns, got shape \(4, 3\)"),
    (lambda: s.qr_multiply(M, V, mode="left"), ValueError, r"Q @ c.* 3 rows, got shape \(4,\)"),
    (lambda: s.hessenberg(M), ValueError, r"got shape \(4, 3\)"), (lambda: s.schur(S, "r"), ValueError, "'complex'"),
    (lambda: s.polar(M.T), NotImplementedError, r"m >= n, got shape \(3, 4\); method='svd'"),
    (lambda: s.polar(M, "up"), ValueError, "'left', got 'up'"), (lambda: s.polar(V), ValueError, r"got shape \(4,\)"),
    (lambda: s.polar(M, method="svq"), ValueError, "did you mean 'svd'"),
    (lambda: s.solve_sylvester(S, S, M), ValueError, r"shapes \(4, 4\), \(4, 4\) and \(4, 3\)"),
    (lambda: s.solve_sylvester(S, S, S, method="qr"), ValueError, "'eigen', got 'qr'"),
    (lambda: s.sqrtm(M), ValueError, r"got shape \(4, 3\)"), (lambda: s.sqrtm(S, 2), NotImplementedError, "blocksize"),
    (lambda: s.funm(A, jnp.exp), ValueError, r"got shape \(2, 4, 4\); jax.vmap"),
    (lambda: s.rsf2csf(S, M[:3]), ValueError, "equal sizes"),
    (lambda: s.expm(M), ValueError, r"got shape \(4, 3\)"), (lambda: s.expm(S, max_squarings=2.5), TypeError, "an int"),
    (lambda: s.expm_frechet(S, V), ValueError, "one shape"), (lambda: s.expm_frechet(S, S, method="x"), ValueError, "SPS"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_elements_stay_where_they_are_beside_inf_and_nan():
    """A Toeplitz or Hankel matrix holds its vector's elements: an infinite one does not spread to others."""
    c, r = np.array([1, np.inf, np.nan], np.float32), np.array([1, -np.inf, 2, np.nan], np.float32)
    for ours, scipys in ((s.toeplitz, scipy.linalg.toeplitz), (s.hankel, scipy.linalg.hankel)):
        np.testing.assert_array_equal(ours(c), scipys(c))
        np.testing.assert_array_equal(ours(c, r), scipys(c, r))
    np.testing.assert_array_equal(s.convolution_matrix(c, 3), scipy.linalg.convolution_matrix(c, 3))
