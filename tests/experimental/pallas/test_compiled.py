"""What is written of kernels that Triton compiles, read by Triton's own dialect; what is refused.  Values are
compared where there is a GPU, in tests/distributed/test_gpu_run.py."""
import re
from functools import partial

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _triton_ext
from triton_kernels import CASES, F32, ROWS, Block, Struct, blocks_beyond_the_array, interpreted

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import triton
from hlotrace.experimental.pallas.compiled import triton_rules


def text_of(function, *args):
    """The Triton text of the one kernel that a function calls, which is read and verified."""
    eqn, = [e for e in jax.make_jaxpr(function)(*args).eqns if str(e.primitive) == "pallas_call"]
    triton_rules.options(eqn.params["kernel"])
    text = triton_rules.text(eqn.params["kernel"])
    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    _triton_ext.register_dialect(context)
    assert ir.Module.parse(text, context).operation.verify()
    return text


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_a_program_of_tritons_dialect(name):
    kernel, out, args, options = CASES[name]
    text = text_of(pl.pallas_call(kernel, out, **options), *args)
    assert text.count("%arg") >= len(args)


def test_what_is_written_of_a_kernel():
    call = pl.pallas_call(blocks_beyond_the_array, Struct((1000,), F32), **ROWS)
    text = text_of(call, jnp.ones(1000), jnp.ones(1000))
    assert text.count("tt.load") == 2 and "tt.get_program_id x" in text
    # what is beyond the 1,000 elements is neither read nor written
    assert len(re.findall(r"arith\.cmpi slt, .* tensor<128xi32>", text)) == 3
    whole = text_of(pl.pallas_call(blocks_beyond_the_array, Struct((1024,), F32), **ROWS), jnp.ones(1024), jnp.ones(1024))
    assert "cmpi" not in whole


def test_vmap_is_one_more_axis_of_the_grid():
    call = pl.pallas_call(blocks_beyond_the_array, Struct((1000,), F32), **ROWS)
    mapped = jax.vmap(call, in_axes=(1, None), out_axes=1)
    eqn, = [e for e in jax.make_jaxpr(mapped)(jnp.ones((1000, 3)), jnp.ones(1000)).eqns
            if str(e.primitive) == "pallas_call"]
    assert eqn.params["kernel"].grid == (3, 8) and eqn.outvars[0].aval.shape == (3, 1000)
    text_of(jax.vmap(mapped), jnp.ones((2, 1000, 3)), jnp.ones((2, 1000)))
    assert jax.eval_shape(mapped, jnp.ones((1000, 3)), jnp.ones(1000)).shape == (1000, 3)


def copy(x, o):
    o[...] = x[...]


@pytest.mark.parametrize("kernel, shape, options, error, words", [
    (copy, (6,), {}, NotImplementedError, "a value of shape (6,), and sizes must be powers of 2"),
    (lambda x, o: o.__setitem__(..., jnp.sort(x[...])), (8,), {}, NotImplementedError,
     "sort, tests/experimental/pallas/test_compiled.py:"),
    (lambda x, o: o.__setitem__(..., lax.scan(lambda c, r: (c, r), 0.0, x[...])[1]), (8,), {}, NotImplementedError,
     "a scan over rows of arrays"),
    (lambda x, o: o.__setitem__(..., x[...] + np.arange(8, dtype=F32)), (8,), {}, NotImplementedError,
     "an array of shape (8,) from outside of it: pass it as an operand"),
    (lambda x, o, s: None, (8,), {"scratch_shapes": [jax.ShapeDtypeStruct((2,), F32)]}, NotImplementedError, "scratch_shapes"),
    (copy, (8,), {"compiler_params": triton.CompilerParams(num_warps=3)}, ValueError, "num_warps=3 must be 1, 2, 4"),
    (copy, (8,), {"compiler_params": triton.CompilerParams(num_stages=0)}, ValueError, "num_stages=0"),
    (copy, (8,), {"grid": (jnp.int32(2),)}, NotImplementedError, "a size of the grid, (None,), is no int"),
    (copy, (8,), {"grid": (2**16, 2**16)}, ValueError, "more than 2147483647 places"),
    (copy, (8,), {"interpret": "some"}, NotImplementedError, "interpret='some' is not supported"),
    (lambda x, o: 1, (8,), {}, ValueError, "should return None; it returns 1"),
])
def test_what_is_refused(kernel, shape, options, error, words):
    call = pl.pallas_call(kernel, Struct(shape, F32), **options)
    with pytest.raises(error, match=re.escape(words)):
        text_of(call, jnp.ones(shape))


def test_a_kernel_takes_what_is_traced_outside_as_an_operand():
    @jax.jit
    def scaled(x, scale):
        return pl.pallas_call(lambda x, o: o.__setitem__(..., x[...] * scale), Struct((8,), F32))(x)
    with pytest.raises(ValueError, match=re.escape("captures constants, float32[8]: pass them as operands")):
        scaled(jnp.ones(8), jnp.ones(8))


def test_a_kernel_is_traced_once_for_types():
    traced = []

    def kernel(x, o):
        traced.append(x.shape)
        o[...] = x[...].astype(F32)
    call = pl.pallas_call(kernel, Struct((8,), F32))
    for dtype in (F32, F32, "int32", F32):
        with pytest.raises(ValueError, match="only interpret mode is supported on the CPU"):
            call(jnp.ones(8, dtype))
    assert len(traced) == 2


def test_where_kernels_are_not_compiled():
    call = pl.pallas_call(copy, Struct((8,), F32))
    with pytest.raises(ValueError, match="only interpret mode is supported on the CPU: pass interpret=True"):
        call(jnp.ones(8))
    with pytest.raises(NotImplementedError, match="has no derivative where it is compiled"):
        jax.make_jaxpr(jax.grad(lambda x: jnp.sum(call(x))))(jnp.ones(8))


def test_a_window_under_a_mask_is_not_moved():
    def kernel(x, o):
        before = x.at[:, pl.ds(pl.program_id(0) * 4 - 1, 4)]
        places = pl.program_id(0) * 4 - 1 + jnp.arange(4)
        o[...] = triton.load(before, mask=(places >= 0) & (places < 6), other=-1)
        triton.store(o.at[..., pl.ds(3, 4), None], jnp.full((2, 4, 1), 9), mask=(jnp.arange(4) < 1)[:, None])
    x = jnp.arange(12).reshape(2, 6)
    found = pl.pallas_call(kernel, Struct((2, 8), "int32"), grid=2, interpret=True,
                           out_specs=Block((2, 4), lambda i: (0, i)))(x)
    assert found.tolist() == [[-1, 0, 1, 9, 3, 4, 5, 9], [-1, 6, 7, 9, 9, 10, 11, 9]]


def beside_each_other(x, i, j):
    first, written = x[i, j] + x[5, 1], np.zeros((16, 32))
    written[i, j] = first
    return first + [[0] * 8, [*x[-1, 28:], *[2] * 4]], written


@pytest.mark.parametrize("name, result", [
    ("loads_and_stores_under_masks", lambda x, _: np.concatenate([2 * x, np.zeros(28)])),
    ("windows", lambda x: [sum(x[i:i + 4]) for i in range(5)]),
    ("gathers_and_scatters", lambda x, places, rows, some: (
        x[places], np.where(np.isin(np.arange(16), places), 2 * x, 0), rows[some])),
    ("arrays_of_places_beside_each_other", beside_each_other),
    ("atomic_operations", lambda x, _, __: (np.where(np.arange(64) < 20, np.pad(x.sum(0), (0, 32)), 0),
                                            [4, 3, -3, 15, 15, 0, 7, 5])),
])
def test_the_same_kernels_as_loops(name, result):
    kernel, out, args, options = CASES[name]
    found = interpreted(kernel, out, args, options)
    expected = result(*map(np.asarray, args))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5), [*jax.tree.leaves(found)],
                 list(expected) if isinstance(expected, tuple) else [np.asarray(expected)])


def between(text):
    """What is done to memory, in order: loads, stores and where threads meet."""
    return "".join({"tt.load": "l", "tt.store": "s", "gpu.barrier": "|", "scf.for": "(", "scf.if": "?", "scf.yield": "."}[x]
                   for x in re.findall(r"tt\.load|tt\.store|gpu\.barrier|scf\.for|scf\.if|scf\.yield", text))


def test_threads_meet_between_accesses_of_one_ref_of_which_one_writes():
    def written_and_read(x, o):
        o[...] = x[...]
        o[0] = o[1] + o[2]
        triton.debug_barrier()
        o[3] = x[3]

    def in_a_loop(x, o):
        lax.fori_loop(0, 4, lambda i, c: (o.__setitem__(i, x[i]), c + o[0])[1], 0.0)

    def in_a_branch(x, o):
        pl.when(x[0] > 0)(lambda: o.__setitem__(0, x[1]))
        o[1] = x[1]

    def over_its_operand(x, o):
        o[...] = x[...] + 1
    for kernel, aliases, expected in [
            (written_and_read, {}, "ls|ll|sl|s"), (in_a_loop, {}, "(l|s|l."), (in_a_branch, {}, "l?.ls.l|s"),
            (over_its_operand, {}, "ls"), (over_its_operand, {0: 0}, "l|s")]:
        call = pl.pallas_call(kernel, Struct((8,), F32), input_output_aliases=aliases)
        eqn, = jax.make_jaxpr(call)(jnp.ones(8)).eqns
        assert between(triton_rules.text(eqn.params["kernel"], {1: 0} if aliases else {})) == expected, kernel


def test_a_kernel_has_no_place_along_other_axes():
    for grid, words in (((), "the kernel has no grid"), ((2,), "the grid (2,) has axes 0 to 0")):
        call = pl.pallas_call(lambda x, o: pl.program_id(1), Struct((8,), F32), grid=grid, interpret=True)
        with pytest.raises(ValueError, match=re.escape(f"pallas.program_id(1): {words}")):
            call(jnp.ones(8))


def test_the_text_of_a_program_shows_its_kernels():
    call = pl.pallas_call(blocks_beyond_the_array, Struct((1000,), F32), **ROWS)
    text = str(jax.make_jaxpr(call)(jnp.ones(1000), jnp.ones(1000)))
    assert "grid=(8,)" in text and "load[" in text and "ref=Ref 2{float32[128]}" in text
