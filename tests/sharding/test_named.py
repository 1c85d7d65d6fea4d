"""NamedSharding as a value, as another sharding says it, and in the type of an array."""
import pickle

import numpy as np
import pytest
from mesh8 import auto_mesh
from stand_ins import DEVICES, MESH, grid, raises

import hlotrace as jax
from hlotrace.sharding import (
    AbstractMesh, AxisType, NamedSharding, P, PositionalSharding, SingleDeviceSharding)
from hlotrace.sharding.named import as_named

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: NamedSharding(MESH, P("x")), ValueError, "Resource axis: x of P('x',) is not found in mesh: ('data', 'model')"),
    (lambda: NamedSharding(MESH, P("data", "data")), ValueError, "has duplicate entries for `data`"),
    (lambda: NamedSharding(MESH, P("data", ("model", "data"))), ValueError, "has duplicate entries for `data`"),
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
    assert str(SingleDeviceSharding(jax.devices()[0])).endswith(", memory_kind=device)")        # that of the device


@pytest.mark.parametrize("sharding", [grid.reshape(4, 2).T, grid.reshape(2, 4).replicate(1), grid.replicate().reshape(1, 1),
                                      SingleDeviceSharding(DEVICES[2], memory_kind="device")], ids=str)
def test_a_named_sharding_says_the_same(sharding):
    named = as_named(sharding, 2)
    assert named.devices_indices_map((8, 8)) == sharding.devices_indices_map((8, 8))
    assert named.memory_kind == sharding.memory_kind and as_named(named, 2) is named


@pytest.mark.compiles
def test_the_sharding_of_a_type_is_over_the_mesh_in_use():
    mesh = auto_mesh((4, 2), ("data", "model"))
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
