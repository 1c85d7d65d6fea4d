"""A neural ODE, in Equinox and Diffrax: a network is the vector field that carries a point along a spiral.

    python -m hlotrace.as_jax examples/libraries/neural_ode.py --steps 200

The program is JAX's: without `-m hlotrace.as_jax` it runs on JAX.  After Chen et al., Neural Ordinary Differential Equations
(2018), with data that the program makes.
"""
import argparse
import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import psutil

TRAJECTORIES, PLACES, BATCH = 128, 40, 32


class Field(eqx.Module):
    """The velocity of a point."""
    network: eqx.nn.MLP

    def __init__(self, key):
        self.network = eqx.nn.MLP(in_size=2, out_size=2, width_size=32, depth=2, activation=jax.nn.softplus, key=key)

    def __call__(self, t, y, args):
        return self.network(y)


class NeuralODE(eqx.Module):
    """Where a point is at the times `ts`."""
    field: Field

    def __call__(self, ts, start):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(self.field), diffrax.Tsit5(), t0=ts[0], t1=ts[-1], dt0=ts[1] - ts[0], y0=start,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6), saveat=diffrax.SaveAt(ts=ts))
        return solution.ys


def spirals(ts, key):
    """(TRAJECTORIES, PLACES, 2): solutions of y' = A y - 0.1 y, which are known."""
    start = jax.random.uniform(key, (TRAJECTORIES, 1, 2), minval=-0.6, maxval=1.0)
    cos, sin, shrink = jnp.cos(ts), jnp.sin(ts), jnp.exp(-0.1 * ts)
    turn = jnp.stack([jnp.stack([cos, sin], -1), jnp.stack([-sin, cos], -1)], -1) * shrink[:, None, None]
    return jnp.einsum("tij,nsj->nti", turn, start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()

    for_data, for_model, for_batches = jax.random.split(jax.random.key(5678), 3)
    ts = jnp.linspace(0.0, 3.0, PLACES)
    data = spirals(ts, for_data)
    model = NeuralODE(Field(for_model))
    optimizer = optax.adabelief(3e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_value_and_grad
    def loss_of(model, batch):
        return jnp.mean((jax.vmap(model, in_axes=(None, 0))(ts, batch[:, 0]) - batch) ** 2)

    @eqx.filter_jit
    def train_step(model, state, batch):
        loss, grads = loss_of(model, batch)
        updates, state = optimizer.update(grads, state)
        return loss, eqx.apply_updates(model, updates), state

    for step, key in enumerate(jax.random.split(for_batches, asked.steps)):
        batch = data[jax.random.choice(key, TRAJECTORIES, (BATCH,), replace=False)]
        loss, model, state = train_step(model, state, batch)
        if step == 0:
            jax.block_until_ready(loss)
            print(f"seconds to the first step: {time.time() - psutil.Process().create_time():.2f}")
        if step % 50 == 0 or step == asked.steps - 1:
            print(f"step {step}: loss {loss:.5f}", flush=True)


if __name__ == "__main__":
    main()
