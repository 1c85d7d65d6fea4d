"""Every public name is used by some test.

Read from the syntax trees of the tests: a name counts where it stands as an attribute of anything but NumPy, as a name that
is imported or used, as a keyword, or as a word in a string (a row of a table, as `getattr(jnp, name)` reads it).
"""
import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import syntax
from places import TESTS
from remembered import found

from tools import stubs

pytestmark = pytest.mark.quick

# Aliases of types that serve annotations alone.
ANNOTATIONS = {"PrecisionLike", "DotDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "KeyPath", "Initializer"}


def words(tree: ast.AST) -> Iterator[str]:
    for node in syntax.walk(tree):
        match node:
            case ast.Lambda(args=args) if any(a.arg == "np" for a in args.args):     # called with hlotrace.numpy too
                yield from (child.attr for child in syntax.walk(node) if isinstance(child, ast.Attribute))
            case ast.Attribute(value=ast.Name(id="np" | "numpy" | "ml_dtypes")):
                pass
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)):
                yield from text.replace(".", " ").replace(",", " ").replace("(", " ").split()


def words_of(path: Path) -> list[str]:
    return sorted(set(words(syntax.tree(path))))


def mentioned() -> set[str]:
    # this file lists names; the golden files are no tests of their own
    return {word for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__).resolve()
            for word in found(words_of, path)}


def test_every_public_name_is_mentioned_by_a_test():
    known, faces = mentioned() | ANNOTATIONS, stubs.faces()
    missing = {name: lacking for name, module in faces.items() if (lacking := [
        word for word in stubs.public(module)
        if word not in known and not word.endswith("_p")
        and not isinstance(getattr(module, word), ModuleType)])}
    assert len(faces) > 20
    assert not missing, "no test mentions " + "; ".join(f"{name}: {', '.join(ws)}" for name, ws in missing.items())


@pytest.mark.parametrize(("source", "name", "counts"), [
    ("jnp.radians(x)", "radians", True), ("np.radians(x)", "radians", False),
    ("lambda np: np.radians(x)", "radians", True), ("rows = ['radians']", "radians", True),
    ("from hlotrace.numpy import radians", "radians", True), ("f(radians=1)", "radians", True), ("x = 1", "radians", False),
])
def test_what_counts_as_mentioning(source, name, counts):
    assert (name in set(words(ast.parse(source)))) == counts
