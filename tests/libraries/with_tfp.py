"""TensorFlow Probability on JAX: distributions, bijectors, joint distributions, chains and an optimizer."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
KEY = jax.random.key(0)
X = np.array([0.2, 0.5, 0.9], np.float32)


@pytest.mark.parametrize("ours, theirs, x", [
    (tfd.Normal(1., 2.), scipy.stats.norm(1, 2), X), (tfd.Gamma(2., 3.), scipy.stats.gamma(2, scale=1 / 3), X),
    (tfd.Beta(2., 3.), scipy.stats.beta(2, 3), X), (tfd.StudentT(4., 0., 1.), scipy.stats.t(4), X),
    (tfd.Laplace(0., 2.), scipy.stats.laplace(0, 2), X), (tfd.Weibull(2., 1.), scipy.stats.weibull_min(2), X),
    (tfd.VonMises(0., 2.), scipy.stats.vonmises(2), X), (tfd.LogNormal(0., 1.), scipy.stats.lognorm(1), X)],
    ids=lambda d: getattr(d, "name", ""))
def test_a_distribution(ours, theirs, x):
    np.testing.assert_allclose(jax.jit(ours.log_prob)(x), theirs.logpdf(x), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=2e-4)
    slope = jax.vmap(jax.grad(ours.log_prob))(x)
    np.testing.assert_allclose(slope, (theirs.logpdf(x + 1e-4) - theirs.logpdf(x - 1e-4)) / 2e-4, rtol=2e-3, atol=2e-3)
    drawn = ours.sample(2000, seed=KEY)
    np.testing.assert_allclose(np.median(drawn), theirs.median(), atol=0.15)


@pytest.mark.parametrize("bijector", [tfb.Exp(), tfb.Softplus(), tfb.Sigmoid(), tfb.Chain([tfb.Shift(1.), tfb.Scale(3.)]),
                                      tfb.Tanh(), tfb.SinhArcsinh(0.1)], ids=lambda b: b.name)
def test_a_bijector(bijector):
    np.testing.assert_allclose(bijector.inverse(bijector.forward(X)), X, rtol=1e-4)
    np.testing.assert_allclose(bijector.forward_log_det_jacobian(X, 0), jnp.log(jax.vmap(jax.grad(bijector.forward))(X)), atol=1e-4)


def test_transformed_mixed_and_joint_distributions():
    log_normal = tfd.TransformedDistribution(tfd.Normal(0., 1.), tfb.Exp())
    np.testing.assert_allclose(log_normal.log_prob(X), scipy.stats.lognorm(1).logpdf(X), rtol=1e-5)
    mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([0., 1.], [1., 2.]))
    density = 0.3 * scipy.stats.norm(0, 1).pdf(X) + 0.7 * scipy.stats.norm(1, 2).pdf(X)
    np.testing.assert_allclose(mixture.prob(X), density, rtol=1e-5)
    joint = tfd.JointDistributionNamedAutoBatched({
        "scale": tfd.HalfNormal(1.), "x": lambda scale: tfd.Sample(tfd.Normal(0., scale), 3)})
    drawn = joint.sample(seed=KEY)
    assert drawn["x"].shape == (3,)
    want = scipy.stats.halfnorm.logpdf(drawn["scale"]) + scipy.stats.norm(0, drawn["scale"]).logpdf(drawn["x"]).sum()
    np.testing.assert_allclose(joint.log_prob(drawn), want, rtol=1e-5)
    process = tfd.GaussianProcess(tfp.math.psd_kernels.ExponentiatedQuadratic(), X[:, None], observation_noise_variance=0.1)
    covariance = np.exp(-np.subtract.outer(X, X) ** 2 / 2) + 0.1 * np.eye(3)
    np.testing.assert_allclose(process.log_prob(X), scipy.stats.multivariate_normal(np.zeros(3), covariance).logpdf(X), rtol=1e-4)


def test_chains_and_a_minimum():
    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(tfd.Normal(3., 0.5).log_prob, step_size=0.3, num_leapfrog_steps=3), 100)
    run = jax.jit(lambda key: tfp.mcmc.sample_chain(500, jnp.zeros(4), kernel=kernel, num_burnin_steps=200, trace_fn=None, seed=key))
    chain = run(KEY)
    assert chain.shape == (500, 4) and abs(chain.mean() - 3) < 0.1 and abs(chain.std() - 0.5) < 0.1
    loss = lambda x: jnp.sum((x - jnp.arange(3.)) ** 4 + (x - jnp.arange(3.)) ** 2)
    found = tfp.optimizer.lbfgs_minimize(lambda x: tfp.math.value_and_gradient(loss, x), jnp.full(3, 5.))
    assert bool(found.converged)
    np.testing.assert_allclose(found.position, np.arange(3), atol=1e-3)
