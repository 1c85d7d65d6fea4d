"""A Box holds any pytree, outside and inside of compiled functions, loops, mapped and differentiated ones."""
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.as_jax.boxes import Box, BoxTypeState, box_get, box_set, new_box


def add(box, x):
    box.set(box.get() + x)


def loop(box, x):
    lax.scan(lambda c, y: (c, add(box, y)), None, jnp.array([x, 0.]))


@pytest.mark.parametrize(
    "change", [add, jax.jit(add), loop, jax.jit(loop), lambda box, x: jax.jit(lambda y: add(box, y))(x)],
                         ids=["eager", "jit", "scan", "scan in jit", "closed over by jit"])
def test_a_box_is_changed(change):
    box = Box(jnp.float32(1.))
    change(box, 2.)
    change(box, 3.)
    assert box.get() == 6.


def test_a_box_holds_any_pytree():
    box = new_box()
    assert box_get(box) is None and repr(jax.typeof(box)) == "BoxTy()"
    box_set(box, {"a": 1.})
    jax.jit(lambda b: b.set((b.get()["a"], jnp.ones(3))))(box)
    assert box.get()[0] == 1. and box.get()[1].shape == (3,)
    state = jax.experimental.cur_qdd(box)
    assert type(state) is BoxTypeState and [a.shape for a in state.leaf_avals] == [(), (3,)]


def test_weak_numbers_are_of_the_type_of_strong_ones():
    weak, strong = (jax.experimental.cur_qdd(Box(x)) for x in (jnp.asarray(1.), jnp.float32(1.)))
    assert weak != strong and weak.normalize() == strong.normalize()


@pytest.mark.parametrize("transform, want",
                         [(jax.jit, 9.), (jax.grad, 6.), (lambda f: jax.jit(jax.grad(f)), 6.),
                                             (lambda f: lambda x: jax.vmap(f)(jnp.full(1, x))[0], 9.)])
def test_a_box_of_the_function_itself(transform, want):
    def square(x):
        box = Box(0.)
        box.set(x * x)
        return box.get()
    assert transform(square)(3.) == want


def test_a_box_leaves_the_function_that_made_it():
    assert jax.jit(lambda x: Box((x, x * 2)))(3.).get()[1] == 6.


def test_a_box_from_outside_gets_no_value_of_grad():
    box = Box(0.)
    with pytest.raises(ValueError, match="made outside of it"):
        jax.grad(lambda x: (box.set(x), x)[1])(3.)
    assert box.get() == 0.
