"""The programs that tools/bench.py measures, written once: `jax` is hlotrace or jax.

Each maker returns a Program with a new function, so that a repeat finds nothing in a cache of traced functions, and with
NumPy arguments that depend on nothing but the sizes.
"""
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A function and its arguments.  The first `carried` arguments are state: the first `carried` results
    replace them in the next step, and they are donated; what is left is the loss.  `checked` picks the
    results of the first step that the packages must agree on."""
    title: str
    f: Any
    args: list
    carried: int
    checked: Any = lambda out: out
    tolerance: float = 2e-3


class Data:
    """Arrays of a seeded generator."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def normal(self, *shape, scale=1.0):
        return (self.rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(np.float32)

    def weight(self, *shape):
        """He initialization: the last axis is the output."""
        return self.normal(*shape, scale=(2 / np.prod(shape[:-1])) ** 0.5)

    def dense(self, n, m):
        return {"w": self.weight(n, m), "b": np.zeros(m, np.float32)}

    def norm(self, n):
        return {"scale": np.ones(n, np.float32), "bias": np.zeros(n, np.float32)}

    def integers(self, high, *shape):
        return self.rng.integers(0, high, shape, np.int32)


def zeros_like(tree):
    """A new tree of zeros: a donated argument may stand in a call only once."""
    if isinstance(tree, dict):
        return {k: zeros_like(v) for k, v in tree.items()}
    return [zeros_like(v) for v in tree] if isinstance(tree, list) else np.zeros_like(tree)


def cross_entropy(jax, scores, labels):
    scores = jax.nn.log_softmax(scores)
    return -jax.numpy.mean(jax.numpy.take_along_axis(scores, labels[..., None], axis=-1))


def chain(jax, ops=2000):
    """Elementwise operations in a row."""
    jnp = jax.numpy

    def f(x, y):
        for _ in range(ops // 4):
            x = jnp.sin(x) * y
            x = jnp.tanh(x) + y
        return [x]
    data = Data()
    return Program(f"chain of {ops} ops", f, [data.normal(8, 128), data.normal(8, 128, scale=0.3)], 1)


def mlp(jax, sizes=(784, 256, 256, 10), batch=64):
    """A step of gradient descent on a multilayer perceptron."""
    def loss(params, x, labels):
        *hidden, last = params
        for p in hidden:
            x = jax.nn.relu(x @ p["w"] + p["b"])
        return cross_entropy(jax, x @ last["w"] + last["b"], labels)

    def step(params, x, labels):
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), value
    data = Data()
    params = [data.dense(n, m) for n, m in zip(sizes, sizes[1:])]
    return Program("MLP SGD step", step, [params, data.normal(batch, sizes[0]),
                                          data.integers(sizes[-1], batch)], 1)


def gpt(jax, blocks=12, width=128, heads=4, vocabulary=256, length=64, batch=4):
    """A training step with Adam of a causal transformer whose blocks are unrolled."""
    jnp, tree_map = jax.numpy, jax.tree_util.tree_map

    def dense(p, x):
        return x @ p["w"] + p["b"]

    def norm(p, x):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]

    def attention(p, x):
        split = lambda a: a.reshape(batch, length, heads, width // heads)
        q, k, v = map(split, jnp.split(dense(p["qkv"], x), 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
        causal = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return dense(p["out"], mixed.reshape(batch, length, width))

    def loss(params, tokens, targets):
        x = params["token"][tokens] + params["position"]
        for p in params["blocks"]:
            x = x + attention(p, norm(p["norm1"], x))
            x = x + dense(p["down"], jax.nn.gelu(dense(p["up"], norm(p["norm2"], x))))
        return cross_entropy(jax, norm(params["norm"], x) @ params["token"].T, targets)

    def step(params, m, v, t, tokens, targets):
        value, grads = jax.value_and_grad(loss)(params, tokens, targets)
        t = t + 1
        m = tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        params = tree_map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, m, v, t, value

    data = Data()
    block = lambda: {"norm1": data.norm(width), "qkv": data.dense(width, 3 * width), "out": data.dense(width, width),
                     "norm2": data.norm(width), "up": data.dense(width, 4 * width), "down": data.dense(4 * width, width)}
    params = {"token": data.normal(vocabulary, width, scale=0.02),
              "position": data.normal(length, width, scale=0.02), "blocks": [block() for _ in range(blocks)],
              "norm": data.norm(width)}
    tokens = data.integers(vocabulary, batch, length + 1)
    args = [params, zeros_like(params), zeros_like(params), np.zeros((), np.float32), tokens[:, :-1].copy(),
            tokens[:, 1:].copy()]
    # Not the parameters: where a gradient is zero but for rounding, Adam's step is the sign of the rounding.
    return Program(f"GPT Adam step, {blocks} blocks", step, args, 4, lambda out: (out[1], out[4]))


def rnn(jax, width=128, length=64, batch=16):
    """A step of gradient descent on a gated recurrent network: the gradient of a scan."""
    jnp = jax.numpy

    def cell(params, state, x):
        gates = jax.nn.sigmoid(x @ params["gates_x"] + state @ params["gates_h"] + params["gates_b"])
        reset, update = jnp.split(gates, 2, axis=-1)
        new = jnp.tanh(x @ params["new_x"] + (reset * state) @ params["new_h"] + params["new_b"])
        state = update * state + (1 - update) * new
        return state, state

    def loss(params, x, target):
        start = jnp.zeros((batch, width))
        _, states = jax.lax.scan(lambda state, x: cell(params, state, x), start, x)
        return jnp.mean((states @ params["out"] - target) ** 2)

    def step(params, x, target):
        value, grads = jax.value_and_grad(loss)(params, x, target)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), value
    data = Data()
    weight = lambda n, m: data.normal(n, m, scale=n ** -0.5)
    params = {"gates_x": weight(width, 2 * width), "gates_h": weight(width, 2 * width),
              "gates_b": np.zeros(2 * width, np.float32), "new_x": weight(width, width),
              "new_h": weight(width, width), "new_b": np.zeros(width, np.float32), "out": weight(width, 8)}
    return Program("RNN (scan) SGD step", step, [params, data.normal(length, batch, width),
                                                 data.normal(length, batch, 8)], 1)


def hessian(jax, n=64):
    """The Hessian of a small network's loss in its input."""
    jnp = jax.numpy

    def loss(x, w1, w2):
        return jnp.sum(jnp.tanh(jnp.tanh(x @ w1) @ w2) ** 2) + jnp.sum(jnp.log1p(x * x))
    data = Data()
    return Program("Hessian", lambda *args: [jax.hessian(loss)(*args)],
                   [data.normal(n), data.weight(n, n), data.weight(n, n)], 0)


def resnet(jax, batch=8, side=32, widths=(64, 128, 256, 512), classes=10):
    """A step of gradient descent with momentum on ResNet-18 for small images, batch norm by the batch's
    statistics."""
    jnp, tree_map = jax.numpy, jax.tree_util.tree_map

    def conv(w, x, stride=1):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(p, x):
        mean = jnp.mean(x, axis=(0, 1, 2))
        variance = jnp.var(x, axis=(0, 1, 2))
        return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]

    def block(p, x, stride):
        y = jax.nn.relu(norm(p["norm1"], conv(p["conv1"], x, stride)))
        y = norm(p["norm2"], conv(p["conv2"], y))
        if "short" in p:
            x = norm(p["norm3"], conv(p["short"], x, stride))
        return jax.nn.relu(x + y)

    def loss(params, x, labels):
        x = jax.nn.relu(norm(params["norm"], conv(params["stem"], x)))
        for i, p in enumerate(params["blocks"]):
            x = block(p, x, 2 if i in (2, 4, 6) else 1)
        x = jnp.mean(x, axis=(1, 2))
        return cross_entropy(jax, x @ params["last"]["w"] + params["last"]["b"], labels)

    def step(params, momentum, x, labels):
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        momentum = tree_map(lambda m, g: 0.9 * m + g, momentum, grads)
        return tree_map(lambda p, m: p - 0.01 * m, params, momentum), momentum, value

    data = Data()
    blocks, before = [], widths[0]
    for width in widths:
        for _ in range(2):
            p = {"conv1": data.weight(3, 3, before, width), "norm1": data.norm(width),
                 "conv2": data.weight(3, 3, width, width), "norm2": data.norm(width)}
            if before != width:
                p |= {"short": data.weight(1, 1, before, width), "norm3": data.norm(width)}
            blocks.append(p)
            before = width
    params = {"stem": data.weight(3, 3, 3, widths[0]), "norm": data.norm(widths[0]), "blocks": blocks,
              "last": data.dense(widths[-1], classes)}
    args = [params, zeros_like(params), data.normal(batch, side, side, 3), data.integers(classes, batch)]
    # In 64 bits the packages agree to 1e-14.  In 32, rounding turns some of the relus over, and either is 0.3
    # % from that.
    return Program("ResNet-18 SGD step", step, args, 2, tolerance=2e-2)


PROGRAMS = {"chain": chain, "mlp": mlp, "gpt": gpt, "rnn": rnn, "hessian": hessian, "resnet": resnet}


# Whether two packages computed the same.

def digest(leaves):
    """Two numbers for each array: its norm, and its projection on signs that depend on nothing but its size.
    """
    numbers = []
    for leaf in leaves:
        x = np.asarray(leaf).astype(np.float64).ravel()
        signs = np.random.default_rng(x.size).choice([-1.0, 1.0], x.size)
        numbers.append([float(np.linalg.norm(x)), float(x @ signs)])
    return numbers


def disagreement(ours, theirs, tolerance):
    """What differs between two digests, in words; None where they agree to `tolerance` of each array's norm.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} arrays against {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        # "not ... <=" finds NaNs too: a program that computes them measures nothing.
        if not max(abs(a[0] - b[0]), abs(a[1] - b[1])) <= tolerance * max(a[0], b[0]) + 1e-6:
            return f"array {i}: norm {a[0]:.6g} and projection {a[1]:.6g} against {b[0]:.6g} and {b[1]:.6g}"
    return None
