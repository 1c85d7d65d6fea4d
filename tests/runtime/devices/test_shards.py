"""Arrays on several of eight devices: how they get there, what they say, operations on them."""
import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from mesh8 import (
    DELETED, MIXED, ON_JAX, PLACES, UNEVEN, auto_mesh, backwards, counting, devices, grid, high, lies, line,
    low, on, on_device, one, put, whole)

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.sharding import (
    Mesh, NamedSharding, PartitionSpec as P, PositionalSharding, SingleDeviceSharding)

A = counting((8, 4))

# --- device_put ---


@pytest.mark.parametrize("mesh, spec, rows, columns, replica", [
    (grid, P("data", "model"), (4, 6), (2, 4), 0),
    (grid, P("model", "data"), (4, 8), (2, 3), 0),
    (grid, P("data"), (4, 6), (0, 4), 1),
    (grid, P("data", None), (4, 6), (0, 4), 1),
    (grid, P("model"), (4, 8), (0, 4), 2),
    (grid, P(None, "model"), (0, 8), (2, 4), 2),
    (grid, P(("data", "model")), (5, 6), (0, 4), 0),
    (grid, P(("model", "data")), (6, 7), (0, 4), 0),
    (grid, P(), (0, 8), (0, 4), 5),
    (line, P("x"), (5, 6), (0, 4), 0),
    (line, P(None), (0, 8), (0, 4), 5),
    (backwards, P("x"), (2, 3), (0, 4), 0),
    (high, P("x"), (2, 4), (0, 4), 0),
    (high, P(None, "x"), (0, 8), (1, 2), 0),
])
def test_each_device_holds_the_tile_that_the_spec_gives_it(mesh, spec, rows, columns, replica):
    sharding = NamedSharding(mesh(), spec)
    x = jax.device_put(A, sharding)
    whole(x, A)
    assert x.sharding == sharding and x.committed and x.devices() == set(mesh().devices.flat)
    shard = next(s for s in x.addressable_shards if s.device == devices()[5])
    start, stop = zip(*(s.indices(n)[:2] for s, n in zip(shard.index, A.shape)))
    assert (start, stop) == ((rows[0], columns[0]), (rows[1], columns[1]))
    assert shard.replica_id == replica
    assert shard.data.shape == x.sharding.shard_shape(A.shape)


@pytest.mark.parametrize("spec", [P(), P("data"), P("data", "model")])
def test_copies_of_a_tile_are_numbered_from_zero(spec):
    copies = {}
    for shard in jax.device_put(A, NamedSharding(grid(), spec)).addressable_shards:
        copies.setdefault(str(shard.index), []).append(shard.replica_id)
    assert all(sorted(ids) == list(range(8 // len(copies))) for ids in copies.values())


@pytest.mark.parametrize("target", [lambda d: d, SingleDeviceSharding])
@pytest.mark.parametrize("source", [
    lambda: A, lambda: jnp.asarray(A), lambda: on_device(A, 1), lambda: put(A, "data", "model")])
def test_put_on_one_device(target, source):
    x = jax.device_put(source(), target(devices()[3]))
    whole(x, A)
    assert x.devices() == {devices()[3]} and x.committed and x.is_fully_replicated
    assert x.sharding == one(3)


@pytest.mark.parametrize("source", PLACES)
def test_reshard_from_anywhere_to_anywhere(source):
    for target in PLACES.values():
        x = jax.device_put(A, PLACES[source]())
        y = jax.device_put(x, target())
        whole(y, A)
        assert y.sharding == target() and y.committed
        whole(x, A)


@pytest.mark.skipif(ON_JAX, reason="JAX gathers on the host and keeps it")
@pytest.mark.parametrize("source", PLACES)
def test_a_move_holds_few_parts_on_the_host(source):
    """The one that it makes and those that jaxlib has not let go yet; the source keeps no host copy."""
    value = counting((1024, 512))
    for target in PLACES.values():
        x = jax.device_put(value, PLACES[source]())
        jax.device_put(x, target())      # imports and tables
        part = 4 * np.prod(target().shard_shape(value.shape))
        tracemalloc.start()
        moved = jax.device_put(x, target())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * part + 200_000, target()
        assert x._host is None
        whole(moved, value)


# what is done to an array before and after it is put elsewhere, and the derivative of the sum of squares of the result
AROUND = {
    "at once": (lambda x: x, lambda x: x, lambda x: 2 * x),
    "between others": (lambda x: x * 3, lambda x: x * 2, lambda x: 72 * x),
    "in a vmap": (lambda x: x, jax.vmap(lambda x: 2 * x), lambda x: 8 * x),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("source", PLACES)
def test_a_cotangent_goes_back_to_where_the_operand_lay(source, around):
    before, after, want = AROUND[around]
    for target in PLACES.values():
        def loss(x, target=target):
            return jnp.sum(after(jax.device_put(before(x), target())) ** 2)
        x = jax.device_put(A, PLACES[source]())
        value, grad = jax.value_and_grad(loss)(x)
        whole(grad, want(A))
        assert grad.sharding.is_equivalent_to(x.sharding, 2) and value.devices() == target().device_set


@pytest.mark.parametrize("source", PLACES)
def test_a_move_is_its_own_derivative(source):
    x = jax.device_put(A, PLACES[source]())
    for target in PLACES.values():
        y, pull = jax.vjp(lambda x, target=target: jax.device_put(x, target()), x)
        back, = pull(y)
        assert y.sharding == target() and back.sharding == x.sharding
        turned, moved = jax.jvp(lambda x, target=target: jax.device_put(x, target()), (x,), (x,))
        assert turned.sharding == moved.sharding == target()


@pytest.mark.skipif(ON_JAX, reason="JAX on CPU moves nothing inside of programs")
def test_a_cotangent_goes_back_to_where_the_argument_of_a_program_lay():
    def loss(x, w):
        return jnp.sum(jax.device_put(x, on(None, "model")) ** 2) + jnp.sum(jax.device_put(w, on("model")) ** 2)
    grad = jax.jit(jax.grad(loss, (0, 1)))
    for places in (on("data"), on("model")), (on("data", "model"), on()), (on("model"), on(None, "model")):
        x, w = (jax.device_put(A, place) for place in places)
        for got, place in zip(grad(x, w), places):
            whole(got, 2 * A)
            assert got.sharding.is_equivalent_to(place, 2)
        second = jax.jit(jax.grad(lambda x, w=w: jnp.sum(jax.grad(loss)(x, w) ** 2)))(x)
        np.testing.assert_array_equal(second, 8 * A)
    for f in (jax.vmap(jax.grad(lambda x: jnp.sum(jax.device_put(x, on("model")) ** 2))), jax.grad(
            lambda x: jnp.sum(jax.vmap(lambda row: jax.device_put(row, on("model")) ** 2)(x)))):
        np.testing.assert_array_equal(jax.jit(f)(jax.device_put(A, on("data"))), 2 * A)


def test_the_second_derivative_through_two_places():
    x = on_device(np.float32(2), 1)
    cube = lambda x: jax.device_put(x, devices()[2]) ** 3
    for f, want in (jax.grad(cube), 12.), (jax.grad(jax.grad(cube)), 12.), (jax.grad(jax.grad(jax.grad(cube))), 6.):
        assert f(x) == want and f(x).devices() == {devices()[1]}
        # the third derivative is a constant: a compiled program makes it on the default device, as JAX's
        assert jax.jit(f)(x) == want and jax.jit(f)(x).devices() == {devices()[want == 12.]}
    mapped = jax.vmap(jax.grad(cube))(on_device(np.float32([1, 2]), 1))
    np.testing.assert_array_equal(mapped, [3, 12])


def test_put_where_it_is_keeps_the_sharding():
    x = put(A, "data")
    for y in (jax.device_put(x, on("data")), jax.device_put(x)):
        whole(y, A)
        assert y.sharding == on("data") and y.committed


@pytest.mark.parametrize("dtype", [
    "float32", "float16", "bfloat16", "bool", "complex64", "int8", "uint8", "int16", "uint32",
    "int4", "uint4", "float8_e4m3fn"])
def test_every_dtype_is_split_and_put_together(dtype):
    values = counting((8, 2)).astype(jnp.dtype(dtype))
    x = put(values, "data", "model")
    whole(x, values)
    assert x.dtype == jnp.dtype(dtype) and x.addressable_shards[0].data.shape == (2, 1)
    back = jax.device_put(x, devices()[2])
    assert np.array_equal(np.asarray(back), values)


@pytest.mark.parametrize("value, dtype, weak", [
    (3.0, "float32", True), (3, "int32", True), (True, "bool", False), (1j, "complex64", True),
    (np.float32(2), "float32", False), (np.float64(2), "float32", False),
    (np.int64(2), "int32", False)])
def test_scalars_go_to_every_device(value, dtype, weak):
    x = put(value)
    whole(x, np.asarray(value, dtype))
    assert x.is_fully_replicated and len(x.addressable_shards) == 8
    assert (x + np.int8(0)).dtype == (jnp.asarray(value) + np.int8(0)).dtype
    assert x.aval.weak_type == weak if dtype != "bool" else True


@pytest.mark.parametrize("shape, tile", [((0, 4), (0, 4)), ((8, 0), (2, 0)), ((0, 0), (0, 0))])
def test_arrays_without_elements_have_shards_without_elements(shape, tile):
    x = put(np.zeros(shape, np.float32), "data")
    whole(x, np.zeros(shape, np.float32))
    assert [s.data.shape for s in x.addressable_shards] == [tile] * 8
    whole(x + 1, np.zeros(shape, np.float32))


def test_random_keys_are_placed_like_arrays():
    keys = jax.random.split(jax.random.key(3), 8)
    placed = put(keys, "data")
    assert placed.dtype == keys.dtype and placed.committed and placed.devices() == set(devices())
    assert lies(placed, "data") and placed.shape == (8,)
    assert [s.data.shape for s in placed.addressable_shards] == [(2,)] * 8
    np.testing.assert_array_equal(jax.random.key_data(placed), jax.random.key_data(keys))
    draw = jax.vmap(jax.random.uniform)
    np.testing.assert_array_equal(draw(placed), draw(keys))
    with pytest.raises(ValueError, match=UNEVEN):
        put(jax.random.split(jax.random.key(3), 6), "data")


@pytest.mark.skipif(ON_JAX, reason="JAX has none any more")
@pytest.mark.parametrize("rows", [8, 4, 2, 1])
def test_one_positional_sharding_serves_a_layer_of_any_rank(rows):
    """A bias lies as the columns of its weights do; `replicate` fits everything."""
    grid = PositionalSharding(devices()).reshape(rows, 8 // rows)
    layer = {"w": counting((16, 8)), "b": counting((8,)), "keys": jax.random.split(jax.random.key(3), 8)}
    put = jax.device_put(layer, grid.replicate(0))
    for name, parts in ("w", (16, rows)), ("b", (rows,)):
        whole(put[name], layer[name])
        assert {s.data.shape for s in put[name].addressable_shards} == {parts}
    assert {s.data.shape for s in put["keys"].addressable_shards} == {(rows,)}
    np.testing.assert_array_equal(jax.random.key_data(put["keys"]), jax.random.key_data(layer["keys"]))
    x = jax.device_put(counting((8, 16)), grid.replicate(1))
    want = counting((8, 16)) @ layer["w"] + layer["b"]
    for f in (lambda x, w, b: x @ w + b, jax.jit(lambda x, w, b: x @ w + b),
              jax.jit(lambda x, w, b: x @ w + jax.lax.with_sharding_constraint(b, grid.replicate(0)))):
        whole(f(x, put["w"], put["b"]), want)
    for value in (np.float32(3), layer["b"], layer["w"], counting((2, 3, 4))):
        whole(jax.device_put(value, grid.replicate()), value)


@pytest.mark.skipif(ON_JAX, reason="JAX has no PositionalSharding any more")
def test_keys_and_their_words_lie_alike():
    keys = jax.random.split(jax.random.key(3), 8)
    words = np.asarray(jax.random.key_data(keys))
    tiles = PositionalSharding(devices())
    for place in (on("data"), on(("data", "model")), on(), tiles, tiles.reshape(4, 2).replicate(0), tiles.replicate()):
        placed = jax.device_put(keys, place)
        np.testing.assert_array_equal(jax.random.key_data(placed), words)
        assert jax.random.key_data(placed).sharding.shard_shape((8, 2)) == (*place.shard_shape((8,)), 2)
        assert jax.random.wrap_key_data(jax.random.key_data(placed)).sharding.shard_shape((8,)) == place.shard_shape((8,))
    for place in (on("data", "model"), on(None, "model"), tiles.reshape(4, 2), on("data")):     # may split a key in two
        made = jax.random.wrap_key_data(jax.device_put(words, place))
        assert {s.data.shape[0] for s in made.addressable_shards} == {place.shard_shape((8, 2))[0]}
        np.testing.assert_array_equal(jax.random.key_data(made), words)
        assert jax.random.uniform(made[5]) == jax.random.uniform(keys[5])


def test_a_tree_of_shardings_may_be_a_prefix_of_the_values():
    tree = {"w": A, "b": (A[0], [A, A])}
    one = jax.device_put(tree, on())
    assert all(lies(x) for x in jax.tree.leaves(one))
    put_so = jax.device_put(tree, {"w": on("data"), "b": (on(), on(None, "model"))})
    assert lies(put_so["w"], "data") and lies(put_so["b"][0])
    assert lies(put_so["b"][1][0], None, "model") and lies(put_so["b"][1][1], None, "model")
    jax.tree.map(whole, put_so, tree)


def test_none_in_a_tree_of_shardings_leaves_the_value_uncommitted():
    where = {"a": None, "b": devices()[2], "c": on("data")}
    put_so = jax.device_put({"a": A, "b": A, "c": A}, where)
    assert not put_so["a"].committed and put_so["b"].devices() == {devices()[2]}
    assert lies(put_so["c"], "data")


@pytest.mark.parametrize("value, where, error, text", [
    (A[:6], lambda: on("data"), ValueError, UNEVEN),
    (A[:6], lambda: on(("data", "model")), ValueError, r"(?s)(?=.*\b6\b)(?=.*\b8\b)"),
    (A[:, :3], lambda: on(None, "model"), ValueError, r"(?s)(?=.*(axis|dimension) 1)(?=.*\b3\b)"),
    (A[0], lambda: on(None, "data"), ValueError, r"(?s)rank.*\b2\b.*rank.*1"),
    (3.0, lambda: on("data"), ValueError, r"(?s)rank.*\b1\b.*rank.*0"),
    ((A, A), lambda: (on(),), ValueError, "(?s)device.*prefix"),
    ({"a": A}, lambda: {"b": on()}, ValueError, "(?s)device.*prefix"),
    (A, lambda: "cpu:1", (TypeError, ValueError), r"cpu:1.*jax.devices\('cpu'\)\[0\]"),
    (A, lambda: 3, (TypeError, ValueError), "3"),
    (A, lambda: P("data"), (RuntimeError, ValueError), "(?s)mesh"),
    (A, lambda: on("zzz"), ValueError, "(?s)zzz.*mesh"),
])
def test_wrong_places_are_refused(value, where, error, text):
    with pytest.raises(error, match=text):
        jax.device_put(value, where())


def test_a_bare_spec_is_placed_over_the_mesh_in_force():
    with jax.set_mesh(grid()):
        x = jax.device_put(A, P("data"))
    whole(x, A)
    assert lies(x, "data")


@pytest.mark.parametrize("source, target", [
    (lambda: jnp.asarray(A) * 1, lambda: on("data")),
    (lambda: on_device(A, 0), lambda: one(1)),
    (lambda: put(A, "data"), lambda: on(None, "model")),
    (lambda: put(A, "data"), lambda: one(7)),
])
def test_a_donated_source_is_given_up(source, target):
    x = source()
    y = jax.device_put(x, target(), donate=True)
    whole(y, A)
    assert y.sharding == target()
    if not ON_JAX:  # where buffers cannot be reused, as on CPUs, JAX leaves the source as it was
        assert x.is_deleted()
        with pytest.raises(RuntimeError, match=DELETED):
            np.asarray(x)


def test_donating_where_nothing_moves_keeps_the_result():
    x = put(A, "data")
    whole(jax.device_put(x, on("data"), donate=True), A)
    whole(jax.device_put(A, on("data"), donate=True), A)


def test_device_get_gives_numpy_arrays():
    got = jax.device_get({"a": put(A, "data", "model"), "b": [put(A), 3.0]})
    assert type(got["a"]) is type(got["b"][0]) is np.ndarray
    np.testing.assert_array_equal(got["a"], A)


# --- committed or not, and mixtures ---


@pytest.mark.parametrize("make, committed", [
    (lambda: jnp.arange(3), False), (lambda: jnp.asarray(A), False),
    (lambda: jax.device_put(A), False),
    (lambda: jnp.arange(3) + 1, False), (lambda: jax.jit(jnp.sin)(A), False),
    (lambda: on_device(A, 0), True), (lambda: put(A), True), (lambda: put(A, "data") + 1, True),
    (lambda: on_device(A, 3) + jnp.ones(4), True),
    (lambda: put(A, "data").addressable_data(2), True),
    (lambda: jnp.zeros(8, device=devices()[2]), True),
    (lambda: jnp.ones(8, device=on("data")), True),
])
def test_what_the_user_placed_is_committed(make, committed):
    assert make().committed is committed


def test_arrays_are_created_where_device_says():
    for x in (jnp.zeros((8, 4), device=on("data")), jnp.full((8, 4), 2, device=on("data")),
              jnp.asarray(A, device=on("data")), jnp.ones((8, 4), device=on("data"))):
        assert lies(x, "data") and x.committed
    assert jnp.array(A, device=devices()[5]).devices() == {devices()[5]}


def test_results_follow_the_committed_operand():
    x, on3 = put(A, "data", "model"), on_device(A, 3)
    for y in (x + jnp.asarray(A), jnp.asarray(A) + x, x + A, x + 1,
              jnp.where(jnp.asarray(A) > 3, x, 0)):
        assert y.devices() == set(devices()) and y.committed
    for y in (on3 + jnp.ones(4), on3 + np.ones(4), 1 + on3, jax.jit(jnp.add)(jnp.asarray(A), on3)):
        assert y.devices() == {devices()[3]} and y.committed
    whole(x + jnp.asarray(A), 2 * A)


def test_default_device_is_for_what_nothing_else_places():
    with jax.default_device(devices()[3]):
        x = jnp.arange(4.0)
        assert x.devices() == (x + jnp.ones(4)).devices() == {devices()[3]} and not x.committed
        assert (x + on_device(A, 1)).devices() == {devices()[1]}
        assert (x + put(A, "data")).devices() == set(devices())


@pytest.mark.parametrize("a, b", [
    (lambda: on_device(A, 0), lambda: on_device(A, 1)),
    (lambda: put(A, "data"), lambda: on_device(A, 1)),
    (lambda: on_device(A, 0), lambda: put(A)),
    (lambda: put(A, "x", mesh=low), lambda: put(A, "x", mesh=high)),
    (lambda: put(A, "data"), lambda: put(A, "x", mesh=low)),
    (lambda: put(A, "x", mesh=line), lambda: put(A, "x", mesh=backwards)),
])
@pytest.mark.parametrize("use", [
    lambda a, b: a + b,
    lambda a, b: jnp.where(a > 0, b, 0),
    lambda a, b: jnp.concatenate([a, b]),
    lambda a, b: jax.jit(lambda x, y: x * y)(a, b),
    lambda a, b: jax.grad(lambda x: (x * b).sum())(a),
])
def test_arrays_committed_to_different_devices_do_not_mix(a, b, use):
    with pytest.raises(ValueError, match=MIXED):
        use(a(), b())


def test_two_meshes_of_the_same_devices_in_order_mix():
    whole(put(A, "data", "model") + put(A, "x", mesh=line), 2 * A)


# --- what an array says of itself ---


def test_attributes_of_a_sharded_array():
    x = put(A, "data", "model")
    assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((8, 4), 2, 32, 128, 8)
    assert x.dtype == np.float32
    assert x.sharding == on("data", "model") and x.sharding.spec == P("data", "model")
    assert x.sharding.mesh == grid() and isinstance(x, jax.Array)
    assert x.is_fully_addressable and not x.is_fully_replicated and x.committed
    assert put(A).is_fully_replicated and not put(A, "data").is_fully_replicated
    assert on_device(A, 0).is_fully_replicated
    assert x.block_until_ready() is x and not x.is_deleted()


def test_shards_are_listed_in_the_order_of_the_mesh():
    x = put(A, "x", mesh=backwards)
    assert [s.device for s in x.addressable_shards] == devices()[::-1]
    for mine, any_ in zip(x.addressable_shards, x.global_shards):
        assert (mine.device, mine.index) == (any_.device, any_.index)
        assert mine.replica_id == any_.replica_id
        np.testing.assert_array_equal(mine.data, any_.data)
    for k in range(8):
        y = x.addressable_data(k)
        assert y.devices() == {devices()[7 - k]} and y.committed
        np.testing.assert_array_equal(y, A[k:k + 1])
    with pytest.raises(IndexError):
        x.addressable_data(8)


def test_an_array_on_one_device_has_one_shard():
    shard, = jnp.asarray(A).addressable_shards
    assert shard.replica_id == 0 and shard.index == (slice(None), slice(None))
    np.testing.assert_array_equal(shard.data, A)


@pytest.mark.parametrize("place", PLACES)
def test_values_are_read_wherever_they_lie(place):
    x = jax.device_put(A, PLACES[place]())
    assert repr(x) == repr(jnp.asarray(A)) and str(x) == str(A)
    assert x.tolist() == A.tolist() and x[3, 2].item() == 14.0 and x.item(5) == 5.0
    assert [row.tolist() for row in x] == A.tolist()
    assert np.array(x).flags.writeable and not np.asarray(x).flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="size 1|one element"):
        x.item()


def test_replicated_scalars_are_python_scalars():
    assert float(put(np.float32(3))) == put(3.0).item() == 3.0
    assert int(put(3)) == 3 and bool(put(True)) and not put(False) and list(range(4))[put(2)] == 2
    assert f"{put(np.float32(0.5)):.2f}" == "0.50"


@pytest.mark.parametrize("index", [
    0, -1, (3, 2), slice(None, 3), (slice(1, 7, 2), 1), (slice(None), -1), slice(None, None, -1),
    (..., None, 0), np.array([5, 0, 5]), A[:, 0] > 9, (np.array([1, 2]), np.array([3, 0]))])
def test_indexing_a_sharded_array(index):
    x = put(A, "data", "model")
    y = x[index]
    whole(y, A[index])
    assert y.committed and y.devices() == set(devices())


@pytest.mark.parametrize("twin", [
    copy.copy, copy.deepcopy, lambda x: x.copy(), jnp.array, jnp.copy])
def test_copies_lie_where_the_original_does(twin):
    x = put(A, "data", "model")
    y = twin(x)
    whole(y, A)
    assert y.sharding == x.sharding


def test_pickled_arrays_come_back_with_their_values():
    # Where they come back is not promised: the devices of the reader may be others.
    for x in (put(A, "data"), put(counting((8,), jnp.bfloat16), "data")):
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == x.dtype and np.array_equal(np.asarray(y), np.asarray(x))
        assert (y + jnp.ones((), y.dtype)).shape == x.shape


# --- deleted arrays ---


@pytest.mark.parametrize("use", [
    np.asarray, lambda x: x.tolist(), lambda x: x[0], lambda x: x + 1, jnp.sin, jnp.sum,
    lambda x: jax.jit(lambda y: y + 1)(x), lambda x: jnp.concatenate([x, x]),
    lambda x: jax.grad(lambda y: (y * y).sum())(x), lambda x: jax.vmap(jnp.sum)(x),
    lambda x: jax.device_put(x, on()), lambda x: jax.device_put(x, on(None, "model")),
    lambda x: jax.device_put(x, devices()[0]), lambda x: x.addressable_shards[0].data,
    lambda x: x.block_until_ready(), pickle.dumps, lambda x: list(x), jax.device_get,
    lambda x: jax.lax.with_sharding_constraint(x, on()), lambda x: copy.deepcopy(x)])
def test_a_deleted_array_is_refused_by_name(use):
    x = put(counting((8, 12)), "data")  # a shape of its own: JAX 0.10 crashes in programs that ran
    x.delete()
    with pytest.raises(RuntimeError, match=DELETED):
        use(x)


def test_a_deleted_array_still_says_what_it_was():
    x = put(A, "data")
    y, shard = x + 0, x.addressable_shards[0].data
    x.delete()
    x.delete()
    assert x.is_deleted() and x.shape == (8, 4) and x.dtype == np.float32
    assert x.sharding == on("data") and x.committed
    whole(y, A)
    assert shard.shape == (2, 4)


# --- operations outside jit ---

W = counting((4, 6)) - 8

OPERATIONS = {
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1,
    "compare": lambda x: x > 7,
    "divide": lambda x: x / 4,
    "sum": lambda x: x.sum(),
    "sum of columns": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1),
    "largest": lambda x: x.max(),
    "argmax": lambda x: x.argmax(0),
    "matmul": lambda x: x @ W,
    "matmul with itself": lambda x: x.T @ x,
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(4, 8),
    "ravel": lambda x: x.ravel(),
    "where": lambda x: jnp.where(x > 7, x, 0),
    "sort": lambda x: jnp.sort(-x, axis=0),
    "argsort": lambda x: jnp.argsort(-x, axis=1),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "concatenate": lambda x: jnp.concatenate([x, x[:3]]),
    "stack": lambda x: jnp.stack([x, x + 1], axis=1),
    "flip": lambda x: x[::-1],
    "roll": lambda x: jnp.roll(x, 3, axis=0),
    "pad": lambda x: jnp.pad(x, ((1, 2), (0, 1))),
    "take": lambda x: jnp.take(x, np.array([7, 0, 7]), axis=0),
    "set a row": lambda x: x.at[3].set(-1.0),
    "add to rows": lambda x: x.at[np.array([0, 0, 5])].add(1.0),
    "broadcast": lambda x: jnp.broadcast_to(x, (3, 8, 4)),
    "cast": lambda x: x.astype(jnp.int32),
    "zeros like": lambda x: jnp.zeros_like(x),
    "clip": lambda x: jnp.clip(x, 3, 9),
    "one row": lambda x: x[0],
    "grad": jax.grad(lambda x: (x * x).sum()),
    "vmap": jax.vmap(lambda row: row * row.sum()),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_shards_gives_the_values_of_the_whole(name):
    operation = OPERATIONS[name]
    want = np.asarray(operation(jnp.asarray(A)))
    for x in (put(A, "data", "model"), put(A, "x", mesh=high)):
        got = operation(x)
        whole(got, want)
        assert got.committed and got.devices() == x.devices()


@pytest.mark.parametrize("spec", [
    P("data"), P("data", "model"), P(None, "model"), P(("data", "model")), P()])
def test_elementwise_operations_keep_the_sharding(spec):
    x = jax.device_put(A, NamedSharding(grid(), spec))
    for y in (x + x, jnp.sin(x), x * 2, -x, jnp.where(x > 3, x, 0), x.astype(jnp.int32),
              jnp.zeros_like(x)):
        assert y.sharding.is_equivalent_to(x.sharding, 2)
        assert isinstance(y.sharding, NamedSharding) and y.sharding.mesh == grid()


@pytest.mark.parametrize("operation, spec", [
    (lambda x: x.T, P("model", "data")),
    (lambda x: x @ put(W, None, "model"), P("data", "model")),
    (lambda x: x.sum(), P()),
    (lambda x: x.sum(0), P("model")),
    (lambda x: x.max(1), P("data")),
])
def test_results_lie_as_their_operands_do(operation, spec):
    x = put(A, "data") if spec == P("data", "model") else put(A, "data", "model")
    y = operation(x)
    assert y.sharding.is_equivalent_to(NamedSharding(grid(), spec), y.ndim)


def test_a_mesh_of_one_device_is_a_mesh():
    mesh = Mesh(np.array(devices()[2:3]), ("x",))
    x = jax.device_put(A, NamedSharding(mesh, P("x")))
    whole(x * 2, A * 2)
    assert (x * 2).devices() == {devices()[2]}
    whole(x + on_device(A, 2), 2 * A)


def test_entries_of_a_spec_that_split_nothing_may_be_more_than_there_are_dimensions():
    """Arrays may be made so; what moves an array or runs a program wants the rank of the spec, as in JAX."""
    mesh = auto_mesh((2, 4), ("x", "y"))
    s = NamedSharding(mesh, P(None, None))
    x = jax.make_array_from_callback((), s, lambda index: np.float32(3))
    assert (x.sharding, s.shard_shape(()), set(s.devices_indices_map(()).values())) == (s, (), {()})
    for y in x + 1, jax.jit(lambda x: x + 1)(x):
        assert y == 4 and len(y.addressable_shards) == 8
    for f in (lambda: jax.jit(lambda x: x + 1, in_shardings=s)(x), lambda: jax.jit(lambda x: x, out_shardings=s)(4.0),
              lambda: jax.device_put(4.0, s), lambda: jax.lax.with_sharding_constraint(x, s)):
        with pytest.raises(ValueError, match="is incompatible with its sharding annotation.*rank at least 2"):
            f()
    with pytest.raises(ValueError, match="rank at least 1"):
        jax.make_array_from_callback((), NamedSharding(mesh, P("x")), lambda index: np.float32(3))


@pytest.mark.parametrize("use", [
    np.asarray, str, repr, pickle.dumps, copy.copy, jnp.sum, lambda x: x + 1, lambda x: x[3], lambda x: x.tolist(),
    lambda x: x.block_until_ready(), lambda x: jax.jit(lambda v: v * 2)(x), lambda x: jax.grad(lambda v: (v ** 2).sum())(x),
    lambda x: jax.lax.scan(lambda c, v: (c, v), 0, x), lambda x: jax.device_put(x, one(0)), lambda x: jax.device_put(x, on()),
    lambda x: np.asarray(x.addressable_shards[1].data)])
def test_an_array_that_has_lost_a_part_is_not_read(use):
    x = jax.device_put(np.arange(8, dtype=np.float32), on("x", mesh=line))
    x.addressable_shards[1].data.delete()
    with pytest.raises(RuntimeError, match="has lost a part|deleted"):
        use(x)
