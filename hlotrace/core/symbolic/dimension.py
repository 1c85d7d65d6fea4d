"""Sizes that are not known yet: integer polynomials over variables, with floordiv, mod, max and min.

A `Dimension` is in shapes where an int would be.  Variables are integers of at least 1; what else is known of
them are the constraints of their scope (`core/symbolic/scope.py`).  Comparisons are decided where one answer
holds for all values, by intervals: each term has bounds, and a constraint e >= 0 may be taken off an
expression with a positive factor (as a step of Fourier-Motzkin elimination does: Schrijver, Theory of Linear
and Integer Programming, 12.2).
"""
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

from ..errors import InconclusiveDimensionOperation

DEPTH = 3       # of constraints that one comparison uses

Size: TypeAlias = "int | Dimension"
Monomial: TypeAlias = "tuple[tuple[Atom, int], ...]"    # atoms and their powers, sorted by the atoms' texts
Terms: TypeAlias = dict[Monomial, int]      # monomial -> its coefficient, which is not 0

if TYPE_CHECKING:
    class Scope(Protocol):
        """What comparisons read of a SymbolicScope (core/symbolic/scope.py)."""
        known: list[tuple[Terms, bool]]
        replaced: dict[str, Size]
        bounds: dict[Dimension, tuple[float, float]]
        limits: dict[str, tuple[float, float]]


class Atom:
    """A variable (`op` is None), or an operation on two expressions.  Its text says all of it."""
    __slots__ = ("op", "args", "text")

    def __init__(self, op: str | None, args: tuple[Size, ...], text: str | None = None) -> None:
        self.op, self.args = op, args
        self.text = text or f"{op}({args[0]}, {args[1]})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _order(monomial: Monomial) -> tuple[int, list[tuple[str, int]]]:
    """Monomials of higher degree come first, then those whose last letters come late: `a*b + 2*b + a`."""
    return sum(power for _, power in monomial), [(atom.text, power) for atom, power in monomial]


class Dimension:
    """A size: {monomial: coefficient}, a monomial being a sorted tuple of (Atom, power).

    It is never a constant: see `made`.
    """
    __slots__ = ("terms", "scope", "_hash")
    scope: Any      # a SymbolicScope
    # core/jaxpr_trace.py gives it: (a Dimension, its dtype or None) -> an array of rank 0
    as_value: Any = None

    def __init__(self, terms: Terms, scope: Scope) -> None:
        self.terms, self.scope = terms, scope
        self._hash = hash(frozenset(terms.items()))

    # --- arithmetic

    def __add__(self, other: Any) -> Any:
        if _terms(other, self) is None:
            return self._as_number(operator.add, other)
        other = _terms(other, self)
        found = dict(self.terms)
        for monomial, c in other.items():
            found[monomial] = found.get(monomial, 0) + c
        return made(found, self.scope)

    def __mul__(self, other: Any) -> Any:
        if _terms(other, self) is None:
            return self._as_number(operator.mul, other)
        other = _terms(other, self)
        found: Terms = {}
        for (m, c), (n, d) in itertools.product(self.terms.items(), other.items()):
            powers = dict(m)
            for atom, power in n:
                powers[atom] = powers.get(atom, 0) + power
            key = tuple(sorted(powers.items(), key=lambda pair: pair[0].text))
            found[key] = found.get(key, 0) + c * d
        return made(found, self.scope)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Dimension:
        return self

    def __sub__(self, other: Any) -> Any:
        return self._as_number(operator.sub, other) if _terms(other, self) is None else self + -1 * other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def _as_number(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        """Beside a float it is a number; arrays know by themselves what to do with it."""
        return operation(self.as_value(), other) if isinstance(other, (float, complex)) else NotImplemented

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Dimension):
            return self.as_value() ** power.as_value()
        if isinstance(power, (float, int)) and (power < 0 or power != int(power)):
            kind = "negative" if power < 0 else "non-integer"
            raise ValueError(f"Symbolic dimension cannot be raised to {kind} powers: '{self}' ** '{power}'")
        return math.prod([self] * power) if type(power) is int else NotImplemented

    def __rpow__(self, base: Any) -> Any:
        return base ** self.as_value()

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(self, other)[1]

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(other, self)[0]

    def __rmod__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(other, self)[1]

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if _terms(other, self) is None else divide(other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.as_value() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_value()

    def __jax_array__(self) -> Any:
        return self.as_value()

    # --- comparison

    def __eq__(self, other: object) -> bool:
        """Are they equal for all values?"""
        if isinstance(other, Dimension):
            return self.scope is other.scope and (self.terms == other.terms or _always_zero(self - other))
        return type(other) is int and _always_zero(self - other)

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, ">=", 1, 0)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, ">", 1, -1)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "<=", -1, 0)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "<", -1, -1)

    def _compare(self, other: Any, sign: str, factor: int, offset: int) -> Any:
        """Is factor * (self - other) + offset >= 0?"""
        if _terms(other, self, sign) is None:
            return NotImplemented
        low, high = bounds((self - other) * factor + offset)
        if low >= 0 or high < 0:
            return low >= 0
        using = f".\nUsing symbolic scope {self.scope}\nIt" if self.scope.constraints else ": it"
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive{using} holds for some "
            "values and not for others. Say which it is when the shape is made: symbolic_shape(..., "
            f"constraints=['{self} {sign[0]}= {other - factor * offset}']).")

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. What happens here "
            "depends on its value, which is known when the exported function is called; where a number is "
            "meant, use it in an array operation.")

    # --- words

    def __str__(self) -> str:
        parts: list[str] = []
        for monomial in sorted(self.terms, key=_order, reverse=True):
            c = self.terms[monomial]
            factors = [atom.text if power == 1 else f"{atom.text}^{power}" for atom, power in monomial]
            body = "*".join([str(abs(c)), *factors] if abs(c) != 1 or not factors else factors)
            sign = "-" if c < 0 else "+" * bool(parts)
            parts.append(f"{sign} {body}" if sign else body)
        return " ".join(parts)

    __repr__ = __str__

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        found = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                found.update([atom.text] if atom.op is None else [n for a in atom.args for n in variables(a)])
        return found

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """It with an int or a Dimension in place of each variable."""
        return sum(c * math.prod(_atom_value(atom, values) ** power for atom, power in monomial)
                   for monomial, c in self.terms.items())


def _atom_value(atom: Atom, values: Mapping[str, Any]) -> Any:
    if atom.op is None:
        return values[atom.text]
    return OPERATIONS[atom.op](*(evaluate(a, values) for a in atom.args))


def made(terms: Terms, scope: Scope) -> Size:
    """The int or Dimension of these terms."""
    terms = {m: c for m, c in terms.items() if c}
    if not terms:
        return 0
    return terms[()] if terms.keys() == {()} else Dimension(terms, scope)


def _terms(value: Any, beside: Dimension, compared: str = "") -> Terms | None:
    """The terms of a size beside another one, with which it is `compared` by a sign; None for what is none.
    ValueError where they are of two scopes."""
    if isinstance(value, Dimension):
        if value.scope is not beside.scope:
            doing = "for linear combination"
            if compared:
                doing = f"when comparing '{beside}' {compared} '{value}'"
            raise ValueError(f"Invalid mixing of symbolic scopes {doing}.\nExpected  scope {beside.scope}\n"
                             f"and found for '{value}' (unknown) scope {value.scope}\nMake both shapes with "
                             "one scope=SymbolicScope().")
        return value.terms
    try:
        return {(): operator.index(value)}
    except TypeError:
        return None


def as_size(d: Any) -> Size:
    """A size that a user gave: an int or a Dimension.  TypeError for another value."""
    return d if type(d) is Dimension else operator.index(d)


def largest(shape: Iterable[Size]) -> int:
    """The largest of the sizes that are known."""
    return max([d for d in shape if not isinstance(d, Dimension)], default=0)


def surely(d: Size, low: float = -math.inf, high: float = math.inf) -> bool:
    """Is it known that a size is between these?"""
    least, most = bounds(d)
    return low <= least and most <= high


def may_be_at_most(a: Size, b: Size) -> bool:
    """Is there a value for which a size, or a place in one, is at most another?"""
    return a <= b if type(a) is int and type(b) is int else bounds(b - a)[1] >= 0


def variables(d: Size) -> set[str]:
    return d.variables() if isinstance(d, Dimension) else set()


def evaluate(d: Size, values: Mapping[str, Any]) -> Any:
    return d.evaluate(values) if isinstance(d, Dimension) else d


def is_symbolic_dim(p: object) -> TypeGuard[Dimension]:
    """Is a size symbolic?

    >>> [jax.export.is_symbolic_dim(d) for d in jax.export.symbolic_shape("b, 4")]
    [True, False]
    """
    return isinstance(p, Dimension)


def is_constant_shape(shape: Iterable[Size]) -> bool:
    """Are all sizes of a shape ints?"""
    return not any(isinstance(d, Dimension) for d in shape)


# --- division

def divide(a: Any, b: Any) -> tuple[Any, Any]:
    """(floordiv(a, b), mod(a, b)): what divides without rest is taken out, the rest is an operation."""
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError(f"division of the symbolic dimension '{a}' by zero")
    scope = a.scope if isinstance(a, Dimension) else b.scope
    lead, c = max((b.terms if isinstance(b, Dimension) else {(): int(b)}).items(),
                  key=lambda term: _order(term[0]))
    quotient, rest, tried = 0, a, set()
    while isinstance(rest, Dimension):
        step = next(((m, k, over) for m, k in sorted(rest.terms.items(), key=lambda term: _order(term[0]),
                                                     reverse=True) if m not in tried and k % c == 0
                     and (over := _over(m, lead)) is not None), None)
        if step is None:
            break
        tried.add(step[0])
        part = made({step[2]: step[1] // c}, scope)
        quotient, rest = quotient + part, rest - part * b
    if isinstance(b, Dimension) and len(b.terms) > 1 and rest != 0:
        quotient, rest = 0, a       # long division by a sum says nothing unless it leaves no rest
    if not isinstance(rest, Dimension) and not isinstance(b, Dimension):
        return quotient + rest // b, rest % b
    if not isinstance(rest, Dimension) and rest == 0:
        return quotient, 0
    low, high = bounds(rest)
    if low >= 0 and high < bounds(b)[0]:
        return quotient, rest
    floor, mod = (_operation(op, rest, b, scope) for op in ("floordiv", "mod"))
    return quotient + floor, mod


def _operation(op: str, a: Size, b: Size, scope: Scope) -> Size:
    """An operation that cannot be done, or what a constraint says that it is."""
    atom = Atom(op, (a, b))
    known = scope.replaced.get(atom.text)
    return made({((atom, 1),): 1}, scope) if known is None else known


def _over(m: Monomial, n: Monomial) -> Monomial | None:
    """The monomial m / n, or None."""
    powers = dict(m)
    for atom, power in n:
        powers[atom] = powers.get(atom, 0) - power
    if any(p < 0 for p in powers.values()):
        return None
    return tuple((atom, p) for atom, p in powers.items() if p)


def _chosen(op: str, a: Any, b: Any) -> Any:
    """max or min of two sizes."""
    if not isinstance(a, Dimension) and not isinstance(b, Dimension):
        return max(a, b) if op == "max" else min(a, b)
    low, high = bounds(a - b)
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (op == "max") else b
    if not isinstance(a, Dimension):
        a, b = b, a
    return _operation(op, a, b, a.scope)


def max_dim(a: Any, b: Any) -> Any:
    """The larger of two sizes, which may be symbolic."""
    if type(a) is int and type(b) is int:
        return a if a > b else b
    return _chosen("max", a, b)


def min_dim(a: Any, b: Any) -> Any:
    """The smaller of two sizes, which may be symbolic."""
    if type(a) is int and type(b) is int:
        return a if a < b else b
    return _chosen("min", a, b)


OPERATIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": max_dim, "min": min_dim}


# --- bounds

def symbolic_dim_bounds(dimension: Size) -> tuple[float, float]:
    """(low, high), between which a size is for all values of its variables; infinite where nothing is known.

    >>> n, m = jax.export.symbolic_shape("n, m", constraints=["n >= 8", "m <= 3"])
    >>> jax.export.symbolic_dim_bounds(2 * n - m)
    (13, inf)
    """
    if not isinstance(dimension, Dimension):
        operator.index(dimension)
    return bounds(dimension)


def bounds(d: Size) -> tuple[float, float]:
    if not isinstance(d, Dimension):
        return d, d
    known, key = d.scope.bounds, frozenset(d.terms.items())     # where hashes collide, == would ask again
    if key not in known:
        known[key] = _low(d.terms, d.scope, DEPTH), -_low((-d).terms, d.scope, DEPTH)
    return known[key]


def _always_zero(d: Size) -> bool:
    return d == 0 if not isinstance(d, Dimension) else bounds(d) == (0, 0)


def _low(terms: Terms, scope: Scope, depth: int) -> float:
    """A lower bound of a sum of terms, an integer or -infinity."""
    best = sum(c * _monomial_bounds(m, scope)[c < 0] for m, c in terms.items())
    if depth:
        facts = [(fact, False) for m in terms for atom, _ in m for fact in _facts(atom)]
        for known, equal in (*scope.known, *facts):
            lead = max((m for m in known if m), key=_order)
            for m in known if len(known) <= 3 else (lead,):
                here, there = terms.get(m, 0), known[m]
                if m and here and (here * there > 0 or equal):
                    # terms * scale - known * factor has no m; as all values are integers, bounds round up
                    scale, factor = abs(there), here if there > 0 else -here
                    rest = {n: terms.get(n, 0) * scale - known.get(n, 0) * factor for n in {**terms, **known}}
                    low = _low({n: c for n, c in rest.items() if c}, scope, depth - 1)
                    best = max(best, low if math.isinf(low) else -(-low // scale))
    return best


def _monomial_bounds(monomial: Monomial, scope: Scope) -> tuple[float, float]:
    low: float = 1
    high: float = 1
    for atom, power in monomial:
        for _ in range(power):
            products = [0 if 0 in (x, y) else x * y for x in (low, high) for y in _atom_bounds(atom, scope)]
            low, high = min(products), max(products)
        if power % 2 == 0:
            low = max(low, 0)
    return low, high


def _atom_bounds(atom: Atom, scope: Scope) -> tuple[float, float]:
    if atom.op is None:
        return scope.limits.get(atom.text, (1, math.inf))
    (low, high), (low2, high2) = map(bounds, atom.args)
    if atom.op == "mod":
        if low2 <= 0:
            return min(low2 + 1, 0), max(high2 - 1, 0)
        return 0, min(high2 - 1, high if low >= 0 else math.inf)
    if atom.op == "floordiv":
        if low2 <= 0:
            return -math.inf, math.inf
        ends = [_quotient(x, y) for x in (low, high) for y in (low2, high2)]
        return min(ends), max(ends)
    choose = max if atom.op == "max" else min
    return choose(low, low2), choose(high, high2)


def _quotient(x: float, y: float) -> float:
    if math.isinf(y) and x < 0:
        return -1
    if math.isinf(x):
        return x
    return 0 if math.isinf(y) else x // y


def _facts(atom: Atom) -> list[Terms]:
    """Expressions, as terms, that an operation makes at least 0: floordiv(e, 2) is at most e / 2, ..."""
    if atom.op is None:
        return []
    scope = next(a.scope for a in atom.args if isinstance(a, Dimension))
    this, (a, b) = made({((atom, 1),): 1}, scope), atom.args
    found: tuple[Size, ...]
    match atom.op:
        case "floordiv" if bounds(b)[0] > 0:
            found = a - b * this, b * this + scope.replaced.get(f"mod({a}, {b})", b - 1) - a
        case "mod" if bounds(b)[0] > 0:
            found = (b - 1 - this, *((a - this,) if bounds(a)[0] >= 0 else ()))
        case "max":
            found = this - a, this - b
        case "min":
            found = a - this, b - this
        case _:
            found = ()
    return [f.terms for f in found if isinstance(f, Dimension)]
