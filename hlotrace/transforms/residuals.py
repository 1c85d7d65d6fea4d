"""Residuals of a loop: how little of what its steps compute is enough for its derivative.

What every step computes alike, of the loop's constants alone, is computed once, before the loop.  What is
cheap to compute from other residuals, such as a mask or a broadcast, is computed again by the linear program:
decided from the last equation to the first, for each residual by the bytes that would take its place.  Jain
et al., "Checkmate" (2020), have the exact problem, of which this is a greedy solution.
"""
from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..core import programs
from ..core.avals import physical
from ..core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, dce
from ..primitives.arrays import elementwise as e, shape
from ..primitives.arrays.elementwise_rules import add_any_p
from ..primitives.arrays.slicing import iota_p
from ..primitives.arrays.transcendental import integer_pow_p

CHEAP = frozenset((
    e.neg_p, e.add_p, add_any_p, e.sub_p, e.mul_p, e.div_p, e.square_p, e.max_p, e.min_p, e.abs_p, e.sign_p,
    e.and_p, e.or_p, e.xor_p, e.not_p, e.eq_p, e.ne_p, e.lt_p, e.le_p, e.gt_p, e.ge_p, e.is_finite_p,
    e.select_n_p, e.clamp_p, e.convert_element_type_p, e.stop_gradient_p, integer_pow_p, iota_p,
    shape.broadcast_in_dim_p, shape.reshape_p, shape.squeeze_p))
DEEPEST = 6     # equations in a row that are looked through for what a residual can be computed from
ANY = 1000      # steps of a loop whose length is not known


@programs.register
def linearize_steps(jaxpr: Jaxpr, nonzero: tuple[bool, ...], num_consts: int, num_carry: int,
                    length: int) -> programs.LinearizedSteps:
    split, n = programs.linearize(jaxpr, nonzero), len(jaxpr.outvars)
    primal, inputs = split.primal, split.primal.invars
    residuals = split.select(inputs, primal.outvars[n:])
    consts, rest = inputs[:num_consts], inputs[num_consts:]
    alike = _alike(primal, consts)
    given = {*consts, *rest[num_carry:], *primal.outvars[num_carry:n]}
    steps = length if type(length) is int else ANY
    kept = fewest(residuals, primal.eqns, given,
                  {v: bytes_of(v) * (1 if v in alike else steps)
                   for v in (*rest[:num_carry], *(v for eqn in primal.eqns for v in eqn.outvars))})

    once = {v for v in kept if v in alike and v not in given}
    made_once = [eqn for eqn in primal.eqns if not once.isdisjoint(eqn.outvars)]
    fixed = [*consts, *(v for eqn in made_once for v in eqn.outvars)]
    before, _ = dce(primal.replace(invars=consts, outvars=fixed[num_consts:], arg_names=None))
    stacked = [v for v in kept if v not in alike and v not in given]
    step, _ = dce(primal.replace(
        invars=[*fixed, *rest], outvars=[*primal.outvars[:n], *stacked], arg_names=None,
        eqns=[eqn for eqn in primal.eqns if once.isdisjoint(eqn.outvars)]))
    places: dict[Any, tuple[str, int]] = {
        v: ("out", i) for i, v in enumerate(step.outvars) if i >= num_carry}
    places.update((v, ("in", i)) for i, v in enumerate(step.invars) if not 0 <= i - len(fixed) < num_carry)
    linear = recomputing(split.linear, dict(zip(split.linear.invars, residuals)), kept, primal.eqns)
    return programs.LinearizedSteps(before, step, linear, [places[v] for v in kept], split.out_nonzero)


def _alike(primal: Jaxpr, consts: Iterable[Var]) -> set[Atom]:
    """What every step computes alike."""
    found: set[Atom] = set(consts)
    for eqn in primal.eqns:
        if not eqn.effects and all(type(v) is Literal or v in found for v in eqn.invars):
            found.update(eqn.outvars)
    return found


def fewest(residuals: Iterable[Atom], eqns: Sequence[Eqn], given: Collection[Atom],
           cost: Mapping[Any, int]) -> dict[Atom, None]:
    """Variables from which the residuals can be computed again cheaply, of little cost together.

    Args:
        eqns: which make what is not given
        given: what costs nothing
        cost: of keeping a variable
    """
    makers = {v: eqn for eqn in eqns for v in eqn.outvars}
    kept: dict[Atom, None] = dict.fromkeys(v for v in residuals if type(v) is Var and v not in given)

    def cheap(v: Atom, deep: int) -> Iterable[Atom] | None:
        """What v is cheap to compute from."""
        eqn = makers.get(v) if type(v) is Var else None
        return dict.fromkeys(eqn.invars) if eqn is not None and eqn.primitive in CHEAP and deep else None

    def sources(v: Atom, deep: int) -> list[Atom]:
        """What v can be computed from that is neither kept nor cheap."""
        if type(v) is Literal or v in kept or v in given:
            return []
        found = cheap(v, deep)
        return [v] if found is None else [x for y in found for x in sources(y, deep - 1)]

    def instead(v: Atom, deep: int) -> tuple[int, list[Atom]]:
        """(the cost of what is kept besides for v, that)."""
        if type(v) is Literal or v in kept or v in given:
            return 0, []
        found = cheap(v, deep)
        if found is not None:
            parts = [instead(x, deep - 1) for x in found]
            total = sum(c for c, _ in parts)
            if total < cost[v]:
                return total, [x for _, xs in parts for x in xs]
        return cost[v], [v]
    # several that are worth their source together, such as the masks of one value
    savings: dict[frozenset[Atom], int] = {}
    for v in kept:
        group = frozenset(x for y in cheap(v, DEEPEST) or () for x in sources(y, DEEPEST - 1))
        savings[group] = savings.get(group, 0) + cost[v]
    kept.update(dict.fromkeys(v for group, saved in savings.items() if sum(cost[v] for v in group) < saved
                              for v in group))
    for eqn in reversed(eqns):
        for v in eqn.outvars:
            if v in kept:
                del kept[v]
                kept.update(dict.fromkeys(instead(v, DEEPEST)[1]))
    used = made_from(residuals, {*kept, *given}, eqns)[1]
    return dict.fromkeys(v for v in (*residuals, *used) if v in kept or v in given)


def made_from(wanted: Iterable[Atom], kept: Collection[Atom],
              eqns: Sequence[Eqn]) -> tuple[list[Eqn], dict[Atom, None]]:
    """(the equations that compute what is wanted from what is kept, all variables that are used)."""
    used: dict[Atom, None] = dict.fromkeys(v for v in wanted if type(v) is Var)
    again = []
    for eqn in reversed(eqns):
        if any(v in used and v not in kept for v in eqn.outvars):
            again.append(eqn)
            used.update(dict.fromkeys(v for v in eqn.invars if type(v) is Var))
    return again[::-1], used


def recomputing(jaxpr: Jaxpr, made: Mapping[Var, Atom], kept: Collection[Atom],
                eqns: Sequence[Eqn]) -> Jaxpr:
    """A program of [*kept, *inputs that are not made], which makes the others by equations.

    Args:
        made: {input: what it is among the results of the equations}
        eqns: which make it from what is kept
    """
    # in variables of its own: the equations may be there already, for another call of what they are from
    own: dict[Any, Any] = {v: Var(v.aval) for v in kept}
    again = renamed(made_from(made.values(), kept, eqns)[0], own)

    def moved(atoms: Iterable[Atom]) -> list[Atom]:
        return [own.get(made[v], made[v]) if type(v) is Var and v in made else v for v in atoms]
    after = [eqn if made.keys().isdisjoint(eqn.invars) else eqn.replace(invars=moved(eqn.invars))
             for eqn in jaxpr.eqns]
    return jaxpr.replace(invars=[*(own[v] for v in kept), *(v for v in jaxpr.invars if v not in made)],
                         arg_names=None, eqns=[*again, *after], outvars=moved(jaxpr.outvars))


def renamed(eqns: Iterable[Eqn], atoms: dict[Any, Any]) -> list[Eqn]:
    """The equations with other variables: those in `atoms`, and new ones, which are added there."""
    found = []
    for eqn in eqns:
        invars = [atoms.get(v, v) for v in eqn.invars]
        atoms.update((v, Var(v.aval)) for v in eqn.outvars if v not in atoms)
        found.append(eqn.replace(invars=invars, outvars=[atoms[v] for v in eqn.outvars]))
    return found


def bytes_of(v: Atom) -> int:
    """The size of a value; of one whose size is not known yet, some number."""
    aval = physical(v.aval)
    return math.prod(d if type(d) is int else ANY for d in aval.shape) * aval.dtype.itemsize
