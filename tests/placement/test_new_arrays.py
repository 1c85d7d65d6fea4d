"""Where arrays that a program makes of nothing, or of values, are: under `set_mesh` whole on each device of
the mesh."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import AxisType, NamedSharding, PartitionSpec

HOST = np.ones(4, np.float32)
GIVEN = {"array": lambda: jnp.array([1, 2.0]), "asarray": lambda: jnp.asarray(HOST),
         "number": lambda: jnp.asarray(2),
         "key": lambda: jax.random.key(0)}
MADE = {"ones": lambda: jnp.ones(8), "full": lambda: jnp.full((2,), 3.0), "arange": lambda: jnp.arange(8),
        "eye": lambda: jnp.eye(3), "zeros_like": lambda: jnp.zeros_like(HOST),
        "linspace": lambda: jnp.linspace(0, 1, 4),
        "iota": lambda: jax.lax.iota(jnp.int32, 4),
        "normal": lambda: jax.random.normal(jax.random.key(0), (4,)),
        "a function of a number": lambda: jnp.sin(1.0), "a sum": lambda: HOST + jnp.ones(4),
        "jit": lambda: jax.jit(jnp.ones, static_argnums=0)(3)}


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
@pytest.mark.parametrize("name", [*GIVEN, *MADE])
def test_new_arrays_are_over_the_mesh_in_use(name, kind):
    make, mesh = (GIVEN | MADE)[name], jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType[kind],) * 2)
    alone = make()
    with jax.set_mesh(mesh):
        found = make()
    entries = 0 if name in GIVEN or kind == "Auto" else found.ndim
    assert (found.sharding, found.committed) == (NamedSharding(mesh, PartitionSpec(*[None] * entries)), True)
    assert not alone.committed and alone.aval.str_short() == found.aval.str_short()
    same = (jax.random.key_data(alone), jax.random.key_data(found)) if name == "key" else (alone, found)
    np.testing.assert_array_equal(*same)


def test_what_is_put_somewhere_stays_there():
    mesh, last = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,)), jax.devices()[-1]
    with jax.set_mesh(mesh):
        there = jax.device_put(HOST, last)
        assert there.devices() == {last}
        other = jax.device_put(HOST, NamedSharding(jax.make_mesh((2,), ("other",)), PartitionSpec("other")))
        for use in (jnp.sin, jax.jit(jnp.sin)):
            with pytest.raises(ValueError, match="For primitive sin, context mesh .* should match the aval"):
                use(other)
        for use in (jnp.sin, jax.jit(jnp.sin), jax.jit(jnp.sin).lower):
            with pytest.raises(ValueError,
                               match=rf"device ids \[{last.id}\] .* context mesh with device ids"):
                use(there)
        assert not jax.device_put(HOST).committed
        assert jnp.ones(4, device=last).devices() == {last}
        split = jax.device_put(HOST, PartitionSpec("x"))
        assert (split + jnp.ones(4)).sharding.spec == PartitionSpec("x")


ON_THEIR_WAY = {        # what takes a value over another mesh to that in use -> the whole is twice the value
    "reshard": lambda x: jax.reshard(x, PartitionSpec("x")) * 2,
    "a call": lambda x: jax.jit(lambda y: jax.reshard(y, PartitionSpec("x")))(x) * 2,
    "auto_axes": jax.sharding.auto_axes(lambda x: x * 2, out_sharding=PartitionSpec("x")),
    "shard_map": jax.shard_map(lambda x: x * 2, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x")),
}


@pytest.mark.parametrize("way", ON_THEIR_WAY)
def test_programs_bring_a_value_over_another_mesh_to_that_in_use(way):
    mesh, other = (jax.make_mesh(shape, names, axis_types=(AxisType.Explicit,) * len(names))
                   for shape, names in (((4, 2), ("x", "y")), ((8,), ("x",))))
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(other, PartitionSpec("x")))
    with jax.set_mesh(mesh):
        found = jax.jit(ON_THEIR_WAY[way])(x)
        assert found.sharding == NamedSharding(mesh, PartitionSpec("x"))
        np.testing.assert_array_equal(found, 2 * np.asarray(x))
        with pytest.raises(ValueError, match="For primitive mul, context mesh .* of argument x of"):
            jax.jit(lambda x: (ON_THEIR_WAY[way](x), x * 3))(x)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_values_over_axes_of_other_types_are_computed_with(kind):
    other = "Explicit" if kind == "Auto" else "Auto"
    mesh, over = (jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType[k],) * 2) for k in (kind, other))
    x = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(over, PartitionSpec("x")))
    with jax.set_mesh(mesh):
        for use in (lambda x: x * 2, jax.jit(lambda x: x * 2)):
            np.testing.assert_array_equal(use(x), 2 * np.asarray(x))
