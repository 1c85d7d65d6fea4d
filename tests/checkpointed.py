"""A layer with a named value, in each kind of program, and what checkpoint keeps of it."""
import numpy as np
from mesh8 import auto_mesh

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals

policies = jax.checkpoint_policies
W = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def layer(x, w):
    return checkpoint_name(jnp.sin(x @ w), "h")


@jax.jit
def block(x, w):
    return jnp.tanh(layer(x, w))


def in_jit(w, x):
    return (block(block(x, w), w) ** 2).sum()


def in_scan(w, x):
    def step(c, y):
        return jnp.tanh(layer(c, w)) * y, jnp.cos(layer(c, w))
    carry, ys = lax.scan(step, x, jnp.arange(3.0) + 0.5)
    return (carry * ys[1]).sum()


def in_cond(w, x):
    return lax.cond(x[0, 0] > 0, lambda: jnp.tanh(layer(x, w)).sum(), lambda: jnp.cos(x @ w).sum())


def in_checkpoint(w, x):
    return jax.checkpoint(in_jit, policy=policies.dots_saveable)(w, x)


def in_vmap(w, x):
    return jax.vmap(lambda row: jnp.tanh(layer(row, w)).sum())(x).sum()


def in_shard_map(w, x):
    spec = jax.sharding.PartitionSpec
    return jax.shard_map(lambda w, x: lax.psum(jnp.tanh(layer(x, w)).sum(), "d"), mesh=auto_mesh((1,), ("d",)),
                         in_specs=(spec(), spec("d")), out_specs=spec())(w, x)


def kept(f, policy, *args):
    """Shapes of what the backward pass keeps besides arguments."""
    return [a.shape for a, origin in saved_residuals(jax.checkpoint(f, policy=policy), *args or (W, X))
            if "argument" not in origin]


PLACES = [in_jit, in_scan, in_cond, in_checkpoint, in_vmap, in_shard_map]
