"""tinygp: Gaussian processes against their matrices."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tinygp import GaussianProcess, kernels, transforms

X = np.linspace(0, 3, 8).astype(np.float32)
Y = np.sin(X)


@pytest.mark.parametrize("kernel", [
    kernels.ExpSquared(1.5), kernels.Matern32(1.5), kernels.quasisep.Matern32(1.5), 2.0 * kernels.Exp(1.5),
    kernels.ExpSquared(1.5) + kernels.Constant(0.5), transforms.Linear(0.5, kernels.Matern52())], ids=lambda k: type(k).__name__)
def test_a_process(kernel):
    process = GaussianProcess(kernel, X, diag=0.1)
    covariance = np.asarray(jax.vmap(lambda a: jax.vmap(lambda b: kernel.evaluate(a, b))(X))(X), float) + 0.1 * np.eye(8)
    want = scipy.stats.multivariate_normal(np.zeros(8), covariance).logpdf(Y)
    np.testing.assert_allclose(jax.jit(lambda y: process.log_probability(y))(Y), want, rtol=1e-3)
    mean = process.condition(Y).gp.loc
    np.testing.assert_allclose(mean, (covariance - 0.1 * np.eye(8)) @ np.linalg.solve(covariance, Y), atol=1e-3)


def test_a_derivative_in_parameters():
    def loss(scale):
        return -GaussianProcess(kernels.ExpSquared(scale), X, diag=0.1).log_probability(Y)
    slope = (loss(1.51) - loss(1.49)) / 0.02
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(jnp.float32(1.5)), slope, rtol=1e-2)
    drawn = GaussianProcess(kernels.ExpSquared(1.0), X, diag=0.1).sample(jax.random.key(0), (5,))
    assert drawn.shape == (5, 8)
