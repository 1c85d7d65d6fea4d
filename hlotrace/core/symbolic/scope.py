"""Symbolic sizes as texts, and what is known of them: SymbolicScope, symbolic_shape; solving."""
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .. import source_info
from .dimension import OPERATIONS, Atom, Dimension, Size, Terms, bounds, made, variables

# --- scopes and their constraints

class SymbolicScope:
    """What is known of variables: those of one scope may be used in one computation.

    Args:
        constraints_str: texts such as "a >= 3", "2*a <= b" or "mod(a, 2) == 0", each of which holds for all
            sizes that occur
    Raises:
        ValueError: for a text that does not parse, or that holds for no sizes

    >>> scope = jax.export.SymbolicScope(["n >= 4"])
    >>> (n,), (m,) = (jax.export.symbolic_shape(text, scope=scope) for text in ("n", "2*n"))
    >>> m == 2 * n, n >= 3
    (True, True)
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError("The symbolic constraints should be a sequence of strings. Got "
                             f"{constraints_str!r}: write ({constraints_str!r},)")
        self.known: list[tuple[Terms, bool]] = []   # (terms, are they equal to 0 and not only at least)
        self.replaced: dict[str, Size] = {}         # text of an operation, or variable -> what it is equal to
        self.bounds: dict[Any, tuple[float, float]] = {}      # of sizes' terms, as far as they were needed
        self.limits: dict[str, tuple[float, float]] = {}            # of variables: (low, high)
        # (text, the size that is at least 0, or equal to it if the third)
        self.constraints: list[tuple[str, Size, bool]] = []
        self._where = source_info.describe(source_info.user_frame())
        for text in constraints_str:
            self._constrain(text)

    def _constrain(self, text: str) -> None:
        found = re.fullmatch(r"(.*?)(>=|<=|==)(.*)", text) if isinstance(text, str) else None
        if not found:
            raise ValueError(f"Constraint parsing error: {text!r} must contain one of '==' or '>=' or '<='")
        left, right = (parse(side, self, f"constraint {text!r}") for side in (found[1], found[3]))
        larger, smaller = (right, left) if found[2] == "<=" else (left, right)
        rest = larger - smaller
        equal = found[2] == "=="
        if equal and isinstance(rest, Dimension) and (
                not isinstance(left, Dimension) or len(left.terms) != 1):
            raise ValueError(f"Invalid equality constraint: {text}. The left-hand-side must be of the form "
                             "`term * coefficient`.")
        self.constraints.append((text, rest, equal))
        if not isinstance(rest, Dimension):
            if rest < 0 or rest and equal:
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        low, high = bounds(rest)
        if high < 0 or equal and low > 0:
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        self.known.append((rest.terms, equal))
        if equal and isinstance(left, Dimension) and len(left.terms) == 1:
            (monomial, c), = left.terms.items()
            if c == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                self.replaced[monomial[0][0].text] = right
        if len(rest.variables()) == 1 and not equal:
            self._limit(rest)
        self.bounds.clear()

    def _limit(self, rest: Dimension) -> None:
        """What `rest` >= 0 says of its one variable, if that is alone in it."""
        variable, = rest.variables()
        c = rest.terms.get(((Atom(None, (), variable), 1),), 0)
        if c and rest.terms.keys() <= {((Atom(None, (), variable), 1),), ()}:
            low, high = self.limits.get(variable, (1, math.inf))
            k = rest.terms.get((), 0)
            self.limits[variable] = (max(low, -(k // c)), high) if c > 0 else (low, min(high, k // -c))

    def __repr__(self) -> str:
        said = "".join(f"\n  {text}" for text, *_ in self.constraints)
        return f"{id(self)} created at {self._where}" + (f" with constraints:{said}" if said else "")


# --- texts

_TOKENS = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(\.\.\.|[-+*^(),]))")


class _Parser:
    """Recursive descent: sum = [-] product {+- product}; product = power {* power}; power = item [^ n]."""

    def __init__(self, text: str, scope: SymbolicScope, what: str) -> None:
        self.text, self.scope, self.what, self.at = text, scope, what, 0
        self.advance()

    def advance(self) -> None:
        found = _TOKENS.match(self.text, self.at)
        rest = self.text[self.at:].strip()
        if not found and rest:
            self.fail(f"unexpected {rest[0]!r}")
        self.start = self.at
        self.token = found[0].strip() if found else ""
        self.at = found.end() if found else len(self.text)

    def fail(self, problem: str) -> NoReturn:
        raise ValueError(f"syntax error in {self.what}: {problem}. Parsed {self.text[:self.at]!r}, remaining "
                         f"{self.text[self.at:]!r}; a size is written such as 3, b, 2*b + 1, floordiv(b, "
                         "2), mod(b, 2), max(a, b) or min(a, b).")

    @property
    def found(self) -> str:
        """The token, for messages."""
        return repr(self.token) if self.token else "the end"

    def take(self, token: str) -> None:
        if self.token != token:
            self.fail(f"expected {token!r}, found {self.found}")
        self.advance()

    def accept(self, *tokens: str) -> str | None:
        if self.token in tokens and self.token:
            token = self.token
            self.advance()
            return token
        return None

    def sum(self) -> Any:
        value = -self.product() if self.accept("-") else self.product()
        while sign := self.accept("+", "-"):
            value = value + self.product() if sign == "+" else value - self.product()
        return value

    def product(self) -> Any:
        value = self.power()
        while self.accept("*"):
            value = value * self.power()
        return value

    def power(self) -> Any:
        value = self.item()
        if self.accept("^"):
            if not self.token.isdigit():
                self.fail(f"a power is a number, found {self.token!r}")
            value = value ** int(self.token)
            self.advance()
        return value

    def item(self) -> Any:
        token = self.token
        if token.isdigit():
            self.advance()
            return int(token)
        if token == "-":
            self.advance()
            return -self.item()
        if token == "(":
            self.advance()
            value = self.sum()
            self.take(")")
            return value
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            self.fail(f"expected a size, found {self.found}")
        self.advance()
        if token not in OPERATIONS:
            replaced = self.scope.replaced.get(token)
            return replaced if replaced is not None else made({((Atom(None, (), token), 1),): 1}, self.scope)
        self.take("(")
        left = self.sum()
        self.take(",")
        right = self.sum()
        self.take(")")
        return OPERATIONS[token](left, right)


def parse(text: str, scope: SymbolicScope, what: str = "symbolic dimension") -> Any:
    """The size that a text means, with variables of this scope; `what` is what errors call it.

    Raises:
        ValueError: where it means none
    """
    parser = _Parser(text, scope, what)
    value = parser.sum()
    if parser.token:
        parser.fail(f"unexpected {parser.token!r}")
    return value


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None, like: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """The shape that a text means: `symbolic_shape("b, 2*b + 1, 4")`, a tuple of ints and symbolic sizes.

    Args:
        shape_spec: sizes with commas between them, in parentheses or not: numbers, variables, and what +, -,
            *, ^, floordiv, mod, max and min make of these.  "_" is the size that `like` has there, "..." are
            all that are left; None is "...".
        constraints: what holds of the variables, texts such as "b >= 2"; see `SymbolicScope`
        scope: a SymbolicScope, for shapes that are used in one computation; by default a new one with these
            constraints
        like: a shape, whose sizes are taken for placeholders
    Raises:
        ValueError: for what does not parse, for a number that is not that of `like`, and for no text

    >>> jax.export.symbolic_shape("b, 2*b + 1, 4")
    (b, 2*b + 1, 4)
    >>> jax.export.symbolic_shape("b, ...", like=(8, 28, 28))
    (b, 28, 28)
    """
    if scope is not None and constraints:
        raise ValueError("symbolic_shape: cannot specify both a `scope` and `constraints`; give the "
                         "constraints to the SymbolicScope")
    scope = scope if scope is not None else SymbolicScope(constraints)
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise ValueError("symbolic_shape: polymorphic shape spec should be None or a string, such as 'b, 4'. "
                         f"Found {shape_spec!r}.")
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    parts = [p.strip() for p in split(text)] if text else []
    if parts and not parts[-1]:
        parts.pop()
    what = f"symbolic shape {shape_spec!r}"
    if parts.count("...") > 1 or "..." in parts[:-1]:
        raise ValueError(f"syntax error in {what}: '...' is allowed once, at the end")
    if parts and parts[-1] == "...":
        first = len(parts) - 1
        left = len(_given(like, what, first)) - first
        if left < 0:
            raise ValueError(f"syntax error in {what} in dimension {first}: cannot resolve placeholder "
                             f"'...': it comes after {first} sizes, and the 'like' shape {tuple(like or ())} "
                             "has fewer")
        parts[-1:] = ["_"] * left
    return tuple(_size(part, i, like, scope, what) for i, part in enumerate(parts))


def _size(part: str, i: int, like: Sequence[Any] | None, scope: SymbolicScope, what: str) -> Any:
    if part == "_":
        sizes = _given(like, what, i)
        if i >= len(sizes) or sizes[i] is None:
            raise ValueError(f"syntax error in {what} in dimension {i}: cannot resolve placeholder '_': "
                             f"the 'like' shape {tuple(sizes)} has no size there")
        return sizes[i]
    size = parse(part, scope, f"{what} in dimension {i}")
    known = like[i] if like is not None and i < len(like) else None
    if isinstance(size, int) and (size < 0 or known is not None and known != size):
        raise ValueError(f"syntax error in {what} in dimension {i}: different size {size} for known "
                         f"dimension; like={tuple(like or ())}")
    return size


def _given(like: Sequence[Any] | None, what: str, i: int) -> Sequence[Any]:
    if like is None:
        raise ValueError(f"syntax error in {what} in dimension {i}: spec contains ... but no 'like' shape "
                         "was given, whose sizes '...' and '_' mean")
    return like


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def split(text: str) -> list[str]:
    """The parts of a text between commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


# --- solving

def solve(shapes: Sequence[Iterable[Size]], sizes: Iterable[Iterable[Any]],
          paths: Sequence[str]) -> list[tuple[str, Any, Any, int]]:
    """[(variable, size, rest, factor)], such that each variable of `shapes` is (size - rest) / factor.

    They are in an order in which each rest has only variables that come before.

    Args:
        sizes: something for each of their dimensions
    Raises:
        ValueError: for a variable that no size determines: it must be alone in a size, times a number, beside
            others that are determined already
    """
    wanted = [(d, size) for shape, row in zip(shapes, sizes)
              for d, size in zip(shape, row) if isinstance(d, Dimension)]
    needed = dict.fromkeys(v for d, _ in wanted for v in sorted(d.variables()))
    steps: list[tuple[str, Any, Any, int]] = []
    known: set[str] = set()
    progress = True
    while progress:
        progress = False
        for d, size in wanted:
            missing = d.variables() - known
            if len(missing) == 1:
                variable = missing.pop()
                key = ((Atom(None, (), variable), 1),)
                rest = d - made({key: d.terms.get(key, 0)}, d.scope)
                if key in d.terms and variable not in variables(rest):
                    steps.append((variable, size, rest, d.terms[key]))
                    known.add(variable)
                    progress = True
    if left := [v for v in needed if v not in known]:
        said = ",".join(f"{path}.shape = {shape}" for path, shape in zip(paths, shapes))
        unused = ", ".join(f"'{d}' for dimension size {path}.shape[{j}]" for path, shape in zip(paths, shapes)
                           for j, d in enumerate(shape) if not variables(d) <= known)
        listed = ", ".join(map(repr, left))
        raise ValueError(f"Cannot solve for values of dimension variables {{{listed}}}. We can only solve "
                         "linear uni-variate constraints. Using the following polymorphic shapes "
                         f"specifications: {said}. Unprocessed specifications: {unused}. Each must be alone "
                         "in some size of an argument, times a number, as b is in '2*b + 1'")
    return steps
