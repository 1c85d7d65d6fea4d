"""Points of a ball and of a simplex, orthogonal matrices, normal vectors with a covariance."""
import numpy as np
import pytest
from draws import COV, KEY, MEAN, P
from scipy import stats

import hlotrace
from hlotrace import random


def test_points_of_a_ball_and_of_a_simplex():
    points = np.asarray(random.ball(KEY, 3, 1.5, (200,)))
    norms = np.sum(np.abs(points) ** 1.5, -1) ** (1 / 1.5)
    assert stats.kstest(norms ** 3, "uniform").pvalue > 1e-3
    points = np.asarray(random.dirichlet(KEY, 3 * P, (200,)))
    np.testing.assert_allclose(points.sum(-1), 1, 1e-6)
    assert stats.kstest(points[:, 3], stats.beta(1.2, 1.8).cdf).pvalue > 1e-3
    np.testing.assert_allclose(random.dirichlet(KEY, np.float32([1, 2, 3])), [0.26655585, 0.24637803, 0.48706615], 1e-5)


@pytest.mark.parametrize("args, options", [((3,), {}), ((3, (2,)), {"m": 2}), ((2, (2,)), {"m": 3}),
                                           ((2,), {"dtype": "complex64"}), ((0,), {})])
def test_orthogonal(args, options):
    q = np.asarray(random.orthogonal(KEY, *args, **options))
    fewer = np.swapaxes(q, -1, -2).conj() @ q if q.shape[-2] >= q.shape[-1] else q @ np.swapaxes(q, -1, -2).conj()
    np.testing.assert_allclose(fewer, np.broadcast_to(np.eye(min(q.shape[-2:])), fewer.shape), atol=1e-6)


def test_roots_of_a_covariance():
    @hlotrace.jit
    def draw(key):
        return [random.multivariate_normal(key, MEAN, COV, (4000,), method=root) for root in ("cholesky", "eigh", "svd")]
    half = random.multivariate_normal(KEY, MEAN, COV, (4000,), "bfloat16")       # the root is of float32
    assert half.dtype == "bfloat16"
    for draws in (*draw(KEY), half.astype("float32")):
        np.testing.assert_allclose(np.cov(draws.T), COV, atol=0.15)
        np.testing.assert_allclose(np.mean(draws, 0), MEAN, atol=0.1)
