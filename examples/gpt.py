"""A training step of a GPT (tokens to the next ones, Adam), by size, for `hlotrace plan` and for measuring.

    hlotrace plan examples/gpt.py:step --args_from examples/gpt.py:gpt_124m --in_spec examples/gpt.py:specs --on v5e:4x4
"""
import functools
import math

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import P

RATE, DECAY_1, DECAY_2 = 3e-4, 0.9, 0.95
# layers, width, heads, vocabulary, length of a sequence, sequences in a batch
SIZES = {"124m": (12, 768, 12, 50304, 1024, 64), "1.3b": (24, 2048, 16, 50304, 2048, 64),
         "7b": (32, 4096, 32, 50304, 2048, 64), "70b": (86, 8192, 64, 50304, 2048, 2048),
         "tiny": (2, 128, 4, 512, 64, 8)}

# The shape of each parameter, and the mesh axes that split it: heads and hidden layers over "model", the other
# dimension over "data", from where each layer gathers it when it needs it.
PARAMETERS = {
    "embed": (lambda s: (s["vocabulary"], s["width"]), P("model", "data")),
    "norm1": (lambda s: (s["layers"], s["width"]), P(None, "data")),
    "qkv": (lambda s: (s["layers"], s["width"], 3, s["heads"], s["width"] // s["heads"]), P(None, "data", None, "model")),
    "merge": (lambda s: (s["layers"], s["heads"], s["width"] // s["heads"], s["width"]), P(None, "model", None, "data")),
    "norm2": (lambda s: (s["layers"], s["width"]), P(None, "data")),
    "up": (lambda s: (s["layers"], s["width"], 4 * s["width"]), P(None, "data", "model")),
    "down": (lambda s: (s["layers"], 4 * s["width"], s["width"]), P(None, "model", "data")),
    "norm": (lambda s: (s["width"],), P("data")),
}
LAYERS = ("norm1", "qkv", "merge", "norm2", "up", "down")


def sizes(name):
    return dict(zip(("layers", "width", "heads", "vocabulary", "length", "batch"), SIZES[name]))


def types(name):
    """The arguments of `step` for a size: parameters, two moments, tokens."""
    size = sizes(name)
    params = {key: jax.ShapeDtypeStruct(shape(size), jnp.float32) for key, (shape, _) in PARAMETERS.items()}
    return params, params, params, jax.ShapeDtypeStruct((size["batch"], size["length"] + 1), jnp.int32)


# for --args_from
gpt_124m, gpt_1_3b, gpt_7b, gpt_70b, gpt_tiny = (functools.partial(types, name) for name in SIZES)


def specs():
    """How the arguments of `step` are split."""
    params = {key: spec for key, (_, spec) in PARAMETERS.items()}
    return params, params, params, P("data")


def by_sequences(x):
    """Activations are split over "data" alone; where there is no mesh, nothing is."""
    mesh = jax.sharding.get_abstract_mesh()
    return x if mesh.empty else jax.lax.with_sharding_constraint(x, P("data"))


def norm(x, scale):
    """Each token over its root mean square, in float32."""
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


def block(x, layer):
    """A pre-norm transformer block: [batch, length, width] to the same, in bfloat16."""
    layer = {key: value if key.startswith("norm") else value.astype(jnp.bfloat16) for key, value in layer.items()}
    length, head = x.shape[1], layer["qkv"].shape[-1]
    q, k, v = jnp.moveaxis(jnp.einsum("btw,wchd->bcthd", norm(x, layer["norm1"]), layer["qkv"]), 1, 0)
    weights = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * head**-0.5
    weights = jnp.where(jnp.tril(jnp.ones((length, length), bool)), weights, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(weights).astype(x.dtype), v)
    x = by_sequences(x + jnp.einsum("bqhd,hdw->bqw", mixed, layer["merge"]))
    return by_sequences(x + jax.nn.gelu(norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"])


def loss(params, tokens):
    """The mean of -log p of each token after the first; blocks are computed again in the backward pass."""
    embed = params["embed"].astype(jnp.bfloat16)
    x = by_sequences(embed[tokens[:, :-1]])
    x, _ = jax.lax.scan(lambda x, layer: (jax.checkpoint(block)(x, layer), None), x, {key: params[key] for key in LAYERS})
    scores = jnp.einsum("btw,vw->btv", norm(x, params["norm"]), embed).astype(jnp.float32)
    right = jnp.take_along_axis(scores, tokens[:, 1:, None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(scores, -1) - right)


@jax.jit(donate_argnums=(0, 1, 2))
def step(params, mean, square, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    mean = jax.tree.map(lambda m, g: DECAY_1 * m + (1 - DECAY_1) * g, mean, grads)
    square = jax.tree.map(lambda s, g: DECAY_2 * s + (1 - DECAY_2) * g**2, square, grads)
    params = jax.tree.map(lambda p, m, s: p - RATE * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, mean, square, value


def flops_by_hand(name):
    """The products of a step: for each token 6 for each parameter that multiplies it and 12 T width for attention in
    each layer; then blocks once more without their last product, which the backward pass needs no result of."""
    s = sizes(name)
    width, attention = s["width"], 2 * s["length"] * s["width"]
    layer = 6 * (12 * width**2 + attention) + 2 * (8 * width**2 + attention)
    return s["batch"] * s["length"] * (s["layers"] * layer + 6 * s["vocabulary"] * width)


if __name__ == "__main__":
    count = sum(math.prod(x.shape) for x in types("tiny")[0].values())
    print(f"{count:,} parameters, {flops_by_hand('tiny'):,} operations by hand a step")
