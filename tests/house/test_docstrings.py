"""Every public function has a docstring with examples; these run, and those of classes, and mix no dtypes and ranks.

What stands in `without_example.txt` has none yet: the list may only shrink.
"""
import contextlib
import doctest
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from places import ROOT, TESTS

import hlotrace as jax
from hlotrace import lax, nn, numpy as jnp
from hlotrace.core.config import override
from tools import stubs

WITHOUT = TESTS / "without_example.txt"
# What examples may use without an import; a module too, by its last name, in those of its functions.
NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "np": np}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# Faces whose functions are for authors of primitives, and modules that are tested as documents.
OTHERS = ("hlotrace.extend", "hlotrace.interpreters", "hlotrace.core", "hlotrace.tree", "hlotrace.typing")
FACES = {name: face for name, face in stubs.faces().items() if not name.startswith(OTHERS)}


def offered(face):
    """{name: value} of a module: what it offers that is hlotrace's own, and no module."""
    values = {name: getattr(face, name) for name in stubs.public(face)}
    return {name: v for name, v in values.items() if not isinstance(v, ModuleType)
            and str(getattr(v, "__module__", "") or type(v).__module__).startswith("hlotrace")}


def functions(face):
    return {name: f for name, f in offered(face).items() if callable(f) and not isinstance(f, type)}


def examples(name, function):
    face = name.rpartition(".")[0]
    known = NAMES | {face.rpartition(".")[2]: FACES.get(face)}
    found = doctest.DocTestParser().get_doctest(function.__doc__ or "", known, name, None, None)
    return found if found.examples else None


HOMES = {}      # id of a value -> the face and the name under which its examples run
for face in FACES:
    for name, value in offered(FACES[face]).items():
        HOMES.setdefault(id(value), (face, name))


# Examples that mix dtypes or ranks themselves.
MIXED = {
    "hlotrace.dtypes.result_type", "hlotrace.example_libraries.stax.Dense", "hlotrace.example_libraries.stax.serial",
    *(f"hlotrace.numpy.{name}" for name in ("add", "c_", "column_stack", "concatenate", "logical_and", "logical_or",
                                             "logical_xor", "multiply", "pow", "power", "promote_types", "put", "r_", "vectorize"))}


@contextlib.contextmanager
def strict():
    with override("jax_numpy_dtype_promotion", "strict"), override("jax_numpy_rank_promotion", "raise"):
        yield


class Runner(doctest.DocTestRunner):
    """It notes whether promotion was refused in the last examples."""

    def __init__(self):
        super().__init__(optionflags=FLAGS)

    def run(self, test, **options):
        self.refused = False
        return super().run(test, clear_globs=False, **options)

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.refused |= "promotion" in str(exc_info[1])
        super().report_unexpected_exception(out, test, example, exc_info)


@pytest.mark.parametrize("face", FACES)
def test_examples_print_what_they_say(face):
    """The same where promotion is for what users mix: a library function of one dtype passes under these options."""
    report, failed, mixed, runner = [], [], set(), Runner()
    for name, value in offered(FACES[face]).items():
        test = examples(f"{face}.{name}", value) if HOMES[id(value)] == (face, name) else None
        if test is not None:
            with strict():
                wrong = runner.run(test, out=report.append).failed
            if runner.refused:
                mixed.add(test.name)
                del report[:]
                wrong = runner.run(examples(test.name, value), out=report.append).failed
            failed += [test.name] * bool(wrong)
    assert not failed, "".join(report)
    assert mixed == {name for name in MIXED if name.rpartition(".")[0] == face}


def test_every_function_has_an_example():
    lacking = sorted(f"{face}.{name}" for face in FACES for name, function in functions(FACES[face]).items()
                     if not examples(name, function))
    listed = WITHOUT.read_text("utf-8").split()
    new, done = sorted(set(lacking) - set(listed)), sorted(set(listed) - set(lacking))
    assert not new, f"no example (>>>) in the docstrings of {', '.join(new)}"
    assert not done, f"take out of {WITHOUT.name}, as they have examples now: {', '.join(done)}"


def test_nothing_needs_docstrings():
    code = "import hlotrace; assert not hlotrace.grad.__doc__; [getattr(hlotrace, name) for name in dir(hlotrace)]"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True, cwd=ROOT)
