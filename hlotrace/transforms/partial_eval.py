"""Partial evaluation for `checkpoint`: a program cut in two by what a policy saves.

The cut is made from the last equation to the first: of what is needed again, the results of an equation
that the policy saves are saved, any other equation is done again, and what it needs is needed again. So
nothing is saved without need. What reads or writes Refs is never done again. Chen et al., "Training deep
nets with sublinear memory cost" (2016), for the idea.
"""
from __future__ import annotations

from typing import Any

from ..core import programs
from ..core.jaxpr import Eqn, Jaxpr, Literal, Var
from ..core.refs import accesses
from ..primitives.programs.remat import Offloadable, decide


@programs.register
def partial_eval(jaxpr: Jaxpr, policy: Any, wanted: tuple[bool, ...]) -> tuple[Jaxpr, Jaxpr]:
    """(forward, again) for the outputs marked in `wanted`, which are to be computed a second time.

    forward: inputs -> [*outs, *saved]; again: [*inputs, *saved] -> the outputs wanted.
    """
    live = {v for v, w in zip(jaxpr.outvars, wanted) if w}
    forward: list[Eqn] = []         # this and the next from the last equation to the first
    again: list[Eqn] = []
    saved: dict[Var, Var] = {}      # what is saved -> what it is again
    for eqn in reversed(jaxpr.eqns):
        needed = tuple([v in live for v in eqn.outvars])
        of_refs = bool(accesses(eqn.effects))       # a second time there might be another value in them
        if not any(needed) and (of_refs or not eqn.effects):
            forward.append(eqn)
            continue
        if eqn.primitive.partial_eval is not None and not of_refs:
            first, second, kept = eqn.primitive.partial_eval(policy, needed, eqn)
            forward.append(first)
            saved.update((v, v) for v in kept)
            repeated = [] if second is None else [second]
        else:
            choice = of_refs or decide(policy, eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
            if choice and (of_refs or not eqn.effects):
                kept, repeated = [v for v, n in zip(eqn.outvars, needed) if n], []
                saved.update((_moved(v, choice, forward, again), v) for v in kept)
            else:
                repeated = [eqn]
            forward.append(eqn)
        again += repeated
        for one in repeated:
            live.update(v for v in one.invars if type(v) is not Literal)
    forward.reverse()
    again.reverse()
    outs = [v for v, w in zip(jaxpr.outvars, wanted) if w]
    return (jaxpr.replace(eqns=forward, outvars=[*jaxpr.outvars, *saved]) if saved else jaxpr,
            jaxpr.replace(eqns=again, invars=[*jaxpr.invars, *saved], outvars=outs, arg_names=None))


def _moved(v: Var, choice: Any, forward: list[Eqn], again: list[Eqn]) -> Var:
    """The variable that is saved for `v`: itself, or a copy in another memory until it is needed again."""
    if type(choice) is not Offloadable:
        return v
    # few programs name kinds of memory, which need the meshes
    from ..primitives.parallel.sharding import InMemory, device_put_p
    there, back = InMemory(choice.dst), InMemory(choice.src)
    away = Var(device_put_p.abstract_eval(v.aval, sharding=there, source=back))
    forward.append(Eqn(device_put_p, [v], [away], {"sharding": there, "source": back}))
    again.append(Eqn(device_put_p, [away], [v], {"sharding": back, "source": there}))
    return away
