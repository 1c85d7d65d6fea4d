"""Programs compiled for TPUs that are not here; all but the errors need a libtpu wheel."""

import re

import numpy as np
import pytest
from op_table import keys, linear_algebra, transforms

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.inspection.communication import collectives
from hlotrace.runtime.devices import plugins
from hlotrace.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

needs_libtpu = pytest.mark.skipif("tpu" not in plugins.find(), reason="no libtpu wheel is installed")

TEXT = """
module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%x: tensor<16x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>})
      -> (tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<16x128xf32>, tensor<f32>) -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
}
"""


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(plugins, "find", dict)
    with pytest.raises(RuntimeError, match='no plugin for \'tpu\' is installed: pip install "libtpu==0.0'):
        hlotrace.topologies.get_topology_desc("v5e:2x4")
    with pytest.raises(ValueError, match="a TPU topology has a name"):
        hlotrace.topologies.get_topology_desc()


@needs_libtpu
def test_a_program_is_compiled_for_a_topology():
    topology = hlotrace.topologies.get_topology_desc("v5e:2x4")
    assert len(topology.devices) == 8 and topology.platform == "tpu"
    assert repr(topology) == "TopologyDescription('v5e:2x4', 8 x TPU v5 lite)"
    compiled = topology.compile(TEXT)
    assert "all-reduce" in compiled.hlo_modules()[0].to_string()
    assert compiled.get_compiled_memory_stats().argument_size_in_bytes > 0


@needs_libtpu
@pytest.mark.parametrize("name", ["v5e:3x5", "nothing"])
def test_a_topology_that_there_is_not(name):
    with pytest.raises(ValueError, match=f"tpu has no topology '{name}': INVALID_ARGUMENT"):
        hlotrace.topologies.get_topology_desc(name)


@needs_libtpu
def test_a_program_too_large_for_a_chip():
    text = TEXT.replace("16x128", "16x16000000000").replace("tensor<128xf32>", "tensor<16000000000xf32>")
    with pytest.raises(hlotrace.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        hlotrace.topologies.get_topology_desc("v5e:2x4").compile(text)


# --- jit ----------------------------------------------------------------------------------------------------

def struct(*shape, sharding=None, dtype="float32"):
    return hlotrace.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def grid():
    """The eight chips of v5e:2x4 as 4 rows along "data", of 2 along "model"."""
    return hlotrace.topologies.get_topology_desc("v5e:2x4").make_mesh((4, 2), ("data", "model"))


def layer(x, w):
    return jnp.tanh(x @ w).sum(1)


@needs_libtpu
def test_meshes_are_made_of_a_topology():
    topology = hlotrace.topologies.get_topology_desc("v5e:2x4")
    mesh = hlotrace.topologies.make_mesh(topology, (4, 2), ("data", "model"))
    assert mesh is topology.make_mesh((4, 2), ("data", "model"))
    assert mesh is Mesh(mesh.devices, ("data", "model")) and {*mesh.devices.flat} == {*topology.devices}
    assert hlotrace.topologies.make_mesh(topology, (4, 2), ("data", "model"),
                                         contiguous_submeshes=True).size == 8
    assert {*topology.make_mesh((4,), "x").devices} == {*topology.devices[:4]}
    with pytest.raises(ValueError, match="Number of devices 8 must be >= .* 16$"):
        topology.make_mesh((4, 4), ("data", "model"))


@needs_libtpu
def test_several_slices_have_a_name():
    devices = hlotrace.topologies.get_topology_desc("2xv5e:2x2").devices
    assert [d.slice_index for d in devices] == [0] * 4 + [1] * 4
    assert devices == hlotrace.topologies.get_topology_desc("v5e:2x2", num_slices=2).devices
    with pytest.raises(ValueError, match="how many slices there are, and so does num_slices"):
        hlotrace.topologies.get_topology_desc("2xv5e:2x2", num_slices=2)


@needs_libtpu
def test_jit_compiles_for_a_topology_and_tells_what_it_takes():
    mesh = grid()
    shardings = NamedSharding(mesh, P("data", "model")), NamedSharding(mesh, P("model"))
    lowered = hlotrace.jit(layer, in_shardings=shardings).lower(struct(64, 256), struct(256, 512))
    assert '["data"=4, "model"=2]' in lowered.as_text()
    compiled = lowered.compile()
    text = compiled.as_text()
    assert "is_scheduled=true" in text and "num_partitions=8" in text
    assert re.search(r"all-reduce(-start)?\(|all-reduce-scatter", text)
    per_chip = 4 * (16 * 128 + 128 * 512)
    assert compiled.memory_analysis().argument_size_in_bytes == per_chip
    cost = compiled.cost_analysis()
    assert 0 < cost["optimal_seconds"] < 1e-3 and cost["flops"] >= 2 * 16 * 128 * 512
    assert compiled.input_shardings == (shardings, {})
    assert compiled.output_shardings.mesh is mesh and compiled.output_shardings.spec[0] == "data"


@needs_libtpu
def test_the_estimated_time_is_no_less_for_what_takes_none():
    """XLA takes a second off for each ConcatBitcast, which its TPU compiler writes where it prefetches."""
    compiled = hlotrace.jit(lambda x: jnp.sort(x, 0), in_shardings=NamedSharding(grid(), P("data"))).lower(
        struct(1024, 4096)).compile()
    assert 0 < compiled.cost_analysis()["optimal_seconds"] < 0.1


@needs_libtpu
def test_the_sharding_may_come_with_the_argument():
    mesh = grid()
    x = struct(64, 256, sharding=NamedSharding(mesh, P("data")), dtype=jnp.bfloat16)
    compiled = hlotrace.jit(lambda x: x.sum(0)).lower(x).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == 2 * 16 * 256
    assert compiled.output_shardings == NamedSharding(mesh, P())


@needs_libtpu
def test_shard_map_and_inspections_are_compiled_for_a_topology():
    mesh, seen = grid(), []

    def total(x):
        y = jnp.sin(x)
        hlotrace.debug.inspect_array_sharding(y, callback=seen.append)
        return hlotrace.shard_map(lambda part: lax.psum(part, "data"), mesh=mesh, in_specs=P("data"),
                                  out_specs=P())(y)
    x = struct(8, 128, sharding=NamedSharding(mesh, P("data")))
    compiled = hlotrace.jit(total).lower(x).compile()
    assert [s.spec for s in seen] == [P("data")]
    (found,) = collectives(compiled.as_text(), mesh)
    assert (found.kind, found.axes, found.shape) == ("all-reduce", ("data",), "f32[2,128]")


@needs_libtpu
def test_jit_compiles_for_one_chip():
    chip = SingleDeviceSharding(hlotrace.topologies.get_topology_desc("v5e:2x4").devices[3])
    compiled = hlotrace.jit(layer, in_shardings=chip).lower(struct(64, 256), struct(256, 512)).compile()
    assert "num_partitions" not in compiled.as_text().partition("\n")[0]
    assert compiled.memory_analysis().argument_size_in_bytes == 4 * (64 * 256 + 256 * 512)
    assert compiled.output_shardings == chip


@needs_libtpu
@pytest.mark.parametrize("row", [*linear_algebra.ROWS, *transforms.ROWS, *keys.ROWS],
                         ids=lambda row: row.name)
def test_linear_algebra_transforms_and_random_numbers_are_compiled_for_a_topology(row):
    chip = SingleDeviceSharding(hlotrace.topologies.get_topology_desc("v5e:2x2").devices[0])
    lowered = hlotrace.jit(row.fun, in_shardings=chip, out_shardings=chip).lower(*row.sample(row.base))
    if row.name == "schur":
        with pytest.raises(NotImplementedError,
                           match="the real Schur form is only implemented on the CPU; convert"):
            lowered.compile()
    else:
        assert "is_scheduled=true" in lowered.compile().as_text()


@needs_libtpu
@pytest.mark.parametrize("call", [
    lambda f, x: f.lower(x).compile()(x), lambda f, x: f(x), lambda f, x: f(jnp.asarray(x))],
    ids=["compiled", "jit", "jit of an array"])
@pytest.mark.parametrize("where", ["mesh", "chip"])
def test_what_is_compiled_for_a_topology_cannot_be_called(call, where):
    mesh = grid()
    sharding = NamedSharding(mesh, P("data")) if where == "mesh" else SingleDeviceSharding(mesh.devices[0, 0])
    jitted = hlotrace.jit(jnp.sin, in_shardings=sharding)
    count = {"mesh": 8, "chip": 1}[where]
    with pytest.raises(RuntimeError,
                       match=f"sin was compiled for {count} x TPU v5 lite of a topology, which are not here"):
        call(jitted, np.ones((8, 8), np.float32))


@needs_libtpu
def test_too_little_memory_is_told_with_both_sizes_and_what_to_do():
    sharding = NamedSharding(grid(), P("data"))

    def sorted_columns(x):
        return jnp.sort(x, axis=0)
    lowered = hlotrace.jit(sorted_columns, in_shardings=sharding).lower(struct(1 << 17, 1 << 17))
    with pytest.raises(hlotrace.errors.JaxRuntimeError, match=(
            r"RESOURCE_EXHAUSTED: sorted_columns does not fit: .* need 64.00 GiB of memory on each chip, and a TPU v5 lite "
            r"has 15.75 GiB. Split arrays over more mesh axes.*hlotrace.checkpoint")):
        lowered.compile()


@needs_libtpu
def test_a_mistake_in_compiler_options_is_told():
    lowered = hlotrace.jit(jnp.sin, in_shardings=NamedSharding(grid(), P("data"))).lower(struct(8))
    with pytest.raises(hlotrace.errors.JaxRuntimeError, match="No such compile option: 'no_such'"):
        lowered.compile(compiler_options={"no_such": 1})
