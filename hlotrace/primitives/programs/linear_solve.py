"""custom_linear_solve: A x = b, solved by the user's function.

Its derivatives are systems with the same matrix: dx = A^-1 (db - dA x), and the cotangent of b is A^-T
times that of x (Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008).  So the solver itself is not differentiated.
"""
from ...core import programs
from ...core.jaxpr import eval_jaxpr
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from ..arrays.elementwise import neg_p, sub_p
from ..arrays.shape import instantiate, mapped, move_axis
from ..common import aval_of
from .calls import jit_bind
from .cond_while import groups

# Each program takes constants of its own and what is solved for or multiplied; `solve` and `transpose_solve`
# may give more behind the solution.  `sizes`: how many constants each has: in this order operands before b.
PROGRAMS = ("matvec", "vecmat", "solve", "transpose_solve")


def _used(operands, sizes):
    """What the program `solve` takes."""
    _, _, consts, _, b = groups(operands, *sizes)
    return [*consts, *b]


def _jvp(primals, tangents, *, matvec, sizes, **params):
    consts, (moving, *_, db) = groups(primals, sum(sizes)), groups(tangents, *sizes)
    (consts, b), n = consts, len(db)
    outs = linear_solve_p.bind(*primals, matvec=matvec, sizes=sizes, **params)
    rhs = list(db)
    if any(nonzero_mask(moving)):
        program, marks = programs.jvp(matvec, (*nonzero_mask(moving), *[False] * n))
        moved = eval_jaxpr(program, (), *consts[:sizes[0]], *outs[:n], *drop_zeros(moving))[n:]
        for i, m in enumerate(fill_zeros(moved, marks)):
            if m is not None:
                rhs[i] = neg_p.bind(m) if rhs[i] is None else sub_p.bind(rhs[i], m)
    if not any(nonzero_mask(rhs)):
        return outs, [None] * len(outs)
    rhs = [instantiate(t, aval_of(x)) for t, x in zip(rhs, b)]
    dx = linear_solve_p.bind(*consts, *rhs, matvec=matvec, sizes=sizes, **params)
    return outs, [*dx[:n], *[None] * (len(outs) - n)]


def _transpose(cts, *args, matvec, vecmat, solve, transpose_solve, sizes):
    if transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                        "custom_linear_solve: give transpose_solve=, a function of vecmat and b, or "
                        "symmetric=True")
    m, v, s, t, b = groups(args, *sizes)
    cts = [instantiate(ct, x.aval if is_undefined_primal(x) else aval_of(x)) for ct, x in zip(cts, b)]
    found = linear_solve_p.bind(*v, *m, *t, *s, *cts, matvec=vecmat, vecmat=matvec, solve=transpose_solve,
                                transpose_solve=solve, sizes=(sizes[1], sizes[0], sizes[3], sizes[2]))
    return [*[None] * sum(sizes), *[ct if is_undefined_primal(x) else None for ct, x in zip(found, b)]]


def _batching(axis, args, dims, *, sizes, **jaxprs):
    """If anything is mapped, the solution is."""
    n = len(args) - sum(sizes)
    args = [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims)]
    args[-n:] = [mapped(x, axis) if d is None else x for x, d in zip(args[-n:], dims[-n:])]
    marks, moved = groups(nonzero_mask(dims), *sizes), {}
    for name in PROGRAMS:
        own, jaxpr = next(marks), jaxprs[name]
        moved[name] = jaxpr and programs.batch(jaxpr, axis, (*own, *[True] * n), True)[0]
    outs = linear_solve_p.bind(*args, sizes=sizes, **moved)
    return outs, [0] * len(outs)


def _discharge(states, values, args, *, solve, sizes, **_):
    results = eval_jaxpr(programs.discharge(solve, states), (), *values, *_used(args, sizes))
    return results[:len(states)], results[len(states):]


linear_solve_p = Holder(
    "custom_linear_solve", multiple_results=True, abstract_eval=lambda *avals, solve, **_: solve.out_avals,
    jvp=_jvp, transpose=_transpose, batching=_batching, discharge=_discharge,
    lower=lambda ctx, eqn, *names: ctx.inline(eqn.params["solve"], _used(names, eqn.params["sizes"])),
    impl_rule=lambda *args, solve, sizes, **_: jit_bind(solve, _used(args, sizes)))
