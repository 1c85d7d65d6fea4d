"""checkpoint (rematerialization): the derivative computes its residuals again instead of saving them."""
from ..core import programs
from ..core.jaxpr import eval_jaxpr
from ..core.linear import nonzero, present, spread
from .calls import jit_p
from .common import Primitive
from .shape import front, front_dims
from .slicing import optimization_barrier_p


@programs.cached
def _again(jaxpr, marks, prevent_cse):
    """(program of [*primals, *tangents] -> nonzero tangents that starts from the primals, out_nonzero)"""
    split = programs.linearize(jaxpr, marks)
    n = len(jaxpr.invars)

    def fun(*args):
        # without the barrier XLA finds that the forward pass computed the same, and keeps that
        held = optimization_barrier_p.bind(*args[:n]) if prevent_cse else args[:n]
        saved = eval_jaxpr(split.primal, (), *held)[len(jaxpr.outvars):]
        return eval_jaxpr(split.linear, (), *split.select(held, saved), *args[n:])
    avals = [*jaxpr.in_avals, *(a.tangent() for a, nz in zip(jaxpr.in_avals, marks) if nz)]
    return programs.trace_closed(fun, avals, jaxpr.name), split.out_nonzero


def _jvp(primals, tangents, *, jaxpr, prevent_cse):
    program, out_nonzero = programs.jvp(jaxpr, nonzero(tangents))
    results = remat_p.bind(*primals, *present(tangents), jaxpr=program, prevent_cse=prevent_cse)
    return results[:len(jaxpr.outvars)], spread(results[len(jaxpr.outvars):], out_nonzero)


def _linearize(trace, primals, tangents, *, jaxpr, prevent_cse):
    outs = remat_p.bind(*primals, jaxpr=jaxpr, prevent_cse=prevent_cse)
    program, out_nonzero = _again(jaxpr, nonzero(tangents), prevent_cse)
    moved = trace.rules.record(jit_p, [*primals, *present(tangents)], {"jaxpr": program, "donated": ()})
    return outs, spread(moved, out_nonzero)


def _batch(axis, args, dims, *, jaxpr, prevent_cse):
    program, out_batched = programs.batch(jaxpr, axis, nonzero(dims))
    outs = remat_p.bind(*front(args, dims), jaxpr=program, prevent_cse=prevent_cse)
    return outs, front_dims(out_batched)


def _thread(states, values, args, *, jaxpr, prevent_cse):
    results = remat_p.bind(*values, *args, jaxpr=programs.thread(jaxpr, states), prevent_cse=prevent_cse)
    return results[:len(states)], results[len(states):]


remat_p = Primitive(
    "checkpoint", multiple_results=True, typ=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    lower=lambda ctx, eqn, *names: ctx.call(eqn.params["jaxpr"], names), jvp=_jvp, linearize=_linearize, batch=_batch,
    thread=_thread, evaluate=lambda *args, jaxpr, prevent_cse: jit_p.bind(*args, jaxpr=jaxpr, donated=()))
