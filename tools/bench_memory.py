"""The programs whose memory tools/bench.py compares: training steps by scan and unrolled, with and without
checkpoint, recurrent networks, convolutions, attention, linear algebra, loops, over one device and over eight.

A family is a function of the package that gives {name: (a function, the types of its arguments)}.
"""
import numpy as np

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 12, 128, 4, 128, 8, 256


class Shapes:
    """Arguments by their shapes, in float32 where nothing else is said."""

    def __init__(self, jax):
        self.jax = jax

    def __call__(self, tree, dtype=np.float32):
        return self.jax.tree_util.tree_map(lambda shape: self.jax.ShapeDtypeStruct(shape, dtype), tree,
                                           is_leaf=lambda x: isinstance(x, tuple))


def _layer(jax, p, x):
    """A layer of a transformer; `p` has its weights."""
    jnp = jax.numpy

    def norm(x):
        mean = jnp.mean(x, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]
    q, k, v = (a.reshape(BATCH, LENGTH, HEADS, -1) for a in jnp.split(norm(x) @ p["qkv"], 3, -1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9))
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(BATCH, LENGTH, WIDTH) @ p["out"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


_LAYER = {"scale": (WIDTH,), "bias": (WIDTH,), "qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH),
          "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def _gpt(jax, by_scan, wrap=lambda layer: layer):
    """(a step of gradient descent, its parameters' shapes)."""
    jnp, tree_map = jax.numpy, jax.tree_util.tree_map

    def loss(params, tokens, targets):
        x, layer = params["token"][tokens], wrap(lambda x, p: (_layer(jax, p, x), None))
        if by_scan:
            x, _ = jax.lax.scan(layer, x, params["layers"])
        else:
            for p in params["layers"]:
                x, _ = layer(x, p)
        scores = jax.nn.log_softmax(x @ params["token"].T)
        return -jnp.mean(jnp.take_along_axis(scores, targets[..., None], -1))

    def step(params, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        return tree_map(lambda p, g: p - 0.1 * g, params, grads), value
    layers = {k: (LAYERS, *s) for k, s in _LAYER.items()} if by_scan else [_LAYER] * LAYERS
    return step, {"token": (VOCABULARY, WIDTH), "layers": layers}


def transformers(jax):
    shapes, policies = Shapes(jax), jax.checkpoint_policies
    tokens = [shapes((BATCH, LENGTH), np.int32)] * 2
    wraps = {"": lambda f: f, " with checkpoint": jax.checkpoint,
             " saving products": lambda f: jax.checkpoint(f, policy=policies.dots_saveable),
             " saving products of weights": lambda f: jax.checkpoint(
                 f, policy=policies.dots_with_no_batch_dims_saveable)}
    cases = {}
    for name, wrap in wraps.items():
        step, params = _gpt(jax, True, wrap)
        cases[f"GPT by scan{name}"] = step, [shapes(params), *tokens]
    for name, wrap in [*wraps.items()][:2]:
        step, params = _gpt(jax, False, wrap)
        cases[f"GPT unrolled{name}"] = step, [shapes(params), *tokens]
    x = shapes((BATCH, LENGTH, WIDTH))
    cases["a layer's gradient"] = (jax.grad(lambda p, x: jax.numpy.sum(_layer(jax, p, x) ** 2)),
                                   [shapes(_LAYER), x])
    cases["attention's gradient"] = (jax.grad(lambda q, k, v: jax.numpy.sum(jax.nn.dot_product_attention(
        q, k, v, is_causal=True) ** 2), (0, 1, 2)), [shapes((BATCH, LENGTH, HEADS, 32))] * 3)
    return cases


def loops(jax):
    jnp, lax, shapes, sigmoid = jax.numpy, jax.lax, Shapes(jax), jax.nn.sigmoid

    def gru(p, xs):
        def cell(h, x):
            z, c = sigmoid(x @ p["wz"] + h @ p["uz"]), jnp.tanh(x @ p["wc"] + h @ p["uc"])
            h = z * h + (1 - z) * c
            return h, h
        return jnp.mean(lax.scan(cell, jnp.zeros(xs.shape[1:]), xs)[1] ** 2)

    def lstm(p, xs):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            h = sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros(xs.shape[1:])
        return jnp.mean(lax.scan(cell, (zero, zero), xs)[1] ** 2)

    def dropout(ws, x, key):
        def layer(x, slices):
            w, key = slices
            return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), jax.nn.relu(x @ w) / 0.9, 0), None
        return jnp.sum(lax.scan(layer, x, (ws, jax.random.split(key, len(ws))))[0])

    def runge_kutta(p, y):
        def f(y):
            return jnp.tanh(y @ p["a"]) @ p["b"]

        def step(y, _):
            k1 = f(y)
            k2 = f(y + 0.05 * k1)
            k3 = f(y + 0.05 * k2)
            return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + 0.1 * k3)), None
        return jnp.sum(lax.scan(step, y, None, length=20)[0] ** 2)

    def branches(ws, x):
        def step(x, slices):
            i, w = slices
            return lax.cond(i % 2 == 0, lambda x: jnp.tanh(x @ w), lambda x: jnp.sin(x) @ w, x), None
        return jnp.sum(lax.scan(step, x, (jnp.arange(len(ws)), ws))[0])

    @jax.custom_vjp
    def sine(x, w):
        return jnp.sin(x @ w)

    def backward(saved, g):
        x, w = saved
        g = g * jnp.cos(x @ w)
        return g @ w.T, x.T @ g
    sine.defvjp(lambda x, w: (sine(x, w), (x, w)), backward)

    def clipped(ws, x):
        return jnp.sum(lax.scan(lambda x, w: (jax.nn.silu(jax.nn.relu6(x @ w)), None), x, ws)[0])
    ws, x, xs = shapes((8, 128, 128)), shapes((64, 128)), shapes((64, 32, 128))
    square = dict.fromkeys(("wz", "uz", "wc", "uc"), (128, 128))
    return {
        "GRU's gradient": (jax.grad(gru), [shapes(square), xs]),
        "LSTM's gradient": (jax.grad(lstm), [shapes({"w": (128, 512), "u": (128, 512), "b": (512,)}), xs]),
        "layers with dropout": (jax.grad(dropout), [ws, x, shapes((2,), np.uint32)]),
        "gradient of a Runge-Kutta method": (jax.grad(runge_kutta), [shapes({"a": (64, 128), "b": (128, 64)}),
                                                                      shapes((64, 64))]),
        "gradient of branches in a scan": (jax.grad(branches), [ws, x]),
        "scan of a custom_vjp": (jax.grad(lambda ws, x: jnp.sum(lax.scan(
            lambda x, w: (sine(x, w), None), x, ws)[0])), [ws, x]),
        "scan of relu6 and silu": (jax.grad(clipped), [ws, x]),
        "fori_loop": (lambda x, w: lax.fori_loop(0, 20, lambda i, x: jnp.tanh(x @ w), x),
                      [x, shapes((128, 128))]),
        "associative_scan's gradient": (jax.grad(lambda x: jnp.sum(lax.associative_scan(jnp.multiply, x) ** 2)),
                                        [shapes((4096, 16))]),
    }


def arrays(jax):
    jnp, lax, linalg, shapes = jax.numpy, jax.lax, jax.numpy.linalg, Shapes(jax)

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def resnet(p, x):
        def norm(x):
            return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)
        x = jax.nn.relu(norm(conv(x, p["first"])))
        for a, b in p["blocks"]:
            x = jax.nn.relu(x + norm(conv(jax.nn.relu(norm(conv(x, a))), b)))
        return jnp.sum(x.mean((1, 2)) ** 2)

    def pooled(ws, x):
        for w in ws:
            x, window = jax.nn.relu(conv(x, w)), (1, 2, 2, 1)
            x = lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")
        return jnp.sum(x ** 2)

    def total(f):
        return jax.grad(lambda *args: sum(map(jnp.sum, jax.tree_util.tree_leaves(f(*args)))))
    a, tall, images = shapes((128, 128)), shapes((128, 96)), shapes((8, 32, 32, 3))
    weights = {"first": (3, 3, 3, 32), "blocks": [[(3, 3, 32, 32)] * 2] * 4}
    return {
        "ResNet's gradient": (jax.grad(resnet), [shapes(weights), images]),
        "gradient of convolutions and pools": (jax.grad(pooled), [shapes([(3, 3, 3, 16), (3, 3, 16, 32)]), images]),
        "cholesky": (total(lambda a: linalg.cholesky(a @ a.T + jnp.eye(128))), [a]),
        "solve": (total(linalg.solve), [a, shapes((128, 32))]),
        "qr": (total(linalg.qr), [tall]),
        "svd": (total(lambda a: linalg.svd(a, full_matrices=False)), [tall]),
        "eigh": (total(lambda a: linalg.eigh(a + a.T)), [a]),
        "slogdet": (total(linalg.slogdet), [a]),
        "expm": (total(jax.scipy.linalg.expm), [shapes((64, 64))]),
        "hessian": (jax.hessian(lambda p, x: jnp.sum(jnp.tanh(x @ p.reshape(16, 16)) ** 2)),
                    [shapes((256,)), shapes((32, 16))]),
        "vmap of grad": (jax.vmap(jax.grad(lambda p, x: jnp.sum(jnp.tanh(x @ p) ** 2)), (None, 0)),
                         [a, shapes((64, 128))]),
        "sort": (total(lambda x: jnp.sort(x) * jnp.arange(4096.0)), [shapes((4, 4096))]),
    }


def devices(jax):
    """GPT over 8 devices, the batch over 4 of them and the weights over 2."""
    sharding, spec = jax.sharding, jax.sharding.PartitionSpec
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(sharding.AxisType.Auto,) * 2)
    columns, rows = (None, "model"), ("model", None)
    split = {"qkv": columns, "up": columns, "out": rows, "down": rows}

    def placed(struct, axes):
        axes = (*[None] * (len(struct.shape) - len(axes)), *axes)
        return jax.ShapeDtypeStruct(struct.shape, struct.dtype,
                                    sharding=sharding.NamedSharding(mesh, spec(*axes)))
    shapes, cases = Shapes(jax), {}
    tokens = [placed(shapes((BATCH, LENGTH), np.int32), ("data", None))] * 2
    for name, by_scan, wrap in (("by scan", True, lambda f: f), ("by scan with checkpoint", True, jax.checkpoint),
                                ("unrolled", False, lambda f: f)):
        step, params = _gpt(jax, by_scan, wrap)
        params = jax.tree_util.tree_map_with_path(
            lambda path, s: placed(s, split.get(path[-1].key, ())), shapes(params))
        cases[f"GPT {name} over 8 devices"] = step, [params, *tokens]
    return cases
