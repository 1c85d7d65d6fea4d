"""XLand-MiniGrid: environments that are made, reset and stepped; rewards and observations are those of JAX."""

import jax
import jax.numpy as jnp
import pytest
import xminigrid


@pytest.mark.parametrize(
    "name, sums",
    [
        ("MiniGrid-Empty-8x8", [240, 336, 240, 240, 240]),
        ("MiniGrid-DoorKey-5x5", [85, 169, 85, 85, 85]),
        ("XLand-MiniGrid-R1-9x9", [64, 160, 64, 64, 64]),
    ],
)
def test_steps(name, sums):
    env, params = xminigrid.make(name)
    step, timestep, seen = jax.jit(env.step), jax.jit(env.reset)(params, jax.random.key(0)), []
    for action in range(5):
        timestep = step(params, timestep, jnp.asarray(action))
        seen.append(int(timestep.observation.sum()))
    assert seen == sums


def test_rollouts_are_batched_and_scanned():
    env, params = xminigrid.make("MiniGrid-FourRooms")

    def rollout(key):
        def step(timestep, action):
            timestep = env.step(params, timestep, action)
            return timestep, (timestep.reward, timestep.observation.sum())
        return jax.lax.scan(step, env.reset(params, key), jnp.arange(20) % 6)[1]

    rewards, sums = jax.jit(jax.vmap(rollout))(jax.random.split(jax.random.key(1), 4))
    assert rewards.shape == sums.shape == (4, 20) and float(rewards.sum()) == 0 and int(sums.sum()) == 30576
