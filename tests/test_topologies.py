"""Programs compiled for TPUs that are not here; all but the errors need a libtpu wheel."""

import pytest

import hlotrace
from hlotrace.runtime import plugins

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
