"""Primitives that call a program: jit, and functions with derivatives given by the user."""
import functools

from ...core import programs
from ...core.config import scoped, state
from ...core.errors import UnexpectedTracerError
from ...core.jaxpr import Eqn, Jaxpr, Var, close, eval_jaxpr
from ...core.jaxpr_trace import trace_to_jaxpr
from ...core.primitive import fact_of
from ...core.programs import transpose_call
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ..arrays.shape import broadcast_axis, front, front_dims, move_axis, reduce_sum
from ..common import Primitive, aval_of, dtype_of, dtypes

# --- jit ------------------------------------------------------------------------------------------

def jit_bind(jaxpr, operands, donated=()):
    return jit_p.bind(*operands, jaxpr=jaxpr, donated=donated)


def _jit_jvp(primals, tangents, *, jaxpr, donated):
    program, out_nonzero = programs.jvp(jaxpr, nonzero_mask(tangents))
    results = jit_bind(program, [*primals, *drop_zeros(tangents)])
    return results[:len(jaxpr.outvars)], fill_zeros(results[len(jaxpr.outvars):], out_nonzero)


def _jit_linearize(trace, primals, tangents, *, jaxpr, donated):
    split = programs.linearize(jaxpr, nonzero_mask(tangents))
    results = jit_bind(split.primal, primals)
    outs, saved = results[:len(jaxpr.outvars)], results[len(jaxpr.outvars):]
    operands = [*split.select(primals, saved), *drop_zeros(tangents)]
    return outs, fill_zeros(trace.rules.record(jit_p, operands, {"jaxpr": split.linear, "donated": ()}),
                        split.out_nonzero)


def _jit_batching(axis, args, dims, *, jaxpr, donated):
    args = front(args, dims)
    program, out_batched = programs.batch(jaxpr, axis, nonzero_mask(dims))
    return jit_bind(program, args), front_dims(out_batched)


def _jit_discharge(states, values, args, *, jaxpr, donated):
    n = len(states)
    given = [i for i, s in enumerate(states) if s.donated]
    results = jit_bind(programs.discharge(jaxpr, states), [*values, *args],
                       (*given, *[i + n for i in donated]))
    return results[:n], results[n:]


def _jit_dce(used_outputs, eqn):
    jaxpr, used_inputs = programs.alive(eqn.params["jaxpr"], tuple(used_outputs))
    donated = tuple(sum(used_inputs[:i]) for i in eqn.params["donated"] if used_inputs[i])
    return Eqn(eqn.primitive, [v for v, used in zip(eqn.invars, used_inputs) if used],
               [v for v, used in zip(eqn.outvars, used_outputs) if used],
               {"jaxpr": jaxpr, "donated": donated}, eqn.effects, eqn.source, eqn.name_stack)


def partial_eval_call(policy, wanted, eqn):
    """The rule `partial_eval` of what calls a program: the second call is jit's."""
    n = len(eqn.outvars)
    forward, again, places, kept = programs.split_for_remat(eqn.params["jaxpr"], policy, wanted)
    outs = [*eqn.outvars, *[Var(a) for a in forward.out_avals[n:]]]
    saved = [outs[i] for i in places]
    left = [v for v, w, k in zip(eqn.outvars, wanted, kept) if w and not k]
    first = eqn.replace(outvars=outs, params={**eqn.params, "jaxpr": forward}) if len(outs) > n else eqn
    second = eqn.replace(primitive=jit_p, invars=[*eqn.invars, *saved], outvars=left,
                         params={"jaxpr": again, "donated": ()}) if left or again.effects else None
    saved += [v for v, k in zip(eqn.outvars, kept) if k]
    return first, second and _jit_dce([True] * len(left), second), saved


def vary_call(params, varied, which):
    """The rule `vary` of what calls a program: what it is given, the program is given."""
    return {**params, "jaxpr": varied(params["jaxpr"], which)}


jit_p = Holder(
    "jit", vary=vary_call, multiple_results=True, linear="typed",
    abstract_eval=lambda *avals, jaxpr, donated: jaxpr.out_avals,
    lower=lambda ctx, eqn, *names: ctx.call(eqn.params["jaxpr"], names), jvp=_jit_jvp,
    linearize=_jit_linearize,
    transpose=lambda cts, *args, jaxpr, donated: transpose_call(cts, args, jaxpr, jit_bind),
    batching=_jit_batching, discharge=_jit_discharge, dce=_jit_dce, partial_eval=partial_eval_call,
    also={"name": lambda params: params["jaxpr"].name, "donated_invars": lambda params: tuple(
              i in params["donated"] for i in range(len(params["jaxpr"].invars))),
          # an equation has none of these: shardings are equations of their own, and what is inline is spliced
          **dict.fromkeys(("in_shardings", "in_layouts"), lambda p: (None,) * len(p["jaxpr"].invars)),
          **dict.fromkeys(("out_shardings", "out_layouts"), lambda p: (None,) * len(p["jaxpr"].outvars)),
          "inline": lambda p: False, "keep_unused": lambda p: False, "compiler_options_kvs": lambda p: ()})
_CALLED = {"call_jaxpr": lambda params: params["jaxpr"], "symbolic_zeros": lambda params: getattr(
               params.get("fwd", params.get("rule")), "symbolic_zeros", False)}


def _as_jit(rule):
    return lambda *args, jaxpr, **_: rule(*args, jaxpr=jaxpr, donated=())


# Rules of what holds a program that says what it does: transformed, it is a call of that, transformed.
AS_JIT = {"multiple_results": True, "abstract_eval": lambda *avals, jaxpr, **_: jaxpr.out_avals,
          **{rule: _as_jit(getattr(jit_p, rule)) for rule in ("jvp", "linearize", "transpose", "batching",
                                                              "discharge")}}


# --- a stretch of a linear program ----------------------------------------------------------------

class Inlined(Primitive):
    """Is an equation only where a trace records it; bound, it becomes its program's equations."""
    __slots__ = ()

    def bind(self, *args, jaxpr):
        return state.trace.splice(jaxpr, args)


def inline(ctx, eqn, *names):
    """The lowering of what is the program it holds."""
    return ctx.inline(eqn.params["jaxpr"], names)


def _inline_discharge(states, values, args, *, jaxpr, **_):
    results = eval_jaxpr(programs.discharge(jaxpr, states), (), *values, *args)
    return results[:len(states)], results[len(states):]


inlined_p = Inlined(
    "inlined", multiple_results=True, linear="typed", discharge=_inline_discharge,
    abstract_eval=lambda *avals, jaxpr: jaxpr.out_avals, lower=inline,
    transpose=lambda cts, *args, jaxpr: transpose_call(cts, args, jaxpr, lambda program, operands: (
        state.trace.splice(program, operands))))


# --- functions with derivatives given by the user -------------------------------------------------
#
# Bound with `fun`, a function of flat lists, so that under grad it runs on real values.  Written into a
# program (`to_staged`), it becomes `jaxpr`, whose first `num_consts` operands it closed over.

def no_tangent(t):
    """Is this tangent or cotangent known to be zero?"""
    return t is None or dtype_of(t) == dtypes.float0


def _to_staged(args, params):
    fun = params.pop("fun")
    with scoped():      # the equation has the scopes around it
        jaxpr = trace_to_jaxpr(fun, [aval_of(a) for a in args], params["name"])
    closed, consts = close(jaxpr)
    return [*consts, *args], {"jaxpr": closed, "num_consts": len(consts), **params}


def _axis_names(params):
    """A function may use any of the named axes."""
    if "jaxpr" in params:
        return fact_of(params["jaxpr"], "axis_names")
    return tuple(n for n, *_ in state.axis_env)


def _run(*args, fun=None, jaxpr=None, **_):
    return list(fun(*args)) if jaxpr is None else eval_jaxpr(jaxpr, (), *args)


def explicit_tangents(tangents, num_consts, name):
    """The tangents of the explicit arguments.  An error if a value that the function closed over has one."""
    if any(t is not None for t in tangents[:num_consts]):
        raise UnexpectedTracerError(
            f"Detected differentiation of {name}, which has a custom derivative rule, with respect to a "
            "value it closes over: the rule only says how to differentiate with respect to explicit "
            "arguments. Pass the value as an argument.")
    return tangents[num_consts:]


def _custom_abstract_eval(*avals, jaxpr, **_):
    return jaxpr.out_avals


def mapped_over(fun, axis, batched):
    """`fun` of flat lists over a new leading axis of the arguments marked in `batched`."""
    return lambda *xs: programs.map_flat(fun, axis, xs, front_dims(batched))


class MappedOuts:
    """Which outputs of a function with custom rules, mapped over an axis, are mapped.

    All, unless the axis has a name: then a collective may have made an output equal along it.  Whichever runs
    first, the function or its rule, decides for both.
    """

    def __init__(self, axis, marks=None):
        self.axis, self.marks = axis, marks

    def settle(self, values, dims, n_out=None):
        """(`n_out` values, all by default, and others that are alike, as tangents, with the axis in front
        where it is, the dims of these `n_out`)."""
        n_out = len(values) if n_out is None else n_out
        if self.marks is None:
            self.marks = [self.axis.name is None or any(d is not None for d in dims[i::n_out])
                          for i in range(n_out)]
        for i, d in enumerate(dims):
            if d is not None and not self.marks[i % n_out]:
                raise ValueError(
                    f"vmap: output {i % n_out} of a function with a custom derivative is the same for all "
                    f"elements of the axis {self.axis.name!r}, but its rule gives a derivative that is not: "
                    "let both go through the collective")
        return [x if x is None or not mark else place_axis(x, self.axis.size, d)
                for x, d, mark in zip(values, dims, self.marks * (len(values) // max(n_out, 1)))]

    @property
    def dims(self):
        return front_dims(self.marks)


def place_axis(x, size, source):
    """A value with its mapped axis in front, made there where it has none."""
    return broadcast_axis(x, size, 0) if source is None else move_axis(x, source, 0)


def _custom_batching(primitive, map_rules):
    def batch(axis, args, dims, *, num_consts=0, fun=None, jaxpr=None, **params):
        args = front(args, dims)
        batched = nonzero_mask(dims)
        consts, explicit = args[:num_consts], args[num_consts:]
        run, outs_of = fun or (lambda *xs: eval_jaxpr(jaxpr, (), *xs)), MappedOuts(axis)

        def mapped(*xs):
            return outs_of.settle(*programs.batch_nonzero(run, axis, [*consts, *xs], front_dims(batched)))
        rules = map_rules(axis, batched[num_consts:], outs_of, **params)
        outs = primitive().bind(*explicit, fun=mapped, **rules)
        return outs, outs_of.dims
    return batch


def map_jvp_rule(axis, batched, outs_of, *, rule, name):
    def mapped(primals, tangents):
        n = len(primals)

        def flat(*xs):
            outs, out_tangents = rule(list(xs[:n]), list(xs[n:]))
            flat.n_out = len(outs)
            return [*outs, *out_tangents]
        moving = [b and t is not None for b, t in zip(batched, tangents)]
        results, dims = programs.batch_nonzero(flat, axis, (*primals, *tangents),
                                               front_dims((*batched, *moving)))
        results = outs_of.settle(results, dims, flat.n_out)
        return results[:flat.n_out], results[flat.n_out:]
    return {"rule": functools.update_wrapper(mapped, rule, ("__name__",)), "name": name}


def _custom_jvp(primals, tangents, *, rule, name, num_consts=0, **_):
    tangents = explicit_tangents(tangents, num_consts, name)
    outs, out_tangents = rule(primals[num_consts:], tangents)
    return outs, [None if no_tangent(t) else t for t in out_tangents]


def _custom_jvp_transpose(cts, *args, jaxpr, **_):
    """Of the function itself: where it is transposed it is linear, and needs no derivative of its own."""
    return transpose_call(cts, args, jaxpr, lambda program, operands: state.trace.splice(program, operands))


def _custom_jvp_discharge(states, values, args, *, rule, **params):
    fun, operands, params = _threaded(states, values, args, **params)
    n = len(states)

    def with_states(primals, tangents):
        return fun(*primals), [*[None] * n, *rule(primals[n:], tangents[n:])[1]]
    results = custom_jvp_call_p.bind(*operands, fun=fun, rule=with_states, **params)
    return results[:n], results[n:]


def _threaded(states, values, args, *, jaxpr, num_consts, **params):
    """(function of the states and the explicit arguments, these, the other parameters) of a function with
    custom rules."""
    n, program, consts = len(states), programs.discharge(jaxpr, states), args[:num_consts]
    explicit = [*values, *args[num_consts:]]
    return lambda *xs: eval_jaxpr(program, (), *xs[:n], *consts, *xs[n:]), explicit, params


custom_jvp_call_p = Holder("custom_jvp_call", multiple_results=True, linear="typed", axis_names=_axis_names,
                           abstract_eval=_custom_abstract_eval, also=_CALLED, discharge=_custom_jvp_discharge,
                           vary=vary_call, lower=inline, jvp=_custom_jvp, impl_rule=_run,
                           to_staged=_to_staged, transpose=_custom_jvp_transpose,
                           batching=_custom_batching(lambda: custom_jvp_call_p, map_jvp_rule))


def _forward_mode(primals, tangents, *, name, **_):
    raise TypeError(f"can't apply forward-mode autodiff (jvp) to a custom_vjp function ({name}). Use reverse "
                    "mode (grad, vjp, jacrev), or define the function with custom_jvp.")


def linearize_by_rule(trace, primals, tangents, *, fwd, name, num_consts=0, **_):
    """Run the user's forward function now; record one linear operation whose transpose is the backward one.

    `fwd` gives outputs, residuals, and the backward function of these residuals: it knows their structure,
    which may be another one when the function is differentiated with respect to other arguments.
    """
    record = functools.partial(trace.rules.record, custom_lin_p)
    return _by_rule(record, primals, tangents, fwd, name, num_consts)


def _by_rule(record, primals, tangents, fwd, name, num_consts):
    tangents = explicit_tangents(tangents, num_consts, name)
    outs, residuals, bwd = fwd(primals[num_consts:], nonzero_mask(tangents))
    recorded = record([*residuals, *drop_zeros(tangents)], {
        "bwd": bwd, "num_residuals": len(residuals), "nonzero": nonzero_mask(tangents), "name": name,
        "out_avals": tuple(aval_of(o).tangent() for o in outs)})
    return outs, [t if dtypes.is_inexact(aval_of(o).dtype) else None for t, o in zip(recorded, outs)]


def _custom_vjp_jvp(primals, tangents, *, fwd, name, num_consts=0, **_):
    """Where a program is written down, its tangents may be used by nothing: then they are no mistake."""
    if not state.trace.staging:
        _forward_mode(primals, tangents, name=name)
    return _by_rule(lambda operands, params: custom_lin_p.bind(*operands, **params), primals, tangents, fwd,
                    name, num_consts)


def _custom_lin_transpose(cts, *args, bwd, num_residuals, nonzero, out_avals, name):
    found = bwd(args[:num_residuals], cts)
    return [None] * num_residuals + [None if no_tangent(f) else f for f, nz in zip(found, nonzero) if nz]


def _custom_lin_batching(axis, args, dims, *, bwd, num_residuals, nonzero, out_avals, **params):
    n, args, mapped = num_residuals, front(args, dims), [d is not None for d in dims]

    def mapped_bwd(residuals, cts):
        over = mapped_over(lambda *xs: bwd(list(xs[:n]), list(xs[n:])), axis,
                           (*mapped[:n], *(ct is not None for ct in cts)))
        operands = iter(mapped[n:])
        return [ct if not nz or next(operands) or no_tangent(ct) else reduce_sum(ct, (0,))
                for ct, nz in zip(over(*residuals, *cts), nonzero)]
    outs = custom_lin_p.bind(*args, bwd=mapped_bwd, num_residuals=n, nonzero=nonzero, **params,
                             out_avals=tuple(
        [a.with_axis(0, axis.size) for a in out_avals]))
    return outs, [0] * len(outs)


custom_lin_p = Primitive(
    "custom_lin", multiple_results=True, linear="typed", says_vma=True, says_sharding=True, jvp=_forward_mode,
    batching=_custom_lin_batching, abstract_eval=lambda *avals, out_avals, **_: list(out_avals),
    transpose=_custom_lin_transpose, lower=lambda ctx, eqn, *names: _forward_mode(names, names, **eqn.params),
    impl_rule=lambda *args, **params: _forward_mode(args, args, **params))


def map_vjp_rules(axis, batched, outs_of, *, fwd, name):
    def mapped_fwd(primals, perturbed):
        def flat(*xs):
            outs, flat.residuals, flat.bwd = fwd(list(xs), perturbed)
            flat.n_out = len(outs)
            return [*outs, *flat.residuals]
        results, dims = programs.batch_flat(flat, axis, primals, front_dims(batched))
        n_out, bwd = flat.n_out, flat.bwd
        outs = outs_of.settle(results[:n_out], dims[:n_out])
        # what is not mapped stays: it may be a number that the backward rule asks
        residual_dims = dims[n_out:]

        def mapped_bwd(residuals, cts):
            n = len(residuals)
            ct_dims = [d if ct is not None else None for ct, d in zip(cts, outs_of.dims)]
            found, dims = programs.batch_nonzero(lambda *xs: bwd(list(xs[:n]), list(xs[n:])), axis,
                                                 (*residuals, *cts), (*residual_dims, *ct_dims))
            return [_of_input(ct, d, b, axis.size) for ct, d, b in zip(found, dims, batched)]
        return outs, results[n_out:], mapped_bwd
    return {"fwd": functools.update_wrapper(mapped_fwd, fwd, ("__name__",)), "name": name}


def _of_input(ct, dim, batched, size):
    """The cotangent of an input that is mapped or not."""
    if no_tangent(ct):
        return ct
    if batched:
        return place_axis(ct, size, dim)
    return ct if dim is None else reduce_sum(ct, (dim,))


def _custom_vjp_discharge(states, values, args, *, fwd, **params):
    fun, operands, params = _threaded(states, values, args, **params)
    n = len(states)

    def forward(primals, perturbed):
        outs, residuals, bwd = fwd(primals[n:], perturbed[n:])

        def backward(residuals, cts):
            return [*[None] * n, *bwd(residuals, cts[n:])]
        return [*fun(*primals)[:n], *outs], residuals, backward
    results = custom_vjp_call_p.bind(*operands, fun=fun, fwd=forward, **params)
    return results[:n], results[n:]


custom_vjp_call_p = Holder("custom_vjp_call", multiple_results=True, linear="typed", axis_names=_axis_names,
                           abstract_eval=_custom_abstract_eval, also=_CALLED, discharge=_custom_vjp_discharge,
                           vary=vary_call, lower=inline, jvp=_custom_vjp_jvp, linearize=linearize_by_rule,
                           impl_rule=_run, to_staged=_to_staged,
                           batching=_custom_batching(lambda: custom_vjp_call_p, map_vjp_rules))


def _remat_opt_dce(used_outputs, eqn):
    """Where no residual is used, the function itself does what its forward rule did."""
    p = eqn.params
    jaxpr = p["jaxpr"] if any(used_outputs[p["num_outs"]:]) else p["primal"]
    return _jit_dce(used_outputs[:len(jaxpr.outvars)], eqn.replace(
        primitive=jit_p, outvars=eqn.outvars[:len(jaxpr.outvars)], params={"jaxpr": jaxpr, "donated": ()}))


# The forward rule of a custom_vjp function with `optimize_remat`: `jaxpr` gives [*outs, *residuals],
# `primal`, of the same operands, the outs alone.
remat_opt_p = Holder("remat_opt", **{**AS_JIT, "transpose": None}, lower=inline, dce=_remat_opt_dce,
                     impl_rule=lambda *args, jaxpr, **_: jit_bind(jaxpr, args))


def _shown_jit(eqn):
    donated = eqn.params["donated"]
    shown = {k: v for k, v in eqn.params.items() if k == "jaxpr"}
    if isinstance(shown.get("jaxpr"), Jaxpr):
        shown["name"] = shown["jaxpr"].name
    if donated:
        shown["donated_invars"] = tuple([i in donated for i in range(len(eqn.invars))])
    return shown


def _shown_custom_call(eqn):
    """JAX's parameters; a rule has the name, and what else is to be shown, of the user's."""
    p = eqn.params
    rules = {"jvp": p["rule"]} if "rule" in p else {"bwd": getattr(p["fwd"], "bwd", None), "fwd": p["fwd"]}
    zeros = getattr(p.get("fwd"), "symbolic_zeros", False)
    return {"call_jaxpr": p.get("jaxpr"), **rules, "name": p["name"], "symbolic_zeros": zeros}


def _shown_custom_lin(eqn):
    p = eqn.params
    return {"bwd": p["bwd"], "in_zeros": [not nz for nz in p["nonzero"]],
            "num_res": p["num_residuals"], "symbolic_zeros": getattr(p["bwd"], "symbolic_zeros", False)}


jit_p.shown = _shown_jit
custom_lin_p.shown = _shown_custom_lin
custom_jvp_call_p.shown = custom_vjp_call_p.shown = _shown_custom_call
jit_p.keeps_names = custom_jvp_call_p.keeps_names = custom_vjp_call_p.keeps_names = True
