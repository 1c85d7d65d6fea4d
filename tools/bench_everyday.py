"""The everyday calls that tools/bench.py times: what programs call outside of large compiled functions.

A family is a function of the package that gives {name: a function without arguments}.
"""

import numpy as np


def arrays(jax):
    """Operations outside of jit."""
    jnp = jax.numpy
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128) - 500
    y, square, line, host = 2 * x, x[:, :8], x.reshape(-1), np.ones((8, 128), np.float32)
    mask, index, key = x > 0, jnp.array([3, 1]), jax.random.key(0)
    return {"x + x": lambda: x + x, "x + 1": lambda: x + 1, "x + numpy": lambda: x + host, "-x": lambda: -x,
            "x @ y": lambda: square @ square, "x[0]": lambda: x[0], "x[:, 1:5]": lambda: x[:, 1:5],
            "x[index]": lambda: x[index], "x.at[0].set": lambda: x.at[0].set(1.0), "x.T": lambda: x.T,
            "(x == y).all()": lambda: (x == y).all(), "x.sum()": lambda: x.sum(),
            "x.mean(0)": lambda: x.mean(0), "x.astype": lambda: x.astype(jnp.int32),
            "x.reshape": lambda: x.reshape(128, 8), "jnp.exp": lambda: jnp.exp(x),
            "jnp.max": lambda: jnp.max(x), "jnp.argmax": lambda: jnp.argmax(x, 1),
            "jnp.where": lambda: jnp.where(mask, x, y), "jnp.clip": lambda: jnp.clip(x, -1.0, 1.0),
            "jnp.dot": lambda: jnp.dot(square, square), "jnp.einsum": lambda: jnp.einsum("ij,kj->ik", x, x),
            "jnp.ravel": lambda: jnp.ravel(x), "jnp.cumsum": lambda: jnp.cumsum(line),
            "jnp.sort": lambda: jnp.sort(line), "jnp.concatenate": lambda: jnp.concatenate([x, y]),
            "jnp.stack": lambda: jnp.stack([x, y]), "jnp.linalg.norm": lambda: jnp.linalg.norm(x),
            "jnp.var": lambda: jnp.var(x), "jnp.allclose": lambda: jnp.allclose(x, y),
            "jnp.linspace": lambda: jnp.linspace(0.0, 1.0, 50), "jnp.arange": lambda: jnp.arange(50),
            "jnp.zeros": lambda: jnp.zeros((8, 128)), "jnp.ones_like": lambda: jnp.ones_like(x),
            "jnp.eye": lambda: jnp.eye(8), "jnp.broadcast_to": lambda: jnp.broadcast_to(x, (4, 8, 128)),
            "jax.nn.relu": lambda: jax.nn.relu(x), "jax.nn.softmax": lambda: jax.nn.softmax(x),
            "jax.nn.one_hot": lambda: jax.nn.one_hot(index, 10),
            "random.split": lambda: jax.random.split(key), "random.normal": lambda: jax.random.normal(key, (8,)),
            "lax.scan": lambda: jax.lax.scan(_step, x[0], x),
            "lax.fori_loop": lambda: jax.lax.fori_loop(0, 4, _double, x)}


def _step(carry, row):
    return carry + row, carry


def _double(_, x):
    return 2 * x


def host(jax):
    """Between NumPy and arrays."""
    jnp = jax.numpy
    x, scalar, values = jnp.ones((8, 128)), jnp.float32(3), np.ones((8, 128), np.float32)
    few, items = jnp.arange(16.0), [float(i) for i in range(32)]
    tree = {f"w{i}": values for i in range(20)}
    add = jax.jit(lambda x: x + 1)
    return {"jnp.asarray(numpy)": lambda: jnp.asarray(values), "jnp.array(list)": lambda: jnp.array(items),
            "device_put(numpy)": lambda: jax.device_put(values),
            "device_put(20 numpy)": lambda: jax.device_put(tree),
            "np.asarray(new array)": lambda: np.asarray(add(x)), "np.asarray(x)": lambda: np.asarray(x),
            "float(new scalar)": lambda: float(add(scalar)), "float(x)": lambda: float(scalar),
            "x.tolist()": lambda: few.tolist(), "for row in x": lambda: list(few),
            "jax.device_get(tree)": lambda: jax.device_get({"a": x, "b": scalar}), "int(x.shape[0])": lambda: int(x.shape[0])}


def calls(jax):
    """Compiled functions, by their arguments."""
    jnp = jax.numpy
    x, scalar, values = jnp.ones((8, 128)), jnp.float32(3), np.ones((8, 128), np.float32)
    labels, device = np.arange(8), jax.devices()[0]
    add, one, first = jax.jit(lambda x, y: x + y), jax.jit(lambda x: x + 1), jax.jit(lambda x, *rest: x + 1)
    many = jax.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()})
    total, state = jax.jit(lambda *xs: sum(xs)), {"w": jnp.ones((128, 10)), "b": jnp.zeros(10)}
    step = jax.jit(lambda p, x, y: (x @ p["w"] + p["b"])[jnp.arange(8), y].sum())
    tree, small = {f"w{i}": x for i in range(20)}, [scalar] * 10
    there = jax.sharding.SingleDeviceSharding(device)
    shardings = {n: jax.jit(lambda *xs: xs[0] + 1, in_shardings=(there,) * n) for n in (1, 10, 100)}
    compiled = add.lower(x, x).compile()
    in_class = jax.jit(lambda pair: pair.x + 1)

    @jax.tree_util.register_pytree_with_keys_class
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten_with_keys(self):
            return (("x", self.x), ("y", self.y)), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)
    pair = Pair(x, x)
    static = jax.jit(lambda x, n: x * n, static_argnums=1)
    return {"an array": lambda: one(x), "a scalar": lambda: one(scalar), "two arrays": lambda: add(x, x),
            "a NumPy array": lambda: one(values), "two NumPy arrays": lambda: add(values, values),
            "an array, a NumPy array": lambda: add(x, values), "a Python number": lambda: add(x, 2.0),
            "a step with a NumPy batch": lambda: step(state, values, labels),
            "a dict of 20": lambda: many(tree), "10 scalars": lambda: total(*small),
            "unused arguments": lambda: first(x, *small), "a static argument": lambda: static(x, 3),
            "a registered class": lambda: in_class(pair), "compiled": lambda: compiled(x, x),
            **{f"in_shardings of {n}": lambda f=f, n=n: f(*[x] * n) for n, f in shardings.items()}}


def transformations(jax):
    """Transformations outside of jit, with closures."""
    jnp, la = jax.numpy, jax.numpy.linalg
    a = jnp.eye(8) * 3 + jnp.arange(64.0).reshape(8, 8) / 100
    many, b = jnp.stack([a] * 16), jnp.ones((16, 8))
    x, w = jnp.sin(jnp.arange(1024.0)).reshape(8, 128), jnp.ones((128, 16)) / 12
    loss = lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)
    again = jax.checkpoint(lambda w, n: jnp.sin(w) * n, static_argnums=1)
    counter = iter(range(10**9))
    soft = jax.custom_jvp(lambda x: jnp.log1p(jnp.exp(x)))
    soft.defjvp(lambda primals, tangents: (soft(*primals), tangents[0] * jax.nn.sigmoid(primals[0])))
    return {"vmap(inv)": lambda: jax.vmap(la.inv)(many), "vmap(solve)": lambda: jax.vmap(la.solve)(many, b),
            "vmap(det)": lambda: jax.vmap(la.det)(many), "vmap(lambda)": lambda: jax.vmap(lambda r: r @ r)(b),
            "grad": lambda: jax.grad(loss)(w), "value_and_grad": lambda: jax.value_and_grad(loss)(w),
            "grad of solve": lambda: jax.grad(lambda a: la.solve(a, b[0]).sum())(a),
            "grad of a scan": lambda: jax.grad(lambda w: jax.lax.scan(_step, w, x)[0].sum())(x[0]),
            "grad of a custom rule": lambda: jax.grad(lambda x: soft(x).sum())(x),
            "jvp": lambda: jax.jvp(loss, (w,), (w,)), "vmap(grad)": lambda: jax.vmap(jax.grad(lambda r: jnp.tanh(r).sum()))(x),
            "checkpoint, new static arguments": lambda: again(w, next(counter) % 4),
            "lax.map": lambda: jax.lax.map(lambda r: r * 2, x), "lax.cond": lambda: jax.lax.cond(True, jnp.sin, jnp.cos, x),
            "tree.map": lambda: jax.tree_util.tree_map(lambda a, b: a, {"a": x, "b": w}, {"a": x, "b": w}),
            "eval_shape": lambda: jax.eval_shape(loss, w), "typeof(1.0)": lambda: jax.typeof(1.0)}


def devices(jax):
    """Calls over four CPU devices."""
    from importlib import import_module
    jnp, name = jax.numpy, jax.__name__
    P = jax.sharding.PartitionSpec
    four = jax.devices()[:4]
    mesh = jax.sharding.Mesh(np.array(four), ("data",))
    split, whole = (jax.sharding.NamedSharding(mesh, spec) for spec in (P("data"), P()))
    values = np.ones((8, 128), np.float32)
    x, w = jax.device_put(values, split), jax.device_put(values, whole)
    tree = [jnp.ones(8) + i for i in range(20)]
    add, given = jax.jit(lambda x, w: x + w), jax.jit(lambda x, w: x + w, in_shardings=(split, whole))
    compiled, ten = add.lower(x, w).compile(), jax.jit(lambda *xs: xs[0] + 1, in_shardings=(split,) * 10)
    utils = import_module(f"{name}.experimental.multihost_utils")
    mapped = jax.pmap(lambda x: x + 1, devices=four)
    parts = mapped(np.ones((4, 8), np.float32))
    return {"over devices": lambda: add(x, w), "over devices, in_shardings": lambda: given(x, w),
            "over devices, in_shardings of 10": lambda: ten(*[x] * 10),
            "over devices, compiled": lambda: compiled(x, w), "over devices, x + x": lambda: x + x,
            "over devices, a NumPy array": lambda: given(values, values),
            "device_put to four": lambda: jax.device_put(values, split),
            "device_put of 20 to another": lambda: jax.device_put(tree, four[1]),
            "addressable_shards[0]": lambda: x.addressable_shards[0].data,
            "make_array_from_callback": lambda: jax.make_array_from_callback((8, 128), split, lambda i: values[i]),
            "host_local_array_to_global_array":
                lambda: utils.host_local_array_to_global_array(values, mesh, P("data")),
            "pmap": lambda: mapped(parts), "np.asarray of four": lambda: np.asarray(add(x, w))}
