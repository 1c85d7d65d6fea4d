"""The programs of examples/libraries on hlotrace and on jax: how long to the first step, and are the losses
the same?

Called by tools/libraries.py, which writes what comes of it to docs/libraries.md.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "libraries"
KILLED_AT = 25
PROGRAMS = {    # a program's runs, one after the other, in a folder of their own; `--kill-at` ends one
    "language_model": [["--checkpoints", "saved", "--steps", "41", "--kill-at", str(KILLED_AT)],
                       ["--checkpoints", "saved", "--steps", "41"]],
    "neural_ode": [["--steps", "101"]],
    "regression": [["--samples", "300"]],
}
TOLERANCE = 2e-2        # of a loss after tens of steps: sums are taken in other orders
COLUMNS = ["program", "seconds to the first step", "on jax", "last loss", "on jax"]


def outcome(name, python, on_jax):
    """(seconds to the first step, {step: loss}) of a program; RuntimeError where it fails."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": "" if on_jax else str(ROOT)}
    folder = Path(tempfile.mkdtemp(prefix="hlotrace-program-"))
    said = ""
    try:
        for arguments in PROGRAMS[name]:
            command = [python, *([] if on_jax else ["-m", "hlotrace.as_jax"]), FOLDER / f"{name}.py",
                       *arguments]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode != (-signal.SIGKILL if "--kill-at" in arguments else 0):
                raise RuntimeError(f"{name}.py {' '.join(arguments)}: status "
                                   f"{done.returncode}\n{done.stderr[-2000:]}")
            said += done.stdout
    finally:
        shutil.rmtree(folder)
    if len(PROGRAMS[name]) > 1 and "resumed after step" not in said:
        raise RuntimeError(f"{name}.py did not go on from its checkpoint:\n{said}")
    losses = {int(step): float(loss) for step, loss in re.findall(r"^step (\d+): loss (\S+)$", said, re.M)}
    return float(re.search(r"^seconds to the first step: (\S+)$", said, re.M)[1]), losses


def measure(python, jax=None, rounds=1):
    """The rows of the table, and what is wrong, in words."""
    rows, wrong = [], []
    for name in PROGRAMS:
        print(f"\n== examples/libraries/{name}.py", flush=True)
        try:
            runs = [(outcome(name, python, False), jax and outcome(name, jax, True)) for _ in range(rounds)]
        except RuntimeError as error:
            wrong.append(str(error))
            continue
        (_, losses), theirs = runs[-1]
        last = max(losses)
        rows.append([f"`{name}.py`", f"{min(ours[0] for ours, _ in runs):.2f}",
                     f"{min(other[0] for _, other in runs):.2f}" if jax else "", f"{losses[last]:.4f}",
                     f"{theirs[1][last]:.4f}" if jax else ""])
        if jax and (losses.keys() != theirs[1].keys() or any(
                abs(loss - theirs[1][step]) > TOLERANCE * max(1, abs(loss)) for step, loss in losses.items())):
            wrong.append(f"{name}.py: the losses differ: {losses} on hlotrace, {theirs[1]} on jax")
    return rows, wrong
