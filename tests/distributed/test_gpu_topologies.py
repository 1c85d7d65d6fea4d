"""Programs compiled for NVIDIA GPUs that are not here; all but the first errors need the wheels of `make
gpu`."""
import re

import pytest
from gpu_topologies import needs_wheels
from piece_programs import PARAMS, X, block

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import topologies
from hlotrace.core.config import override
from hlotrace.experimental import serialize_executable
from hlotrace.inspection.communication import collectives
from hlotrace.runtime.devices import chips, gpu_targets, plugins, topology as target
from hlotrace.runtime.executables import blocks
from hlotrace.sharding import NamedSharding, P, SingleDeviceSharding

PLUGIN = plugins.Plugin("cuda", "/plugin.so", "jax-cuda12-pjrt")


@pytest.mark.quick
@pytest.mark.parametrize("found, arguments, words", [
    ({}, {"topology_name": "h100:8"},
     "no plugin for 'cuda' is installed: pip install --no-deps \"jax-cuda12-pjrt=="),
    ({}, {"topology_name": "h200:8", "platform": "tpu"}, "'h200:8' is of platform 'cuda', not 'tpu'"),
    ({}, {"topology_name": "h101:8"},
     "no chip 'h101' is known; did you mean 'h100'. There are v2, v3, .* b200$"),
    ({"cuda": PLUGIN}, {"topology_name": "v5p:8", "platform": "gpu"},
     "'v5p:8' is of platform 'tpu', not 'cuda'"),
    ({"cuda": PLUGIN}, {"topology_name": "b20", "platform": "gpu"},
     "did you mean 'b200'. There are v100, .*target_config="),
    ({"cuda": PLUGIN}, {"platform": "cuda", "topology": "1x1x8"},
     "a topology of GPUs needs the name of one. Say \"h100:8\""),
    ({"cuda": PLUGIN}, {"topology_name": "2xl4:8"},
     'GPUs have hosts, not slices: say "l4:2x8" for 2 hosts of eight'),
    ({"cuda": PLUGIN}, {"topology_name": "l4", "num_slices": "2"},
     "cuda has no option 'num_slices'; it has target_config"),
    ({"cuda": PLUGIN}, {"topology_name": "l4", "topology": 8}, "topology is a text, not 8")])
def test_what_is_wrong_with_a_topology_is_said(monkeypatch, found, arguments, words):
    monkeypatch.setattr(plugins, "find", lambda: found)
    monkeypatch.setattr(plugins, "nvidia_gpus", list)
    with pytest.raises((ValueError, RuntimeError, TypeError), match=words):
        topologies.get_topology_desc(**arguments)


def struct(*shape, sharding, dtype="float32"):
    return hlotrace.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def mesh_of(name, shape=(4, 2), axes=("data", "model")):
    return topologies.get_topology_desc(name).make_mesh(shape, axes)


def layer(x, w):
    return jnp.tanh(x @ w).sum(1)


@needs_wheels
@pytest.mark.parametrize("name, count, hosts",
                         [("h100", 1, 1), ("H100:8", 8, 1), ("h100:2x8", 16, 2), ("l4:64x8", 512, 64)])
def test_devices_of_a_topology(name, count, hosts):
    topology = topologies.get_topology_desc(name)
    assert (len(topology.devices), topology.devices[-1].process_index + 1) == (count, hosts)
    assert topology.platform == "cuda" and topology.devices[0].compute_capability in ("9.0", "8.9")
    assert chips.of_device(topology.devices[0]).name == name.lower().partition(":")[0]


@needs_wheels
@pytest.mark.parametrize("chip", [chip for chip in chips.CHIPS.values() if chip.cuda],
                         ids=lambda chip: chip.name)
def test_a_program_is_compiled_for_each_gpu_of_the_table(chip):
    if chip.cuda.capability < (7, 5) and plugins.find()["cuda"].package == "jax-cuda13-pjrt":
        pytest.skip("CUDA 13 leaves out V100")
    mesh = mesh_of(f"{chip.name}:8")
    compiled = hlotrace.jit(layer).lower(struct(64, 256, sharding=NamedSharding(mesh, P("data", "model"))),
                                         struct(256, 512, sharding=NamedSharding(mesh, P("model")))).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == 4 * (16 * 128 + 128 * 512)
    assert "num_partitions=8" in compiled.as_text()
    assert [(found.kind, found.axes) for found in collectives(compiled.as_text(), mesh)][:1] in (
        [("all-reduce", ("model",))], [("reduce-scatter", ("model",))])
    with pytest.raises(RuntimeError,
                       match=f"layer was compiled for 8 x {re.escape(chip.kind)} of a topology"):
        compiled(jnp.ones((64, 256)), jnp.ones((256, 512)))


@needs_wheels
def test_jaxs_own_spelling():
    config = gpu_targets.target_config(chips.CHIPS["h200"], "12.9.0")
    topology = topologies.get_topology_desc(platform="cuda", target_config=config, topology="1x2x4")
    assert len(topology.devices) == 8 and topology.devices[0].device_kind == "NVIDIA H200"
    with pytest.raises(ValueError, match="cuda has no topology '8': INTERNAL: topology must be of shape"):
        topologies.get_topology_desc(platform="cuda", target_config=config, topology="8")
    with pytest.raises(ValueError, match="Failed to parse GpuTargetConfigProto"):
        topologies.get_topology_desc(platform="cuda", target_config="no {", topology="1x1x8")


@needs_wheels
def test_too_little_memory_is_told_with_both_sizes_and_what_to_do():
    def sorted_columns(x):
        return jnp.sort(x, axis=0)
    x = struct(1 << 18, 1 << 17, sharding=NamedSharding(mesh_of("l4:8"), P("data", "model")))
    with pytest.raises(hlotrace.errors.JaxRuntimeError, match=(
            r"RESOURCE_EXHAUSTED: sorted_columns does not fit: its arguments, results and temporaries need \d+.00 GiB of "
            r"memory on each chip, and a NVIDIA L4 has 22.20 GiB. Split arrays over more mesh axes.*hlotrace.checkpoint")):
        hlotrace.jit(sorted_columns).lower(x).compile()
    hlotrace.jit(jnp.sin, donate_argnums=0).lower(struct(1 << 32, sharding=SingleDeviceSharding(
        topologies.get_topology_desc("l4").devices[0]))).compile()     # 16 GiB, in place


@needs_wheels
@pytest.mark.parametrize("put", [
    lambda where: hlotrace.device_put(jnp.ones(8), where), lambda where: jnp.zeros(8, device=where),
    lambda where: hlotrace.make_array_from_callback((8,), where, lambda index: jnp.ones(8)[index])])
def test_no_array_is_on_chips_that_are_not_here(put):
    with pytest.raises(RuntimeError,
                       match=r"H100 .* is a device of a topology, which is not here: .*ShapeDtypeStruct"):
        put(NamedSharding(mesh_of("h100:8"), P("data")))


@needs_wheels
def test_cost_counts_what_libraries_do():
    """A product of real numbers is a kernel of XLA's own, one of complex numbers a library's; so is a
    factorization."""
    device = SingleDeviceSharding(topologies.get_topology_desc("h100").devices[0])

    def flops(function, *types):
        return hlotrace.jit(function).lower(*types).compile().cost_analysis()["flops"]
    real, complex_ = (struct(256, 256, sharding=device, dtype=dtype) for dtype in ("float32", "complex64"))
    assert flops(jnp.matmul, real, real) == pytest.approx(2 * 256 ** 3, rel=.01)
    assert flops(jnp.matmul, complex_, complex_) == pytest.approx(8 * 256 ** 3, rel=.01)
    assert flops(jnp.linalg.qr, real) == pytest.approx(2 * 4 * 256 ** 3 / 3, rel=.02)


chips_of_both = pytest.mark.parametrize("name", [
    pytest.param("h100:8", marks=needs_wheels),
    pytest.param("v5e:2x4", marks=pytest.mark.skipif("tpu" not in plugins.find(),
                                                     reason="no libtpu wheel is installed"))])


@chips_of_both
@pytest.mark.parametrize("over", ["a mesh", "a chip"])
def test_programs_are_compiled_in_blocks_where_the_option_says_so(name, over, monkeypatch):
    """With the memory and the costs of all pieces; numbers that differ from block to block are operands."""
    monkeypatch.setattr(blocks, "LIGHTEST_ON_CHIP", 1)
    topology = topologies.get_topology_desc(name)
    mesh = topology.make_mesh((4, 2), ("data", "model"))

    def where(*spec):
        return NamedSharding(mesh, P(*spec)) if over == "a mesh" else SingleDeviceSharding(topology.devices[0])
    params = [{"w": struct(64, 64, sharding=where(None, "model")), "b": struct(64, sharding=where("model")),
               "scale": struct(64, sharding=where("model"))}] * 12

    def loss(params, x):
        for i, p in enumerate(params):
            x = block(p, x) + hlotrace.random.normal(hlotrace.random.fold_in(hlotrace.random.key(0), i), x.shape)
        return (x * x).mean()

    def step(params, x):
        return hlotrace.tree.map(lambda p, g: p - 0.1 * g, params, hlotrace.grad(loss)(params, x))
    lowered = hlotrace.jit(step, donate_argnums=0).lower(params, struct(32, 64, sharding=where("data")))
    whole = lowered.compile()
    with override("hlotrace_blocks_on_chips", True):
        compiled = lowered.compile()
    assert len(compiled.runtime_executable()) < 12 and len(re.findall(": runs 1[12] times", compiled.as_text())) >= 2
    assert compiled._executable.steps.constants
    ours, theirs = compiled.cost_analysis(), whole.cost_analysis()
    assert ours["flops"] == pytest.approx(theirs["flops"], rel=.5) and ours["bytes accessed"] > 0
    assert name.startswith("h100") or 0 < ours["optimal_seconds"] < 1e-2
    ours, theirs = compiled.memory_analysis(), whole.memory_analysis()
    assert ours.temp_size_in_bytes > 0 < ours.alias_size_in_bytes
    assert ours.argument_size_in_bytes <= theirs.argument_size_in_bytes
    with pytest.raises(RuntimeError, match="step was compiled for . x .* of a topology, which are not here"):
        compiled(PARAMS, X)
    parts = serialize_executable.serialize(compiled)
    with pytest.raises(ValueError, match="load the program where its chips are"):
        serialize_executable.deserialize_and_load(*parts, execution_devices=topology.devices)


@chips_of_both
def test_what_all_pieces_need_has_to_fit(name):
    device = topologies.get_topology_desc(name).devices[0]
    target.check_memory("f", device, blocks.Memory(1 << 33, 1 << 33, 1 << 30, 0, 1 << 33))
    with pytest.raises(hlotrace.errors.JaxRuntimeError, match="f does not fit: .* need 128.00 GiB of memory on"):
        target.check_memory("f", device, blocks.Memory(1 << 36, 1 << 36, 0, 0))


@chips_of_both
def test_what_is_compiled_for_chips_that_are_not_here_is_serialized_for_where_they_are(name):
    topology = topologies.get_topology_desc(name)
    x = struct(64, 256, sharding=NamedSharding(topology.make_mesh((8,), ("d",)), P("d")))
    parts = serialize_executable.serialize(hlotrace.jit(jnp.sin).lower(x).compile())
    with pytest.raises(ValueError,
                       match=f"was compiled for {topology.platform}, and .* is a device of cpu: give backend"):
        serialize_executable.deserialize_and_load(*parts)
    with pytest.raises(ValueError,
                       match="is a device of a topology, which is not here: load the program where its chips are"):
        serialize_executable.deserialize_and_load(*parts, execution_devices=topology.devices)
