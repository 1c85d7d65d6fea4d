"""Factors multiply to the matrix."""
import numpy as np
import scipy.linalg
from equal import same
from matrices import A, H, M, S, V, Z, s

import hlotrace as jax
import hlotrace.numpy as jnp


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
