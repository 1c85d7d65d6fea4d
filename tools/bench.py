#!/usr/bin/env python3
"""Measures hlotrace against JAX on the same jaxlib: processes of the one and of the other, in turn.

    python tools/bench.py [--quick | --full] [--only GROUP ...] [--option NAME=VALUE ...] [--json FILE] [--picture FILE]

Each number is the median over processes of what was least in each.  A ratio is hlotrace / jax: below 1, hlotrace is
faster or smaller; beside it are its least and greatest over the pairs of processes, the ratio of CPU times, and the
budget, which is the ratio the design allows.  What both compute is compared first: a difference is reported, and the
exit status is 1.  Every cache on disk is off, except where a row says that it is warm.

The programs are in bench_programs.py, bench_functions.py, bench_everyday.py and bench_memory.py, what one process
does in bench_child.py.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench_child import ROOT, START

HERE = Path(__file__).resolve().parent
QUICK_SECONDS = 115
BLOCKS = (6, 12, 24, 48, 96)


class Group(NamedTuple):
    about: str
    tasks: tuple            # of bench_child.py, in their order
    repeats: int            # pairs of processes
    quick: int = 1          # pairs with --quick; 0: left out
    unasked: bool = True    # measured where neither --only nor --full is given


GROUPS = {
    "import": Group("import: time, modules, memory", ("import",), 7, 2),
    "call": Group("calls of compiled functions", ("call",), 5),
    "eager": Group("operations outside jit", ("eager",), 5),
    "everyday": Group("everyday calls: operations, NumPy arguments, transformations, several devices; the first ones",
                      tuple(f"everyday:{name}" for name in "arrays host calls transformations devices".split()), 3, 0),
    "memory": Group("temporaries of compiled programs",
                    tuple(f"memory:{name}" for name in "transformers loops arrays devices".split()), 1, 0),
    "grad": Group("grad outside jit", ("grad",), 5),
    "chain": Group("2000 elementwise operations: stages, step", ("chain",), 3),
    "mlp": Group("MLP SGD step: stages, step", ("mlp",), 3),
    "hessian": Group("a Hessian: stages, step", ("hessian",), 3),
    "rnn": Group("gradient of a scan: stages, step, memory", ("rnn",), 3),
    "gpt": Group("Adam step of a GPT of 12 blocks: stages, step, memory", ("gpt",), 3),
    "first": Group("GPT, process start to first step", ("first",), 3),
    "resnet": Group("ResNet-18 step: stages, step, memory", ("resnet",), 3),
    "sharded": Group("an MLP step over 8 CPU devices, by shardings and by shard_map", ("sharded",), 3),
    "warm": Group("the same first step in a second process, disk cache warm", ("warm",), 3),
    "functions": Group("functions by themselves, compiled: linear algebra, FFT, sorting, random, special",
                       tuple(f"functions:{name}" for name in "linalg fft sorting random special".split()), 3,
                       0),
    "chains": Group("chains of 1000, 3000, 10000 operations: compile, step",
                    ("chains:1000", "chains:3000", "chains:10000"), 1, 0),
    "outline": Group("hlotrace with hlotrace_outline on and off", ("outline",), 3, 0),
    "bounds": Group("hlotrace with hlotrace_check_bounds on and off", ("bounds",), 3, 0),
    "growth": Group(f"stages of a GPT of {', '.join(map(str, BLOCKS))} blocks",
                    tuple(f"growth:{n}" for n in BLOCKS), 1, 0, unasked=False),
    "sharded_growth": Group("a GPT of 4 and 24 blocks over 8 CPU devices: compile, step, temporaries",
                            ("sharded_growth:4", "sharded_growth:24"), 1, 0, unasked=False),
}


# tasks that compare an option's values
ON_AND_OFF = {"outline": "hlotrace_outline", "bounds": "hlotrace_check_bounds"}


class Side(NamedTuple):
    """One of the two things compared: its name in the table, the package, its options."""
    name: str
    package: str
    options: tuple = ()


# Running a child.

def environment(cache=None):
    """What the children of both packages get: caches on disk off, or in the folder `cache` with everything
    kept."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_COMPILATION_CACHE",
                                                                    "JAX_PERSISTENT_CACHE"))}
    # pip compiled jax to bytecode; a checkout is compiled on first import
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env |= {"JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if cache is not None:
        env |= {"JAX_ENABLE_COMPILATION_CACHE": "true", "JAX_COMPILATION_CACHE_DIR": cache,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    return env


def run_child(side, task, quick=False, cache=None, timeout=900):
    """What the child reports, or {"failed": why}."""
    env = environment(cache) | {START: repr(time.time())}
    command = [sys.executable, str(HERE / "bench_child.py"), side.package, task, *["--quick"] * quick,
               *side.options]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {timeout:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no words"])[-1]
        return {"failed": f"failed (status {done.returncode}): {last}"}
    return json.loads(done.stdout.splitlines()[-1])


class Runner:
    """Runs tasks, a pair of processes at a time, and keeps rows, notes and what is wrong."""

    def __init__(self, options, run=run_child):
        self.options, self.run = options, run
        self.rows, self.notes, self.wrong, self.platforms = [], [], [], set()
        self.deadline = time.monotonic() + QUICK_SECONDS if options.quick else None
        # (side, kind of task) -> [(size, compile seconds)]: what the next size may take
        self.compiled = {}

    def note(self, text):
        self.notes.append(text)
        print(f"  note: {text}", flush=True)

    def sides(self, task):
        options = tuple(self.options.option)
        if task in ON_AND_OFF:
            return [Side(f"{task} {value}", "hlotrace", (*options, f"{ON_AND_OFF[task]}={value}"))
                    for value in ("on", "off")]
        return [Side("hlotrace", "hlotrace", options), Side("jax", "jax")]

    def left_out(self, side, task):
        """Why this side does not run this task, or None."""
        if task == "chains:10000" and side.package == "jax" and not self.options.full:
            return "only with --full"
        expected = expected_seconds(self.compiled.get((side.name, task.partition(":")[0]), ()), task)
        if expected is not None and expected > self.options.limit:
            return f"its compile would take about {expected:.0f} s, and --limit is {self.options.limit:.0f}"
        return None

    def task(self, group, task, repeats):
        """Measure one task; add and print its rows."""
        reports = {side: [] for side in self.sides(task)}
        for side in list(reports):
            if why := self.left_out(side, task):
                self.note(f"{task}: {side.name} not run: {why}")
                del reports[side]
        if not reports:
            return None
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            caches = dict.fromkeys(reports)
            if task == "warm":
                caches = {side: os.path.join(scratch, side.name) for side in reports}
                for side, cache in caches.items():
                    os.mkdir(cache)
                    self.child(side, task, cache)
                    if not os.listdir(cache):
                        self.note(f"{side.name} kept nothing on disk: its process here is as cold as its "
                                  "first")
            for _ in range(repeats):
                for side in list(reports):
                    report = self.child(side, task, caches[side])
                    if "skipped" in report and task not in ON_AND_OFF:
                        sys.exit(f"bench: {report['skipped']}")
                    if "skipped" in report:
                        return self.note(f"{task} left out: {report['skipped']}")
                    if "failed" in report:
                        text = f"{task}: {side.name} {report['failed']}"
                        self.note(text)
                        if "no time is left" in text:
                            return None
                        self.wrong.append(text)
                        del reports[side]
                    else:
                        reports[side].append(report)
        names = [side.name for side in self.sides(task)]
        found = {side.name: reports[side] for side in reports}
        self.wrong += (wrong := disagreements(found))
        for text in wrong:
            self.note(f"WRONG: {text}")
        for row in merge(group, names, found):
            self.rows.append(row)
            print(line(row), flush=True)
            for name, seconds in row["median"].items():
                if ":" in task and row["name"].endswith("compile"):
                    kind, _, size = task.partition(":")
                    self.compiled.setdefault((name, kind), []).append((int(size), seconds))
        return None

    def child(self, side, task, cache):
        timeout = 3 * self.options.limit + 600
        if self.deadline is not None:
            timeout = self.deadline - time.monotonic()
            if timeout < 1:
                return {"failed": "not run: no time is left of the two minutes of --quick"}
        report = self.run(side, task, self.options.quick, cache, timeout)
        if self.deadline is not None and report.get("failed", "").startswith("stopped"):
            return {"failed": "stopped: no time is left of the two minutes of --quick"}
        if "platform" in report:
            self.platforms.add(report["platform"])
        return report


def expected_seconds(known, task):
    """What compiling the next size will take, by the last two sizes: at least in proportion.  None: not
    known."""
    if not known:
        return None
    size = int(task.partition(":")[2])
    (n, seconds), power = known[-1], 1.0
    if len(known) > 1:
        before, less = known[-2]
        ratio = seconds / less
        power = max(1.0, math.log(ratio) / math.log(n / before)) if ratio > 0 else 1.0
    return seconds * (size / n) ** power


# What the reports say.

def disagreements(found):
    """Texts about what the first reports of two sides computed differently; `found` is {side: [report, ...]}.
    """
    from bench_programs import disagreement
    (a, ours), (b, theirs) = [*found.items(), *[(None, [])] * 2][:2]
    if not ours or not theirs:
        return []
    ours, theirs = ours[0]["checks"], theirs[0]["checks"]
    texts = [f"{name}: only one of {a} and {b} computed it" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in ours.keys() & theirs.keys():
        if (what := disagreement(ours[name]["digest"], theirs[name]["digest"],
                                 ours[name]["tolerance"])) is not None:
            texts.append(f"{name}: {a} and {b} disagree: {what}")
    return texts


def merge(group, names, found):
    """One row a measurement, from the reports of each side."""
    rows = {}
    for side, reports in found.items():
        for report in reports:
            for r in report["rows"]:
                row = rows.setdefault(r["name"], {"group": group, "name": r["name"], "unit": r["unit"],
                                                  "sides": names, "budget": r["budget"], "samples": {},
                                                  "cpu_samples": {}})
                row["samples"].setdefault(side, []).append(r["value"])
                if r["cpu"] is not None:
                    row["cpu_samples"].setdefault(side, []).append(r["cpu"])
    for row in rows.values():
        for key, samples in (("median", "samples"), ("cpu_median", "cpu_samples")):
            row[key] = {side: statistics.median(values) for side, values in row[samples].items()}
        row["ratio"], row["cpu_ratio"] = (ratio(*(row[key].get(name) for name in names))
                                          for key in ("median", "cpu_median"))
        pairs = [ratio(a, b) for a, b in zip(*(row["samples"].get(name, ()) for name in names))]
        pairs = [p for p in pairs if p is not None]
        row["ratio_range"] = [min(pairs), max(pairs)] if len(pairs) > 1 else None
    return list(rows.values())


def ratio(ours, theirs):
    return ours / theirs if ours is not None and theirs else None


WIDTH = 56


def heading(sides):
    return f"{'':{WIDTH}} {sides[0]:>11} {sides[1]:>11} {'ratio':>7} {'range':>13} {'CPU':>6} {'budget':>7}"


def line(row):
    """A row of the table."""
    number = lambda v: "-" if v is None else f"{v:.0f}" if v >= 1000 or v == int(v) else f"{v:.4g}"
    two = lambda v: "-" if v is None else f"{v:.3f}" if v < 0.1 else f"{v:.2f}"
    ours, theirs = (number(row["median"].get(side)) for side in row["sides"])
    spread = "-" if row["ratio_range"] is None else "..".join(map(two, row["ratio_range"]))
    over = "  over" if None not in (row["ratio"], row["budget"]) and row["ratio"] > row["budget"] else ""
    name = row["name"] + (f" [{row['unit']}]" if row["unit"] else "")
    return (f"{name:{WIDTH}} {ours:>11} {theirs:>11} {two(row['ratio']):>7} {spread:>13} "
            f"{two(row['cpu_ratio']):>6} {two(row['budget']):>7}{over}")


def draw(result, path):
    """The ratios as dots on a logarithmic axis, the budgets as bars.  Returns what keeps it from being drawn,
    or None."""
    rows = [row for row in result["rows"] if row["ratio"]]
    if not rows:
        return "there is no ratio to draw"
    try:
        import matplotlib
    except ImportError:
        return f"matplotlib is missing: {sys.executable} -m pip install matplotlib"
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(10, 1.4 + 0.22 * len(rows)), layout="constrained")
    at = range(len(rows))
    axes.axvline(1, color="0.4", linewidth=1)
    for y, row in zip(at, rows):
        color = "tab:red" if row["budget"] is not None and row["ratio"] > row["budget"] else "tab:blue"
        axes.plot([1, row["ratio"]], [y, y], color=color, alpha=0.3, linewidth=3, solid_capstyle="butt")
        if row["ratio_range"]:
            axes.plot(row["ratio_range"], [y, y], color=color, linewidth=1)
        axes.plot(row["ratio"], y, "o", color=color, markersize=5)
        if row["budget"] is not None:
            axes.plot(row["budget"], y, "|", color="black", markersize=11, markeredgewidth=2)
    axes.set_xscale("log")
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
             if min(r["ratio"] for r in rows) / 1.5 <= t <= max(2, max(r["ratio"] for r in rows) * 1.5)]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(at, [row["name"] + (f"  ({' / '.join(row['sides'])})" if row["sides"][1] != "jax" else "")
                         for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("hlotrace / jax: left of 1, hlotrace is faster or smaller")
    axes.set_title(f"{result['about']}\ndot: ratio, thin line: over pairs of processes, black mark: budget, "
                   "red: over it", fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return None


# The command.

def missing():
    """What keeps the benchmark from running, with the command that mends it, or None."""
    pip = f"{sys.executable} -m pip install"
    for package in ("numpy", "ml_dtypes", "jaxlib"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is missing: {pip} -e '{ROOT}[bench]'"
    if importlib.util.find_spec("jax") is None:
        return f"jax is missing: {pip} jax=={importlib.metadata.version('jaxlib')}"
    return None


def commit():
    """The checkout's commit, with + where files differ from it; None outside git."""
    try:
        return subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty=+"], capture_output=True,
                              text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def load_average():
    return [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None


def arguments(argv=None):
    groups = "\n".join(f"  {name:9} {group.about}" + ("" if group.unasked else " (with --full or when named)")
                       for name, group in GROUPS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__}\nGroups:\n{groups}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true",
                      help="one pair of processes for most tasks; ends in two minutes")
    size.add_argument("--full", action="store_true",
                      help="the groups and sizes too for which jax needs minutes")
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help="these groups (below)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="hlotrace.config.update(NAME, VALUE) in hlotrace's processes; may be repeated")
    parser.add_argument("--repeats", type=int, metavar="N", help="pairs of processes for each task")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS",
                        help="growth and chains: sizes whose compile would take longer are left out "
                        "(%(default)s)")
    parser.add_argument("--json", metavar="FILE", default=os.path.join(ROOT, "out", "bench.json"),
                        help="where the numbers go (%(default)s)")
    parser.add_argument("--picture", metavar="FILE",
                        help="where the ratios go (beside the JSON file, as .png)")
    parser.add_argument("--redraw", action="store_true",
                        help="measure nothing: table and picture of the JSON file")
    options = parser.parse_args(argv)
    for option in options.option:
        if "=" not in option:
            parser.error(f"--option {option}: say NAME=VALUE")
    return options


def chosen(options):
    """(group's name, group, pairs) of what these options ask for."""
    for name, group in GROUPS.items():
        named = options.only and name in options.only
        if not named and (options.only or not (group.unasked or options.full)):
            continue
        pairs = group.quick if options.quick else group.repeats
        pairs = max(pairs, 1) if named else pairs
        if pairs:
            yield name, group, options.repeats or pairs


def show(result):
    print(f"{result['about']}\n")
    print(heading(("hlotrace", "jax")))
    for row in result["rows"]:
        print(line(row))
    for note in result["notes"]:
        print(f"  note: {note}")


def save_picture(result, options):
    path = options.picture or str(Path(options.json).with_suffix(".png"))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    why = draw(result, path)
    print(f"no picture: {why}" if why else f"picture: {path}")


def main(argv=None):
    options = arguments(argv)
    if options.redraw:
        result = json.loads(Path(options.json).read_text())
        show(result)
        return save_picture(result, options)
    if what := missing():
        sys.exit(f"bench: {what}")
    start, load = time.monotonic(), load_average()
    versions = {name: importlib.metadata.version(name) for name in ("jaxlib", "jax")}
    about = (f"Python {sys.version.split()[0]}, jaxlib {versions['jaxlib']}, jax {versions['jax']}, "
             f"{os.cpu_count()} cores, hlotrace {commit() or ''}" + "".join(f", {o}" for o in options.option))
    print(f"{about}\n\n{heading(('hlotrace', 'jax'))}")
    runner = Runner(options)
    # the first import of all writes byte code, and reads files from the disk
    for side in runner.sides("import"):
        runner.child(side, "import", None)
    for name, group, pairs in chosen(options):
        if name in ON_AND_OFF:
            print(heading([side.name for side in runner.sides(name)]))
        elif name == "growth" and not ON_AND_OFF.keys().isdisjoint([row["group"] for row in runner.rows]):
            print(heading(("hlotrace", "jax")))
        for task in group.tasks:
            runner.task(name, task, pairs)
    result = {"about": about, "python": sys.version, **versions, "commit": commit(),
              "options": options.option, "platforms": sorted(runner.platforms), "cores": os.cpu_count(),
              "load_before": load, "load_after": load_average(),
              "seconds": round(time.monotonic() - start, 1),
              "mode": "quick" if options.quick else "full" if options.full else "normal",
              "wrong": runner.wrong, "notes": runner.notes, "rows": runner.rows}
    Path(options.json).parent.mkdir(parents=True, exist_ok=True)
    Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    print(f"\n{result['seconds']:.0f} s, load {load and load[0]} before and {(load_average() or [None])[0]} "
          "after")
    print(f"numbers: {options.json}")
    save_picture(result, options)
    if runner.wrong:
        sys.exit("bench: " + "; ".join(runner.wrong))
    return None


if __name__ == "__main__":
    main()
