"""Kernels for TPUs in interpret mode: copies, semaphores, other devices, pipelines, cores, random bits."""
import re
from functools import partial

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import state
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import tpu, tpu_sc
from hlotrace.sharding import PartitionSpec as P

F32 = jnp.float32
DMA = tpu.SemaphoreType.DMA
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
call = partial(pl.pallas_call, interpret=True)


def like(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# --- copies ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("interpret", [True, tpu.InterpretParams()])
def test_a_copy_is_fetched_while_the_one_before_is_used(interpret):
    def kernel(x, o, buffer, sems):
        def fetch(i):
            return tpu.make_async_copy(x.at[i], buffer.at[i % 2], sems.at[i % 2])
        fetch(0).start()

        @pl.loop(0, 4)
        def _(i):
            @pl.when(i < 3)
            def _():
                fetch(i + 1).start()
            fetch(i).wait()
            o[i] = buffer[i % 2] + 1
    x = numbers(4, 2, 3)
    f = pl.pallas_call(kernel, like(4, 2, 3), in_specs=[WHOLE], interpret=interpret,
                       scratch_shapes=[tpu.VMEM((2, 2, 3), F32), DMA((2,))])
    np.testing.assert_array_equal(f(x), x + 1)
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([x, -x])), np.stack([x, -x]) + 1)
    np.testing.assert_array_equal(jax.grad(lambda x: (f(x) ** 2).sum())(x), 2 * (x + 1))


def test_copies_that_add_and_scratch_of_a_part_of_a_kernel():
    def kernel(x, o):
        @pl.with_scoped(tpu.VMEM((3,), F32), sem=DMA)
        def double(rows, memory, sem):
            tpu.async_copy(rows, memory, sem).wait()
            tpu.async_copy(rows, memory, sem, add=True).wait()
            tpu.sync_copy((memory,), (o,))
        double(x)
        tpu.sync_copy(x, o, add=True)
    np.testing.assert_array_equal(call(kernel, like(3))(numbers(3)), 3 * numbers(3))


def test_semaphores_count():
    def kernel(o, sem):
        pl.semaphore_signal(sem.at[1], 3)
        o[0] = pl.semaphore_read(sem.at[1])
        pl.semaphore_wait(sem.at[1], 2)
        o[1] = pl.semaphore_read(sem.at[1])
        pl.semaphore_wait(sem.at[1], decrement=False)
        o[2] = pl.semaphore_read(sem.at[1])
    assert call(kernel, like(3, dtype=jnp.int32),
                scratch_shapes=[tpu.SemaphoreType.REGULAR((2,))])().tolist() == [3, 1, 1]
    assert DMA.dtype is tpu.dma_semaphore and tpu.SemaphoreType.BARRIER.dtype is pl.barrier_semaphore
    assert issubclass(tpu.dma_semaphore, pl.semaphore)


def begins(act, *scratch, dtype=F32):
    """A kernel that does this with its Refs, as a function of nothing."""
    def kernel(x, o, *scratch):
        act(x, o, *scratch)
    return partial(call(kernel, like(4, dtype=dtype), scratch_shapes=scratch), numbers(4))


@pytest.mark.parametrize("run, error, words", [
    (begins(lambda x, o: tpu.sync_copy(x.at[:2], o)), ValueError, "from shape (2,) to shape (4,)"),
    (begins(lambda x, o: tpu.sync_copy(x, o), dtype=jnp.int32), TypeError,
     "from float32 to int32"),
    (begins(lambda x, o, s: tpu.async_copy(x, o, s), DMA((2,))), ValueError, "name one"),
    (begins(lambda x, o, s: tpu.async_remote_copy(x, o, s, s, 0), DMA), ValueError, "jax.shard_map"),
    (begins(lambda x, o, s: tpu.async_copy(x, o, s).wait_send(), DMA), ValueError, "use wait()"),
    (begins(lambda x, o, s: pl.semaphore_signal(s, core_index=1), DMA), NotImplementedError, "core_index"),
    (begins(lambda x, o, s: tpu.make_async_copy(x, o, s).wait(), DMA), ValueError,
     "waits until a semaphore holds 16, and it holds 0"),
    (begins(lambda x, o, s: pl.semaphore_wait(s, 2), DMA), ValueError, "holds 2, and it holds 0"),
    (lambda: tpu.sync_copy(jax.new_ref(numbers(2)), jax.new_ref(numbers(2))), ValueError, "is for kernels")])
def test_faulty_copies(run, error, words):
    with pytest.raises(error, match=re.escape(words)):
        run()


# --- other devices --------------------------------------------------------------------------------

MESHES = {"x": (4,), "ab": (2, 2)}


def over_devices(kernel, out, names="x", **how):
    """A kernel on each of four devices, with rows of an array and semaphores to send and receive."""
    mesh = jax.make_mesh(MESHES[names], tuple(names))
    how = {"scratch_shapes": [DMA, DMA], **how}
    f = call(kernel, out, in_specs=[WHOLE], out_specs=WHOLE, **how)
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P(tuple(names)), out_specs=P(tuple(names)),
                                 check_vma=False))


@pytest.mark.parametrize("names, target, order", [
    ("x", lambda x: ((x + 1) % 4, "mesh"), [3, 0, 1, 2]),
    ("x", lambda x: (((x + 1) % 4,), "mesh"), [3, 0, 1, 2]),
    ("x", lambda x: (3 - x, "logical"), [3, 2, 1, 0]),
    ("ab", lambda a, b: ((1 - a, b), "mesh"), [2, 3, 0, 1]),
    ("ab", lambda a, b: ({"b": 1 - b}, "mesh"), [1, 0, 3, 2]),
    ("ab", lambda a, b: (2 * b + a, "logical"), [0, 2, 1, 3])])
def test_copies_to_other_devices(names, target, order):
    def kernel(x, o, sent, received):
        to, kind = target(*map(lax.axis_index, names))
        barrier = tpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, device_id=to, device_id_type=pl.DeviceIdType(kind))
        pl.semaphore_wait(barrier)
        tpu.async_remote_copy(x, o, sent, received, to, tpu.DeviceIdType(kind)).wait()
    x = numbers(8, 3)
    np.testing.assert_array_equal(over_devices(kernel, like(2, 3), names)(x),
                                  x.reshape(4, 2, 3)[order].reshape(8, 3))


def test_a_ring_passes_rows_on_until_all_devices_have_all():
    def kernel(x, o, sem, sent, received):
        me = lax.axis_index("x")
        slot = (me - pl.program_id(0)) % 4

        @pl.when(pl.program_id(0) == 0)
        def _():
            tpu.async_copy(x, o.at[me], sem).wait()
        tpu.async_remote_copy(o.at[slot], o.at[slot], sent, received.at[1], (me + 1) % 4).wait()
    x = numbers(4, 3)
    gather = over_devices(kernel, like(4, 1, 3), grid=(3,), scratch_shapes=[DMA, DMA, DMA((2,))])
    np.testing.assert_array_equal(gather(x), np.tile(x[:, None], (4, 1, 1)))


def test_faulty_devices():
    def kernel(to, kind, x, o, sent, received):
        tpu.make_async_remote_copy(x, o, sent, received, to, kind).start()
    for to, kind, words in [((0, 0), "mesh", "device_id has 2 places"), ({"y": 0}, "mesh", "names ['y']"),
                            ((0,), "logical", "one number")]:
        with pytest.raises(ValueError, match=re.escape(words)):
            over_devices(partial(kernel, to, tpu.DeviceIdType(kind)), like(2, 3))(numbers(8, 3))

    def waits(x, o, sent, received):
        tpu.make_async_remote_copy(x, o, sent, received, 0).wait_recv()
    with pytest.raises(ValueError, match="at mapped index 3: .*holds 24, and it holds 0"):
        over_devices(waits, like(2, 3))(numbers(8, 3))


# --- pipelines ------------------------------------------------------------------------------------

def piped(body, grid, ins, outs, out, *args, **how):
    def kernel(*refs):
        tpu.emit_pipeline(body, grid=grid, in_specs=ins, out_specs=outs, **how)(*refs)
    return call(kernel, out, in_specs=[WHOLE] * len(args), out_specs=WHOLE)(*args)


def test_a_product_by_blocks_in_a_pipeline():
    def kernel(x, y, o, total):
        def body(a, b, c, total):
            @pl.when(pl.program_id(2) == 0)
            def _():
                total[...] = jnp.zeros_like(total)
            total[...] += a[...] @ b[...]

            @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
            def _():
                c[...] = total[...]
        tpu.emit_pipeline(body, grid=(2, 2, 2), out_specs=pl.BlockSpec((2, 3), lambda i, j, k: (i, j)),
                          in_specs=(pl.BlockSpec((2, 4), lambda i, j, k: (i, k)),
                                    pl.BlockSpec((4, 3), lambda i, j, k: (k, j))))(x, y, o, scratches=(total,))
    x, y = numbers(4, 8), numbers(8, 6)
    found = call(kernel, like(4, 6), in_specs=[WHOLE] * 2, out_specs=WHOLE,
                 scratch_shapes=[tpu.VMEM((2, 3), F32)])(x, y)
    np.testing.assert_array_equal(found, x @ y)


def test_pipelines_over_ends_whole_refs_and_places():
    by_2 = pl.BlockSpec((2,), lambda i: (i,))

    def add(at, a, table, c):
        c[...] = a[...] + table[at[0]]
    found = piped(add, (3,), [by_2, pl.BlockSpec(memory_space=tpu.HBM)], [by_2], like(5), numbers(5),
                  10 * numbers(3), _explicit_indices=True)
    assert found.tolist() == [0, 1, 12, 13, 24]

    def kernel(count, x, o):
        emit, allocations = tpu.emit_pipeline_with_allocations(
            lambda a, c: c.__setitem__(..., a[...] * 2), grid=(count[0],), in_specs=[by_2], out_specs=[by_2])
        emit(x, o, allocations=allocations(x, o))
    found = call(kernel, like(6), input_output_aliases={1: 0})(np.int32([2]), numbers(6))
    assert found.tolist() == [0, 2, 4, 6, 4, 5]
    with pytest.raises(ValueError, match="2 Refs are given for 1 in_specs and 0 out_specs"):
        piped(add, (3,), [by_2], [], like(5), numbers(5))


# --- cores ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("rows", [8, 6])
def test_cores_share_a_pipeline(rows):
    @partial(pl.kernel, out_type=like(rows, 3), mesh=tpu.TensorCoreMesh(axis_name="core", num_cores=2),
             interpret=True)
    def double(x, o):
        def body(a, c):
            c[...] = a[...] * 2
        spec = pl.BlockSpec((2, 3), lambda i: (i, 0))
        tpu.emit_pipeline(body, grid=(rows // 2,), in_specs=[spec], out_specs=[spec], core_axis_name="core",
                          dimension_semantics=(tpu.PARALLEL,))(x, o)
    np.testing.assert_array_equal(double(numbers(rows, 3)), 2 * numbers(rows, 3))


def test_each_core_has_its_own_scratch():
    mesh = tpu_sc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=3)

    @jax.jit
    def f(x):
        def cores(refs):
            @pl.core_map(mesh, interpret=True, scratch_shapes={"held": tpu.SMEM((), jnp.int32)})
            def _(held):
                held[...] = lax.axis_index(("c", "s")) + lax.axis_size("s")
                refs[1][lax.axis_index("c"), lax.axis_index("s")] = held[...] + refs[0][...]

            @pl.core_map(tpu_sc.ScalarSubcoreMesh(axis_name="core"), interpret=tpu.InterpretParams())
            def _():
                @tpu.run_on_first_core("core")
                def _():
                    refs[0][...] += 100
        return pl.run_state(cores)((x, jnp.zeros((2, 3), int)))
    once, each = f(1)
    assert once == 101 and each.tolist() == [[4, 5, 6], [7, 8, 9]]
    one = tpu.create_tensorcore_mesh("core")
    pl.kernel(lambda o: tpu.core_barrier(None, core_axis_name="core"), like(2), mesh=one, interpret=True)()
    assert one.size == 1


def test_what_cores_cannot_do():
    mesh = tpu.create_tensorcore_mesh("core", num_cores=2)
    for body, error, words in [(lambda o: lax.psum(1, "core"), ValueError, "of the cores of a device"),
                               (lambda o: tpu.core_barrier(None, core_axis_name="core"), NotImplementedError,
                                "one core after another"),
                               (lambda o: tpu.emit_pipeline(lambda: None, grid=(2,), core_axis_name="core")(),
                                ValueError, "dimension_semantics")]:
        with pytest.raises(error, match=words):
            pl.kernel(body, like(2), mesh=mesh, interpret=True)()


def test_a_copy_of_a_traced_size_is_not_interpreted():
    def kernel(n, x, o, ready):
        tpu.make_async_copy(x.at[pl.ds(0, n[0])], o.at[pl.ds(0, n[0])], ready)
    with pytest.raises(NotImplementedError, match="in interpret mode a size is an int"):
        pl.pallas_call(kernel, like(2), scratch_shapes=[tpu.SemaphoreType.DMA], interpret=True)(jnp.array([1]), jnp.ones(2))


# --- how a kernel is interpreted ------------------------------------------------------------------

def test_interpret_params():
    def kernel(x, o):
        o[0] = x[pl.program_id(0) + 3]
    run = partial(pl.pallas_call, kernel, like(2), grid=(1,))
    params = tpu.InterpretParams
    assert np.isnan(run(interpret=params(out_of_bounds_reads="uninitialized"))(numbers(4))).tolist() == [0, 1]
    assert run(interpret=params(uninitialized_memory="zero"))(numbers(4)).tolist() == [3, 0]
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        run(interpret=params())(numbers(3))
    with pytest.raises(NotImplementedError, match="detect_races=True"):
        params(detect_races=True)
    with pytest.raises(ValueError, match="one of"):
        params(uninitialized_memory="one")
    with pytest.raises(NotImplementedError, match="interpret=2"):
        run(interpret=2)(numbers(4))
    f, before = jax.jit(run()), state.trace_key
    with tpu.force_tpu_interpret_mode(params(uninitialized_memory="zero")):
        assert f(numbers(4)).tolist() == [3, 0]
    with pytest.raises(ValueError, match="interpret"):
        f(numbers(4))
    try:
        tpu.set_tpu_interpret_mode()
        assert f(numbers(4))[0] == 3
    finally:
        tpu.reset_tpu_interpret_mode_state()
        tpu.set_tpu_interpret_mode(None)
    assert state.trace_key is before and not state.blocks


def test_checks_of_kernels():
    def kernel(x, o):
        pl.delay(10)
        pl.debug_check(x[0] > 0, "x[0] is {no} number above 0")
        o[...] = x[...]
    f = call(kernel, like(2))
    assert f(numbers(2)).tolist() == [0, 1]
    with pl.enable_debug_checks(True):
        assert f(numbers(2) + 1).tolist() == [1, 2]
        with pytest.raises(ValueError, match=re.escape("x[0] is {no} number above 0")):
            f(numbers(2))


# --- values ---------------------------------------------------------------------------------------

def test_rolled_and_split():
    x = numbers(3, 4)
    np.testing.assert_array_equal(tpu.roll(x, 5, 1), np.roll(x, 5, 1))
    np.testing.assert_array_equal(tpu.roll(x, 1, 1, stride=2, stride_axis=0),
                                  [np.roll(row, 1 + 2 * i) for i, row in enumerate(x)])
    np.testing.assert_array_equal(tpu.einshape("a(bc)->b(ca)", x, c=2),
                                  x.reshape(3, 2, 2).transpose(1, 2, 0).reshape(2, 6))
    for options, words in [({"shift": -1, "axis": 0}, "negative"), ({"shift": 1, "axis": -1}, "axes of shape"),
                           ({"shift": 1, "axis": 0, "stride": 1}, "go together")]:
        with pytest.raises(ValueError, match=words):
            tpu.roll(x, **options)
    for equation, sizes in [("ab->a", {}), ("a(bc)->abc", {}), ("a(bc)->abc", {"b": 3}), ("abc->abc", {})]:
        with pytest.raises(ValueError, match="einshape"):
            tpu.einshape(equation, x, **sizes)
    with pytest.raises(NotImplementedError, match="tiles"):
        tpu.einshape("ab->ba", x, assert_is_tile_preserving=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "uint16", "float8_e4m3fn"])
def test_bits_of_rows_and_of_packed_elements(dtype):
    x = jnp.asarray(numbers(8, 3) % 7, dtype)
    bits = tpu.bitcast(x, jnp.uint32)
    width = x.dtype.itemsize
    want = np.asarray(x).view(f"uint{8 * width}").astype(np.uint32).reshape(-1, 4 // width, 3)
    np.testing.assert_array_equal(
        bits, sum(want[:, i] << np.uint32(8 * width * i) for i in range(4 // width)))
    np.testing.assert_array_equal(tpu.bitcast(bits, dtype), x)
    wide = [np.full(3, i, np.int32 if "int" in dtype else np.float32) for i in range(4 // width)]
    packed = tpu.pack_elementwise(wide, packed_dtype=dtype)
    for i, given in enumerate(wide):
        np.testing.assert_array_equal(
            tpu.unpack_elementwise(packed, index=i, packed_dtype=dtype, unpacked_dtype=given.dtype), given)
    for wrong in (lambda: tpu.bitcast(x[:1], jnp.uint32), lambda: tpu.bitcast(x[0], jnp.uint32),
                  lambda: tpu.pack_elementwise(wide[:1], packed_dtype=dtype),
                  lambda: tpu.unpack_elementwise(packed, index=9, packed_dtype=dtype, unpacked_dtype=F32),
                  lambda: tpu.pack_elementwise(wide, packed_dtype=F32)):
        with pytest.raises(ValueError):
            wrong()


def test_rounding_by_chance():
    x = np.float32([1.001, -1.001, np.inf, np.nan, 3e38])
    random_bits = jax.random.bits(jax.random.key(0), (4000, 5))
    rounded = np.asarray(tpu.stochastic_round(jnp.broadcast_to(x, (4000, 5)), random_bits,
                                              target_dtype=jnp.bfloat16), np.float32)
    np.testing.assert_allclose(rounded[:, :2].mean(0), x[:2], atol=4e-4)
    assert len(np.unique(rounded[:, 0])) == 2 and np.isinf(rounded[:, 2]).all() and np.isnan(
        rounded[:, 3]).all()
    with pytest.raises(NotImplementedError, match="rounded to bfloat16"):
        tpu.stochastic_round(x, random_bits[0], target_dtype=jnp.float16)


def test_random_bits_of_a_kernel():
    def kernel(o, uniform, more):
        tpu.prng_seed(3, pl.program_id(0))
        o[...] = tpu.prng_random_bits((100,))

        @pl.when(pl.program_id(0) == 1)
        def _():
            o[...] = tpu.prng_random_bits((100,))
        uniform[...] = tpu.stateful_uniform((100,), minval=2.0, maxval=3.0)
        more[...] = (tpu.stateful_normal((100,)) * tpu.stateful_bernoulli(0.5, (100,)) +
                     tpu.stateful_bits((100,)) * 0)
    spec = pl.BlockSpec((100,), lambda i: (i,))
    run = call(kernel, [like(300, dtype=jnp.int32), like(300), like(300)], grid=(3,), out_specs=[spec] * 3)
    bits, uniform, more = run()
    assert len(np.unique(bits)) == 300 and 2 <= uniform.min() < 2.1 and 2.9 < uniform.max() < 3
    assert 90 < (more == 0).sum() < 210
    np.testing.assert_array_equal(run()[0], bits)
    with pytest.raises(ValueError, match="is for kernels"):
        tpu.prng_random_bits((2,))


def test_random_blocks_are_parts_of_one_array():
    key = tpu.to_pallas_key(jax.random.key(1))
    sample = partial(tpu.sample_block, jax.random.normal, key, tile_size=(2, 3), total_size=(4, 6))
    whole = sample(block_size=(4, 6), block_index=(0, 0))

    def kernel(o):
        o[...] = sample(block_size=(4, 3))
    np.testing.assert_array_equal(whole, call(kernel, like(4, 6), grid=(1, 2), out_specs=pl.BlockSpec(
        (4, 3), lambda i, j: (i, j)))())
    np.testing.assert_array_equal(whole[:2, 3:], jax.random.normal(jax.random.fold_in(key, 1), (2, 3)))
    with pytest.raises(ValueError, match="must divide"):
        sample(block_size=(3, 3), block_index=(0, 0))


def test_loads_and_what_is_for_tpus_alone():
    def kernel(x, o):
        tpu.touch(x)
        tpu.trace_value("first", x[0])
        mask = jnp.arange(4) < 2
        o[...] = jnp.full(4, 9.0)
        tpu.store(o, tpu.with_memory_space_constraint(tpu.load(x, mask=mask), tpu.VMEM) + 1, mask=mask)
    assert call(kernel, like(4))(numbers(4)).tolist() == [1, 2, 9, 9]
    assert not tpu.is_tpu_device()


def test_what_a_function_costs():
    x, y = numbers(8, 16), numbers(16, 4)
    assert pl.estimate_cost(lambda x, y: jnp.tanh(x @ y), x, y) == (1024, 32, 4 * (128 + 64 + 32), 0)
