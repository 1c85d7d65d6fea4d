"""Run the test suites of libraries that stand on JAX, unmodified, on hlotrace, and write docs/libraries.md.

    python tools/libraries.py [--only=optax,chex,programs] [--suites=FOLDER] [--jax=PYTHON [--rounds=3]
    --jobs=1] [--whole]

Which libraries, where their tests are and which of these do not apply is in tests/libraries/table.toml, the versions in
tests/libraries/requirements.txt.  They are installed without jax, into an environment of its own; tests that wheels lack
come from source archives.  Libraries that ship their tests in neither are used by programs of ours, and, with --suites, by
their own tests too: FOLDER/optax is then a checkout of optax.  With --jax, a Python with jax and the same libraries runs
the same tests, in turn with hlotrace, and the page has both times.  "programs" are those of examples/libraries
(library_programs.py).  With --whole, all tests of a suite run where the table has a sample of them.
"""
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import library_programs
from absl import app, flags

from hlotrace.runtime.status_line import going_on

FLAGS = flags.FLAGS
flags.DEFINE_list("only", [], "libraries, or programs; all by default")
flags.DEFINE_string("suites", None, "a folder of checkouts of libraries whose tests are not on PyPI")
flags.DEFINE_string("jax", None, "a Python that has jax and the libraries")
flags.DEFINE_integer("rounds", 1, "runs of each side; the least time of each counts")
flags.DEFINE_bool("whole", False, "all tests of each suite, not only the sample of them that the table has")
flags.DEFINE_integer("jobs", 2, "processes that share a suite; 1 to compare times")

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests" / "libraries"
TABLE = tomllib.loads((HERE / "table.toml").read_text())
REQUIREMENTS = (HERE / "requirements.txt").read_text()
VERSIONS = dict(re.findall(r"^([\w-]+)==(\S+)$", REQUIREMENTS, re.M))
HOME = ROOT / ".venv-libraries"
PAGE = ROOT / "docs" / "libraries.md"
HEADER = """\
<!-- Written by tools/libraries.py (make libraries): not to be edited. -->
# Libraries on hlotrace

Programs and test suites of libraries that stand on JAX, unmodified, in an environment without jax: the programs of
`examples/libraries` under `python -m hlotrace.as_jax`, the suites under `pytest -p hlotrace.as_jax`. Tests are the
library's own where its wheel or source archive on PyPI has them, or where a checkout was given (`make libraries
SUITES=folder`); else programs of ours that use the same features (`tests/libraries/with_*.py`). Not applicable are tests
that the library skips itself, that lack what they need here, or that fail on JAX too; the reasons are below, as are those of
tests that fail (`tests/libraries/table.toml`).
"""
COLUMNS = ["library", "version", "tests of", "passed", "failed", "not applicable", "seconds",
           "seconds on jax"]


def pip(*arguments):
    subprocess.run([HOME / "bin" / "python", "-m", "pip", *arguments, "--quiet", "--no-deps",
                    "--disable-pip-version-check"], check=True)


def environment():
    """Its Python; made anew after requirements.txt changed."""
    ready = HOME / hashlib.sha256(f"{REQUIREMENTS}{sys.version}".encode()).hexdigest()
    if not ready.exists():
        print(f"installing {len(VERSIONS)} packages into {HOME.name}", flush=True)
        with going_on(lambda: "installing"):
            subprocess.run([sys.executable, "-m", "venv", "--clear", HOME], check=True)
            pip("install", "--requirement", str(HERE / "requirements.txt"))
        ready.touch()
    return HOME / "bin" / "python"


def archive(library):
    """The source archive of a library, unpacked."""
    files = HOME / "archives"
    name = f"{library.replace('-', '_')}-{VERSIONS[library]}"
    if not (files / name).exists():
        pip("download", "--no-binary", ":all:", "--dest", str(files), f"{library}=={VERSIONS[library]}")
        with tarfile.open(files / f"{name}.tar.gz") as tar:
            tar.extractall(files, filter="data")
        for package in (files / name).glob("*/__init__.py"):  # the installed one is tested, not this
            if package.parent.name not in ("test", "tests"):
                package.rename(package.with_suffix(".aside"))
    return files / name


def places(library, entry, python):
    """Whose tests they are, their folder, and which there."""
    if FLAGS.whole and "whole" in entry:
        kind = next(kind for kind in ("checkout", "package", "archive") if kind in entry)
        entry = entry | {kind: entry["whole"]}
    if "checkout" in entry and FLAGS.suites and (Path(FLAGS.suites) / library).is_dir():
        return "checkout", Path(FLAGS.suites).resolve() / library, entry["checkout"]
    if "package" in entry:
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return "wheel", Path(subprocess.check_output([python, "-c", where],
                                                     text=True).strip()), entry["package"]
    return ("archive", archive(library), entry["archive"]) if "archive" in entry else ("ours", HERE, entry["programs"])


def has_tests(library):
    """Are there tests of it here?  Those that are in a checkout alone need one."""
    return bool(TABLE[library].keys() & {"package", "archive", "programs"}
                or FLAGS.suites and (Path(FLAGS.suites) / library).is_dir())


def run(library, entry, python, jax):
    """Runs the tests: (whose, [(name, outcome, words)], seconds)."""
    whose, folder, tests = places(library, entry, python)
    results = HOME / f"{library}.{'jax' if jax else 'hlotrace'}.xml"
    results.unlink(missing_ok=True)
    left_out = [name for rule in entry.get("not_applicable", []) for name in rule.get("files", [])]
    tests = [str(p) for t in tests for p in (sorted(folder.glob(t)) if "*" in t else [folder / t])
             if not any(p.match(name) for name in left_out)]       # pytest ignores no file that is named
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "not_applicable", "--tb=short",
               "--timeout=600", "--disable-warnings", "--continue-on-collection-errors",
               f"--junitxml={results}", f"--rootdir={folder}", *([] if jax else ["-p", "hlotrace.as_jax"]),
               *(["-n", str(FLAGS.jobs)] if FLAGS.jobs > 1 else []),
               *(["-c", os.devnull] if whose in ("wheel", "ours") else []), *entry.get("pytest", []), *tests]
    variables = {"JAX_PLATFORMS": "cpu", "HLOTRACE_LIBRARY": library, **entry.get("environment", {}),
                 "PYTHONPATH": os.pathsep.join([str(HERE)] + ([] if jax else [str(ROOT)]))}
    start = time.time()
    where = folder / entry["folder"] if "folder" in entry else HOME
    ended = subprocess.run(command, cwd=where, env={**os.environ, **variables}).returncode
    seconds = time.time() - start
    if not results.exists():
        return whose, [("the process", "failed", f"ended with status {ended}")], seconds
    cases = []
    for case in ElementTree.parse(results).iter("testcase"):
        marks = {mark.tag: mark for mark in case}
        outcome = "failed" if marks.keys() & {"failure", "error"} else "skipped" if "skipped" in marks else "passed"
        words = marks["skipped"].get("message") or "" if outcome == "skipped" else ""
        cases.append((f"{case.get('classname')}::{case.get('name')}", outcome, words))
    return whose, cases, seconds


def measure(library, entry, python):
    """The row of a library, what failed and is not known to, and why tests fail or do not apply."""
    runs = [(run(library, entry, python, False), FLAGS.jax and run(library, entry, FLAGS.jax, True))
            for _ in range(FLAGS.rounds)]
    (whose, cases, _), _ = runs[-1]
    count = Counter(outcome for _, outcome, _ in cases)
    least = lambda side: f"{min(r[side][2] for r in runs):.0f}"
    row = [library, VERSIONS[library], whose, count["passed"], count["failed"], count["skipped"], least(0),
           least(1) if FLAGS.jax else ""]
    reasons = Counter(re.sub("<module .*", "a module", " ".join(words.split()))
                      for _, outcome, words in cases if outcome == "skipped")
    reasons["no reason given"] = reasons.pop("Skipped", 0) + reasons.pop("", 0)
    files = [f"{', '.join(f'`{name}`' for name in rule['files'])}: {rule['reason']}"
             for rule in entry.get("not_applicable", []) if "files" in rule]
    failed = {name: next((rule["reason"] for rule in entry.get("failing", [])
                          if any(re.search(pattern, name) for pattern in rule["tests"])), None)
              for name, outcome, _ in cases if outcome == "failed"}
    fails = Counter(failed.values()).most_common()
    return (list(map(str, row)), [name for name, reason in failed.items() if reason is None],
            [f"{_tests(n)} fail{'s' * (n == 1)}: {reason or 'not looked into'}" for reason, n in fails] +
            files + [f"{_tests(n)}: {reason}" for reason, n in reasons.most_common() if n])


def _tests(n):
    return f"{n} {'test' if n == 1 else 'tests'}"


def old_page():
    """The rows and the reasons that the page has, by library."""
    text = PAGE.read_text() if PAGE.exists() else ""
    rows = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    reasons = re.findall(r"^\* ([\w-]+): (.*)$", text, re.M)
    return ({row[0]: row + [""] * (len(COLUMNS) - len(row)) for row in rows if row[0] in TABLE},
            {library: [r for name, r in reasons if name == library] for library in TABLE},
            [row for row in rows if row[0].endswith(".py`")])


def table(columns, texts, rows):
    """Markdown, the first columns, `texts` of them, to the left and the others to the right."""
    lines = [columns, ["---"] * texts + ["---:"] * (len(columns) - texts), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def page(rows, reasons, programs):
    lines = [f"* {library}: {reason}\n" for library in TABLE for reason in reasons.get(library, [])]
    return (f"{HEADER}\n## Programs\n\n{table(library_programs.COLUMNS, 1, programs)}\n"
            f"## Test suites\n\n{table(COLUMNS, 3, [rows[library] for library in TABLE if library in rows])}\n"
            f"## What fails, and what does not apply\n\n{''.join(lines)}")


def main(argv):
    if argv[1:]:
        raise app.UsageError(f"libraries are chosen by --only={','.join(argv[1:])}")
    if unknown := set(FLAGS.only) - {*TABLE, "programs"}:
        raise app.UsageError(f"--only: no library {', '.join(sorted(unknown))} in "
                             f"tests/libraries/table.toml, which has {', '.join(TABLE)}")
    python = environment()
    rows, reasons, programs = old_page()
    failures = {}
    only = FLAGS.only or ["programs", *TABLE]
    if "programs" in only:
        programs, failures["programs"] = library_programs.measure(python, FLAGS.jax, FLAGS.rounds)
        PAGE.write_text(page(rows, reasons, programs))
    libraries = [name for name in TABLE if name in only and has_tests(name)]
    for i, library in enumerate(libraries, 1):
        print(f"\n== {library} ({i} of {len(libraries)})", flush=True)
        rows[library], failures[library], reasons[library] = measure(library, TABLE[library], python)
        PAGE.write_text(page(rows, reasons, programs))
    print("\n" + page(rows, {}, programs))
    for library, names in failures.items():
        print("".join(f"{library}: failed: {name}\n" for name in names), end="")
    return int(any(failures.values()))


if __name__ == "__main__":
    app.run(main)
