"""Where two programs part in their values: operation by operation, not only in what they give."""
from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import is_extended
from ...core.jaxpr import Eqn, Jaxpr, Literal, Printer
from ...core.pytrees import pytree
from ...core.source_info import describe
from ...core.surface.boundary import boundary
from ...inspection.matching import flattened, matched
from ..jit import JitFunction

__all__ = ["Parting", "bisect_numeric"]

@dataclasses.dataclass(frozen=True)
class Parting:
    """The first operation whose results in two programs differ by more than is allowed.

    `first` and `second` are the equations; `wheres` their lines in the user's programs, `scopes` their named
    scopes; `index` is where in the result they differ most, and `values` what they are there, `errors` by how
    much the operands differed, each at most, relative to their largest element, and then the result.
    `compared` operations agree that come before it.
    """
    operation: str
    first: str
    second: str
    wheres: tuple[str, str]
    scopes: tuple[str, str]
    index: tuple[int, ...]
    values: tuple[Any, Any]
    errors: tuple[float, ...]
    compared: int

    def __str__(self) -> str:
        lines = [f"{self.operation} parts at {list(self.index)}: {self.values[0]!s} and {self.values[1]!s}"]
        for text, where, scope in zip((self.first, self.second), self.wheres, self.scopes):
            lines.append(f"  {text}" + f"  at {where}" * bool(where) + f"  in {scope}" * bool(scope))
        given = ", ".join(f"{error:.2g}" for error in self.errors[:-1]) or "none"
        return "\n".join([*lines, f"  relative difference of operands: {given}; of the result: "
                          f"{self.errors[-1]:.2g}; {self.compared} operations before it agree"])


@boundary
def bisect_numeric(f: Callable[..., Any], g: Callable[..., Any], /, *args: Any, rtol: float = 1e-3,
                   atol: float = 1e-5) -> Parting | None:
    """The first operation where two functions part, such as one and what was to be a faster form of it.

    Both are traced and run operation by operation; operations are matched by what they are made of, whatever
    their dtypes, and what has no counterpart is passed over.  All values are kept until the end.  What the
    compiler does when it fuses operations is not seen.

    Args:
        rtol: how far an element may be from that of `f`, relative to it.
        atol: how far it may be besides, absolutely.
    Returns:
        A Parting, or None where no operation parts.
    Raises:
        ValueError: where the results of `f` and `g` are not of one structure and shape.

    >>> def f(x):
    ...     return jnp.exp(jnp.sin(x) * 10)
    >>> def g(x):
    ...     return jnp.exp(jnp.sin(x) * 10.5)
    >>> print(jax.bisect_numeric(f, g, jnp.ones(2)))
    mul parts at [0]: 8.41... and 8.83...
      c:f32[2] = mul b 10.0:f32[]  at ... (f)
      c:f32[2] = mul b 10.5:f32[]  at ... (g)
      relative difference of operands: 0, 0.05; of the result: 0.05; 1 operations before it agree
    """
    for name, allowed in (("rtol", rtol), ("atol", atol)):
        if not isinstance(allowed, numbers.Real) or not allowed >= 0:
            raise ValueError(f"bisect_numeric: {name}={allowed!r} is not a number of at least 0")
    stages = [JitFunction(fun).trace(*args) for fun in (f, g)]
    _check_results(stages[0].out_info, stages[1].out_info)
    leaves = pytree.tree_leaves(args)
    programs = [flattened(stage.jaxpr) for stage in stages]
    values = [_run(program, leaves) for program in programs]
    pairs = [(a, list(zip(a.outvars, b.outvars)), b) for a, b in matched(*programs)]
    compared = 0
    for a, results, b in pairs:
        for x, y in results:
            if is_extended(x.aval.dtype) or is_extended(y.aval.dtype):      # keys are no numbers
                continue
            left, right = np.asarray(values[0](x)), np.asarray(values[1](y))
            worst = _worst(left, right, rtol, atol)
            if worst is None:
                continue
            errors = [_error(values[0](v), values[1](w)) for v, w in zip(a.invars, b.invars)]
            texts = [_text(program, eqn) for program, eqn in zip(programs, (a, b))]
            return Parting(a.primitive.name, texts[0], texts[1], (describe(a.source), describe(b.source)),
                           (a.name_stack, b.name_stack), worst, (left[worst], right[worst]),
                           (*errors, _error(left, right)), compared)
        compared += 1
    return _parting_results(programs, values, rtol, atol, compared)


def _check_results(ours: Any, others: Any) -> None:
    (x, structure), (y, other) = pytree.tree_flatten(ours), pytree.tree_flatten(others)
    if structure != other or any(a.shape != b.shape for a, b in zip(x, y)):
        raise ValueError(f"bisect_numeric: the functions give {ours} and {others}: let them give results of "
                         "one structure and the same shapes")


def _run(program: Jaxpr, leaves: Sequence[Any]) -> Callable[[Any], Any]:
    """A function that gives the value of each of the program's atoms, found operation by operation."""
    env: dict[Any, Any] = dict(zip((*program.constvars, *program.invars), (*program.consts, *leaves)))

    def value(atom: Any) -> Any:
        return atom.val if type(atom) is Literal else env[atom]
    for eqn in program.eqns:
        env.update(zip(eqn.outvars, eqn.bind(map(value, eqn.invars))))
    return value


def _numbers(x: Any) -> np.ndarray:
    """As numbers that can be subtracted: of 64 bits, exact for every narrower dtype."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x if x.dtype.kind in "iu" and x.dtype.itemsize == 8 else x.astype(np.float64)


def _worst(ours: np.ndarray, others: np.ndarray, rtol: float, atol: float) -> tuple[int, ...] | None:
    """Where two arrays differ most, if anywhere by more than is allowed; NaNs are like NaNs alone."""
    if ours.shape != others.shape or not ours.size:
        return None
    x, y = _numbers(ours), _numbers(others)
    with np.errstate(all="ignore"):
        alike = (x == y) | (np.isnan(x) & np.isnan(y))
        over = np.where(alike, 0.0, np.abs(x - y) - (atol + rtol * np.abs(x)))
    over = np.where(np.isnan(over), np.inf, over)
    at = np.unravel_index(int(np.argmax(over)), over.shape)
    return tuple(map(int, at)) if over[at] > 0 else None


def _error(ours: Any, others: Any) -> float:
    """The largest difference, relative to the largest element."""
    x, y = _numbers(ours), _numbers(others)
    if x.shape != y.shape or not x.size:
        return float("nan") if x.size else 0.0
    with np.errstate(all="ignore"):
        difference = np.max(np.where(x == y, 0.0, np.abs(x - y)))
        return float(difference / max(float(np.max(np.abs(x))), np.finfo(np.float64).tiny))


def _text(program: Jaxpr, eqn: Eqn) -> str:
    """An equation with the names that it has in its program."""
    printer = Printer()
    for v in (*program.constvars, *program.invars):
        printer.name(v)
    for each in program.eqns:
        text = printer.head(each)
        if each is eqn:
            break
    return text


def _parting_results(programs: Sequence[Jaxpr], values: Sequence[Callable[[Any], Any]], rtol: float,
                     atol: float, compared: int) -> Parting | None:
    """The first result that parts although no operation with a counterpart does."""
    for i, atoms in enumerate(zip(*[program.outvars for program in programs])):
        left, right = [np.asarray(value(atom)) for value, atom in zip(values, atoms)]
        worst = _worst(left, right, rtol, atol)
        if worst is None:
            continue
        made = [next((e for e in program.eqns if atom in e.outvars), None)
                for program, atom in zip(programs, atoms)]
        texts = [_text(program, e) if e else "an argument or a constant"
                 for program, e in zip(programs, made)]
        wheres = [describe(e.source) if e else "" for e in made]
        scopes = [e.name_stack if e else "" for e in made]
        return Parting(f"result {i}", texts[0], texts[1], (wheres[0], wheres[1]), (scopes[0], scopes[1]),
                       worst, (left[worst], right[worst]), (_error(left, right),), compared)
    return None
