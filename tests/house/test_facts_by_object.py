"""No pass of the library asks a primitive's name: facts and rules are found by the primitive itself."""
import ast
import re
from pathlib import Path

import pytest
import syntax
from remembered import found

import hlotrace
import hlotrace.experimental.sparse.sparsify
import hlotrace.extend.core.primitives  # imports every file of primitives
from hlotrace.core.primitive import everywhere

ROOT = Path(hlotrace.__file__).parent
LIBRARY = sorted(ROOT.rglob("*.py"))
NAMES = {p.name for p in everywhere}
# Tables of such words that mean something else, or are the user's: the first three, and what they are.
OTHER_WORDS = {
    "'real', 'imag'": "functions of jax.numpy, whose operand has another name",
    "'floordiv', 'mod', 'max'": "operations on symbolic sizes, as their texts spell them",
    "'max', 'min'": "the same, where programs are written",
    "'call', 'closed_call'": "names of jax.extend.core.primitives, as users find them",
    "'and', 'approx_top_k', 'not'": "names of jax.lax.*_p, as users find them",
    "'add', 'sub', 'mul'": "methods of arrays: __add__ and its kin",
    "'eq', 'ne', 'lt'": "methods of arrays: __eq__ and its kin",
    "'neg', 'pos', 'abs'": "methods of arrays: __neg__ and its kin",
    "'set', 'add', 'multiply'": "methods of x.at[...]",
    "'lu', 'qr'": "values of a parameter: methods of least squares and solves",
    "'compare_all', 'scan', 'scan_unrolled'": "values of searchsorted's `method`",
    "'cholesky', 'eigh', 'svd'": "values of multivariate_normal's `method`",
    "'real', 'complex'": "values of schur's `output`",
    "'dynamic-slice', 'slice', 'gather'": "operations of HLO",
    "'bitcast', 'reshape', 'copy'": "the same",
    "'reshard', 'sharding_constraint'": "operations of Shardy",
    "'while', 'conditional', 'call'": "the same",
    "'while', 'body', 'cond'": "parts of the paths that operations are named by",
    "'abs', 'add', 'and'": "operations of StableHLO",
    "'reduce', 'all_reduce', 'gather'": "the same",
    "'dynamic_slice', 'slice', 'gather'": "the same",
    "'dynamic_update_slice', 'while', 'scatter'": "the same",
    "'scatter', 'dynamic_update_slice'": "the same",
    "'reduce', 'scatter'": "the same",
}


def asks_a_name(node):
    """Is this `x.primitive.name`, `primitive.name`, `prim.name`, `p.name` of a thing called a primitive?"""
    if not (isinstance(node, ast.Attribute) and node.attr == "name"):
        return False
    owner = node.value
    called = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return called in {"primitive", "prim"} or called.endswith("_p")


def own_nodes(scope):
    """The nodes of a function or module; of the functions in it only the heads."""
    for node in syntax.children(scope):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from own_nodes(node)


def comparisons(scope, outer=frozenset()):
    """Nodes that compare the name of a primitive, or look something up by it, also where a variable has it.
    """
    nodes, named = list(own_nodes(scope)), set(outer)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                tuples = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts) if tuples else [(target, node.value)]
                named |= {t.id for t, v in pairs if isinstance(t, ast.Name) and asks_a_name(v)}

    def is_name(node):
        return asks_a_name(node) or isinstance(node, ast.Name) and node.id in named
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.Lambda():
                yield from comparisons(node, named)
            case ast.Compare() if any(map(is_name, [node.left, *node.comparators])):
                yield node
            case ast.Subscript(slice=key) if is_name(key):
                yield node
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]) if is_name(key):
                yield node
            case ast.Call(func=ast.Attribute(value=key, attr="startswith" | "endswith")) if is_name(key):
                yield node


def strings(node):
    """What a table holds, None for what is no string.

    A table is a set, a list, the keys of a dictionary, or the words of a string.
    """
    match node:
        case ast.Dict():
            parts = node.keys
        case ast.Set() | ast.List() | ast.Tuple():
            parts = node.elts
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return text.split()
        case _:
            return []
    return [
        part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None
        for part in parts
    ]


def is_offered(node):
    """Is this `__all__ = [...]`, the list of what a module offers?"""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)


def tables(node):
    """What each table with more than one string holds, but for lists of what a module offers."""
    for inner in syntax.children(node):
        if not is_offered(inner):
            yield from tables(inner)
    held = strings(node)
    if len(held) - held.count(None) > 1:
        yield held


def tables_of(path):
    return tables(syntax.tree(path))


def are_names(table):
    """Are half and more of these names of primitives?"""
    known = [s for s in table if s in NAMES]
    return len(known) > 1 and 2 * len(known) >= len(table)


ASKS = re.compile(r"(primitive|prim|_p)\s*\.\s*name\b")      # in every source that compares a name


def test_nothing_compares_the_name_of_a_primitive():
    found = [f"{path.relative_to(ROOT)}, line {node.lineno}: {ast.unparse(node)}"
             for path in LIBRARY if ASKS.search(path.read_text("utf-8"))
             for node in comparisons(syntax.tree(path))]
    assert not found, "compare primitives with `is`, or key a table by them:\n" + "\n".join(found)


def test_no_table_has_names_of_primitives():
    words = {repr([s for s in table if s][:3])[1:-1] for path in LIBRARY
             for table in found(tables_of, path) if are_names(table)}
    assert not words - OTHER_WORDS.keys(), "key them by primitives, or say what the words are"
    assert not OTHER_WORDS.keys() - words, "these are gone: take them off the list"


@pytest.mark.parametrize("text", [
    'eqn.primitive.name == "sin"', 'primitive.name in TABLE', 'TABLE[prim.name]', 'TABLE.get(sin_p.name, 0)',
    'def f():\n    name, x = eqn.primitive.name, 1\n    return name != "cos"',
    'eqn.primitive.name.startswith("scatter")'])
def test_comparisons_are_found(text):
    assert len({ast.unparse(n) for n in comparisons(ast.parse(text))}) == 1


@pytest.mark.parametrize("text", ['T = {"sin": 1, "cos": 2}', 'x in ("sin", "cos")',
                                  'T = set("sin cos tan".split())', 'T = dict.fromkeys("sin cos".split(), 1)',
                                  'T = {"sin", "cos", other}'])
def test_tables_are_found(text):
    assert len([table for table in tables(ast.parse(text)) if are_names(table)]) == 1


@pytest.mark.parametrize("text", ['__all__ = ["sin", "cos"]', '("sin",)',
                                  '{"name": 1, "size": 2, "kind": 3}'])
def test_other_strings_are_let_through(text):
    assert not [table for table in tables(ast.parse(text)) if are_names(table)]
