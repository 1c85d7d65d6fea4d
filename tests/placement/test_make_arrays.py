"""Arrays over several devices made of parts: each device holds its slice of the NumPy array that they are cut
from."""
import numpy as np
import pytest
from mesh8 import auto_mesh

import hlotrace as jax
from hlotrace.sharding import NamedSharding, P, SingleDeviceSharding

pytestmark = pytest.mark.quick
MESH = auto_mesh((4, 2), ("a", "b"))
WHOLE = np.arange(64.0, dtype=np.float32).reshape(8, 8)
ROWS = NamedSharding(MESH, P("a"))
# a sharding, and how many different parts it cuts an array of two dimensions into
SHARDINGS = [(NamedSharding(MESH, P("a", "b")), 8), (NamedSharding(MESH, P("b")), 2),
             (NamedSharding(MESH, P(None, ("b", "a"))), 8),
             (ROWS, 4), (NamedSharding(MESH, P()), 1), (SingleDeviceSharding(jax.devices()[3]), 1)]


def is_whole(x, sharding):
    assert x.shape == WHOLE.shape and x.sharding == sharding and np.array_equal(x, WHOLE)
    assert {shard.device for shard in x.addressable_shards} == sharding.device_set
    for shard in x.addressable_shards:
        assert np.array_equal(shard.data, WHOLE[shard.index])


@pytest.mark.parametrize("sharding, parts", SHARDINGS)
def test_a_callback_is_asked_once_for_each_part(sharding, parts):
    asked = []

    def part(index):
        asked.append(index)
        return WHOLE[index]
    is_whole(jax.make_array_from_callback(WHOLE.shape, sharding, part), sharding)
    assert len(asked) == len(set(map(str, asked))) == parts


@pytest.mark.parametrize("sharding, parts", SHARDINGS)
def test_arrays_on_one_device_each_are_joined_in_any_order_and_not_copied(sharding, parts):
    places = sharding.devices_indices_map(WHOLE.shape)
    pieces = [jax.device_put(WHOLE[index], device) for device, index in reversed(places.items())]
    made = jax.make_array_from_single_device_arrays(WHOLE.shape, sharding, pieces)
    is_whole(made, sharding)
    where = {piece.device: piece.unsafe_buffer_pointer() for piece in pieces}
    assert {shard.device: shard.data.unsafe_buffer_pointer() for shard in made.addressable_shards} == where


@pytest.mark.parametrize("sharding, parts", SHARDINGS)
def test_what_one_process_holds_is_the_whole(sharding, parts):
    is_whole(jax.make_array_from_process_local_data(sharding, WHOLE), sharding)
    tree = jax.make_array_from_process_local_data(sharding, {"x": WHOLE, "y": [WHOLE]},
                                                  {"x": (8, 8), "y": [None]})
    is_whole(tree["x"], sharding)
    is_whole(tree["y"][0], sharding)


def pieces(shape=(2, 8), dtype=np.float32, devices=tuple(MESH.devices.flat)):
    return [jax.device_put(np.zeros(shape, dtype), device) for device in devices]


@pytest.mark.parametrize("make, error, words", [
    (lambda: jax.make_array_from_callback((8, 8), 3, lambda index: WHOLE), TypeError,
     "sharding is a Sharding, got 3"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), jax.devices()[0], [WHOLE]), TypeError,
     "SingleDeviceSharding"),
    (lambda: jax.make_array_from_process_local_data(jax.P("x"), WHOLE), ValueError,
     "NamedSharding\\(mesh, spec\\)"),
    (lambda: jax.make_array_from_callback((8, 8), ROWS, lambda index: WHOLE), ValueError,
     r"must have shape \(2, 8\)"),
    (lambda: jax.make_array_from_callback((8, 8), ROWS, lambda index: WHOLE[index], np.int32), ValueError,
     "dtype int32"),
    (lambda: jax.make_array_from_callback((6, 8), ROWS, lambda index: WHOLE[index]), ValueError,
     "partitioned 4 times"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, pieces()[:3]), ValueError,
     "Expected 8 per-device arrays .* got 3"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, pieces((8, 8))), ValueError,
     r"arrays\[0\] must have shape"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, pieces(devices=jax.devices()[:1] * 8)),
     ValueError,
     "must be from distinct devices"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, [WHOLE] * 8), TypeError,
     "put it on its device"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, pieces()[0]), TypeError,
     "must be a list or tuple"),
    (lambda: jax.make_array_from_single_device_arrays((8, 8), ROWS, []), ValueError, "arrays is empty"),
    (lambda: jax.make_array_from_process_local_data(ROWS, WHOLE, (8,)), ValueError,
     "has 1 dimensions and the local data"),
    (lambda: jax.make_array_from_process_local_data(ROWS, WHOLE, (16, 8)), ValueError,
     "dimension 0 of the local data")])
def test_parts_that_do_not_fit(make, error, words):
    with pytest.raises(error, match=words):
        make()
