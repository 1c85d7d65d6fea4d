"""What is written of kernels that Mosaic compiles, read by jaxlib's dialect of it, and compiled where libtpu is; what is
refused."""
import re

import numpy as np
import pytest
from mosaic_kernels import ANY, BF16, CASES, F32, I32, TILE, Block, added, as_much_as_there_is, by_cores, like

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import pipeline, tpu, tpu_sc
from hlotrace.experimental.pallas.compiled import mosaic_call
from hlotrace.runtime.devices import plugins
from hlotrace.runtime.mlir import mosaic
from hlotrace.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding


def kernel_of(function, *args):
    """The one kernel that a function calls."""
    eqn, = [e for e in jax.make_jaxpr(function)(*args).eqns if str(e.primitive) == "pallas_call"]
    return eqn.params["kernel"]


def text_of(function, *args):
    """The text of the one kernel that a function calls, which is read and verified."""
    text, _ = mosaic_call.text(kernel_of(function, *args))
    assert mosaic.parsed(text).operation.verify()
    return text


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_a_program_of_mosaics_dialects(name):
    words, kernel, out, args, options = CASES[name]
    text = text_of(pl.pallas_call(kernel, out, **options), *args)
    for word in ("tpu.vector_store tpu.memref" if not words else words).split(" = ")[0].split():
        assert word in text, f"{word}\n{text}"


def test_the_call_of_a_kernel():
    words, kernel, out, args, options = CASES["product_in_blocks"]
    options = {**options, "cost_estimate": pl.CostEstimate(2 * 256**3, 0, 3 * 256**2 * 2), "compiler_params": tpu.CompilerParams(
        vmem_limit_bytes=2**24, has_side_effects=True, disable_bounds_checks=True, allow_input_fusion=[True, False],
        shape_invariant_numerics=False, flags={"A": True, "B": 3, "C": 1.5})}
    text = jax.jit(pl.pallas_call(kernel, out, **options)).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
    call, = [line for line in text.splitlines() if "tpu_custom_call" in line]
    for words in ("has_side_effect = true", 'kernel_name = "product_in_blocks"', "operand_layouts = [dense<[1, 0]>",
                  r"\22flops\22: 33554432", r"\22serialization_format\22: 1", r"\22allow_input_fusion\22: [true, false]",
                  r"\22scoped_memory_configs\22: [{\22memory_space\22: 1, \22offset\22: 0, \22size\22: 16777216}]",
                  r"\22disable_bounds_checks\22: true", r"\22shape_invariant_numerics\22: false",
                  r"{\22flag_type\22: \22A\22, \22value\22: {\22boolean_value\22: true}}", r"{\22integer_value\22: 3}",
                  r"{\22double_value\22: 1.5}"):
        assert words in call
    # a bool is a whole number in memory
    words, kernel, out, args, options = CASES["a result of bools"]
    text = jax.jit(pl.pallas_call(kernel, out)).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
    assert "-> tensor<16x128xi32>" in text and "(tensor<16x128xi32>) -> tensor<16x128xi1>" in text


def test_vmap_is_one_more_axis_of_the_grid():
    words, kernel, out, args, options = CASES["product_in_blocks"]
    text = text_of(jax.vmap(pl.pallas_call(kernel, out, **options), in_axes=(0, None)), like(3, 256, 256, dtype=BF16), args[1])
    assert "iteration_bounds = array<i64: 3, 2, 2, 2>" in text and text.count("memref<1x128x128xbf16") > 2


def test_a_kernel_for_cores_has_them_in_its_grid():
    for cores, how in (1, "arbitrary"), (2, "core_parallel"):
        mesh = tpu.create_tensorcore_mesh("core", num_cores=cores)
        text = text_of(pl.kernel(by_cores, like(8 * cores, 128), mesh=mesh), like(8 * cores, 128))
        assert f"iteration_bounds = array<i64: {cores}>" in text and f"<{how}>]" in text
    with pytest.raises(NotImplementedError, match="pallas.kernel of by_cores: kernels for SparseCores are not compiled"):
        pl.kernel(by_cores, like(*TILE), mesh=tpu_sc.ScalarSubcoreMesh(axis_name="core"))(jnp.ones(TILE))
    with pytest.raises(NotImplementedError, match="pallas.core_map is not compiled"):
        pl.core_map(mesh)(lambda: None)


@pytest.mark.parametrize("going_on, step, counted", [
    (lambda i, n: i < n, 1, True), (lambda i, n: i < n, 2, False), (lambda i, n: i <= n, 1, False),
    (lambda i, n: i < n + i // 8, 1, False)])
def test_a_loop_that_counts_is_one_of_the_compilers(going_on, step, counted):
    def kernel(n, x, o):
        def body(carry):
            i, sums = carry
            return i + step, sums + x[i]
        first, last = n[0], n[1]
        i, sums = lax.while_loop(lambda carry: going_on(carry[0], last), body, (first, jnp.zeros(128)))
        o[...] = sums[None] * i.astype(F32)
    call = pl.pallas_call(kernel, like(1, 128), in_specs=[Block(memory_space=tpu.SMEM), Block(memory_space=tpu.VMEM)])
    text = text_of(call, like(2, dtype=I32), like(*TILE))
    assert ("scf.for" in text, "scf.while" in text) == (counted, not counted)
    assert not counted or "arith.maxsi" in text         # what the counter is afterwards


def test_a_size_of_the_grid_may_be_traced():
    def doubled(n, scale, x):
        def kernel(scale, none, x, o):
            assert none is None
            o[...] = x[...] * scale[pl.num_programs(0)]
        row = Block((8, 128), lambda i, j, scale, none: (pl.num_programs(0) - 1 - i, 0))
        spec = tpu.PrefetchScalarGridSpec(2, grid=(n, 2), in_specs=[row], out_specs=row)
        return pl.pallas_call(kernel, like(32, 128), grid_spec=spec, input_output_aliases={1: 0})(scale, None, x)
    types = like(dtype=I32), like(5, dtype=I32), like(32, 128)
    text = jax.jit(doubled).trace(*types).lower(lowering_platforms=("tpu",)).as_text()
    call, = [line for line in text.splitlines() if "tpu_custom_call" in line]
    assert "(tensor<i32>, tensor<5xi32>, tensor<32x128xf32>)" in call and "operand_index = 2" in call
    text, _ = mosaic_call.text(kernel_of(doubled, *types))
    assert f"iteration_bounds = array<i64: {-2**63}, 2>" in text and "tpu.iteration_bound" in text
    many = kernel_of(jax.vmap(doubled, in_axes=(None, None, 0)), *types[:2], like(3, 32, 128))
    assert many.grid == (3, None, 2) and "dim = 1 : i32" in mosaic_call.text(many)[0]


def test_what_tpus_are():
    info = tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5E, 1)
    assert (info.generation, info.num_lanes, info.num_sublanes, info.mxu_column_size) == (5, 128, 8, 128)
    assert info.is_lite and not info.is_megacore and not info.is_split_chip
    assert [info.get_sublane_tiling(d) for d in ("float32", BF16, "int8", "int4")] == [8, 16, 32, 64]
    assert info.is_matmul_supported(BF16, F32) and info.is_matmul_supported("int8", "int4")
    assert not info.is_matmul_supported("float8_e5m2", BF16) and not info.is_matmul_supported("int8", BF16)
    both = tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V4, 2)
    assert both.is_megacore and tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V4, 1).is_split_chip
    assert (both.hbm_capacity_bytes, both.bf16_ops_per_second, info.int4_ops_per_second) == (2**34, 137.5e12, 786e12)
    for version in {*tpu.ChipVersion} - {tpu.ChipVersion.TPU_V4I}:
        assert isinstance(tpu.get_tpu_info_for_chip(version, 1), tpu.TpuInfo)
    with pytest.raises(ValueError, match="no figures are known of a TPU v4i"):
        tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V4I, 1)
    with pytest.raises(ValueError, match="devices of a TPU v5e have 1 TensorCore, not 2"):
        tpu.get_tpu_info_for_chip(tpu.ChipVersion.TPU_V5E, 2)
    with pytest.raises(ValueError, match="the default device, a 'cpu', is no TPU that is known"):
        tpu.get_tpu_info()


def exchange(x, o, sent, received):
    right = lax.rem(lax.axis_index("x") + 1, 4)
    copy = tpu.make_async_remote_copy(x, o, sent, received, device_id=(right,))
    copy.start()
    copy.wait()


def meeting(x, o, sent, received):
    met = tpu.get_barrier_semaphore()
    pl.semaphore_signal(met, device_id={"x": lax.axis_index("x") ^ 1})
    pl.semaphore_wait(met)
    exchange(x, o, sent, received)


def over_devices(mesh, kernel, **options):
    call = pl.pallas_call(kernel, like(8, 128), in_specs=[ANY], out_specs=ANY, scratch_shapes=[tpu.SemaphoreType.DMA] * 2,
                          **options)
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))


def test_devices_meet():
    mesh = jax.sharding.AbstractMesh((4,), ("x",))
    for kernel, options, words in (
            (exchange, {}, r"\22has_communication\22: true"),
            (meeting, {"compiler_params": tpu.CompilerParams(collective_id=3)}, r"\22collective_id\22: 3")):
        lowered = over_devices(mesh, kernel, **options).trace(like(32, 128)).lower(lowering_platforms=("tpu",))
        assert words in lowered.as_text()
    with pytest.raises(ValueError, match=re.escape("get_barrier_semaphore() needs compiler_params=tpu.CompilerParams("
                                                   "collective_id=...)")):
        over_devices(mesh, meeting).trace(like(32, 128)).lower(lowering_platforms=("tpu",)).as_text()
    with pytest.raises(NotImplementedError, match="the place of a device along an axis outside of jax.shard_map"):
        mosaic_call.config(kernel_of(jax.vmap(pl.pallas_call(
            lambda x, o: o.__setitem__(..., x[...] * lax.axis_index("x")), like(*TILE)), axis_name="x"), like(4, *TILE)))


def test_blocks_of_a_pipeline_are_copied_while_others_are_used(monkeypatch):
    """The pipeline for compiled kernels, in interpret mode, where its copies and semaphores are checked."""
    x, y = np.arange(32 * 128, dtype=F32).reshape(32, 128), np.ones((2, 32, 128), F32)
    bounded = np.full((32, 128), -1, F32)
    bounded[:8], bounded[16:24] = x[16:24], x[:8] + 1
    for run in pipeline._run_in_turn, pipeline._run_buffered:
        monkeypatch.setattr(pipeline, "_run_in_turn", run)
        found = pl.pallas_call(added, like(32, 128), in_specs=[ANY, ANY], out_specs=ANY, interpret=True)(x, y)
        np.testing.assert_array_equal(found, 2 * x + 2)
        if run is pipeline._run_buffered:
            continue        # of what a copy of a traced size has no interpretation
        found = pl.pallas_call(as_much_as_there_is, like(32, 128), interpret=True, out_specs=ANY)(jnp.array([8]), x)
        np.testing.assert_array_equal(jnp.where(jnp.isnan(found), -1, found), bounded)


@pytest.mark.parametrize("given, error, words", [
    ({"collective_id": 1}, ValueError, "collective_id=1 is for kernels with get_barrier_semaphore()"),
    ({"flags": {"C": "x"}}, ValueError, "the flag C is a bool, an int or a float, not 'x'"),
    ({"serialization_format": 2}, NotImplementedError, "serialization_format=2"),
    ({"use_tc_tiling_on_sc": True}, NotImplementedError, "use_tc_tiling_on_sc=True")])
def test_options_that_do_not_go(given, error, words):
    _, kernel, out, args, _ = CASES["softmax"]
    call = pl.pallas_call(kernel, out, compiler_params=tpu.CompilerParams(**given))
    with pytest.raises(error, match=re.escape(words)):
        mosaic_call.config(kernel_of(call, *args))


def test_loops_are_unrolled_as_asked():
    for length, unroll, loops, steps in (5, 1, 1, 1), (5, 2, 1, 3), (5, True, 0, 5), (1, 1, 0, 1), (4, 2, 1, 2), (0, 1, 1, 1):
        def kernel(x, o, length=length, unroll=unroll):
            o[...] = lax.fori_loop(0, length, lambda i, c: c * 2 + i, x[...], unroll=unroll)
        text = text_of(pl.pallas_call(kernel, like(*TILE)), like(*TILE))
        assert (text.count("scf.for"), text.count("arith.mulf")) == (loops, steps), (length, unroll)


@pytest.mark.parametrize("kernel, dtype, options, error, words", [
    (lambda x, o: o.__setitem__(..., jnp.sort(x[...])), F32, {}, NotImplementedError,
     "sort, tests/experimental/pallas/test_mosaic.py:"),
    (lambda x, o: o.__setitem__(..., x[jnp.array([0] * 16)]), F32, {}, NotImplementedError, "an array in the index of a Ref"),
    (lambda x, o: o.__setitem__(..., x[::-1]), F32, {}, NotImplementedError, "an index that goes backwards"),
    (lambda x, o: o.__setitem__(..., x[...]), "float8_e4m3b11fnuz", {}, NotImplementedError, "there are no values of float8"),
    (lambda x, o: None, F32, {"in_specs": [Block((4, 128), lambda: (0, 0))]}, ValueError,
     "the blocks of input 0, (4, 128) of an array of shape (16, 128): on a TPU the last two sizes are multiples of 8 and 128"),
    (lambda x, o: o.__setitem__(..., x[...]), F32, {"in_specs": [Block(memory_space=tpu.SMEM)]}, NotImplementedError,
     "an array of a Ref in SMEM, of which single elements are read"),
    (lambda x, o: None, F32, {"grid": (2,), "compiler_params": tpu.CompilerParams(dimension_semantics=("serial",))},
     ValueError, "dimension_semantics=['serial'] must have one of arbitrary, core_parallel, parallel, subcore_parallel"),
    (lambda x, o, s: pl.semaphore_wait(s, decrement=False), F32, {"scratch_shapes": [tpu.SemaphoreType.REGULAR]},
     NotImplementedError, "semaphore_wait(decrement=False) in a kernel that is compiled"),
    (lambda x, o, s: tpu.async_copy(x, o, s, add=True), F32, {"scratch_shapes": [tpu.SemaphoreType.DMA]},
     NotImplementedError, "add=True where a kernel is compiled"),
])
def test_what_is_refused(kernel, dtype, options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        text_of(pl.pallas_call(kernel, like(*TILE, dtype=dtype), **options), like(*TILE, dtype=dtype))


def test_64_bits_are_refused():
    with jax.enable_x64(True), pytest.raises(NotImplementedError, match="values of float64, of 64 bits, which TPUs do not"):
        text_of(pl.pallas_call(lambda x, o: o.__setitem__(..., x[...]), like(*TILE, dtype="float64")),
                like(*TILE, dtype="float64"))


needs_libtpu = pytest.mark.skipif("tpu" not in plugins.find(), reason="no libtpu wheel is installed")


@needs_libtpu
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_compiled(name):
    words, kernel, out, args, options = CASES[name]
    place = SingleDeviceSharding(jax.topologies.get_topology_desc("v5e:2x2").devices[0])
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place) for x in args]
    call = jax.jit(pl.pallas_call(kernel, out, **options), in_shardings=None if types else (), out_shardings=place)
    assert "tpu_custom_call" in call.lower(*types).compile().as_text()


@needs_libtpu
def test_kernels_that_meet_are_compiled():
    mesh = jax.topologies.get_topology_desc("v5e:2x2").make_mesh((4,), ("x",))
    x = jax.ShapeDtypeStruct((32, 128), F32, sharding=NamedSharding(mesh, P("x")))
    for kernel, params in (exchange, None), (meeting, tpu.CompilerParams(collective_id=1)):
        over_devices(mesh, kernel, compiler_params=params).lower(x).compile()
