"""Structured control flow: scan, while_loop, fori_loop, cond, switch, map, associative_scan."""
import copy
import operator

from ..api.flat import FlatFunction
from ..api.signatures import name_of
from ..api.vmap import vmap
from ..core import dtypes, errors, tree
from ..core.avals import aval_of, is_arraylike
from ..core.config import state
from ..core.jaxpr import Var, eval_jaxpr
from ..core.programs import trace_closed
from ..core.trace import Tracer, is_concrete
from ..primitives.collectives import vary
from ..primitives.common import canonical_axis, np, scalar
from ..primitives.control import cond_p, while_p
from ..primitives.elementwise import add_p, clamp_p, convert, lt_p, ne_p
from ..primitives.scan import scan_p
from .shapes import concatenate, reshape, rev, stack

__all__ = ["scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan"]


def _trace(flat, avals, name, owner=None):
    """`flat` traced for leaves of the given avals; kept for the next call with the same function.

    Where that is a wrapper made for one call, `owner` is (the user's function, what kind of wrapper).
    """
    return flat.kept(*(owner or (flat.fun, name)), avals, name)


def _settle_carry(trace, carry, n_out):
    """Trace with the carry's types; a weak carry that comes back strong is made strong and traced again.

    So is one that comes back varying over more manual axes.  `trace(avals)` traces; returns (traced, carry leaves).
    """
    for _ in range(3 + len(state.axis_env)):
        avals = [aval_of(x) for x in carry]
        traced = trace(avals)
        outs = traced.closed.out_avals[:n_out]
        if len(outs) != len(avals):
            return traced, carry
        changed = [a.weak_type and (not o.weak_type or a.dtype != o.dtype) and a.shape == o.shape
                   for a, o in zip(avals, outs)]
        grown = [not o.vma <= a.vma for a, o in zip(avals, outs)]
        if not any(changed) and not any(grown):
            return varying(traced, [a.vma for a in avals]), carry
        carry = [vary(x, o.vma) if g else x for x, o, g in zip(carry, outs, grown)]
        # the promotion lattice lets a weak value take the dtype of the strong one
        carry = [convert(x, dtypes.lattice_result(((a.dtype, True), (o.dtype, o.weak_type)))[0]) if c else x
                 for x, a, o, c in zip(carry, avals, outs, changed)]
    return traced, carry


def varying(traced, axes):
    """The same, with outputs that vary at least over `axes`, a set for each of the first ones."""
    closed = traced.closed
    if all(v.aval.vma >= wanted for v, wanted in zip(closed.outvars, axes)):
        return traced
    axes = [*axes, *[frozenset()] * (len(closed.outvars) - len(axes))]

    def fun(*xs):
        return [vary(x, wanted) if wanted else x for x, wanted in zip(eval_jaxpr(closed, (), *xs), axes)]
    found = copy.copy(traced)
    found.closed, found.branches = trace_closed(fun, closed.in_avals, closed.name), {}
    return found


def _check_carry(name, in_tree, in_avals, out_tree, out_avals, label):
    """TypeError unless a body gives back a carry of the type it got."""
    if in_tree != out_tree:
        raise TypeError(f"{name} function carry input and carry output must have the same pytree structure, but they "
                        "differ:\n" + tree.structure_mismatch(
                            name, in_tree, out_tree, (f"the input {label}", f"the output {label}")))
    wrong = [f"  * {label}{tree.leaf_paths(in_tree)[n]}: input {i.str_short()}, output {o.str_short()}" + (
             f" (cast the output with .astype({i.dtype.name}), or start with a value of dtype {o.dtype.name})"
             if i.shape == o.shape else " (the shapes differ)")
             for n, (i, o) in enumerate(zip(in_avals, out_avals)) if (i.shape, i.dtype) != (o.shape, o.dtype)]
    if wrong:
        raise TypeError(f"{name} function carry input and carry output must have equal types, but they differ:\n"
                        + "\n".join(wrong))


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False, _owner=None):
    """Loop over the leading axis of `xs`, carrying a value: `carry, y = f(carry, x)`.

    Args:
      f: function of (carry, x) giving (carry, y); the carry keeps structure, shapes and dtypes.
      init: initial carry, a pytree of arrays.
      xs: pytree of arrays with equal leading sizes, or None.
      length: number of iterations; needed if `xs` has no leaves.
      reverse: go from the last to the first.
      unroll: iterations written out in one step of the compiled loop (True: all of them).
    Returns: (final carry, ys stacked along a new leading axis).
    Raises: TypeError if the carry changes type, ValueError if lengths disagree.
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    flat = FlatFunction(f, *tree.tree_flatten(((init, xs), {})), "lax." + (_owner[1][0] if _owner else "scan"))
    init_tree, x_tree = flat.arg_tree.children()
    avals, n = flat.avals(), init_tree.num_leaves
    init_leaves, x_leaves, x_avals = flat.leaves[:n], flat.leaves[n:], avals[n:]
    length = _scan_length(x_avals, xs, length)
    if unroll is True:
        unroll = max(length, 1)
    unroll = 1 if unroll is False else operator.index(unroll)
    if unroll < 1:
        raise ValueError(f"lax.scan: unroll must be a positive int or a bool, got {unroll}")
    if state.disable_jit:
        return _python_scan(f, init, x_leaves, x_tree, length, reverse)
    slices = [a.update(shape=a.shape[1:]) for a in x_avals]
    traced, init_leaves = _settle_carry(lambda avals: _trace(flat, [*avals, *slices], "scan", _owner), init_leaves, n)
    children = traced.out_tree.children() if traced.out_tree.node_data() is not None else []
    if len(children) != 2 or traced.out_tree.node_data()[0] not in (tuple, list):
        raise TypeError("scan body output must be a pair (carry, y): a tuple of length 2, got a value of structure "
                        f"{traced.out_tree}")
    carry_tree, y_tree = children
    in_avals = [aval_of(x) for x in init_leaves]
    _check_carry("scan body", init_tree, in_avals, carry_tree, traced.closed.out_avals[:n], "carry")
    outs = scan_p.bind(*traced.consts, *init_leaves, *x_leaves, jaxpr=traced.closed, length=length,
                       reverse=bool(reverse), unroll=unroll, num_consts=len(traced.consts), num_carry=n)
    return carry_tree.unflatten(outs[:n]), y_tree.unflatten(outs[n:])


def _scan_length(x_avals, xs, length):
    sizes = {a.shape[0] for a in x_avals if a.ndim}
    for i, a in enumerate(x_avals):
        if not a.ndim:
            raise ValueError(f"scan got value with no leading axis to scan over: xs{tree.leaf_paths(xs)[i]} has shape ()")
    if length is not None:
        try:
            length = operator.index(length)
        except TypeError as error:
            if isinstance(error, (errors.ConcretizationTypeError, errors.TracerIntegerConversionError)):
                raise errors.ConcretizationTypeError(f"The `length` argument to `scan` expects a concrete `int` value."
                                                     f" {error}") from None
            raise TypeError(f"The `length` argument to `scan` expects an int, got {length!r}") from None
        if length < 0:
            raise ValueError(f"scan length must be non-negative, got {length}")
        if sizes - {length}:
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                             f"{[a.shape[0] for a in x_avals]}.")
        return length
    if len(sizes) > 1:
        listed = ", ".join(f"xs{p}: {a.shape[0]}" for p, a in zip(tree.leaf_paths(xs), x_avals))
        raise ValueError(f"scan got values with different leading axis sizes: {listed}")
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return sizes.pop()


def _python_scan(f, init, x_leaves, x_tree, length, reverse):
    carry, ys = init, []
    for i in (reversed(range(length)) if reverse else range(length)):
        carry, y = f(carry, x_tree.unflatten([x[i] for x in x_leaves]))
        ys.append(y)
    if not ys:
        raise ValueError("zero-length scan is not supported in disable_jit() mode: the type of its output is unknown.")
    if reverse:
        ys.reverse()
    return carry, tree.tree_map(lambda *rows: stack(rows), *ys)


def while_loop(cond_fun, body_fun, init_val):
    """Repeat `val = body_fun(val)` while `cond_fun(val)` is true; returns the last value.

    `val` is a pytree of arrays that keeps structure, shapes and dtypes.  Forward mode only: reverse-mode
    differentiation needs a known number of iterations (`scan`, or `fori_loop` with Python ints).
    Raises: TypeError if `cond_fun` does not give a boolean scalar or the value changes type.
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: cond_fun and body_fun arguments should be callable.")
    if state.disable_jit:
        while cond_fun(init_val):
            init_val = body_fun(init_val)
        return init_val
    flat = FlatFunction(body_fun, *tree.tree_flatten(((init_val,), {})), "lax.while_loop")
    flat.avals()
    (in_tree,) = flat.arg_tree.children()
    body, leaves = _settle_carry(lambda avals: _trace(flat, avals, "body"), flat.leaves, len(flat.leaves))
    avals = [aval_of(x) for x in leaves]
    _check_carry("body_fun", in_tree, avals, body.out_tree, body.closed.out_avals, "val")
    condition = _trace(FlatFunction(cond_fun, leaves, flat.in_tree, "lax.while_loop"), avals, "cond")
    _check_predicate(condition)
    decides = condition.closed.out_avals[0].vma
    if any(not decides <= a.vma for a in avals):      # devices leave the loop at different times
        return while_loop(cond_fun, body_fun, in_tree.unflatten([vary(x, decides) for x in leaves]))
    outs = while_p.bind(*condition.consts, *body.consts, *leaves, cond_jaxpr=condition.closed, body_jaxpr=body.closed,
                        cond_nconsts=len(condition.consts), body_nconsts=len(body.consts))
    return in_tree.unflatten(outs)


def _check_predicate(condition):
    if not condition.out_tree.num_leaves == 1 or condition.out_tree != tree.tree_structure(0):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {condition.out_tree}.")
    aval = condition.closed.out_avals[0]
    if aval.shape or not dtypes.is_bool(aval.dtype):
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type {aval.str_short()}: compare the "
                        "value (x > 0), or reduce it with .any() or .all()")


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """`for i in range(lower, upper): val = body_fun(i, val)`; returns the last value.

    With Python integers as bounds the loop is a scan and can be differentiated in reverse; with traced
    bounds it is a while loop, which can not.  `unroll` (int or bool) needs known bounds.
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = aval_of(bound) if is_arraylike(bound) else None
        if aval is None or aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"fori_loop: {name} must be an integer scalar, got {bound!r:.80}")
    dtype, weak = _index_type(lower, upper)
    one = 1 if weak else scalar(1, dtype)
    if is_concrete(lower) and is_concrete(upper) and not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        return _counted(int(lower), int(upper), body_fun, init_val, 1 if unroll is None else unroll, one, dtype, weak)
    if unroll is not None and unroll not in (False, 1):
        raise ValueError("fori_loop: `unroll` can only be used with `fori_loop` if the loop bounds are known when "
                         "tracing (Python integers)")

    def cond_fun(state_):
        return lt_p.bind(state_[0], state_[1])

    def step(state_):
        i, last, val = state_
        return add_p.bind(i, one), last, body_fun(i, val)
    bounds = [convert(b, dtype, weak) for b in (lower, upper)]
    return while_loop(cond_fun, step, (*bounds, init_val))[2]


def _counted(lower, upper, body_fun, val, unroll, one, dtype, weak):
    """`fori_loop` between Python integers, as a scan."""
    if state.disable_jit:
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    def step(carry, _):
        i, val = carry
        return (add_p.bind(i, one), body_fun(i, val)), None
    step.__name__ = name_of(body_fun)
    (_, result), _ = scan(step, (convert(lower, dtype, weak), val), None, length=max(upper - lower, 0), unroll=unroll,
                          _owner=(body_fun, ("fori_loop", dtype, weak)))
    return result


def _index_type(lower, upper):
    """(dtype, weak_type) of the loop index."""
    pairs = tuple((aval_of(b).dtype, aval_of(b).weak_type) for b in (lower, upper))
    strong = {d for d, weak in pairs if not weak}
    if len(strong) > 1:
        raise TypeError("lower and upper arguments to fori_loop must have equal types, got "
                        f"{pairs[0][0].name} and {pairs[1][0].name}")
    return dtypes.lattice_result(pairs)


def _trace_branches(what, branches, operands):
    """(the branches traced, the leaves of the operands)"""
    leaves, in_tree = tree.tree_flatten((operands, {}))
    flats = [FlatFunction(f, leaves, in_tree, what) for f in branches]
    avals = flats[-1].avals()
    return [_trace(flat, avals, "branch") for flat in flats], leaves


def _branch_outputs(traced, names):
    """Check that all branches give one structure and equal types.  TypeError otherwise."""
    first = traced[0]
    for t, name in zip(traced[1:], names[1:]):
        if t.out_tree != first.out_tree:
            raise TypeError(f"{names[0]} and {name} outputs must have the same pytree structure:\n"
                            + tree.structure_mismatch("branch outputs", first.out_tree, t.out_tree, (names[0], name)))
        wrong = [f"  * output{tree.leaf_paths(first.out_tree)[i]}: {names[0]} gives {a.str_short()}, {name} gives "
                 f"{b.str_short()}" for i, (a, b) in enumerate(zip(first.closed.out_avals, t.closed.out_avals))
                 if (a.shape, a.dtype) != (b.shape, b.dtype)]
        if wrong:
            raise TypeError(f"{names[0]} and {name} outputs must have identical types, but they differ:\n"
                            + "\n".join(wrong) + "\nCast or reshape the outputs of one branch.")


def _bind_branches(index, traced, leaves):
    """Every branch takes the constants of all branches, then the operands."""
    decides = aval_of(index).vma
    unions = [decides.union(*[a.vma for a in avals]) for avals in zip(*[t.closed.out_avals for t in traced])]
    traced = [varying(t, unions) for t in traced]
    consts = [c for t in traced for c in t.consts]
    programs, start = [], 0
    for t in traced:
        n = len(t.consts)
        own, rest = t.closed.invars[:n], t.closed.invars[n:]
        others = [Var(aval_of(c)) for c in consts]
        others[start:start + n] = own
        programs.append(t.closed.replace(invars=[*others, *rest], arg_names=None))
        start += n
    outs = cond_p.bind(index, *consts, *leaves, branches=_kept(tuple(programs), traced))
    return traced[0].out_tree.unflatten(outs)


def _kept(programs, traced):
    """The same program objects for the same traced branches, so that compiled conds are found again."""
    return traced[0].branches.setdefault(tuple(traced[1:]), programs)


def cond(pred, true_fun, false_fun, *operands, operand=None, linear=None):
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; only the chosen one is run.

    `pred` is a boolean scalar (numbers count as != 0); both functions must give the same structure, shapes
    and dtypes.  Under vmap with a mapped `pred` both are run, and the results selected.
    """
    if linear is not None:
        raise NotImplementedError("lax.cond: linear, which JAX takes and no longer uses, is not taken here; leave it out")
    if operand is not None:
        operands = (operand,)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if not is_arraylike(pred) or aval_of(pred).shape:
        got = aval_of(pred).str_short() if is_arraylike(pred) else type(pred)
        raise TypeError(f"Pred must be a scalar, got {got}. To choose elementwise use jnp.where; to reduce a mask use "
                        ".any() or .all().")
    if state.disable_jit and is_concrete(pred):
        return (true_fun if pred else false_fun)(*operands)
    if not dtypes.is_bool(aval_of(pred).dtype):
        dtype = aval_of(pred).dtype
        if not (dtypes.is_float(dtype) or dtypes.is_integer(dtype)):
            raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
        pred = ne_p.bind(pred, scalar(0, dtype))
    traced, leaves = _trace_branches("lax.cond", (false_fun, true_fun), operands)
    _branch_outputs(traced[::-1], ["true_fun", "false_fun"])
    return _bind_branches(pred, traced, leaves)


def switch(index, branches, *operands, operand=None):
    """`branches[index](*operands)`, `index` (an integer scalar) clamped to the range of branches."""
    if operand is not None:
        operands = (operand,)
    branches = tuple(branches)
    if not all(callable(b) for b in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if not branches:
        raise ValueError("Empty branch sequence")
    if not is_arraylike(index) or aval_of(index).shape or not dtypes.is_integer(aval_of(index).dtype):
        got = aval_of(index).str_short() if is_arraylike(index) else type(index)
        raise TypeError(f"Branch index must be an integer scalar, got {got}.")
    if len(branches) == 1:
        return branches[0](*operands)
    if state.disable_jit and is_concrete(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = convert(index, np.dtype("int32")) if not isinstance(index, int) else np.int32(
        min(max(index, 0), len(branches)))
    index = clamp_p.bind(scalar(0, np.int32), index, scalar(len(branches) - 1, np.int32))
    traced, leaves = _trace_branches("lax.switch", branches, operands)
    _branch_outputs(traced, [f"branch {i}" for i in range(len(branches))])
    return _bind_branches(index, traced, leaves)


def map(f, xs, *, batch_size=None):
    """Apply `f` to each slice of `xs` along the leading axis, one after another (or `batch_size` at once)."""
    if batch_size is not None:
        return _batched_map(f, xs, operator.index(batch_size))

    def step(_, x):
        return (), f(x)
    step.__name__ = name_of(f)
    return scan(step, (), xs, _owner=(f, ("map",)))[1]


def _batched_map(f, xs, size):
    if size < 1:
        raise ValueError(f"lax.map: batch_size must be positive, got {size}")
    length = _scan_length([aval_of(x) for x in tree.tree_leaves(xs)], xs, None)
    whole, rest = divmod(length, size)
    blocks = tree.tree_map(lambda x: reshape(x[:whole * size], (whole, size, *x.shape[1:])), xs)
    ys = tree.tree_map(lambda y: reshape(y, (whole * size, *y.shape[2:])), map(vmap(f), blocks))
    if not rest:
        return ys
    tail = vmap(f)(tree.tree_map(lambda x: x[whole * size:], xs))
    return tree.tree_map(lambda a, b: concatenate([a, b], 0), ys, tail)


def _cut(xs, axis, start, stop=None, step=1):
    index = (*[slice(None)] * axis, slice(start, stop, step))
    return [x[index] for x in xs]


def _interleave(a, b, axis):
    """a[0], b[0], a[1], b[1], ...; `a` is as long as `b`, or one longer."""
    n = b.shape[axis]
    pairs = stack([*_cut([a], axis, 0, n), b], axis + 1)
    merged = reshape(pairs, (*a.shape[:axis], 2 * n, *a.shape[axis + 1:]))
    return merged if a.shape[axis] == n else concatenate([merged, *_cut([a], axis, n)], axis)


def _prefixes(combine, xs, axis):
    """Combine pairs, scan those, and fill in between."""
    n = xs[0].shape[axis]
    if n < 2:
        return xs
    odd = _prefixes(combine, combine(_cut(xs, axis, 0, n - 1, 2), _cut(xs, axis, 1, n, 2)), axis)
    last = (n - 1) // 2
    even = combine(_cut(odd, axis, 0, last), _cut(xs, axis, 2, n, 2)) if n > 2 else _cut(xs, axis, 0, 0)
    even = [concatenate([first, e], axis) for first, e in zip(_cut(xs, axis, 0, 1), even)]
    return [_interleave(e, o, axis) for e, o in zip(even, odd)]


def associative_scan(fn, elems, reverse=False, axis=0):
    """All prefix results of an associative `fn` along `axis`, in a logarithmic number of calls.

    `fn(a, b)` combines pytrees of arrays along `axis` elementwise.  The recursion is that of Blelloch, "Prefix
    sums and their applications" (1990).
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, treedef = tree.tree_flatten(elems)
    axis = canonical_axis(axis, aval_of(leaves[0]).ndim)
    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]
    sizes = {x.shape[axis] for x in leaves}
    if len(sizes) != 1:
        raise ValueError(f"Array inputs to associative_scan must have the same size along axis {axis}, got "
                         f"{[x.shape for x in leaves]}")

    def combine(a, b):
        return tree.tree_leaves(fn(treedef.unflatten(a), treedef.unflatten(b)))
    result = _prefixes(combine, leaves, axis)
    if reverse:
        result = [rev(x, (axis,)) for x in result]
    return treedef.unflatten(result)
