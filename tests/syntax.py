"""Syntax trees of files, read once for all the tests that ask about the source."""
import ast
import functools
import gc
from collections.abc import Callable
from pathlib import Path


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file.  Whoever asks shares it, and changes nothing in it."""
    return parsed(path.read_text("utf-8"))


@functools.cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a text, as `tree`.

    It has no cycles: while it grows, looking for some would take longer than reading it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collects:
            gc.enable()


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """The nodes of the tree of a file, in the order of `ast.walk`."""
    return walk(tree(path))


def forget() -> None:
    """Drop all trees."""
    nodes.cache_clear()
    parsed.cache_clear()


def children(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives."""
    found = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
    return found


def statements(node: ast.AST) -> list[ast.AST]:
    """Of the children those that are statements, or hold some: all imports and assignments are among these."""
    lists = [getattr(node, name, None) for name in ("body", "handlers", "orelse", "finalbody", "cases")]
    return [part for each in lists if isinstance(each, list) for part in each]      # of a lambda it is no list


def walk(node: ast.AST, inner: Callable[[ast.AST], list[ast.AST]] = children) -> list[ast.AST]:
    """What `ast.walk` gives, in half its time; or the statements alone, with `inner=statements`."""
    found = [node]
    for each in found:
        found += inner(each)
    return found
