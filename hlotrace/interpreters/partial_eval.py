"""JAX's `interpreters.partial_eval`: functions to programs, and what a program needs."""
from ..core import surface
from ..core.avals import aval_of
from ..core.config import state
from ..core.jaxpr import dce
from ..core.public import explain as _explain
from ..core.trace import JaxprTrace, JaxprTracer, entering, trace_to_jaxpr
from ..transforms.linearize import SplitTrace
from .registry import Registry

__all__ = ["DynamicJaxprTracer", "JaxprTracer", "PartialVal", "close_jaxpr", "convert_constvars_jaxpr", "dce_jaxpr",
           "dce_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]

DynamicJaxprTracer = JaxprTracer


def close_jaxpr(jaxpr):
    """A program that needs no constants, as a closed one."""
    return surface.ClosedJaxpr(jaxpr, ())


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
    def known(cls, value):
        return cls((None, value))

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
    """Run a WrappedFun of flat lists, with tracers for the unknown ones of `pvals`: what does not depend on them is done.

    Returns (program, out pvals, consts): the program's constants are its constvars and `consts` their values, its inputs the
    unknown operands and its outputs those results that are unknown, or that `instantiate`, a bool or one for each, asks for.
    """
    trace = JaxprTrace(state.trace, fun.__name__)
    with entering(SplitTrace(state.trace, trace), ending=True):
        outs = fun.call_wrapped(*[p.get_known() if p.is_known() else trace.input(p.get_aval()) for p in pvals])
    unknown = [isinstance(x, JaxprTracer) and x._trace is trace for x in outs]
    wanted = [u or i for u, i in zip(unknown, [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate)]
    jaxpr = trace.finish([x for x, w in zip(outs, wanted) if w])
    trace.alive = False
    pvals_out = [PartialVal.unknown(aval_of(x)) if w else PartialVal.known(x) for x, w in zip(outs, wanted)]
    return jaxpr, pvals_out, list(jaxpr.consts)


def dce_jaxpr(jaxpr, used_outputs, instantiate=False):
    """(the program without what `used_outputs` do not need, which inputs it has kept).

    `used_outputs` is a bool or one for each output; `instantiate` likewise says of inputs that they stay whatever is used.
    """
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    pruned, used = dce(jaxpr, list(used_outputs))
    keep = [instantiate] * len(used) if isinstance(instantiate, bool) else instantiate
    used = [u or k for u, k in zip(used, keep, strict=True)]
    return pruned.replace(invars=[v for v, u in zip(pruned.invars, used) if u], arg_names=None), used


def _dce_given(_primitive, rule, used_outputs, eqn):
    return rule(used_outputs, eqn)[1] or eqn


def _dce_asked(_primitive, rule, used_outputs, eqn):
    pruned = rule(used_outputs, eqn)
    return [v in pruned.invars for v in eqn.invars], pruned


dce_rules = Registry("dce_rules", "dce", _dce_given, _dce_asked)

_explain(globals())
