"""Library functions and derivative rules run once for each type; later uses splice what they did."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import state
from hlotrace.core.jaxpr import sub_jaxprs

X = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(2, 3)


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns] + [n for e in jaxpr.eqns for s in sub_jaxprs(e.params) for n in names(s)]


def layered(x):
    for _ in range(3):
        x = jax.nn.softmax(jnp.var(x, axis=0) + x) * jnp.sin(x)
    return jnp.mean(x)


def test_the_program_is_flat_and_each_use_has_its_own_variables():
    grad = jax.make_jaxpr(jax.grad(layered))(X)
    assert not {"inlined", "jit"} & set(names(grad))
    bound = [v for e in grad.eqns for v in e.outvars]
    assert len(bound) == len(set(bound))
    again = jax.make_jaxpr(jax.grad(lambda x: layered(x)))(X)
    assert str(again) == str(grad)


def scanned(x):
    return lax.scan(lambda c, r: (c + layered(r * x), r), 0.0, x)[0]


@pytest.mark.parametrize("fun, x", [
    (jax.grad(layered), X), (jax.vmap(jax.grad(layered)), np.stack([X, X + 1])), (jax.jacfwd(jax.grad(layered)), X),
    (jax.grad(lambda x: jax.grad(layered)(x).sum()), X), (lambda x: jax.linearize(layered, x)[1](x), X),
    (jax.grad(scanned), X), (lambda x: jax.linearize(scanned, x)[1](x), X), (jax.grad(jax.checkpoint(layered)), X),
    (lambda x: jax.vjp(layered, x)[1](jnp.float32(2)), X),
])
def test_compiled_and_eager_agree(fun, x):
    eager, compiled = fun(jnp.asarray(x)), jax.jit(fun)(x)
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_constant_is_part_of_what_is_kept():
    f = jax.jit(lambda x: (x * 0.0, x * -0.0, jnp.where(x > 0, x, 1), jnp.where(x > 0, x, 1.0), x ** 2, x ** 3))
    a, b, c, d, e, g = jax.grad(lambda x: 0.0 * x)(1.0), *f(np.float32(2))[1:]
    assert np.signbit(b) and not np.signbit(a) and (c, d, e, g) == (2, 2, 4, 8)
    grads = [jax.jit(jax.grad(lambda x, k=k: x ** k))(3.0) for k in (2, 3, 2.0)]
    np.testing.assert_allclose(grads, [6, 27, 6], rtol=1e-6)


def test_an_option_is_part_of_what_is_kept():
    f = lambda x: jnp.var(x) * jnp.arange(2)
    assert jax.jit(f)(X).dtype == jnp.float32
    with jax.enable_x64(True):
        assert jax.jit(f)(X.astype(np.float64)).dtype == jnp.float64
    assert state.trace.staging is False


def test_equations_carry_the_line_of_their_own_use():
    def f(x):
        a = jnp.var(x)
        b = jnp.var(x)
        return jnp.mean(a + b)
    text = jax.jit(jax.grad(f)).lower(X).as_text(debug_info=True)
    first = f.__code__.co_firstlineno
    for line in (1, 2, 3):
        assert f'test_trace.py":{first + line}:' in text


def test_named_scopes_enclose_what_is_spliced():
    def f(x):
        with jax.named_scope("outer"):
            return jnp.var(x)
    for _ in range(2):
        assert "outer/" in jax.jit(lambda x: f(x)).lower(X).as_text(debug_info=True)


def test_an_error_names_the_callers_values():
    def f(params):
        return jnp.matmul(params["w"], params["w"])
    for _ in range(2):
        with pytest.raises(TypeError, match="matmul|dot"):
            jax.jit(f)({"w": X})
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"params\['w'\]"):
        jax.jit(lambda params: jnp.arange(params["w"]))({"w": 3})
