"""Trains a network on handwritten digits over a mesh of 8 devices: the batch in 4 parts, each layer in 2.

Written as for the 8 chips of a TPU machine. Where there are none, the CPU stands in as 8 devices.
"""
import re

import numpy as np
from sklearn.datasets import load_digits

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)             # says nothing about TPUs and GPUs
EPOCHS, BATCH, RATE, MOMENTUM = 12, 64, 0.05, 0.9
MESH = jax.make_mesh((4, 2), ("data", "model"), (AxisType.Auto, AxisType.Auto))

# How parameters lie, by name; the first rule that fits holds. The columns of "up" and the rows of "down" are in
# halves, so the layers between them need one sum over "model", and none before it.
RULES = [(r"up.*w", P(None, "model")), (r"up.*b", P("model")), (r"down.*w", P("model", None)), (r".*", P())]


def init(key):
    sizes = {"up": (64, 256), "down": (256, 64), "out": (64, 10)}
    keys = jax.random.split(key, len(sizes))
    return {name: {"w": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "b": jnp.zeros(m)}
            for k, (name, (n, m)) in zip(keys, sizes.items())}


def by_rules(path, leaf):
    spec = next(spec for rule, spec in RULES if re.search(rule, jax.tree_util.keystr(path)))
    return jax.device_put(leaf, NamedSharding(MESH, spec))


def lay(value, *axes):
    """A value inside the program, with what is known about how it lies: the rest follows from that."""
    return jax.lax.with_sharding_constraint(value, NamedSharding(MESH, P(*axes)))


def scores(params, images):
    wide = lay(jax.nn.relu(images @ params["up"]["w"] + params["up"]["b"]), "data", "model")
    narrow = lay(jax.nn.relu(wide @ params["down"]["w"] + params["down"]["b"]), "data", None)
    return narrow @ params["out"]["w"] + params["out"]["b"]


def loss(params, images, labels):
    log_p = jax.nn.log_softmax(scores(params, images))
    return -jnp.mean(jnp.sum(log_p * jax.nn.one_hot(labels, 10), axis=-1))


@jax.jit(donate_argnums=(0, 1))
def step(params, velocity, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, grads)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


@jax.jit
def accuracy(params, images, labels):
    return jnp.mean(jnp.argmax(scores(params, images), axis=-1) == labels)


images, labels = load_digits(return_X_y=True)
images, labels = np.float32(images / 16), np.int32(labels)
key, init_key, split_key = jax.random.split(jax.random.key(0), 3)
test, train = np.split(np.asarray(jax.random.permutation(split_key, len(images))), [360])
params = jax.tree_util.tree_map_with_path(by_rules, init(init_key))
velocity = jax.tree.map(jnp.zeros_like, params)
rows = NamedSharding(MESH, P("data"))
tests = jax.device_put((images[test], labels[test]), rows)
for epoch in range(1, EPOCHS + 1):
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, epoch), train))
    for picked in order[:len(order) // BATCH * BATCH].reshape(-1, BATCH):
        batch = jax.device_put((images[picked], labels[picked]), rows)
        params, velocity, value = step(params, velocity, *batch)
    print(f"epoch {epoch:2d}  loss {value:.4f}  test accuracy {accuracy(params, *tests):.4f}", flush=True)
for title, array in [("a batch", batch[0]), ("up w", params["up"]["w"]), ("down w", params["down"]["w"])]:
    print(f"{title}, {array.shape}, {array.sharding.spec}:")
    jax.debug.visualize_array_sharding(array)
