"""Compiles a training step of a GPT block for 256 TPU chips that are not here.

Prints what each chip needs of memory, what they communicate, and the time that XLA estimates.
"""
import time

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.inspection.communication import collectives, table
from hlotrace.sharding import NamedSharding, P

TOPOLOGY, MESH = "v5e:16x16", {"data": 16, "model": 16}
BATCH, LENGTH, WIDTH, HEADS, HEAD = 128, 2048, 4096, 32, 128
RATE = 1e-3

# The shape of each parameter, and the mesh axes that split it. Heads and the hidden layer are split
# over "model": attention and MLP end with one sum over it each, and so do their backward passes.
PARAMETERS = {
    "norm1": ((WIDTH,), P()),
    "qkv": ((WIDTH, 3, HEADS, HEAD), P(None, None, "model", None)),
    "merge": ((HEADS, HEAD, WIDTH), P("model", None, None)),
    "norm2": ((WIDTH,), P()),
    "up": ((WIDTH, 4 * WIDTH), P(None, "model")),
    "down": ((4 * WIDTH, WIDTH), P("model", None)),
}
TOKENS = (BATCH, LENGTH, WIDTH), P("data", None, None)


def norm(x, scale):
    """Each token over its root mean square, in float32."""
    wide = x.astype(jnp.float32)
    size = jnp.mean(wide**2, -1, keepdims=True)
    return (wide * jax.lax.rsqrt(size + 1e-6)).astype(x.dtype) * scale


def attention(params, x):
    q, k, v = jnp.moveaxis(jnp.einsum("btw,wchd->bcthd", x, params["qkv"]), 1, 0)
    weights = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * HEAD**-0.5
    weights = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), weights, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(weights).astype(x.dtype), v)
    return jnp.einsum("bqhd,hdw->bqw", mixed, params["merge"])


def block(params, x):
    """A pre-norm transformer block: tokens [batch, length, width] to the same."""
    with jax.named_scope("attention"):
        x = x + attention(params, norm(x, params["norm1"]))
    with jax.named_scope("mlp"):
        hidden = jax.nn.gelu(norm(x, params["norm2"]) @ params["up"])
        return x + hidden @ params["down"]


@jax.jit(donate_argnums=0)
def step(params, x, target):
    def loss(params):
        return jnp.mean((block(params, x) - target).astype(jnp.float32) ** 2)
    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads), value


try:
    topology = jax.topologies.get_topology_desc(TOPOLOGY)
except RuntimeError as error:
    print(error)        # says what to install
    raise SystemExit from None
mesh = topology.make_mesh(MESH.values(), MESH)
types = {name: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
         for name, (shape, spec) in {**PARAMETERS, "tokens": TOKENS}.items()}
tokens, start = types.pop("tokens"), time.perf_counter()
compiled = step.lower(types, tokens, tokens).compile()
print(f"compiled for {topology}, mesh {MESH}, in {time.perf_counter() - start:.1f} s\n")
memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
for name in ("argument_size", "output_size", "temp_size", "generated_code_size", "peak_memory"):
    size = getattr(memory, f"{name}_in_bytes") / 2**20
    print(f"{name.removesuffix('_size').replace('_', ' '):15} {size:6.1f} MiB a chip")
print(f"\n{table(collectives(compiled.as_text(), mesh))}\n")
seconds = cost["optimal_seconds"]
print(f"a step, as XLA estimates: {1e3 * seconds:.1f} ms, "
      f"{cost['flops'] / seconds / 1e12:.0f} TFLOP/s a chip")
