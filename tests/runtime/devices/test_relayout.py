"""Arrays under another sharding: each part cut from those there are, over the same memory where nothing moves."""
import itertools

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.runtime.devices import relayout, shards
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

pytestmark = pytest.mark.quick
X = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
# name: (shape of the mesh, are its devices in reverse, entries of the spec)
PLACES = {
    "everywhere": ((2, 4), False, ()), "rows by two": ((2, 4), False, ("x",)), "columns by four": ((2, 4), False, (None, "y")),
    "tiles": ((2, 4), False, ("x", "y")), "tall tiles": ((2, 4), False, ("y", "x")), "rows": ((2, 4), False, (("x", "y"),)),
    "rows in another order": ((2, 4), False, (("y", "x"),)), "rows of the devices reversed": ((8, 1), True, ("x",)),
    "columns of the devices reversed": ((1, 8), True, (None, "y")), "one": None,
}


def sharding(place):
    if PLACES[place] is None:
        return SingleDeviceSharding(jax.devices()[3])
    shape, backwards, spec = PLACES[place]
    devices = np.array(jax.devices())[::-1 if backwards else 1]
    return NamedSharding(Mesh(devices.reshape(shape), ("x", "y")), P(*spec))


def assert_placed(array, wanted):
    """Every device has the part that the sharding says, and the whole is X."""
    assert array.sharding == wanted
    for device, index in wanted.devices_indices_map(X.shape).items():
        part, = [s.data for s in array.addressable_shards if s.device == device]
        np.testing.assert_array_equal(np.asarray(part), X[index])
    np.testing.assert_array_equal(np.asarray(array), X)


@pytest.mark.parametrize("old, new", [*itertools.permutations(PLACES, 2)])
def test_each_device_holds_its_part(old, new):
    array = jax.device_put(X, sharding(old))
    moved = relayout.copy(array, sharding(new))
    assert_placed(moved, sharding(new))
    assert_placed(array, sharding(old))
    assert moved.committed and not relayout.copy(array, sharding(new), False).committed


def test_pieces_that_parts_are_made_of():
    """From halves of the rows to quarters of the columns: two pieces for each quarter, each with its places."""
    sources, targets = relayout._route(sharding("rows by two"), sharding("columns by four"), X.shape)
    assert len(sources) == 2 and [len(pieces) for pieces, _ in targets] == [2] * 4
    for quarter, (pieces, devices) in enumerate(targets):
        columns = slice(2 * quarter, 2 * quarter + 2)
        assert pieces == [(half, (slice(0, 8), columns), (slice(8 * half, 8 * half + 8), slice(0, 2))) for half in (0, 1)]
        assert len(devices) == 2
    _, targets = relayout._route(sharding("rows by two"), sharding("tiles"), X.shape)
    assert all(len(pieces) == 1 and pieces[0][2] is None for pieces, _ in targets)      # a part of one


def test_an_equivalent_sharding_is_over_the_same_memory():
    array = jax.device_put(X, sharding("rows by two"))
    assert relayout.in_place(array, array.sharding)._buf is array._buf
    mesh = array.sharding.mesh
    other = NamedSharding(mesh, P("x", None))
    again = relayout.in_place(array, other)
    assert again.sharding is other and shards.memory(again._buf) is shards.memory(array._buf)
    assert relayout.in_place(array, sharding("tiles")) is None
    array.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        relayout.in_place(array, other)


def test_what_does_not_divide_is_refused():
    array = jax.device_put(X[:3], sharding("everywhere"))
    with pytest.raises(ValueError, match="3"):
        relayout.copy(array, sharding("rows by two"))
