#!/usr/bin/env python3
"""Measures hlotrace against JAX on the same jaxlib: processes of the one and of the other, in turn.

    python tools/bench.py [--quick] [--only GROUP ...] [--json FILE]

Each number is the median over the processes.  A ratio is hlotrace / jax: below 1, hlotrace is faster or smaller; the
budget is the ratio the design allows.
"""
import argparse
import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START = "BENCH_PROCESS_STARTED"
MIB = 1024 if sys.platform != "darwin" else 2**20  # of ru_maxrss

# What is measured, by group: name -> (unit, budget).
ROWS = {
    "import": {"import": ("s", 0.35), "import: modules": ("", None), "import: memory": ("MiB", None)},
    "chain": {"chain of 2000 ops, trace + lower, first": ("s", 0.10), "chain of 2000 ops, trace + lower": ("s", 0.10),
              "chain of 2000 ops, trace": ("s", None), "chain of 2000 ops, lower": ("s", None)},
    "gpt": {"GPT Adam step, trace + lower, first": ("s", 0.10), "GPT Adam step, trace + lower": ("s", 0.10),
            "GPT Adam step, trace": ("s", None), "GPT Adam step, lower": ("s", None)},
    "step": {"GPT, process start to first step": ("s", 0.25), "GPT, steady step": ("ms", 1.0),
             "GPT, peak memory": ("MiB", 1.0)},
    "call": {"compiled call, two arrays": ("us", 1.0), "compiled call, dict of 99 arrays": ("us", 1.0)},
    "eager": {"eager x + x": ("us", 0.7), "eager x[i]": ("us", 0.7), "eager where": ("us", 0.7),
              "eager sum": ("us", 0.7)},
    "grad": {"grad outside jit": ("us", None)},
}


# The programs, written once for either package.

BLOCKS, WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 12, 128, 4, 256, 64, 4


def chain(jax):
    jnp = jax.numpy

    def f(x, y):
        for _ in range(500):
            x = jnp.sin(x) * y
            x = jnp.tanh(x) + y
        return x
    return f, [jax.ShapeDtypeStruct((8, 128), jnp.float32)] * 2


def gpt_shapes():
    """The parameters' shapes: embeddings, blocks, last layer norm."""
    norm = {"scale": (WIDTH,), "bias": (WIDTH,)}
    dense = lambda n, m: {"w": (n, m), "b": (m,)}
    block = {"norm1": norm, "qkv": dense(WIDTH, 3 * WIDTH), "out": dense(WIDTH, WIDTH),
             "norm2": norm, "up": dense(WIDTH, 4 * WIDTH), "down": dense(4 * WIDTH, WIDTH)}
    return {"token": (VOCABULARY, WIDTH), "position": (LENGTH, WIDTH), "blocks": [block] * BLOCKS, "norm": norm}


def gpt(jax):
    """A causal transformer's training step with Adam, layers unrolled, and the step's arguments as types."""
    jnp, tree_map = jax.numpy, jax.tree_util.tree_map

    def dense(p, x):
        return x @ p["w"] + p["b"]

    def norm(p, x):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]

    def attention(p, x):
        split = lambda a: a.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS)
        q, k, v = map(split, jnp.split(dense(p["qkv"], x), 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
        causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return dense(p["out"], mixed.reshape(BATCH, LENGTH, WIDTH))

    def loss(params, tokens, targets):
        x = params["token"][tokens] + params["position"]
        for p in params["blocks"]:
            x = x + attention(p, norm(p["norm1"], x))
            x = x + dense(p["down"], jax.nn.gelu(dense(p["up"], norm(p["norm2"], x))))
        scores = jax.nn.log_softmax(norm(params["norm"], x) @ params["token"].T)
        return -jnp.mean(jnp.take_along_axis(scores, targets[..., None], axis=-1))

    def step(params, m, v, t, tokens, targets):
        value, grads = jax.value_and_grad(loss)(params, tokens, targets)
        t = t + 1
        m = tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        params = tree_map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, m, v, t, value

    types = tree_map(lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), gpt_shapes(),
                     is_leaf=lambda x: isinstance(x, tuple))
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    return step, [types, types, types, jax.ShapeDtypeStruct((), jnp.float32), tokens, tokens]


# What a child process does: each measurement gives the numbers of its group's rows, in their order.

def per_call(f, finish, seconds):
    """Microseconds of one call, in the least disturbed of some batches; `finish` waits for the last result."""
    finish(f())
    count, spent = 1, 0.0
    while spent < seconds / 10:
        count *= 2
        start = time.perf_counter()
        for _ in range(count):
            out = f()
        finish(out)
        spent = time.perf_counter() - start
    samples = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            out = f()
        finish(out)
        samples.append((time.perf_counter() - start) / count)
    return min(samples) * 1e6


def measure_import(name, quick):
    modules, memory, start = len(sys.modules), peak_memory(), time.perf_counter()
    importlib.import_module(name + ".numpy")
    return time.perf_counter() - start, len(sys.modules) - modules, peak_memory() - memory


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB


def trace_and_lower(jax, program, quick):
    """First in the process, then the least of repeats with new functions, so that nothing is found in a cache of
    programs.  hlotrace writes the text with locations that it compiles; JAX's `lower` makes a module and no text."""
    times = []
    for _ in range(3 if quick else 6):
        f, args = program(jax)
        start = time.perf_counter()
        traced = jax.jit(f).trace(*args)
        between = time.perf_counter()
        lowered = traced.lower()
        if jax.__name__ == "hlotrace":
            lowered.as_text(debug_info=True)
        times.append((between - start, time.perf_counter() - between))
    trace, lower = min(times[1:], key=sum)
    return sum(times[0]), trace + lower, trace, lower


def measure_step(jax, quick):
    import numpy as np
    rng = np.random.default_rng(0)
    step, types = gpt(jax)

    def value(t):
        if t.dtype == jax.numpy.int32:
            return rng.integers(0, VOCABULARY, t.shape, np.int32)
        return rng.normal(0, 0.02, t.shape).astype(np.float32)
    params, _, _, _, *tokens = jax.tree_util.tree_map(value, types)
    zeros = jax.tree_util.tree_map(np.zeros_like, params)
    step = jax.jit(step)
    *carry, loss = step(params, zeros, zeros, np.float32(0), *tokens)
    loss.block_until_ready()
    first = time.time() - float(os.environ[START])
    times = []
    for _ in range(4 if quick else 12):
        start = time.perf_counter()
        *carry, loss = step(*carry, *tokens)
        loss.block_until_ready()
        times.append(time.perf_counter() - start)
    return first, min(times) * 1e3, peak_memory()


def measure_call(jax, seconds):
    x = jax.numpy.ones((8, 128))
    pair = jax.jit(lambda x, y: x + y)
    tree = {f"w{i}": x + i for i in range(99)}
    many = jax.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()})
    yield per_call(lambda: pair(x, x), jax.block_until_ready, seconds)
    yield per_call(lambda: many(tree), jax.block_until_ready, seconds)


def measure_eager(jax, seconds):
    jnp = jax.numpy
    x = jnp.ones((8, 128))
    mask = x > 0
    index = itertools.cycle(range(8))
    for f in (lambda: x + x, lambda: x[next(index)], lambda: jnp.where(mask, x, x), lambda: jnp.sum(x)):
        yield per_call(f, jax.block_until_ready, seconds)


def measure_grad(jax, seconds):
    jnp = jax.numpy
    x, w = jnp.ones((8, 128)), jnp.ones((128, 16)) / 128
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))
    yield per_call(lambda: gradient(w), jax.block_until_ready, seconds)


def child(name, group, quick):
    """One group's numbers for one package, as JSON on stdout."""
    sys.path.insert(0, str(ROOT))
    if group == "import":
        numbers = measure_import(name, quick)
    else:
        jax = importlib.import_module(name)
        importlib.import_module(name + ".numpy")
        if group in ("chain", "gpt"):
            numbers = trace_and_lower(jax, {"chain": chain, "gpt": gpt}[group], quick)
        elif group == "step":
            numbers = measure_step(jax, quick)
        else:
            measure = {"call": measure_call, "eager": measure_eager, "grad": measure_grad}[group]
            numbers = measure(jax, 0.1 if quick else 0.5)
    print(json.dumps(dict(zip(ROWS[group], numbers, strict=True))))


# The parent: runs the children in turn and compares.

def missing():
    """What keeps the benchmark from running, with the command that mends it, or None."""
    pip = f"{sys.executable} -m pip install"
    for package in ("numpy", "ml_dtypes", "jaxlib"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is missing: {pip} -e '{ROOT}[bench]'"
    if importlib.util.find_spec("jax") is None:
        return f"jax is missing: {pip} jax=={importlib.metadata.version('jaxlib')}"
    return None


def sample(name, group, quick):
    env = os.environ | {START: repr(time.time())}
    command = [sys.executable, __file__, "--child", name, "--only", group] + ["--quick"] * quick
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        print(f"bench: {group} of {name} failed (status {done.returncode}): {last}", file=sys.stderr)
        return dict.fromkeys(ROWS[group])
    return json.loads(done.stdout.splitlines()[-1])


def compare(groups, quick):
    """One row a measurement: name, unit, the medians, their ratio, the budget, and all samples."""
    for group in groups:
        repeats = (1 if quick else 3) if group == "step" else (2 if quick else 5)
        samples = {"hlotrace": [], "jax": []}
        for _ in range(repeats):
            for name, found in samples.items():
                found.append(sample(name, group, quick))
        for row, (unit, budget) in ROWS[group].items():
            values = {name: [s[row] for s in found if s[row] is not None] for name, found in samples.items()}
            ours, theirs = (statistics.median(v) if v else None for v in values.values())
            ratio = ours / theirs if ours is not None and theirs else None
            yield {"name": row, "unit": unit, "hlotrace": ours, "jax": theirs, "ratio": ratio, "budget": budget,
                   "samples": values}


def show(row):
    number = lambda value: "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"
    over = "  over" if None not in (row["ratio"], row["budget"]) and row["ratio"] > row["budget"] else ""
    ratio, budget = ("-" if row[k] is None else f"{row[k]:.2f}" for k in ("ratio", "budget"))
    name = row["name"] + (f" [{row['unit']}]" if row["unit"] else "")
    print(f"{name:48} {number(row['hlotrace']):>10} {number(row['jax']):>10} {ratio:>7} {budget:>7}{over}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repeats: a minute, and noisier")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="GROUP",
                        help=f"of {', '.join(ROWS)}")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    parser.add_argument("--child", choices=("hlotrace", "jax"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.only[0], options.quick)
    if what := missing():
        sys.exit(f"bench: {what}")
    versions = {name: importlib.metadata.version(name) for name in ("jaxlib", "jax")}
    print(f"Python {sys.version.split()[0]}, jaxlib {versions['jaxlib']}, jax {versions['jax']}, "
          f"{os.cpu_count()} cores; GPT: {BLOCKS} blocks of width {WIDTH}, {HEADS} heads, batch {BATCH} of {LENGTH}\n")
    print(f"{'':48} {'hlotrace':>10} {'jax':>10} {'ratio':>7} {'budget':>7}")
    rows = []
    for row in compare(options.only, options.quick):
        show(row)
        rows.append(row)
    if options.json:
        Path(options.json).write_text(json.dumps({"python": sys.version, **versions, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
