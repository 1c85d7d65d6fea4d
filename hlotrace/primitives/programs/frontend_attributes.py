"""tagged_call: a program called under attributes that the compiler reads: where to run, what to fuse."""
from ...core import programs
from ...core.jaxpr import eval_jaxpr
from ...core.programs import transpose_call
from ...core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ...sharding.abstract import space_of
from ..arrays.shape import front, front_dims
from ..arrays.slicing import optimization_barrier_p
from ..common import Primitive


def _lower_for_gpu(ctx, eqn, *names):
    program = eqn.params["jaxpr"]
    on_host = ("_xla_compute_type", "host") in eqn.params["attributes"]
    return _lower_program(ctx, eqn, _giving_back_none(program) if on_host else program, names)


def _lower_program(ctx, eqn, program, names):
    p = eqn.params
    if p["each"]:
        outer, ctx.tags = ctx.tags, tuple({**dict(ctx.tags), **dict(p["attributes"])}.items())
        results = ctx.inline(program, names)
        ctx.tags = outer
    else:
        results = ctx.call(program, names, p["attributes"])
    return [ctx.in_memory(r, v.aval, kind) if kind != "any" else r
            for r, v, kind in zip(results, eqn.outvars, p["memories"] or ["any"] * len(results))]


@programs.cached
def _giving_back_none(jaxpr):
    """A program without a result that is an operand, now or once it is simplified: XLA for GPUs ends the
    process where it finds one in what the host computes."""
    def behind_a_barrier(*operands):
        return eval_jaxpr(jaxpr, (), *optimization_barrier_p.bind(*operands))
    return programs.trace_closed(behind_a_barrier, jaxpr.in_avals, jaxpr.name) if jaxpr.invars else jaxpr


def _bind(jaxpr, operands, attributes, derived, each, memories=None):
    return tagged_call_p.bind(*operands, jaxpr=jaxpr, attributes=attributes, derived=derived, each=each,
                              memories=memories)


def _jvp(primals, tangents, *, jaxpr, memories, **tags):
    program, out_nonzero = programs.jvp(jaxpr, nonzero_mask(tangents))
    if memories:
        memories = (*memories, *(m for m, nz in zip(memories, out_nonzero) if nz))
    outs, moved = _split(_bind(program, [*primals, *drop_zeros(tangents)], memories=memories, **tags),
                         len(jaxpr.outvars))
    return outs, fill_zeros(moved, out_nonzero)


def _split(values, n):
    return values[:n], values[n:]


def _linearize(trace, primals, tangents, *, jaxpr, attributes, derived, memories, each):
    """The linear part, and so its transpose, has the attributes `derived`."""
    split = programs.linearize(jaxpr, nonzero_mask(tangents))
    saved = len(split.primal.outvars) - len(jaxpr.outvars)
    outs, residuals = _split(_bind(split.primal, primals, attributes, derived, each,
                                   memories and (*memories, *["any"] * saved)), len(jaxpr.outvars))
    moved = trace.rules.record(tagged_call_p, [*split.select(primals, residuals), *drop_zeros(tangents)], {
        "jaxpr": split.linear, "attributes": derived, "derived": derived, "memories": None, "each": each})
    return outs, fill_zeros(moved, split.out_nonzero)


def _transpose(cts, *args, jaxpr, attributes, derived, memories, each):
    return transpose_call(cts, args, jaxpr,
                          lambda program, operands: _bind(program, operands, attributes, derived, each))


def _batching(axis, args, dims, *, jaxpr, **params):
    program, out_batched = programs.batch(jaxpr, axis, nonzero_mask(dims))
    return tagged_call_p.bind(*front(args, dims), jaxpr=program, **params), front_dims(out_batched)


def _discharge(states, values, args, *, jaxpr, memories, **tags):
    n = len(states)
    memories = memories and (*["any"] * n, *memories)
    results = _bind(programs.discharge(jaxpr, states), [*values, *args], memories=memories, **tags)
    return results[:n], results[n:]


def _abstract_eval(*avals, jaxpr, memories, **_):
    kinds = memories or ["any"] * len(jaxpr.outvars)
    return [a if kind == "any" else a.update(memory_space=space_of(kind, a))
            for a, kind in zip(jaxpr.out_avals, kinds)]


# attributes, derived: of the call, and of the calls that its derivative makes; pairs of strings
# memories: for each result the kind of memory that it is put in, None being the devices' own; "any" leaves it
# where it is
# each: are they those of each operation, which is written in the place of the call?
tagged_call_p = Primitive(
    "tagged_call", multiple_results=True, abstract_eval=_abstract_eval,
    lower={"cuda": _lower_for_gpu,
           None: lambda ctx, eqn, *names: _lower_program(ctx, eqn, eqn.params["jaxpr"], names)},
    jvp=_jvp, linearize=_linearize, transpose=_transpose,
    batching=_batching, discharge=_discharge)
