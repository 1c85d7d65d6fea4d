"""extend.core's helpers for primitives that call a program."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.extend import linear_util
from hlotrace.extend.core import (
    Primitive, TraceTag, create_call_primitive, eval_jaxpr_transpose, primitives,
    register_call_primitive_rules)
from hlotrace.interpreters import ad, partial_eval as pe

TABLE = jnp.arange(3.0)
PROGRAM = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * y + TABLE.sum(), x, y * 2))(1.0, 2.0)
LINEAR = jax.make_jaxpr(lambda x, y: (x * y, y))(1.0, 2.0)


def test_a_primitive_that_calls_a_program():
    for inline in True, False:
        call = create_call_primitive("my_call", inline_jax_late=inline)
        f = lambda x, call=call: call.bind(x, 2.0, call_jaxpr=PROGRAM, mark=3)[0]
        want, slope = np.sin(0.5) * 2 + 3, np.cos(0.5) * 2
        for g, x, expected in ((f, 0.5, want), (jax.jit(f), 0.5, want), (jax.grad(f), 0.5, slope),
                               (jax.jit(jax.grad(f)), 0.5, slope),
                               (jax.vmap(f), jnp.full(3, 0.5), [want] * 3),
                               (jax.grad(jax.grad(f)), 0.5, -2 * np.sin(0.5)),
                               (lambda x, f=f: jax.jvp(f, (x,), (1.0,))[1], 0.5, slope)):
            np.testing.assert_allclose(g(x), expected, 1e-6)
        assert ("@my_call" in jax.jit(f).lower(0.5).as_text()) is not inline
        eqn, = jax.make_jaxpr(f)(0.5).eqns
        assert eqn.primitive is call and eqn.params["mark"] == 3
    assert primitives.create_call_primitive is create_call_primitive and TraceTag() != TraceTag()


def test_calls_of_a_function():
    for call in primitives.call_p, primitives.closed_call_p:
        def f(x, y=2.0, call=call):
            fun = linear_util.wrap_init(lambda a: [jnp.sin(a) * y + TABLE.sum(), a])
            return call.bind(x, subfuns=(fun,))[0]
        assert f"{call.name}_p" in dir(primitives)
        eqn, = jax.make_jaxpr(f)(0.5, 3.0).eqns
        assert eqn.primitive is call and len(eqn.params["call_jaxpr"].jaxpr.invars) == len(eqn.invars)
        for g, expected in (f, np.sin(0.5) * 2 + 3), (jax.jit(f), np.sin(0.5) * 2 + 3), (
            jax.grad(f), np.cos(0.5) * 2):
            np.testing.assert_allclose(g(0.5), expected, 1e-6)
        np.testing.assert_allclose(jax.vmap(f)(jnp.full(3, 0.5), jnp.arange(3.0)),
                                   np.sin(0.5) * np.arange(3) + 3, 1e-6)
        np.testing.assert_allclose(jax.grad(f, 1)(0.5, 2.0), np.sin(0.5), 1e-6)


def test_dead_code_in_its_program():
    call = create_call_primitive("my_dce_call")
    eqn, = jax.make_jaxpr(lambda x, y: call.bind(x, y, call_jaxpr=PROGRAM))(1.0, 2.0).eqns
    used, pruned = pe.dce_jaxpr_closed_call_rule([False, False, True], [True, True], eqn)
    assert used == [False, True] and len(pruned.params["call_jaxpr"].eqns) == 1
    assert pe.dce_jaxpr_call_rule([False] * 3, eqn) == ([False, False], None)
    program = jax.make_jaxpr(lambda x, y: call.bind(x, y, call_jaxpr=PROGRAM)[2])(1.0, 2.0)
    assert pe.dce_jaxpr(program, True)[1] == [False, True]


def test_its_transpose():
    call, seen = Primitive("my_linear_call"), []

    def rule(ct, *args, call_jaxpr):
        seen.append(call_jaxpr)
        return eval_jaxpr_transpose(call, ct, *args, call_jaxpr=call_jaxpr)
    register_call_primitive_rules(call, name="named", transpose_rule=rule)
    f = lambda x: call.bind(x, 3.0, call_jaxpr=LINEAR)[0]
    pull, = jax.linear_transpose(f, 1.0)(2.0),
    assert float(pull[0]) == 6 and seen == [LINEAR]
    x = ad.UndefinedPrimal(jax.typeof(1.0))
    assert float(eval_jaxpr_transpose(call, [2.0, ad.Zero.from_primal_value(1.0)], x, 3.0,
                                      call_jaxpr=LINEAR)[0]) == 6
