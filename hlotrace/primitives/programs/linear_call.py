"""linear_call: a program that is linear in some operands, with a transpose that the user gives."""
from ...core import programs
from ...core.jaxpr import close, eval_jaxpr
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from ..arrays.elementwise_rules import accumulate
from ..arrays.shape import front, front_dims, instantiate, reduce_sum
from ..common import aval_of
from .calls import AS_JIT, inline, jit_bind, mapped_over

# Operands: `num_res` residuals, then what it is linear in.  `transpose(residuals, cotangents)`, on flat
# lists, gives cotangents of the latter.


def _jvp(primals, tangents, *, jaxpr, num_res, transpose):
    outs = linear_call_p.bind(*primals, jaxpr=jaxpr, num_res=num_res, transpose=transpose)
    of_res, moving = tangents[:num_res], tangents[num_res:]
    found = [None] * len(outs)
    if any(nonzero_mask(moving)):
        moving = [instantiate(t, aval_of(x)) for t, x in zip(moving, primals[num_res:])]
        found = list(linear_call_p.bind(*primals[:num_res], *moving, jaxpr=jaxpr, num_res=num_res,
                                        transpose=transpose))
    if any(nonzero_mask(of_res)):
        program, marks = programs.jvp(jaxpr, (*nonzero_mask(of_res), *[False] * len(moving)))
        more = fill_zeros(eval_jaxpr(program, (), *primals, *drop_zeros(of_res))[len(outs):], marks)
        for i, t in enumerate(more):
            found[i] = accumulate(found[i], t)
    return outs, found


def _transpose(cts, *args, jaxpr, num_res, transpose):
    residuals = args[:num_res]
    cts = [instantiate(ct, a.tangent()) for ct, a in zip(cts, jaxpr.out_avals)]
    turned, consts = close(trace_to_jaxpr(lambda *xs: transpose(xs[:num_res], xs[num_res:]),
                                          [aval_of(x) for x in (*residuals, *cts)], "transpose"))
    shift = len(consts)
    found = linear_call_p.bind(     # transposed once more, it is what it was
        *consts, *residuals, *cts, jaxpr=turned, num_res=shift + num_res,
        transpose=lambda residuals, cts: eval_jaxpr(jaxpr, (), *residuals[shift:], *cts))
    return [None] * num_res + [ct if is_undefined_primal(x) else None for ct, x in zip(found, args[num_res:])]


def _batching(axis, args, dims, *, jaxpr, num_res, transpose):
    batched = nonzero_mask(dims)
    program, out_batched = programs.batch(jaxpr, axis, batched)

    def moved(residuals, cts):
        fun = mapped_over(lambda *xs: transpose(xs[:num_res], xs[num_res:]), axis,
                          (*batched[:num_res], *out_batched))
        return [ct if b else reduce_sum(ct, (0,)) for ct, b in zip(fun(*residuals, *cts), batched[num_res:])]
    outs = linear_call_p.bind(*front(args, dims), jaxpr=program, num_res=num_res, transpose=moved)
    return outs, front_dims(out_batched)


_ALSO = {"callee": lambda p: p["jaxpr"], "num_callee_consts": lambda p: 0,
         "transpose_thunk": lambda p: p["transpose"]}
linear_call_p = Holder(
    "linear_call", multiple_results=True, abstract_eval=AS_JIT["abstract_eval"], also=_ALSO,
    discharge=AS_JIT["discharge"], lower=inline, jvp=_jvp, transpose=_transpose, batching=_batching,
    impl_rule=lambda *args, jaxpr, **_: jit_bind(jaxpr, args))
linear_call_p.shown = lambda eqn: {name: eqn.params[name] for name in (*_ALSO, "num_res")}
