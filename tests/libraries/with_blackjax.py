"""BlackJAX, a stranger: samplers that nobody prepared for, on a Gaussian whose moments are known."""
import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

MEAN, SCALE = jnp.array([1., -2.]), jnp.array([0.5, 2.])


def density(x):
    return -0.5 * jnp.sum(((x - MEAN) / SCALE) ** 2)


def sample(algorithm, start, draws=2000):
    def step(state, key):
        state, _ = algorithm.step(key, state)
        return state, state.position
    return jax.jit(lambda s: jax.lax.scan(step, s, jax.random.split(jax.random.key(1), draws))[1])(algorithm.init(start))


@pytest.mark.parametrize("algorithm", [
    blackjax.nuts(density, 0.5, jnp.array([0.25, 4.])), blackjax.hmc(density, 0.4, jnp.array([0.25, 4.]), 8),
    blackjax.mala(density, 0.3)], ids=["nuts", "hmc", "mala"])
def test_a_sampler_finds_the_moments(algorithm):
    draws = sample(algorithm, MEAN)
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.6)
    np.testing.assert_allclose(draws.std(0), SCALE, rtol=0.4)


def test_window_adaptation_finds_a_step_size():
    warmup = blackjax.window_adaptation(blackjax.nuts, density)
    (state, parameters), _ = warmup.run(jax.random.key(0), jnp.zeros(2), num_steps=300)
    assert 0.05 < parameters["step_size"] < 5 and state.position.shape == (2,)
