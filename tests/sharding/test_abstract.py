"""What every sharding says: the part of each device, its memory, whether it is another one; values are JAX's.
"""
import numpy as np
import pytest
from stand_ins import DEVICES, MESH, REVERSED, Device, U, grid, raises

import hlotrace as jax
from hlotrace.sharding import AbstractMesh, Mesh, NamedSharding, P, PositionalSharding, SingleDeviceSharding

pytestmark = pytest.mark.quick


def ranges(index):
    """Slices as tuples (start, stop), a whole dimension as None."""
    return tuple(None if s == slice(None) else (s.start, s.stop) for s in index)


@pytest.mark.parametrize(("sharding", "shape", "part", "where"), [
    (NamedSharding(MESH, P("data")), (8, 4), (2, 4),
     {i: ((2 * (i // 2), 2 * (i // 2) + 2), None) for i in range(8)}),
    (NamedSharding(MESH, P(None, "model")), (8, 4), (8, 2),
     {i: (None, (2 * (i % 2), 2 * (i % 2) + 2)) for i in range(8)}),
    (NamedSharding(MESH, P("model", "data")), (8, 4), (4, 1),
     {i: ((4 * (i % 2), 4 * (i % 2) + 4), (i // 2, i // 2 + 1)) for i in range(8)}),
    (NamedSharding(MESH, P(("data", "model"))), (8, 4), (1, 4), {i: ((i, i + 1), None) for i in range(8)}),
    (NamedSharding(MESH, P(("model", "data"))), (8, 4), (1, 4),
     {i: ((r, r + 1), None) for i, r in enumerate((0, 4, 1, 5, 2, 6, 3, 7))}),
    (NamedSharding(MESH, P(U, "data")), (8, 4), (8, 1), {i: (None, (i // 2, i // 2 + 1)) for i in range(8)}),
    (NamedSharding(MESH, P()), (8, 4), (8, 4), {i: (None, None) for i in range(8)}),
    (NamedSharding(MESH, P()), (), (), {i: () for i in range(8)}),
    (NamedSharding(MESH, P("data")), (0, 4), (0, 4), {i: ((0, 0), None) for i in range(8)}),
    (NamedSharding(REVERSED, P("b")), (8,), (2,),
     {7: ((0, 2),), 6: ((2, 4),), 5: ((4, 6),), 4: ((6, 8),), 3: ((0, 2),), 2: ((2, 4),), 1: ((4, 6),),
      0: ((6, 8),)}),
    (SingleDeviceSharding(DEVICES[3]), (3, 2), (3, 2), {3: (None, None)}),
    (grid.reshape(4, 2), (8, 4), (2, 2),
     {i: ((2 * (i // 2), 2 * (i // 2) + 2), (2 * (i % 2), 2 * (i % 2) + 2)) for i in range(8)}),
    (grid.reshape(4, 2).T, (8, 4), (4, 1),
     {i: ((4 * (i % 2), 4 * (i % 2) + 4), (i // 2, i // 2 + 1)) for i in range(8)}),
    (grid.reshape(4, 2).replicate(1), (8, 4), (2, 4),
     {i: ((2 * (i // 2), 2 * (i // 2) + 2), None) for i in range(8)}),
    (grid.reshape(4, 2).replicate(0, keepdims=False), (8,), (4,),
     {i: ((4 * (i % 2), 4 * (i % 2) + 4),) for i in range(8)}),
    (grid.replicate(keepdims=False), (), (), {i: () for i in range(8)}),
    # lower rank takes the trailing axes
    (grid.reshape(4, 2).replicate(0), (8,), (4,), {i: ((4 * (i % 2), 4 * (i % 2) + 4),) for i in range(8)}),
    (grid.reshape(1, 2, 4), (4, 8), (2, 2),
     {i: ((2 * (i // 4), 2 * (i // 4) + 2), (2 * (i % 4), 2 * (i % 4) + 2)) for i in range(8)}),
    (grid.reshape(1, 1, 8), (8,), (1,), {i: ((i, i + 1),) for i in range(8)}),
    (grid.reshape(4, 2).replicate(), (8,), (8,), {i: (None,) for i in range(8)}),
    (grid.replicate(), (), (), {i: () for i in range(8)}),
    (grid.replicate(), (3, 2, 2), (3, 2, 2), {i: (None,) * 3 for i in range(8)}),
    (PositionalSharding(DEVICES[3:4]), (), (), {3: ()}),
], ids=str)
def test_index_map_and_shard_shape(sharding, shape, part, where):
    assert sharding.shard_shape(shape) == part
    found = sharding.devices_indices_map(shape)
    assert {device.id: ranges(index) for device, index in found.items()} == where
    assert sharding.addressable_devices_indices_map(shape) == found
    assert {device.id for device in sharding.device_set} == where.keys() and sharding.num_devices == len(
        where)
    assert sharding.is_fully_replicated == (part == shape and sharding.is_fully_replicated)
    for index in found.values():      # the parts are what the slices cut out
        assert np.empty(shape)[index].shape == part


@pytest.mark.parametrize(("sharding", "shape", "text"), [
    (NamedSharding(MESH, P("data")), (10, 4),
     "array axis 0 is partitioned 4 times, but the dimension size is 10 (full shape: (10, 4), "
     "per-dimension tiling factors: [4, 1] should evenly divide the shape): it is split over mesh axis 'data' (4). Pad it to 12"),
    (NamedSharding(MESH, P(None, ("data", "model"))), (4, 20),
     "axis 1 is partitioned 8 times, but the dimension "
     "size is 20 (full shape: (4, 20), per-dimension tiling factors: [1, 8] should evenly divide the shape): it is split over mesh axes 'data' (4) x 'model' (2). Pad it to 24"),
    (grid.reshape(4, 2), (8, 3), "tiling factors: [4, 2] should evenly divide the shape): it is split over "
     "axis 1 of the devices"),
    (NamedSharding(MESH, P("data", None, "model")), (4, 4),
     "rank at least 3, but was applied to a value of rank"),
    (grid.reshape(4, 2), (8,),
     "is for arrays of rank 2; an array of rank 1 takes the trailing axes, and the leading ones, "
     "of shape (4,), would split axes that it does not have. Make copies along them: replicate((0,))."),
    (grid.reshape(1, 4, 2), (8,), "Make copies along them: replicate((0, 1))."),
    (grid.reshape(4, 2), (), "takes the trailing axes"),
    (grid, (8, 4), "is for arrays of rank 1 or less; the array has rank 2. Use reshape"),
    (grid.reshape(1, 8), (8, 8, 8), "is for arrays of rank 2 or less; the array has rank 3"),
])
@pytest.mark.parametrize("method", ["shard_shape", "devices_indices_map"])
def test_a_shape_that_does_not_fit_is_refused_in_words(sharding, shape, text, method):
    with raises(ValueError, text):
        getattr(sharding, method)(shape)


def shardings_with(kind):
    """One of each kind of sharding over the devices that there are, with this kind of memory."""
    here = jax.devices()
    positional = PositionalSharding(here, memory_kind=kind)
    return [NamedSharding(Mesh(here, "x"), P("x"), kind), positional.reshape(8, 1),
            positional.reshape(2, 4).replicate(0).T,
            SingleDeviceSharding(here[-1], memory_kind=kind)]


def test_the_memory_of_a_sharding_is_the_devices_own_unless_told():
    default = jax.devices()[0].default_memory().kind
    for plain, said, pinned in zip(*map(shardings_with, (None, default, "pinned_host"))):
        assert plain.memory_kind == said.memory_kind == default and pinned.memory_kind == "pinned_host"
        assert plain == said and hash(plain) == hash(said) and plain.is_equivalent_to(
            said, 2) and plain.same_placement(said, 2)
        assert plain != pinned and not plain.is_equivalent_to(pinned, 2) and not plain.same_placement(
            pinned, 2)
        assert plain.with_memory_kind("pinned_host") == pinned and pinned.with_memory_kind(default) == plain
        assert str(plain) == str(said) and "memory_kind=pinned_host" in str(pinned)
    assert jax.numpy.ones(3).sharding.memory_kind == default
    assert NamedSharding(AbstractMesh((8,), "x"), P("x")).memory_kind is None


def test_unknown_kinds_of_memory_are_refused_at_once():
    here = jax.devices()
    for make in (lambda: NamedSharding(Mesh(here, "x"), P("x"), "nope"),
                 lambda: PositionalSharding(here, memory_kind="nope"),
                 lambda: SingleDeviceSharding(here[3], memory_kind="nope"),
                 lambda: NamedSharding(AbstractMesh((8,), "x"), P(), "nope"),
                 *[lambda plain=plain: plain.with_memory_kind("nope") for plain in shardings_with(None)]):
        with raises(ValueError, "Got memory kind: nope; None is the default"):
            make()
    with raises(
        ValueError,
        "Device cpu can address the following memory kinds: device, pinned_host, unpinned_host. Got memory"):
        NamedSharding(Mesh(here, "x"), P("x"), "nope")


@pytest.mark.parametrize(("one", "other", "ndim", "same"), [
    (NamedSharding(MESH, P("data")), NamedSharding(MESH, P("data", None)), 2, True),
    (NamedSharding(MESH, P(("data", "model"))), NamedSharding(Mesh(DEVICES, "x"), P("x")), 1, True),
    (NamedSharding(MESH, P()), NamedSharding(Mesh(DEVICES, "x"), P()), 2, True),
    # their programs number devices differently
    (NamedSharding(MESH, P()), NamedSharding(REVERSED, P()), 2, False),
    (NamedSharding(MESH, P("data")), NamedSharding(MESH, P("model")), 2, False),
    (NamedSharding(MESH, P(("model", "data"))), NamedSharding(Mesh(DEVICES, "x"), P("x")), 1, False),
    (NamedSharding(MESH, P("data")), NamedSharding(MESH, P("data"), "pinned_host"), 2, False),
    (NamedSharding(Mesh(DEVICES[:1], "x"), P("x")), SingleDeviceSharding(DEVICES[0]), 2, True),
    (NamedSharding(MESH, P("data", "model")), grid.reshape(4, 2), 2, True),
    (NamedSharding(MESH, P("model", "data")), grid.reshape(4, 2).transpose(1, 0), 2, True),
    (NamedSharding(MESH, P(None, "model")), grid.reshape(4, 2).replicate(0), 2, True),
], ids=str)
def test_equivalence_for_a_rank(one, other, ndim, same):
    assert one.is_equivalent_to(other, ndim) == other.is_equivalent_to(one, ndim) == same
    assert one.is_equivalent_to(one, ndim)


def test_replication():
    assert NamedSharding(MESH, P(None)).is_fully_replicated and not NamedSharding(
        MESH, P("model")).is_fully_replicated
    assert NamedSharding(Mesh([DEVICES], ("x", "y")), P("x")).is_fully_replicated
    assert grid.replicate().is_fully_replicated and not grid.is_fully_replicated
    assert SingleDeviceSharding(DEVICES[0]).is_fully_replicated


def test_devices_of_other_processes_are_not_addressable():
    devices = [Device(i, process_index=i // 2) for i in range(4)]
    sharding = NamedSharding(Mesh(devices, "x"), P("x"))
    assert sharding.mesh.local_devices == devices[:2] and sharding.addressable_devices == set(devices[:2])
    assert sharding.device_set == set(devices) and not sharding.is_fully_addressable
    assert sharding.addressable_devices_indices_map((8,)) == {
        devices[0]: (slice(0, 2),), devices[1]: (slice(2, 4),)}
    assert NamedSharding(MESH, P()).is_fully_addressable
