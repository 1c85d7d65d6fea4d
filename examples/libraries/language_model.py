"""A transformer, in Flax, that learns to write like Shakespeare: Optax trains it over 8 devices, Orbax keeps checkpoints.

    python -m hlotrace.as_jax examples/libraries/language_model.py --checkpoints /tmp/lm --steps 60

The program is JAX's: without `-m hlotrace.as_jax` it runs on JAX.  Killed at any time (`--kill-at 35` does it), it goes on
from its last checkpoint when it is started again.  The text is As You Like It, by William Shakespeare.
"""
import argparse
import os
import signal
import time
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import psutil
from flax.training import train_state
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 64, 32, 64, 4, 3
SAVE_EVERY = 10


class Block(nn.Module):
    """Attention to what came before, and a network of one hidden layer, whose columns are split over "model"."""

    @nn.compact
    def __call__(self, x):
        split = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "model"))
        join = nn.with_partitioning(nn.initializers.lecun_normal(), ("model", None))
        mask = nn.make_causal_mask(x[..., 0])
        x = x + nn.MultiHeadDotProductAttention(HEADS)(nn.LayerNorm()(x), mask=mask)
        hidden = nn.gelu(nn.Dense(4 * WIDTH, kernel_init=split)(nn.LayerNorm()(x)))
        return x + nn.Dense(WIDTH, kernel_init=join)(hidden)


class LanguageModel(nn.Module):
    """Scores of the next character, for each place of a text."""
    characters: int

    @nn.compact
    def __call__(self, tokens):
        places = self.param("places", nn.initializers.normal(0.02), (CONTEXT, WIDTH))
        x = nn.Embed(self.characters, WIDTH)(tokens) + places[:tokens.shape[-1]]
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(self.characters)(nn.LayerNorm()(x))


def optimizer(steps):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, warmup_steps=10, decay_steps=max(steps, 20))
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4))


def batch_of(text, step):
    """(batch, CONTEXT + 1) of characters: pieces of the text, the same in every run."""
    starts = np.random.default_rng(step).integers(0, len(text) - CONTEXT - 1, BATCH)
    return text[starts[:, None] + np.arange(CONTEXT + 1)]


@jax.jit
def train_step(state, batch):
    def loss_of(params):
        scores = state.apply_fn({"params": params}, batch[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(scores, batch[:, 1:]).mean()
    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkpoints", required=True, help="a directory")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--kill-at", type=int, default=-1, metavar="STEP", help="end this process there, with no good-bye")
    asked = parser.parse_args()

    jax.config.update("jax_num_cpu_devices", 8)
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    written = Path(__file__).with_name("as_you_like_it.txt").read_text()
    alphabet = sorted(set(written))
    text = np.array([alphabet.index(c) for c in written], np.int32)
    model = LanguageModel(len(alphabet))

    def new_state():
        params = model.init(jax.random.key(0), jnp.zeros((1, CONTEXT), jnp.int32))["params"]
        return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optimizer(asked.steps))

    # where each part of the state lies: as its names of axes say
    abstract = jax.eval_shape(new_state)
    shardings = nn.get_sharding(abstract, mesh)
    manager = ocp.CheckpointManager(Path(asked.checkpoints).resolve(), options=ocp.CheckpointManagerOptions(
        max_to_keep=2, save_interval_steps=SAVE_EVERY))
    last = manager.latest_step()
    if last is None:
        state, first = nn.meta.unbox(jax.jit(new_state, out_shardings=shardings)()), 0
    else:
        target = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s),
                              nn.meta.unbox(abstract), shardings)
        state, first = manager.restore(last, args=ocp.args.StandardRestore(target)), last + 1
        print(f"resumed after step {last}")

    for step in range(first, asked.steps):
        batch = jax.device_put(batch_of(text, step), NamedSharding(mesh, P("data")))
        state, loss = train_step(state, batch)
        if step == first:
            jax.block_until_ready(loss)
            print(f"seconds to the first step: {time.time() - psutil.Process().create_time():.2f}")
        if step % SAVE_EVERY == 0 or step == asked.steps - 1:
            print(f"step {step}: loss {loss:.4f}", flush=True)
        manager.save(step, args=ocp.args.StandardSave(state))
        if step == asked.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    manager.wait_until_finished()
    kernel = state.params["Block_0"]["Dense_0"]["kernel"]
    print(f"a kernel of {kernel.shape} lies as {kernel.sharding.spec} on {len(kernel.sharding.device_set)} devices")


if __name__ == "__main__":
    main()
