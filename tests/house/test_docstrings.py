"""Every public function has a docstring with examples; these run, and those of classes.

What stands in `without_example.txt` has none yet: the list may only shrink.
"""
import doctest
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from places import ROOT, TESTS

import hlotrace as jax
from hlotrace import lax, nn
from hlotrace import numpy as jnp
from tools import stubs

WITHOUT = TESTS / "without_example.txt"
NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "np": np}       # what examples may use without an import
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
    found = doctest.DocTestParser().get_doctest(function.__doc__ or "", dict(NAMES), name, None, None)
    return found if found.examples else None


HOMES = {}      # id of a value -> the face and the name under which its examples run
for face in FACES:
    for name, value in offered(FACES[face]).items():
        HOMES.setdefault(id(value), (face, name))


@pytest.mark.parametrize("face", FACES)
def test_examples_print_what_they_say(face):
    report, failed = [], []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for name, value in offered(FACES[face]).items():
        test = examples(f"{face}.{name}", value) if HOMES[id(value)] == (face, name) else None
        if test is not None:
            failed += [test.name] * bool(runner.run(test, out=report.append).failed)
    assert not failed, "".join(report)


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
