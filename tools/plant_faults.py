"""Plant faults in a copy of the library, one at a time, and see whether the nearest tests catch them.

    python tools/plant_faults.py [--only=core,numpy/fft.py,argmax-tie] [--list] [--limit=240]

A row of FAULTS (tools/faults.py) replaces a text that occurs once in a file of the library.  The tree is
copied to a temporary folder, the fault is planted there, and the nearest tests run: the file of tests that
mirrors the changed file (tests/core/test_jaxpr.py for hlotrace/core/jaxpr.py), those that the row names instead
or besides, until one fails.  That test is run again without the fault, and must pass.  What is printed is a
table: each fault, the test that caught it or SURVIVED, seconds; and how many of each folder were caught.  The
exit status is 1 where one survived.

Programs that tests compiled before are read from a copy of .pytest_cache/programs: what a fault compiles stays
in the copy.  tests/tools/test_plant_faults.py checks that all rows still apply.  To be run by hand: half an hour
for all.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from absl import app, flags

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.faults import FAULTS, Fault  # noqa: E402 - after the path

FLAGS = flags.FLAGS
flags.DEFINE_list("only", [], "names of faults, folders or files; all by default")
flags.DEFINE_bool("list", False, "list the faults and the tests nearest to them, and run nothing")
flags.DEFINE_integer("limit", 240, "seconds after which the tests of a fault are stopped: it counts as caught")

COPIED = ("hlotrace", "tests", "tools", "examples", "docs", "pyproject.toml", "README.md")


def chosen(only: list[str]) -> list[Fault]:
    """The faults of these names, and those in these folders and files; all for none.

    Raises:
        ValueError: for one that there is not.
    """
    def has(fault: Fault, text: str) -> bool:
        return fault.name == text or fault.file.startswith(text.removeprefix("hlotrace/"))
    for text in only:
        if not any(has(fault, text) for fault in FAULTS):
            raise ValueError(f"no fault is called {text!r}, or is in such a file: --list shows all")
    return [fault for fault in FAULTS if not only or any(has(fault, text) for text in only)]


class Copy:
    """A copy of the tree in which tests run."""

    def __init__(self, where: str) -> None:
        self.root = Path(where) / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, self.root / name)
        self.programs = Path(where) / "programs"
        compiled = ROOT / ".pytest_cache" / "programs"
        if compiled.is_dir():
            shutil.copytree(compiled, self.programs)

    def write(self, path: str, text: str) -> None:
        """Write a file of the copy, and forget what Python has compiled of it: it goes by second and size."""
        file = self.root / path
        file.write_text(text, "utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()

    def failing(self, tests: list[str], choose: str = "", limit: float | None = None) -> str | None:
        """The first test that fails, or how the run ended otherwise; None where all pass.

        Raises:
            RuntimeError: where no test was run.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
        command += ["-k", choose] if choose else []
        own = {"PYTHONPATH": str(self.root), "HLOTRACE_TEST_PROGRAMS": str(self.programs)}
        running = subprocess.Popen(command, cwd=self.root, env=os.environ | own, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            said, _ = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)      # with the processes that tests started
            running.communicate()
            return f"(not done in {limit} s)"
        if running.returncode in (4, 5):
            raise RuntimeError(f"no tests were run by {' '.join(command)}:\n{said}")
        if running.returncode == 0:
            return None
        found = re.search(r"^(?:FAILED|ERROR) (\S+?::.*?|\S+)(?: - .*)?$", said, re.MULTILINE)
        return found[1] if found else f"(the run ended with status {running.returncode})"


def caught_by(copy: Copy, fault: Fault, limit: float) -> str | None:
    """The test that catches a fault, or None.

    Raises:
        RuntimeError: where that test, or without one the run, fails without the fault too.
    """
    sound = (ROOT / fault.path).read_text("utf-8")
    copy.write(fault.path, fault.planted(sound))
    try:
        found = copy.failing(fault.nearest(), fault.tests, limit)
    finally:
        copy.write(fault.path, sound)
    if found:
        again = copy.failing([found]) if "::" in found else copy.failing(fault.nearest(), fault.tests)
        if again:
            raise RuntimeError(f"{fault.name}: {again} fails without the fault too")
    return found


def main(argv: list[str]) -> int:
    if argv[1:]:
        raise app.UsageError(f"faults are chosen by --only={','.join(argv[1:])}")
    faults = chosen(FLAGS.only)
    if FLAGS.list:
        for fault in faults:
            print(f"{fault.name:<24}{fault.file}: {fault.breaks}\n{'':<24}{', '.join(fault.nearest())}"
                  + (f" -k {fault.tests!r}" if fault.tests else ""))
        return 0
    caught, wrong = Counter(), 0
    with tempfile.TemporaryDirectory(prefix="hlotrace-faults-") as where:
        copy = Copy(where)
        for fault in faults:
            start = time.perf_counter()
            try:
                found = caught_by(copy, fault, FLAGS.limit)
            except (RuntimeError, ValueError) as error:
                found, wrong = f"ERROR {error}", wrong + 1
            else:
                caught[fault.folder] += found is not None
            seconds = time.perf_counter() - start
            outcome = found or f"SURVIVED: {fault.breaks}"
            print(f"{fault.folder:<12}{fault.name:<24}{seconds:>5.0f} s  {outcome}", flush=True)
    for folder, number in Counter(fault.folder for fault in faults).items():
        print(f"{folder:<12}{caught[folder]} of {number} caught")
    print(f"{'all':<12}{caught.total()} of {len(faults)} caught")
    return int(caught.total() < len(faults) or wrong > 0)


if __name__ == "__main__":
    app.run(main)
