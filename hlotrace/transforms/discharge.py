"""Threading: a program that takes states in front of its inputs and gives them, changed, in front of its
outputs.

What equations do to the world, or to values that they share, becomes what they do to operands: a token for effects in
order, or any other `core.effects.State`.  An equation with an effect that a state serves is done by the rule `discharge` of
its primitive; all others stay.
"""
from ..core import programs
from ..core.config import scoped, state
from ..core.effects import ORDERED_TOKEN, is_ordered
from ..core.jaxpr import Literal, eval_jaxpr, literal_value
from ..core.trace import EVAL, entering, trace_to_jaxpr
from ..primitives.programs.callbacks import create_token_p


@programs.register
def discharge(jaxpr, states):
    """The program of [*states, *inputs] -> [*states, *outputs]; `states` is a tuple of States."""
    def threaded(*args):
        return _run(jaxpr, states, list(args[:len(states)]), args[len(states):])
    names = jaxpr.arg_names and [*(f"state[{i}]" for i in range(len(states))), *jaxpr.arg_names]
    return programs.trace_closed(threaded, [*(s.aval for s in states), *jaxpr.in_avals], jaxpr.name, names)


def _run(jaxpr, states, values, args):
    """[*states afterwards, *outputs] of a program's equations, done in the current trace; `values` are the
    states before."""
    env = dict(zip(jaxpr.invars, args, strict=True))
    saved, stack = state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            state.source, state.name_stack = eqn.source, eqn.name_stack
            operands = [literal_value(v) if type(v) is Literal else env[v] for v in eqn.invars]
            served = [i for i, s in enumerate(states) if any(map(s.handles, eqn.effects))]
            if not served:
                results = eqn.primitive.bind(*operands, **eqn.params)
            elif eqn.primitive.discharge is None:
                raise NotImplementedError(f"{eqn.primitive} has no rule to thread states through it, so "
                                          f"there can be no effects like {eqn.effects[0]} inside")
            else:
                changed, results = eqn.primitive.discharge(tuple([states[i] for i in served]),
                                                        [values[i] for i in served], operands, **eqn.params)
                for i, value in zip(served, changed, strict=True):
                    values[i] = value
            env.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results]))
    finally:
        state.source, state.name_stack = saved, stack
    return [*values, *(literal_value(v) if type(v) is Literal else env[v] for v in jaxpr.outvars)]


def thread_tokens(jaxpr):
    """The program with a token threaded through its ordered effects; itself where it has none."""
    if not is_ordered(jaxpr.effects):
        return jaxpr
    program = discharge(jaxpr, (ORDERED_TOKEN,))
    with scoped(), entering(EVAL):
        return trace_to_jaxpr(lambda *args: eval_jaxpr(program, (), create_token_p.bind(), *args)[1:],
                              jaxpr.in_avals, jaxpr.name, jaxpr.arg_names)
