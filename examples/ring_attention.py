"""Attention over a sequence that no device holds whole: keys and values travel around a ring of 8 devices.

Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context", arXiv:2310.01889.
Softmax over blocks one after the other: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax",
arXiv:1805.02867.
"""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)             # says nothing about TPUs and GPUs
MESH = jax.make_mesh((8,), ("ring",), (AxisType.Auto,))
BATCH, LENGTH, HEADS, WIDTH = 2, 512, 4, 32


def block_scores(q, k, q_start, k_start, causal):
    """(batch, heads, queries, keys): how well each query fits each key; -inf where a key lies in its future."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if not causal:
        return scores
    ahead = k_start + jnp.arange(k.shape[1]) > q_start + jnp.arange(q.shape[1])[:, None]
    return jnp.where(ahead, -jnp.inf, scores)


def plain_attention(q, k, v, causal):
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(block_scores(q, k, 0, 0, causal)), v)


def ring_attention(q, k, v, causal):
    """The same on blocks of the sequence, (batch, length / devices, heads, width) each, inside shard_map."""
    n, here, block = lax.axis_size("ring"), lax.axis_index("ring"), q.shape[1]
    to_next = [(i, (i + 1) % n) for i in range(n)]

    def attend(k, v, owner, high, total, out):
        """Adds one block of keys. `high` is the largest score so far; `total` and `out` are in units of exp(high)."""
        scores = block_scores(q, k, here * block, owner * block, causal)
        new = lax.stop_gradient(jnp.maximum(high, scores.max(-1)))      # any shift gives the same softmax
        weights, shrink = jnp.exp(scores - new[..., None]), jnp.exp(high - new)
        out = out * shrink[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
        return new, total * shrink + weights.sum(-1), out

    @jax.checkpoint                                     # backward makes the scores again: none are kept
    def step(carry, distance):
        k, v, *state = carry
        k, v = lax.ppermute((k, v), "ring", to_next)
        return (k, v, *attend(k, v, (here - distance) % n, *state)), None

    # The device's own block comes first: it leaves every query a key, so that `high` is finite from then on.
    nothing = jnp.zeros_like(q).transpose(0, 2, 1, 3)
    own = attend(k, v, here, nothing[..., 0] - jnp.inf, nothing[..., 0], nothing)
    (_, _, _, total, out), _ = lax.scan(step, (k, v, *own), jnp.arange(1, n))
    return (out / total[..., None]).transpose(0, 2, 1, 3)


def value_and_gradients(attention, q, k, v):
    """The result, and the gradients of some function of it."""
    out, back = jax.vjp(attention, q, k, v)
    return out, *back(jnp.cos(out))


in_blocks = P(None, "ring")
q, k, v = jax.device_put(tuple(jax.random.normal(jax.random.key(0), (3, BATCH, LENGTH, HEADS, WIDTH))),
                         NamedSharding(MESH, in_blocks))
print(f"queries {q.shape}, on each of {MESH.size} devices {q.addressable_shards[0].data.shape}")
for causal in (False, True):
    plain = lambda q, k, v, causal=causal: plain_attention(q, k, v, causal)
    ring = jax.shard_map(lambda q, k, v, causal=causal: ring_attention(q, k, v, causal), mesh=MESH,
                         in_specs=in_blocks, out_specs=in_blocks)
    want = jax.jit(lambda *qkv, f=plain: value_and_gradients(f, *qkv))(q, k, v)
    got = jax.jit(lambda *qkv, f=ring: value_and_gradients(f, *qkv))(q, k, v)
    kind = "causal" if causal else "full"
    for name, g, w in zip(("result", "gradient of q", "gradient of k", "gradient of v"), got, want):
        print(f"{kind:6} attention, {name:13}  largest difference {np.abs(np.subtract(g, w)).max():.1e}"
              f" of {np.abs(w).max():.2f}")
