"""`jax_check_tracer_leaks`: a value that outlives its trace is reported when that ends, with who holds it."""
import types

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax


class Model:
    pass


@pytest.fixture
def keep():
    """A function that keeps its argument in the global KEPT of a module that was made for it, `keeper`."""
    keeper = types.ModuleType("keeper")
    exec("KEPT = []\ndef keep(x):\n    KEPT.append(x)\n    return x * 2.0", vars(keeper))
    yield keeper.keep
    keeper.KEPT.clear()


def leaked(words):
    return pytest.raises(jax.errors.UnexpectedTracerError, match=f"(?s)Leaked trace of.*{words}")


LEAKING = {
    "jit": lambda f: jax.jit(f)(1.0), "grad": lambda f: jax.grad(f)(1.0), "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: jax.vmap(f)(jnp.ones(2)), "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0),
    "linearize": lambda f: jax.linearize(f, 1.0), "vjp": lambda f: jax.vjp(f, 1.0),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 1.0, jnp.ones(2)), "while": lambda f: lax.while_loop(
        lambda x: x < 3.0, lambda x: f(x) + 4.0, 1.0), "cond": lambda f: lax.cond(True, f, f, 1.0),
    "checkpoint": lambda f: jax.jit(jax.checkpoint(f))(1.0), "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0), "grad of jit": lambda f: jax.grad(jax.jit(f))(1.0),
}


@pytest.mark.parametrize("name", LEAKING)
def test_a_leak_is_reported(name, keep):
    LEAKING[name](keep)     # traced before without the check
    keep.__globals__["KEPT"].clear()
    with jax.checking_leaks(), leaked("a list, held by the global KEPT of module keeper"):
        LEAKING[name](keep)


@pytest.mark.parametrize("name", LEAKING)
def test_without_a_leak_nothing_is_said(name):
    def cyclic(x):
        holder = [x]
        holder.append(holder)

        def inner():
            return x, inner
        return jnp.sin(x) @ jnp.ones(()) if x.ndim else jax.nn.softmax(jnp.stack([x, x * 2])).sum() * x
    with jax.checking_leaks():
        LEAKING[name](cyclic)


def test_a_network_with_library_functions_does_not_leak():
    def loss(w, x):
        h = jax.nn.gelu(jnp.einsum("bi,ij->bj", x, w)) + jax.random.normal(jax.random.key(0), (4, 3))
        h = lax.fori_loop(0, 2, lambda i, v: jnp.where(v > 0, v, v * i), h)
        return jnp.mean(jax.nn.log_softmax(h)[:, 0] ** 2) + jnp.linspace(0, w[0, 0], 3).sum()
    w, x = np.ones((5, 3), np.float32), np.ones((4, 5), np.float32)
    want = jax.grad(loss)(w, x)
    with jax.checking_leaks():
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(w, x), want, rtol=1e-6)
        np.testing.assert_allclose(jax.grad(loss)(w, x), want, rtol=1e-6)
        jax.vmap(jax.value_and_grad(loss), (None, 0))(w, x[:, None])


@pytest.mark.parametrize("hold, words", [
    (lambda model, x: setattr(model, "weight", x), "'weight'|type Model"),
    (lambda model, x: setattr(model, "all", {"first": [x]}), "a list, held by a dict, under 'first'"),
    (lambda model, x: setattr(model, "later", lambda: x), "a variable of a closure"),
])
def test_the_holder_is_told(hold, words):
    model = Model()
    with jax.checking_leaks(), leaked(words):
        jax.jit(lambda x: (hold(model, x), x)[1])(1.0)


def test_the_line_of_a_value_is_told(keep):
    with jax.checking_leaks(), leaked("which was computed at .*test_leaks.py"):
        jax.jit(lambda x: keep(x + 1))(1.0)
