"""Control flow: cond (also switch) and while.  `scan` is in `scan.py`.

A primitive here holds programs that close over nothing: what they use are operands of the equation.
"""
from ...core import programs
from ...core.effects import IO
from ...core.jaxpr import Var, dce, eval_jaxpr
from ...core.programs import trace_closed
from ...core.refs import Holder, refuse_again
from ...core.symbolic_zeros import drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from ...core.trace import entering
from ..arrays.elementwise import clamp_p, ge, select_n_p
from ..arrays.reduce import reduce_or_p
from ..arrays.shape import front, front_dims, in_front, instantiate, mapped, move_axis, spread_as, zeros_of
from ..common import aval_of, dtypes, np, scalar
from ..parallel import divergent_collectives
from . import checks


def front_to(jaxpr, n, position):
    """The program with its first n inputs moved behind the next `position`."""
    names = jaxpr.arg_names
    order = [*range(n, n + position), *range(n), *range(n + position, len(jaxpr.invars))]
    return jaxpr.replace(invars=[jaxpr.invars[i] for i in order],
                         arg_names=names and [names[i] for i in order])


def several(*regions):
    """The texts of single regions, `({...})`, as those of one operation."""
    return f"({', '.join(r[1:-1] for r in regions)})"


def groups(values, *sizes):
    """The values in stretches of these sizes, and the rest."""
    for size in sizes:
        yield values[:size]
        values = values[size:]
    yield values


def padded(values, have, wanted, avals):
    """The values, one for each mark in `have`, with zeros for the marks that `wanted` has beyond those."""
    rest = iter(values)
    return [next(rest) if h else zeros_of(a) for h, w, a in zip(have, wanted, avals) if w]


def carry_fixpoint(marks, step):
    """The least superset of `marks` that `step` (marks -> marks of the carry afterwards) maps into itself."""
    while True:
        after = tuple(a or b for a, b in zip(marks, step(marks)))
        if after == marks:
            return marks
        marks = after


def carry_tangents(carry, tangents, marks):
    """The tangents that a loop carries: zeros where one is marked and not yet there."""
    return [instantiate(t, aval_of(c)) for t, c, m in zip(tangents, carry, marks) if m]


def carry_batched(axis, carry, have, marks):
    """The carry with a mapped axis in front where marked; some have it."""
    return [mapped(c, axis) if m and not h else c for c, h, m in zip(carry, have, marks)]


def write_while(ctx, types, start, cond, body):
    """A while loop over values of `types`; cond(names) -> [name] of a boolean, body(names) -> names."""
    ctx.locate("while")
    regions = several(ctx.region(types, lambda names: (cond(names), ["tensor<i1>"]), scope="while/cond"),
                      ctx.region(types, lambda names: (body(names), types), scope="while/body"))
    listed = ", ".join(types)
    return ctx.emit(f'"stablehlo.while"({", ".join(start)}) {regions} : ({listed}) -> ({listed})', len(types))


# --- cond -----------------------------------------------------------------------------------------

def _cond_lower(ctx, eqn, index, *names):
    branches, platforms = eqn.params["branches"], eqn.params.get("platforms")
    types = [a.mlir for a in branches[0].out_avals]
    if platforms:
        chosen = next((b for b, p in zip(branches, platforms) if p in (ctx.platform, None)), None)
        if chosen is None:
            raise NotImplementedError(f"lax.platform_dependent has no function for platform {ctx.platform}, "
                                      f"only for {', '.join(platforms)}: give one, {ctx.platform}=..., or "
                                      "default=...")
        return ctx.inline(chosen, names)

    def region(i, jaxpr):
        return ctx.region([], lambda _: (ctx.inline(jaxpr, names), types), isolated=False,
                          scope=f"cond/branch_{i}_fun")
    if dtypes.is_bool(eqn.invars[0].aval.dtype):
        index = ctx.emit(f"stablehlo.convert {index} : (tensor<i1>) -> tensor<i32>")
    regions, outs = several(*[region(i, jaxpr) for i, jaxpr in enumerate(branches)]), ", ".join(types)
    return ctx.emit(f'"stablehlo.case"({index}) {regions} : (tensor<i32>) -> ({outs})', len(types))


def _cond_jvp(primals, tangents, *, branches, **by):
    marks = nonzero_mask(tangents[1:])
    out_nonzero = _agree([programs.jvp(b, marks)[1] for b in branches])
    moved = tuple(_instantiate_outputs(programs.jvp(b, marks), b, out_nonzero) for b in branches)
    results = cond_p.bind(*primals, *drop_zeros(tangents[1:]), branches=moved, **by)
    n = len(branches[0].outvars)
    return results[:n], fill_zeros(results[n:], out_nonzero)


def _agree(masks):
    """An output of the branches is nonzero if it is in any of them."""
    return tuple(any(column) for column in zip(*masks))


def _instantiate_outputs(pair, branch, wanted):
    """A jvp program with zeros written out for the tangents that other branches have."""
    jaxpr, have = pair
    if tuple(have) == tuple(wanted):
        return jaxpr
    n = len(branch.outvars)
    return with_zeros(jaxpr, n, have, wanted, [a.tangent() for a in branch.out_avals])


def with_zeros(jaxpr, n, have, wanted, avals):
    """The program with, after its first n outputs, zeros for outputs that `wanted` has beyond `have`."""

    def fun(*args):
        outs = eval_jaxpr(jaxpr, (), *args)
        return [*outs[:n], *padded(outs[n:], have, wanted, avals)]
    return trace_closed(fun, jaxpr.in_avals, jaxpr.name)


def _cond_linearize(trace, primals, tangents, *, branches, **by):
    marks = nonzero_mask(tangents[1:])
    splits = [programs.linearize(b, marks) for b in branches]
    out_nonzero = _agree([s.out_nonzero for s in splits])
    n, operand_avals = len(branches[0].outvars), branches[0].in_avals
    primals_of, slots, all_saved = _saving([s.primal for s in splits], n)
    tangent_avals, out_avals = [aval_of(t) for t in drop_zeros(tangents[1:])], [a.tangent()
                                                                             for a in branches[0].out_avals]

    def linear_branch(split, own, name):
        def fun(*args):
            inputs, saved, moved = groups(args, len(operand_avals), len(all_saved))
            residuals = split.select(inputs, [saved[i] for i in own])
            return padded(eval_jaxpr(split.linear, (), *residuals, *moved), split.out_nonzero, out_nonzero,
                          out_avals)
        return trace_closed(fun, [*operand_avals, *all_saved, *tangent_avals], name)
    names = [b.name for b in branches]
    outs, saved = groups(cond_p.bind(*primals, branches=primals_of, **by), n)
    moved = trace.rules.record(cond_p, [*primals, *saved, *drop_zeros(tangents[1:])],
                               {"branches": tuple(map(linear_branch, splits, slots, names)), **by})
    return outs, fill_zeros(moved, out_nonzero)


def _saving(branches, n):
    """Branches that save, behind n results, what each needs later: in slots that they share where types
    agree, with zeros in those that one leaves.  Returns branches with all slots, for each branch the numbers
    of its own slots, types of all slots."""
    slots, owned = [], []
    for b in branches:
        own = []
        for aval in b.out_avals[n:]:
            at = next((i for i, a in enumerate(slots) if a == aval and i not in own), len(slots))
            if at == len(slots):
                slots.append(aval)
            own.append(at)
        owned.append(own)

    def widened(branch, own):
        def fun(*args):
            outs = eval_jaxpr(branch, (), *args)
            saved = dict(zip(own, outs[n:]))
            return [*outs[:n], *[saved[i] if i in saved else zeros_of(a) for i, a in enumerate(slots)]]
        return trace_closed(fun, branch.in_avals, branch.name)
    return tuple(map(widened, branches, owned)), owned, slots


def _cond_partial_eval(policy, wanted, eqn):
    branches, n = eqn.params["branches"], len(eqn.outvars)
    pairs = [programs.partial_eval(b, policy, wanted) for b in branches]
    first, slots, all_saved = _saving([forward for forward, _ in pairs], n)
    extra = [Var(a) for a in all_saved]

    def repeated(again, own):
        def fun(*args):
            inputs, saved = groups(args, len(args) - len(all_saved))
            return eval_jaxpr(again, (), *inputs, *[saved[i] for i in own])
        return trace_closed(fun, [*branches[0].in_avals, *all_saved], again.name)
    second = eqn.replace(invars=[*eqn.invars, *extra], outvars=[v for v, w in zip(eqn.outvars, wanted) if w],
                         params={
        **eqn.params, "branches": tuple([repeated(again, own) for (_, again), own in zip(pairs, slots)])})
    if extra:
        eqn = eqn.replace(outvars=[*eqn.outvars, *extra], params={**eqn.params, "branches": first})
    return eqn, _cond_dce([True] * len(second.outvars), second), extra


def _cond_transpose(cts, index, *args, branches, **by):
    linear = tuple(is_undefined_primal(a) for a in args)
    pairs = [programs.transpose(b, linear, nonzero_mask(cts)) for b in branches]
    wanted = _agree([nz for _, nz in pairs])
    avals = [a.aval for a in args if is_undefined_primal(a)]
    moved = tuple(j if nz == wanted else with_zeros(j, 0, nz, wanted, avals) for j, nz in pairs)
    results = cond_p.bind(index, *(a for a in args if not is_undefined_primal(a)), *drop_zeros(cts),
                          branches=moved, **by)
    return [None, *fill_zeros(fill_zeros(results, wanted), linear)]


def _cond_batching(axis, args, dims, *, branches, **by):
    if dims[0] is None:
        marks = nonzero_mask(dims[1:])
        out_batched = _agree([programs.batch(b, axis, marks)[1] for b in branches])
        moved = tuple(programs.batch(b, axis, marks, out_batched)[0] for b in branches)
        return cond_p.bind(args[0], *front(args[1:], dims[1:]), branches=moved, **by), front_dims(out_batched)
    found = checks.batched(_cond_discharge, axis, args, dims, branches=branches)
    if found is not None:
        return found
    _only_told("lax.cond or lax.switch with a mapped predicate runs every branch", "vmap-of-cond", branches)
    # a mapped predicate: run every branch and select
    index = move_axis(args[0], dims[0], 0)
    operands = [in_front(a, axis, d) for a, d in zip(args[1:], dims[1:])]
    marks = (True,) * len(operands)
    outs = [eval_jaxpr(programs.batch(b, axis, marks, True)[0], (), *operands) for b in branches]
    if not dtypes.is_bool(aval_of(index).dtype):
        last = scalar(len(branches) - 1, np.int32)
        index = ge(index, last) if len(branches) == 2 else clamp_p.bind(scalar(0, np.int32), index, last)

    def choose(*values):
        return select_n_p.bind(spread_as(index, values[0]), *values)
    return [choose(*column) for column in zip(*outs)], [0] * len(branches[0].outvars)


def _only_told(why, where, jaxprs):
    """Refuse programs with effects that must not happen for an element whose turn it is not.
    NotImplementedError where there is such an effect."""
    for effect in (effect for jaxpr in jaxprs for effect in jaxpr.effects if not effect.batchable):
        raise NotImplementedError(
            f"{'IO' if type(effect) is IO else 'Side'} effect not supported in {where}: vmap of {why}, also "
            f"for elements that do not ask for it, and there is a side effect on the outside here: {effect}"
            f"{' (io_callback)' * (type(effect) is IO)}. Map over the elements with lax.map, or use "
            "debug.callback or pure_callback, for which that does no harm.")


def _cond_discharge(states, values, args, *, branches, **by):
    index, *operands = args
    results = cond_p.bind(index, *values, *operands, branches=tuple([programs.discharge(b, states)
                                                                     for b in branches]), **by)
    return results[:len(states)], results[len(states):]


@programs.cached
def _alive_branches(first, others, used_outputs):
    """(the branches with these outputs and the inputs that one of them uses, which inputs these are)."""
    pruned, used = zip(*[dce(b, used_outputs) for b in (first, *others)])
    used = [any(flags) for flags in zip(*used)]
    return tuple([b.replace(invars=[v for v, u in zip(b.invars, used) if u], arg_names=None)
                  for b in pruned]), used


def _cond_dce(used_outputs, eqn):
    branches = eqn.params["branches"]
    if any(b.effects for b in branches):
        return eqn
    kept, used = _alive_branches(branches[0], branches[1:], tuple(used_outputs))
    operands = [v for v, u in zip(eqn.invars[1:], used) if u]
    return eqn.replace(invars=[eqn.invars[0], *operands], params={**eqn.params, "branches": kept},
                       outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u])


def _cond_vary(params, varied, which):
    if which[0]:        # other devices would take another branch
        return None
    return {**params, "branches": tuple([varied(b, which[1:]) for b in params["branches"]])}


def _cond_abstract_eval(index, *avals, branches, platforms=None):
    if index.vma:
        what, names = "The index of lax.switch", [f"branch {i}" for i in range(len(branches))]
        if len(branches) == 2:
            what, names = "The predicate of lax.cond", ["the false branch", "the true branch"]
        divergent_collectives.check(what, index, [*zip(names, branches)], transposed=True)
    return [_either(index.vma, column) for column in zip(*[b.out_avals for b in branches])]


def _either(vma, avals):
    """The type of one of several values, which may vary along other axes: as weak as the first one."""
    first = avals[0]
    if vma or any(a is not first for a in avals):
        first = first.update(vma=vma.union(*[a.vma for a in avals]))
    return first


# index: bool (two branches: false, true) where it is known, or int32, clamped to the last branch.  With
# `platforms`, a name for each branch, of which the last may be None, it has no meaning: the branch is chosen
# when the program is lowered.
cond_p = Holder(
    "cond", multiple_results=True, linear="typed", abstract_eval=_cond_abstract_eval, lower=_cond_lower,
                jvp=_cond_jvp, linearize=_cond_linearize, transpose=_cond_transpose, batching=_cond_batching,
                discharge=_cond_discharge, dce=_cond_dce, partial_eval=_cond_partial_eval, vary=_cond_vary)


# --- while ----------------------------------------------------------------------------------------

def _while_abstract_eval(*avals, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    going_on = cond_jaxpr.outvars[0].aval
    if not going_on.vma:
        return body_jaxpr.out_avals
    divergent_collectives.check("How often lax.while_loop (or lax.fori_loop) runs", going_on,
                    [("its condition", cond_jaxpr), ("its body", body_jaxpr)])
    return [a.update(vma=a.vma | going_on.vma) for a in body_jaxpr.out_avals]


def _while_lower(ctx, eqn, *names):
    p = eqn.params

    def cond(args):
        consts, _, state = _while_split(args, p)
        return ctx.inline(p["cond_jaxpr"], [*consts, *state])

    def body(args):
        c, b, state = _while_split(args, p)
        return [*c, *b, *ctx.inline(p["body_jaxpr"], [*b, *state])]
    if not names:       # a loop without state: it runs for ever or not at all
        write_while(ctx, ["tensor<i1>"], [ctx.constant(np.array(False))], lambda _: cond([]),
                    lambda args: args)
        return []
    *_, carry = _while_split(write_while(ctx, [v.aval.mlir for v in eqn.invars], list(names), cond, body), p)
    return carry


def _while_split(operands, params):
    """(consts of the condition, consts of the body, carry)."""
    return groups(operands, params["cond_nconsts"], params["body_nconsts"])


def _while_jvp(primals, tangents, **params):
    cond_consts, body_consts, carry = _while_split(primals, params)
    _, const_tangents, tangents_in = _while_split(tangents, params)
    body, n = params["body_jaxpr"], len(carry)
    const_marks = nonzero_mask(const_tangents)
    marks = carry_fixpoint(nonzero_mask(tangents_in), lambda m: programs.jvp(body, (*const_marks, *m))[1])
    if not any(marks):
        return while_p.bind(*primals, **params), [None] * n
    filled = carry_tangents(carry, tangents_in, marks)
    jvp_jaxpr, have = programs.jvp(body, (*const_marks, *marks))
    if have != marks:
        jvp_jaxpr = with_zeros(jvp_jaxpr, n, have, marks, [a.tangent() for a in body.out_avals])
    # operands: consts, carry, const tangents, carry tangents -> consts, const tangents, carry, tangents
    nb, nt = len(body_consts), sum(const_marks)
    order = [*range(nb), *range(nb + n, nb + n + nt), *range(nb, nb + n),
             *range(nb + n + nt, nb + n + nt + sum(marks))]
    moved = jvp_jaxpr.replace(invars=[jvp_jaxpr.invars[i] for i in order])
    cond = params["cond_jaxpr"]
    widened = cond.replace(invars=[*cond.invars, *(Var(aval_of(f)) for f in filled)], arg_names=None)
    results = while_p.bind(*cond_consts, *body_consts, *drop_zeros(const_tangents), *carry, *filled,
                           cond_jaxpr=widened, body_jaxpr=moved, cond_nconsts=len(cond_consts),
                           body_nconsts=nb + nt)
    return results[:n], fill_zeros(results[n:], marks)


def _while_linearize(trace, primals, tangents, **params):
    """The loop runs once for its values, and is recorded once more with its tangents; it has no transpose."""
    for jaxpr in params["cond_jaxpr"], params["body_jaxpr"]:
        refuse_again(jaxpr, "linearize runs a while loop twice")
    outs = while_p.bind(*primals, **params)
    with entering(trace.rules.linear):      # values too, which are computed again
        _, out_tangents = _while_jvp(primals, tangents, **params)
    return outs, out_tangents


def _while_transpose(cts, *args, **_):
    raise ValueError("Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
                     "dynamic start/stop values: the number of iterations, and so the memory for the values "
                     "to save, is not known when compiling. Use lax.scan, or lax.fori_loop with Python "
                     "integers as bounds (under jit: static_argnums), or give max_steps=n; or use forward "
                     "mode (jvp, jacfwd).")


def _while_batching(axis, args, dims, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    params = {"cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}
    cond_consts, body_consts, carry = _while_split(front(args, dims), params)
    cond_marks, const_marks, carry_marks = _while_split(nonzero_mask(dims), params)
    marks = carry_fixpoint(carry_marks, lambda m: programs.batch(body_jaxpr, axis, (*const_marks, *m))[1])
    cond, (each,) = programs.batch(cond_jaxpr, axis, (*cond_marks, *marks))
    if each:
        # each element has its own predicate: run while any holds, and keep the values of those that are done
        found = checks.batched(_while_discharge, axis, args, dims, cond_jaxpr=cond_jaxpr,
                               body_jaxpr=body_jaxpr, **params)
        if found is not None:
            return found
        _only_told("lax.while_loop with a mapped condition runs until it holds for no element",
                   "while_loop with batched predicate", (cond_jaxpr, body_jaxpr))
        marks = (True,) * len(carry)
        cond, _ = programs.batch(cond_jaxpr, axis, (*cond_marks, *marks), True)
    carry = carry_batched(axis, carry, carry_marks, marks)
    body, _ = programs.batch(body_jaxpr, axis, (*const_marks, *marks), marks)
    if not each:
        operands = [*cond_consts, *body_consts, *carry]
        return while_p.bind(*operands, cond_jaxpr=cond, body_jaxpr=body, **params), front_dims(marks)
    outs = _masked(cond, body, cond_consts, body_consts, carry)
    return outs, front_dims(marks)


def _masked(cond, body, cond_consts, body_consts, carry):
    """The results of a loop that runs while any element of `cond` holds, and changes only those elements.

    It carries which ones go on, so that the condition is computed once in each step.
    """
    sizes = len(cond_consts), len(body_consts), 1

    def step(*xs):
        c, b, (going,), old = groups(xs, *sizes)
        new = eval_jaxpr(body, (), *b, *old)
        kept = [select_n_p.bind(spread_as(going, n), o, n)
                for o, n in zip(old, new)]
        return [*eval_jaxpr(cond, (), *c, *kept), *kept]
    operands = [*cond_consts, *body_consts, *eval_jaxpr(cond, (), *cond_consts, *carry), *carry]
    avals = list(map(aval_of, operands))
    any_holds = trace_closed(lambda going, *_: [reduce_or_p.bind(going, axes=(0,))], avals[sum(sizes) - 1:],
                             cond.name)
    return while_p.bind(*operands, cond_jaxpr=any_holds, body_jaxpr=trace_closed(step, avals, body.name),
                        cond_nconsts=0, body_nconsts=sizes[0] + sizes[1])[1:]


def while_with_states(states, values, args, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    """Operands and parameters of a while whose carry is [*states, does it go on, *carry].

    Effects of the condition happen where its value is computed: before the loop, and at the end of each step.
    """
    n, nc, nb = len(states), cond_nconsts, body_nconsts
    cond, body = programs.discharge(cond_jaxpr, states), programs.discharge(body_jaxpr, states)
    consts, carry = groups(args, nc + nb)
    results = eval_jaxpr(cond, (), *values, *consts[:nc], *carry)

    def step(*xs):
        c, b, now, _, last = groups(xs, nc, nb, n, 1)
        after = eval_jaxpr(body, (), *now, *b, *last)
        return [*eval_jaxpr(cond, (), *after[:n], *c, *after[n:]), *after[n:]]
    avals = [aval_of(v) for v in (*consts, *results, *carry)]
    avals[nc + nb + n + 1:] = body_jaxpr.in_avals[nb:]
    stepping = trace_closed(step, avals, body_jaxpr.name)
    going_on = trace_closed(lambda *xs: [xs[n]], avals[nc + nb:], cond_jaxpr.name)
    return [*consts, *results, *carry], {"cond_jaxpr": going_on, "body_jaxpr": stepping, "cond_nconsts": 0,
                                         "body_nconsts": nc + nb}


def _while_discharge(states, values, args, **params):
    operands, params = while_with_states(states, values, args, **params)
    outs = while_p.bind(*operands, **params)
    return outs[:len(states)], outs[len(states) + 1:]


while_p = Holder(
    "while", multiple_results=True, linear="typed", abstract_eval=_while_abstract_eval, lower=_while_lower,
                 jvp=_while_jvp, linearize=_while_linearize, transpose=_while_transpose,
                 batching=_while_batching, discharge=_while_discharge)
