"""Quax: arrays of the user's own kinds through functions that were not written for them."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import quax
from quax.examples import lora, unitful, zero


def test_units():
    metres = unitful.Unitful(jnp.array([1., 2.]), {unitful.meters: 1})
    seconds = unitful.Unitful(jnp.array([2., 4.]), {unitful.seconds: 1})
    area = quax.quaxify(lambda x: x * x)(metres)
    assert area.units == {unitful.meters: 2} and area.array.tolist() == [1, 4]
    both = jax.jit(quax.quaxify(jnp.multiply))(metres, seconds)
    assert both.units == {unitful.meters: 1, unitful.seconds: 1} and both.array.tolist() == [2, 8]


def test_symbolic_zeros():
    zeros = zero.Zero((2, 3), jnp.dtype("float32"))
    kept = quax.quaxify(lambda x: (jnp.broadcast_to(x, (4, 2, 3)), x * x))(zeros)
    assert all(isinstance(x, zero.Zero) for x in kept) and kept[0].shape == (4, 2, 3)
    np.testing.assert_allclose(quax.quaxify(jnp.add)(zeros, jnp.ones((2, 3))), np.ones((2, 3)))


def test_lora():
    linear = eqx.nn.Linear(4, 3, key=jax.random.key(0))
    adapted = lora.loraify(linear, rank=2, key=jax.random.key(1))
    x = jnp.arange(4.)
    np.testing.assert_allclose(quax.quaxify(adapted)(x), linear(x), rtol=1e-5)
    slopes = eqx.filter_grad(lambda model: quax.quaxify(model)(x).sum())(adapted)
    assert float(jnp.abs(slopes.weight.b).sum() + jnp.abs(slopes.weight.a).sum()) > 0
