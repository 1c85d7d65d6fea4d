"""Equinox: modules as pytrees, filtered transformations, training, state, serialisation."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest


class Affine(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    name: str = eqx.field(static=True)

    def __call__(self, x):
        return self.weight @ x + self.bias


def test_a_module_is_a_pytree_whose_static_fields_are_no_leaves():
    module = Affine(jnp.ones((2, 3)), jnp.zeros(2), "a")
    assert len(jax.tree.leaves(module)) == 2
    doubled = jax.tree.map(lambda x: 2 * x, module)
    assert doubled.name == "a" and np.array_equal(doubled(jnp.ones(3)), [6, 6])
    moved = eqx.tree_at(lambda m: m.bias, module, jnp.array([1., 2.]))
    assert np.array_equal(moved(jnp.ones(3)), [4, 5])


def test_a_network_learns_a_line():
    network = eqx.nn.MLP(1, 1, 16, 2, key=jax.random.key(0))
    x = jnp.linspace(-1, 1, 32)[:, None]
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit
    def step(network, state):
        loss, grads = eqx.filter_value_and_grad(lambda n: jnp.mean((jax.vmap(n)(x) - 3 * x) ** 2))(network)
        updates, state = optimizer.update(grads, state, network)
        return eqx.apply_updates(network, updates), state, loss

    state = optimizer.init(eqx.filter(network, eqx.is_inexact_array))
    losses = []
    for _ in range(100):
        network, state, loss = step(network, state)
        losses.append(float(loss))
    assert losses[-1] < 1e-2 * losses[0]


def test_filtered_transformations_take_functions_as_arguments():
    jitted = eqx.filter_jit(lambda f, x: f(x))
    assert jitted(jnp.sin, 0.5) == jnp.sin(0.5)
    value, back = eqx.filter_vjp(lambda x: x ** 3, jnp.array(2.))
    assert value == 8 and back(jnp.array(1.))[0] == 12
    _, tangent = eqx.filter_jvp(lambda x: x ** 3, (jnp.array(2.),), (jnp.array(1.),))
    assert tangent == 12
    assert eqx.filter_make_jaxpr(lambda x: x + 1)(jnp.array(1.))[1].shape == ()
    made = eqx.filter_vmap(lambda key: eqx.nn.Linear(2, 3, key=key))(jax.random.split(jax.random.key(0), 4))
    assert made.weight.shape == (4, 3, 2)


def test_batch_norm_keeps_state():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(input_size=3, axis_name="batch", mode="ema")
    x = jnp.array([[1., 2., 3.], [3., 4., 5.]])
    out, _ = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    assert out.shape == x.shape


def test_leaves_are_saved_and_read_again(tmp_path):
    model = eqx.nn.Linear(2, 3, key=jax.random.key(1))
    eqx.tree_serialise_leaves(tmp_path / "model.eqx", model)
    read = eqx.tree_deserialise_leaves(tmp_path / "model.eqx", eqx.nn.Linear(2, 3, key=jax.random.key(2)))
    assert np.array_equal(read.weight, model.weight)


def test_error_if_names_its_message():
    checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "must not be negative"))
    assert checked(jnp.array(1.)) == 1
    with pytest.raises(Exception, match="must not be negative"):
        jax.block_until_ready(checked(jnp.array(-1.)))


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_loops_of_each_kind(kind):
    def power(x):
        count, out = eqx.internal.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, jnp.array(1.)),
                                             kind=kind, max_steps=None if kind == "lax" else 8)
        return out
    assert power(jnp.array(2.)) == 32
    if kind != "lax":
        assert jax.grad(power)(jnp.array(2.)) == 80
