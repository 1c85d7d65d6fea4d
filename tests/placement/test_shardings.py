"""Meshes and shardings as data: no device is needed, so these stand in for devices."""
import copy
import dataclasses
import pickle
import re
import threading

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.inspection.pictures import as_svg, as_text
from hlotrace.runtime.mlir.bindings import parse_module
from hlotrace.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    PositionalSharding,
    SingleDeviceSharding,
)
from hlotrace.sharding.mesh import current_mesh
from hlotrace.sharding.named import as_named
from hlotrace.sharding.text import mesh_text, sharding_text

pytestmark = pytest.mark.quick


@dataclasses.dataclass(frozen=True)
class Client:
    process: int

    def process_index(self):
        return self.process


@dataclasses.dataclass(frozen=True, repr=False)
class Device:
    id: int
    process_index: int = 0
    client: Client = Client(0)
    platform: str = "cpu"

    def __repr__(self):
        return f"CpuDevice(id={self.id})"


DEVICES = [Device(i) for i in range(8)]
MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("data", "model"))
REVERSED = Mesh(np.array(DEVICES[::-1]).reshape(2, 4), ("a", "b"))
U = P.UNCONSTRAINED
grid = PositionalSharding(DEVICES)


def ranges(index):
    """Slices as tuples (start, stop), a whole dimension as None."""
    return tuple(None if s == slice(None) else (s.start, s.stop) for s in index)


def raises(error, text):
    return pytest.raises(error, match=re.escape(text))


# --- PartitionSpec ---


@pytest.mark.parametrize(("spec", "shown", "entries"), [
    (P(), "P()", ()),
    (P("data"), "P('data',)", ("data",)),
    (P("data", None), "P('data', None)", ("data", None)),
    (P(("data", "model")), "P(('data', 'model'),)", (("data", "model"),)),
    (P(["data", "model"]), "P(('data', 'model'),)", (("data", "model"),)),
    (P(("data",), ()), "P('data', None)", ("data", None)),
    (P(U, "data"), "P(UNCONSTRAINED, 'data')", (U, "data")),
    (P("a") + P("b"), "P('a', 'b')", ("a", "b")),
    (P("a") + ("b",), "P('a', 'b')", ("a", "b")),
    (("a",) + P("b"), "P('a', 'b')", ("a", "b")),
    (P("a", ...), "P('a', Ellipsis)", ("a", ...)),
    (P("a").update(partitions=(None, ["b", "c"])), "P(None, ('b', 'c'))", (None, ("b", "c"))),
    (P("a", unreduced=set()).update(), "P('a',)", ("a",)),
])
def test_spec_reads_like_a_tuple(spec, shown, entries):
    assert repr(spec) == shown
    assert tuple(spec) == spec.partitions == spec[:] == entries and len(spec) == len(entries)
    for same in (PartitionSpec(*entries), pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert same == spec and hash(same) == hash(spec)


def test_specs_differ_as_written():
    assert P("a") != P("a", None) and P("a") != ("a",) and P("a", "b") != P(("a", "b"))
    assert P("a", None).index(None) == 1 and P("a", None).count("a") == 1


def test_what_a_spec_does_not_say():
    assert P("a").unreduced == P().reduced == frozenset()
    for words in {"unreduced": {"a"}}, {"reduced": {"b"}}:
        with raises(NotImplementedError, "shardings in types"):
            P("c", **words)
        with raises(NotImplementedError, "shardings in types"):
            P("c").update(**words)
    with raises(TypeError, "unexpected keyword argument 'axes'"):
        P("c").update(axes=("a",))
    with pytest.raises(AttributeError):
        P("a").partitions = ("b",)


@pytest.mark.parametrize("take", [
    lambda s: jax.device_put(jnp.ones((4, 4)), s), lambda s: jax.jit(lambda x: x, in_shardings=s)(jnp.ones((4, 4))),
    lambda s: jax.jit(lambda x: x, out_shardings=s)(jnp.ones((4, 4)))])
def test_only_a_constraint_leaves_a_dimension_to_the_compiler(take):
    with raises(ValueError, "P('data', UNCONSTRAINED) leaves dimension 1 to the compiler (UNCONSTRAINED), which only "
                            "with_sharding_constraint can"):
        take(NamedSharding(MESH, P("data", U)))


def test_an_ellipsis_is_no_axis():
    with raises(ValueError, "P(Ellipsis, 'data') names mesh axis Ellipsis, which Mesh('data': 4, 'model': 2"):
        NamedSharding(MESH, P(..., "data"))


def test_spec_is_a_leaf():
    assert jax.tree.leaves({"w": P("a", "b"), "b": (P(), P("a"))}) == [P(), P("a"), P("a", "b")]


@pytest.mark.parametrize("entry", [1, (("a",),), ("a", None), MESH])
def test_bad_entry_of_a_spec_is_named(entry):
    with raises(TypeError, f"entry 1 is {entry!r}; an entry is None, the name of a mesh axis"):
        P(None, entry)


# --- meshes ---


def test_what_a_mesh_says():
    assert (MESH.size, MESH.axis_names, MESH.axis_sizes) == (8, ("data", "model"), (4, 2))
    assert list(MESH.shape.items()) == [("data", 4), ("model", 2)]
    assert MESH.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and MESH.devices[3, 1] is DEVICES[7]
    assert MESH.local_devices == DEVICES and not MESH.empty and AbstractMesh((), ()).empty
    assert str(MESH) == "Mesh('data': 4, 'model': 2, axis_types=(Auto, Auto))"
    assert str(MESH.abstract_mesh) == "AbstractMesh('data': 4, 'model': 2, axis_types=(Auto, Auto))"
    with pytest.raises(ValueError, match="read-only"):
        MESH.devices[0, 0] = DEVICES[1]


def test_equal_meshes_are_one_object():
    same = Mesh([DEVICES[i:i + 2] for i in (0, 2, 4, 6)], ["data", "model"], axis_types=(AxisType.Auto,) * 2)
    for mesh in (same, copy.copy(MESH), copy.deepcopy(MESH), pickle.loads(pickle.dumps(MESH))):
        assert mesh is MESH
    assert Mesh(DEVICES, "x") != Mesh(DEVICES[::-1], "x") and Mesh(DEVICES, "x") != Mesh(DEVICES, "y")
    assert Mesh(DEVICES, "x") != Mesh(DEVICES, "x", axis_types=AxisType.Manual)
    assert AbstractMesh((4, 2), ("data", "model")) is MESH.abstract_mesh
    assert pickle.loads(pickle.dumps(MESH.abstract_mesh)) is MESH.abstract_mesh is not MESH


def test_axis_types():
    mesh = Mesh(MESH.devices, MESH.axis_names, axis_types=(AxisType.Explicit, AxisType.Manual))
    assert (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes) == ((), ("data",), ("model",))
    assert MESH.auto_axes == ("data", "model")
    with raises(ValueError, "UNCONSTRAINED"):
        NamedSharding(mesh, P(U))


def test_the_mesh_entered_last_on_a_thread_is_the_current_one():
    seen = []
    with MESH as mesh:
        assert current_mesh() is mesh is MESH
        with REVERSED:
            assert current_mesh() is REVERSED
            thread = threading.Thread(target=lambda: seen.append(current_mesh()))
            thread.start()
            thread.join()
        with MESH:
            pass
        assert current_mesh() is MESH
    assert current_mesh() is None and seen == [None]


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: Mesh(MESH.devices, ("data",)), ValueError, "devices has 2 dimensions, shape (4, 2), for 1 axis names"),
    (lambda: Mesh(MESH.devices, ("x", "x")), ValueError, "axis name 'x' is used more than once"),
    (lambda: Mesh(MESH.devices, ("x", None)), TypeError, "axis names are strings, got None"),
    (lambda: Mesh([DEVICES[1]] * 2, "x"), ValueError, "device CpuDevice(id=1) is used more than once"),
    (lambda: Mesh([1, 2], "x"), TypeError, "1 is not a device"),
    (lambda: Mesh([], "x"), ValueError, "holds no device"),
    (lambda: Mesh(DEVICES, "x", axis_types=("a",)), TypeError, "axis_types holds AxisType.Auto"),
    (lambda: Mesh(MESH.devices, ("x", "y"), AxisType.Auto), ValueError, "axis_types has 1 entries for the 2 axes"),
    (lambda: AbstractMesh((4, 2), ("x",)), ValueError, "2 axis sizes (4, 2) for 1 axis names"),
    (lambda: AbstractMesh((0,), ("x",)), ValueError, "axis 'x' has size 0"),
    (lambda: jax.make_mesh((4, 2), ("x",), devices=DEVICES), ValueError, "2 axis sizes (4, 2) for 1 axis names"),
    (lambda: jax.make_mesh((-1,), ("x",), devices=DEVICES), ValueError, "axis 'x' has size -1"),
    (lambda: jax.make_mesh((4, 4), ("x", "y"), devices=DEVICES), ValueError, "need 16 devices and there are 8"),
])
def test_a_wrong_mesh_is_refused_in_words(make, error, text):
    with raises(error, text):
        make()


def test_make_mesh_takes_the_first_devices():
    mesh = jax.make_mesh((2, 2), ("x", "y"), devices=DEVICES[::-1])
    assert mesh.device_ids.tolist() == [[7, 6], [5, 4]] and mesh.axis_types == (AxisType.Auto,) * 2
    assert jax.make_mesh((8,), "x", devices=MESH.devices) is Mesh(DEVICES, "x")
    assert jax.make_mesh((8,), "x", (AxisType.Explicit,), devices=DEVICES).explicit_axes == ("x",)


# --- what each device holds; values are JAX's ---


@pytest.mark.parametrize(("sharding", "shape", "part", "where"), [
    (NamedSharding(MESH, P("data")), (8, 4), (2, 4),
     {i: ((2 * (i // 2), 2 * (i // 2) + 2), None) for i in range(8)}),
    (NamedSharding(MESH, P(None, "model")), (8, 4), (8, 2), {i: (None, (2 * (i % 2), 2 * (i % 2) + 2)) for i in range(8)}),
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
     {7: ((0, 2),), 6: ((2, 4),), 5: ((4, 6),), 4: ((6, 8),), 3: ((0, 2),), 2: ((2, 4),), 1: ((4, 6),), 0: ((6, 8),)}),
    (SingleDeviceSharding(DEVICES[3]), (3, 2), (3, 2), {3: (None, None)}),
    (grid.reshape(4, 2), (8, 4), (2, 2),
     {i: ((2 * (i // 2), 2 * (i // 2) + 2), (2 * (i % 2), 2 * (i % 2) + 2)) for i in range(8)}),
    (grid.reshape(4, 2).T, (8, 4), (4, 1),
     {i: ((4 * (i % 2), 4 * (i % 2) + 4), (i // 2, i // 2 + 1)) for i in range(8)}),
    (grid.reshape(4, 2).replicate(1), (8, 4), (2, 4), {i: ((2 * (i // 2), 2 * (i // 2) + 2), None) for i in range(8)}),
    (grid.reshape(4, 2).replicate(0, keepdims=False), (8,), (4,), {i: ((4 * (i % 2), 4 * (i % 2) + 4),) for i in range(8)}),
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
    assert {device.id for device in sharding.device_set} == where.keys() and sharding.num_devices == len(where)
    assert sharding.is_fully_replicated == (part == shape and sharding.is_fully_replicated)
    for index in found.values():      # the parts are what the slices cut out
        assert np.empty(shape)[index].shape == part


@pytest.mark.parametrize(("sharding", "shape", "text"), [
    (NamedSharding(MESH, P("data")), (10, 4), "dimension 0 of shape (10, 4) has size 10, which is not a multiple of 4: it "
     "is split over mesh axis 'data' (4). Pad it to 12"),
    (NamedSharding(MESH, P(None, ("data", "model"))), (4, 20), "dimension 1 of shape (4, 20) has size 20, which is not a "
     "multiple of 8: it is split over mesh axes 'data' (4) x 'model' (2). Pad it to 24"),
    (grid.reshape(4, 2), (8, 3), "dimension 1 of shape (8, 3) has size 3, which is not a multiple of 2: it is split over "
     "axis 1 of the devices"),
    (NamedSharding(MESH, P("data", None, "model")), (4, 4), "has 3 entries; the array has rank 2"),
    (grid.reshape(4, 2), (8,), "is for arrays of rank 2; an array of rank 1 takes the trailing axes, and the leading ones, "
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


# --- shardings ---


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: NamedSharding(MESH, P("x")), ValueError, "names mesh axis 'x', which Mesh('data': 4, 'model': 2"),
    (lambda: NamedSharding(MESH, P("data", "data")), ValueError, "uses mesh axis 'data' more than once"),
    (lambda: NamedSharding(MESH, P("data", ("model", "data"))), ValueError, "uses mesh axis 'data' more than once"),
    (lambda: NamedSharding(MESH, ("data",)), TypeError, "spec is a PartitionSpec, got ('data',); write P('axis', None)"),
    (lambda: NamedSharding(MESH, None), TypeError, "spec is a PartitionSpec, got None"),
    (lambda: NamedSharding(MESH.devices, P()), TypeError, "mesh is a Mesh or an AbstractMesh, got ndarray"),
    (lambda: NamedSharding(MESH, P(), 1), TypeError, "memory_kind is a string or None, got 1"),
    (lambda: PositionalSharding([]), ValueError, "holds no device"),
    (lambda: PositionalSharding(DEVICES[:1] * 2), ValueError, "is used more than once"),
    (lambda: grid.reshape(3, 2), ValueError, "8 tiles of shape (8,) cannot take shape (3, 2)"),
    (lambda: grid.transpose(0, 0), ValueError, "(0, 0) is no order of the 1 axes"),
    (lambda: grid.replicate(1), ValueError, "axis 1 of a sharding with 1 axes"),
    (lambda: NamedSharding(MESH.abstract_mesh, P()).device_set, ValueError, "has no devices: its mesh is an AbstractMesh"),
])
def test_a_wrong_sharding_is_refused_in_words(make, error, text):
    with raises(error, text):
        make()


def test_named_sharding_is_a_value():
    sharding = NamedSharding(MESH, P("data"))
    for same in (NamedSharding(MESH, P("data")), pickle.loads(pickle.dumps(sharding)), sharding.update(spec=P("data"))):
        assert same == sharding and hash(same) == hash(sharding)
    assert sharding != NamedSharding(MESH, P("data", None))
    assert sharding.with_spec(P("model")).spec == P("model") and sharding.update(mesh=MESH.abstract_mesh).num_devices == 8
    assert sharding.memory_kind is None and sharding.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert str(sharding.with_memory_kind("device")) == (
        "NamedSharding(mesh=Mesh('data': 4, 'model': 2, axis_types=(Auto, Auto)), spec=P('data',), memory_kind=device)")


def shardings_with(kind):
    """One of each kind of sharding over the devices that there are, with this kind of memory."""
    here = jax.devices()
    positional = PositionalSharding(here, memory_kind=kind)
    return [NamedSharding(Mesh(here, "x"), P("x"), kind), positional.reshape(8, 1), positional.reshape(2, 4).replicate(0).T,
            SingleDeviceSharding(here[-1], memory_kind=kind)]


def test_the_memory_of_a_sharding_is_the_devices_own_unless_told():
    default = jax.devices()[0].default_memory().kind
    for plain, said, pinned in zip(*map(shardings_with, (None, default, "pinned_host"))):
        assert plain.memory_kind == said.memory_kind == default and pinned.memory_kind == "pinned_host"
        assert plain == said and hash(plain) == hash(said) and plain.is_equivalent_to(said, 2) and plain.same_placement(said, 2)
        assert plain != pinned and not plain.is_equivalent_to(pinned, 2) and not plain.same_placement(pinned, 2)
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
        with raises(ValueError, "memory_kind is 'nope', and the kinds"):
            make()
    with raises(ValueError, "of cpu:0's memory are 'device', 'pinned_host', 'unpinned_host'; None is the default"):
        NamedSharding(Mesh(here, "x"), P("x"), "nope")


@pytest.mark.parametrize(("one", "other", "ndim", "same"), [
    (NamedSharding(MESH, P("data")), NamedSharding(MESH, P("data", None)), 2, True),
    (NamedSharding(MESH, P(("data", "model"))), NamedSharding(Mesh(DEVICES, "x"), P("x")), 1, True),
    (NamedSharding(MESH, P()), NamedSharding(Mesh(DEVICES, "x"), P()), 2, True),
    (NamedSharding(MESH, P()), NamedSharding(REVERSED, P()), 2, False),      # their programs number devices differently
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
    assert NamedSharding(MESH, P(None)).is_fully_replicated and not NamedSharding(MESH, P("model")).is_fully_replicated
    assert NamedSharding(Mesh([DEVICES], ("x", "y")), P("x")).is_fully_replicated
    assert grid.replicate().is_fully_replicated and not grid.is_fully_replicated
    assert SingleDeviceSharding(DEVICES[0]).is_fully_replicated


def test_devices_of_other_processes_are_not_addressable():
    devices = [Device(i, process_index=i // 2) for i in range(4)]
    sharding = NamedSharding(Mesh(devices, "x"), P("x"))
    assert sharding.mesh.local_devices == devices[:2] and sharding.addressable_devices == set(devices[:2])
    assert sharding.device_set == set(devices) and not sharding.is_fully_addressable
    assert sharding.addressable_devices_indices_map((8,)) == {devices[0]: (slice(0, 2),), devices[1]: (slice(2, 4),)}
    assert NamedSharding(MESH, P()).is_fully_addressable


def test_positional_sharding_is_a_value():
    sharding = grid.reshape((4, -1))
    assert (sharding.shape, sharding.ndim, sharding.T.shape) == ((4, 2), 2, (2, 4))
    assert sharding == grid.reshape(4, 2) == sharding.T.T and hash(sharding) == hash(grid.reshape(4, 2))
    assert sharding != sharding.T and sharding != grid and sharding != sharding.with_memory_kind("pinned_host")
    assert sharding.replicate(-1).ids.tolist() == [[(0, 1)], [(2, 3)], [(4, 5)], [(6, 7)]]
    assert sharding.replicate((0, 1)).shape == (1, 1) and sharding.replicate(0, keepdims=False).shape == (2,)
    assert repr(sharding.replicate(0)) == "PositionalSharding([[{CPU 0,2,4,6} {CPU 1,3,5,7}]])"
    assert pickle.loads(pickle.dumps(sharding)) == sharding


# --- text ---


@pytest.mark.parametrize(("sharding", "ndim", "text"), [
    (NamedSharding(MESH, P("data")), 2, '<@mesh, [{"data"}, {}]>'),
    (NamedSharding(MESH, P(None, ("model", "data"))), 3, '<@mesh, [{}, {"model", "data"}, {}]>'),
    (NamedSharding(MESH, P(U, "data")), 3, '<@mesh, [{?}, {"data"}, {}]>'),
    (NamedSharding(MESH, P()), 0, "<@mesh, []>"),
    (NamedSharding(MESH.abstract_mesh, P("model")), 1, '<@mesh, [{"model"}]>'),
    (grid.reshape(4, 2), 2, '<@mesh, [{"_0"}, {"_1"}]>'),
    (grid.reshape(4, 2).replicate(0), 2, '<@mesh, [{}, {"_1"}]>'),
    (grid.replicate(keepdims=False), 0, "<@mesh, []>"),
    (SingleDeviceSharding(DEVICES[3]), 1, "<@mesh, [{}]>"),
], ids=str)
def test_shardy_text(sharding, ndim, text):
    assert sharding_text(sharding, ndim) == text
    assert sharding_text(sharding, ndim, "m") == text.replace("@mesh", "@m")


def test_open_shardings_and_ranks():
    assert sharding_text(NamedSharding(MESH, P("model")), 2, open=True) == '<@mesh, [{"model", ?}, {?}]>'
    with raises(ValueError, "the array has rank 1"):
        sharding_text(NamedSharding(MESH, P(None, "data")), 1)


def test_mesh_text():
    assert mesh_text(MESH) == mesh_text(MESH.abstract_mesh) == 'sdy.mesh @mesh = <["data"=4, "model"=2]>'
    assert mesh_text(MESH, "m", DEVICES) == 'sdy.mesh @m = <["data"=4, "model"=2]>'
    assert mesh_text(REVERSED, devices=DEVICES) == (
        'sdy.mesh @mesh = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>')
    assert mesh_text(as_named(grid.reshape(4, 2).replicate(0), 2).mesh, devices=DEVICES) == (
        'sdy.mesh @mesh = <["_1"=2, "_copies"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>')


def test_jaxlib_reads_the_text():
    odd = Mesh(REVERSED.devices, ('a "b"', "c\n"))
    attribute = "#sdy.sharding" + sharding_text(NamedSharding(odd, P(('a "b"', "c\n"), U)), 3)
    module = parse_module(f"{mesh_text(odd, devices=DEVICES)}\nfunc.func private @f(tensor<8x4x2xf32> "
                                  f"{{sdy.sharding = {attribute}}})")
    assert attribute in str(module) and mesh_text(odd, devices=DEVICES) in str(module)


@pytest.mark.parametrize("sharding", [grid.reshape(4, 2).T, grid.reshape(2, 4).replicate(1), grid.replicate().reshape(1, 1),
                                      SingleDeviceSharding(DEVICES[2], memory_kind="device")], ids=str)
def test_a_named_sharding_says_the_same(sharding):
    named = as_named(sharding, 2)
    assert named.devices_indices_map((8, 8)) == sharding.devices_indices_map((8, 8))
    assert named.memory_kind == sharding.memory_kind and as_named(named, 2) is named


# --- pictures; the text is what JAX prints ---

PICTURES = {
    "rows": ((8, 4), P("data"), """
┌──────────┐
│ CPU 0,1  │
├──────────┤
│ CPU 2,3  │
├──────────┤
│ CPU 4,5  │
├──────────┤
│ CPU 6,7  │
└──────────┘"""),
    "tiles": ((8, 4), P("model", "data"), """
┌───────┬───────┬───────┬───────┐
│       │       │       │       │
│       │       │       │       │
│ CPU 0 │ CPU 2 │ CPU 4 │ CPU 6 │
│       │       │       │       │
├───────┼───────┼───────┼───────┤
│       │       │       │       │
│       │       │       │       │
│ CPU 1 │ CPU 3 │ CPU 5 │ CPU 7 │
│       │       │       │       │
└───────┴───────┴───────┴───────┘"""),
    "vector": ((8,), P("data"), """
┌───────┬───────┬───────┬───────┐
│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│
└───────┴───────┴───────┴───────┘"""),
    "copies": ((8,), P(), """
┌───────────────────┐
│CPU 0,1,2,3,4,5,6,7│
└───────────────────┘"""),
}


@pytest.mark.parametrize("name", PICTURES)
def test_text_picture(name, capsys):
    shape, spec, picture = PICTURES[name]
    jax.debug.visualize_sharding(shape, NamedSharding(MESH, spec))
    assert capsys.readouterr().out == picture[1:] + "\n"


def test_pictures_keep_to_the_width():
    many = PositionalSharding([Device(i) for i in range(16)])
    lines = as_text((16,), many).splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].endswith("│ 14│ 15│")
    wide = as_text((8, 400), NamedSharding(MESH, P("data", "model"))).splitlines()
    assert {len(line) for line in wide} == {79} and "CPU 3" in wide[3]
    assert "\x1b[30;48;5;154m CPU 0 \x1b[0m" in as_text((8,), grid, color=True)


def test_svg_picture(tmp_path):
    sharding = NamedSharding(MESH, P("data", "model"))
    svg = jax.debug.visualize_sharding((8, 4), sharding, as_svg=True)
    assert svg == as_svg((8, 4), sharding) and svg.count("<rect") == 8 and ">CPU 7</text>" in svg
    jax.debug.visualize_sharding((8, 4), sharding, as_svg=tmp_path / "mesh.svg")
    assert (tmp_path / "mesh.svg").read_text("utf-8") == svg


def test_what_cannot_be_drawn_is_refused_in_words():
    for shape in ((), (8, 8, 8)):
        with raises(ValueError, "draws arrays of 1 and 2 dimensions"):
            jax.debug.visualize_sharding(shape, NamedSharding(MESH, P()))
    with raises(TypeError, "an array is needed whose sharding there is to see, got ndarray"):
        jax.debug.visualize_array_sharding(np.zeros(3))


def test_names_are_where_programs_look_for_them():
    assert jax.P is jax.sharding.PartitionSpec is P and jax.NamedSharding is jax.sharding.NamedSharding
    assert {"Mesh", "AbstractMesh", "AxisType", "Sharding", "SingleDeviceSharding"} <= set(dir(jax.sharding))
    assert {"P", "make_mesh", "sharding"} <= set(dir(jax))
    with pytest.raises(AttributeError, match="no attribute 'Grid'"):
        _ = jax.sharding.Grid


@pytest.mark.parametrize("name", ["é", "a\\b", "a'b"])
def test_names_with_which_xla_crashes_are_refused(name):
    with raises(ValueError, "is not ASCII, a backslash or a quote"):
        AbstractMesh((2,), (name,))


@pytest.mark.parametrize("use", ["use_mesh", "use_abstract_mesh"])
def test_the_mesh_in_use(use):
    assert jax.sharding.get_mesh().empty and jax.sharding.get_abstract_mesh().empty
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    with pytest.raises(KeyError), getattr(jax.sharding, use)(mesh):
        assert jax.sharding.get_mesh() is mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
        raise KeyError
    assert jax.sharding.get_mesh().empty


@pytest.mark.compiles
def test_an_abstract_mesh_is_in_use_inside_of_programs():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    abstract, seen = mesh.abstract_mesh, []

    def f(x):
        with jax.sharding.use_abstract_mesh(abstract):
            seen.append(jax.sharding.get_abstract_mesh())
            x = jax.lax.with_sharding_constraint(x * 2, P(None, "model"))
        seen.append(jax.sharding.get_abstract_mesh())
        return x
    value = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    x = jax.device_put(value, NamedSharding(mesh, P("data")))
    y = jax.jit(f)(x)
    assert seen[0] == abstract and seen[1].empty and y.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "model")), 2)
    assert np.array_equal(y, value * 2)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(x), 8 * value)
    with raises(ValueError, "use_abstract_mesh: expected an AbstractMesh, got 3"):
        jax.sharding.use_abstract_mesh(3)
    with raises(ValueError, "set_mesh inside of a function that jit traces"):
        jax.jit(lambda x: jax.set_mesh(mesh) and x)(value)


@pytest.mark.compiles
def test_the_sharding_of_a_type_is_over_the_mesh_in_use():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    for x, rank in (np.ones((4, 2)), 2), (jax.numpy.ones(3), 1), (2.0, 0), (jax.random.key(0), 0):
        assert jax.typeof(x).sharding == NamedSharding(AbstractMesh((), ()), P(*[None] * rank))
        with jax.set_mesh(mesh):
            assert jax.typeof(x).sharding == NamedSharding(mesh.abstract_mesh, P(*[None] * rank))
    seen = []
    jax.jit(jax.shard_map(lambda x: seen.append(jax.typeof(x)) or x, mesh=mesh, in_specs=P("data"), out_specs=P("data")))(
        np.ones((4, 2)))
    assert seen[0].vma == {"data"} and str(seen[0]) == "float32[1,2]{V:data}" and seen[0].sharding.spec == P(None, None)
    assert str(jax.typeof(np.ones(3, np.float32)).sharding).startswith("NamedSharding(mesh=AbstractMesh(")


@pytest.mark.compiles
@pytest.mark.parametrize("axis_types, spec", [
    (None, P(None, None)), ((AxisType.Explicit, AxisType.Auto), P("data", None)),
    ((AxisType.Explicit,) * 2, P("data", "model"))])
def test_the_type_of_an_array_that_lies_over_a_mesh_names_it_and_its_explicit_axes(axis_types, spec):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=axis_types or (AxisType.Auto,) * 2)
    x = jax.device_put(np.ones((4, 2), np.float32), NamedSharding(mesh, P("data", "model")))
    aval = jax.typeof(x)
    with jax.set_mesh(mesh):
        assert aval.sharding == NamedSharding(mesh.abstract_mesh, spec)
    plain = jax.typeof(np.ones((4, 2), np.float32))
    assert (aval == plain) == (spec == P(None, None))
    assert aval == jax.typeof(x + 1) and aval.update(sharding=None) == plain
    assert str(aval) == f"float32[4{'@data' * (spec[0] is not None)},2{'@model' * (spec[1] is not None)}]"
    assert aval.update(shape=(3,)) == jax.typeof(np.ones(3, np.float32))
    assert jax.eval_shape(lambda x: x, aval).shape == (4, 2)
    assert jax.typeof(jax.device_put(np.ones((4, 2)), jax.devices()[1])).sharding == NamedSharding(
        AbstractMesh((), ()), P(None, None))


def test_a_bare_mesh_gives_specs_a_meaning_and_is_not_in_use():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    other = jax.make_mesh((8,), ("x",))
    with mesh:
        assert jax.sharding.get_abstract_mesh().empty and jax.sharding.get_mesh().empty
        assert jax.typeof(np.ones(2)).sharding.mesh.empty
        assert jax.lax.with_sharding_constraint(np.ones(4), P("data")).sharding.mesh is mesh
        with jax.set_mesh(other):
            assert jax.sharding.get_mesh() is other
            with mesh:
                assert jax.sharding.get_mesh() is other
                assert jax.lax.with_sharding_constraint(np.ones(4), P("data")).sharding.mesh is mesh
    assert str(AbstractMesh((), ())) == "AbstractMesh((), axis_types=())"


def test_a_struct_shows_its_sharding_and_reads_specs_under_the_mesh():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    sharding = NamedSharding(mesh, P("data"))
    assert f"dtype=float32, sharding={sharding})" in repr(jax.ShapeDtypeStruct((8,), np.float32, sharding=sharding))
    assert "sharding" not in repr(jax.ShapeDtypeStruct((8,), np.float32))
    with jax.set_mesh(mesh):
        assert jax.ShapeDtypeStruct((8,), np.float32, sharding=P("data")).sharding == sharding
    with raises(RuntimeError, "ShapeDtypeStruct: sharding: P('data',) names axes of a mesh"):
        jax.ShapeDtypeStruct((8,), np.float32, sharding=P("data"))
    with raises(TypeError, "ShapeDtypeStruct: sharding: expected a Sharding"):
        jax.ShapeDtypeStruct((8,), np.float32, sharding="data")


@pytest.mark.compiles
def test_a_program_over_an_abstract_mesh_whose_arguments_are_not_used_runs():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    over = NamedSharding(mesh.abstract_mesh, P("data"))

    @jax.jit
    def unused(*_):
        return jax.lax.with_sharding_constraint(jax.numpy.arange(8), over)
    cut = NamedSharding(mesh, P("data"))
    assert unused().tolist() == unused(np.ones(3)).tolist() == list(range(8))
    assert len(unused().sharding.device_set) == 1
    got = unused(jax.device_put(np.ones(8), cut))
    assert got.tolist() == list(range(8)) and got.sharding.is_equivalent_to(cut, 1)
    with jax.set_mesh(mesh):
        assert unused().sharding.is_equivalent_to(cut, 1)
    assert jax.jit(lambda x: jax.lax.with_sharding_constraint(x, over))(np.arange(8)).tolist() == list(range(8))
    mapped = jax.jit(jax.shard_map(lambda: jax.lax.axis_index("data")[None], mesh=mesh.abstract_mesh, in_specs=(),
                                   out_specs=P("data")))
    with raises(ValueError, "runs over an AbstractMesh, which has no devices"):
        mapped()
    with jax.set_mesh(mesh):
        assert mapped().tolist() == [0, 1, 2, 3]


@pytest.mark.compiles
def test_reshard_divides_an_array_otherwise_in_and_out_of_programs():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    rows, columns = (jax.sharding.NamedSharding(mesh, jax.P(*spec)) for spec in (("data", None), (None, "model")))
    x = jax.reshard(np.arange(8.0).reshape(4, 2), rows)
    assert x.sharding == rows
    for move in (lambda x: jax.reshard(x, columns), jax.jit(lambda x: jax.reshard(x, columns))):
        assert move(x).sharding.is_equivalent_to(columns, 2) and np.array_equal(move(x), x)
