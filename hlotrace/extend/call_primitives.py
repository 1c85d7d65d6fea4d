"""Primitives that call a program: `p.bind(*args, call_jaxpr=program, **params)`.

Transformed, they are calls of `jit`.
"""
from functools import partial

from ..core.avals import aval_of
from ..core.primitive import Primitive
from ..core.programs import embed_constants, transpose_call
from ..core.refs import Holder
from ..interpreters import ad, partial_eval
from ..primitives.programs.calls import AS_JIT

__all__ = ["create_call_primitive", "eval_jaxpr_transpose", "register_call_primitive_rules"]


class _Call(Primitive):
    """One of the user's: it has no place among hlotrace's own."""
    __slots__ = ()
    bind, _threaded = Holder.bind, Holder._threaded


class CallPrimitive(_Call):
    """One that takes for `call_jaxpr` also a function of flat lists: `subfuns=(fun,)`, as in JAX 0.10."""
    __slots__ = ()
    call_primitive = True

    def __init__(self, name):
        super().__init__(name, multiple_results=True)
        register_call_primitive_rules(self)

    def bind(self, *args, subfuns=(), **params):
        for fun in subfuns:
            program, _, consts = partial_eval.trace_to_jaxpr_dynamic(fun, map(aval_of, args))
            args, params["call_jaxpr"] = (*consts, *args), partial_eval.convert_constvars_jaxpr(program)
        return super().bind(*args, **params)


def _by(rule):
    return lambda *args, call_jaxpr, **_: rule(*args, jaxpr=embed_constants(call_jaxpr))


def _lower(name, inline, ctx, eqn, *names):
    program = embed_constants(eqn.params["call_jaxpr"])
    return ctx.inline(program, names) if inline else ctx.call(program.replace(name=name), names)


def register_call_primitive_rules(prim, name=None, transpose_rule=None, inline_jax_late=True):
    """Give `prim` the rules of a primitive that calls the program `call_jaxpr`.

    Derivatives and batching are calls of `jit`.

    Args:
        name: of the function that it becomes where `inline_jax_late` is False, that of `prim` by default.
        transpose_rule: in JAX's signature, `eval_jaxpr_transpose` by default.
        inline_jax_late: whether the program becomes part of its caller when that is lowered.
    """
    prim.multiple_results = True
    for rule, function in AS_JIT.items():
        if rule not in ("multiple_results", "transpose"):
            setattr(prim, rule, _by(function))
    prim.lower = {None: partial(_lower, name or prim.name, inline_jax_late)}
    ad.primitive_transposes[prim] = transpose_rule or partial(eval_jaxpr_transpose, prim)
    partial_eval.dce_rules[prim] = partial_eval.dce_jaxpr_call_rule


def create_call_primitive(name, inline_jax_late=True):
    """A new primitive that calls a program, `bind(*args, call_jaxpr=program, **params)`; it gives a list.

    >>> from hlotrace.extend.core import create_call_primitive
    >>> call = create_call_primitive("my_call")
    >>> program = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1., 2.)
    >>> jax.grad(lambda x: call.bind(x, 2., call_jaxpr=program)[0])(0.)
    Array(2., dtype=float32, weak_type=True)
    """
    prim = _Call(name, multiple_results=True)
    register_call_primitive_rules(prim, inline_jax_late=inline_jax_late)
    return prim


def eval_jaxpr_transpose(prim, ct, *args, call_jaxpr, **params):
    """The transpose rule, in JAX's signature, of a primitive that calls a linear program.

    It is a call of the transposed program.  Operands that are not known are `ad.UndefinedPrimal`s; of `ct`,
    one for each result, some may be `ad.Zero`.  It gives a cotangent, or None, for each operand.
    """
    cts = [None if type(c) is ad.Zero else c for c in ct]
    return transpose_call(cts, args, embed_constants(call_jaxpr), lambda program, operands: (
        prim.bind(*operands, call_jaxpr=program, **params)))


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
