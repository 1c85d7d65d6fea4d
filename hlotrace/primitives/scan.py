"""scan: a loop of known length that carries values and stacks others.

Operands: consts, initial carry, xs (each with a leading axis of `length`).  The program maps
[*consts, *carry, *x slices] to [*carry, *y slices]; results are the final carry and the stacked ys.
Lowered as a while loop that reads slices of xs and writes slices of ys.
"""
from ..core import programs
from ..core.avals import ShapedArray, physical
from ..core.jaxpr import dce, eval_jaxpr
from ..core.linear import is_linear
from ..core.trace import trace_to_jaxpr
from .calls import nonzero, present
from .common import Primitive, aval_of, np
from .control import carry_fixpoint, front, front_to, several
from .elementwise import add_p
from .shape import broadcast_axis, instantiate, move_axis, zeros_of


def _stacked(aval, length):
    return aval.update(shape=(length, *aval.shape))


def _scan_typ(*avals, jaxpr, length, reverse, unroll, num_consts, num_carry):
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *(_stacked(a, length) for a in outs[num_carry:])]


def split_operands(values, num_consts, num_carry):
    """(consts, carry, xs)"""
    return values[:num_consts], values[num_consts:num_consts + num_carry], values[num_consts + num_carry:]


# --- lowering ---------------------------------------------------------------------------------------------------

def _scan_lower(ctx, eqn, *names):
    p = eqn.params
    jaxpr, length, unroll = p["jaxpr"], p["length"], max(1, min(p["unroll"], p["length"]))
    consts, carry, xs = split_operands(list(names), p["num_consts"], p["num_carry"])
    x_avals = [v.aval for v in eqn.invars[len(consts) + len(carry):]]
    y_avals = jaxpr.out_avals[len(carry):]
    stacked = [_stacked(a, length) for a in y_avals]
    ys = [_zeros(ctx, a) for a in stacked]
    carry_types = [a.mlir for a in jaxpr.out_avals[:len(carry)]]
    index_type = "tensor<i32>"

    def step(i, consts, carry, xs, ys):
        """One iteration at index value `i` (counted from the start of the loop)."""
        at = i
        if p["reverse"]:
            last = ctx.constant(np.array(length - 1, np.int32))
            at = ctx.emit(f"stablehlo.subtract {last}, {i} : {index_type}")
        slices = [_read(ctx, x, a, at) for x, a in zip(xs, x_avals)]
        outs = ctx.inline(jaxpr, [*consts, *carry, *slices])
        ys = [_write(ctx, y, s, v, a, at) for y, s, v, a in zip(ys, stacked, outs[len(carry):], y_avals)]
        return outs[:len(carry)], ys

    if length == 0:
        return [*carry, *ys]
    if unroll >= length:
        for n in range(length):
            carry, ys = step(ctx.constant(np.array(n, np.int32)), consts, carry, xs, ys)
        return [*carry, *ys]
    main, rest = length // unroll * unroll, length % unroll
    types = [index_type, *(v.aval.mlir for v in eqn.invars[:len(consts)]), *carry_types,
             *(a.mlir for a in x_avals), *(a.mlir for a in stacked)]
    sizes = [len(consts), len(carry), len(xs), len(ys)]

    def unpack(args):
        groups, start = [args[0]], 1
        for size in sizes:
            groups.append(args[start:start + size])
            start += size
        return groups

    def cond(args):
        i = unpack(args)[0]
        limit = ctx.constant(np.array(main, np.int32))
        return [ctx.emit(f"stablehlo.compare LT, {i}, {limit}, SIGNED : ({index_type}, {index_type}) -> tensor<i1>")], [
            "tensor<i1>"]

    def body(args):
        i, consts, carry, xs, ys = unpack(args)
        one = ctx.constant(np.array(1, np.int32))
        for _ in range(unroll):
            carry, ys = step(i, consts, carry, xs, ys)
            i = ctx.emit(f"stablehlo.add {i}, {one} : {index_type}")
        return [i, *consts, *carry, *xs, *ys], types
    start = [ctx.constant(np.array(0, np.int32)), *consts, *carry, *xs, *ys]
    listed = ", ".join(types)
    regions = several(ctx.region(types, cond), ctx.region(types, body))
    results = ctx.emit(f'"stablehlo.while"({", ".join(start)}) {regions} : ({listed}) -> ({listed})', len(types))
    _, consts, carry, xs, ys = unpack(results)
    for n in range(main, main + rest):
        carry, ys = step(ctx.constant(np.array(n, np.int32)), consts, carry, xs, ys)
    return [*carry, *ys]


def _zeros(ctx, aval):
    aval = physical(aval)
    zero = ctx.constant(np.zeros((), aval.dtype))
    return ctx.emit(f"stablehlo.broadcast_in_dim {zero}, dims = [] : ({ShapedArray((), aval.dtype).mlir}) -> "
                    f"{aval.mlir}")


def _starts(ctx, at, rank):
    zero = ctx.constant(np.array(0, np.int32)) if rank > 1 else None
    return ", ".join([at] + [zero] * (rank - 1)), ", ".join(["tensor<i32>"] * rank)


def _physical_shape(aval):
    return physical(aval).shape


def _read(ctx, x, aval, at):
    shape = _physical_shape(aval)
    starts, types = _starts(ctx, at, len(shape))
    one = aval.update(shape=(1, *aval.shape[1:]))
    sliced = ctx.emit(f"stablehlo.dynamic_slice {x}, {starts}, sizes = [{', '.join(map(str, (1, *shape[1:])))}] : "
                      f"({aval.mlir}, {types}) -> {one.mlir}")
    return ctx.emit(f"stablehlo.reshape {sliced} : ({one.mlir}) -> {aval.update(shape=aval.shape[1:]).mlir}")


def _write(ctx, y, stacked, value, aval, at):
    one = aval.update(shape=(1, *aval.shape))
    starts, types = _starts(ctx, at, len(_physical_shape(stacked)))
    row = ctx.emit(f"stablehlo.reshape {value} : ({aval.mlir}) -> {one.mlir}")
    return ctx.emit(f"stablehlo.dynamic_update_slice {y}, {row}, {starts} : ({stacked.mlir}, {one.mlir}, {types}) -> "
                    f"{stacked.mlir}")


# --- derivatives ------------------------------------------------------------------------------------------------

def reordered(jaxpr, fun, avals):
    """A program from a function that calls `jaxpr`'s equations with its operands in another order."""
    return programs.embed_constants(trace_to_jaxpr(fun, avals, jaxpr.name))


def _fill(values, flags, avals):
    """Outputs for every flag in `flags`: a value, or zeros where it is None."""
    return [zeros_of(a) if v is None else v for v, f, a in zip(values, flags, avals) if f]


def _scan_jvp(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    consts, carry, xs = split_operands(primals, num_consts, num_carry)
    ct, kt, xt = split_operands(tangents, num_consts, num_carry)
    const_marks, x_marks = nonzero(ct), nonzero(xt)
    marks = carry_fixpoint(nonzero(kt), lambda m: programs.jvp(jaxpr, (*const_marks, *m, *x_marks))[1][:num_carry])
    moved, have = programs.jvp(jaxpr, (*const_marks, *marks, *x_marks))
    y_marks = have[num_carry:]
    tangent_avals = [a.tangent() for a in jaxpr.out_avals]
    n_out = len(jaxpr.outvars)
    nct, nkt = sum(const_marks), sum(marks)

    def fun(*args):
        c, args = args[:num_consts], args[num_consts:]
        dc, args = args[:nct], args[nct:]
        k, args = args[:num_carry], args[num_carry:]
        dk, args = args[:nkt], args[nkt:]
        x, dx = args[:len(xs)], args[len(xs):]
        results = eval_jaxpr(moved, (), *c, *k, *x, *dc, *dk, *dx)
        outs, rest = results[:n_out], iter(results[n_out:])
        out_tangents = [next(rest) if h else None for h in have]
        return [*outs[:num_carry], *_fill(out_tangents[:num_carry], marks, tangent_avals), *outs[num_carry:],
                *present(out_tangents[num_carry:])]
    filled = [instantiate(t, aval_of(k)) for t, k, m in zip(kt, carry, marks) if m]
    operands = [*consts, *present(ct), *carry, *filled, *xs, *present(xt)]
    body_avals = [aval_of(v) for v in (*consts, *present(ct), *carry, *filled)] + [
        _slice_aval(aval_of(v)) for v in (*xs, *present(xt))]
    body_avals = _body_avals(jaxpr, body_avals, num_consts, nct, num_carry)
    results = scan_p.bind(*operands, jaxpr=reordered(jaxpr, fun, body_avals), num_consts=num_consts + nct,
                          num_carry=num_carry + nkt, **params)
    outs, rest = results[:num_carry], results[num_carry:]
    dk, rest = rest[:nkt], rest[nkt:]
    n_y = n_out - num_carry
    ys, dys = rest[:n_y], iter(rest[n_y:])
    dk = iter(dk)
    return [*outs, *ys], [*(next(dk) if m else None for m in marks), *(next(dys) if m else None for m in y_marks)]


def _slice_aval(aval):
    return aval.update(shape=aval.shape[1:])


def _body_avals(jaxpr, avals, num_consts, nct, num_carry):
    """The avals with the carry's replaced by what the program says (its weak types are those of the loop)."""
    start = num_consts + nct
    return [*avals[:start], *jaxpr.in_avals[num_consts:num_consts + num_carry], *avals[start + num_carry:]]


def _scan_linearize(trace, primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    """Residuals that are consts or xs are used again as they are; the others are stacked by the forward loop."""
    consts, carry, xs = split_operands(primals, num_consts, num_carry)
    ct, kt, xt = split_operands(tangents, num_consts, num_carry)
    const_marks, x_marks = nonzero(ct), nonzero(xt)
    marks = carry_fixpoint(nonzero(kt), lambda m: programs.linearize(
        jaxpr, (*const_marks, *m, *x_marks)).out_nonzero[:num_carry])
    split = programs.linearize(jaxpr, (*const_marks, *marks, *x_marks))
    n_out = len(jaxpr.outvars)
    # a residual that is a carry changes from step to step and has to be stacked like a computed one
    stacked_carry = [i - num_consts for kind, i in split.residuals if kind == "in" and
                     num_consts <= i < num_consts + num_carry]

    def forward(*args):
        results = eval_jaxpr(split.primal, (), *args)
        return [*results, *(args[num_consts + i] for i in stacked_carry)]
    primal = reordered(jaxpr, forward, jaxpr.in_avals) if stacked_carry else split.primal
    results = scan_p.bind(*primals, jaxpr=primal, num_consts=num_consts, num_carry=num_carry, **params)
    outs, saved = results[:n_out], results[n_out:]
    carried = iter(saved[len(saved) - len(stacked_carry):])

    loop_consts, loop_xs, sources = [], [], []
    for kind, i in split.residuals:
        if kind == "in" and i < num_consts:
            sources.append((0, len(loop_consts)))
            loop_consts.append(consts[i])
        else:
            sources.append((1, len(loop_xs)))
            loop_xs.append(saved[i] if kind == "out" else next(carried) if i < num_consts + num_carry
                           else xs[i - num_consts - num_carry])
    nct, nkt = sum(const_marks), sum(marks)
    tangent_avals = [a.tangent() for a in jaxpr.out_avals]
    y_marks = split.out_nonzero[num_carry:]

    def linear(*args):
        c, args = args[:len(loop_consts)], args[len(loop_consts):]
        dc, args = args[:nct], args[nct:]
        dk, args = args[:nkt], args[nkt:]
        x, dx = args[:len(loop_xs)], args[len(loop_xs):]
        residuals = [(c, x)[which][i] for which, i in sources]
        rest = iter(eval_jaxpr(split.linear, (), *residuals, *dc, *dk, *dx))
        out = [next(rest) if nz else None for nz in split.out_nonzero]
        return [*_fill(out[:num_carry], marks, tangent_avals), *present(out[num_carry:])]
    filled = [instantiate(t, aval_of(k)) for t, k, m in zip(kt, carry, marks) if m]
    operands = [*loop_consts, *present(ct), *filled, *loop_xs, *present(xt)]
    avals = [*(aval_of(v) for v in (*loop_consts, *present(ct))),
             *(a for a, m in zip(tangent_avals, marks) if m), *(_slice_aval(aval_of(v)) for v in (*loop_xs, *present(xt)))]
    moved = trace.rules.record(scan_p, operands, {
        "jaxpr": reordered(jaxpr, linear, avals), "num_consts": len(loop_consts) + nct, "num_carry": nkt, **params})
    dk, dys = iter(moved[:nkt]), iter(moved[nkt:])
    return outs, [*(next(dk) if m else None for m in marks), *(next(dys) if m else None for m in y_marks)]


def _scan_transpose(cts, *args, jaxpr, length, reverse, unroll, num_consts, num_carry):
    """A linear loop backwards: cotangents of the carry are carried, those of linear consts are summed up."""
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    lin_consts, lin_xs = [is_linear(c) for c in consts], [is_linear(x) for x in xs]
    fixed_consts = [c for c in consts if not is_linear(c)]
    fixed_xs = [x for x in xs if not is_linear(x)]
    carry_avals = jaxpr.out_avals[:num_carry]
    const_avals = [c.aval for c in consts if is_linear(c)]
    x_avals = [_slice_aval(x.aval) for x in xs if is_linear(x)]
    ct_carry = [zeros_of(a) if ct is None else ct for ct, a in zip(cts[:num_carry], carry_avals)]
    y_marks = tuple(ct is not None for ct in cts[num_carry:])
    linear = (*lin_consts, *[True] * num_carry, *lin_xs)
    program, in_nonzero = programs.transpose(jaxpr, linear, (*[True] * num_carry, *y_marks))

    def body(*args):
        fixed, args = args[:len(fixed_consts)], args[len(fixed_consts):]
        sums, args = args[:len(const_avals)], args[len(const_avals):]
        ct_k, args = args[:num_carry], args[num_carry:]
        x, ct_y = args[:len(fixed_xs)], args[len(fixed_xs):]
        rest = iter(eval_jaxpr(program, (), *fixed, *x, *ct_k, *ct_y))
        found = [next(rest) if nz else None for nz in in_nonzero]
        ct_c, ct_k, ct_x = split_operands(found, len(const_avals), num_carry)
        sums = [s if c is None else add_p.bind(s, c) for s, c in zip(sums, ct_c)]
        return [*sums, *_fill(ct_k, [True] * num_carry, carry_avals), *_fill(ct_x, [True] * len(x_avals), x_avals)]
    operands = [*fixed_consts, *(zeros_of(a) for a in const_avals), *ct_carry, *fixed_xs, *present(cts[num_carry:])]
    n_fixed = len(fixed_consts) + len(const_avals) + num_carry
    avals = [aval_of(v) for v in operands[:n_fixed]] + [_slice_aval(aval_of(v)) for v in operands[n_fixed:]]
    avals[len(fixed_consts):n_fixed] = [a.strip_weak_type() for a in (*const_avals, *carry_avals)]
    results = scan_p.bind(*operands, jaxpr=reordered(jaxpr, body, avals), length=length, reverse=not reverse,
                          unroll=unroll, num_consts=len(fixed_consts), num_carry=len(const_avals) + num_carry)
    sums, ct_k, ct_x = split_operands(results, len(const_avals), num_carry)
    sums, ct_x = iter(sums), iter(ct_x)
    return [*(next(sums) if lin else None for lin in lin_consts),
            *(k if is_linear(c) else None for k, c in zip(ct_k, carry)),
            *(next(ct_x) if lin else None for lin in lin_xs)]


def _scan_batch(axis, args, dims, *, jaxpr, num_consts, num_carry, **params):
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    cd, kd, xd = split_operands(dims, num_consts, num_carry)
    const_marks, x_marks = (tuple(d is not None for d in part) for part in (cd, xd))
    marks = carry_fixpoint(tuple(d is not None for d in kd), lambda m: programs.batch(
        jaxpr, axis, (*const_marks, *m, *x_marks))[1][:num_carry])
    y_marks = programs.batch(jaxpr, axis, (*const_marks, *marks, *x_marks))[1][num_carry:]
    moved, _ = programs.batch(jaxpr, axis, (*const_marks, *marks, *x_marks), (*marks, *y_marks))
    carry = [broadcast_axis(k, axis.size, 0) if m and d is None else k if d is None else front([k], [d])[0]
             for k, d, m in zip(carry, kd, marks)]
    xs = [x if d is None else move_axis(x, d, 1) for x, d in zip(xs, xd)]      # the loop's axis stays in front
    outs = scan_p.bind(*front(consts, cd), *carry, *xs, jaxpr=moved, num_consts=num_consts, num_carry=num_carry,
                       **params)
    return outs, [*(0 if m else None for m in marks), *(1 if m else None for m in y_marks)]


def _scan_thread(states, values, args, *, jaxpr, num_consts, num_carry, **params):
    n = len(states)
    consts, rest = args[:num_consts], args[num_consts:]
    program = front_to(programs.thread(jaxpr, states), n, num_consts)
    results = scan_p.bind(*consts, *values, *rest, jaxpr=program, num_consts=num_consts, num_carry=num_carry + n, **params)
    return results[:n], results[n:]


def _scan_dce(used_outputs, eqn):
    """Drop unused ys, and what only they need.  The carry stays: a step may feed the next."""
    p = eqn.params
    jaxpr, n = p["jaxpr"], p["num_carry"]
    if jaxpr.effects or all(used_outputs[n:]):
        return eqn
    wanted = [True] * n + list(used_outputs[n:])
    pruned, used_inputs = dce(jaxpr, wanted)
    used_inputs[p["num_consts"]:p["num_consts"] + n] = [True] * n
    kept = pruned.replace(invars=[v for v, u in zip(pruned.invars, used_inputs) if u], arg_names=None)
    return eqn.replace(invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
                       outvars=[v for v, u in zip(eqn.outvars, wanted) if u],
                       params={**p, "jaxpr": kept, "num_consts": sum(used_inputs[:p["num_consts"]])})


scan_p = Primitive("scan", multiple_results=True, typ=_scan_typ, lower=_scan_lower, jvp=_scan_jvp,
                   linearize=_scan_linearize, transpose=_scan_transpose, batch=_scan_batch, dce=_scan_dce,
                   thread=_scan_thread)
