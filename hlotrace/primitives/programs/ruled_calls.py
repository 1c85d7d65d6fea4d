"""ruled_call: a program with derivatives, transpose and batching by rules of the user's (hijax)."""
from collections.abc import Callable
from typing import NamedTuple

from ...core import programs
from ...core.errors import UnexpectedTracerError
from ...core.refs import Holder
from ...core.symbolic_zeros import is_undefined_primal, nonzero_mask
from ..arrays.shape import front, reduce_sum
from . import calls


class Rules(NamedTuple):
    """The rules of a call on flat lists; one that is None is that of its program, or an error if it `lacks`
    one for its derivatives.

    jvp(primals, tangents) -> (outs, tangents), which may be None
    lin(primals, tangents) -> the same, where tangents may be those of a linear program
    fwd(primals, nonzero) -> (outs, residuals, bwd), where bwd(residuals, cotangents) -> those of all primals
    transpose(cotangents, args) -> cotangents of all args; args that are not known are linear
    batch(axis, args, dims) -> (outs, dims)
    """
    jvp: Callable | None = None
    lin: Callable | None = None
    fwd: Callable | None = None
    transpose: Callable | None = None
    batch: Callable | None = None
    lacks: bool = False     # is it an error to ask for a derivative where there is no rule for it?


def _jvp(primals, tangents, *, jaxpr, rules, name, num_consts):
    if rules.jvp is None:
        if rules.fwd is not None:
            raise NotImplementedError(f"for jvp support, {name} must implement `jvp`: it has a rule for "
                                      "reverse mode alone. Use that (grad, vjp, jacrev)")
        if rules.lacks:
            raise NotImplementedError(f"hijax primitive {name} has no rule for its derivatives: define jvp, "
                                      "or vjp_fwd and vjp_bwd_retval")
        return calls.AS_JIT["jvp"](primals, tangents, jaxpr=jaxpr)
    return rules.jvp(primals[num_consts:], calls.explicit_tangents(tangents, num_consts, name))


def _linearize(trace, primals, tangents, *, jaxpr, rules, name, num_consts):
    if rules.fwd is not None:
        return calls.linearize_by_rule(trace, primals, tangents, fwd=rules.fwd, name=name,
                                       num_consts=num_consts)
    if rules.lin is not None:
        return rules.lin(primals[num_consts:], calls.explicit_tangents(tangents, num_consts, name))
    if rules.jvp is not None or rules.lacks:
        return _jvp(primals, tangents, jaxpr=jaxpr, rules=rules, name=name, num_consts=num_consts)
    return calls.AS_JIT["linearize"](trace, primals, tangents, jaxpr=jaxpr)


def _transpose(cts, *args, jaxpr, rules, name, num_consts):
    if rules.transpose is None:
        return calls.AS_JIT["transpose"](cts, *args, jaxpr=jaxpr)
    return [None] * num_consts + rules.transpose(cts, args[num_consts:])


def _batching(axis, args, dims, *, jaxpr, rules, name, num_consts):
    if rules.batch is not None and any(d is not None for d in dims):
        if any(d is not None for d in dims[:num_consts]):
            raise UnexpectedTracerError(f"{name} has a batching rule and closes over a value that is mapped "
                                        "by vmap: the rule only says what to do with arguments. Pass the "
                                        "value as an argument.")
        return rules.batch(axis, args[num_consts:], dims[num_consts:])
    args, batched = front(args, dims), nonzero_mask(dims)
    program, _ = programs.batch(jaxpr, axis, batched, True)
    marks, outs_of = batched[num_consts:], calls.MappedOuts(axis, [True] * len(jaxpr.outvars))
    other = Rules(
        jvp=rules.jvp and calls.map_jvp_rule(axis, marks, outs_of, rule=rules.jvp, name=name)["rule"],
        fwd=rules.fwd and calls.map_vjp_rules(axis, marks, outs_of, fwd=rules.fwd, name=name)["fwd"],
        transpose=rules.transpose and _mapped_transpose(axis, marks, rules.transpose), lacks=rules.lacks)
    outs = ruled_call_p.bind(*args, jaxpr=program, rules=other, name=name, num_consts=num_consts)
    return outs, outs_of.dims


def _mapped_transpose(axis, marks, rule):
    def mapped(cts, args):
        known = [a for a in args if not is_undefined_primal(a)]
        n = len(known)

        def one(*xs):
            given, each = iter(xs[:n]), iter(xs[n:])
            unknown = [a if is_undefined_primal(a) else next(given) for a in args]
            return rule([None if ct is None else next(each) for ct in cts], unknown)
        live = [ct for ct in cts if ct is not None]
        batched = [m for m, a in zip(marks, args) if not is_undefined_primal(a)] + [True] * len(live)
        found = calls.mapped_over(one, axis, tuple(batched))(*known, *live)
        return [ct if ct is None or m else reduce_sum(ct, (0,)) for ct, m in zip(found, marks)]
    return mapped


ruled_call_p = Holder("ruled_call", **{
    **calls.AS_JIT, "jvp": _jvp, "linearize": _linearize, "transpose": _transpose, "batching": _batching,
    "lower": calls.inline, "vary": calls.vary_call,
    "shown": lambda eqn: {k: v for k, v in eqn.params.items() if k in ("name", "jaxpr")},
    "impl_rule": lambda *args, jaxpr, **_: calls.jit_bind(jaxpr, args)})
