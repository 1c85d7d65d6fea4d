"""What type checkers and editors know of the public modules, and that it is true.

The programs in tests/typed are those of a user: checkers accept them, they run, and of mistakes.py each line
that is marked, and no other, is reported.
"""
import hashlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from places import ROOT
from remembered import found

import hlotrace as jax
import hlotrace.numpy as jnp
from tools import stubs

PROGRAMS = ["arrays.py", "training.py", "transformations.py"]
FACES = stubs.faces()
MENDING = "run `python tools/stubs.py` (or `make stubs`) and commit what it writes"


# --- the stubs, and dir() -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def now():
    """What the stubs should be."""
    return stubs.stubs()


@pytest.mark.quick
def test_stubs_are_current(now, monkeypatch, capsys):
    monkeypatch.setattr(stubs, "stubs", lambda: now)
    status = stubs.main(["--check"])
    assert not status, f"{capsys.readouterr().out}\nA signature or a public name changed: {MENDING}"


@pytest.mark.quick
def test_a_stub_that_is_out_of_date_is_found(now, monkeypatch, capsys):
    path = next(path for path in now if path.parent.name == "numpy")
    monkeypatch.setattr(stubs, "stubs", lambda: {**now, path: now[path].replace("def where(", "def where_(")})
    assert stubs.main(["--check"])
    assert "hlotrace/numpy/__init__.pyi is out of date: run python tools/stubs.py" in capsys.readouterr().out


@pytest.mark.quick
def test_each_row_of_types_is_of_a_name_that_stubs_have(now):
    words = {word for text in now.values() for word in re.findall(r"\w+", text)}
    assert not [row for row in stubs.LINES if "*" not in row[1] and row[1] not in words]


@pytest.mark.quick
@pytest.mark.parametrize("name", FACES)
def test_dir_shows_public_names_and_nothing_else(name):
    module = FACES[name]
    for word in stubs.public(module):
        value = getattr(module, word)
        if isinstance(value, ModuleType):
            assert value.__name__ in (*FACES, *stubs.OPEN,
                                      stubs.BY_HAND), f"{name}.{word} is no public module"
        elif inspect.isclass(value) or inspect.isfunction(value):
            home = value.__module__.partition(".")[0]
            assert home in ("hlotrace", "numpy", "ml_dtypes", "jaxlib"), f"{name}.{word} is {home}'s"
            assert not value.__name__.startswith("_"), f"{name}.{word} is private"


@pytest.mark.quick
def test_names_that_the_library_only_uses_are_not_public():
    for face, names in {"hlotrace": "api primitives runtime importlib",
                        "hlotrace.numpy": "np state array_methods util",
                        "hlotrace.lax": "np functools PRIMITIVES",
                        "hlotrace.nn.initializers": "math jnp Any Protocol",
                        "hlotrace.distributed": "os clusters",
                        "hlotrace.experimental.multihost_utils": "hashlib tree"
                        }.items():
        assert not set(names.split()) & set(dir(FACES[face]))


@pytest.mark.quick
def test_public_modules_are_in_dir_before_they_are_imported():
    assert {"lax", "nn", "random", "tree_util", "typing", "NamedSharding", "shard_map", "make_mesh"} <= set(
        dir(jax))


# --- checkers -----------------------------------------------------------------------------------------------

def marked(checker):
    """The lines of mistakes.py that a checker has to report."""
    lines = (ROOT / "tests" / "typed" / "mistakes.py").read_text("utf-8").splitlines()
    marks = [re.search(r"  # wrong(?: for (\w+))?$", line) for line in lines]
    return {i for i, mark in enumerate(marks, 1) if mark and mark[1] in (None, checker)}


def judged(checker, found):
    """`found` are (file, line, message): nothing but the mistakes, and all of them."""
    mistakes = {line for file, line, _ in found if file == "mistakes.py"}
    false = [f"{file}:{line}: {message}" for file, line, message in found
             if not (file == "mistakes.py" and line in marked(checker))]
    assert not false, f"{checker} finds fault with right lines:\n" + "\n".join(false)
    assert mistakes == marked(
        checker), f"{checker} misses mistakes.py, lines {sorted(marked(checker) - mistakes)}"


def test_mypy_accepts_programs_and_finds_mistakes(tmp_path, pytestconfig):
    """It keeps what it has read of files for the next run, and reads those again that changed or that it
    found fault with."""
    cache = getattr(pytestconfig, "cache", None)
    kept = cache.mkdir("mypy") if cache and os.access(ROOT / ".pytest_cache", os.W_OK) else tmp_path
    assert importlib.util.find_spec("mypy"), "mypy is of the extra `test`: pip install -e '.[test]'"
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--no-warn-return-any",
         "--follow-imports=silent",
         "--cache-dir", kept, *PROGRAMS, "mistakes.py"], cwd=ROOT / "tests" / "typed",
         env={"MYPYPATH": str(ROOT)},
        capture_output=True, text=True)
    errors = [re.match(r"(.*?):(\d+): error: (.*)", line) for line in ran.stdout.splitlines()]
    assert any(errors), ran.stdout + ran.stderr
    judged("mypy", [(match[1], int(match[2]), match[3]) for match in errors if match])


def pyright_reports(path, pyright, *_):
    ran = subprocess.run([pyright, "--outputjson", "--pythonpath", sys.executable, *PROGRAMS, path.name],
                         cwd=path.parent, capture_output=True, text=True)
    for report in json.loads(ran.stdout)["generalDiagnostics"]:
        if report["severity"] == "error":
            yield Path(report["file"]).name, report["range"]["start"]["line"] + 1, report["message"]


def test_pyright_accepts_programs_and_finds_mistakes():
    pyright = next((path for name in ("basedpyright", "pyright")
                    if (path := shutil.which(name, path=str(Path(sys.executable).parent))
                        or shutil.which(name))), None)
    if pyright is None:
        pytest.skip("no pyright: pip install basedpyright")
    typed = ROOT / "tests" / "typed"
    library = sorted(path for path in ROOT.glob("hlotrace/**/*") if path.suffix in (".py", ".pyi"))
    read = [path.read_bytes() for path in (*library, *map(typed.joinpath, PROGRAMS))]
    known = os.stat(pyright).st_mtime_ns, hashlib.sha256(b"\0".join(read)).hexdigest()
    judged("pyright", found(pyright_reports, typed / "mistakes.py", pyright, *known))


# --- what they are told is true -----------------------------------------------------------------------------

def program(name):
    """A module of tests/typed."""
    spec = importlib.util.spec_from_file_location(f"typed_{name}", ROOT / "tests" / "typed" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_accepted_programs_run(capsys):
    program("training").main()
    transformations, x = program("transformations"), jnp.array([1.0, 2.0])
    transformations.derivatives(x)
    assert transformations.controls(x, 1).shape == (2,)
    assert transformations.containers(x).tolist() == [14, 28]
    assert transformations.outside(x).shape == (2,)
    arrays = program("arrays")
    assert all(isinstance(a, jax.Array) for a in arrays.operators())
    assert arrays.methods(arrays.x) == (4, 4)
    for result in (arrays.indexing(arrays.x), arrays.functions(arrays.x), arrays.lower_level(),
                   arrays.randomness(0),
                   arrays.placed()):
        assert isinstance(result, jax.Array)


# The kind of result that stubs promise, where it is no Array.
RESULTS = {
    "tuple": ["nonzero(x)", "unravel_index(2, (3, 4))", "divmod(x, 2)", "modf(x)", "frexp(x)", "histogram(x)",
              "ix_(i, i)", "broadcast_arrays(x, 1)", "meshgrid(i, i)",
              "where(x > 0)", "tril_indices(3)", "unstack(x)", "shape(x)", "broadcast_shapes((1,), (3,))",
              "linspace(0, 1, 3, retstep=True)", "average(x, returned=True)",
              "intersect1d(i, i, return_indices=True)"],
    "list": ["split(x, 3)", "array_split(x, 2)", "hsplit(x, 2)", "vsplit(x, 3)"],
    "int": ["ndim(x)", "size(x)"],
    "bool": ["issubdtype(x.dtype, jnp.floating)", "can_cast('int8', 'int16')", "isscalar(3)",
             "iscomplexobj(x)",
             "isdtype(x.dtype, 'integral')"],
    "np.dtype": ["result_type(x, 1)", "promote_types('int8', 'float32')"],
    "Array": ["allclose(x, x)", "array_equal(x, x)", "sort(x)", "indices((2, 2))", "linspace(0, 1, 3)",
              "add(1, 2)",
              "float32(1)", "where(x > 0, x, 0)", "average(x)", "einsum('ij->ji', x)", "array([1, 2])",
              "interp(x, i, i)"],
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results_are_what_stubs_say(kind):
    types = {"tuple": tuple, "list": list, "int": int, "bool": bool, "np.dtype": np.dtype, "Array": jax.Array}
    for text in RESULTS[kind]:
        name = text.partition("(")[0]
        result = eval(f"jnp.{text}", {"jnp": jnp, "x": jnp.ones((3, 4)), "i": jnp.arange(3)})
        assert isinstance(result, types[kind]), text
        said = stubs.LINES.get(("hlotrace.numpy", name), ())
        promised = {line.result for line in said} or {"Array"}
        assert any(p.startswith(kind) for p in promised), f"{text}: stubs say {promised}"


def test_annotations_are_values():
    from hlotrace.typing import ArrayLike, DTypeLike
    assert isinstance(jnp.ones(2), ArrayLike) and isinstance(np.ones(2), ArrayLike) and isinstance(
        1.0, ArrayLike)
    assert not isinstance("x", ArrayLike) and not isinstance([1.0], ArrayLike)
    assert dir(jax.typing) == ["ArrayLike", "DTypeLike", "Shape"] and str in DTypeLike.__args__
