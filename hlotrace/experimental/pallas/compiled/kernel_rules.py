"""How the operations of a kernel are written: a rule for each primitive, of those on which dialects agree."""
import numpy as np

from ....core.jaxpr import Jaxpr, Literal
from ....core.refs import accesses
from ....core.source_info import describe
from ....primitives.arrays import elementwise as e, reduce, shape, slicing, special, transcendental as f
from ....primitives.arrays.elementwise_rules import add_any_p
from ....primitives.parallel.collectives import pvary_p
from ....primitives.programs.cond_while import cond_p, while_p
from ....primitives.programs.scan import scan_p
from . import kernel_text as t
from .kernel_memory import program_id_p
from .kernel_text import INT

_BINARY = {
    e.add_p: t.ADD, add_any_p: t.ADD, e.sub_p: t.SUBTRACT, e.mul_p: t.MULTIPLY, e.div_p: t.DIVIDE,
    e.rem_p: t.REMAINDER, e.max_p: t.MAXIMUM, e.min_p: t.MINIMUM, e.and_p: t.AND, e.or_p: t.OR,
    e.xor_p: t.XOR, e.shift_left_p: t.SHIFT_LEFT, e.shift_right_logical_p: t.SHIFT_RIGHT,
    e.shift_right_arithmetic_p: t.SHIFT_RIGHT_SIGNED}
_COMPARED = {e.eq_p: t.EQUAL, e.ne_p: t.DIFFERENT, e.lt_p: t.LESS, e.le_p: t.AT_MOST, e.gt_p: t.GREATER,
             e.ge_p: t.AT_LEAST}
_REDUCED = {shape.reduce_sum_p: t.ADD, reduce.reduce_prod_p: t.MULTIPLY, reduce.reduce_max_p: t.MAXIMUM,
            reduce.reduce_min_p: t.MINIMUM, reduce.reduce_and_p: t.AND, reduce.reduce_or_p: t.OR,
            reduce.reduce_xor_p: t.XOR}


def run(w, jaxpr, args):
    """The results of a program of these values, as a list; `w` is the Writer of the text.

    Raises:
        NotImplementedError: for what the compiler cannot do, with the line of the user's.
    """
    env = dict(zip(jaxpr.invars, args, strict=True))
    for var, value in zip(jaxpr.constvars, jaxpr.consts):
        env[var] = _known(w, value, var.aval)

    def read(atom):
        return _known(w, atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]
    for eqn in jaxpr.eqns:
        try:
            results = _equation(w, eqn, [read(a) for a in eqn.invars])
        except NotInKernels:
            raise
        except NotImplementedError as error:
            raise NotInKernels(f"{eqn.primitive}, {describe(eqn.source)}: {error}; it is in a Pallas kernel, "
                              f"which is compiled with {w.compiler} here") from None
        env.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True))
    return [read(a) for a in jaxpr.outvars]


class NotInKernels(NotImplementedError):
    """A kernel does what its compiler cannot do."""


def _known(w, value, aval):
    value = np.asarray(value)
    first = value.reshape(-1)[:1]
    if not value.size or value.size > 1 and not np.all(value == first):
        raise NotInKernels(f"the kernel uses an array of shape {value.shape} from outside of it: pass it as "
                          "an operand")
    return w.constant(first[0], aval.dtype, aval.shape)


def _equation(w, eqn, operands):
    p, params = eqn.primitive, eqn.params
    if (rule := w.rules.get(p) or _RULES.get(p)) is not None:
        return rule(w, eqn, *operands)
    if p in _OF_ELEMENTS:
        return _OF_ELEMENTS[p](w, *operands)
    if p in _BINARY:
        return w.binary(_BINARY[p], *operands)
    if p in _COMPARED:
        return w.compare(_COMPARED[p], *operands)
    if p in _REDUCED:
        return w.reduce(_REDUCED[p], operands[0], params["axes"])
    inner = params.get("jaxpr")
    if isinstance(inner, Jaxpr) and len(inner.invars) == len(operands):
        return run(w, inner, operands)
    raise NotImplementedError(f"no operation of {w.compiler} does it")


# --- elements ---------------------------------------------------------------------------------------

def _one(w, x):
    return w.constant(1, x.dtype, x.shape)


def _neg(w, x):
    return w.binary(t.SUBTRACT, w.constant(-0.0 if t.kind_of(x.dtype) == "f" else 0, x.dtype, x.shape), x)


def _abs(w, x):
    if t.kind_of(x.dtype) != "f":
        return w.math("absi", x)
    return w.wide(lambda x: w.math("absf", x), x)


def _sign(w, x):
    zero = w.constant(0, x.dtype, x.shape)
    above, below = (w.convert(w.compare(how, x, zero), x.dtype) for how in (t.GREATER, t.LESS))
    sign = w.binary(t.SUBTRACT, above, below)
    return w.select(w.compare(t.DIFFERENT, x, x), x, sign) if t.kind_of(x.dtype) == "f" else sign


def _not(w, x):
    ones = ~np.zeros((), x.dtype)
    return w.binary(t.XOR, x, w.constant(ones, x.dtype, x.shape))


def _one_minus_square(w, x):
    return w.binary(t.MULTIPLY, w.binary(t.SUBTRACT, _one(w, x), x), w.binary(t.ADD, _one(w, x), x))


def _logistic(w, x):
    def function(x):
        one = _one(w, x)
        return w.binary(t.DIVIDE, one, w.binary(t.ADD, one, w.math("exp", _neg(w, x))))
    return w.wide(function, x)


def _is_finite(w, x):
    return w.compare(t.LESS, _abs(w, x), w.constant(np.inf, x.dtype, x.shape))


def _clamp(w, low, x, high):
    return w.binary(t.MINIMUM, w.binary(t.MAXIMUM, x, w.full(low, x.shape)), w.full(high, x.shape))


def _select_n(w, which, *cases):
    if t.kind_of(which.dtype) == "b":
        return w.select(which, *reversed(cases))
    found = cases[0]
    for i, case in enumerate(cases[1:], 1):
        found = w.select(w.compare(t.AT_LEAST, which, w.constant(i, which.dtype)), case, found)
    return found


_OF_ELEMENTS = {
    e.neg_p: _neg, e.abs_p: _abs, e.sign_p: _sign, e.not_p: _not, f.logistic_p: _logistic,
    e.square_p: lambda w, x: w.binary(t.MULTIPLY, x, x), special.one_minus_square_p: _one_minus_square,
    e.is_finite_p: _is_finite, e.clamp_p: _clamp, e.select_n_p: _select_n,
    **dict.fromkeys((e.stop_gradient_p, slicing.copy_p, pvary_p), lambda w, x: x),
    slicing.optimization_barrier_p: lambda w, *operands: operands}


def _integer_pow(w, eqn, x):
    y = eqn.params["y"]
    result, base, n = _one(w, x), x, abs(y)
    while n:
        if n & 1:
            result = w.binary(t.MULTIPLY, result, base)
        n >>= 1
        base = w.binary(t.MULTIPLY, base, base) if n else base
    return result if y >= 0 else w.binary(t.DIVIDE, _one(w, x), result)


def _iota(w, eqn):
    sizes, axis = eqn.params["shape"], eqn.params["dimension"]
    return w.convert(w.range(sizes[axis], axis, sizes), eqn.params["dtype"])


def _broadcast(w, eqn, x):
    sizes, axes = eqn.outvars[0].aval.shape, eqn.params["broadcast_dimensions"]
    return w.full(x, sizes) if axes is None else w.broadcast(x, sizes, axes)


def _extreme(before):
    def rule(w, eqn, x):
        return w.convert(w.first_extreme(before, x, eqn.params["axes"][0]), eqn.params["index_dtype"])
    return rule


# --- products ---------------------------------------------------------------------------------------

def product_of_elements(w, eqn, x, y):
    """A product of arrays, of no more than products and sums of elements."""
    (over_x, over_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    # axes are those of the batch, what is left of x and of y, what is summed over
    sizes = (*out.shape, *(x.shape[i] for i in over_x))
    batch, last = len(batch_x), range(out.ndim, len(sizes))
    middle = len(x.shape) - len(over_x)
    wide = out.dtype if t.kind_of(out.dtype) != "f" or out.dtype.itemsize >= 4 else np.dtype("float32")
    factors = []
    for value, over, of_batch, kept in ((x, over_x, batch_x, range(batch, middle)),
                                        (y, over_y, batch_y, range(middle, out.ndim))):
        free = [i for i in range(len(value.shape)) if i not in (*over, *of_batch)]
        value = w.transpose(value, (*of_batch, *free, *over))
        factors.append(w.convert(w.broadcast(value, sizes, (*range(batch), *kept, *last)), wide))
    return w.convert(w.reduce(t.ADD, w.binary(t.MULTIPLY, *factors), last), out.dtype)


# --- control ----------------------------------------------------------------------------------------

def _end(w, word, values):
    """The end of a region, which gives these values."""
    types = ", ".join(v.type for v in values)
    w.lines.append(f"{word} {', '.join(v.name for v in values)} : {types}" if values else word)


def results_of(w, values):
    """(The text before an operation that has such results, the results)."""
    name = w.new_name()
    if len(values) == 1:
        return f"{name} = ", [values[0]._replace(name=name)]
    named = [v._replace(name=f"{name}#{i}") for i, v in enumerate(values)]
    return f"{name}:{len(values)} = " if values else "", named


def _carried(w, values):
    """(Values of these types with names of their own, the text that gives them these values)."""
    inside = [v._replace(name=w.new_name()) for v in values]
    return inside, ", ".join(f"{a.name} = {b.name}" for a, b in zip(inside, values))


def _cond(w, eqn, index, *operands):
    branches, platforms = eqn.params["branches"], eqn.params.get("platforms")
    if platforms:
        return run(w, next(b for b, name in zip(branches, platforms) if name in (w.platform, None)), operands)
    index = w.convert(index, INT)
    return _chosen(w, index, operands, branches, 0)


def _chosen(w, index, operands, branches, first):
    if len(branches) == 1:
        return run(w, branches[0], operands)
    head, results = results_of(w, [w.value("", a.shape, a.dtype) for a in branches[0].out_avals])
    types = ", ".join(v.type for v in results)
    holds = w.compare(t.AT_MOST, index, w.constant(first))
    w.lines.append(f"{head}scf.if {holds.name}{f' -> ({types})' if types else ''} {{")
    read, written = set(w.read), set(w.written)
    _end(w, "scf.yield", run(w, branches[0], operands))
    (w.read, read), (w.written, written) = (read, w.read), (written, w.written)
    w.lines.append("} else {")
    _end(w, "scf.yield", _chosen(w, index, operands, branches[1:], first + 1))
    w.lines.append("}")
    w.read |= read
    w.written |= written
    return results


def _scan(w, eqn, *operands):
    p = eqn.params
    jaxpr, consts = p["jaxpr"], operands[:p["num_consts"]]
    carry = operands[len(consts):]
    if len(carry) > p["num_carry"] or len(jaxpr.outvars) > p["num_carry"]:
        raise NotImplementedError("a scan over rows of arrays, or that stacks results: read and write in "
                                  "a fori_loop, by ref[i]")
    at_once = min(max(p["unroll"], 1), max(p["length"], 1))
    rounds, rest = divmod(p["length"], at_once)

    def steps(count, carry):
        for _ in range(count):
            carry = run(w, jaxpr, [*consts, *carry])
        return carry
    if rounds == 1:
        return steps(at_once + rest, carry)
    carry = _for(w, w.constant(0), w.constant(rounds), carry, accesses(jaxpr.effects),
                 lambda _, carry: steps(at_once, carry))
    return steps(rest, carry)


def _for(w, low, high, carry, before, body):
    """What a loop over `low` <= i < `high` leaves of a carry; `body(i, carry)` is the next one."""
    one = w.constant(1)
    head, results = results_of(w, carry)
    inside, given = _carried(w, carry)
    types = ", ".join(v.type for v in carry)
    arguments = f" iter_args({given}) -> ({types})" if carry else ""
    number = w.value(w.new_name(), (), INT)
    steps = f"{number.name} = {low.name} to {high.name} step {one.name}"
    w.lines.append(f"{head}scf.for {steps}{arguments} : i32 {{")
    w.again(before)
    _end(w, "scf.yield", body(number, inside))
    w.again(before)
    w.lines.append("}")
    return results


def _counter(p):
    """The number, in the carry of a while loop, of what counts up by 1 to something that stays; else None."""
    cond, body, first = p["cond_jaxpr"], p["body_jaxpr"], p["cond_nconsts"]
    if [eqn.primitive for eqn in cond.eqns] != [e.lt_p]:
        return None
    counter, end = cond.eqns[0].invars
    if counter not in cond.invars[first:] or not (isinstance(end, Literal) or end in cond.invars[:first]):
        return None
    at = cond.invars.index(counter) - first
    own, following = body.invars[p["body_nconsts"] + at], body.outvars[at]
    for eqn in body.eqns:
        if following in eqn.outvars and eqn.primitive is e.add_p and eqn.invars[0] is own:
            step = eqn.invars[1]
            return at if isinstance(step, Literal) and step.val == 1 and own.aval.dtype == INT else None
    return None


def _while(w, eqn, *operands):
    p = eqn.params
    first = p["cond_nconsts"]
    of_cond, of_body = operands[:first], operands[first:first + p["body_nconsts"]]
    carry = operands[first + len(of_body):]
    if (at := _counter(p)) is not None:
        end = p["cond_jaxpr"].eqns[0].invars[1]
        high = w.constant(end.val) if isinstance(end, Literal) else of_cond[p["cond_jaxpr"].invars.index(end)]

        def body(number, rest):
            found = run(w, p["body_jaxpr"], [*of_body, *rest[:at], number, *rest[at:]])
            return [*found[:at], *found[at + 1:]]
        rest = _for(w, carry[at], high, [*carry[:at], *carry[at + 1:]],
                    accesses(p["body_jaxpr"].effects), body)
        return [*rest[:at], w.binary(t.MAXIMUM, carry[at], high), *rest[at:]]
    head, results = results_of(w, carry)
    inside, given = _carried(w, carry)
    types = ", ".join(v.type for v in carry)
    w.lines.append(f"{head}scf.while ({given}) : ({types}) -> ({types}) {{")
    before = [*accesses(p["cond_jaxpr"].effects), *accesses(p["body_jaxpr"].effects)]
    w.again(before)
    going_on, = run(w, p["cond_jaxpr"], [*of_cond, *inside])
    _end(w, f"scf.condition({going_on.name})", inside)
    inside, _ = _carried(w, carry)
    w.lines += ["} do {", f"^bb0({', '.join(f'{v.name}: {v.type}' for v in inside)}):"]
    w.again(before)
    _end(w, "scf.yield", run(w, p["body_jaxpr"], [*of_body, *inside]))
    w.again(before)
    w.lines.append("}")
    return results


_RULES = {
    f.integer_pow_p: _integer_pow, slicing.iota_p: _iota,
    e.convert_element_type_p: lambda w, eqn, x: w.convert(x, eqn.params["new_dtype"]),
    shape.broadcast_in_dim_p: _broadcast,
    **dict.fromkeys((shape.reshape_p, shape.squeeze_p),
                    lambda w, eqn, x: w.reshape(x, eqn.outvars[0].aval.shape)),
    shape.transpose_p: lambda w, eqn, x: w.transpose(x, eqn.params["permutation"]),
    reduce.argmax_p: _extreme(t.GREATER), reduce.argmin_p: _extreme(t.LESS),
    program_id_p: lambda w, eqn: w.ids[eqn.params["axis"]], cond_p: _cond, scan_p: _scan, while_p: _while}
