"""Discharge: a program that takes states before its inputs and gives them, changed, before its outputs.

What equations do to the world, or to values that they share, becomes what they do to operands: a token for
effects in order, or any other `core.effects.State`.  An equation with an effect that a state serves is done
by the rule `discharge` of its primitive; all others stay.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import programs
from ..core.config import scoped
from ..core.effects import ORDERED_TOKEN, State, is_ordered
from ..core.jaxpr import Eqn, Jaxpr, eval_jaxpr, rewrite
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.trace import EVAL, entering
from ..primitives.programs.callbacks import create_token_p


@programs.register
def discharge(jaxpr: Jaxpr, states: tuple[State, ...]) -> Jaxpr:
    """The program of [*states, *inputs] -> [*states, *outputs]; `states` is a tuple of States."""
    def threaded(*args: Any) -> list[Any]:
        return _run(jaxpr, states, list(args[:len(states)]), args[len(states):])
    names = jaxpr.arg_names and [*(f"state[{i}]" for i in range(len(states))), *jaxpr.arg_names]
    return programs.trace_closed(threaded, [*(s.aval for s in states), *jaxpr.in_avals], jaxpr.name, names)


def _run(jaxpr: Jaxpr, states: Sequence[State], values: list[Any], args: Sequence[Any]) -> list[Any]:
    """[*states afterwards, *outputs] of a program in the current trace; `values` are the states before."""
    def apply(eqn: Eqn, operands: list[Any]) -> Sequence[Any]:
        served = [i for i, s in enumerate(states) if any(map(s.handles, eqn.effects))]
        if not served:
            return eqn.bind(operands)
        if eqn.primitive.discharge is None:
            raise NotImplementedError(f"{eqn.primitive} has no rule to thread states through it, so there "
                                      f"can be no effects like {eqn.effects[0]} inside")
        changed, results = eqn.primitive.discharge(tuple([states[i] for i in served]),
                                                   [values[i] for i in served], operands, **eqn.params)
        for i, value in zip(served, changed, strict=True):
            values[i] = value
        return results if eqn.primitive.multiple_results else [results]
    results = rewrite(jaxpr, args, apply)
    return [*values, *results]


def thread_tokens(jaxpr: Jaxpr) -> Jaxpr:
    """The program with a token for its ordered effects; itself where it has none."""
    if not is_ordered(jaxpr.effects):
        return jaxpr
    program = discharge(jaxpr, (ORDERED_TOKEN,))
    with scoped(), entering(EVAL):
        return trace_to_jaxpr(lambda *args: eval_jaxpr(program, (), create_token_p.bind(), *args)[1:],
                              jaxpr.in_avals, jaxpr.name, jaxpr.arg_names)
