"""Trains a network on handwritten digits in several processes, each with its part of every batch.

`python examples/multi_process.py --processes 2` starts them on this machine. On machines of their own, start it on each
with --process NUMBER and --coordinator HOST:PORT, an address of the machine that has process 0.
"""
import argparse
import socket
import subprocess
import sys

import numpy as np
from sklearn.datasets import load_digits

import hlotrace as jax
import hlotrace.numpy as jnp

SIZES, BATCH, RATE, MOMENTUM = (64, 128, 64, 10), 72, 0.05, 0.9


def scores(params, images):
    *hidden, last = params
    for layer in hidden:
        images = jax.nn.relu(images @ layer["w"] + layer["b"])
    return images @ last["w"] + last["b"]


def loss(params, images, labels):       # a mean over the batch: its gradient is the mean over all processes
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores(params, images)) * jax.nn.one_hot(labels, 10), axis=-1))


@jax.jit(donate_argnums=(0, 1))
def step(params, velocity, images, labels):
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, jax.grad(loss)(params, images, labels))
    return jax.tree.map(jnp.add, params, velocity), velocity


def train(devices):
    """(parameters, test accuracy) after a training over these devices, by all processes that hold some of them."""
    mesh = jax.make_mesh((len(devices),), ("data",), devices=devices)
    rows, whole = jax.NamedSharding(mesh, jax.P("data")), jax.NamedSharding(mesh, jax.P())
    owners = sorted({d.process_index for d in devices})
    key, init_key, split_key = jax.random.split(jax.random.key(0), 3)       # the same in every process
    x, y = load_digits(return_X_y=True)
    x, y = np.float32(x / 16), np.int32(y)
    test, rest = np.split(np.asarray(jax.random.permutation(split_key, len(x))), [360])

    def place(picked):      # of the picked images each process reads its own
        mine = np.split(picked, len(owners))[owners.index(jax.process_index())]
        return [jax.make_array_from_process_local_data(rows, values[mine]) for values in (x, y)]
    params = jax.device_put([{"w": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "b": jnp.zeros(m)} for k, n, m in
                             zip(jax.random.split(init_key, len(SIZES) - 1), SIZES[:-1], SIZES[1:])], whole)
    velocity = jax.tree.map(jnp.zeros_like, params)
    for epoch in range(flags.epochs):
        order = np.asarray(jax.random.permutation(jax.random.fold_in(key, epoch), rest))
        for picked in order[:len(order) // BATCH * BATCH].reshape(-1, BATCH):
            params, velocity = step(params, velocity, *place(picked))
    correct = jax.jit(lambda params, x, y: jnp.mean(jnp.argmax(scores(params, x), axis=-1) == y))
    return params, float(correct(params, *place(test)))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--processes", type=int, default=2)
parser.add_argument("--devices", type=int, default=2, help="CPU devices of each process")
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--process", type=int, help="be this one; without it, start all")
parser.add_argument("--coordinator", help="HOST:PORT")
flags = parser.parse_args()
if flags.process is None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = [sys.executable, *sys.argv, "--coordinator", f"127.0.0.1:{server.getsockname()[1]}", "--process"]
    workers = [subprocess.Popen([*start, str(i)]) for i in range(flags.processes)]
    sys.exit(max(worker.wait() for worker in workers))
jax.config.update("jax_num_cpu_devices", flags.devices)
jax.distributed.initialize(flags.coordinator, flags.processes, flags.process)
params, reached = train(jax.devices())
if flags.process == 0:
    print(f"{flags.processes} processes, {jax.device_count()} devices: test accuracy {reached:.4f}")
    alone, reached = train(jax.local_devices()[:1])
    largest = max(np.abs(np.subtract(a, b)).max() for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(alone)))
    print(f"one process, one device: test accuracy {reached:.4f}; parameters differ by {largest:.1e} at most")
