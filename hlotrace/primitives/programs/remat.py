"""checkpoint (rematerialization): the derivative computes its residuals again instead of saving them, but for
what a policy saves; `name` gives a value a name that policies ask for.
"""
import dataclasses

from ...core import programs
from ...core.axes import same_axes
from ...core.config import within
from ...core.jaxpr import Eqn, Var, dce, eval_jaxpr, sub_jaxprs
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ..arrays.shape import front, front_dims, structural
from ..arrays.slicing import copy_lower, optimization_barrier_p
from ..common import is_undefined_primal, np
from .calls import custom_vjp_call_p, jit_p, partial_eval_call, vary_call
from .cond_while import groups


class _Choice:
    """What a policy answers."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


Saveable, Recompute = _Choice("Saveable"), _Choice("Recompute")


@dataclasses.dataclass(frozen=True)
class Offloadable:
    """A policy's answer: keep the value in another memory, `dst`, until it is needed again in `src`."""
    src: str
    dst: str


def decide(policy, primitive, avals, params):
    """What a policy says of an application of a primitive: True, False or an Offloadable."""
    choice = policy(primitive, *avals, **params)
    if type(choice) is _Choice:
        return choice is Saveable
    if not isinstance(choice, (bool, np.bool_, Offloadable)):
        raise TypeError("Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
                        f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {choice!r:.80} "
                        f"of type {type(choice)} for {primitive}: return True for what is to be kept, else "
                        "False")
    return choice


def nothing_saveable(*_, **__):
    """A policy: compute all residuals again; the default.

    >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=jax.checkpoint_policies.nothing_saveable)
    >>> [where for _, where in jax.ad_checkpoint.saved_residuals(f, 1.)]
    ['from the argument x']
    """
    return False


def _more(prevent_cse, n):
    """The same with n operands behind the others."""
    return (*prevent_cse, *[any(prevent_cse)] * n) if type(prevent_cse) is tuple else prevent_cse


@programs.cached
def _any(jaxpr, of_primitive):
    """Is it so of any primitive in the program, and in those that it holds?"""
    return any(of_primitive(eqn.primitive)
               or any(_any(inner, of_primitive) for inner in sub_jaxprs(eqn.params)) for eqn in jaxpr.eqns)


def _has_vjp_rule(primitive):
    return primitive is custom_vjp_call_p


def _eager_alone(primitive):
    """Does it run eagerly, and cannot be compiled?"""
    return primitive.lower is None and primitive.impl_rule is not None


@programs.cached
def _cut(jaxpr, marks, prevent_cse, policy):
    """The program of the primals that also gives what is saved, and where; that of [*primals, *saved,
    *tangents] -> nonzero tangents, and for each of its operands whether it is held; out_nonzero.
    """
    split = programs.linearize(jaxpr, marks)
    n, n_out = len(jaxpr.invars), len(jaxpr.outvars)
    given = len(split.primal.outvars) - n_out
    forward, again = programs.partial_eval(split.primal, policy, (False,) * n_out + (True,) * given)
    saved = forward.outvars[n_out + given:]
    n_saved = len(saved)
    # nothing saved, the forward pass is the function as it is, and knows of no residuals; but what has a
    # backward rule of its own is differentiated again as its forward rule, not by that rule
    outs = [*forward.outvars[:n_out], *[v for v in saved if v not in forward.outvars[:n_out]]]
    forward = dce(forward.replace(outvars=outs))[0] if n_saved or _any(jaxpr, _has_vjp_rule) else jaxpr
    held = prevent_cse if type(prevent_cse) is tuple else (prevent_cse,) * n
    held = _more(held, n_saved + sum(marks))

    def fun(*args):
        known, moved = groups(args, n + n_saved)
        with within("checkpoint/rematted_computation"):
            residuals = eval_jaxpr(again, (), *known)
        with within("checkpoint"):
            return eval_jaxpr(split.linear, (), *split.select(known[:n], residuals), *moved)
    avals = [*again.in_avals, *(a.tangent() for a, nz in zip(jaxpr.in_avals, marks) if nz)]
    backward = programs.trace_closed(fun, avals, jaxpr.name)
    return forward, list(map(outs.index, saved)), backward, held, split.out_nonzero


@programs.cached
def _barred(jaxpr, held):
    """`jaxpr` behind a barrier of the operands that are held.

    Without it XLA finds that the forward pass computed the same, and keeps that.  With the cotangents in it,
    it computes again when these are there, not long before.
    """
    if not any(held):
        return jaxpr
    outside = {v: Var(v.aval) for v, h in zip(jaxpr.invars, held) if h}
    barrier = Eqn(optimization_barrier_p, [*outside.values()], [*outside], {})
    return jaxpr.replace(invars=[outside.get(v, v) for v in jaxpr.invars], eqns=[barrier, *jaxpr.eqns])


def _called(jaxpr, operands, held=()):
    """The results of a program as one call, behind a barrier of what is held; step by step if it must."""
    if _any(jaxpr, _eager_alone):
        return eval_jaxpr(jaxpr, (), *operands)
    return jit_p.bind(*operands, jaxpr=_barred(jaxpr, held), donated=())


def _impl(*args, jaxpr, **_):
    """The results; an operand that is one is given back as it is."""
    given = dict(zip(jaxpr.invars, args))
    return [given.get(v, x) for v, x in zip(jaxpr.outvars, _called(jaxpr, args))]


def _jvp(primals, tangents, *, jaxpr, prevent_cse, policy):
    program, out_nonzero = programs.jvp(jaxpr, nonzero_mask(tangents))
    moving = drop_zeros(tangents)
    results = remat_p.bind(*primals, *moving, jaxpr=program, prevent_cse=_more(prevent_cse, len(moving)),
                           policy=policy)
    return results[:len(jaxpr.outvars)], fill_zeros(results[len(jaxpr.outvars):], out_nonzero)


def _linearize(trace, primals, tangents, *, jaxpr, prevent_cse, policy):
    forward, places, backward, held, out_nonzero = _cut(jaxpr, nonzero_mask(tangents), prevent_cse, policy)
    results = remat_p.bind(*primals, jaxpr=forward, prevent_cse=prevent_cse, policy=policy)
    operands = [*primals, *[results[i] for i in places], *drop_zeros(tangents)]
    moved = trace.rules.record(rematted_p, operands, {"jaxpr": backward, "held": held})
    return results[:len(jaxpr.outvars)], fill_zeros(moved, out_nonzero)


def _batching(axis, args, dims, *, jaxpr, **params):
    program, out_batched = programs.batch(jaxpr, axis, nonzero_mask(dims))
    return remat_p.bind(*front(args, dims), jaxpr=program, **params), front_dims(out_batched)


def _discharge(states, values, args, *, jaxpr, prevent_cse, policy):
    if type(prevent_cse) is tuple:
        prevent_cse = (*[True] * len(states), *prevent_cse)
    results = remat_p.bind(*values, *args, jaxpr=programs.discharge(jaxpr, states), prevent_cse=prevent_cse,
                           policy=policy)
    return results[:len(states)], results[len(states):]


def _transpose(cts, *args, jaxpr, **_):
    return programs.transpose_call(cts, args, jaxpr, lambda program, operands: remat_p.bind(
        *operands, jaxpr=program, prevent_cse=True, policy=nothing_saveable))


# prevent_cse: a bool, or one for each operand
remat_p = Holder(
    "checkpoint", multiple_results=True, linear="typed", also={"differentiated": lambda params: False},
    abstract_eval=lambda *avals, jaxpr, **_: jaxpr.out_avals,
    lower=lambda ctx, eqn, *names: ctx.call(eqn.params["jaxpr"], names, scope="checkpoint"),
    jvp=_jvp, linearize=_linearize, batching=_batching,
    transpose=_transpose, discharge=_discharge, partial_eval=partial_eval_call, vary=vary_call,
    impl_rule=_impl)
remat_p.shown = lambda eqn: {**eqn.params, "differentiated": False, "policy": (
    None if eqn.params["policy"] is nothing_saveable else eqn.params["policy"])}


# --- what a derivative computes again -------------------------------------------------------------

def _rematted_transpose(cts, *args, jaxpr, held):
    known = [h for h, a in zip(held, args) if not is_undefined_primal(a)]
    return programs.transpose_call(cts, args, jaxpr, lambda program, operands: _called(
        program, operands, (*known, *[any(held)] * (len(operands) - len(known)))))


def _rematted_dce(used_outputs, eqn):
    jaxpr, used = programs.alive(eqn.params["jaxpr"], tuple(used_outputs))
    kept = [[x for x, u in zip(xs, used) if u] for xs in (eqn.invars, eqn.params["held"])]
    return eqn.replace(invars=kept[0], outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
                       params={"jaxpr": jaxpr, "held": tuple(kept[1])})


def _as_jit(rule):
    return lambda *args, jaxpr, held, **_: rule(*args, jaxpr=_barred(jaxpr, held), donated=())


def _program(params):
    return _barred(params["jaxpr"], params["held"])


# held: for each operand, whether it is in the barrier
rematted_p = Holder(
    "rematted", multiple_results=True, linear="typed",
    abstract_eval=lambda *avals, jaxpr, held: jaxpr.out_avals,
    lower=lambda ctx, eqn, *names: ctx.call(_program(eqn.params), names), vary=vary_call,
    transpose=_rematted_transpose, dce=_rematted_dce,
    partial_eval=lambda policy, wanted, eqn: partial_eval_call(policy, wanted, eqn.replace(
        primitive=jit_p, params={"jaxpr": _program(eqn.params), "donated": ()})),
    impl_rule=lambda *args, jaxpr, held: _called(jaxpr, args, held),
    **{rule: _as_jit(getattr(jit_p, rule)) for rule in ("jvp", "linearize", "batching", "discharge")})

name_p = structural("name", lambda x, *, name: x, copy_lower, lambda ct, x, *, name: [ct], same_axes())
name_p.jvp = lambda primals, tangents, *, name: (name_p.bind(*primals, name=name), tangents[0])
