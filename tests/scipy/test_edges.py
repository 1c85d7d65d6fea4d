"""Shapes and arguments at the edge of what functions take: one place, one row, ints for tuples, vectors in batches."""
import numpy as np
import pytest
import scipy.fft
import scipy.special
from reference import evaluated

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

GRID = jax.scipy.interpolate.RegularGridInterpolator((jnp.arange(3.0), jnp.arange(4.0)),
                                                     jnp.arange(12.0).reshape(3, 4))
LEFT = np.array([0.75, -0.25, -3.75, -8.5, -9.25, -9.625, -10.125, -20.375, -100.5])
X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
L = jnp.array([[[2.0, 0.0], [1.0, 4.0]]])


@pytest.mark.parametrize("call, wanted", [
    (lambda: GRID(jnp.array([0.5, 1.5])), [3.5]),
    (lambda: GRID((0.5, 1.5)), 3.5),
    (lambda: jax.scipy.fft.dctn(X, s=3), scipy.fft.dctn(X, s=[3], axes=[-1])),
    (lambda: jax.scipy.fft.idctn(X, axes=1), scipy.fft.idctn(X, axes=[1])),
    (lambda: jnp.fft.fftshift(X, axes=(2, 2)), np.fft.fftshift(X, axes=(2, 2))),
    (lambda: jnp.fft.ifftshift(X, axes=(1, -2)), np.fft.ifftshift(X, axes=(1, -2))),
    (lambda: jnp.linalg.cond(jnp.zeros((0, 2, 2)), "fro"), np.zeros(0)),
    (lambda: jax.scipy.linalg.rsf2csf(jnp.full((1, 1), 3.0), jnp.eye(1)), ([[3.0 + 0j]], [[1.0 + 0j]])),
    (lambda: jax.scipy.linalg.eigh_tridiagonal(jnp.array([2.0, 1.0]), jnp.zeros(1), eigvals_only=True, tol=0.1),
     [1.0, 2.0]),
    (lambda: lax.linalg.triangular_solve(L, jnp.array([[2.0, 9.0]]), left_side=True, lower=True), [[1.0, 2.0]]),
    (lambda: lax.linalg.triangular_solve(L, jnp.array([[4.0, 8.0]]), lower=True), [[1.0, 2.0]]),
    (lambda: jax.scipy.cluster.vq.vq(jnp.zeros((0, 2)), jnp.ones((1, 2))), (np.zeros(0, int), np.zeros(0))),
    (lambda: [evaluated(jax.hessian(f))(0.5, 1.0) for f in (jax.scipy.stats.gamma.logcdf,
                                                            jax.scipy.stats.gamma.logsf)],
     [-np.exp(-0.5) / np.expm1(-0.5) ** 2, 0.0]),           # of log(1 - exp(-x)) and of -x
    (lambda: jax.scipy.special.gamma(jnp.array([0j, -1, 0.5])), scipy.special.gamma([0j, -1, 0.5])),
    (lambda: jax.scipy.special.loggamma(jnp.array([0j, -1, 0.5])), scipy.special.loggamma([0j, -1, 0.5])),
    (lambda: [jax.grad(jax.grad(jax.scipy.special.entr))(x) for x in (-1.7, 0.5)], [0.0, -2.0]),
    (lambda: jax.scipy.stats.betabinom.pmf(jnp.array([0.5, 1.0]), 5, 1.5, 2.5), [0.0, 0.241699219]),
    (lambda: jax.grad(jax.scipy.special.erfcx)(jnp.inf), 0.0),
    (lambda: [jax.grad(jax.grad(jax.scipy.special.i1))(x) for x in (0.0, 1.5)],
     scipy.special.ivp(1, [0.0, 1.5], 2)),
    (lambda: [evaluated(jax.grad(jax.scipy.special.owens_t, (0, 1)))(*x) for x in ((1.0, 0.0), (-jnp.inf, 1.0))],
     [[0.0, np.exp(-0.5) / (2 * np.pi)], [0.0, 0.0]]),
    (lambda: [jax.grad(jax.scipy.stats.gamma.logpdf)(1e-6, 1.0), jax.grad(jax.scipy.stats.beta.logpdf)(1e-6, 1.0, 3.0),
              jax.grad(jax.scipy.stats.poisson.logpmf)(0.0, 2.0), jax.grad(jax.scipy.stats.gamma.logpdf, 1)(1e-20, 120.0),
              jax.grad(jax.grad(jax.scipy.stats.beta.logpdf, 1), 1)(1e-20, 2.0, 3.0)],
     [-1.0, -2.0, np.log(2) + np.euler_gamma, np.log(1e-20) - scipy.special.digamma(120),
      scipy.special.polygamma(1, 5) - scipy.special.polygamma(1, 2)]),
    (lambda: [jax.grad(jax.scipy.special.spence)(x) for x in (0.0, 1.0)], [-np.inf, -1.0]),
    (lambda: jax.scipy.special.hyp1f1(jnp.array([0.0, 1.0]), 1e-30, 0.5), [1.0, 0.5 * np.exp(0.5) * 1e30]),
    # a polynomial that ends before the pole, DLMF 13.2.4
    (lambda: jax.scipy.special.hyp1f1(jnp.array([0.0, -1, -1, -2]), jnp.array([0.0, -1, -2, -2]), 0.5),
     [1, 1.5, 1.25, 1.625]),
    (lambda: jax.scipy.special.hyp1f1(jnp.array([1.0, -1, 1, -2]), jnp.array([0.0, 0, -1, -1]), 0.5),
     np.array([1, -1, -1, -1]) * np.inf),
    (lambda: jax.grad(jax.scipy.special.hyp1f1, 2)(1.0, 0.0, 0.5), np.inf),
    (lambda: jax.scipy.special.hyp2f1(jnp.array([0.0, 1.0]), 1.0, 1e-20, 0.5), [1.0, 2e20]),
    (lambda: jax.random.rademacher(jax.random.key(0), (3,), bool), [True, True, True]),
    # z by m of Gamma(z + m) / Gamma(z) at m = 0, in both orders; of p log(p / q) where 1 / p**2 is no number
    (lambda: [h[1 - i] for i, h in enumerate(evaluated(jax.hessian(jax.scipy.special.poch, (0, 1)))(2.0, 0.0))],
     [scipy.special.polygamma(1, 2)] * 2),
    (lambda: [x * jax.hessian(f)(x, 0.5) for x in (1e-20, 1e20)
              for f in (jax.scipy.special.rel_entr, jax.scipy.special.kl_div)], [1.0] * 4),
    (lambda: [f(jnp.inf, jnp.inf) for f in (lax.igamma, lax.igammac)], [np.nan, np.nan]),
    # of log B at a = b: psi'(a) - psi'(2 a), and -psi'(2 a)
    (lambda: evaluated(jax.hessian(jax.scipy.special.betaln, (0, 1)))(2.0, 2.0)[0],
     scipy.special.polygamma(1, 2) * np.array([1, 0]) - scipy.special.polygamma(1, 4)),
    (lambda: jax.hessian(lambda v: jnp.hypot(*v))(jnp.array([1.5, 1.5])),
     np.array([[1, -1], [-1, 1]]) * 1.5**2 / 4.5**1.5),
    (lambda: jax.grad(jnp.hypot, (0, 1))(0.0, 0.0), (0.5, 0.5)),
    # x**0 and x**1 at 0; of x**y at (2, 0): y (y - 1) x**(y - 2), x**(y - 1) (1 + y log(x)), x**y log(x)**2
    (lambda: [jax.grad(lax.pow)(0.0, 0.0), jax.grad(jax.grad(lax.pow))(0.0, 1.0),
              jax.grad(lambda x: lax.pow(x, x * 0))(np.float16(6e-6))], [0.0, 0.0, 0.0]),
    (lambda: evaluated(jax.hessian(lax.pow, (0, 1)))(2.0, 0.0)[1], [0.5, np.log(2) ** 2]),
    (lambda: [jax.grad(jax.nn.gelu)(np.float16(x)) for x in (150, 6e4, -6e4)], [1.0, 1.0, 0.0]),
    (lambda: [jax.grad(jax.nn.sparse_plus)(x) for x in (-jnp.inf, jnp.inf)], [0.0, 1.0]),
    (lambda: jnp.log(jax.scipy.special.factorial(jnp.array([33.0, 34.0, 34.0275, 34.5]))),   # the last overflows
     [*scipy.special.gammaln([34, 35, 35.0275]), np.inf]),
    (lambda: jax.scipy.special.polygamma(np.arange(4)[:, None], LEFT),
     scipy.special.polygamma(np.arange(4)[:, None], LEFT)),
    (lambda: jax.scipy.special.zeta(np.arange(2, 5)[:, None], LEFT),
     scipy.special.zeta(np.arange(2, 5)[:, None], LEFT)),
    (lambda: jnp.gcd(np.int8([-128, -128, 0]), np.int8([-127, 6, -3])), [1, 2, 3]),
    (lambda: jax.grad(jax.grad(jax.scipy.stats.truncnorm.logpdf, 1), 1)(1.0, 0.0, jnp.inf), 2 / np.pi),
    (lambda: jnp.hypot(jnp.array([np.nan, 0.0, 0.0, np.inf, 3e38]), jnp.array([0.0, np.nan, -0.0, np.nan, 0.0])),
     [np.nan, np.nan, 0.0, np.inf, 3e38]),
])
def test_edges(call, wanted):
    got = call()
    several = isinstance(got, (tuple, list))
    for g, w in zip(*(got, wanted) if several else ([got], [wanted]), strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, 2e-5, 2e-5)
