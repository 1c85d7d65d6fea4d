"""One process of tools/bench.py: measures one task for one package and prints what it found as a line of
JSON.

    python tools/bench_child.py PACKAGE TASK [--quick] [--option NAME=VALUE ...]

It imports almost nothing before the package, whose import is one of the things measured.
"""
import os
import sys
import time

START = "BENCH_PROCESS_STARTED"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Report:
    """What the parent reads: rows of (name, unit, value, CPU time or None, budget or None), and digests to
    compare."""

    def __init__(self):
        self.rows, self.checks = [], {}

    def row(self, name, unit, value, cpu=None, budget=None):
        self.rows.append({"name": name, "unit": unit, "value": value, "cpu": cpu, "budget": budget})

    def check(self, name, tree, jax, tolerance=2e-3):
        from bench_programs import digest
        self.checks[name] = {"tolerance": tolerance, "digest": digest(jax.tree_util.tree_leaves(tree))}


class Timer:
    """`with Timer() as t:` leaves seconds in t.wall and, of all threads, in t.cpu."""

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.start[0], time.process_time() - self.start[1]


def peak_memory():
    """MiB.  Linux counts in ru_maxrss what the parent held before the exec; VmHWM is this process's own."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin"
                                                                     else 1024)


def load(package):
    import importlib
    importlib.import_module(package + ".numpy")
    return sys.modules[package]


def per_call(jax, f, seconds):
    """Microseconds of one call in the least disturbed of nine batches, each waiting for its last result."""
    count, samples = 1, []
    jax.block_until_ready(f())
    while True:
        start = time.perf_counter()
        for _ in range(count):
            out = f()
        jax.block_until_ready(out)
        spent = time.perf_counter() - start
        if spent < seconds / 10 and not samples:
            count *= 2
            continue
        samples.append(spent / count)
        if len(samples) == 9:
            return min(samples) * 1e6


# Import and first step.

def measure_import(report, package, quick):
    modules, memory = len(sys.modules), peak_memory()
    with Timer() as t:
        load(package)
    report.row("import", "s", t.wall, t.cpu, 0.35)
    report.row("import: modules", "", len(sys.modules) - modules)
    report.row("import: memory", "MiB", peak_memory() - memory)


def first_step(report, package, label):
    jax = load(package)
    from bench_programs import gpt
    program = gpt(jax)
    step = jax.jit(program.f, donate_argnums=tuple(range(program.carried)))
    out = jax.block_until_ready(step(*program.args))
    report.row(label, "s", time.time() - float(os.environ[START]), time.process_time(),
               0.25 if label.endswith("first step") else None)
    report.check(label, program.checked(out), jax, program.tolerance)


def measure_first(report, package, quick):
    first_step(report, package, "GPT, process start to first step")


def measure_warm(report, package, quick):
    first_step(report, package, "GPT, process start to first step, disk cache warm")


# Programs through the stages.

def stages(jax, program):
    """(lowered, trace timer, lower timer).  hlotrace writes the text with locations that it compiles; JAX's
    `lower` makes a module, and turns it into bytes in `compile`."""
    types = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), program.args)
    with Timer() as trace:
        traced = jax.jit(program.f, donate_argnums=tuple(range(program.carried))).trace(*types)
    with Timer() as lower:
        lowered = traced.lower()
        if jax.__name__ == "hlotrace":
            lowered.as_text(debug_info=True)
    return lowered, trace, lower


def compile_and_check(report, jax, program, steps, title=""):
    """The first time in this process: trace, lower, compile, then `steps` steps whose results are compared.
    """
    title = title or program.title
    lowered, trace, lower = stages(jax, program)
    with Timer() as t:
        compiled = lowered.compile()
    budget = 0.10 if title in ("chain of 2000 ops", "GPT Adam step, 12 blocks") else None
    report.row(f"{title}: trace + lower, first", "s", trace.wall + lower.wall, trace.cpu + lower.cpu, budget)
    report.row(f"{title}: compile", "s", t.wall, t.cpu)
    carry, rest = program.args[:program.carried], jax.device_put(program.args[program.carried:])
    for n in range(steps):
        out = compiled(*carry, *rest)
        carry = out[:program.carried]
        if n == 0:      # before rounding has grown, step by step
            report.check(f"{title}: first step", program.checked(out), jax, program.tolerance)
    report.check(f"{title}: loss of step {steps}", out[program.carried:], jax, program.tolerance)
    return compiled, carry, rest


def measure_program(report, package, quick, maker, repeats=None, steps=True, **sizes):
    """Everything about one program: the stages, first and again; its step; its memory."""
    jax = load(package)
    jax.devices()       # starting the client is part of the first step, not of a stage
    program = maker(jax, **sizes)
    compiled, carry, rest = compile_and_check(report, jax, program, 3)
    title = program.title
    memory = compiled.memory_analysis()
    if steps:
        times, stop = [], time.perf_counter() + (0.5 if quick else 3)
        while len(times) < 4 or time.perf_counter() < stop and len(times) < 1000:
            with Timer() as t:
                out = jax.block_until_ready(compiled(*carry, *rest))
            carry = out[:program.carried]
            times.append((t.wall, t.cpu))
        # 0.8 where blocks repeat, on the CPU; the design says 1 on other devices.
        alike = title.startswith("GPT") and jax.default_backend() == "cpu"
        budget = 0.8 if alike else 1.0 if title.startswith(("GPT", "ResNet", "RNN")) else None
        report.row(f"{title}: steady step", "ms", min(w for w, _ in times) * 1e3,
                   sum(c for _, c in times) / len(times) * 1e3, budget)
        report.row(f"{title}: peak memory", "MiB", peak_memory(), budget=budget and 1.0)
    if memory is not None:
        report.row(f"{title}: temporaries", "MiB", memory.temp_size_in_bytes / 2**20)
    del compiled, carry, rest
    again = []
    for _ in range(repeats or (2 if quick else 5)):
        _, trace, lower = stages(jax, maker(jax, **sizes))
        again.append((trace, lower))
    trace, lower = min(again, key=lambda pair: pair[0].wall + pair[1].wall)
    budget = next((r["budget"] for r in report.rows if r["name"].endswith("first")), None)
    report.row(f"{title}: trace + lower, again", "s", trace.wall + lower.wall, trace.cpu + lower.cpu, budget)
    report.row(f"{title}: trace, again", "s", trace.wall, trace.cpu)
    report.row(f"{title}: lower, again", "s", lower.wall, lower.cpu)


def measure_growth(report, package, quick, blocks):
    from bench_programs import gpt
    measure_program(report, package, quick, gpt, repeats=1, steps=False, blocks=int(blocks))


def measure_sharded_growth(report, package, quick, blocks):
    """A GPT over 8 CPU devices, its batch over 4, its weights over 2."""
    from bench_programs import gpt
    jax = load(package)
    jax.config.update("jax_num_cpu_devices", 8)
    P, tree_map = jax.sharding.PartitionSpec, jax.tree_util.tree_map_with_path
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    columns, rows = {"w": P(None, "model"), "b": P("model")}, {"w": P("model")}
    split = {"qkv": columns, "up": columns, "out": rows, "down": rows}

    def put(path, x):
        *_, name, part = [None, None, *(getattr(key, "key", None) for key in path)]
        spec = P("data") if x.dtype.kind == "i" else split.get(name, {}).get(part, P())
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    program = gpt(jax, blocks=int(blocks), batch=8)
    args, title = tree_map(put, program.args), f"{program.title}, over 8 devices"
    with Timer() as lower:
        lowered = jax.jit(program.f).lower(*args)
    with Timer() as t:
        compiled = lowered.compile()
    report.row(f"{title}: trace + lower, first", "s", lower.wall, lower.cpu)
    report.row(f"{title}: compile", "s", t.wall, t.cpu)
    report.check(f"{title}: first step", program.checked(compiled(*args)), jax, program.tolerance)
    times = []
    for _ in range(4 if quick else 12):
        with Timer() as t:
            jax.block_until_ready(compiled(*args))
        times.append(t.wall)
    report.row(f"{title}: steady step", "ms", min(times) * 1e3)
    report.row(f"{title}: temporaries", "MiB", compiled.memory_analysis().temp_size_in_bytes / 2**20)


def measure_chains(report, package, quick, ops):
    from bench_programs import chain
    jax = load(package)
    jax.devices()
    program = chain(jax, int(ops))
    # "long": the chain of 2000 ops has these rows too, and a name is one row's.
    title = f"long {program.title}"
    compiled, (x,), (y,) = compile_and_check(report, jax, program, 1, title)

    def step():
        nonlocal x
        x, = compiled(x, y)
        return x
    report.row(f"{title}: steady step", "ms", per_call(jax, step, 0.1 if quick else 1) / 1e3)


def measure_outline(report, package, quick):
    from bench_programs import gpt
    measure_program(report, package, quick, gpt, repeats=1)


def measure_bounds(report, package, quick):
    """What an index costs that is looked at: alone, in a loop, and where it reads a large table backwards and
    forwards."""
    jax = load(package)
    jnp, lax = jax.numpy, jax.lax
    table, i = jnp.sin(jnp.arange(64.0 * 1024)).reshape(1024, 64), jnp.arange(4096) * 7 % 1024
    loop = jax.jit(lambda x, i: lax.scan(lambda c, j: (c + x[j] * x[j - 1], c[0]), x[0], i)[0])
    reads = {"read a row": (jax.jit(lambda x, i: x[i]), i[3]),
             "read 4096 rows": (jax.jit(lambda x, i: x[i].sum(0)), i),
             "write 4096 rows": (jax.jit(lambda x, i: x.at[i].add(1.0)), i),
             "4096 steps of a loop": (loop, i),
             "gradient of reading 4096 rows": (jax.jit(jax.grad(lambda x, i: (x[i] ** 2).sum())), i),
             "eager x[i]": (lambda x, i: x[i], i[3])}
    for name, (f, index) in reads.items():
        with Timer() as first:
            report.check(f"{name}, bounds", f(table, index), jax)
        report.row(f"{name}: first call", "s", first.wall, first.cpu)
        report.row(f"{name}: call", "us", per_call(jax, lambda f=f, index=index: f(table, index),
                                                   0.1 if quick else 0.5))


# Calls.

def measure_call(report, package, quick):
    import functools

    import numpy as np
    jax = load(package)
    x, host = jax.numpy.ones((8, 128)), np.ones((8, 128), np.float32)
    leaves = lambda: {f"w{i}": x + i for i in range(99)}
    add = jax.jit(lambda x, y: x + y)
    keyword = jax.jit(lambda x, *, y: x + y)
    static = jax.jit(lambda x, n, *, mode: x * n if mode == "times" else x + n, static_argnums=1,
                     static_argnames="mode")
    many = jax.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()})
    update = jax.jit(lambda state, x: {name: leaf + x for name, leaf in state.items()}, donate_argnums=0)
    tree, state = leaves(), leaves()

    def donated():
        nonlocal state
        state = update(state, x)
        return state["w0"]
    calls = {"two arrays": (lambda: add(x, x), 1.0), "dict of 99 arrays": (lambda: many(tree), 1.0),
             "keyword": (lambda: keyword(x, y=x), 1.0),
             "two static": (lambda: static(x, 3, mode="times"), 1.0),
             "NumPy array": (lambda: add(host, x), 1.0), "Python scalar": (lambda: add(x, 2.0), 1.0),
             "donated dict of 99 arrays": (donated, None)}
    for name, (f, budget) in calls.items():
        report.check(f"compiled call, {name}", f(), jax)
        report.row(f"compiled call, {name}", "us", per_call(jax, f, 0.1 if quick else 0.5), budget=budget)
    bound = functools.partial(add, x)
    back = lambda: np.asarray(bound(x))
    report.row("compiled call, back to NumPy", "us", per_call(jax, back, 0.1 if quick else 0.5), budget=1.0)


def measure_sharded(report, package, quick):
    """Each step is waited for: jaxlib's CPU client before 0.11 starves where many wait in collectives."""
    from bench_programs import mlp
    jax = load(package)
    jax.config.update("jax_num_cpu_devices", 8)
    import numpy as np
    P, named = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    program = mlp(jax, sizes=(784, 512, 512, 16))
    params, *batch = program.args
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    line = jax.sharding.Mesh(np.array(jax.devices()), ("data",))

    def mean_of_parts(params, *batch):      # each device's gradient is that of its part of the batch
        new, value = program.f(params, *batch)
        return jax.tree_util.tree_map(lambda p: jax.lax.pmean(p, "data"), (new, value))
    by_part = jax.shard_map(mean_of_parts, mesh=line, in_specs=(P(), P("data"), P("data")), out_specs=P(),
                            check_vma=False)
    columns, rows = {"w": P(None, "model"), "b": P("model")}, {"w": P("model"), "b": P()}
    laid = [{k: jax.device_put(v, named(mesh, spec[k])) for k, v in p.items()}
            for p, spec in zip(params, (columns, rows, {"w": P(), "b": P()}))]
    cases = {"by shardings": (program.f, laid, [jax.device_put(b, named(mesh, P("data"))) for b in batch]),
             "by shard_map": (by_part, jax.device_put(params, named(line, P())),
                              [jax.device_put(b, named(line, P("data"))) for b in batch])}
    for name, (step, params, batch) in cases.items():
        title, step = f"MLP over 8 devices {name}", jax.jit(step)
        with Timer() as first:
            params, value = jax.block_until_ready(step(params, *batch))
        report.check(title, (params, value), jax)
        report.row(f"{title}: first step", "s", first.wall, first.cpu)
        times, stop = [], time.perf_counter() + (0.5 if quick else 3)
        while len(times) < 4 or time.perf_counter() < stop:
            with Timer() as t:
                params, value = jax.block_until_ready(step(params, *batch))
            times.append(t.wall)
        report.row(f"{title}: steady step", "ms", min(times) * 1e3)
    x = cases["by shardings"][2][0]
    report.row("eager x + x over 8 devices", "us", per_call(jax, lambda: x + x, 0.1 if quick else 0.5))


def measure_eager(report, package, quick):
    import itertools
    jax = load(package)
    jnp = jax.numpy
    x = jnp.arange(1024, dtype=jnp.float32).reshape(8, 128) - 500
    mask = x > 0
    index = itertools.cycle(range(8))
    y, square = 2 * x, x[:, :8]
    for name, f in {"x + x": lambda: x + x, "x[i]": lambda: x[next(index)],
                    "where": lambda: jnp.where(mask, x, y), "sum": lambda: jnp.sum(x),
                    "matmul": lambda: square @ square}.items():
        report.check(f"eager {name}", f(), jax)
        report.row(f"eager {name}", "us", per_call(jax, f, 0.1 if quick else 0.5), budget=0.8)


def measure_functions(report, package, quick, family):
    """What compiled functions take by themselves; the first calls, which trace and compile, are one row for
    all."""
    jax = load(package)
    import importlib

    import bench_functions
    for part in ("scipy.fft", "scipy.linalg", "scipy.special"):
        importlib.import_module(f"{package}.{part}")
    jax.devices()
    cases = {name: (jax.jit(f), jax.device_put(args)) for name,
             (f, args) in getattr(bench_functions, family)(jax).items()}
    with Timer() as t:
        for f, args in cases.values():
            jax.block_until_ready(f(*args))
    report.row(f"{family}: all first calls", "s", t.wall, t.cpu)
    for name, (f, args) in cases.items():
        seconds = 0.1 if quick else 0.3
        report.row(f"{family}: {name}", "us", per_call(jax, lambda f=f, args=args: f(*args), seconds),
                   budget=1.1)


def measure_everyday(report, package, quick, family):
    """Everyday calls: each, and in one row the first ones of all of them in a new process."""
    import warnings

    import bench_everyday
    jax = load(package)
    warnings.simplefilter("ignore")
    if family == "devices":
        jax.config.update("jax_num_cpu_devices", 4)
    jax.devices()
    cases = getattr(bench_everyday, family)(jax)
    with Timer() as t:
        for f in cases.values():
            jax.block_until_ready(f())
    report.row(f"everyday {family}: all first calls", "s", t.wall, t.cpu, 0.7)
    for name, f in cases.items():
        report.row(f"everyday: {name}", "us", per_call(jax, f, 0.05 if quick else 0.2), budget=1.0)


def measure_memory(report, package, quick, family):
    """Temporaries of compiled programs, as `memory_analysis` has them."""
    import bench_memory
    jax = load(package)
    if family == "devices":
        jax.config.update("jax_num_cpu_devices", 8)
    for name, (f, args) in getattr(bench_memory, family)(jax).items():
        with Timer() as t:
            compiled = jax.jit(f).lower(*args).compile()
        report.row(f"temporaries: {name}", "KiB", compiled.memory_analysis().temp_size_in_bytes / 1024, t.cpu, 1.02)


def measure_grad(report, package, quick):
    jax = load(package)
    jnp = jax.numpy
    x = jnp.sin(jnp.arange(1024, dtype=jnp.float32)).reshape(8, 128)
    w = jnp.cos(jnp.arange(2048, dtype=jnp.float32)).reshape(128, 16) / 12
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))
    report.check("grad outside jit", gradient(w), jax)
    report.row("grad outside jit", "us", per_call(jax, lambda: gradient(w), 0.1 if quick else 0.5))


def main(package, task, *flags):
    sys.path[0] = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, ROOT)
    report, quick = Report(), "--quick" in flags
    options = [flag.partition("=")[::2] for flag in flags if "=" in flag]
    found = {}
    try:
        if options:
            config = load(package).config
            for name, value in options:
                if not hasattr(config, name):
                    raise LookupError(f"{package} has no option {name}")
                config.update(name, value)
        kind, _, argument = task.partition(":")
        measure = globals().get(f"measure_{kind}")
        if measure is None:
            from bench_programs import PROGRAMS
            measure_program(report, package, quick, PROGRAMS[kind])
        else:
            measure(report, package, quick, *[argument] * bool(argument))
        if kind != "import":
            found["platform"] = load(package).default_backend()
    except LookupError as error:
        if error.args and "has no option" in str(error):
            found["skipped"] = str(error.args[0])
        else:
            raise
    import json
    print(json.dumps({"rows": report.rows, "checks": report.checks, **found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
