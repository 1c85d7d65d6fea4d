"""custom_vmap_call: a program whose batching is a rule that the user gives."""
from ...core import programs
from ...core.errors import UnexpectedTracerError
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ..arrays.shape import front, front_dims
from .calls import AS_JIT, inline, jit_bind, jit_p

# `rule(size, batched, args, consts) -> (outs, marks of those with a leading axis)`, on flat lists; the
# program takes [*consts, *args].  `rule.jvp(marks, out_nonzero)` is that of [*args, *tangents] -> [*outs,
# *tangents], `rule.saving(program)` that of args -> [*outs, *saved].


def _unless_closed_over(values, num_consts, what):
    if any(v is not None for v in values[:num_consts]):
        raise UnexpectedTracerError(f"a function with a custom_vmap rule closes over a value that is {what}: "
                                    "the rule only says what to do with arguments. Pass the value as an "
                                    "argument.")


def _batching(axis, args, dims, *, jaxpr, rule, num_consts):
    args, batched = front(args, dims), nonzero_mask(dims)
    if not any(batched):        # asked because of the axis's name
        program, out_batched = programs.batch(jaxpr, axis, batched)
        return jit_bind(program, args), front_dims(out_batched)
    _unless_closed_over(dims, num_consts, "mapped by vmap")
    outs, out_batched = rule(axis.size, batched[num_consts:], args[num_consts:], args[:num_consts])
    return outs, front_dims(out_batched)


def _jvp(primals, tangents, *, jaxpr, rule, num_consts):
    _unless_closed_over(tangents, num_consts, "differentiated")
    program, out_nonzero = programs.jvp(jaxpr, nonzero_mask(tangents))
    results = custom_vmap_call_p.bind(*primals, *drop_zeros(tangents), jaxpr=program, num_consts=num_consts,
                                      rule=rule.jvp(nonzero_mask(tangents[num_consts:]), out_nonzero))
    return results[:len(jaxpr.outvars)], fill_zeros(results[len(jaxpr.outvars):], out_nonzero)


def _linearize(trace, primals, tangents, *, jaxpr, rule, num_consts):
    """The linear part, which JAX does not give, is mapped as any program is."""
    _unless_closed_over(tangents, num_consts, "differentiated")
    split = programs.linearize(jaxpr, nonzero_mask(tangents))
    results = custom_vmap_call_p.bind(*primals, jaxpr=split.primal, num_consts=num_consts,
                                      rule=rule.saving(split.primal))
    operands = [*split.select(primals, results[len(jaxpr.outvars):]), *drop_zeros(tangents)]
    moved = trace.rules.record(jit_p, operands, {"jaxpr": split.linear, "donated": ()})
    return results[:len(jaxpr.outvars)], fill_zeros(moved, split.out_nonzero)


custom_vmap_call_p = Holder("custom_vmap_call", **{
    **AS_JIT, "jvp": _jvp, "linearize": _linearize, "batching": _batching, "lower": inline,
    "impl_rule": lambda *args, jaxpr, **_: jit_bind(jaxpr, args)})
