"""JAX's `interpreters.partial_eval`: functions to programs, and what a program needs."""
from typing import Any

from ..core.avals import aval_of
from ..core.config import state
from ..core.jaxpr import Var, dce
from ..core.jaxpr_trace import JaxprTrace, JaxprTracer, trace_to_jaxpr
from ..core.programs import embed_constants
from ..core.surface import jax_core_names
from ..core.surface.public import install_getattr as _explain
from ..core.trace import EVAL, entering
from ..transforms.linearize import SplitTrace
from .registry import Registry, for_each

__all__ = ["DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "abstract_eval_fun", "close_jaxpr",
           "convert_constvars_jaxpr", "dce_jaxpr", "dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule",
           "dce_jaxpr_consts", "dce_rules", "move_binders_to_back", "partial_eval_jaxpr_nounits",
           "prune_closed_jaxpr_outputs", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]

DynamicJaxprTracer = JaxprTracer
Val = Any


def close_jaxpr(jaxpr):
    """A program that needs no constants, as a closed one."""
    return jax_core_names.ClosedJaxpr(jaxpr, ())


def convert_constvars_jaxpr(jaxpr):
    """The program whose first inputs are its constants."""
    return jaxpr.replace(constvars=(), consts=(), invars=(*jaxpr.constvars, *jaxpr.invars), arg_names=None)


def trace_to_jaxpr_dynamic(fun, in_avals):
    """Run a WrappedFun of flat lists on tracers: (program, avals of its outputs, values of its constvars)."""
    jaxpr = trace_to_jaxpr(fun.call_wrapped, list(in_avals), fun.__name__)
    return jaxpr, jaxpr.out_avals, list(jaxpr.consts)


class PartialVal(tuple):
    """What is known of a value: (aval, None) or (None, the value)."""
    __slots__ = ()

    @classmethod
    def known(cls, const):
        return cls((None, const))

    @classmethod
    def unknown(cls, aval):
        return cls((aval, None))

    def is_known(self):
        return self[0] is None

    def get_known(self):
        """The value, or None."""
        return self[1]

    def get_aval(self):
        return aval_of(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False):
    """Run a WrappedFun of flat lists with tracers for unknown operands: what does not depend on them is done.

    Args:
        pvals: for each operand a PartialVal.
        instantiate: a bool or one for each result, which results are outputs of the program also when known.
    Returns:
        (program, out pvals, consts): the program's constants are its constvars and `consts` their values, its
        inputs the unknown operands and its outputs the unknown results.
    """
    trace = JaxprTrace(state.trace, fun.__name__)
    outs = SplitTrace(state.trace, trace).run(
        fun.call_wrapped, *[p.get_known() if p.is_known() else trace.input(p.get_aval()) for p in pvals])
    unknown = [isinstance(x, JaxprTracer) and x._trace is trace for x in outs]
    wanted = [u or i for u, i in zip(unknown, for_each(instantiate, outs))]
    jaxpr = trace.finish([x for x, w in zip(outs, wanted) if w])
    trace.alive = False
    pvals_out = [PartialVal.unknown(aval_of(x)) if w else PartialVal.known(x) for x, w in zip(outs, wanted)]
    return jaxpr, pvals_out, list(jaxpr.consts)


def dce_jaxpr(jaxpr, used_outputs, instantiate=False):
    """The program without what `used_outputs` do not need.

    Args:
        used_outputs: a bool or one for each output.
        instantiate: a bool or one for each input, which inputs stay whatever is used.
    Returns:
        (program, which inputs it has).
    """
    pruned, used = dce(jaxpr, for_each(used_outputs, jaxpr.outvars))
    used = [u or k for u, k in zip(used, for_each(instantiate, used), strict=True)]
    return pruned.replace(invars=[v for v, u in zip(pruned.invars, used) if u], arg_names=None), used


def dce_jaxpr_consts(jaxpr, used_outputs, instantiate=False):
    """As `dce_jaxpr`, of a program with constants: (the program, which constants it has, which inputs)."""
    n = len(jaxpr.constvars)
    pruned, used = dce_jaxpr(convert_constvars_jaxpr(jaxpr), used_outputs,
                             [False] * n + for_each(instantiate, jaxpr.invars))
    kept = sum(used[:n])
    return pruned.replace(constvars=pruned.invars[:kept], invars=pruned.invars[kept:], arg_names=None,
                          consts=tuple(c for c, u in zip(jaxpr.consts, used) if u)), used[:n], used[n:]


def prune_closed_jaxpr_outputs(jaxpr, used_outputs):
    """The program with some of its outputs; its equations stay."""
    return jaxpr.replace(outvars=[v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u])


def move_binders_to_back(closed_jaxpr, to_move):
    """The program with the inputs that are marked behind the others."""
    pairs = list(zip(closed_jaxpr.invars, to_move, strict=True))
    return closed_jaxpr.replace(invars=[v for wanted in (False, True) for v, m in pairs if m is wanted],
                                arg_names=None)


def abstract_eval_fun(fun, *avals, debug_info=None, **params):
    """The avals of the results, a flat list, of `fun(*arrays, **params)`."""
    name = getattr(debug_info, "traced_for", "")
    with entering(EVAL):
        return list(trace_to_jaxpr(lambda *args: fun(*args, **params), list(avals), name).out_avals)


def partial_eval_jaxpr_nounits(jaxpr, unknowns, instantiate):
    """A program in two: what follows from its known inputs, and the rest.

    Args:
        unknowns: a bool for each input.
        instantiate: a bool or one for each output, which are among the unknown ones in any case.
    Returns:
        (program of known inputs -> [*known outputs, *residuals], program of [*residuals, *unknown inputs] ->
        unknown outputs, for each output whether it is unknown, avals of residuals).
    """
    jaxpr = embed_constants(jaxpr)
    unknown = {v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u}
    parts = [], []
    for eqn in jaxpr.eqns:
        late = not unknown.isdisjoint(v for v in eqn.invars if type(v) is Var)
        parts[late].append(eqn)
        unknown.update(eqn.outvars if late else ())
    out_unknown = [type(v) is Var and v in unknown or i
                   for v, i in zip(jaxpr.outvars, for_each(instantiate, jaxpr.outvars), strict=True)]
    inside = {v for eqn in parts[1] for v in eqn.outvars}
    needed = [v for eqn in parts[1] for v in eqn.invars]
    needed += [v for v, u in zip(jaxpr.outvars, out_unknown) if u]
    residuals = [v for v in dict.fromkeys(v for v in needed if type(v) is Var)
                 if v not in inside and v not in unknown]
    ins, outs = ([[v for v, u in zip(listed, marks) if u is wanted] for wanted in (False, True)]
                 for listed, marks in ((jaxpr.invars, unknowns), (jaxpr.outvars, out_unknown)))
    known, rest = (jaxpr.replace(invars=a, eqns=b, outvars=c, arg_names=None) for a, b, c in (
        (ins[0], parts[0], outs[0] + residuals), (residuals + ins[1], parts[1], outs[1])))
    return known, rest, out_unknown, [v.aval for v in residuals]


def _dce_from_jax(_primitive, rule, used_outputs, eqn):
    return rule(used_outputs, eqn)[1] or eqn


def _dce_to_jax(_primitive, rule, used_outputs, eqn):
    pruned = rule(used_outputs, eqn)
    return [v in pruned.invars for v in eqn.invars], pruned


def dce_jaxpr_call_rule(used_outputs, *live_ins_and_eqn):
    """The rule for `dce_rules` of a primitive with a program `call_jaxpr`: (used inputs, equation or None).

    JAX's versions differ in whether a list that says which inputs are live comes before the equation; it is
    not used here.
    """
    eqn = live_ins_and_eqn[-1]
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    program, used = dce(embed_constants(eqn.params["call_jaxpr"]), list(used_outputs), keep_invars=False)
    return used, eqn.replace(invars=[v for v, u in zip(eqn.invars, used) if u],
                             params={**eqn.params, "call_jaxpr": program},
                             outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u])


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule
dce_rules = Registry("dce_rules", "dce", _dce_from_jax, _dce_to_jax)

_explain(globals())
