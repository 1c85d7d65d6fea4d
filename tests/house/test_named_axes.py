"""Collectives over the named axis of a vmap work wherever they stand in the function, on operands mapped or
not."""
import numpy as np
import pytest
from custom_rules import custom_jvp, custom_vjp

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

# What holds the collective: a function of a scalar that does what `f` does.
HOLDERS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "scan": lambda f: lambda x: lax.scan(lambda carry, _: (carry, f(x)), 0.0, None, length=2)[1][1],
    "cond": lambda f: lambda x: lax.cond(jnp.sum(jnp.zeros(1)) == 0, f, lambda y: f(y) * 0, x),
    "while": lambda f: lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(x) + 0 * s[1]),
                                                (0, x * 0.0))[1],
    "fori": lambda f: lambda x: lax.fori_loop(0, 1, lambda _, s: f(x) + 0 * s, x * 0.0),
    "checkpoint": jax.checkpoint,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "jit in scan in checkpoint": lambda f: jax.checkpoint(HOLDERS["scan"](jax.jit(f))),
}
COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda xs: np.full(xs.shape, xs.sum())),
    "axis_index": (lambda x: x * 0 + lax.axis_index("i"), lambda xs: np.arange(len(xs))),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit outside"])
@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "unmapped"])
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_collectives_inside_of_programs(holder, collective, mapped, compiled):
    """At two sizes one after the other: what was kept for the first must not serve the second."""
    does, expected = COLLECTIVES[collective]
    function = HOLDERS[holder](does)

    def over(xs):
        if mapped:
            return jax.vmap(function, axis_name="i")(xs)
        return jax.vmap(lambda _: function(jnp.float32(2)), axis_name="i")(xs)
    for size in (3, 5):
        xs = np.arange(1, size + 1, dtype=np.float32)
        result = (jax.jit(over) if compiled else over)(xs)
        np.testing.assert_array_equal(result, expected(xs if mapped else np.full(size, 2.0)))


@pytest.mark.parametrize("holder", [h for h in HOLDERS if h not in ("custom_jvp", "custom_vjp", "while")])
def test_gradients_through_collectives_inside_of_programs(holder):
    """Of sum_i (sum_j x_j)^2 is 2 n sum(x): each slice's sum depends on all."""
    def loss(x):
        return HOLDERS[holder](lambda y: lax.psum(y, "i"))(x) ** 2
    for size in (3, 5):
        xs = jnp.arange(1.0, size + 1)
        gradient = jax.grad(lambda v: jax.vmap(loss, axis_name="i")(v).sum())(xs)
        np.testing.assert_allclose(gradient, np.full(size, 2 * size * float(xs.sum())), rtol=1e-6)
