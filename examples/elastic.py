"""Trains in several processes that go on when one is killed, with the losses of a run in which none was.

`python examples/elastic.py` starts them here. When one is lost, the launcher ends the others and starts as many as are
left, from the last checkpoint (`checkpoints.py`). The batch of a step is the same however many share it.
"""
import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import checkpoints  # beside this file
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp

WIDTHS, STEPS, EVERY, BATCH, RATE = (16, 64, 1), 12, 4, 48, 0.1


def batch(step):        # drawn from the number of the step alone
    x = np.random.default_rng([2026, step]).standard_normal((BATCH, WIDTHS[0]), np.float32)
    return x, np.sin(x.sum(axis=1, keepdims=True))


@jax.jit
def update(params, x, y):
    value, slope = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["up"]) @ p["down"] - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - RATE * g, params, slope), value


def train(folder, victim, when):
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows, whole = jax.NamedSharding(mesh, jax.P("data")), jax.NamedSharding(mesh, jax.P())
    sizes = {"up": WIDTHS[:2], "down": WIDTHS[1:]}
    params = {name: jax.random.normal(jax.random.key(0), size) / size[0] ** 0.5 for name, size in sizes.items()}
    first, params = checkpoints.newest(folder, jax.device_put(params, whole))
    for step in range(first, STEPS):
        if (jax.process_index(), step) == (victim, when):
            os.kill(os.getpid(), signal.SIGKILL)
        mine = [np.split(part, jax.process_count())[jax.process_index()] for part in batch(step)]
        params, value = update(params, *(jax.make_array_from_process_local_data(rows, part) for part in mine))
        loss = float(value)         # every process waits for it: none is steps ahead of the others
        if jax.process_index() == 0:
            print(f"step {step}: loss {loss:.9g}", flush=True)
        if (step + 1) % EVERY == 0:
            checkpoints.save(folder / str(step + 1), params)


def launch(count, kills, folder):       # the exit status, when all that are left ended well or the program failed
    with socket.create_server(("127.0.0.1", 0)) as server:
        shared = [str(count), f"127.0.0.1:{server.getsockname()[1]}", folder, *kills[:1]]
    workers = [subprocess.Popen([sys.executable, __file__, "--worker", str(i), *shared]) for i in range(count)]
    while not any(codes := [worker.poll() for worker in workers]) and None in codes:
        time.sleep(0.05)
    for worker in workers:
        worker.kill()
        worker.wait()
    lost = [i for i, code in enumerate(codes) if code == -signal.SIGKILL]
    if not lost or len(lost) == count:
        return int(any(codes))
    print(f"process {', '.join(map(str, lost))} of {count} is lost; {count - len(lost)} go on", flush=True)
    return launch(count - len(lost), kills[1:], folder)


if sys.argv[1:2] == ["--worker"]:
    index, count, address, folder, *kill = sys.argv[2:]
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(address, int(count), int(index))
    train(Path(folder), *map(int, kill[0].split(":") if kill else (-1, -1)))
else:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--kill", action="append", default=[], metavar="PROCESS:STEP", help="in the first start, the second")
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(launch(*vars(parser.parse_args()).values(), folder))
