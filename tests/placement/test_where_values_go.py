"""Where values go: what jit, device_put and constraints are given, against where arrays are."""
import numpy as np
import pytest
from mesh8 import auto_mesh, on, one

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.layout import Format, Layout

V = np.arange(8, dtype=np.float32)


def made_on(device):
    with jax.default_device(device):
        return jnp.array(V)


WRONG = {
    "a spec of more entries than dimensions, for jit": (lambda: jax.jit(jnp.sin, in_shardings=on("data", None))(V), ValueError, "incompatible with"),
    "for its results": (lambda: jax.jit(jnp.sin, out_shardings=on("data", None))(V), ValueError, "incompatible with its sharding annotation"),
    "for a move": (lambda: jax.device_put(V, on("data", None)), ValueError, "incompatible with its sharding annotation"),
    "for a constraint": (lambda: jax.lax.with_sharding_constraint(V, on("data", None)), ValueError, "incompatible with"),
    "a device for jit": (lambda: jax.jit(jnp.sin, in_shardings=jax.devices()[0])(V), TypeError, "write SingleDeviceSharding"),
    "no constraint": (lambda: jax.lax.with_sharding_constraint((V, V), (on("data"), None)), ValueError, "None, which is not allowed"),
    "a constraint to other devices": (lambda: jax.lax.with_sharding_constraint(jax.device_put(V, one(2)), on("data")),
                                      ValueError, "incompatible devices"),
    "no place": (lambda: jax.device_put(V, "cpu"), ValueError, "expected a Sharding"),
    "a platform that there is not": (lambda: made_on("nope"), ValueError, "jax_default_device: Unknown backend nope"),
    "a platform that is elsewhere": (lambda: made_on("tpu"), RuntimeError, "Unknown backend tpu"),
    "a class": (lambda: made_on(jax.Device), ValueError, "is not a device"),
    "a class for a move": (lambda: jax.device_put(V, jax.Device), ValueError, "expected a Sharding"),
    "a class for an array": (lambda: jnp.array(V, device=jax.Device), ValueError, "expected a Sharding"),
    "a spec without a mesh": (lambda: jax.device_put(V, jax.P("data")), ValueError, "no mesh in context"),
    "parts of what one device holds": (lambda: jax.jit(jnp.sin, in_shardings=on("data"))(jax.device_put(V, one(2))), ValueError, "does not match"),
}


@pytest.mark.parametrize("call, error, words", WRONG.values(), ids=WRONG)
def test_what_says_no_place_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("asked", [one(3), on()], ids=str)
def test_what_one_device_holds_goes_where_jit_wants_it_whole(asked):
    f = jax.jit(lambda x, y: x + y, in_shardings=(asked, None))
    for x, y in ((jax.device_put(V, one(2)), 1.0), (jax.device_put(V, one(4)), jax.device_put(V, asked)), (V, V)):
        for _ in range(2):
            out = f(x, y)
            assert out.sharding.device_set == asked.device_set
            np.testing.assert_array_equal(out, V + np.asarray(y))


@pytest.mark.parametrize("asked", [one(0), one(3)], ids=str)
def test_what_jit_says_of_one_device_is_where_results_stay(asked):
    for f, args in ((jax.jit(lambda x: x + 1, in_shardings=asked), (V,)),
                    (jax.jit(lambda x: {"a": x}, out_shardings=asked), (jnp.array(V),)),
                    (jax.jit(lambda: jnp.ones(8), out_shardings=asked), ())):
        for _ in range(3):
            (out,) = jax.tree.leaves(f(*args))
            assert (out.sharding, out.committed) == (asked, True)


def test_the_part_of_an_array_on_one_device_is_committed_as_the_array():
    for x, committed in ((jnp.array(V), False),
                         (jax.device_put(V, one(2)), True),
                         (jax.device_put(V, on("data")), True)):
        assert x.addressable_data(0).committed is x.addressable_shards[0].data.committed is committed


def test_what_a_constraint_leaves_open_is_as_it_was():
    mapped = jax.vmap(lambda x: jax.lax.with_sharding_constraint(x, on("data")))
    x = np.ones((2, 8), np.float32)
    assert mapped(x).sharding == on(None, "data")
    assert mapped(jax.device_put(x, on("model"))).sharding == on("model", "data")
    assert jnp.zeros_like(jax.device_put(V, one(2)), shape=(3,)).sharding == one(2)
    y = jax.device_put(V, on("data"))
    assert jax.device_put(y, on("data")) is y and y.global_shards[0] is y.addressable_shards[0]


def test_arrays_are_made_of_keys_and_in_layouts():
    keys = jax.random.split(jax.random.key(0), 8)
    made = jax.make_array_from_callback((8,), on("data"), lambda index: keys[index])
    assert made.sharding == on("data") and (jax.random.key_data(made) == jax.random.key_data(keys)).all()
    table = np.arange(32, dtype=np.float32).reshape(8, 4)
    columns = Format(Layout((1, 0)), on("data"))
    made = jax.make_array_from_callback((8, 4), columns, lambda index: table[index])
    assert made.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(made, table)
    for wrong, error in (jax.devices()[0], TypeError), (jax.P("data"), ValueError):
        with pytest.raises(error, match="is a Sharding, got"):
            jax.make_array_from_callback((8,), wrong, lambda index: V[index])


def test_a_shard_map_over_a_mesh_without_devices_runs_where_its_arguments_are():
    mesh = on().mesh
    f = jax.shard_map(lambda x: x * 2, mesh=mesh.abstract_mesh, in_specs=jax.P("data"), out_specs=jax.P("data"))
    out = f(jax.device_put(V, on("model")))
    assert out.sharding == on("data") and out.tolist() == (V * 2).tolist()
    with jax.set_mesh(mesh):
        assert f(V).tolist() == (V * 2).tolist()
        with pytest.raises(ValueError, match="should match the mesh passed to shard_map"):
            jax.shard_map(lambda x: x, mesh=auto_mesh((8,), "x"), in_specs=jax.P("x"), out_specs=jax.P("x"))(V)
    for specs, words in (([jax.P("data")], "is a list"), (jax.P(jax.P.UNCONSTRAINED), "UNCONSTRAINED")):
        with pytest.raises(ValueError, match=words):
            jax.shard_map(lambda x: x, mesh=mesh, in_specs=specs, out_specs=jax.P("data"))(V)
    with pytest.raises(ValueError, match="static ones by position"):
        jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(V)


def test_a_format_may_be_a_constraint():
    table = np.arange(32, dtype=np.float32).reshape(8, 4)
    columns = Format(Layout((1, 0)), on("data"))
    f = lambda x: jax.lax.with_sharding_constraint(x * 2, columns)
    assert "LayoutConstraint" in jax.jit(f).lower(table).as_text()
    for g in f, jax.jit(f):
        out = g(table)
        assert out.sharding == on("data") and out.tolist() == (table * 2).tolist()


def test_the_rows_of_an_array_over_devices_are_on_one():
    table = np.arange(32, dtype=np.float32).reshape(8, 4)
    for sharding in on("data"), on(None, "model"), on():
        rows = list(jax.device_put(table, sharding))
        assert {(row.sharding, row.committed) for row in rows} == {(one(0), False)}
        np.testing.assert_array_equal(rows, table)


def test_a_deleted_array_over_devices_is_not_asked():
    x = jax.device_put(V, on("data"))
    assert x.block_until_ready().is_ready()
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        x.is_ready()


def unevenly(x):
    return jax.lax.with_sharding_constraint(x, on("data"))


@pytest.mark.parametrize("fun, want", [
    (lambda x: unevenly(x) * 2, np.arange(7) * 2), (lambda x: unevenly(x).sum(), 21),
    (jax.grad(lambda x: (unevenly(x) ** 2).sum()), np.arange(7) * 2),
    (jax.vmap(lambda x: unevenly(x * np.ones(7, np.float32)).sum()), np.arange(7) * 7)])
def test_a_constraint_in_a_program_need_not_divide(fun, want):
    np.testing.assert_array_equal(jax.jit(fun)(np.arange(7, dtype=np.float32)), want)
    with pytest.raises(ValueError, match="partitioned 4 times"):
        unevenly(np.arange(7))


def test_an_argument_that_is_not_used_does_not_say_where():
    """It is as if it were not given: the mesh in use says it, or nothing."""
    mesh = auto_mesh((8,), "x")
    for argument in (1.0, jax.device_put(1.0, jax.devices()[3]), jax.device_put(V, on("data"))):
        assert not jax.jit(lambda x: jnp.zeros(3))(argument).committed
        with jax.set_mesh(mesh):
            assert jax.jit(lambda x: jnp.zeros(3))(argument).sharding == jax.NamedSharding(mesh, jax.P())


def test_results_of_a_program_are_over_the_mesh_in_use():
    """Also where the program casts to axes of other types."""
    with jax.set_mesh(mesh := auto_mesh((4, 2), ("x", "y"))):
        f = jax.jit(lambda x: jax.sharding.explicit_axes(lambda x: x * 2, in_sharding=jax.P("x"))(x) + 1)
        assert f(jnp.ones(8)).sharding == jax.NamedSharding(mesh, jax.P("x"))
