"""JAX's `interpreters.ad`: derivative rules of primitives.

A tangent or cotangent that is known to be zero is a `Zero` here and None in a primitive's own rules; an
operand of unknown value is an `UndefinedPrimal` in a transpose rule of either kind.
"""
from contextlib import nullcontext
from functools import partial, reduce

from ..api.contexts import named_scope
from ..core import programs
from ..core.avals import aval_of
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import missing
from ..core.pytrees import pytree
from ..core.surface.public import install_getattr as _explain
from ..core.symbolic_zeros import UndefinedPrimal, fill_zeros, is_undefined_primal
from ..primitives.arrays.elementwise_rules import add_any_p
from ..primitives.arrays.shape import zeros_of as zeros_like_aval
from ..primitives.common import shape_of
from ..primitives.programs.calls import no_tangent
from ..transforms import transpose
from ..transforms.jvp import JVPTrace, JVPTracer, jvp_flat
from .registry import Registry, for_each

__all__ = ["JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents",
           "backward_pass", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
           "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp", "jvp_jaxpr",
           "primitive_jvps", "primitive_transposes", "zeros_like_aval"]


class Zero:
    """A tangent or cotangent that is known to be zero; `aval` is its type."""
    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    @staticmethod
    def from_primal_value(value):
        """The zero tangent of an array."""
        return Zero(aval_of(value).tangent())

    def instantiate(self):
        """An array of zeros."""
        return zeros_like_aval(self.aval)

    def __repr__(self):
        return f"Zero({self.aval.str_short()})"


add_jaxvals_p = add_any_p

for _kind in (Zero, UndefinedPrimal):
    pytree.register_pytree_node(_kind, lambda x: ((), x.aval), lambda aval, _, kind=_kind: kind(aval))


def instantiate_zeros(tangent):
    """`tangent`, or an array of zeros for a `Zero`.

    >>> from hlotrace.interpreters import ad
    >>> ad.instantiate_zeros(ad.Zero(jax.typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    """
    return tangent.instantiate() if type(tangent) is Zero else tangent


def add_jaxvals(x, y):
    """The sum of two arrays of one type."""
    return add_any_p.bind(x, y)


def add_tangents(x, y):
    """The sum of two tangents, each of which may be a `Zero`."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return add_jaxvals(x, y)


# --- between the two signatures -------------------------------------------------------------------

def _ours(tangent):
    return None if type(tangent) is Zero or no_tangent(tangent) else tangent


def _theirs(tangent, aval):
    """`aval` is the type of the primal."""
    return Zero(aval.tangent()) if no_tangent(tangent) else tangent


def _aval(operand):
    return operand.aval if is_undefined_primal(operand) else aval_of(operand)


def _jvp_from_jax(primitive, rule, primals, tangents, **params):
    out, moved = rule(tuple(primals), tuple(_theirs(t, aval_of(p)) for p, t in zip(primals, tangents)),
                      **params)
    single = not primitive.multiple_results
    for x, t in [(out, moved)] if single else zip(out, moved, strict=True):
        if type(t) is not Zero and t is not None and shape_of(t) != shape_of(x):
            raise ValueError(f"the jvp rule of {primitive} gives a result of shape {shape_of(x)} a tangent "
                             f"of shape {shape_of(t)}")
    return (out, _ours(moved)) if single else (list(out), [_ours(t) for t in moved])


def _jvp_to_jax(primitive, rule, primals, tangents, **params):
    out, moved = rule(list(primals), [_ours(t) for t in tangents], **params)
    if primitive.multiple_results:
        return out, [_theirs(t, aval_of(x)) for x, t in zip(out, moved)]
    return out, _theirs(moved, aval_of(out))


def _transpose_from_jax(primitive, rule, cotangent, *args, **params):
    if primitive.multiple_results:
        outs = primitive.typecheck([_aval(a) for a in args], params)
        cotangent = [_theirs(ct, aval) for ct, aval in zip(cotangent, outs)]
    found = rule(cotangent, *args, **params)
    if type(found) is Zero or found is None:
        return [None] * len(args)
    if not isinstance(found, (list, tuple)) or len(found) != len(args):
        raise TypeError(f"the transpose rule of {primitive} must give a sequence of {len(args)} cotangents, "
                        f"one for each operand (None where it has none), got {found!r:.120}")
    for i, (ct, a) in enumerate(zip(found, args)):
        if is_undefined_primal(a) and ct is not None and type(ct) is not Zero and shape_of(ct) != a.shape:
            raise ValueError(f"the transpose rule of {primitive} gives operand {i}, of shape {a.shape}, a "
                             f"cotangent of shape {shape_of(ct)}")
    return [_ours(ct) for ct in found]


def _transpose_to_jax(primitive, rule, cotangent, *args, **params):
    cotangent = [_ours(ct) for ct in cotangent] if primitive.multiple_results else _ours(cotangent)
    zero = all(ct is None for ct in cotangent) if primitive.multiple_results else cotangent is None
    found = [None] * len(args) if zero else rule(cotangent, *args, **params)
    return [_theirs(ct, a.aval) if is_undefined_primal(a) else None for ct, a in zip(found, args)]


primitive_jvps = Registry("primitive_jvps", "jvp", _jvp_from_jax, _jvp_to_jax)
primitive_transposes = Registry("primitive_transposes", "transpose", _transpose_from_jax, _transpose_to_jax)


def get_primitive_transpose(primitive):
    """The transpose rule of a primitive.  NotImplementedError where there is none."""
    if primitive not in primitive_transposes:
        raise missing(primitive, "transpose")
    return primitive_transposes[primitive]


# --- functions and programs -----------------------------------------------------------------------

def jvp(fun, primals, tangents, has_aux=False, instantiate=True, transform_stack=True):
    """(results, tangents) of a WrappedFun or a function from flat lists to flat lists.

    Args:
        tangents: for each a tangent, or a `Zero`.
        has_aux: not supported; False.
        instantiate: a bool or one for each result, whose tangent is an array also when it is zero.
        transform_stack: True: operations are in the scope `jvp`.
    """
    if has_aux or not transform_stack:
        raise NotImplementedError("ad.jvp(has_aux=True) and (transform_stack=False): jax.jvp has has_aux")
    flat = getattr(fun, "call_wrapped", fun)
    outs, moved = jvp_flat(lambda *xs: list(flat(*xs)), list(primals), [_ours(t) for t in tangents])
    return outs, [_wanted(_theirs(t, aval_of(x)), w)
                  for x, t, w in zip(outs, moved, for_each(instantiate, outs))]


def _wanted(tangent, wanted):
    return instantiate_zeros(tangent) if wanted else tangent


def jvp_jaxpr(jaxpr, nonzeros, instantiate):
    """(program of [*inputs, *tangents] -> [*outputs, *tangents], for each output whether it has a tangent).

    Args:
        nonzeros: which inputs have a tangent.
        instantiate: a bool or one for each output, which has a tangent also when it is zero.
    """
    jaxpr = programs.embed_constants(jaxpr)
    moved, nonzero = programs.jvp(jaxpr, tuple(nonzeros))
    wanted, n = for_each(instantiate, nonzero), len(nonzero)

    def fun(*args):
        outs = eval_jaxpr(moved, (), *args)
        tangents = [_theirs(t, a) for t, a in zip(fill_zeros(outs[n:], nonzero), jaxpr.out_avals)]
        return [*outs[:n], *(t for t in map(_wanted, tangents, wanted) if type(t) is not Zero)]
    return programs.trace_closed(fun, moved.in_avals, jaxpr.name), [nz or w for nz, w in zip(nonzero, wanted)]


def backward_pass(jaxpr, transform_stack, consts, primals_in, cts_in, *, return_logs=False):
    """The cotangents of a linear program's inputs, a `Zero` for one that has none.

    Args:
        transform_stack: what is in no scope of the program is in `transpose`.
        primals_in: the inputs, an `UndefinedPrimal` for each by which it is transposed.
        cts_in: cotangents of its outputs, of which some may be `Zero`.
        return_logs: not supported; False.
    """
    if return_logs:
        raise NotImplementedError("ad.backward_pass(return_logs=True): there are no logs here")
    with named_scope("transpose") if transform_stack else nullcontext():
        found = transpose.backward_pass(jaxpr, consts, primals_in, [_ours(ct) for ct in cts_in])
    return [_theirs(ct, a) for ct, a in zip(found, jaxpr.in_avals)]


# --- rules of common kinds ------------------------------------------------------------------------

def _sum(out, terms):
    return reduce(add_tangents, terms, Zero.from_primal_value(out))


def defjvp(primitive, *rules):
    """Derivative of a primitive of one result: an operand has `rule(tangent, *operands, **params)` or None.
    """
    defjvp2(primitive, *(rule and (lambda g, out, *args, rule=rule, **params: rule(g, *args, **params))
                         for rule in rules))


def defjvp2(primitive, *rules):
    """As `defjvp`, where rules are given the result too: `rule(tangent, result, *operands, **params)`."""
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        return out, _sum(out, [rule(t, out, *primals, **params)
                               for rule, t in zip(rules, tangents, strict=True) if rule is not None
                               and type(t) is not Zero])
    primitive_jvps[primitive] = jvp


def _linear_jvp(primitive, primals, tangents, **params):
    out = primitive.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        if primitive.multiple_results:
            return out, [Zero.from_primal_value(x) for x in out]
        return out, Zero.from_primal_value(out)
    return out, primitive.bind(*map(instantiate_zeros, tangents), **params)


def deflinear(primitive, transpose_rule):
    """A primitive that is linear in all its operands together.

    `transpose_rule(cotangent, **params)` gives cotangents.
    """
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive, transpose_rule):
    """As `deflinear`, with `transpose_rule(cotangent, *operands, **params)`, of `UndefinedPrimal`s."""
    primitive_jvps[primitive] = partial(_linear_jvp, primitive)
    primitive_transposes[primitive] = transpose_rule


def defbilinear(primitive, lhs_rule, rhs_rule):
    """A primitive that is linear in each of its two operands.

    `lhs_rule(cotangent, lhs, rhs, **params)` gives the cotangent of the left operand, where that one is an
    `UndefinedPrimal`; `rhs_rule` likewise that of the right one.
    """
    defjvp(primitive, lambda g, x, y, **params: primitive.bind(g, y, **params),
           lambda g, x, y, **params: primitive.bind(x, g, **params))

    def transpose(cotangent, x, y, **params):
        if is_undefined_primal(x) and is_undefined_primal(y):
            raise TypeError(f"{primitive} is linear in each operand alone, not in both: it has no transpose "
                            "where both are unknown")
        return ((lhs_rule(cotangent, x, y, **params), None) if is_undefined_primal(x) else
                (None, rhs_rule(cotangent, x, y, **params)))
    primitive_transposes[primitive] = transpose

_explain(globals())
