"""custom_vmap and sequential_vmap: how a function is mapped is what its rule says, under all transformations.
"""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.custom_batching import custom_vmap, sequential_vmap

X = np.arange(3, dtype=np.float32)
asked = []


@custom_vmap
def f(x, y=2.0):
    return jnp.sin(x) * y


@f.def_vmap
def f_mapped(axis_size, in_batched, x, y):
    """Something else, so that it shows."""
    asked.append((axis_size, in_batched))
    return jnp.exp(x) * y, any(in_batched)


def test_the_rule_says_what_vmap_does():
    same(f(X), np.sin(X) * 2)
    same(jax.jit(f)(X, y=3.0), np.sin(X) * 3)
    asked.clear()
    for mapped in jax.vmap(f, (0, None)), jax.jit(jax.vmap(f, (0, None))), jax.vmap(jax.jit(f), (0, None)):
        same(mapped(X, 3.0), np.exp(X) * 3)
    same(jax.vmap(lambda x: f(x, y=3.0))(X), np.exp(X) * 3)
    assert asked == [(3, [True, False])] * 4
    same(jax.vmap(f, (1, 1))(np.ones((2, 3)), np.ones((2, 3))), np.full((3, 2), np.e))
    same(jax.vmap(lambda x: f(2.0) * x, axis_name="i")(X), np.sin(2.0) * 2 * X)


def test_mapped_twice_the_operations_of_the_rule_are_mapped():
    want = np.exp(X)[:, None] * X
    asked.clear()
    same(jax.vmap(jax.vmap(f, (None, 0)), (0, None))(X, X), want)
    assert asked == [(3, [False, True])]
    same(jax.jit(lambda xs: lax.map(lambda x: jax.vmap(f, (None, 0))(x, X), xs))(X), want)


def test_derivatives():
    """Of the mapped function they are those of the rule; a mapped reverse derivative is that of the function.
    """
    same(jax.grad(lambda x: jax.vmap(f)(x, X).sum())(X), np.exp(X) * X)
    same(jax.jvp(jax.vmap(f), (X, X), (X, 2 * X)), (np.exp(X) * X, np.exp(X) * (X * X + 2 * X)))
    same(jax.vmap(lambda x: jax.jvp(f, (x, 2.0), (1.0, x)))(X), (np.exp(X) * 2, np.exp(X) * (2 + X)))
    same(jax.grad(f)(1.0), np.cos(1) * 2)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(f), (0, None)))(X, 2.0)
    same((value, slope), (np.exp(X) * 2, np.cos(X) * 2))
    same(jax.vmap(jax.grad(jax.checkpoint(f)), (0, None))(X, 2.0), np.cos(X) * 2)
    same(jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(0.3),
         jax.grad(lambda x: jnp.sin(jnp.sin(x) * 2) * 2)(0.3))


def test_pytrees_and_methods():
    @custom_vmap
    def g(tree, n):
        return {"sum": tree["a"] + tree["b"], "n": n}

    @g.def_vmap
    def _(size, in_batched, tree, n):
        assert in_batched == [{"a": True, "b": False}, False]
        return {"sum": tree["a"] * tree["b"], "n": n}, {"sum": True, "n": False}
    got = jax.vmap(g, ({"a": 0, "b": None}, None), {"sum": 0, "n": None})({"a": X, "b": 2.0}, 7)
    same(got, {"sum": X * 2, "n": 7})
    assert f.__name__ == "f" and f_mapped.__name__ == "f_mapped"

    class Model:
        scale = 3.0

        @custom_vmap
        def call(self, x):
            return x
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function .*call"):
        jax.vmap(lambda x: Model.call(1.0, x))(X)


@pytest.mark.parametrize(("result", "error", "words"), [
    (lambda x: x, TypeError, "must return a pair"),
    (lambda x: ((x, x), (True, True)), ValueError, "structure of output returned by custom_vmap rule"),
    (lambda x: (x, [True]), ValueError, "structure of output value and output batching specification"),
    (lambda x: (x[:2], True), ValueError, r"is float32\[2\], and must be float32\[3\]"),
    (lambda x: (x, False), ValueError, r"is float32\[3\], and must be float32\[\]"),
])
def test_rules_that_do_not_fit(result, error, words):
    g = custom_vmap(lambda x: x)
    g.def_vmap(lambda size, in_batched, x: result(x))
    with pytest.raises(error, match=words):
        jax.vmap(g)(X)


def test_what_it_closes_over_may_not_be_mapped_or_differentiated():
    def outer(x, y):
        g = custom_vmap(lambda x: x * y)
        g.def_vmap(lambda size, in_batched, x: (x * y, True))
        return g(x)
    same(jax.jit(jax.vmap(outer, (0, None)))(X, 2.0), X * 2)
    same(jax.grad(outer)(2.0, 3.0), 3.0)
    for transformed in (lambda: jax.vmap(outer)(X, X)), (lambda: jax.grad(outer, 1)(2.0, 3.0)):
        with pytest.raises(jax.errors.UnexpectedTracerError,
                           match="closes over a value that is .* as an argument"):
            transformed()


@pytest.mark.parametrize("wrapper, rule, name", [
    (jax.custom_vjp, lambda g: g.defvjp(lambda x: (g(x), x), lambda x, ct: (7 * ct,)), "def_vmap"),
    (jax.custom_jvp, lambda g: g.defjvps(lambda t, out, x: 7 * t), "def_vmap"),
    (custom_vmap, lambda g: g.def_vmap(lambda size, in_batched, x: (5 * x, True)), "defjvp"),
])
def test_rules_of_what_is_wrapped_are_set_through_the_wrapper(wrapper, rule, name):
    inner = custom_vmap if name == "def_vmap" else jax.custom_jvp
    g = wrapper(inner(lambda x: x))
    if name == "def_vmap":
        g.def_vmap(lambda size, in_batched, x: (5 * x, True))
    else:
        g.defjvp(lambda primals, tangents: (g(*primals), 7 * tangents[0]))
    rule(g)
    same(jax.vmap(g)(X), 5 * X)
    same(jax.grad(g)(1.0), 7.0)
    assert not hasattr(g, "defvmap") and not hasattr(jax.custom_vjp(lambda x: x), "def_vmap")


def test_sequential_vmap_is_a_loop():
    g = sequential_vmap(lambda x, y: (jnp.sin(x) * y, y))
    same(g(X, 2.0), (np.sin(X) * 2, 2.0))
    same(jax.vmap(g, (0, None))(X, 2.0), (np.sin(X) * 2, np.full(3, 2.0)))
    text = str(jax.make_jaxpr(jax.vmap(g, (0, None)))(X, 2.0))
    assert "scan[" in text and "length=3" in text
    same(jax.jit(jax.vmap(jax.vmap(g, (None, 0)), (0, None)))(X, X)[0], np.sin(X)[:, None] * X)
    same(jax.grad(lambda x: jax.vmap(g, (0, None))(x, 2.0)[0].sum())(X), np.cos(X) * 2)
    same(jax.vmap(jax.grad(lambda x: g(x, 2.0)[0]))(X), np.cos(X) * 2)
    same(jax.linear_transpose(jax.vmap(sequential_vmap(lambda x: 2 * x)), X)(X), (2 * X,))
