"""Draws from the gamma distribution follow their parameter."""
import numpy as np
import pytest
from draws import KEY
from scipy import stats

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import random


def test_gamma_values_move_with_their_parameter():
    a = np.array([0.3, 0.9, 2, 30], np.float32)

    @hlotrace.jit
    def slopes(a):
        return hlotrace.jacobian(lambda scale: [random.gamma(KEY, scale * a), random.loggamma(KEY, scale * a)])(1.0)
    gamma, log = (slope / a for slope in slopes(a))
    x = np.asarray(random.gamma(KEY, a), np.float64)
    u, h = stats.gamma.cdf(x, a.astype(float)), 1e-4
    want = (stats.gamma.ppf(u, a.astype(float) + h) - stats.gamma.ppf(u, a.astype(float) - h)) / (2 * h)
    np.testing.assert_allclose(gamma, want, 2e-3)
    np.testing.assert_allclose(log, want / x, 2e-3)
    tiny = hlotrace.grad(lambda a: random.loggamma(KEY, a))(np.float32(1e-3))
    np.testing.assert_allclose(tiny, -float(random.loggamma(KEY, np.float32(1e-3))) / 1e-3, 1e-3)


@pytest.mark.parametrize("impl, values", [("rbg", [2.719, 0.7903, 1.675]), ("unsafe_rbg", [0.05666, 4.022, 0.9788])])
def test_each_value_has_a_key_of_its_own_with_the_generators_of_xla(impl, values):
    np.testing.assert_allclose(random.gamma(random.key(3, impl=impl), jnp.ones(3)), values, rtol=1e-3)
