"""scan: a loop of known length that carries values and stacks others.

Operands: consts, initial carry, xs (each with a leading axis of `length`).  The program maps
[*consts, *carry, *x slices] to [*carry, *y slices]; results are the final carry and the stacked ys.
Lowered as a while loop that reads slices of xs and writes slices of ys.
"""
from ...core import programs
from ...core.avals import ShapedArray, physical
from ...core.jaxpr import Var, dce, eval_jaxpr
from ...core.refs import Holder
from ...core.symbolic.dimension import Dimension
from ...core.symbolic_zeros import drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from ..arrays.elementwise_rules import accumulate
from ..arrays.shape import front, move_axis, zeros_of
from ..common import aval_of, np
from .calls import jit_bind
from .cond_while import carry_batched, carry_fixpoint, carry_tangents, front_to, groups, padded, write_while


def _stacked(aval, length):
    return aval.with_axis(0, length)


def _row(aval):
    return aval.without_axis(0)


def _scan_abstract_eval(*avals, jaxpr, length, reverse, unroll, num_consts, num_carry):
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *(_stacked(a, length) for a in outs[num_carry:])]


# --- lowering -------------------------------------------------------------------------------------

def _scan_lower(ctx, eqn, *names):
    """Whole rounds of `unroll` steps in a loop, then the steps that are left; no loop for a single round."""
    p = eqn.params
    length, sizes = p["length"], (p["num_consts"], p["num_carry"])
    if type(length) is Dimension:
        unroll, main = 1, length
    else:
        unroll = max(1, min(p["unroll"], length))
        main = length // unroll * unroll if unroll < length else 0
    consts, carry, xs = groups(list(names), *sizes)
    if main == 0 < length:
        return _unrolled(ctx, eqn, consts, carry, xs)
    xs_avals, stacked = [v.aval for v in eqn.invars[sum(sizes):]], [v.aval for v in eqn.outvars[len(carry):]]
    ys = [_zeros(ctx, a) for a in stacked]
    index_type = "tensor<i32>"

    def index(n):
        return ctx.constant(n, np.int32)

    def cond(names):
        return [ctx.emit(f"stablehlo.compare LT, {names[0]}, {index(main)}, SIGNED : ({index_type}, "
                         f"{index_type}) -> tensor<i1>")]

    def body(names):
        (i,), consts, carry, xs, ys = groups(names, 1, *sizes, len(xs_avals))
        xs, ys = list(map(ctx.terms, xs, xs_avals)), list(map(ctx.terms, ys, stacked))
        one = index(1)
        for _ in range(unroll):
            carry, ys = _step(ctx, eqn, i, consts, carry, xs, ys)
            i = ctx.emit(f"stablehlo.add {i}, {one} : {index_type}")
        return [i, *consts, *carry, *xs, *ys]
    if main != 0:
        avals = [*(v.aval for v in eqn.invars[:len(consts)]), *p["jaxpr"].out_avals[:len(carry)], *xs_avals,
                 *stacked]
        types = [index_type, *(a.mlir for a in avals)]
        results = write_while(ctx, types, [index(0), *consts, *carry, *xs, *ys], cond, body)
        _, consts, carry, xs, ys = groups(results, 1, *sizes, len(xs))
    for n in range(length - main):
        carry, ys = _step(ctx, eqn, index(main + n), consts, carry, xs, ys)
    return [*carry, *ys]


def _unrolled(ctx, eqn, consts, carry, xs):
    """All iterations without a loop: XLA fuses slices at fixed places and one concatenation, and no chain of
    updates."""
    p = eqn.params
    length, avals = p["length"], [v.aval for v in eqn.invars[len(consts) + len(carry):]]
    produced = []
    for n in reversed(range(length)) if p["reverse"] else range(length):
        slices = [_row_at(ctx, x, a, n) for x, a in zip(xs, avals)]
        carry, rows = groups(ctx.inline(p["jaxpr"], [*consts, *carry, *slices]), len(carry))
        produced.append([_with_axis(ctx, row, v.aval) for row, v in zip(rows, eqn.outvars[len(carry):])])
    if p["reverse"]:
        produced.reverse()
    ys = [_joined(ctx, rows, v.aval) for rows, v in zip(zip(*produced), eqn.outvars[len(carry):])]
    return [*carry, *ys]


def _step(ctx, eqn, at, consts, carry, xs, ys):
    """One iteration at index value `at`, counted from the start of the loop: (the carry, the ys)."""
    p = eqn.params
    if p["reverse"]:
        last = ctx.constant(p["length"] - 1, np.int32)
        at = ctx.emit(f"stablehlo.subtract {last}, {at} : tensor<i32>")
    slices = [_read(ctx, x, v.aval, at) for x, v in zip(xs, eqn.invars[len(consts) + len(carry):])]
    carry, rows = groups(ctx.inline(p["jaxpr"], [*consts, *carry, *slices]), len(carry))
    return carry, [_write(ctx, y, v.aval, row, at) for y, v, row in zip(ys, eqn.outvars[len(carry):], rows)]


def _zeros(ctx, aval):
    aval = physical(aval)
    zero = ctx.constant(np.zeros((), aval.dtype))
    return ctx.emit(f"stablehlo.broadcast_in_dim {zero}, dims = [] : ({ShapedArray((), aval.dtype).mlir}) -> "
                    f"{aval.mlir}")


def _starts(ctx, at, rank):
    zero = ctx.constant(np.array(0, np.int32)) if rank > 1 else None
    return ", ".join([at] + [zero] * (rank - 1)), ", ".join(["tensor<i32>"] * rank)


def _read(ctx, x, aval, at):
    shape = physical(aval).shape
    starts, types = _starts(ctx, at, len(shape))
    one = _row(aval).with_axis(0, 1)
    return _without_axis(ctx, ctx.emit(
        f"stablehlo.dynamic_slice {x}, {starts}, sizes = [{', '.join(map(str, (1, *shape[1:])))}] : "
        f"({aval.mlir}, {types}) -> {one.mlir}"), aval)


def _row_at(ctx, x, aval, n):
    """Row number `n`."""
    shape, one = physical(aval).shape, _row(aval).with_axis(0, 1)
    if shape[0] > 1:
        ranges = ", ".join([f"{n}:{n + 1}", *(f"0:{d}" for d in shape[1:])])
        x = ctx.emit(f"stablehlo.slice {x} [{ranges}] : ({aval.mlir}) -> {one.mlir}")
    return _without_axis(ctx, x, aval)


def _without_axis(ctx, row, aval):
    one = _row(aval).with_axis(0, 1)
    return ctx.emit(f"stablehlo.reshape {ctx.terms(row, one)} : ({one.mlir}) -> {_row(aval).mlir}")


def _with_axis(ctx, row, aval):
    one = _row(aval).with_axis(0, 1)
    return ctx.terms(ctx.emit(f"stablehlo.reshape {row} : ({_row(aval).mlir}) -> {one.mlir}"), one)


def _joined(ctx, rows, aval):
    """The rows below each other."""
    if len(rows) == 1:
        return rows[0]
    types = ", ".join([_row(aval).with_axis(0, 1).mlir] * len(rows))
    return ctx.terms(ctx.emit(
        f"stablehlo.concatenate {', '.join(rows)}, dim = 0 : ({types}) -> {aval.mlir}"), aval)


def _write(ctx, y, aval, row, at):
    one = _row(aval).with_axis(0, 1)
    starts, types = _starts(ctx, at, len(physical(aval).shape))
    y = ctx.emit(f"stablehlo.dynamic_update_slice {y}, {_with_axis(ctx, row, aval)}, {starts} : "
                 f"({aval.mlir}, {one.mlir}, {types}) -> {aval.mlir}")
    return ctx.terms(y, aval)


# --- derivatives and batching ---------------------------------------------------------------------
#
# Each rule makes another scan, whose consts, carry and xs are those of this one with others beside them.

def _loop(name, body, consts, carry_avals, xs):
    """The parameters of a scan: body(consts, carry, slices of xs) -> [*carry, *ys]."""
    sizes = len(consts), len(carry_avals)
    avals = [*map(aval_of, consts), *carry_avals, *(_row(aval_of(x)) for x in xs)]
    jaxpr = programs.trace_closed(lambda *args: body(*groups(args, *sizes)), avals, name)
    return {"jaxpr": jaxpr, "num_consts": sizes[0], "num_carry": sizes[1]}


def _grown(marks, sizes, step):
    """Marks of all operands, as many of the carry as a step needs, and of the outputs: step(marks)."""
    consts, carry, xs = groups(marks, *sizes)
    carry = carry_fixpoint(carry, lambda m: step((*consts, *m, *xs))[:len(m)])
    marks = (*consts, *carry, *xs)
    return marks, carry, (*carry, *step(marks)[len(carry):])


def _scan_jvp(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    sizes = num_consts, num_carry
    consts, carry, xs = groups(primals, *sizes)
    marks, carried, out_marks = _grown(nonzero_mask(tangents), sizes, lambda m: programs.jvp(jaxpr, m)[1])
    moved, have = programs.jvp(jaxpr, marks)
    ct, kt, xt = groups(tangents, *sizes)
    kt = carry_tangents(carry, kt, carried)
    tangent_avals = [a.tangent() for a in jaxpr.out_avals]

    def body(consts, carry, slices):
        (c, dc), (k, dk), (x, dx) = groups(consts, num_consts), groups(carry,
                                                                       num_carry), groups(slices, len(xs))
        outs, dots = groups(eval_jaxpr(moved, (), *c, *k, *x, *dc, *dk, *dx), len(have))
        dots = padded(dots, have, out_marks, tangent_avals)
        return [*outs[:num_carry], *dots[:len(kt)], *outs[num_carry:], *dots[len(kt):]]
    consts, xs_all = [*consts, *drop_zeros(ct)], [*xs, *drop_zeros(xt)]
    carry_avals = [*jaxpr.in_avals[num_consts:num_consts + num_carry], *map(aval_of, kt)]
    results = scan_p.bind(*consts, *carry, *kt, *xs_all,
                          **_loop(jaxpr.name, body, consts, carry_avals, xs_all), **params)
    outs, dk, ys, dys = groups(results, num_carry, len(kt), len(have) - num_carry)
    return [*outs, *ys], fill_zeros([*dk, *dys], out_marks)


def _scan_linearize(trace, primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    """Residuals that are consts or xs are used again as they are; the forward loop stacks the others."""
    sizes = num_consts, num_carry
    marks, carried, out_marks = _grown(nonzero_mask(tangents), sizes,
                                       lambda m: programs.linearize(jaxpr, m).out_nonzero)
    split = programs.linearize_steps(jaxpr, marks, *sizes, params["length"])
    shared = jit_bind(split.before, primals[:num_consts]) if split.before.outvars else []
    given = [*primals[:num_consts], *shared, *primals[num_consts:]]
    num_fixed = num_consts + len(shared)
    results = scan_p.bind(*given, jaxpr=split.step, num_consts=num_fixed, num_carry=num_carry, **params)
    fixed = [kind == "in" and i < num_fixed for kind, i in split.residuals]
    residuals = [given[i] if kind == "in" else results[i] for kind, i in split.residuals]
    fixed_residuals = [r for r, f in zip(residuals, fixed) if f]
    stacks = [r for r, f in zip(residuals, fixed) if not f]
    ct, kt, xt = groups(tangents, *sizes)
    kt = carry_tangents(primals[num_consts:], kt, carried)
    tangent_avals = [a.tangent() for a in jaxpr.out_avals]

    def body(consts, dk, slices):
        (c, dc), (x, dx) = groups(consts, len(fixed_residuals)), groups(slices, len(stacks))
        c, x = iter(c), iter(x)
        moved = eval_jaxpr(split.linear, (), *[next(c) if f else next(x) for f in fixed], *dc, *dk, *dx)
        return padded(moved, split.out_nonzero, out_marks, tangent_avals)
    consts, xs = [*fixed_residuals, *drop_zeros(ct)], [*stacks, *drop_zeros(xt)]
    carry_avals = [a for a, m in zip(tangent_avals, carried) if m]
    moved = trace.rules.record(scan_p, [*consts, *kt, *xs],
                               {**_loop(jaxpr.name, body, consts, carry_avals, xs), **params})
    return results[:len(jaxpr.outvars)], fill_zeros(moved, out_marks)


def _scan_transpose(cts, *args, jaxpr, reverse, num_consts, num_carry, **params):
    """A linear loop backwards: cotangents of the carry are carried, those of linear consts are summed up."""
    consts, carry, xs = groups(args, num_consts, num_carry)
    linear = [is_undefined_primal(a) for a in args]
    linear[num_consts:num_consts + num_carry] = [True] * num_carry
    fixed, fixed_xs = ([a for a in part if not is_undefined_primal(a)] for part in (consts, xs))
    sum_avals = [c.aval.cotangent() for c in consts if is_undefined_primal(c)]
    carry_avals = [a.cotangent() for a in jaxpr.out_avals[:num_carry]]
    ct_avals = [*sum_avals, *carry_avals, *(_row(x.aval).cotangent() for x in xs if is_undefined_primal(x))]
    ct_carry = [zeros_of(a) if ct is None else ct for ct, a in zip(cts, carry_avals)]
    ct_ys = cts[num_carry:]
    program, in_nonzero = programs.transpose(jaxpr, tuple(linear),
                                             (*[True] * num_carry, *nonzero_mask(ct_ys)))

    def body(fixed, state, slices):
        (sums, ct_k), (x, ct_y) = groups(state, len(sum_avals)), groups(slices, len(fixed_xs))
        found = fill_zeros(eval_jaxpr(program, (), *fixed, *x, *ct_k, *ct_y), in_nonzero)
        found[:len(sums)] = map(accumulate, sums, found)
        return [zeros_of(a) if ct is None else ct for ct, a in zip(found, ct_avals)]
    sums, slices = [zeros_of(a) for a in sum_avals], [*fixed_xs, *drop_zeros(ct_ys)]
    state_avals = [a.strip_weak_type() for a in (*sum_avals, *carry_avals)]
    results = scan_p.bind(*fixed, *sums, *ct_carry, *slices, reverse=not reverse,
                          **_loop(jaxpr.name, body, fixed, state_avals, slices), **params)
    return [ct if is_undefined_primal(a) else None for ct, a in zip(fill_zeros(results, linear), args)]


def _scan_batching(axis, args, dims, *, jaxpr, num_consts, num_carry, **params):
    consts, carry, xs = groups(args, num_consts, num_carry)
    cd, kd, xd = groups(dims, num_consts, num_carry)
    marks, carried, out_marks = _grown(nonzero_mask(dims), (num_consts, num_carry),
                                       lambda m: programs.batch(jaxpr, axis, m)[1])
    moved, _ = programs.batch(jaxpr, axis, marks, out_marks)
    carry = carry_batched(axis, front(carry, kd), nonzero_mask(kd), carried)
    # the loop's axis stays in front
    xs = [x if d is None else move_axis(x, d, 1) for x, d in zip(xs, xd)]
    outs = scan_p.bind(*front(consts, cd), *carry, *xs, jaxpr=moved, num_consts=num_consts,
                       num_carry=num_carry, **params)
    places = [0] * num_carry + [1] * (len(outs) - num_carry)
    return outs, [place if m else None for place, m in zip(places, out_marks)]


def _scan_discharge(states, values, args, *, jaxpr, num_consts, num_carry, **params):
    n = len(states)
    consts, rest = groups(args, num_consts)
    program = front_to(programs.discharge(jaxpr, states), n, num_consts)
    results = scan_p.bind(*consts, *values, *rest, jaxpr=program, num_consts=num_consts,
                          num_carry=num_carry + n, **params)
    return results[:n], results[n:]


@programs.cached
def _alive_body(jaxpr, used_outputs, num_consts, num_carry):
    """(the program of a step with what is used, which inputs that are, which of the carry)."""
    carries, ys = slice(num_consts, num_consts + num_carry), used_outputs[num_carry:]
    carry = carry_fixpoint(used_outputs[:num_carry], lambda m: dce(jaxpr, (*m, *ys))[1][carries])
    pruned, used = dce(jaxpr, [*carry, *ys])
    used[carries] = carry
    return pruned.replace(invars=[v for v, u in zip(pruned.invars, used) if u], arg_names=None), used, carry


def _scan_dce(used_outputs, eqn):
    """Drop what is not used, and what only that needs; of the carry, what no step feeds into what is used."""
    p = eqn.params
    jaxpr, nc, n = p["jaxpr"], p["num_consts"], p["num_carry"]
    if jaxpr.effects or all(used_outputs):
        return eqn
    kept, used_inputs, carry = _alive_body(jaxpr, tuple(used_outputs), nc, n)
    wanted = [*carry, *used_outputs[n:]]
    return eqn.replace(invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
                       outvars=[v for v, u in zip(eqn.outvars, wanted) if u],
                       params={**p, "jaxpr": kept, "num_consts": sum(used_inputs[:nc]),
                               "num_carry": sum(carry)})


def _scan_partial_eval(policy, wanted, eqn):
    """What a step saves is stacked.  The second loop carries what its steps need and is not saved."""
    p = eqn.params
    jaxpr, nc, nk, n = p["jaxpr"], p["num_consts"], p["num_carry"], len(eqn.outvars)
    carry, ys = wanted[:nk], wanted[nk:]
    kept = programs.split_for_remat(jaxpr, policy, (*[False] * nk, *ys), nk)[3]
    ys = tuple([y and not k for y, k in zip(ys, kept[nk:])])
    carry = carry_fixpoint(carry,
                           lambda m: dce(programs.partial_eval(jaxpr, policy, (*m, *ys))[1])[1][nc:nc + nk])
    forward, again, places, _ = programs.split_for_remat(jaxpr, policy, (*carry, *ys), nk)
    again, used = dce(again)
    used[nc:nc + nk] = carry
    outs = [*eqn.outvars, *[Var(_stacked(a, p["length"])) for a in forward.out_avals[n:]]]
    saved = [outs[i] for i in places]
    first = eqn.replace(outvars=outs, params={**p, "jaxpr": forward}) if len(outs) > n else eqn
    second = None
    if any((*carry, *ys)) or again.effects:
        second = eqn.replace(
            invars=[v for v, u in zip([*eqn.invars, *saved], used) if u],
            outvars=[v for v, w in zip(eqn.outvars, (*carry, *ys)) if w],
            params={**p, "jaxpr": again.replace(invars=[v for v, u in zip(again.invars, used) if u]),
                    "num_consts": sum(used[:nc]), "num_carry": sum(carry)})
    return first, second, [*saved, *[v for v, k in zip(eqn.outvars, kept) if k]]


scan_p = Holder(
    "scan", multiple_results=True, linear="typed", abstract_eval=_scan_abstract_eval, lower=_scan_lower,
                jvp=_scan_jvp, linearize=_scan_linearize, transpose=_scan_transpose, batching=_scan_batching,
                dce=_scan_dce, discharge=_scan_discharge, partial_eval=_scan_partial_eval)


def batch_one_by_one(axis, args, dims, bind, name, unroll=1):
    """A rule `batching`: `bind(*args)`, of an element's arguments, once for each element, in a loop."""
    args, batched = front(args, dims), nonzero_mask(dims)
    consts, xs = [a for a, b in zip(args, batched) if not b], [a for a, b in zip(args, batched) if b]

    def body(*given):
        same, own = map(iter, groups(given, len(consts)))
        return bind(*(next(own if b else same) for b in batched))
    avals = [*map(aval_of, consts), *map(_row, map(aval_of, xs))]
    outs = scan_p.bind(*consts, *xs, jaxpr=programs.trace_closed(body, avals, name), length=axis.size,
                       reverse=False, unroll=unroll, num_consts=len(consts), num_carry=0)
    return outs, [0] * len(outs)
