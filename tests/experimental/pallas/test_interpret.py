"""pallas_call(interpret=True): kernels over grids, against NumPy; what memory that was not written holds is
JAX's."""
import re
from functools import partial

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import tpu, triton

call = partial(pl.pallas_call, interpret=True)
F32 = jnp.float32


def test_products_of_blocks_that_are_added_up():
    def kernel(x, y, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)
        acc[...] += x[...] @ y[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...]
    x, y = np.random.default_rng(0).normal(size=(2, 8, 8)).astype(np.float32)
    product = call(kernel, jax.ShapeDtypeStruct((8, 8), F32), grid=(2, 4, 2),
                   scratch_shapes=[tpu.VMEM((4, 2), F32)],
                   in_specs=[pl.BlockSpec((4, 4), lambda i, j, k: (i, k)),
                             pl.BlockSpec((4, 2), lambda i, j, k: (k, j))],
                   out_specs=pl.BlockSpec((4, 2), lambda i, j, k: (i, j)))
    np.testing.assert_allclose(product(x, y), x @ y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(product))(np.stack([x, y]), np.stack([y, x])),
                               np.stack([x @ y, y @ x]), rtol=1e-5, atol=1e-5)


def test_what_tritons_kernels_load_store_and_multiply():
    def kernel(x, there, product, stored):
        part = triton.load(x.at[1:3], mask=there[...], other=7)
        product[...] = triton.dot(part, triton.max_contiguous(triton.load(x), 4), trans_b=True)
        stored[...] = jnp.zeros((4, 4))
        triton.store(stored.at[:2], x[2:], mask=there[...])
        triton.store(stored.at[3], x[3])
    x, there = np.arange(16, dtype=np.float32).reshape(4, 4), np.array([[True, False, True, False]] * 2)
    product, stored = call(kernel,
                           [jax.ShapeDtypeStruct((2, 4), F32), jax.ShapeDtypeStruct((4, 4), F32)])(x, there)
    np.testing.assert_array_equal(product, np.where(there, x[1:3], 7) @ x.T)
    np.testing.assert_array_equal(stored, [*np.where(there, x[2:], 0), [0] * 4, x[3]])
    np.testing.assert_array_equal(triton.dot(x, x, trans_a=True, allow_tf32=False), x.T @ x)
    assert triton.dot(x.astype("int8"), x.astype("int8")).dtype == "int32"
    for operands, options, words in [((x[0], x), {}, "shapes (4,) and (4, 4)"),
                                     ((x, x), {"allow_tf32": True, "precision": "high"},
                                      "only one of allow_tf32")]:
        with pytest.raises(ValueError, match=re.escape(words)):
            triton.dot(*operands, **options)


def test_rows_of_a_softmax_and_several_results():
    def kernel(x, soft, largest):
        row = x[...]
        largest[...] = jnp.max(row)[None]
        soft[...] = jnp.exp(row - jnp.max(row)) / jnp.sum(jnp.exp(row - jnp.max(row)))
    x = jnp.arange(12.).reshape(3, 4) % 5
    soft, largest = call(kernel, [jax.ShapeDtypeStruct((3, 4), F32), jax.ShapeDtypeStruct((3,), F32)], grid=3,
                         in_specs=[pl.BlockSpec((None, 4), lambda i: (i, 0))],
                         out_specs=[pl.BlockSpec((pl.squeezed, pl.Blocked(4)), lambda i: (i, 0)),
                                    pl.BlockSpec((1,), lambda i: i)])(x)
    np.testing.assert_allclose(soft, jax.nn.softmax(x, 1), rtol=1e-6)
    np.testing.assert_array_equal(largest, jnp.max(x, 1))


@pytest.mark.parametrize("dtype, beyond", [("float32", np.nan), ("bfloat16", np.nan), ("int32", -2**31),
                                           ("uint8", 0), ("bool", False)])
def test_blocks_that_go_beyond_the_array(dtype, beyond):
    def kernel(x, o):
        o[...] = x[...]
    found = call(kernel, jax.ShapeDtypeStruct((8,), dtype), grid=(2,),
                 in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
                 out_specs=pl.BlockSpec((4,), lambda i: (i,)))(jnp.ones(5, dtype))
    np.testing.assert_array_equal(np.asarray(found, np.float64), [1] * 5 + [float(beyond)] * 3)
    cut = call(kernel, jax.ShapeDtypeStruct((5,), dtype), grid=(2,),
               in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
               out_specs=pl.BlockSpec((4,), lambda i: (i,)))(jnp.ones(8, dtype))
    assert cut.shape == (5,) and np.all(np.asarray(cut, np.float64) == 1)
    unwritten = call(lambda x, o: None, jax.ShapeDtypeStruct((2,), dtype))(jnp.ones(2, dtype))
    np.testing.assert_array_equal(np.asarray(unwritten, np.float64), [float(beyond)] * 2)


def test_scalars_first_windows_aliases_and_named_scratch():
    def gathers(p, x, o):
        o[...] = x[...] + p[pl.program_id(0)]
    spec = tpu.PrefetchScalarGridSpec(1, (3,), [pl.BlockSpec((2,), lambda i, p: (p[i],))],
                                      pl.BlockSpec((2,), lambda i, p: (i,)))
    assert call(gathers, jax.ShapeDtypeStruct((6,), F32), grid_spec=spec)(
        jnp.array([2, 0, 1]), jnp.arange(6.)).tolist() == [6, 7, 0, 1, 3, 4]

    def windows(x, o):
        o[...] = jnp.sum(x[...])[None]
    assert call(windows, jax.ShapeDtypeStruct((3,), F32), grid=(3,),
                in_specs=[pl.BlockSpec((pl.Element(3),), lambda i: (i,))],
                out_specs=pl.BlockSpec((1,), lambda i: (i,)))(jnp.arange(5.)).tolist() == [3, 6, 9]

    def first(x, o, *, total):
        total[0] = x[1]
        o[pl.ds(0, 1)] = total[...]
    assert call(first, jax.ShapeDtypeStruct((3,), F32), input_output_aliases={0: 0},
                scratch_shapes={"total": tpu.VMEM((1,), F32)})(jnp.arange(3.)).tolist() == [1, 1, 2]


def test_windows_that_a_kernel_takes_itself():
    def kernel(x, o):
        i = pl.program_id(0)
        o[pl.ds(2 * i, 2)] = x[pl.ds(4 - 2 * i, 2)] + jnp.ones_like(x)[:2]
    assert call(kernel, jax.ShapeDtypeStruct((6,), F32), grid=(3,))(jnp.arange(6.)).tolist() == [
        5, 6, 3, 4, 1, 2]


def test_derivatives_of_a_kernel():
    def square(x, o):
        o[...] = x[...] ** 2
    f = call(square, jax.ShapeDtypeStruct((4,), F32), grid=(2,),
             in_specs=[pl.BlockSpec((2,), lambda i: (i,))],
             out_specs=pl.BlockSpec((2,), lambda i: (i,)))
    assert jax.grad(lambda x: f(x).sum())(jnp.arange(4.)).tolist() == [0, 2, 4, 6]
    assert jax.jvp(f, (jnp.arange(4.),), (jnp.ones(4),))[1].tolist() == [0, 2, 4, 6]


def test_what_does_not_fit():
    x, out = jnp.zeros((2, 3)), jax.ShapeDtypeStruct((2, 3), F32)
    for options, kernel, words in (
            ({"in_specs": [pl.BlockSpec((1,), lambda i: (i,))], "grid": 2}, lambda x, o: None,
             "number of dimensions"),
            ({"in_specs": [pl.BlockSpec((1, 3), lambda i: (i,))], "grid": 2}, lambda x, o: None,
             "must return 2 values"),
            ({"in_specs": []}, lambda x, o: None, "0 BlockSpecs, and there are 1 inputs"),
            ({}, lambda x, o: 1, "should return None"),
            ({"interpret": False}, lambda x, o: None, "interpret=True")):
        with pytest.raises(ValueError, match=words):
            call(kernel, out, **options)(x)
    for dim, error, interpret, words in ((pl.BoundedSlice(1), TypeError, True, "must return a slice, such as pl.ds"),
                                         (pl.BoundedSlice(1), NotImplementedError, False, "BoundedSlice"),
                                         (pl.Indirect(1), NotImplementedError, True, "Indirect")):
        spec = pl.BlockSpec((dim, 3), lambda i: (i, 0))
        with pytest.raises(error, match=words):
            call(lambda x, o: None, out, in_specs=[spec], grid=2, interpret=interpret)(x)
    for function in pl.program_id, pl.num_programs:
        with pytest.raises(ValueError, match="is for kernels"):
            function(0)
    with pytest.raises(TypeError, match="function of Refs"):
        pl.pallas_call(1, out)


def test_memory_for_a_part_of_a_kernel():
    def kernel(x, out):
        def part(memory, *, more):
            memory[...] = x[...] * 2
            more["sum"][...] = memory[...] + 1
            return memory[0], more["sum"][...]
        first, rest = pl.run_scoped(part, tpu.VMEM((4,), jnp.float32),
                                    more={"sum": tpu.VMEM((4,), jnp.float32)})
        out[...] = rest + first
    x = jnp.arange(1.0, 5.0)
    got = pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.float32), interpret=True)(x)
    np.testing.assert_array_equal(got, x * 2 + 3)
    with pytest.raises(ValueError, match="for kernels"):
        pl.run_scoped(lambda memory: None, tpu.VMEM((4,), jnp.float32))


def test_a_grid_of_traced_sizes():
    def kernel(x, o):
        o[...] = x[...] + pl.num_programs(0) + 10 * pl.program_id(1)
    spec = pl.BlockSpec((None, 2), lambda i, j: (i, j))

    @jax.jit
    def f(rows, x):
        return call(kernel, jax.ShapeDtypeStruct((3, 4), F32), grid=(rows, 2), in_specs=[spec], out_specs=spec,
                    input_output_aliases={0: 0})(x)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(f(2, x), np.concatenate([x[:2] + [2, 2, 12, 12], x[2:]]))
    np.testing.assert_array_equal(f(0, x), x)


def test_padded_windows():
    def kernel(x, o):
        o[...] = jnp.nansum(x[...])[None]
    run = partial(pl.pallas_call, kernel, jax.ShapeDtypeStruct((4,), F32), grid=4,
                  in_specs=[pl.BlockSpec((pl.Element(5, (2, 2)),), lambda i: (2 * i,))],
                  out_specs=pl.BlockSpec((1,), lambda i: (i,)))
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(interpret=True)(x), [np.pad(x, 2)[i:i + 5].sum() for i in (0, 2, 4, 6)])
    with pytest.raises(NotImplementedError, match="input 0 has padding"):
        run()(x)


def test_an_operand_may_be_a_container_with_none_in_it():
    whole = pl.BlockSpec()
    double = pl.pallas_call(lambda x, out: out.__setitem__(..., 2 * x["a"][...]), jnp.zeros(3),
                            in_specs=[{"a": whole, "b": None}], interpret=True)
    assert double({"a": jnp.arange(3.), "b": None}).tolist() == [0, 2, 4]
