"""What one block of a program makes for another: of that, what is cheap is computed where it is used.

Blocks are compiled apart, so XLA cannot see that a mask or a sum which the derivative of a layer is given
could be had from other values that it is given: without this such values are memory from the layer to its
derivative.  Which are computed again is decided as for loops (`transforms/residuals.py`).
"""
from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.jaxpr import Eqn, Jaxpr, Literal, Var
from ..primitives.programs.calls import jit_p
from ..transforms.residuals import bytes_of, fewest, made_from, recomputing, renamed


def hand_over_little(jaxpr: Jaxpr, blocks: Iterable[Jaxpr]) -> tuple[Jaxpr, dict[Jaxpr, Jaxpr]]:
    """(the program with less between its blocks, {block: what it became})."""
    latest = {block: block for block in blocks}
    program = _Program(jaxpr)
    for block in latest:
        fed = program.fed_by(latest[block])
        for then in latest:
            found = _Pair(program, latest[block], latest[then]).thinned() if latest[then] in fed else None
            if found is not None:
                jaxpr, latest[block], latest[then] = found
                program = _Program(jaxpr)
    return program.jaxpr, latest


class _Program:
    """A program, and where in it blocks are called and variables used."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.calls: dict[Jaxpr, list[int]] = collections.defaultdict(list)
        # (equation, operand) of each use of each variable; outputs are used at the end
        self.uses: dict[Any, list[tuple[int, int]]] = collections.defaultdict(list)
        for i, eqn in enumerate(jaxpr.eqns):
            for slot, v in enumerate(eqn.invars):
                self.uses[v].append((i, slot))
            if eqn.primitive is jit_p:
                self.calls[eqn.params["jaxpr"]].append(i)
        for v in jaxpr.outvars:
            self.uses[v].append((len(jaxpr.eqns), 0))

    def fed_by(self, block: Jaxpr) -> set[Jaxpr]:
        """The other programs whose calls take a result of one of the calls of `block`."""
        eqns = self.jaxpr.eqns
        users = {i for call in self.calls[block] for v in eqns[call].outvars for i, _ in self.uses[v]}
        return {eqns[i].params["jaxpr"] for i in users
                if i < len(eqns) and eqns[i].primitive is jit_p} - {block}


class _Pair:
    """The calls of a block `first` in a program, and those of a block `then` for which it makes values."""

    def __init__(self, program: _Program, first: Jaxpr, then: Jaxpr) -> None:
        self.jaxpr, self.eqns, self.uses = program.jaxpr, program.jaxpr.eqns, program.uses
        self.first, self.then = first, then
        self.calls, self.then_calls = program.calls[first], program.calls[then]
        # {result of first: which operand of then it is}, of those that are nothing else
        self.slots: dict[int, int] = {}
        for k in range(len(first.outvars)):
            found = collections.Counter(self.only_slot(self.eqns[i].outvars[k]) for i in self.calls)
            for slot, times in found.most_common(1):
                if slot is not None and 2 * times > len(self.calls):
                    self.slots[k] = slot
        self.partners = {i: self.partner(i) for i in self.calls} if self.slots else {}
        # the equation for which each call makes values
        self.needed = {i: min((at for k in self.slots for at, _ in self.uses[self.eqns[i].outvars[k]]),
                              default=len(self.eqns)) for i in self.calls}

    def only_slot(self, v: Var) -> int | None:
        """Which operand of `then` a variable is, where that is its only use."""
        uses = self.uses[v]
        return uses[0][1] if len(uses) == 1 and uses[0][0] in self.then_calls else None

    def partner(self, i: int) -> int | None:
        """The call of `then` that all of `slots` of call i are for."""
        outs = [self.eqns[i].outvars[k] for k in self.slots]
        at = {use[0] for v in outs for use in self.uses[v]}
        alike = [self.only_slot(v) for v in outs] == [*self.slots.values()]
        return at.pop() if alike and len(at) == 1 else None

    def thinned(self) -> tuple[Jaxpr, Jaxpr, Jaxpr] | None:
        """(the program, the first block, the second) with less between them; None where nothing is saved."""
        # every call of `then` becomes one that computes again
        if not self.slots or sorted(p for p in self.partners.values() if p is not None) != self.then_calls:
            return None
        old, eqns = self.first, self.first.eqns
        wanted = [old.outvars[k] for k in self.slots]
        made = dict.fromkeys(v for eqn in eqns for v in eqn.outvars)
        kept = fewest(wanted, eqns, self.given(), {v: bytes_of(v) for v in (*old.invars, *made)})
        if kept.keys() >= set(wanted):
            return None
        stay = [v for k, v in enumerate(old.outvars) if k not in self.slots]
        first = old.replace(outvars=dict.fromkeys([*stay, *(v for v in kept if v in made)]))
        then = recomputing(self.then, {self.then.invars[s]: old.outvars[k] for k, s in self.slots.items()},
                           kept, eqns)
        return self.rewritten(first, then, kept, made_from(wanted, kept, eqns)[0]), first, then

    def given(self) -> set[Any]:
        """Variables of the first block that are there anyway when their values are needed."""
        outside = {*self.jaxpr.invars, *self.jaxpr.constvars}

        def there(v: Any, i: int) -> bool:
            return type(v) is Literal or v in outside or any(
                at >= self.needed[i] for at, _ in self.uses[v])
        results = [(k, v) for k, v in enumerate(self.first.outvars) if k not in self.slots]
        return {*(v for a, v in enumerate(self.first.invars) if all(
                    there(self.eqns[i].invars[a], i) for i in self.calls)),
                *(v for k, v in results if all(there(self.eqns[i].outvars[k], i) for i in self.calls))}

    def rewritten(self, first: Jaxpr, then: Jaxpr, kept: Iterable[Any], again: Sequence[Eqn]) -> Jaxpr:
        """The program with the new blocks; where a call makes values for no `then`, they are computed again
        in front of their first use."""
        before: dict[int, list[Eqn]] = collections.defaultdict(list)
        instead: dict[int, Eqn] = {}
        for i in self.calls:
            call, at, pair = self.eqns[i], self.needed[i], self.partners[i]
            atoms = dict(zip([*self.first.invars, *self.first.outvars], [*call.invars, *call.outvars]))
            atoms.update((v, Var(v.aval)) for v in first.outvars if v not in atoms)
            instead[i] = call.replace(outvars=[atoms[v] for v in first.outvars],
                                      params={**call.params, "jaxpr": first})
            if pair is None:
                own = {v: atoms[v] for v in (*kept, *(self.first.outvars[k] for k in self.slots))}
                before[at] += renamed(again, own)
                continue
            used = self.eqns[pair]
            rest = [v for s, v in enumerate(used.invars) if s not in self.slots.values()]
            instead[pair] = used.replace(invars=[*(atoms[v] for v in kept), *rest],
                                         params={**used.params, "jaxpr": then})
        return self.jaxpr.replace(eqns=[*(
            eqn for i, old in enumerate(self.eqns) for eqn in (*before[i], instead.get(i, old))),
            *before[len(self.eqns)]])
