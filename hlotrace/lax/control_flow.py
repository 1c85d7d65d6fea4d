"""Structured control flow: scan, while_loop, fori_loop, cond, switch, map."""
import copy
import operator
from itertools import compress

from ..api.adapters import Identity, adapter_of, any_adapted, flatten, nodes
from ..api.flat import FlatFunction
from ..api.signatures import name_of
from ..api.vmap import vmap
from ..core import dtypes, errors
from ..core.avals import aval_of, is_arraylike
from ..core.config import state
from ..core.jaxpr import Var, eval_jaxpr
from ..core.programs import trace_closed
from ..core.pytrees import pytree
from ..core.refs import AbstractRef
from ..core.symbolic.dimension import Dimension, max_dim
from ..core.trace import Tracer, is_concrete
from ..primitives.arrays.elementwise import add_p, clamp_p, convert, lt_p, ne_p
from ..primitives.common import kind_of, np, scalar, shape_of
from ..primitives.parallel.collectives import vary
from ..primitives.parallel.divergent_collectives import for_varying
from ..primitives.programs.bounded_while import bounded_while, spoiled
from ..primitives.programs.cond_while import cond_p, groups, while_p
from ..primitives.programs.scan import scan_p
from .control_flow_errors import (
    check_branches, check_carry, check_parameters, check_predicate, check_steps, no_return, scan_length,
    shown)
from .shapes import concatenate, reshape, stack

__all__ = ["scan", "while_loop", "fori_loop", "cond", "switch", "map"]


_NONE_GIVEN = object()      # None is an operand like others


def _operands(name, operands, operand):
    if operand is _NONE_GIVEN:
        return operands
    if operands:
        raise TypeError(f"{name}: if 'operand' keyword is passed then no positional operands can be passed, "
                        f"got operand={operand!r:.80} and positional operands {operands!r:.80}")
    return (operand,)


def _trace(flat, avals, name, owner=None):
    """`flat` traced for leaves of the given avals; cached for the next call with the same function.

    Where that is a wrapper made for one call, `owner` is (the user's function, what kind of wrapper).
    """
    try:
        return flat.kept(*(owner or (flat.fun, name)), avals, name)
    except TypeError as error:
        check_parameters(flat, owner[0] if owner else flat.fun, error)
        raise


def _settle_carry(trace, carry, n_out):
    """Trace with the carry's types; a weak carry that comes back strong is made strong.

    One that comes back of another dtype is converted and traced again.  So is one that comes back varying
    over more manual axes, or is over no mesh and comes back split over Explicit mesh axes.  `trace(avals)`
    traces; returns (traced, carry leaves).
    """
    for _ in range(3 + len(state.axis_env)):
        avals = [aval_of(x) for x in carry]
        traced = trace(avals)
        outs = traced.closed.out_avals[:n_out]
        if len(outs) != len(avals):
            return traced, carry
        changed = [a.weak_type and (not o.weak_type or a.dtype != o.dtype) and a.shape == o.shape
                   for a, o in zip(avals, outs)]
        retyped = any(c and a.dtype != o.dtype for c, a, o in zip(changed, avals, outs))
        grown = [not o.vma <= a.vma for a, o in zip(avals, outs)]
        split = [a.mesh is None and o.explicit is not None and a.shape == o.shape
                 for a, o in zip(avals, outs)]
        settled = not (retyped or any(grown) or any(split))
        if settled and not any(changed):
            return varying(traced, [a.vma for a in avals]), carry
        if any(split):
            from ..primitives.parallel.sharding import as_type  # few programs are over Explicit axes
            carry = [as_type(x, o) if s else x for x, o, s in zip(carry, outs, split)]
        carry = [vary(x, o.vma) if g else x for x, o, g in zip(carry, outs, grown)]
        # the promotion lattice lets a weak value take the dtype of the strong one
        carry = [_typed(x, dtypes.lattice_result(((a.dtype, True), (o.dtype, o.weak_type)))[0]) if c else x
                 for x, a, o, c in zip(carry, avals, outs, changed)]
        if settled:     # of the same dtypes: the program is the same
            return varying(traced, [a.vma for a in avals]), carry
    return traced, carry


def _typed(x, dtype, weak=False):
    """`x` of this type; a Python number becomes a constant of the program, without an equation."""
    if type(x) in dtypes.python_scalars and not weak:
        return np.asarray(x, dtype)[()]
    return x if type(x) is int and weak and dtypes.scalar_dtype(x) == dtype else convert(x, dtype, weak)


def varying(traced, axes):
    """The same, with outputs that vary at least over `axes`, a set for each of the first ones."""
    closed = traced.closed
    if all(v.aval.vma >= wanted for v, wanted in zip(closed.outvars, axes)):
        return traced
    axes = [*axes, *[frozenset()] * (len(closed.outvars) - len(axes))]
    return _with_outputs(traced, lambda outs: [vary(x, wanted) if wanted else x
                                               for x, wanted in zip(outs, axes)])


def _split_alike(traced):
    """Branches of which those whose output is over no mesh give it as one does that splits it."""
    outs = [t.closed.out_avals for t in traced]
    splits = any(a.explicit is not None for avals in outs for a in avals)
    if not splits or len({len(avals) for avals in outs}) > 1:
        return traced
    from ..primitives.parallel.sharding import as_type  # few programs are over Explicit axes
    wanted = [next((a.explicit for a in avals if a.explicit is not None), None) for avals in zip(*outs)]

    def change(xs):
        return [as_type(x, a.update(sharding=w)) if w is not None and a.mesh is None and a.ndim == len(w.spec)
                else x for x, a, w in zip(xs, [aval_of(x) for x in xs], wanted)]
    return [_with_outputs(t, change) for t in traced]


def _with_outputs(traced, change):
    """The same, with the outputs that `change` makes of the list of them."""
    closed = traced.closed

    def fun(*xs):
        return change(eval_jaxpr(closed, (), *xs))
    found = copy.copy(traced)
    found.closed, found.branches = trace_closed(fun, closed.in_avals, closed.name), {}
    return found


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False, _owner=None):
    """Loop over the leading axis of `xs`, carrying a value: `carry, y = f(carry, x)`.

    Args:
        f: function of (carry, x) giving (carry, y); the carry keeps structure, shapes and dtypes.
        xs: pytree of arrays, or Refs, with equal leading sizes, or None; of a Ref, `f` gets views.
        length: number of iterations; needed if `xs` has no leaves.
        reverse: go from the last to the first.
        unroll: iterations written out in one step of the compiled loop (True or 0: all of them).
    Returns:
        (final carry, ys stacked along a new leading axis).
    Raises:
        TypeError: if the carry changes type.
        ValueError: if lengths disagree.

    >>> lax.scan(lambda total, x: (total + x, total * x), 0, jnp.arange(1, 5))
    (Array(10, dtype=int32), Array([ 0,  2,  9, 24], dtype=int32))
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {shown(f)}: it is lax.scan(f, init, "
                        "xs)")
    what = "lax." + (_owner[1][0] if _owner else "scan")
    flat = FlatFunction(f, *flatten(((init, xs), {})), what)
    if any_adapted(found := pytree.tree_leaves(xs)):
        if any([_is_ref(x) for x in found]):
            step, xs, length, owner = _over_refs(what, f, xs, length, _owner)
            return scan(step, init, xs, length, reverse, unroll, _owner=owner)
        xs = nodes(xs)
    init_tree, x_tree = flat.arg_tree.children()
    avals, n = flat.avals(), init_tree.num_leaves
    init_leaves, x_leaves, x_avals = flat.leaves[:n], flat.leaves[n:], avals[n:]
    length = scan_length(what, x_avals, xs, length)
    if type(unroll) is bool:
        unroll = int(not unroll)
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError("lax.scan: `unroll` must be a `bool` or a non-negative `int`, 0 or True for all, "
                         f"got {unroll}")
    unroll = unroll or max(length, 1)
    if state.disable_jit:
        return _python_scan(f, init, x_leaves, x_tree, length, reverse)
    for a in x_avals:
        if a.splits[0]:
            rest = a.explicit.spec.update(partitions=(None, *a.explicit.spec[1:]))
            raise errors.ShardingTypeError(
                f"{what}: 0th dimension of all xs should be replicated. Got {a.explicit.spec}: the loop runs "
                f"over that of {a.str_short()}, which is split, and every device does every step. Reshard it "
                f"first, as in jax.reshard(x, {rest}), or use jax.sharding.auto_axes")
    slices = [a.without_axis(0) for a in x_avals]
    traced, init_leaves = _settle_carry(lambda avals: _trace(flat, [*avals, *slices], "scan", _owner),
                                        init_leaves, n)
    children = traced.out_tree.children() if traced.out_tree.node_data() is not None else []
    if len(children) != 2 or traced.out_tree.node_data()[0] not in (tuple, list):
        raise TypeError("lax.scan: scan body output must be a pair, got "
                        f"{traced.out_tree.unflatten(traced.closed.out_avals)!r}. Return (carry, y) from "
                        f"{name_of(f)}, with None for y where nothing is collected and a tuple for several"
                        + no_return(traced.out_tree))
    carry_tree, y_tree = children
    in_avals = [aval_of(x) for x in init_leaves]
    check_carry(what, _owner[0] if _owner else f, "init" if what == "lax.scan" else "init_val", init_tree,
                in_avals, traced, carry_tree)
    given, read, body = _body(traced, n)
    fixed, moving = _divided(given, init_leaves)
    constants = [*traced.consts, *compress(init_leaves, read)]
    outs = scan_p.bind(*constants, *moving, *x_leaves, jaxpr=body, length=length, reverse=bool(reverse),
                       unroll=unroll, num_consts=len(constants), num_carry=len(moving))
    return carry_tree.unflatten(_joined(given, fixed, outs)), y_tree.unflatten(outs[len(moving):])


def _is_ref(x):
    return (adapter := adapter_of(x)) is not None and isinstance(adapter.type_of(x), AbstractRef)


def _over_refs(what, f, xs, length, owner):
    """The arguments of a scan that gives `f` views of the Refs in xs, as it counts the steps."""
    leaves, structure = pytree.tree_flatten(xs)
    refs = [x if _is_ref(x) else None for x in leaves]
    sized = pytree.tree_map(lambda x: x if _is_ref(x) or is_arraylike(x) else None, xs)
    avals = [x.inner_aval if _is_ref(x) else aval_of(x) for x in pytree.tree_leaves(sized)]
    length = scan_length(what, avals, sized, length)

    def step(carry, at):
        i, rest = at[0], iter(at[1])
        return f(carry, structure.unflatten([next(rest) if r is None else r.at[i] for r in refs]))
    step.__name__ = name_of(f)
    fun, kind = owner or (f, ("scan",))
    others = [x for x, r in zip(leaves, refs) if r is None]
    return (step, (np.arange(length, dtype=np.int32), others), length,
            (fun, (*kind, structure, *[Identity(r) for r in refs])))


def _body(traced, n):
    """The program of one step, with the carried values that it gives back as they are among its constants.

    So they are not mapped where the loop is mapped over others, and a derivative keeps them once.

    Returns:
        (marks of the n carried values that are given back, of those that it reads, the program).
    """
    if "body" not in traced.branches:
        outs = traced.closed.outvars
        given = [v is w for v, w in zip(outs, traced.closed.invars[len(traced.consts):][:n])]
        traced.branches["body"] = given, *_fixing(traced, given, [*_divided(given, outs[:n])[1], *outs[n:]])
    return traced.branches["body"]


def _fixing(traced, given, outs):
    """Marks of the carried values given back that the program reads, and the program with these constant."""
    if not any(given):
        return given, traced.closed
    consts, carry, xs = groups(list(traced.closed.invars), len(traced.consts), len(given))
    used = {*outs}.union(*[eqn.invars for eqn in traced.closed.eqns])
    read = [g and v in used for v, g in zip(carry, given)]
    invars = [*consts, *compress(carry, read), *_divided(given, carry)[1], *xs]
    return read, traced.closed.replace(invars=invars, outvars=outs, arg_names=None)


def _divided(marks, xs):
    """Two lists: those that are marked, and the others."""
    return [*compress(xs, marks)], [x for x, m in zip(xs, marks) if not m]


def _joined(marks, fixed, others):
    """What `_divided` divided; what is marked is what the user gave."""
    fixed, others = iter(fixed), iter(others)
    return [next(fixed if m else others) for m in marks]


def _python_scan(f, init, x_leaves, x_tree, length, reverse):
    carry, ys = init, []
    for i in (reversed(range(length)) if reverse else range(length)):
        carry, y = f(carry, x_tree.unflatten([x[i] for x in x_leaves]))
        ys.append(y)
    if not ys:
        raise ValueError("zero-length scan is not supported in disable_jit() mode: the type of its output is "
                         "unknown.")
    if reverse:
        ys.reverse()
    return carry, pytree.tree_map(lambda *rows: stack(rows), *ys)


def while_loop(cond_fun, body_fun, init_val, *, max_steps=None):
    """Repeat `val = body_fun(val)` while `cond_fun(val)` is true.

    Forward mode only: reverse-mode differentiation needs a known number of iterations (`scan`, or `fori_loop`
    with Python ints), or `max_steps`.

    Beyond JAX, with `max_steps` the loop can be differentiated in reverse: it keeps about 2 sqrt(max_steps)
    values of `val`, and computes each step at most twice.  A loop that would need more steps ends there and
    gives no usable value: floats are NaN, and so are their derivatives, integers the least or, if unsigned,
    the largest of their dtype, bools True.

    Args:
        cond_fun: function of `val` that gives a boolean scalar.
        init_val: a pytree of arrays; structure, shapes and dtypes stay.
        max_steps: an int, or None.
    Returns:
        The last value.
    Raises:
        TypeError: if `cond_fun` does not give a boolean scalar or the value changes type.

    >>> lax.while_loop(lambda x: x < 100, lambda x: x * 3, 1).item()
    243
    """
    max_steps = check_steps("lax.while_loop", max_steps)
    for name, fun in (("cond_fun", cond_fun), ("body_fun", body_fun)):
        if not callable(fun):
            raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable, got "
                            f"{shown(fun)} for {name}: it is lax.while_loop(cond_fun, body_fun, init_val)")
    return _while(cond_fun, body_fun, init_val, max_steps=max_steps)


def _while(cond_fun, body_fun, init_val, owner=None, max_steps=None):
    """A `while_loop`; that of a `fori_loop` where an owner of the body is given (see `_trace`)."""
    # not where it is traced all the same, as by vmap
    if state.disable_jit and is_concrete(going := cond_fun(init_val)):
        steps = 0
        while going and steps != max_steps:
            init_val, steps = body_fun(init_val), steps + 1
            going = cond_fun(init_val)
        if not going:
            return init_val
        leaves, treedef = pytree.tree_flatten(init_val)
        return treedef.unflatten(spoiled(scalar(True, np.bool_), leaves))
    what = "lax.fori_loop" if owner else "lax.while_loop"
    flat = FlatFunction(body_fun, *flatten(((init_val,), {})), what)
    flat.avals()
    (in_tree,) = flat.arg_tree.children()
    body, leaves = _settle_carry(lambda avals: _trace(flat, avals, "body", owner), flat.leaves,
                                 len(flat.leaves))
    avals = [aval_of(x) for x in leaves]
    check_carry(what, owner[0] if owner else body_fun, "init_val", in_tree, avals, body, body.out_tree)
    condition = _trace(FlatFunction(cond_fun, leaves, flat.in_tree, "lax.while_loop cond"), avals, "cond")
    check_predicate(condition, cond_fun)
    decides = condition.closed.out_avals[0].vma
    if any(not decides <= a.vma for a in avals):      # devices leave the loop at different times
        return _while(cond_fun, body_fun, in_tree.unflatten([vary(x, decides) for x in leaves]), owner,
                      max_steps)
    given, read, program = _body(body, len(leaves))
    if max_steps is not None or all(given):     # where it stops at max_steps, all that it carries is spoiled
        given, read, program = [False] * len(leaves), (), body.closed
    requested, test = condition.branches.setdefault(tuple(given),
                                                _fixing(condition, given, condition.closed.outvars))
    first, second = [*condition.consts, *compress(leaves, requested)], [*body.consts, *compress(leaves, read)]
    fixed, moving = _divided(given, leaves)
    operands = [*first, *second, *moving]
    params = {"cond_jaxpr": test, "body_jaxpr": program, "cond_nconsts": len(first),
              "body_nconsts": len(second)}
    if max_steps is not None:
        return in_tree.unflatten(bounded_while(operands, max_steps, **params))
    return in_tree.unflatten(_joined(given, fixed, while_p.bind(*operands, **params)))


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None, max_steps=None):
    """The value after `for i in range(lower, upper): val = body_fun(i, val)`.

    With Python integers as bounds the loop is a scan and can be differentiated in reverse; with traced bounds
    it is a while loop, which can where it has `max_steps`: see `while_loop`.

    Args:
        lower: the first i, an integer, or a float as `upper` is.
        upper: the end of the range; known floats are rounded toward 0.
        unroll: an int or bool, as in `scan`, for known bounds.
        max_steps: an int, or None.
    Raises:
        ValueError: if known bounds need more than `max_steps` steps.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0).item()
    10
    """
    max_steps = check_steps("lax.fori_loop", max_steps)
    if not callable(body_fun):
        raise TypeError(f"lax.fori_loop: body_fun argument should be callable, got {shown(body_fun)}: it is "
                        "lax.fori_loop(lower, upper, body_fun, init_val)")
    both_float = all(is_arraylike(b) and dtypes.is_float(aval_of(b).dtype) for b in (lower, upper))
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = aval_of(bound) if is_arraylike(bound) else None
        if aval is None or aval.shape or not (dtypes.is_integer(aval.dtype) or
                                              both_float and dtypes.is_float(aval.dtype)):
            raise TypeError(f"fori_loop: {name} must be an integer scalar, got {shown(bound)}"
                            + (f": convert it with int({bound!r})" if type(bound) is float else
                               ": give a Python int, or x.astype(int) of one element"))
    dtype, weak = _index_type(lower, upper)
    if all(is_concrete(b) and not isinstance(b, Tracer) for b in (lower, upper)):
        lower, upper = (b if type(b) is Dimension else int(b) for b in (lower, upper))
        sized = Dimension not in (type(lower), type(upper))
        if max_steps is not None and sized and upper - lower > max_steps:
            raise ValueError(f"lax.fori_loop from {lower} to {upper} needs {upper - lower} steps, more than "
                             f"max_steps={max_steps}")
        return _counted(lower, upper, body_fun, init_val, 1 if unroll is None else unroll)
    if unroll is not None and unroll not in (False, 1):
        raise ValueError("fori_loop: `unroll` can only be used with `fori_loop` if the loop bounds are known "
                         "when tracing (Python integers)")

    one = dtype.type(1).item() if weak else scalar(1, dtype)

    def step(state_):
        i, last, val = state_
        return add_p.bind(i, one), last, body_fun(i, val)
    step.__name__ = name_of(body_fun)
    bounds = [_typed(b, dtype, weak and aval_of(b).weak_type) for b in (lower, upper)]
    return _while(_before_last, step, (*bounds, init_val),
                  (body_fun, ("fori_loop of unknown length", dtype, weak)), max_steps)[2]


def _before_last(state_):
    return lt_p.bind(state_[0], state_[1])


def _counted(lower, upper, body_fun, val, unroll):
    """`fori_loop` between Python integers, as a scan: the index is one, too, whatever type the bounds had."""
    if state.disable_jit:
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    def step(carry, _):
        i, val = carry
        return (add_p.bind(i, 1), body_fun(i, val)), None
    step.__name__ = name_of(body_fun)
    (_, result), _ = scan(step, (lower, val), None, length=max_dim(upper - lower, 0), unroll=unroll,
                          _owner=(body_fun, ("fori_loop",)))
    return result


def _index_type(lower, upper):
    """(dtype, weak_type) of the loop index: as `lower`, but for a weak one beside other signed integers."""
    (first, weak), (second, other_weak) = ((aval_of(b).dtype, aval_of(b).weak_type) for b in (lower, upper))
    if first != second and (not (weak or other_weak) or {kind_of(first), kind_of(second)} != {"i"}):
        raise TypeError("lower and upper arguments to fori_loop must have equal types, got "
                        f"{first.name} and {second.name}")
    return (first, weak) if first == second else dtypes.lattice_result(((first, weak), (second, other_weak)))


def trace_branches(what, branches, operands, decides):
    """The branches traced, and the leaves of the operands.

    Where devices take different branches, all that goes in is made to vary before; inside, the derivative of
    that would be a sum over devices that are not there.
    """
    leaves, in_tree = flatten((operands, {}))
    flats = [FlatFunction(f, leaves, in_tree, what) for f in branches]
    avals = flats[-1].avals()
    if decides:
        leaves = [vary(x, decides) for x in leaves]
        avals = [aval_of(x) for x in leaves]
    return _split_alike([_trace(flat, avals, "branch") for flat in flats]), leaves


def _apart(traced, decides):
    """The same, with constants that vary over the axes `decides`."""
    which = tuple([isinstance(c, Tracer) and not aval_of(c).vma >= decides for c in traced.consts])
    others = (False,) * (len(traced.closed.invars) - len(which))
    closed = any(which) and for_varying(traced.closed, decides, (*which, *others))
    if not closed:
        return traced
    found = copy.copy(traced)
    found.closed, found.consts, found.branches = closed, [vary(c, decides) if w else c for c, w in zip(
        traced.consts, which)], {}
    return found


def bind_branches(index, traced, leaves, **by):
    """Every branch takes the constants of all branches, each once, then the operands."""
    decides = aval_of(index).vma
    if decides:
        traced = [_apart(t, decides) for t in traced]
    unions = [decides.union(*[a.vma for a in avals]) for avals in zip(*[t.closed.out_avals for t in traced])]
    traced = [varying(t, unions) for t in traced]
    consts = list({id(c): c for t in traced for c in t.consts}.values())
    order = {id(c): i for i, c in enumerate(consts)}
    held = tuple([tuple([order[id(c)] for c in t.consts]) for t in traced])
    # cached, so that compiled conds are found again
    if (key := (*traced[1:], held)) not in traced[0].branches:
        traced[0].branches[key] = _programs(traced, consts, held)
    places, programs = traced[0].branches[key]
    operands = [*consts, *leaves]
    given = [at is not None for at in places]
    outs = cond_p.bind(index, *operands, branches=programs, **by)
    fixed = [operands[at] for at in places if at is not None]
    if not state.trace.staging:     # unlike those of a loop, results of a branch are Arrays
        fixed = [convert(x, aval_of(x).dtype, aval_of(x).weak_type) for x in fixed]
    return traced[0].out_tree.unflatten(_joined(given, fixed, outs))


def _programs(traced, consts, held):
    """What the branches give back as it is, and their programs without it.

    Args:
        held: for each branch which of `consts` are its constants.
    Returns:
        (for each output the operand that every branch gives back as it is, or None; programs of the others).
    """
    programs = []
    for t, own in zip(traced, held):
        invars = [Var(aval_of(c)) for c in consts] + t.closed.invars[len(own):]
        for i, v in zip(own, t.closed.invars):
            invars[i] = v
        programs.append(t.closed.replace(invars=invars, arg_names=None))
    found = [[{v: i for i, v in enumerate(p.invars)}.get(v) for v in p.outvars] for p in programs]
    places = [column[0] if len(set(column)) == 1 else None for column in zip(*found)]
    return places, tuple([p.replace(outvars=[v for v, at in zip(p.outvars, places) if at is None])
                          for p in programs])


def cond(pred, true_fun, false_fun, *operands, operand=_NONE_GIVEN, linear=None):
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; only the chosen one is run.

    `cond(pred, true_operand, true_fun, false_operand, false_fun)` gives each its own operand.  Under vmap
    with a mapped `pred` both are run, and the results selected.

    Args:
        pred: a boolean scalar; numbers count as != 0.
        false_fun: function of the operands, that gives the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: the same as one operand by position; it may be None.
        linear: not supported; None.

    >>> jax.lax.cond(True, lambda x: x + 1, lambda x: x * 10, 4).item()
    5
    """
    if linear is not None:
        raise NotImplementedError("lax.cond: linear, which JAX takes and no longer uses, is not taken here; "
                                  "leave it out")
    operands = _operands("lax.cond", operands, operand)
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and callable(operands[1]):
        operands, on_true, on_false = (true_fun, operands[0]), false_fun, operands[1]
        return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), *operands)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable, got "
                        f"{shown(true_fun)} and {shown(false_fun)}: to choose between values use "
                        "jnp.where(pred, a, b); functions are given themselves, with their operands behind "
                        "them: lax.cond(pred, f, g, x)")
    if not is_arraylike(pred):
        raise TypeError(f"Pred must be a scalar, got {pred!r:.60} of type {type(pred)}: give a bool, or "
                        "compare: lax.cond(mode == 'train', ...)")
    if aval_of(pred).shape:
        raise TypeError(f"Pred must be a scalar, got {shown(pred)}. To choose elementwise use jnp.where; to "
                        "reduce a mask use .any() or .all().")
    if state.disable_jit and is_concrete(pred):
        return (true_fun if pred else false_fun)(*operands)
    dtype = aval_of(pred).dtype
    if not (dtypes.is_bool(dtype) or dtypes.is_float(dtype) or dtypes.is_integer(dtype)):
        raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
    if isinstance(pred, (int, float, np.generic, np.ndarray)):
        pred = np.int32(bool(pred))
    elif not dtypes.is_bool(dtype):
        pred = ne_p.bind(pred, scalar(0, dtype))
    if isinstance(pred, Tracer):
        pred = convert(pred, np.dtype(np.int32))
    traced, leaves = trace_branches("lax.cond", (false_fun, true_fun), operands, aval_of(pred).vma)
    check_branches("cond", traced[::-1], ["true_fun", "false_fun"], [true_fun, false_fun])
    return bind_branches(pred, traced, leaves)


def switch(index, branches, *operands, operand=_NONE_GIVEN):
    """`branches[index](*operands)`; only the chosen one is run.

    Args:
        index: an integer scalar, clamped to the range of branches.
        branches: functions of the operands, that give the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: the same as one operand by position; it may be None.

    >>> lax.switch(1, [jnp.sin, jnp.square, jnp.negative], 3.0).item()
    9.0
    """
    operands = _operands("lax.switch", operands, operand)
    if callable(branches) or not hasattr(branches, "__iter__"):
        raise TypeError("lax.switch: branches argument should be a sequence of callables, got "
                        f"{shown(branches)}: put the functions into one list: lax.switch(index, [f, g], x)")
    branches = tuple(branches)
    for i, branch in enumerate(branches):
        if not callable(branch):
            raise TypeError("lax.switch: branches argument should be a sequence of callables, but "
                            f"branches[{i}] is {shown(branch)}: give the function itself, and its operands "
                            "behind the list")
    if not branches:
        raise ValueError("lax.switch: Empty branch sequence: give at least one function, lax.switch(index, "
                         "[f, g], x)")
    if not is_arraylike(index) or aval_of(index).shape or not dtypes.is_integer(aval_of(index).dtype):
        advice = "convert it with .astype(int)"
        if is_arraylike(index) and aval_of(index).shape:
            advice = ("under vmap each element chooses its own branch: "
                      "jax.vmap(lambda i: lax.switch(i, branches, x))")
        what = "Branch index must be scalar" if shape_of(index) else "Index type must be an integer"
        raise TypeError(f"{what}, got {shown(index)}: {advice}")
    if len(branches) == 1:
        return branches[0](*operands)
    if state.disable_jit and is_concrete(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = convert(index, np.dtype("int32")) if not isinstance(index, int) else np.int32(
        min(max(index, 0), len(branches)))
    index = clamp_p.bind(scalar(0, np.int32), index, scalar(len(branches) - 1, np.int32))
    traced, leaves = trace_branches("lax.switch", branches, operands, aval_of(index).vma)
    check_branches("switch", traced, ["branch 0", *[f"branch{i}" for i in range(1, len(branches))]], branches)
    return bind_branches(index, traced, leaves)


def map(f, xs, *, batch_size=None):
    """Apply `f` to each slice of `xs` along the leading axis, one after another.

    With a `batch_size` other than 0, that many are mapped over at once.

    >>> lax.map(lambda row: row.sum(), jnp.arange(6).reshape(2, 3))
    Array([ 3, 12], dtype=int32)
    """
    if batch_size is not None and (size := operator.index(batch_size)) != 0:
        return _batched_map(f, xs, size)

    def step(_, x):
        return (), f(x)
    step.__name__ = name_of(f)
    return scan(step, (), xs, _owner=(f, ("map",)))[1]


def _batched_map(f, xs, size):
    if size < 0:
        raise ValueError(f"lax.map: batch_size must be positive, or 0 for no batches, got {size}")
    xs = pytree.tree_map(lambda x: x[...] if _is_ref(x) else x, xs)
    length = scan_length("lax.map", [aval_of(x) for x in pytree.tree_leaves(xs)], xs, None)
    whole, rest = divmod(length, size)
    blocks = pytree.tree_map(lambda x: reshape(x[:whole * size], (whole, size, *x.shape[1:])), xs)
    ys = pytree.tree_map(lambda y: reshape(y, (whole * size, *y.shape[2:])), map(vmap(f), blocks))
    if not rest:
        return ys
    tail = vmap(f)(pytree.tree_map(lambda x: x[whole * size:], xs))
    return pytree.tree_map(lambda a, b: concatenate([a, b], 0), ys, tail)
