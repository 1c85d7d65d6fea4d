"""Outlining: stretches of equations that a program repeats become one function, called in place of each.

The layers of an unrolled network repeat, forward and backward, without a word from the user.  XLA would
compile every copy; here each is found, checked to have the same dataflow, written once, and called.

A program is seen as a string of tokens, one an equation; equations of equal primitive, parameters and types
have equal tokens.  Around every short run of tokens that occurs more than once a window is grown as far as
all its occurrences agree.  Where the windows touch (layers one after the other) they may be cut at any
phase: the one that the fewest bytes cross is taken.
"""
from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ..core.config import joined
from ..core.jaxpr import Eqn, Jaxpr, Literal, Var, sub_jaxprs
from ..core.programs import cached, constant_key
from ..primitives.arrays.elementwise import select_n_p
from ..primitives.arrays.shape import broadcast_in_dim_p
from ..primitives.programs.calls import jit_p

SMALLEST_PROGRAM = 300      # equations; below, compiling is quick anyway
SMALLEST_BLOCK = 24         # equations; shorter ones are joined where they follow each other
JOINED_BLOCK = 120          # equations that blocks so joined have
LEAST_SAVED = 200           # equations that a block must save: compiling one apart costs as much as a hundred
MANY_CROSS = 16             # values in and out of a block of elementwise work, and more than a fourth of it
FUSED = 1500                # equations of elementwise work that XLA had better see whole
LONGEST_CHAIN = 400         # XLA's CPU backend takes superlinear time over a chain of elementwise operations
_BARRIER = -1
_ROUNDS = 6


Stretch = tuple[list[int], int]         # starts, length
Wires = tuple[int | None, ...]          # for each operand, which result of the stretch it is
Group = list[tuple[int, list[Any]]]     # (start, atoms from outside) of stretches that are wired alike
# start and end of a stretch, the program that it becomes, its operands and results
Call = tuple[int, int, Jaxpr, Sequence[Any], list[Any]]


@dataclasses.dataclass(frozen=True)
class Block:
    """A function that outlining made: its program, how often it is called."""
    jaxpr: Jaxpr
    calls: int

    @property
    def saved(self) -> int:
        return (self.calls - 1) * len(self.jaxpr.eqns)

    def __str__(self) -> str:
        return (f"{self.jaxpr.name}: {self.calls} x {len(self.jaxpr.eqns)} equations, "
                f"{len(self.jaxpr.invars)} in, {len(self.jaxpr.outvars)} out, saves {self.saved}")


def outline(jaxpr: Jaxpr, thin: bool = True) -> tuple[Jaxpr, list[Block]]:
    """(the program with its repeated stretches as calls, the list of Blocks); linear in its size,
    deterministic.  `thin`: do blocks compute again what is cheap, instead of handing it over?"""
    flat, called = flatten(jaxpr)
    if len(flat.eqns) + sum(b.saved for b in called) < SMALLEST_PROGRAM:
        return jaxpr, []
    blocks = [b for b in called if len(b.jaxpr.eqns) >= SMALLEST_BLOCK and b.saved >= LEAST_SAVED]
    calls, used = [], _last_uses(flat)

    def add(wires: Wires, group: Group, length: int, name: str) -> None:
        block, made = _block(flat, wires, group, length, used, f"{name}_{len(blocks)}")
        if not _better_fused(block, len(group)):
            blocks.append(Block(block, len(group)))
            calls.extend(made)
    if len(flat.eqns) >= SMALLEST_PROGRAM:
        for starts, length in _Search(flat).stretches():
            for wires, group in _same_dataflow(flat, starts, length):
                add(wires, group, length, "repeated")
        for start, length in _long_chains(flat, calls):
            wires, outside = _wiring(flat, start, length)
            add(wires, [(start, outside)], length, "chain")
    if not blocks:
        return jaxpr, []
    flat = _with_calls(flat, calls)
    if not thin:
        return flat, blocks
    from .handed_over import hand_over_little  # few programs have blocks
    flat, became = hand_over_little(flat, [b.jaxpr for b in blocks])
    return flat, [Block(became[b.jaxpr], b.calls) for b in blocks]


def _better_fused(block: Jaxpr, calls: int) -> bool:
    """Is it elementwise work with many values in and out, as in the gradient of an unrolled loop?

    XLA makes each such value by a kernel of its own, and without the block hardly any.
    """
    return (len(block.invars) + len(block.outvars) > max(MANY_CROSS, len(block.eqns) / 4) and
            calls * len(block.eqns) < FUSED and
            all(eqn.primitive.elementwise or eqn.primitive in (select_n_p, broadcast_in_dim_p)
                for eqn in block.eqns))


def joined_rows(jaxpr: Jaxpr, blocks: Set[Jaxpr], most: int) -> tuple[Jaxpr, set[Jaxpr]]:
    """(the program with rows of more than `most` calls of one of `blocks` as that many calls of more work,
    the programs of these)."""
    used, calls, at = _last_uses(jaxpr), [], 0
    programs: Any = (eqn.params["jaxpr"] if eqn.primitive is jit_p else None for eqn in jaxpr.eqns)
    for block, row in itertools.groupby(programs):
        end = at + len([*row])
        each = -(-(end - at) // most) if block in blocks else 1
        groups: dict[Any, Group] = {}
        for start in range(at, end - 1, each) if each > 1 else ():
            length = min(each, end - start)
            wires, outside = _wiring(jaxpr, start, length)
            groups.setdefault((wires, length), []).append((start, outside))
        for (wires, length), group in groups.items():
            calls += _block(jaxpr, wires, group, length, used, f"{block.name}_x{length}")[1]
        at = end
    return _with_calls(jaxpr, calls), {block for _, _, block, *_ in calls}


def flatten(jaxpr: Jaxpr) -> tuple[Jaxpr, list[Block]]:
    """(the program with the jit functions that are called once written out, Blocks of those called again)."""
    counts: dict[Jaxpr, int] = {}

    def count(jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            if eqn.primitive is jit_p:
                inner = eqn.params["jaxpr"]
                counts[inner] = counts.get(inner, 0) + 1
                if counts[inner] == 1:
                    count(inner)
    count(jaxpr)
    if not counts:
        return jaxpr, []

    flat = inlined(jaxpr, lambda eqn: (
        eqn.primitive is jit_p and counts[eqn.params["jaxpr"]] == 1 and not eqn.effects))
    sites = collections.Counter(
        e.params["jaxpr"] for e in flat.eqns if e.primitive is jit_p and not e.effects)
    return flat, [Block(inner, n) for inner, n in sites.items() if n > 1]


def inlined(jaxpr: Jaxpr, opened: Callable[[Eqn], bool]) -> Jaxpr:
    """The program with those of its calls that are `opened` written out, at any depth."""
    def write(jaxpr: Jaxpr, operands: Sequence[Any], path: str) -> list[Any]:
        env = dict(zip((*jaxpr.constvars, *jaxpr.invars), operands))
        for eqn in jaxpr.eqns:
            invars = [env[v] if type(v) is Var else v for v in eqn.invars]
            stack = joined(path, eqn.name_stack)
            if opened(eqn):
                inner = eqn.params["jaxpr"]
                written = write(inner, invars, f"{stack}/jit({inner.name})".lstrip("/"))
            else:
                # programs without dead code share what is alive
                written = [Var(v.aval) for v in eqn.outvars]
                eqns.append(Eqn(eqn.primitive, invars, written, eqn.params, eqn.effects, eqn.source, stack))
            env.update(zip(eqn.outvars, written))
        return [env[v] if type(v) is Var else v for v in jaxpr.outvars]
    eqns: list[Eqn] = []
    outvars = write(jaxpr, (*jaxpr.constvars, *jaxpr.invars), "")
    return jaxpr.replace(eqns=eqns, outvars=outvars)


# --- tokens ---------------------------------------------------------------------------------------

def tokens_of(eqns: Sequence[Eqn]) -> list[int]:
    """A number for each equation, equal for equations that do the same to operands of the same types."""
    numbers: dict[Any, int] = {}
    by_identity: dict[int, int] = {}
    by_params: dict[Any, int] = {}
    tokens = []
    for eqn in eqns:
        if eqn.effects:
            tokens.append(_BARRIER)
            continue
        params: Any = eqn.params        # from here on the number of the first that are equal
        if params:
            known = by_identity.get(id(params))      # spliced equations share their parameters
            if known is None:
                try:
                    known = by_params.setdefault(_params_key(params), len(by_params))
                except TypeError:        # a parameter that cannot be compared
                    known = _BARRIER
                by_identity[id(params)] = known
            params = known
        if params == _BARRIER:
            tokens.append(_BARRIER)
            continue
        key = (eqn.primitive, params if eqn.params else None,
               *[_literal_kind(v) if type(v) is Literal else v.aval for v in eqn.invars], None,
               *[v.aval for v in eqn.outvars])
        tokens.append(numbers.setdefault(key, len(numbers)))
    return tokens


def _literal_kind(literal: Literal) -> Any:
    """Integers may differ, such as the numbers of layers: those that do become operands."""
    aval = literal.aval
    return aval if not aval.shape and aval.dtype.kind in "iu" else _literal_key(literal)


def _literal_key(literal: Literal) -> Any:
    try:
        return literal.key
    except AttributeError:
        key = constant_key(literal.val)
        if key is None:
            value = np.asarray(literal.val)
            key = value.dtype, value.tobytes()
        literal.key = literal.aval, key
        return literal.key


def _params_key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    if not any(sub_jaxprs(params)):
        return tuple(params.items())
    # what a program computes counts, not which object it is; rules of custom derivatives have done their work
    return tuple((name, _comparable(v)) for name, v in params.items() if not callable(v))


def _comparable(value: Any) -> Any:
    """A parameter with the structure of programs in place of programs."""
    if type(value) is tuple:
        return tuple(structure(x) if type(x) is Jaxpr else x for x in value)
    return structure(value) if type(value) is Jaxpr else value


@cached
def structure(jaxpr: Jaxpr) -> Any:
    """A hashable value that is equal for programs that differ only in the identity of their variables."""
    numbers = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}

    def atom(v: Any) -> Any:
        return _literal_key(v) if type(v) is Literal else numbers[v]
    lines: list[tuple[Any, ...]] = [tuple(v.aval for v in numbers)]
    for eqn in jaxpr.eqns:
        if eqn.effects:
            return id(jaxpr)
        operands = tuple(atom(v) for v in eqn.invars)
        for v in eqn.outvars:
            numbers[v] = len(numbers)
        lines.append((eqn.primitive, _params_key(eqn.params), operands, tuple(v.aval for v in eqn.outvars)))
    return tuple(lines), tuple(atom(v) for v in jaxpr.outvars)


# --- stretches that occur more than once ----------------------------------------------------------

class _Search:
    """Finds (starts, length) of disjoint stretches with equal tokens, those that save most first."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.tokens = np.array(tokens_of(jaxpr.eqns))
        self.free = self.tokens != _BARRIER

    def stretches(self) -> list[Stretch]:
        chosen = []
        for _ in range(_ROUNDS):
            candidates = self.candidates()
            taken = []
            for starts, length in candidates:
                whole = [s for s in starts if self.free[s:s + length].all()]
                if len(whole) * 2 > len(starts) and (len(whole) - 1) * length >= LEAST_SAVED:
                    for s in whole:
                        self.free[s:s + length] = False
                    taken.append((whole, length))
            chosen += taken
            if not taken:
                break
        return chosen

    def candidates(self) -> list[Stretch]:
        """Grown windows, most savings first, by one anchor for each window."""
        edges = np.flatnonzero(np.diff(self.free, prepend=False, append=False))
        for start, end in zip(edges[::2], edges[1::2]):
            if end - start < SMALLEST_BLOCK:
                self.free[start:end] = False
        self.tokens[~self.free] = _BARRIER
        covered = np.zeros(len(self.tokens), bool)
        found = []
        # what comes once in each long period first: what a layer has many of says less
        for positions in sorted(self.anchors(), key=lambda at: (-(at[-1] - at[0]) // (len(at) - 1), at[0])):
            known = 2 * np.count_nonzero(covered[positions]) > len(positions)
            if known or positions[-1] - positions[0] < LEAST_SAVED:
                continue
            starts, length = self.grow(positions)
            if length >= SMALLEST_BLOCK and (len(starts) - 1) * length >= LEAST_SAVED:
                found.append((starts, length))
                for s in starts:
                    covered[s:s + length] = True
        return sorted(found, key=lambda item: (-(len(item[0]) - 1) * item[1], item[0][0]))

    def anchors(self) -> list[np.ndarray]:
        """For each run of SMALLEST_BLOCK tokens that may save enough, all places at which it begins."""
        # and a barrier after each stretch
        kept = np.flatnonzero(self.free | np.append(False, self.free[:-1]))
        runs = _longer(self.tokens[kept], 1, SMALLEST_BLOCK)
        twice = _longer(runs, SMALLEST_BLOCK, LEAST_SAVED)
        before = np.append(0, np.cumsum(_often(twice, 2)))      # whatever comes only twice must be that long
        at = np.arange(len(runs))
        earliest = np.maximum(at - LEAST_SAVED + SMALLEST_BLOCK, 0)
        inside = before[np.minimum(at + 1, len(twice))] > before[earliest]
        at = np.flatnonzero(_often(runs, 3) | inside & (runs != _BARRIER))
        at = at[np.argsort(runs[at], kind="stable")]
        return [group for group in np.split(kept[at], np.flatnonzero(np.diff(runs[at])) + 1)
                if len(group) > 1]

    def grow(self, positions: np.ndarray) -> Stretch:
        """The widest window around these places on whose tokens (almost) all of them agree."""
        for choosy in (False, True):        # leave places out only where all of them together fall short
            right, kept = self.extent(positions, 1, choosy)
            left, kept = self.extent(kept, -1, choosy)
            length = left + right + 1
            gap = int(np.diff(kept).min())
            if length >= gap:
                break
        positions = kept
        if length < gap:
            return [int(p) - left for p in positions], length
        # the windows touch: any phase will do
        low, high = -left, right + 1 - gap
        shift = self.best_phase(int(positions[len(positions) // 2]), low, high, gap)
        starts = [int(p) + shift for p in positions]
        join = -(-JOINED_BLOCK // gap) if gap < SMALLEST_BLOCK else 1
        if join > 1:
            starts = self.joined(starts, gap, join)
        return starts, gap * join

    def joined(self, starts: list[int], gap: int, join: int) -> list[int]:
        """Every `join`-th start of the runs of windows that follow each other, the ends of runs filled up."""
        def same(s: int) -> bool:
            return np.array_equal(self.tokens[s:s + gap], self.tokens[starts[0]:starts[0] + gap])
        found: list[int] = []
        i = end = 0
        while i < len(starts):
            first = last = starts[i]
            while first - gap >= end and same(first - gap):
                first -= gap
            while i < len(starts) and starts[i] == last:
                i += 1
                while (i == len(starts) or starts[i] >= last + 2 * gap) and same(last + gap):
                    last += gap
                last += gap
            end = last
            found += range(first, end - join * gap + 1, join * gap)
        return found

    def extent(self, positions: np.ndarray, step: int, choosy: bool) -> tuple[int, np.ndarray]:
        """(how far all places agree in one direction, the places); if `choosy`, without a few if that saves
        more."""
        n = len(self.tokens)
        limit = min(2 * int(np.diff(positions).min()), n)
        around = positions[:, None] + step * np.arange(1, limit + 1)
        around = np.where((around >= 0) & (around < n), self.tokens[np.clip(around, 0, n - 1)], _BARRIER)
        reach = 0
        while True:
            agree = ((around[:, reach:] == around[0, reach:]) & (around[0, reach:] != _BARRIER)).all(axis=0)
            reach += len(agree) if agree.all() else int(agree.argmin())
            if reach == limit or not choosy:
                break
            here = around[:, reach]
            values, counts = np.unique(here[here != _BARRIER], return_counts=True)
            most = counts.max(initial=0)
            if most < 2 or (most - 1) * (reach + 2) < (len(positions) - 1) * (reach + 1):
                break
            kept = here == values[counts.argmax()]
            positions, around = positions[kept], around[kept]
        return reach, positions

    def best_phase(self, place: int, low: int, high: int, gap: int) -> int:
        """The shift in [low, high] at which the fewest bytes that live under two periods cross the cut."""
        if low >= high:
            return low
        begin, end = max(place + low - 2 * gap, 0), min(place + high + 1, len(self.jaxpr.eqns))
        born, crossing = {}, np.zeros(end - begin + 1, np.int64)
        last = {}
        for i in range(begin, min(end + 2 * gap, len(self.jaxpr.eqns))):
            eqn = self.jaxpr.eqns[i]
            for v in eqn.invars:
                if type(v) is Var and v in born:
                    last[v] = i
            if i < end:
                for v in eqn.outvars:
                    born[v] = i
        for v, start in born.items():
            until = last.get(v, start)
            if until - start < 2 * gap:
                crossing[start + 1 - begin:until + 1 - begin] += v.aval.size * 4 + 64
        at = place - begin
        costs = crossing[at + low:at + high + 1]
        return low + int(costs.argmin())


def _longer(numbers: np.ndarray, have: int, want: int) -> np.ndarray:
    """From a number for each run of `have` tokens, equal for equal ones, those of each run of `want`."""
    while have < want:
        step = min(have, want - have)
        a, b = numbers[:-step], numbers[step:]
        pairs = np.where((a == _BARRIER) | (b == _BARRIER), _BARRIER, a * (len(numbers) + 1) + b)
        values, numbers = np.unique(pairs, return_inverse=True)
        numbers = numbers + (_BARRIER if _BARRIER in values[:1] else 0)
        have += step
    return numbers


def _often(numbers: np.ndarray, least: int) -> np.ndarray:
    """Is a run one of at least so many?"""
    return (numbers != _BARRIER) & (np.bincount(numbers + 1, minlength=1)[numbers + 1] >= least)


# --- dataflow -------------------------------------------------------------------------------------

def _last_uses(jaxpr: Jaxpr) -> dict[Any, int]:
    """Var -> the position of its last use; outputs of the program are used at its end."""
    used = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for v in eqn.invars:
            used[v] = i
    used.update(dict.fromkeys(jaxpr.outvars, len(jaxpr.eqns)))
    return used


def _wiring(jaxpr: Jaxpr, start: int, length: int) -> tuple[Wires, list[Any]]:
    """(which result of the stretch each operand in it is, or None; the atoms that come from outside)."""
    atoms: list[Any] = []
    made: list[Any] = []
    for eqn in jaxpr.eqns[start:start + length]:
        atoms += eqn.invars
        made += eqn.outvars
    wires = tuple(map(dict(zip(made, range(len(made)))).get, atoms))
    return wires, [v for v, wire in zip(atoms, wires) if wire is None]


def _same_dataflow(jaxpr: Jaxpr, starts: Sequence[int], length: int) -> list[tuple[Wires, Group]]:
    """(wiring, [(start, atoms from outside), ...]) for the stretches that are wired alike."""
    groups: dict[Wires, Group] = {}
    for s in starts:
        wires, outside = _wiring(jaxpr, s, length)
        groups.setdefault(wires, []).append((s, outside))
    return [(wires, group) for wires, group in groups.items() if (len(group) - 1) * length >= LEAST_SAVED]


def _block(jaxpr: Jaxpr, wires: Wires, group: Group, length: int, used: dict[Any, int],
           name: str) -> tuple[Jaxpr, list[Call]]:
    """(the program of the stretches in `group`, for each of them (start, end, block, operands, results))."""
    columns: dict[tuple[Any, ...], Var] = {}    # operands that are one atom in each stretch are one input
    slots: list[Any] = []
    for column in zip(*[outside for _, outside in group]):
        if type(column[0]) is Literal and (len(column) == 1 or len(
                {_literal_key(v) if type(v) is Literal else v for v in column}) == 1):
            slots.append(column[0])
        else:
            slots.append(columns.setdefault(column, Var(column[0].aval)))
    next_wire, next_slot = iter(wires), iter(slots)
    first = group[0][0]
    made: list[Var] = []
    eqns = []
    for eqn in jaxpr.eqns[first:first + length]:
        invars = [next(next_slot) if (wire := next(next_wire)) is None else made[wire] for v in eqn.invars]
        outvars = [Var(v.aval) for v in eqn.outvars]
        made += outvars
        eqns.append(Eqn(eqn.primitive, invars, outvars, eqn.params, (), eqn.source, eqn.name_stack))
    results = [[v for e in jaxpr.eqns[s:s + length] for v in e.outvars] for s, _ in group]
    wanted = sorted({k for produced, (s, _) in zip(results, group)
                     for k, v in enumerate(produced) if used.get(v, -1) >= s + length})
    block = Jaxpr((), (), columns.values(), eqns, [made[k] for k in wanted], name)
    rows = zip(group, zip(*columns) if columns else [()] * len(group), results)
    return block, [(s, s + length, block, operands, [produced[k] for k in wanted])
                   for (s, _), operands, produced in rows]


def _with_calls(jaxpr: Jaxpr, calls: list[Call]) -> Jaxpr:
    eqns: list[Eqn] = []
    at = 0
    for start, end, block, operands, results in sorted(calls, key=lambda call: call[0]):
        eqns += jaxpr.eqns[at:start]
        first = jaxpr.eqns[start]
        eqns.append(Eqn(jit_p, list(operands), list(results), {"jaxpr": block, "donated": ()}, (),
                        first.source, first.name_stack))
        at = end
    return jaxpr.replace(eqns=[*eqns, *jaxpr.eqns[at:]])


# --- long chains of elementwise operations --------------------------------------------------------

def _long_chains(jaxpr: Jaxpr, calls: list[Call]) -> list[tuple[int, int]]:
    """(start, length) of pieces of those runs of elementwise equations in which one feeds another too many
    times."""
    taken = np.zeros(len(jaxpr.eqns) + 1, bool)
    for start, end, *_ in calls:
        taken[start:end] = True
    pieces = []
    depth: dict[Any, int] = {}
    start = deepest = 0
    eqns: list[Any] = [*jaxpr.eqns, None]
    for i, eqn in enumerate(eqns):
        fusible = eqn is not None and not taken[i] and not eqn.effects and eqn.primitive.elementwise
        if fusible:
            level = 1 + max((depth.get(v, 0) for v in eqn.invars if type(v) is Var), default=0)
            depth.update((v, level) for v in eqn.outvars)
            deepest = max(deepest, level)
        if not fusible or i - start >= LONGEST_CHAIN and deepest >= LONGEST_CHAIN:
            if deepest >= LONGEST_CHAIN:
                pieces.append((start, i - start))
            depth, start, deepest = {}, i + (not fusible), 0
    return pieces
