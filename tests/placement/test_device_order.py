"""Which TPU comes where in a mesh, by stand-ins for devices: rings, whole physical axes, divided ones, blocks
of processes."""
import itertools
import math
import types

import numpy as np
import pytest

import hlotrace as jax
from hlotrace.experimental.mesh_utils import create_device_mesh, create_hybrid_device_mesh
from hlotrace.placement import device_order

pytestmark = pytest.mark.quick


class Device(types.SimpleNamespace):
    __hash__, __eq__ = object.__hash__, object.__eq__


def slice_of(kind, sizes, host=(2, 2, 1), cores=1, first=0, **more):
    """The devices of a slice of TPUs: hosts one after the other, x fastest, and the same in a host."""
    hosts = [n // min(n, h) for n, h in zip(sizes, host)]
    host = [min(n, h) for n, h in zip(sizes, host)]

    def points(limits):
        return [point[::-1] for point in itertools.product(*(range(n) for n in reversed(limits)))]
    places = [(process, tuple(a * n + b for a, b, n in zip(at, inside, host)), core)
              for process, at in enumerate(points(hosts)) for inside in points(host) for core in range(cores)]
    return [Device(id=first + i, process_index=process, coords=coords, core_on_chip=core, platform="tpu",
                                  device_kind=kind, **more)
                                  for i, (process, coords, core) in enumerate(places)]


def ids(mesh):
    return np.vectorize(lambda d: d.id, otypes=[int])(mesh).tolist()


def distance(a, b, sizes, wraps):
    """Links between two chips: 0 for the cores of one."""
    steps = [abs(i - j) for i, j in zip(a.coords, b.coords)]
    return sum(min(step, n - step) if n >= wraps else step for step, n in zip(steps, sizes))


V3_8, V3_16 = slice_of("TPU v3", (2, 2, 1), cores=2), slice_of("TPU v3", (4, 2, 1), cores=2)
TRAY = [0, 1, 2, 3, 6, 7, 4, 5]


@pytest.mark.parametrize("devices, shape, order", [
    (V3_8, (8,), TRAY),
    (V3_8, (2, 4), TRAY),
    (V3_8, (1, 2, 2, 2), TRAY),
    (V3_16, (2, 8), [*TRAY, 8, 9, 10, 11, 14, 15, 12, 13]),
    (V3_16, (4, 4), [*range(16)]),
    (V3_16, (16,), [*range(16)]),
    (V3_16, (8, 2), [*range(16)]),
    (slice_of("TPU v2", (2, 2, 1), cores=2), (8,), TRAY),
])
def test_trays_of_v2_and_v3_are_rings(devices, shape, order):
    assert np.ravel(ids(create_device_mesh(shape, devices))).tolist() == order
    assert ids(jax.make_mesh(shape, tuple("abcd"[:len(shape)]), devices=devices).devices) == ids(
        create_device_mesh(shape, devices))


@pytest.mark.parametrize("kind, sizes, order", [
    ("TPU v5 lite", (4, 2, 1), [0, 1, 2, 3, 7, 6, 5, 4]),
    ("TPU v6 lite", (4, 4, 1), [0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4]),
    ("TPU v5 lite", (2, 2, 1), [0, 1, 3, 2]),
    ("TPU v6 lite", (3, 4, 1), None),
])
@pytest.mark.parametrize("ones", [(0, 0), (1, 0), (0, 2)])
def test_an_axis_of_all_chips_of_a_plane_without_wrapped_axes_is_a_ring(kind, sizes, order, ones):
    devices = slice_of(kind, sizes, host=sizes)
    shape = (1,) * ones[0] + (len(devices),) + (1,) * ones[1]
    mesh = create_device_mesh(shape, devices)
    assert mesh.shape == shape and sorted(ids(mesh.ravel())) == [*range(len(devices))]
    ring = mesh.ravel().tolist()
    assert {distance(a, b, sizes, 99) for a, b in zip(ring, [*ring[1:], ring[0]])} == {1}
    assert order is None or ids(mesh.ravel()) == order


@pytest.mark.parametrize("kind, sizes, cores, shape, order", [
    ("TPU v4", (2, 2, 1), 1, (4,), [0, 2, 1, 3]),
    ("TPU v5p", (2, 2, 1), 1, (1, 4), [0, 2, 1, 3]),
    ("TPU v5p", (2, 2, 2), 1, (2, 4), [0, 1, 3, 2, 6, 7, 5, 4]),
    ("TPU v5p", (2, 2, 2), 1, (2, 2, 2), [0, 1, 3, 2, 6, 7, 5, 4]),
    ("TPU v4 lite", (2, 2, 1), 1, (4,), [0, 1, 3, 2]),
    ("TPU v4 lite", (4, 1, 1), 1, (2, 2), [0, 1, 3, 2]),
    ("TPU v5 lite", (2, 2, 1), 1, (2, 2), [0, 1, 3, 2]),
    ("TPU v5 lite", (4, 2, 1), 1, (2, 2, 2), [0, 1, 2, 3, 7, 6, 5, 4]),
    ("TPU v6 lite", (4, 2, 1), 1, (4, 2), [0, 1, 2, 3, 7, 6, 5, 4]),
    ("TPU v5 lite", (2, 4, 1), 1, (2, 4), [0, 1, 2, 3, 7, 6, 5, 4]),
    ("TPU v2", (4, 2, 1), 1, (2, 4), TRAY),
    ("TPU7x", (2, 2, 1), 2, (4, 2), TRAY),
    ("TPU7x", (2, 2, 2), 2, (4, 4), [*TRAY, *(8 + i for i in TRAY)]),
    ("TPU7x", (4, 1, 1), 2, (4, 2), [0, 1, 2, 3, 4, 5, 6, 7]),
    ("TPU7x", (2, 4, 1), 2, (8, 2), [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]),
    ("TPU7x", (2, 4, 1), 2, (16,), [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]),
])
def test_small_slices_of_each_generation(kind, sizes, cores, shape, order):
    devices = slice_of(kind, sizes, host=sizes, cores=cores)
    place = {(*d.coords, d.core_on_chip): (((d.coords[2] * sizes[1] + d.coords[1]) * sizes[0]) + d.coords[0])
             * cores + d.core_on_chip
             for d in devices}
    found = create_device_mesh(shape, sorted(devices, key=lambda d: place[(*d.coords, d.core_on_chip)]))
    assert [place[(*d.coords, d.core_on_chip)] for d in found.ravel()] == order and found.shape == shape


@pytest.mark.parametrize("kind, sizes, cores, order",
                         [("TPU7x", (2, 2, 1), 2, [7, 6, 5, 4, 1, 0, 3, 2]),
                          ("TPU v5 lite", (2, 4, 1), 1, [0, 1, 2, 3, 7, 6, 5, 4]),
                          ("TPU v5p", (2, 2, 2), 1, [0, 1, 3, 2, 6, 7, 5, 4])])
def test_small_slices_listed_backwards(kind, sizes, cores, order):
    """Trays of a TPU7x stay in the order of the list; others are sorted by place."""
    devices = sorted(slice_of(kind, sizes, host=sizes, cores=cores),
                     key=lambda d: (*reversed(d.coords), d.core_on_chip))
    number = {d: i for i, d in enumerate(devices)}
    assert [number[d] for d in create_device_mesh((8,), devices[::-1]).ravel()] == order


# kind, grid, chips to a link around an axis, shape, size of steps along each logical axis: 1 for one physical
# axis
WHOLE = [
    ("TPU v4", (4, 4, 4), (4, 16), [1, None]),
    ("TPU v4", (4, 4, 4), (16, 4), [None, 1]),
    ("TPU v4", (4, 4, 4), (64,), [None]),
    ("TPU v5p", (2, 4, 8), (2, 4, 8), [1, 1, 1]),
    ("TPU v5p", (2, 4, 8), (8, 4, 2), [1, 1, 1]),
    ("TPU v5p", (2, 4, 8), (8, 1, 8), [1, 1, None]),
    ("TPU v5", (4, 4, 8), (16, 8), [None, 1]),
    ("TPU v5 lite", (16, 16, 1), (16, 16), [1, 1]),
    ("TPU v5 lite", (16, 16, 1), (256,), [None]),
    ("TPU v6 lite", (4, 8, 1), (4, 8), [1, 1]),
    ("TPU v6 lite", (4, 8, 1), (8, 4), [1, 1]),
    ("TPU v4", (4, 4, 16), (16, 16), [1, None]),
    ("TPU v4", (16, 4, 4), (16, 16), [1, None]),
    ("TPU v4", (1, 1, 1), (1, 1), [1, 1]),
]


@pytest.mark.parametrize("kind, sizes, shape, steps", WHOLE)
def test_an_axis_of_a_mesh_is_a_product_of_whole_physical_axes(kind, sizes, shape, steps):
    devices = slice_of(kind, sizes)
    mesh = create_device_mesh(shape, devices)
    assert mesh.shape == shape and sorted(ids(mesh.ravel())) == [*range(len(devices))]
    for axis, step in enumerate(steps):
        lines = np.moveaxis(mesh, axis, -1).reshape(-1, shape[axis])
        # along one line some physical coordinates pass through all of their values, and the others stay
        for line in lines[:3]:
            passed = [len({d.coords[i] for d in line}) for i in range(3)]
            assert all(n in (1, size) for n, size in zip(passed, sizes)) and math.prod(passed) == shape[axis]
            if step is not None:
                assert {distance(a, b, sizes, 99) for a, b in itertools.pairwise(line)} <= {step}
    # where the last axis would rather take two whole ones, and the first divide one
    if shape != (2, 4, 8):
        assert (create_device_mesh(shape, devices, allow_split_physical_axes=True) == mesh).all()


def test_the_last_axis_takes_as_many_physical_axes_as_it_can():
    mesh = create_device_mesh((16, 16), slice_of("TPU v4", (4, 4, 16)))
    assert {d.coords[2] for d in mesh[0]} == {0} and {d.coords[:2] for d in mesh[:, 0]} == {(0, 0)}
    # The choice of the last one is taken back where nothing is left for another.
    mesh = create_device_mesh((2, 4, 8), slice_of("TPU v4", (2, 4, 8)))
    assert [len({d.coords[i] for d in mesh[0, 0]}) for i in range(3)] == [1, 1, 8]


def test_cores_of_a_chip_are_the_last_physical_axis():
    devices = slice_of("TPU7x", (4, 4, 2), cores=2)
    mesh = create_device_mesh((32, 2), devices)
    assert {len({(d.coords, d.core_on_chip) for d in pair}) for pair in mesh} == {2}
    assert create_device_mesh((4, 4, 2, 2), devices).shape == (4, 4, 2, 2)


@pytest.mark.parametrize("kind, sizes, shape", [
    ("TPU v4", (4, 4, 4), (2, 32)),
    ("TPU v4", (4, 4, 4), (8, 8)),
    ("TPU v5 lite", (4, 8, 1), (2, 16)),
    ("TPU v5 lite", (16, 16, 1), (64, 4)),
    ("TPU v5 lite", (16, 16, 1), (4, 8, 8)),
    ("TPU v5p", (6, 4, 4), (3, 32)),
    ("TPU v5p", (8, 8, 16), (2, 4, 16, 8)),
])
def test_physical_axes_are_divided_where_they_must_and_may_be(kind, sizes, shape):
    devices = slice_of(kind, sizes)
    with pytest.raises(NotImplementedError,
                       match=rf"mesh_shape \({shape[0]}, .*a grid of {sizes[0]}x.*allow_split_physical_axes=True"):
        create_device_mesh(shape, devices)
    mesh = create_device_mesh(shape, devices, allow_split_physical_axes=True)
    assert mesh.shape == shape and sorted(ids(mesh.ravel())) == [*range(len(devices))]
    assert (jax.make_mesh(shape, tuple("abcd"[:len(shape)]), devices=devices).devices == mesh).all()
    for axis in range(len(shape)):      # a line is a box, whose points are evenly apart
        for line in np.moveaxis(mesh, axis, -1).reshape(-1, shape[axis])[:3]:
            values = [sorted({d.coords[i] for d in line}) for i in range(3)]
            assert math.prod(map(len, values)) == shape[axis]
            assert all(len(set(np.diff(v))) <= 1 for v in values)


@pytest.mark.parametrize("sizes, shape, parts", [
    ((4, 4, 4), (2, 32), [(1, 1, 2), (4, 4, 2)]), ((4, 4, 1), (8, 2), [(2, 4, 1), (2, 1, 1)]),
    ((4, 4, 4), (2, 8, 4), [(1, 1, 2), (1, 4, 2), (4, 1, 1)]),
    ((4, 4, 8), (2, 16, 4), [(1, 2, 1), (1, 2, 8), (4, 1, 1)]),
    ((4, 8, 1), (4, 4, 2), [(1, 4, 1), (2, 2, 1), (2, 1, 1)]),
    ((4, 2, 2), (2, 2, 4), [(2, 1, 1), (2, 1, 1), (1, 2, 2)])])
def test_the_last_axis_chooses_first_and_takes_whole_physical_axes(sizes, shape, parts):
    mesh = create_device_mesh(shape, slice_of("TPU v4", sizes), allow_split_physical_axes=True)
    lines = [np.moveaxis(mesh, axis, 0).reshape(size, -1)[:, 0] for axis, size in enumerate(shape)]
    assert [tuple(len({d.coords[i] for d in line}) for i in range(3)) for line in lines] == parts


@pytest.mark.parametrize("sizes, shape, first", [
    ((2, 2, 1), (2, 2), [0, 1, 2, 3]), ((2, 2, 4), (4, 4), [0, 2, 1, 3]), ((4, 4, 4), (16, 4), [0, 1, 2, 3]),
    ((4, 8, 8), (64, 4), [0, 1, 2, 3]), ((4, 8, 8), (4, 64), [0, 4, 8, 12])])
def test_orders_of_slices_whose_hosts_are_blocks(sizes, shape, first):
    mesh = create_device_mesh(shape, slice_of("TPU v4", sizes, host=sizes), contiguous_submeshes=True)
    x, y = sizes[:2]
    assert [(d.coords[2] * y + d.coords[1]) * x + d.coords[0] for d in mesh.ravel()[:4]] == first


@pytest.mark.parametrize("kind, sizes, shape, words", [
    ("TPU v4", (4, 4, 4), (4, 16),
     r"mesh_shape \(4, 16\) and physical mesh topology \(4, 4, 4\). Available .*16, 4"),
    ("TPU v4", (4, 2, 1), (2, 4), r"physical mesh topology \(4, 2, 1\)"),
    ("TPU v5 lite", (4, 4, 1), (4, 4), r"physical mesh topology \(4, 4, 1\)"),
    ("TPU7x", (4, 4, 4), (16, 4), r"physical mesh topology \(4, 4, 4, 1\)")])
def test_of_other_slices_no_order_is_known_whose_hosts_are_blocks(kind, sizes, shape, words):
    with pytest.raises(ValueError, match="cannot create contiguous submeshes for " + words):
        create_device_mesh(shape, slice_of(kind, sizes), contiguous_submeshes=True)


@pytest.mark.parametrize("kind, sizes, shape", [
    ("TPU v5 lite", (4, 4, 1), (16,)), ("TPU v5 lite", (4, 2, 1), (2, 4)), ("TPU v3", (2, 2, 1), (8,)),
    ("TPU v6 lite", (2, 2, 2), (2, 4))])
def test_orders_of_small_slices_are_the_same_in_blocks(kind, sizes, shape):
    devices = slice_of(kind, sizes, cores=1 + (kind == "TPU v3"))
    alone, blocks = (ids(create_device_mesh(shape, devices, contiguous_submeshes=c)) for c in (False, True))
    assert alone == blocks


def test_other_devices_are_in_their_order():
    devices = [Device(id=i, process_index=i // 3, platform="gpu", device_kind="H100") for i in range(6)]
    for contiguous in (False, True):
        found = ids(create_device_mesh((3, 2), devices, contiguous_submeshes=contiguous))
        assert found == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="Number of devices 6 must equal"):
        create_device_mesh((4,), devices)


def test_tpus_that_fill_no_box_are_in_their_order():
    some = slice_of("TPU v4", (4, 4, 4))[:7]
    assert ids(create_device_mesh((7,), some)) == [*range(7)]


def test_a_part_of_a_slice_that_is_a_box_is_arranged():
    high = [d for d in slice_of("TPU v4", (4, 4, 4)) if d.coords[2] >= 2]
    mesh = create_device_mesh((2, 16), high)
    assert {d.coords[2] for d in mesh[0]} == {2} and {d.coords[2] for d in mesh[1]} == {3}


def test_slices_are_arranged_each_by_itself():
    slices = [slice_of("TPU v3", (2, 2, 1), cores=2, first=8 * i, slice_index=i) for i in (0, 1)]
    mixed = slices[1] + slices[0]
    order = [TRAY, [8 + i for i in TRAY]]
    assert ids(create_hybrid_device_mesh((1, 8), (2, 1), mixed)) == order
    assert ids(create_hybrid_device_mesh((1, 8), (2, 1), mixed, should_sort_granules_by_key=False)) == order[
        ::-1]
    assert ids(create_hybrid_device_mesh((8,), (2,), mixed)) == sum(order, [])
    # dcn axes are the outer part of each axis
    assert ids(create_hybrid_device_mesh((4, 2), (1, 2), mixed)) == [
        [*TRAY[i:i + 2], *(8 + j for j in TRAY[i:i + 2])] for i in (0, 2, 4, 6)]
    hosts = slice_of("TPU v4", (4, 4, 1))
    grouped = create_hybrid_device_mesh((2, 2), (2, 2), hosts, process_is_granule=True)
    assert [[{d.process_index for d in block.flat} for block in np.split(half, 2, axis=1)]
            for half in np.split(grouped, 2)] == [[{0}, {1}], [{2}, {3}]]
    long = [d for i in (0, 1) for d in slice_of("TPU v4", (4, 1, 1), first=4 * i, slice_index=i)]
    with pytest.raises(NotImplementedError, match="a grid of 4: .*allow_split"):
        create_hybrid_device_mesh((2, 2), (2, 1), long)
    assert create_hybrid_device_mesh((2, 2), (2, 1), long, allow_split_physical_axes=True).shape == (4, 2)


def test_devices_that_are_arranged_are_those_that_were_given():
    devices = slice_of("TPU v4", (4, 4, 4))
    for shape in [(64,), (4, 16), (2, 2, 16), (4, 4, 4), (1, 64, 1), (2, 4, 8)]:
        for contiguous in (False, True):
            try:
                found = device_order.arrange(shape, devices, split=True, contiguous=contiguous)
            except ValueError:
                assert contiguous
            else:
                assert found.shape == shape and sorted(ids(found.ravel())) == [*range(64)]
