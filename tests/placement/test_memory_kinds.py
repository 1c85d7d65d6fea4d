"""Memory kinds: arrays are put into a kind of their devices' memory, and programs take, make and give such
arrays."""
import copy
import re

import numpy as np
import pytest
from mesh8 import on, one

import hlotrace as jax
import hlotrace.numpy as jnp

KINDS = ["pinned_host", "unpinned_host"]
PLACES = {"one device": lambda: one(3), "rows": lambda: on("data"), "tiles": lambda: on("data", "model"),
          "copies": on}
SOURCES = {"NumPy": lambda x: x, "the default device": jnp.asarray,
           "another device": lambda x: jax.device_put(x, one(5)),
           "columns": lambda x: jax.device_put(x, on(None, "model"))}
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def holds(array, want, sharding):
    """The array and each of its parts have these values, and say that they lie so."""
    assert array.sharding == sharding and array.sharding.memory_kind == sharding.memory_kind
    assert all(s.data.sharding.memory_kind == sharding.memory_kind for s in array.addressable_shards)
    np.testing.assert_array_equal(np.asarray(array), want)
    return True


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", SOURCES)
def test_arrays_go_into_a_kind_of_memory_and_back(place, kind, source):
    pinned = place.with_memory_kind(kind)
    x = jax.device_put(SOURCES[source](X), pinned)
    assert holds(x, X, pinned) and holds(jax.device_put(x, place), X, place)
    assert holds(jax.device_put(x, on("model").with_memory_kind(kind)), X, on("model").with_memory_kind(kind))
    np.testing.assert_array_equal(x + 1, X + 1)
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), X * 2)
    np.testing.assert_array_equal(x[2:], X[2:])


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_given_in_a_kind_of_memory(place, kind):
    pinned = place.with_memory_kind(kind)
    asked, put = jax.jit(lambda x: x * 2, out_shardings=pinned), jax.jit(
        lambda x: jax.device_put(x * 2, pinned))
    for f in (asked, put, asked.lower(X).compile(), put.lower(X).compile(),
              jax.jit(asked, out_shardings=pinned),
              jax.jit(jax.vmap(lambda x: x * 2), out_shardings=pinned)):
        assert holds(f(X), 2 * X, pinned)
    assert holds(asked(asked(X)), 4 * X, pinned)
    both = jax.jit(lambda x: x * 2, in_shardings=pinned, out_shardings=pinned, donate_argnums=0)
    assert holds(both(jax.device_put(X, pinned)), 2 * X, pinned)


@pytest.mark.parametrize("kind", KINDS)
def test_inside_of_programs_values_go_there_and_back(place, kind):
    pinned = place.with_memory_kind(kind)

    def f(x):
        return jax.device_put(jax.device_put(x * 2, pinned), place) + 1
    got = jax.jit(f)(X)
    np.testing.assert_array_equal(got, 2 * X + 1)
    assert got.sharding.memory_kind == place.memory_kind
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(np.stack([X, -X])), np.stack([2 * X + 1, 1 - 2 * X]))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(X), 4 * (2 * X + 1))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (jax.device_put(x, pinned) ** 2).sum()))(X),
                                  2 * X)


def kinds(f, **options):
    """The placements that the text of a program names, in order, and the kinds of its arguments and results.
    """
    text = jax.jit(f, **options).lower(X).as_text()
    calls = re.findall(r'@annotate_device_placement.*_xla_buffer_placement = "(\w+)"', text)
    return calls, re.findall(r'mhlo.memory_kind = "(\w+)"', text)


def test_the_text_says_where_values_go():
    pinned, plain = one(0).with_memory_kind("pinned_host"), one(0)
    assert kinds(lambda x: x * 2) == ([], [])
    assert kinds(lambda x: jax.device_put(x * 2, plain)) == ([], [])
    assert kinds(lambda x: x * 2, out_shardings=pinned) == (["pinned_host"], ["pinned_host"])
    assert kinds(lambda x: jax.device_put(x * 2, pinned)) == (["pinned_host"], ["pinned_host"])
    assert kinds(lambda x: jax.device_put(x * 2, pinned) + 1) == (["pinned_host"] * 2, ["pinned_host"])
    assert kinds(lambda x: jax.device_put(jax.device_put(x, pinned), plain)) == (
        ["pinned_host", "device"], [])
    assert kinds(lambda x: jax.device_put(x, plain), in_shardings=pinned) == (["device"], ["pinned_host"])


def test_a_kind_of_memory_wherever_the_array_lies():
    x = jax.device_put(X, on("data"))
    host = jax.device_put(x, jax.memory.Space.Host)
    assert holds(host, X, on("data").with_memory_kind("pinned_host"))
    assert holds(jax.device_put({"a": host}, jax.memory.Space.Device)["a"], X, on("data"))
    assert jax.device_put(X, jax.memory.Space.Host).sharding.memory_kind == "pinned_host"
    there = jax.jit(
        jax.grad(lambda x: (jax.device_put(jax.vmap(jnp.sin)(x), jax.memory.Space.Host) ** 2).sum()))
    np.testing.assert_allclose(there(X), 2 * np.sin(X) * np.cos(X), atol=1e-6)
    assert "pinned_host" in there.lower(X).as_text()


def test_in_shardings_of_another_memory_are_an_error():
    host, device = (on("data").with_memory_kind(kind) for kind in ("pinned_host", None))
    for x, wanted in ((jax.device_put(X, device), host), (jax.device_put(X, host), device),
                      (jax.numpy.asarray(X), host)):
        with pytest.raises(ValueError,
                           match="Memory kinds passed to jax.jit does not match memory kind on the respective arg"):
            jax.jit(lambda x: x * 2, in_shardings=wanted)(x)


@pytest.mark.parametrize("function", [
    lambda x: x % 2, lambda x: x // 2, lambda x: divmod(x, 2)[1], lambda x: x * 2, lambda x: x > 1],
    ids=range(5))
@pytest.mark.parametrize("kind", [jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit])
def test_what_is_computed_of_arrays_in_the_hosts_memory_is_there(function, kind):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(kind,))
    for dtype in (np.float32, np.int32):
        x = np.arange(8).astype(dtype)
        there = jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.P("x"), memory_kind="pinned_host"))
        for way in (lambda f: f, jax.jit):
            out = way(function)(there)
            assert out.sharding.memory_kind == "pinned_host"
            np.testing.assert_array_equal(out, function(x))
    if kind is jax.sharding.AxisType.Explicit:
        assert jax.reshard(there,
                           jax.sharding.NamedSharding(mesh, jax.P())).sharding.memory_kind == "pinned_host"


def test_types_of_results_say_their_memory():
    rows, pinned = on("data"), on("data").with_memory_kind("pinned_host")
    x = jax.device_put(X, pinned)
    struct = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=pinned)
    split = jax.shard_map(lambda part: part * 2, mesh=rows.mesh, in_specs=rows.spec, out_specs=rows.spec)
    made = {
        "asked for": (jax.jit(jnp.sin, out_shardings=pinned)(X), np.sin(X), "pinned_host"),
        "brought back": (jax.jit(lambda x: x * 2, out_shardings=rows)(x), X * 2, "device"),
        "as the argument": (jax.jit(lambda x: x * 2)(x), X * 2, "pinned_host"),
        "lowered for a struct": (jax.jit(lambda x: x * 2).lower(struct).compile()(x), X * 2, "pinned_host"),
        "of parts": (jax.jit(split)(x), X * 2, "pinned_host"),
    }
    for name, (got, want, kind) in made.items():
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.sharding.memory_kind == kind, name
        assert str(jax.typeof(got)) == ("float32<host>[8,4]" if kind == "pinned_host"
                                        else "float32[8,4]"), name


def test_what_goes_to_another_memory_has_the_words_of_its_type():
    """An entry for each dimension over Explicit axes; what is on no device is over the mesh in use."""
    mesh = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4])
    rows, pinned = (jax.NamedSharding(mesh, jax.P("x"), memory_kind=kind) for kind in (None, "pinned_host"))
    x = jax.device_put(X, rows)
    for put in (lambda: jax.device_put(x, jax.memory.Space.Host), jax.jit(lambda: jax.device_put(X, pinned)),
                lambda: copy.deepcopy(x), lambda: jax.device_put(x, jax.memory.Space.Device)):
        assert put().sharding.spec == jax.P("x", None)
    with jax.set_mesh(mesh):
        assert jax.device_put(X, jax.memory.Space.Host).sharding == jax.NamedSharding(
            mesh, jax.P(), memory_kind="pinned_host")
