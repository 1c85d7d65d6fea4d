"""A network of equal blocks and its training step, which are compiled in pieces."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.runtime.executables.blocks import BlockExecutable


def array(*shape, seed=0, scale=0.1):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


X = array(32, 64, scale=1)
PARAMS = [{"w": array(64, 64, seed=i), "b": array(64, seed=20 + i), "scale": np.ones(64, np.float32)} for i in range(12)]


def block(p, x):
    y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5) * p["scale"]
    return x + 0.3 * jax.nn.gelu(y @ p["w"] + p["b"])


def network(params, x):
    for p in params:
        x = block(p, x)
    return x


def loss(params, x):
    return jnp.mean(network(params, x) ** 2)


def step(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), value


def whole(f, *args):
    """The results of f(*args) compiled as one program."""
    with override("hlotrace_outline", False):
        return jax.jit(lambda *a: f(*a)).lower(*args).compile()(*args)


def in_pieces(f, *args, **options):
    compiled = jax.jit(lambda *a: f(*a), **options).lower(*args).compile()
    assert type(compiled._executable) is BlockExecutable
    return compiled
