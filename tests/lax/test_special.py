"""Incomplete gamma and beta functions against SciPy, over where they are hard, and at the ends of where they are defined."""
import numpy as np
import pytest
from scipy import special

import hlotrace as jax
from hlotrace import lax
from hlotrace.runtime.binding import exact_lgamma

RNG = np.random.default_rng(0)
# shapes from 0.001 to 100000; arguments around them, within some widths of the distribution and far from it
A = 10 ** RNG.uniform(-3, 5, 600)
X = A * np.where(RNG.random(600) < 0.5, np.exp(RNG.normal(size=600) / np.sqrt(A + 1)), 10 ** RNG.uniform(-1, 1, 600))
B = 10 ** RNG.uniform(-2, 5, 600)
Y = np.clip(np.where(RNG.random(600) < 0.7, RNG.beta(A, B), RNG.random(600)), 1e-9, 1 - 1e-7)
N, INF = np.nan, np.inf
both = jax.jit(lambda a, x, b, y: (lax.igamma(a, x), lax.igammac(a, x), lax.betainc(a, b, y)))


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 2e-11), (np.float32, 3e-5)])
def test_values(dtype, rtol):
    a, x, b, y = (v.astype(dtype) for v in (A, X, B, Y))
    wide = [v.astype(np.float64) for v in (a, x, b, y)]
    with jax.enable_x64():
        p, q, beta = both(a, x, b, y)
    assert p.dtype == q.dtype == beta.dtype == dtype
    smallest = 1e-270 if dtype is np.float64 else 1e-30
    for found, want in ((p, special.gammainc(*wide[:2])), (beta, special.betainc(wide[0], *wide[2:]))):
        np.testing.assert_allclose(found, want, rtol=rtol, atol=smallest)
    # where P is nearly 1 because a is small, Q is no better than 1 - P
    np.testing.assert_allclose(q, special.gammaincc(*wide[:2]), rtol=rtol, atol=1e-15 if dtype is np.float64 else 1e-6)


ENDS = [(0, 1, 1), (-1, 1, N), (1, -1, N), (2, 0, 0), (INF, 1, 0), (N, 1, N), (1, N, N), (1, INF, 1), (0, 0, N), (INF, 0, 0),
        (0, INF, 1), (INF, INF, N), (-0.5, 0, N)]
BETA_ENDS = [(1, 1, 0, 0), (1, 1, 1, 1), (0, 1, 0.5, 1), (1, 0, 0.5, 0), (0, 0, 0.5, N), (INF, 1, 0.5, 0), (1, INF, 0.5, 1),
             (INF, INF, 0.5, N), (-1, 1, 0.5, N), (1, -1, 0.5, N), (1, 1, -0.1, N), (1, 1, 1.1, N), (N, 1, 0.5, N),
             (1, 1, N, N), (0, 1, 0, 0), (1, 0, 1, 1), (0, 0, 1, N), (1, 1e-30, 0.5, 0), (1e-30, 1, 0.5, 1)]


def test_ends():
    """As the newest JAX gives them."""
    def columns(rows):
        return np.resize(np.array(rows, np.float32), (A.size, len(rows[0]))).T
    (a, x, want), (p, b, y, beta) = columns(ENDS), columns(BETA_ENDS)
    one = np.ones_like(a)
    found = both(a, x, one, one)
    np.testing.assert_array_equal(found[0], want)
    np.testing.assert_array_equal(found[1], 1 - want)
    np.testing.assert_allclose(both(p, one, b, y)[2], beta, atol=1e-6)


def test_derivatives_by_a():
    """By a: values of mpmath, at 60 digits."""
    a, x = np.array([2.0, 0.7, 64.0, 1e5, 3.0, 1.0]), np.array([1.5, 5.0, 60.0, 1e5, 0.0, 1e-300])
    with jax.enable_x64():
        by_a, sample, by_x = jax.jit(lambda a, x: (lax.igamma_grad_a(a, x), lax.random_gamma_grad(a, x), jax.grad(
            lambda x: (lax.igamma(a, x) - lax.igammac(a, x)).sum())(x)))(a, x)
    np.testing.assert_allclose(by_a, BY_A, rtol=1e-11)
    np.testing.assert_allclose(sample, SAMPLE, rtol=1e-11)
    np.testing.assert_allclose(by_x, 2 * np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a)), rtol=1e-9)


BY_A = [-0.3134886378250793, -0.009118696039352872, -0.04525475753909522, -0.001261567312316086, 0, -6.911983122333122e-298]
SAMPLE = [0.9366390678772174, 2.8470123807946615, 0.9706022769553568, 1.0000016666683333, 0, 6.911983122333122e-298]


def test_narrow_types_are_computed_in_wider_ones():
    found = lax.igamma(np.array([2, 500], np.float16), np.array([3, 500], np.float16))
    assert found.dtype == np.float16
    np.testing.assert_allclose(np.asarray(found, float), [0.8008517, 0.5059471], rtol=1e-3)


def test_steep_ends():
    x = np.array([0.0, 1.0], np.float32)
    by_x = jax.jit(jax.grad(lambda x: (lax.igamma(np.ones(2, np.float32), x) + lax.betainc(1.0, 1.0, x)).sum()))(x)
    np.testing.assert_allclose(by_x, [2, 1 + np.exp(-1)], rtol=1e-5)


@pytest.mark.parametrize("function", [lax.igamma_grad_a, lax.random_gamma_grad])
def test_derivatives_of_derivatives_by_a(function):
    """In each region, by central differences of fourth order."""
    a, x, h = np.array([2.0, 0.7, 0.7, 64.0]), np.array([1.5, 5.0, 0.02, 60.0]), 1e-4
    steps, same = np.array([[-2, -1, 1, 2]]).T * h + 1, np.ones((4, 1))
    with jax.enable_x64():
        (by_a, by_x), near_a, near_x = jax.jit(lambda a, x: (
            jax.grad(lambda a, x: function(a, x).sum(), (0, 1))(a, x), function(a * steps, x * same),
            function(a * same, x * steps)))(a, x)
    for found, near, z in (by_a, near_a, a), (by_x, near_x, x):
        np.testing.assert_allclose(found, np.array([1, -8, 8, -1]) @ np.asarray(near) / (12 * h * z), rtol=1e-7)


def test_log_gamma_keeps_its_digits_near_zeros():
    x = np.concatenate([np.linspace(.01, 40, 500), np.linspace(-20, 0, 500) + .0003]).astype(np.float32)
    steps = np.abs(jax.jit(lax.lgamma)(x) - special.gammaln(x.astype(np.float64))) / np.finfo(np.float32).eps
    size = np.abs(special.gammaln(x.astype(np.float64)))
    # XLA's own formula, which is JAX's before 0.12, is as good only where the value is large
    assert (steps <= (1 * size if exact_lgamma else 30 * np.maximum(size, 1))).all()


def test_large_arguments():
    x = np.array([1e8, 1e20, -3e38, np.inf], np.float32)
    for found, want in zip(jax.scipy.special.fresnel(x), special.fresnel(x.astype(np.float64))):
        np.testing.assert_allclose(found, want, rtol=1e-7)
    a, b = np.array([-.5, -.5, -2.5, -3.2], np.float32), np.array([1000, 172.7, 15, 5], np.float32)
    np.testing.assert_allclose(jax.scipy.special.betaln(a, b), special.betaln(*np.float64([a, b])), rtol=1e-6)
    tiny = np.array([1.4e-6, 1e-4], np.float32)
    np.testing.assert_allclose(lax.betainc(np.float32([3, 9]), tiny, np.float32([5 / 6, .97])), [8.56e-7, 1.017e-4], atol=1e-5)
