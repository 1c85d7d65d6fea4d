"""Shardings where programs ask for them: constraints, structs, meshes without devices."""
import numpy as np
import pytest
from mesh8 import auto_mesh
from stand_ins import raises

import hlotrace as jax
from hlotrace.sharding import AxisType, NamedSharding, P

pytestmark = pytest.mark.quick


def test_names_are_where_programs_look_for_them():
    assert jax.P is jax.sharding.PartitionSpec is P and jax.NamedSharding is jax.sharding.NamedSharding
    assert {"Mesh", "AbstractMesh", "AxisType", "Sharding", "SingleDeviceSharding"} <= set(dir(jax.sharding))
    assert {"P", "make_mesh", "sharding"} <= set(dir(jax))
    with pytest.raises(AttributeError, match="no attribute 'Grid'"):
        _ = jax.sharding.Grid


def test_a_struct_shows_its_sharding_and_reads_specs_under_the_mesh():
    mesh = auto_mesh((4, 2), ("data", "model"))
    sharding = NamedSharding(mesh, P("data"))
    assert f"dtype=float32, sharding={sharding})" in repr(jax.ShapeDtypeStruct((8,), np.float32, sharding=sharding))
    assert "sharding" not in repr(jax.ShapeDtypeStruct((8,), np.float32))
    with jax.set_mesh(mesh):
        assert jax.ShapeDtypeStruct((8,), np.float32, sharding=P("data")).sharding == sharding
    with raises(TypeError, "ShapeDtypeStruct: sharding: P('data',) requires a non-empty mesh in context"):
        jax.ShapeDtypeStruct((8,), np.float32, sharding=P("data"))
    with raises(ValueError, "ShapeDtypeStruct: sharding: expected a Sharding"):
        jax.ShapeDtypeStruct((8,), np.float32, sharding="data")


@pytest.mark.compiles
def test_a_program_over_an_abstract_mesh_whose_arguments_are_not_used_runs():
    mesh = auto_mesh((4, 2), ("data", "model"))
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
