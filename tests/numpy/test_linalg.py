"""jnp.linalg: values as NumPy's, dtypes, batches, derivatives, what is refused."""
import numpy as np
import pytest
from derivatives import check_derivatives
from equal import same, same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
V = np.array([3, 1, -2], np.float32)
RNG = np.random.default_rng(3)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
M = A[0, :, :3]
Z = (RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))).astype(np.complex64)
S = A[0] @ A[0].T + np.eye(4, dtype=np.float32)
H = Z @ Z.conj().T + np.eye(4, dtype=np.complex64)
N = np.array([[2, 1], [1, 3]], np.int32)
RANK2 = (M[:, :2] @ M[:2]).astype(np.float32)

SAME = [
    lambda np: np.linalg.cross(V, X[..., :3]), lambda np: np.linalg.cross(X, V[None, :, None], axis=1),
    lambda np: np.linalg.outer(V, V), lambda np: np.linalg.diagonal(X, offset=1),
    lambda np: np.linalg.trace(X, offset=-1), lambda np: np.linalg.vecdot(X[..., :3], V),
    lambda np: np.linalg.matmul(V, X), lambda np: np.linalg.matrix_transpose(X),
    lambda np: np.linalg.tensordot(X, X, axes=([0, 2], [0, 2])),
    lambda np: np.linalg.multi_dot([V, M.T, A[0], M]), lambda np: np.linalg.multi_dot([M, V]),
    *(lambda np, n=n: np.linalg.matrix_power(A, n) for n in (-2, 0, 1, 5)),
    lambda np: np.linalg.matrix_power(N, 3),
    lambda np: np.linalg.norm(X), lambda np: np.linalg.norm(Z[0]), lambda np: np.linalg.norm(np.arange(3)),
    *(lambda np, p=p: np.linalg.norm(X, p, 1, keepdims=True)
      for p in (None, 0, 1, 2, 3, 0.5, np.inf, -np.inf)),
    lambda np: np.linalg.norm(V, -1),
    *(lambda np, p=p: np.linalg.norm(X, p, (2, 0)) for p in (None, "fro", "nuc", 1, -1, 2, np.inf, -np.inf)),
    lambda np: np.linalg.norm(M, -2), lambda np: np.linalg.matrix_norm(X, ord=1, keepdims=True),
    lambda np: np.linalg.vector_norm(X, axis=(0, 2), ord=3, keepdims=True),
    lambda np: np.linalg.vector_norm(X),
    *(lambda np, p=p: np.linalg.cond(A, p) for p in (None, -2, "fro", 1, -np.inf)),
    lambda np: np.linalg.cond(M),
    *(lambda np, x=x: np.linalg.matrix_rank(x) for x in (A, RANK2, V, 0 * V)),
    lambda np: np.linalg.matrix_rank(S, hermitian=True),
    lambda np: np.linalg.solve(A, V.repeat(4).reshape(3, 4).T),
    lambda np: np.linalg.solve(N, np.ones(2, int)),
    lambda np: np.linalg.solve(Z, Z[0]), lambda np: np.linalg.inv(A), lambda np: np.linalg.inv(H),
    lambda np: np.linalg.tensorinv(A[0].reshape(2, 2, 4), 2),
    lambda np: np.linalg.tensorinv(A[0].reshape(4, 2, 2), ind=1),
    lambda np: np.linalg.tensorsolve(A[0].reshape(2, 2, 4), A[0, :2, :2]),
    lambda np: np.linalg.tensorsolve(A[0].reshape(2, 4, 2), A[0, :2, :2], axes=(1,)),
    *(lambda np, x=x: np.linalg.det(x)
      for x in (A, A[:, :3, :3], N, Z, np.ones((2, 0, 0), np.float32), A[:, :1, :1])),
    *(lambda np, x=x: np.linalg.slogdet(x) for x in (A, Z, N, 0 * A)),
    lambda np: np.linalg.pinv(M), lambda np: np.linalg.pinv(RANK2, 1e-5),
    lambda np: np.linalg.pinv(S, hermitian=True),
    lambda np: np.linalg.pinv(np.stack([N, N]), rtol=np.array([0.1, 0.9])), lambda np: np.linalg.pinv(M[:0]),
    lambda np: np.linalg.cholesky(S), lambda np: np.linalg.cholesky(H, upper=True),
    lambda np: np.linalg.eigvalsh(A @ A.swapaxes(1, 2)), lambda np: np.linalg.svdvals(A),
    lambda np: np.linalg.svd(S - 3 * np.eye(4), hermitian=True, compute_uv=False),
]


@pytest.mark.parametrize("start", range(0, len(SAME), 12))
def test_result_is_that_of_numpy(start):
    functions = SAME[start:start + 12]
    found = jax.jit(lambda: [f(jnp) for f in functions])()
    for f, got in zip(functions, found):
        same_as_numpy(got, f(np), slack=10)


def test_the_rank_of_a_matrix_by_a_relative_and_an_absolute_tolerance():
    many = jnp.stack([N, 2 * N])       # singular values 1.38 and 3.62, and twice these
    rank = jnp.linalg.matrix_rank
    assert rank(many, rtol=0.9).tolist() == [1, 1] and rank(many, tol=2).tolist() == [1, 2]
    assert rank(many, rtol=jnp.array([0.3, 0.5])).tolist() == [2, 1]


def test_least_squares():
    right = np.stack([A[1, 0], A[1, 1]], 1)
    for a, b in ((M, right), (M.T, right[:3]), (M, right[:, 0])):
        x, residuals, rank, s = np.linalg.lstsq(a, b)
        got = jnp.linalg.lstsq(a, b, numpy_resid=True)
        same((*got[:2], got[3]), (x.astype(np.float32), residuals.astype(np.float32), s.astype(np.float32)),
             10)
        assert got[2] == rank and got[2].dtype == "int32"
    assert jnp.linalg.lstsq(M.T, right[:3])[1].shape == (2,) and jnp.linalg.lstsq(RANK2, right, rcond=1e-5)[
        2] == 2
    same(jnp.linalg.lstsq(M, right, rcond=0.9)[0], np.linalg.lstsq(M, right, 0.9)[0], 10, "float32")
    assert jnp.linalg.lstsq(M[:0], right[:0, 0])[0].tolist() == [0, 0, 0]


def test_factors_multiply_to_the_matrix():
    for a in (A, M, Z):
        (q, r), (full, tall) = jnp.linalg.qr(a), jnp.linalg.qr(a, mode="complete")
        same(q @ r, a, 10)
        same(full @ tall, a, 10)
        same(jnp.linalg.qr(a, mode="r"), r)
        u, s, vh = jnp.linalg.svd(a, full_matrices=False)
        same((u * s[..., None, :]) @ vh, a, 10)
        assert jnp.linalg.svd(a).U.shape == full.shape == (*a.shape[:-1], a.shape[-2])
    packed, taus = jnp.linalg.qr(M, mode="raw")
    same(abs(packed), abs(np.linalg.qr(M, mode="raw")[0]), 10, "float32")
    assert taus.shape == (3,)
    w, v = jnp.linalg.eigh(H)
    same((v * w) @ v.conj().T, H, 10)
    w, v = jnp.linalg.eig(A)
    same(A @ v, v * w[..., None, :], 20)
    same(jnp.sort(jnp.linalg.eigvals(A)), jnp.sort(w), 20)
    u, s, vh = jnp.linalg.svd(S - 3 * np.eye(4), hermitian=True)
    same((u * s) @ vh, S - 3 * np.eye(4), 10, "float32")
    assert jnp.linalg.svd(S, full_matrices=False, hermitian=True, subset_by_index=(1, 3)).U.shape == (4, 2)
    assert type(jnp.linalg.slogdet(A)).__name__ == "SlogdetResult" and jnp.linalg.eigh(S)._fields == (
        "eigenvalues", "eigenvectors")


def test_one_triangle_is_read_if_that_is_asked_for():
    low, up = np.tril(S), np.triu(S)
    same(jnp.linalg.eigh(low, "L", symmetrize_input=False)[0], jnp.linalg.eigvalsh(S), 10)
    same(jnp.linalg.eigvalsh(up, "U", symmetrize_input=False), jnp.linalg.eigvalsh(S), 10)
    same(jnp.linalg.cholesky(low, symmetrize_input=False), np.linalg.cholesky(S), 10, "float32")
    assert np.isnan(jnp.linalg.cholesky(-S)).any()


def test_right_hand_sides_broadcast():
    for a, b in (((4, 4), (3, 4, 2)), ((2, 4, 4), (4,)), ((2, 1, 4, 4), (3, 4, 1)), ((2, 4, 4), (4, 2))):
        a, b = RNG.normal(size=a).astype(np.float32), RNG.normal(size=b).astype(np.float32)
        same(jnp.linalg.solve(a, b), np.linalg.solve(a, b), 100, "float32")


B = RNG.normal(size=(3, 4))
L = jnp.linalg
DIFFERENTIABLE = [
    (lambda a, b: (L.solve(a, b), L.inv(a), L.det(a), L.det(a[:3, :3]), L.slogdet(a), L.matrix_power(a, -3)),
     A[0], B.T),
    (lambda a, b: (L.solve(a, b), L.inv(a), L.det(a), L.slogdet(a)), Z, Z[:, :1]),
    (lambda a: (L.inv(a), L.det(a), L.slogdet(a, method="qr")), A),
    (lambda a, b: (L.lstsq(a, b)[:2], L.pinv(a), L.cond(a), L.qr(a)), M, B.T),
    (lambda a: (L.pinv(a), L.svdvals(a)), M.T @ Z[:, :2]),
    (lambda a, v: ([L.norm(a, p) for p in (1, 2, "fro", "nuc", np.inf)],
                   [L.norm(v, p) for p in (1, 2, 3, np.inf)]), M, V),
    (lambda a: (L.cholesky(a), L.eigvalsh(a), abs(L.eigh(a)[1]), L.svd(a, hermitian=True)[1],
                L.pinv(a, hermitian=True)), H),
    (L.eigvals, A[0]),
]


@pytest.mark.parametrize("row", DIFFERENTIABLE)
def test_derivatives(row):
    check_derivatives(*row)


@pytest.mark.parametrize("n", [3, 4])
def test_derivatives_of_the_determinant_of_a_singular_matrix(n):
    """Its gradient is the matrix of cofactors, also where elimination finds several zeros."""
    diagonal, shift, one = np.diag(np.arange(n)), np.eye(n, k=1), np.eye(n, dtype=np.float32)
    gradient = jax.jit(jax.vmap(jax.grad(jnp.linalg.det)))(np.stack([diagonal, shift]).astype(np.float32))
    same(gradient[0], (np.prod(np.arange(1, n)) * (diagonal + one == 1) * one).astype(np.float32))
    same(gradient[1], ((-1) ** (n - 1) * np.eye(n, k=1 - n)).astype(np.float32))
    same(jax.jit(jax.hessian(jnp.linalg.det))(one),
         np.einsum("ij,kl->ijkl", one, one) - np.einsum("il,jk->ijkl", one, one))
    # one minor less: of diag(0, 1, ...), by an entry and the first
    same(
        jax.jit(jax.hessian(jnp.linalg.det))(shift.astype(np.float32))[0, 0, n - 1, 1], np.float32((-1) ** n)
    )
    same(jax.jit(jax.hessian(jnp.linalg.det))(diagonal.astype(np.float32))[0, 0],
         np.diag([0.0, *(np.prod(np.delete(np.arange(n), [0, i])) for i in range(1, n))]).astype(np.float32))


def test_second_derivatives():
    with jax.enable_x64():
        a, b, h = np.asarray(A[0], np.float64), np.arange(4.0), 1e-4
        inverse = np.linalg.inv(a)

        @jax.jit
        def of_line(t):
            def along(t):
                moved = a + t * jnp.eye(4)
                return jnp.linalg.solve(moved, b), jnp.linalg.slogdet(moved)[1], jnp.linalg.pinv(
                    a[:, :3] + t * a[:, 1:])
            return along(t), jax.jacfwd(jax.jacrev(along))(t), jax.jacrev(jax.jacfwd(along))(t)
        (*_, p), (solved, size, q), again = of_line(0.0)
        same(solved, 2 * inverse @ inverse @ inverse @ b, 100)
        same(size, -np.trace(inverse @ inverse), 100)
        np.testing.assert_allclose(q, (of_line(h)[0][2] - 2 * p + of_line(-h)[0][2]) / h**2, 1e-4, 1e-4)
        same(again, (solved, size, q), 1000)


def test_under_vmap_and_with_64_bits():
    f = jax.jit(lambda a: (jnp.linalg.det(a), jnp.linalg.inv(a), jnp.linalg.slogdet(a), jnp.linalg.pinv(a)))
    one, two = f(A[0]), f(A[1])
    same(jax.jit(jax.vmap(f))(A), jax.tree.map(lambda *xs: jnp.stack(xs), one, two), 10)
    cofactors = np.linalg.det(A)[:, None, None] * np.linalg.inv(A).swapaxes(1, 2)
    same(jax.jit(jax.vmap(jax.grad(jnp.linalg.det)))(A), cofactors, 100)
    with jax.enable_x64():
        assert jnp.linalg.matrix_rank(N).dtype == "int64" and jnp.linalg.inv(N).dtype == "float32"
        assert jnp.linalg.inv(N.astype("int64")).dtype == "float64"
    assert jnp.linalg.norm(jnp.ones(3, "bfloat16")).dtype == "bfloat16"


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bool"])
@pytest.mark.parametrize("ord, function", [(1, jnp.sum), (np.inf, jnp.max), (-np.inf, jnp.min)])
def test_norms_that_add_or_choose_keep_the_dtype(ord, function, dtype):
    x = jnp.array([[3, 0], [1, 2]], dtype)
    got, want = jnp.linalg.vector_norm(x, ord=ord), function(x)
    assert got.dtype == want.dtype and got == want


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.linalg.cross(V[:2], V[:2]), ValueError,
     r"3-dimensional vectors along axis -1, but they have shapes \(2,\) and \(2,\)"),
    (lambda: jnp.linalg.outer(X, V), ValueError, r"one-dimensional, but they are x1.ndim=3 x2.ndim=1"),
    (lambda: jnp.linalg.diagonal(V), ValueError, "two dimensions"),
    (lambda: jnp.linalg.multi_dot([M]), ValueError, "at least two arrays"),
    (lambda: jnp.linalg.multi_dot([M, M]), ValueError, "3 of array 0 and 4"),
    (lambda: jnp.linalg.multi_dot([M, A, M]), ValueError, "may be 1 or 2 dimensional. Got array shapes"),
    (lambda: jnp.linalg.matrix_power(M, 2), TypeError, r"square: .* got shape \(4, 3\)"),
    (lambda: jnp.linalg.matrix_power(S, 0.5), TypeError, "exponent must be an int, got 0.5"),
    (lambda: jnp.linalg.norm(X, 2), ValueError, r"axis=\(0, 1, 2\)"),
    (lambda: jnp.linalg.norm(M, 3), ValueError, "Invalid order 3 for matrix norm: it is 'fro'"),
    (lambda: jnp.linalg.vector_norm(V, ord="fro"), ValueError, "'fro' for vector norm: give a number"),
    (lambda: jnp.linalg.cond(M, 1), ValueError, r"square matrix .* got \(4, 3\)"),
    (lambda: jnp.linalg.cond(M[:0]), ValueError, "not be empty"),
    (lambda: jnp.linalg.matrix_rank(M, 0.1, tol=0.1), ValueError, "only one of tol or rtol"),
    (lambda: jnp.linalg.pinv(M, 0.1, rcond=0.1), ValueError, "only one of rtol and rcond"),
    (lambda: jnp.linalg.pinv(V), ValueError, r"got shape \(3,\)"),
    (lambda: jnp.linalg.eig(V), TypeError, r"square matrix .* got \(3,\)"),
    (lambda: jnp.linalg.inv(M), ValueError, r"square matrix .* got \(4, 3\)"),
    (lambda: jnp.linalg.solve(A, A[0, :, :2].T), ValueError,
     r"shape \(4,\) or \[..., 4, k\], got .*b\[..., None\]"),
    (lambda: jnp.linalg.tensorinv(A[0], 0), ValueError, "positive integer"),
    (lambda: jnp.linalg.tensorinv(M, 1), ValueError, r"got shape \(4, 3\) with ind=1"),
    (lambda: jnp.linalg.tensorsolve(M, V), ValueError, r"got a.shape=\(4, 3\), b.shape=\(3,\)"),
    (lambda: jnp.linalg.lstsq(M, V), ValueError, "Leading dimensions of input arrays must match"),
    (lambda: jnp.linalg.lstsq(A, V), TypeError, "jax.vmap"),
    (lambda: jnp.linalg.slogdet(A, method="svd"), ValueError, "'lu' or 'qr', got 'svd'"),
    (lambda: jnp.linalg.slogdet(Z, method="qr"), NotImplementedError, "complex64"),
    (lambda: jnp.linalg.eigh(S, "M"), ValueError, "UPLO must be one of None, 'L', or 'U'"),
    (lambda: jnp.linalg.qr(M, "economic"), ValueError, "'economic'"),
    (lambda: jnp.linalg.qr(V), TypeError, r"\(3,\)"),
    (lambda: jnp.linalg.svd(S, hermitian=True, subset_by_index=(0, 1)), ValueError, "full_matrices=False"),
    (lambda: jnp.linalg.det(jnp.ones((4, 4), "bfloat16")), NotImplementedError, "bfloat16"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_factors_and_solutions_are_of_a_strong_type():
    """Also those of a matrix that a Python number fills: LAPACK computed them in the dtype that they have."""
    weak = jnp.full((1, 1), 4.)
    found = [f(weak) for f in (jnp.linalg.inv, jnp.linalg.det, jnp.linalg.qr, jnp.linalg.svd,
                               jnp.linalg.cholesky,
                               jnp.linalg.eigh, jax.lax.linalg.lu, jax.lax.linalg.schur)] + [
                                   jnp.linalg.solve(weak, weak)]
    assert weak.weak_type and not any(x.weak_type for x in jax.tree.leaves(found))
    assert (weak @ weak).weak_type and jax.scipy.linalg.toeplitz(weak[0]).weak_type
