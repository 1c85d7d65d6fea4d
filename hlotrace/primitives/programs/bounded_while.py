"""bounded_while: a while loop of at most N steps, differentiated in reverse in memory of about sqrt(N).

It is held as two programs of the same function, whose first result says whether the loop would go on.  One
runs: a while loop that counts, which is also what forward mode and vmap transform.  The other is what
reverse mode linearizes: sqrt(N) segments of sqrt(N) steps, of which a segment keeps what it starts from and
computes its steps again (Chen et al., "Training deep nets with sublinear memory cost", 2016; in more
levels, Griewank and Walther, "Algorithm 799: revolve", 2000).  What is after the last step does nothing.
"""
import math

from ...core import programs
from ...core.effects import Check
from ...core.jaxpr import eval_jaxpr
from ...core.refs import Holder
from ...core.symbolic_zeros import drop_zeros, fill_zeros, nonzero_mask
from ..arrays.elementwise import add_p, and_p, convert, lt_p, mul_p, select_n_p
from ..arrays.reduce import reduce_or_p
from ..arrays.shape import broadcast_in_dim, front, front_dims, move_axis
from ..common import Primitive, aval_of, dtypes, np, scalar
from ..parallel.collectives import vary
from ..parallel.divergent_collectives import for_varying
from .calls import AS_JIT, inline, jit_bind
from .cond_while import cond_p, groups, while_p, while_with_states, with_zeros
from .remat import nothing_saveable, remat_p
from .scan import scan_p

# Does it hold for any of the elements over which vmap maps?  A cond stays one that way.
anywhere_p = Primitive(
    "anywhere", abstract_eval=lambda x: x, lower=lambda ctx, eqn, x: x, impl_rule=lambda x: x,
    batching=lambda axis, args, dims: (anywhere_p.bind(reduce_or_p.bind(move_axis(args[0], dims[0], 0),
                                                                     axes=(0,))), None))


def bounded_while(operands, max_steps, **params):
    """As while_p; if the condition holds after `max_steps` steps, no result is usable (see `spoiled`)."""
    exceeded, *outs = _bind(operands, max_steps, **params)
    return spoiled(exceeded, outs)


def _bind(operands, max_steps, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    running, saving = _pair(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts, max_steps)
    # for `_discharge`; no program of the equation
    loop = max_steps, body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts
    return bounded_while_p.bind(*operands, jaxpr=running, saving=saving, loop=loop)


@programs.cached
def _pair(body, cond, nc, nb, max_steps):
    avals = [*cond.in_avals[:nc], *body.in_avals]
    sizes, zero, one = (nc, nb, 1), scalar(0, np.int32), scalar(1, np.int32)
    decides = cond.outvars[0].aval.vma      # the devices along these axes leave the loop at different times
    count = aval_of(zero).update(vma=decides)

    # what their branches take from outside varies before, so that no sums of derivatives are in them
    cond_apart, body_apart = [decides and for_varying(j, decides, (True,) * len(j.invars)) or j
                              for j in (cond, body)]

    def start():
        return vary(zero, decides) if decides else zero

    def going(c, k, carry, cond=cond_apart):
        return and_p.bind(lt_p.bind(k, scalar(max_steps, np.int32)), eval_jaxpr(cond, (), *c, *carry)[0])

    def step(b, k, carry, body=body_apart):
        return [add_p.bind(k, one), *eval_jaxpr(body, (), *b, *carry)]

    def running(*args):
        c, b, carry = groups(args, nc, nb)
        own, shared, rest = avals[:nc], avals[nc:nc + nb], [count, *avals[nc + nb:]]
        going_on = programs.trace_closed(lambda *xs: [going(xs[:nc], xs[nc], xs[nc + 1:], cond)],
                                         [*own, *rest], cond.name)
        stepping = programs.trace_closed(lambda *xs: step(xs[:nb], xs[nb], xs[nb + 1:], body),
                                         [*shared, *rest], body.name)
        params = {"cond_jaxpr": going_on, "body_jaxpr": stepping, "cond_nconsts": nc, "body_nconsts": nb}
        outs = while_p.bind(*c, *b, start(), *carry, **params)[1:]
        return [*eval_jaxpr(cond, (), *c, *outs), *outs]

    def guarded(act):
        """`act` where an element goes on, else nothing."""
        def fun(*xs):
            c, _, (k,), carry = groups(xs, *sizes)
            holds = going(c, k, carry)
            branches = [programs.trace_closed(f, list(map(aval_of, [holds, *xs])), body.name) for f in (
                lambda _, *xs: xs[nc + nb:], lambda holds, *xs: act(holds, *xs))]
            return cond_p.bind(anywhere_p.bind(holds), holds, *xs, branches=tuple(branches))
        return fun

    def one_step(holds, *xs):
        _, b, (k,), carry = groups(xs, *sizes)
        # a mapped cond looks only at the checks of those that go on
        if any(isinstance(e, Check) for e in body.effects):
            rest = xs[nc:]
            branches = [programs.trace_closed(f, list(map(aval_of, rest)), body.name) for f in (
                lambda *xs: xs[nb:], lambda *xs: step(xs[:nb], xs[nb], xs[nb + 1:]))]
            return cond_p.bind(holds, *rest, branches=tuple(branches))
        return [select_n_p.bind(_spread(holds, new), old, new)
                for old, new in zip([k, *carry], step(b, k, carry))]

    def loop(fun, length, xs):
        jaxpr = programs.trace_closed(fun, list(map(aval_of, xs)), body.name)
        return scan_p.bind(*xs, jaxpr=jaxpr, length=length, reverse=False, unroll=1, num_consts=nc + nb,
                           num_carry=len(xs) - nc - nb)
    inner = max(1, math.isqrt(max_steps))

    def segment(_, *xs):
        jaxpr = programs.trace_closed(lambda *xs: loop(guarded(one_step), inner, xs), list(map(aval_of, xs)),
                                      body.name)
        return remat_p.bind(*xs, jaxpr=jaxpr, prevent_cse=False, policy=nothing_saveable)

    def saving(*args):
        c, b, carry = groups([vary(x, decides) for x in args] if decides else args, nc, nb)
        outs = loop(guarded(segment), -(-max_steps // inner), [*c, *b, start(), *carry])[1:]
        return [*eval_jaxpr(cond_apart, (), *c, *outs), *outs]
    return programs.trace_closed(running, avals, body.name), programs.trace_closed(saving, avals, body.name)


def _spread(scalar, like):
    return broadcast_in_dim(scalar, aval_of(like).shape, ()) if aval_of(like).shape else scalar


def spoiled(exceeded, values):
    """The values; where `exceeded`, NaN, and of integers the least or, if unsigned, the largest, of bools
    True, as `jnp.take(mode="fill")` has it.  The derivative is NaN too.
    """
    def spoil(x):
        aval, dtype = aval_of(x), aval_of(x).dtype
        if dtypes.is_extended(dtype):
            return x
        if dtypes.is_inexact(dtype):
            factor = select_n_p.bind(exceeded, scalar(1, dtype), scalar(np.nan, dtype))
            out = mul_p.bind(x, _spread(factor, x))
        else:
            info = None if dtypes.is_bool(dtype) else dtypes.iinfo(dtype)
            bad = scalar(True if info is None else info.min or info.max, dtype)
            out = select_n_p.bind(_spread(exceeded, x), x, _spread(bad, x))
        return convert(out, dtype, aval.weak_type)
    return list(map(spoil, values))


def _both(transformed, n, avals):
    """Two programs of the same results, made to have equally many behind the first n; and marks of those."""
    (one, have), (other, others) = transformed
    wanted = tuple([a or b for a, b in zip(have, others)])
    return *[j if h == wanted else with_zeros(j, n, h, wanted, avals)
             for j, h in ((one, have), (other, others))], wanted


def _jvp(primals, tangents, *, jaxpr, saving, **_):
    n, marks = len(jaxpr.outvars), nonzero_mask(tangents)
    pairs, avals = [programs.jvp(j, marks) for j in (jaxpr, saving)], [a.tangent() for a in jaxpr.out_avals]
    running, saved, wanted = _both(pairs, n, avals)
    results = bounded_while_p.bind(*primals, *drop_zeros(tangents), jaxpr=running, saving=saved, loop=None)
    return results[:n], fill_zeros(results[n:], wanted)


def _batching(axis, args, dims, *, jaxpr, saving, **_):
    marks = nonzero_mask(dims)
    wanted = tuple([any(pair) for pair in zip(*[programs.batch(j, axis, marks)[1] for j in (jaxpr, saving)])])
    moved = [programs.batch(j, axis, marks, wanted)[0] for j in (jaxpr, saving)]
    return bounded_while_p.bind(*front(args, dims), jaxpr=moved[0], saving=moved[1],
                                loop=None), front_dims(wanted)


def _discharge(states, values, args, *, jaxpr, saving, loop):
    """A loop that carries the states too.  Those of Refs are unusable after a loop that would go on."""
    n = len(states)
    if loop is None:        # it is transformed, so the states are from outside of the transformation
        return AS_JIT["discharge"](states, values, args, jaxpr=jaxpr)
    max_steps, body, cond, nc, nb = loop
    operands, params = while_with_states(states, values, args, cond_jaxpr=cond, body_jaxpr=body,
                                         cond_nconsts=nc, body_nconsts=nb)
    exceeded, *outs = _bind(operands, max_steps, **params)
    given = [i for i, s in enumerate(states) if s.donated]
    for i, value in zip(given, spoiled(exceeded, [outs[i] for i in given])):
        outs[i] = value
    return outs[:n], [exceeded, *outs[n + 1:]]


bounded_while_p = Holder("bounded_while", **{
    **AS_JIT, "jvp": _jvp, "batching": _batching, "discharge": _discharge, "lower": inline,
    "impl_rule": lambda *args, jaxpr, **_: jit_bind(jaxpr, args),
    "linearize": lambda *args, jaxpr, saving, loop: AS_JIT["linearize"](*args, jaxpr=saving),
    "transpose": None})
