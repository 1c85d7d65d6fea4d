"""Transposition: a linear program run backwards, from cotangents of its outputs to those of its inputs."""
from ..core import programs
from ..core.config import state
from ..core.jaxpr import Literal, literal_value
from ..core.primitive import missing
from ..core.symbolic_zeros import UndefinedPrimal, drop_zeros, fill_zeros, is_undefined_primal
from ..primitives.arrays import elementwise
from ..primitives.programs.calls import custom_lin_p


def accumulate(a, b):
    """The sum of two cotangents, either of which may be None (zero)."""
    return b if a is None else a if b is None else elementwise.accumulate(a, b)


def backward_pass(jaxpr, consts, args, cotangents):
    """Cotangents of the inputs that are `UndefinedPrimal`s in `args`, as a list over all inputs (None is zero).

    Equations that depend on no linear input are evaluated first, in order.
    """
    values = dict(zip(jaxpr.constvars, consts))
    values.update((v, a) for v, a in zip(jaxpr.invars, args, strict=True) if not is_undefined_primal(a))
    pending = []
    saved, stack = state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            if any(type(v) is not Literal and v not in values for v in eqn.invars):
                pending.append(eqn)
                continue
            state.source, state.name_stack = eqn.source, eqn.name_stack
            operands = [literal_value(v) if type(v) is Literal else values[v] for v in eqn.invars]
            results = eqn.primitive.bind(*operands, **eqn.params)
            values.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results]))
        found = {}
        for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
            if ct is not None and type(v) is not Literal:
                found[v] = accumulate(found.get(v), ct)
        while pending:
            eqn = pending.pop()
            reached = any(v in found for v in eqn.outvars)
            cts = [found.pop(v, None) for v in eqn.outvars]
            if not reached or eqn.primitive is not custom_lin_p and all(ct is None for ct in cts):
                found.update((v, found.get(v)) for v in eqn.invars if reached and type(v) is not Literal
                             and v not in values)
                continue
            if eqn.primitive.transpose is None:
                raise missing(eqn.primitive, "transpose")
            operands = [literal_value(v) if type(v) is Literal else values[v] if v in values
                        else UndefinedPrimal(v.aval) for v in eqn.invars]
            state.source, state.name_stack = eqn.source, eqn.name_stack
            results = eqn.primitive.transpose(cts if eqn.primitive.multiple_results else cts[0], *operands,
                                              **eqn.params)
            for v, operand, ct in zip(eqn.invars, operands, results, strict=True):
                # also of None: a user's rule is asked for what comes to it as zero, too
                if is_undefined_primal(operand):
                    found[v] = accumulate(found.get(v), ct)
    finally:
        state.source, state.name_stack = saved, stack
    return [found.get(v) if is_undefined_primal(a) else None for v, a in zip(jaxpr.invars, args)]


@programs.register
def transpose(jaxpr, linear, ct_nonzero):
    in_nonzero, known = [], linear.count(False)

    def fun(*args):
        given = iter(args[:known])
        operands = [UndefinedPrimal(v.aval) if is_lin else next(given) for v, is_lin in zip(jaxpr.invars, linear)]
        results = backward_pass(jaxpr, (), operands, fill_zeros(args[known:], ct_nonzero))
        results = [r for r, is_lin in zip(results, linear) if is_lin]
        in_nonzero[:] = [r is not None for r in results]
        return drop_zeros(results)

    avals = [a for a, is_lin in zip(jaxpr.in_avals, linear) if not is_lin]
    avals += [a for a, nz in zip(jaxpr.out_avals, ct_nonzero) if nz]
    return programs.trace_closed(fun, avals, jaxpr.name), tuple(in_nonzero)
