"""Forward mode on flat lists: what has no tangent gets none, and programs are differentiated as they are."""
import numpy as np
import pytest
from reference import draw, evaluate, run

import hlotrace as jax
from hlotrace import lax
from hlotrace.transforms.jvp import JVPTracer, jvp, jvp_flat

pytestmark = pytest.mark.quick

X, Y = [x.astype(np.float32) for x in draw((3,), (3,))]


def traced(function, *args):
    return jax.make_jaxpr(function)(*args)


@pytest.mark.parametrize("function, nonzero, wanted", [
    (lambda x, y: [x + y], (True, False), [True]), (lambda x, y: [x, y], (True, False), [True, False]),
    (lambda x, y: [lax.stop_gradient(x), x * y], (True, True), [False, True]), (lambda x, y: [lax.sign(x), lax.gt(x, y)], (True, True), None),
    (lambda x, y: [lax.sin(y)], (True, False), [False]), (lambda x, y: [x * 2, y * 2], (False, True), [False, True])])
def test_a_tangent_is_none_where_nothing_depends(function, nonzero, wanted):
    seen = []

    def forward(x, y, dx, dy):
        outs, tangents = jvp_flat(lambda *xs: function(*xs), [x, y], [dx if nonzero[0] else None, dy if nonzero[1] else None])
        seen.append([t is not None for t in tangents])
        return outs
    found = run(forward, X, Y, X, Y)
    for got, want in zip(found, run(function, X, Y), strict=True):
        np.testing.assert_array_equal(got, want)
    assert seen[0] == (wanted or [False, False])


def test_a_program_is_made_of_a_program():
    jaxpr = traced(lambda x, y: (lax.sin(x) * y, y), X, Y)
    program, out_nonzero = jvp(jaxpr, (True, False))
    assert out_nonzero == (True, False) and len(program.invars) == 3 and len(program.outvars) == 3
    outs = evaluate(program, X, Y, np.ones(3, np.float32))
    np.testing.assert_allclose(outs[2], np.cos(X) * Y, rtol=1e-6)
    assert jvp(jaxpr, (True, False))[0] is program and jvp(jaxpr, (True, True))[0] is not program


def test_tangents_of_tangents_are_not_confused():
    def f(x):
        return jax.jvp(lambda y: x * jax.jvp(lambda z: x * y * z, (1.0,), (1.0,))[1], (x,), (1.0,))[1]      # x * x: d/dy of x * x * y
    assert run(jax.grad(f), np.float32(3))[0] == 6


def test_what_a_tracer_says_of_itself():
    kinds = []

    def f(x):
        kinds.append((type(x), repr(x)))
        return x
    jax.make_jaxpr(lambda x: jax.jvp(f, (x,), (x,)))(X)
    jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(X)
    assert [kind for kind, _ in kinds] == [JVPTracer] * 2
    assert kinds[0][1].startswith("JVPTracer(primal=") and "typeof(tangent)=f32[3]" in kinds[1][1]


def test_a_primitive_without_a_rule_is_named():
    jaxpr = traced(lambda x: x + 1, X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["add"]
    primitive = jax.extend.core.Primitive("lonely")
    primitive.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="lonely"):
        jax.make_jaxpr(lambda x: jax.jvp(primitive.bind, (x,), (x,)))(X)
    jax.make_jaxpr(lambda x: jax.jvp(lambda y: primitive.bind(x) + y, (x,), (x,)))(X)      # of no tangent it needs none


def test_a_jit_inside_is_one_equation_for_value_and_tangent():
    inner = jax.jit(lambda x, y: (x * y, x + y))
    program = traced(lambda x, y, t: jax.jvp(lambda x: inner(x, y), (x,), (t,)), X, Y, X)
    assert [e.primitive.name for e in program.eqns] == ["jit"]
    np.testing.assert_allclose(evaluate(program, X, Y, X)[2], X * Y, rtol=1e-6)
