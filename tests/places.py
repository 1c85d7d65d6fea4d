"""Where things are: tests ask this file, so that a test may move into another folder."""
import ast
import functools
from pathlib import Path

import syntax

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
LIBRARY = ROOT / "hlotrace"
TOOLS = ROOT / "tools"
EXAMPLES = ROOT / "examples"
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"


@functools.cache
def names_of_tests():
    """The functions at the top of every file of tests."""
    return {node.name for path in TESTS.rglob("test_*.py") for node in syntax.tree(path).body
            if isinstance(node, ast.FunctionDef)}
