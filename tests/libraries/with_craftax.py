"""Craftax: a world that is made and lived in for twenty steps; what is seen of it is as on JAX."""
import jax
import pytest
from craftax.craftax_env import make_craftax_env_from_name


def test_twenty_steps():
    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=False)
    params = env.default_params
    seen, state = jax.jit(env.reset)(jax.random.PRNGKey(0), params)
    assert int(state.map.sum()) == 19288 and float(abs(seen).sum()) == pytest.approx(68.3965, rel=1e-5)
    step, key = jax.jit(env.step), jax.random.PRNGKey(3)
    for i in range(20):
        key, subkey = jax.random.split(key)
        seen, state, *_ = step(subkey, state, i % 17, params)
    assert int(state.map.sum()) == 19285 and float(abs(seen).sum()) == pytest.approx(69.6323, rel=1e-5)
