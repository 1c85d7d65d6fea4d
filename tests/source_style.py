"""What is asked of the source of the library, as lists of offences: `python tests/source_style.py PATH...` prints them."""
import ast
import functools
import io
import logging
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import griffe
import syntax

WIDTH = 110
BRANCHES = 20
SECTIONS = ("Args", "Returns", "Yields", "Raises")
DIALECT = re.compile(r"\b(lies|laid|(?:is|are|be) told|stands?|stood|nobody|somebody)\b", re.I)
# Functions with more branches than BRANCHES, each with its reason.
BRANCHY: dict[str, str] = {}
PARTINGS = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.match_case)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@functools.cache
def _warnings() -> _Warnings:
    handler = _Warnings()
    logger = logging.getLogger("griffe")
    logger.addHandler(handler)
    logger.propagate = False
    return handler


def documented(path: Path) -> Iterator[griffe.Object]:
    """The module and all that is defined in it with a docstring."""
    module = griffe.visit(path.stem, filepath=path, code=path.read_text("utf-8"), docstring_parser="google")

    def walk(value):
        if value.docstring:
            yield value
        for member in value.members.values():
            if not member.is_alias:
                yield from walk(member)
    return walk(module)


def docstring_offences(path: Path) -> Iterator[str]:
    """Docstrings: a sentence; then sections `Args:`, `Returns:`, `Yields:`, `Raises:` in this order; then examples."""
    handler = _warnings()
    for value in documented(path):
        text, where = value.docstring.value, f"{path}:{value.docstring.lineno}: {value.name}"
        handler.found.clear()
        value.docstring.parse("google", warn_missing_types=False, warnings=True,
                              returns_multiple_items=False, returns_named_value=False)
        yield from (f"{where}: {said.partition(': ')[2] or said}" for said in handler.found)
        first = text.partition("\n\n")[0].rstrip()
        if not first.endswith((".", ":", "?")) or not first[:1].strip():
            yield f"{where}: the first paragraph is no sentence: {first[-40:]!r}"
        heads = re.findall(rf"^({'|'.join(SECTIONS)}):$|^(>>>)", text, re.M)
        order = [(*SECTIONS, ">>>").index(a or b) for a, b in heads]
        if sorted(order) != order:
            yield f"{where}: sections are {', '.join(SECTIONS)}, then the examples"
        if re.search(rf"^(?:{'|'.join(SECTIONS)}):\n(?: .*\n)+\n(?:{'|'.join(SECTIONS)}):$", text, re.M):
            yield f"{where}: sections follow each other without a blank line"
        for line in re.findall(rf"^(?:{'|'.join(SECTIONS)}|Arguments|Parameters|Example|Examples|Raise|Return)\b.*$", text, re.M):
            if not re.fullmatch(rf"(?:{'|'.join(SECTIONS)}):", line):
                yield f"{where}: {line[:50]!r} is a section of its own: `Returns:`, and its text indented below"
        if isinstance(value, griffe.Function):
            names = [p.name for p in value.parameters]
            for line in re.findall(r"^`?\*{0,2}(\w+)`?: ", text, re.M):
                if line in names:
                    yield f"{where}: the parameter {line!r} is described outside of `Args:`"


def dialect_offences(path: Path) -> Iterator[str]:
    """Words in docstrings, comments and messages that say less than the field's own."""
    source = path.read_text("utf-8")
    if not DIALECT.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and " " in token.string:
            for found in DIALECT.finditer(token.string):
                line = token.start[0] + token.string[:found.start()].count("\n")
                yield f"{path}:{line}: {found[0]!r}: {token.string[max(0, found.start() - 30):found.end() + 30]!r}"


def _branches(function: ast.AST) -> int:
    """How many ways its statements and conditional expressions part, nested functions not counted."""
    count, waiting = 0, syntax.children(function)
    for node in waiting:
        if not isinstance(node, SCOPES):
            count += isinstance(node, PARTINGS)
            waiting += syntax.children(node)
    return count


def density_offences(path: Path) -> Iterator[str]:
    """Lines over WIDTH, a conditional inside of a conditional, functions of many branches, private names of others."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if len(line) > WIDTH:
            yield f"{path}:{number}: {len(line)} columns"
    for node in syntax.nodes(path):
        if isinstance(node, ast.IfExp):
            if any(isinstance(inner, ast.IfExp) for part in (node.test, node.body, node.orelse) for inner in _own(part)):
                yield f"{path}:{node.lineno}: a conditional expression inside of another: write statements"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if (count := _branches(node)) > BRANCHES and node.name not in BRANCHY:
                yield f"{path}:{node.lineno}: {node.name} has {count} branches: cut it by idea"
        elif isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("hlotrace")):
            for alias in node.names:
                if re.match(r"_[a-zA-Z]", alias.name):
                    yield f"{path}:{node.lineno}: {alias.name} is private to the file that it is imported from"


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and what is in it, but for what is in lambdas and comprehensions."""
    yield node
    if not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for child in syntax.children(node):
            yield from _own(child)


CHECKS = (docstring_offences, dialect_offences, density_offences)


def main(paths: list[str]) -> int:
    files = [file for path in map(Path, paths) for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    found = [text for file in files for check in CHECKS for text in check(file)]
    print(*found, f"{len(found)} offences in {len(files)} files", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
