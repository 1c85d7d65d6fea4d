"""scipy.linalg: values as SciPy's, derivatives, what is refused."""
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives
from equal import same
from matrices import A, H, M, S, V, Z, s

import hlotrace as jax
import hlotrace.numpy as jnp

SAME = [        # of one module or the other
    *(lambda m, t=t: m.solve_triangular(Z, Z[0], trans=t) for t in (0, 1, "C")),
    lambda m: m.solve_triangular(A[0], A[1], lower=True, unit_diagonal=True),
    *(lambda m, low=low: m.cho_solve(m.cho_factor(H, lower=low), Z[0]) for low in (True, False)),
    lambda m: m.cholesky(np.triu(H)), lambda m: m.cholesky(np.tril(S), lower=True),
    *(lambda m, t=t: m.lu_solve(m.lu_factor(Z), A[1], t) for t in (0, 1, 2)),
    lambda m: m.lu_factor(M), lambda m: m.lu(M), lambda m: m.lu(M.T), lambda m: m.lu(Z, permute_l=True),
    lambda m: m.det(A[0]), lambda m: m.inv(Z), lambda m: m.solve(A[0], V),
    lambda m: m.solve(H, A[1], assume_a="her"),
    *(lambda m, low=low: m.solve((np.tril if low else np.triu)(S), A[1], lower=low, assume_a="pos")
      for low in (0, 1)),
    lambda m: m.eigh(H, eigvals_only=True),
    *(lambda m, t=t: m.eigh(H, S, type=t, eigvals_only=True) for t in (1, 2, 3)),
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
    (lambda a, b: (s.solve_sylvester(a, b, a), s.solve_sylvester(b, a, b, method="eigen"), s.sqrtm(b)), A[0],
     Z),
    (lambda a, b, c: [s.solve(hermitian(x), c, low, assume_a="pos") for x, low in ((a, False), (b, True))], H,
     S, V),
    (lambda a: (s.polar(a, side="left"), s.polar(a[:, :3], method="svd")), Z),
    (lambda a, b: (s.solve_triangular(a, b, trans=2), s.lu_solve(s.lu_factor(a), b, 1), s.lu(a)[1:], s.qr(a)),
     Z, A[1]),
    (lambda a, b, c: (s.cho_solve(s.cho_factor(a), c), s.eigh(a, b, eigvals_only=True), abs(s.eigh(a, b)[1])),
     H, S, V),
    (lambda d, e: s.eigh_tridiagonal(d, e, eigvals_only=True), V, Z[0, :3]),
    (lambda a, b: (s.expm(a), s.qr_multiply(a, b)), 2 * A[0], A[1]),
]


@pytest.mark.parametrize("row", DIFFERENTIABLE)
def test_derivatives(row):
    check_derivatives(*row)


@pytest.mark.parametrize("call, error, words", [
    (lambda: s.solve_triangular(M, V), ValueError, r"square matrix .* got \(4, 3\)"),
    (lambda: s.solve_triangular(S, M[:3]), ValueError,
     r"b must have shape \(4,\) or \[..., 4, k\], got shape \(3, 3\)"),
    (lambda: s.solve_triangular(S, V, trans=3), ValueError, "'T' or 'C', got 3"),
    (lambda: s.lu_solve(s.lu_factor(S), V, trans="T"), ValueError, "0, 1 or 2, got 'T'"),
    (lambda: s.lu(V), TypeError, r"got shape=\(4,\)"), (lambda: s.cholesky(M), ValueError, r"got \(4, 3\)"),
    (lambda: s.solve(S, V, assume_a="banded"), ValueError, "'her' or 'pos', got 'banded'"),
    (lambda: s.eigh(S, eigvals=(0, 1)), NotImplementedError, "slice the results"),
    (lambda: s.eigh(S, type=4), ValueError, "type must be 1, 2 or 3"),
    (lambda: s.eigh(S, M[:3]), ValueError, r"shapes \(4, 4\) and \(3, 3\)"),
    (lambda: s.eigh_tridiagonal(V, V), TypeError, r"shapes \(4,\) and \(4,\)"),
    (lambda: s.eigh_tridiagonal(V, M[0], select="i"), ValueError, "both included"),
    (lambda: s.eigh_tridiagonal(V, M[0], select="v", select_range=(0, 1)), NotImplementedError, "select='v'"),
    (lambda: s.eigh_tridiagonal(V, M[0], key=0), NotImplementedError, "key"),
    (lambda: s.svd(M, lapack_driver="gesv"), ValueError, "did you mean 'gesvd'"),
    (lambda: s.qr(M, mode="complete"), ValueError, "'economic', got 'complete'"),
    (lambda: s.qr_multiply(M, M), ValueError, r"c must have 4 columns, got shape \(4, 3\)"),
    (lambda: s.qr_multiply(M, V, mode="left"), ValueError, r"Q @ c.* 3 rows, got shape \(4,\)"),
    (lambda: s.hessenberg(M), ValueError, r"got \(4, 3\)"),
    (lambda: s.schur(S, "r"), ValueError, "'complex'"),
    (lambda: s.polar(M.T), NotImplementedError, r"m >= n, got shape \(3, 4\); method='svd'"),
    (lambda: s.polar(M, "up"), ValueError, "'left', got 'up'"),
    (lambda: s.polar(V), ValueError, r"got shape \(4,\)"),
    (lambda: s.polar(M, method="svq"), ValueError, "did you mean 'svd'"),
    (lambda: s.solve_sylvester(S, S, M), ValueError, r"shapes \(4, 4\), \(4, 4\) and \(4, 3\)"),
    (lambda: s.solve_sylvester(S, S, S, method="qr"), ValueError, "'eigen', got 'qr'"),
    (lambda: s.sqrtm(M), ValueError, r"got \(4, 3\)"),
    (lambda: s.sqrtm(S, 2), NotImplementedError, "blocksize"),
    (lambda: s.funm(A, jnp.exp), ValueError, r"got shape \(2, 4, 4\); jax.vmap"),
    (lambda: s.rsf2csf(S, M[:3]), ValueError, "equal sizes"),
    (lambda: s.expm(M), ValueError, r"got \(4, 3\)"),
    (lambda: s.expm(S, max_squarings=2.5), TypeError, "an int"),
    (lambda: s.expm_frechet(S, V), ValueError, "one shape"),
    (lambda: s.expm_frechet(S, S, method="x"), ValueError, "SPS"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
