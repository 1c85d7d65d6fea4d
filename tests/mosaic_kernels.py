"""Kernels that Mosaic compiles: each is a row of CASES, (what its text has, kernel, type of the results, types of the
operands, options of pallas_call).  `test_mosaic.py` reads what is written of them, and compiles them where libtpu is."""
from functools import partial

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, nn
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import tpu

CASES = {}
F32, BF16, I32 = "float32", "bfloat16", "int32"
Block, ANY = pl.BlockSpec, pl.BlockSpec(memory_space=pl.ANY)
TILE = 16, 128


def like(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def case(words, out, *args, name=None, **options):
    def add(kernel):
        CASES[name or kernel.__name__] = words, kernel, out, args, options
        return kernel
    return add


def of_values(function):
    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])
    return kernel


def values(name, words, function, *args):
    out = jax.eval_shape(function, *args)
    case(words, like(*out.shape, dtype=out.dtype), *args, name=name)(of_values(function))


def functions(names):
    return lambda x: sum(getattr(lax, name)(x).astype(F32) for name in names.split())


values("functions of floats", "math.tanh math.round math.erf", functions(
    "exp exp2 log log1p expm1 sin cos tan tanh sqrt rsqrt floor ceil round abs neg sign logistic erf is_finite square"),
    like(*TILE))
values("functions of bfloat16", "arith.extf arith.truncf", functions("exp log sin sqrt round abs sign"),
       like(*TILE, dtype=BF16))
values("two floats", "math.powf math.atan2 arith.remf", lambda x, y: lax.atan2(x, y) + x ** y + lax.rem(x, y) + (
    x != y).astype(F32), like(*TILE), like(*TILE))
values("whole numbers", "arith.divsi arith.shrsi math.ctpop math.ctlz", lambda x, y: lax.div(x, y) + lax.rem(x, y) + (
    x >> 1) + (~x & y) + lax.population_count(x) + lax.clz(y) + jnp.sign(x), like(*TILE, dtype=I32), like(*TILE, dtype=I32))
for narrow in "int8", "int16":
    values(f"{narrow} in 32 bits", "arith.trunci", lambda x, y: x * y + lax.div(x, y), like(32, 128, dtype=narrow),
           like(32, 128, dtype=narrow))
values("kinds of numbers", "arith.sitofp arith.fptosi arith.extui", lambda x: x.astype("int8").astype(BF16).astype(F32)
       + (x > 0).astype("uint8").astype(F32), like(32, 128))
values("bool", "arith.xori i32", lambda x, y: jnp.where(x, 1.0, 2.0) + (jnp.logical_not(x) == (y > 0)), like(
    *TILE, dtype="bool"), like(*TILE))
values("a result of bools", "arith.extui", lambda x: x > 0, like(*TILE))
for reduction in "sum", "max", "min":
    values(f"{reduction} to a scalar", "vector.extract", lambda x, f=reduction: x - getattr(jnp, f)(x), like(*TILE))
    values(f"{reduction} of bfloat16", "arith.truncf", lambda x, f=reduction: getattr(jnp, f)(x, axis=(0, 2)),
           like(4, *TILE, dtype=BF16))
values("any and all", "maxsi minsi", lambda x: (jnp.any(x > 0, 1, keepdims=True) & jnp.all(x > 1, 0)).astype(F32), like(*TILE))
values("argmax", "tpu.reduce_index arg_max arg_min", lambda x: jnp.argmax(x, 1) + jnp.argmin(x, 1), like(128, 128))
values("argmax to a scalar", "vector.extract", lambda x: jnp.full((8, 128), jnp.argmax(x)), like(8, 128))
values("softmax", "multi_reduction", nn.softmax, like(*TILE))
values("shapes", "vector.shape_cast tpu.concatenate extract_strided_slice", lambda x: jnp.concatenate(
    [x.reshape(2, 8, 128)[1], jnp.pad(x[:8], ((8, 0), (0, 0)), constant_values=1.0), x[None, 3:4][0] + jnp.ones((8, 1))], 0),
    like(*TILE))
values("transposes", "tpu.transpose", lambda x: x.transpose(1, 0, 2) + x.swapaxes(1, 2)[:8].reshape(8, 128, 8).sum(2)[:, None],
       like(8, 8, 128))
values("counting", "tpu.iota", lambda x: jnp.where(lax.broadcasted_iota(I32, TILE, 1) < 5, x, -jnp.inf) + jnp.arange(
    128, dtype=F32), like(*TILE))
for numbers, sizes in {"11": [(64, 256), (256, 128)], "tt": [(256, 64), (128, 256)], "b": [(2, 64, 256), (2, 256, 128)]}.items():
    for dtype, sums in (F32, F32), (BF16, F32), ("int8", I32):
        batch = int(numbers == "b")
        over = ((0,), (1,)) if numbers == "tt" else ((1 + batch,), (0 + batch,))
        values(f"product {numbers} of {dtype}", "tpu.matmul", partial(
            lax.dot_general, dimension_numbers=(over, ((0,), (0,)) if batch else ((), ())), preferred_element_type=sums),
            *[like(*size, dtype=dtype) for size in sizes])
values("an exact product", "contract_precision<fp32>", partial(jnp.dot, precision="highest"), like(128, 128), like(128, 128))
values("a product of bfloat16", "arith.truncf", jnp.dot, like(128, 128, dtype=BF16), like(128, 128, dtype=BF16))
values("a matrix by a vector", "multi_reduction", lambda x, y: (x @ y[0])[None], like(128, 128), like(1, 128))
values("bits", "tpu.bitcast", lambda x: lax.bitcast_convert_type(x, I32), like(*TILE))
values("bits of rows", "tpu.bitcast", lambda x: tpu.bitcast(x, "int16"), like(*TILE, dtype=I32))
values("rolled", "tpu.dynamic_rotate", lambda x: tpu.roll(x, 3, 1) + tpu.roll(x, 1, 1, stride=1, stride_axis=0), like(*TILE))


@case("vector.load tpu.strided_load tpu.strided_store tpu.vector_store tpu.assume_multiple", like(32, 128), like(*TILE))
def parts(x, o):
    o[::2] = x[...]
    o[pl.ds(0, 8, 2), :] = x[pl.ds(1, 8, 2), :]

    @pl.loop(0, 2)
    def _(i):
        rows = pl.ds(pl.multiple_of(i * 8, 8), 8)
        o[rows] += x[rows] * 2
    o[3, :64] = x[5, :64]
    o[0, 0] = x[1, 2]
    o[8:] = tpu.load(x.at[8:], mask=lax.broadcasted_iota(I32, (8, 128), 1) < 4).sum(0) * jnp.ones((24, 128))
    tpu.store(o.at[:8], x[:8], mask=lax.broadcasted_iota(I32, (8, 128), 1) < 4)


@case("scf.if scf.for scf.while", like(*TILE), like(*TILE), like(3, dtype=I32), grid=(2,), in_specs=[
    Block((8, 128), lambda i: (i, 0)), Block(memory_space=tpu.SMEM)], out_specs=Block((8, 128), lambda i: (i, 0)))
def branches_and_loops(x, n, o):
    o[...] = lax.cond(pl.program_id(0) == 0, lambda: x[...], lambda: x[...] * 2)
    o[...] = lax.switch(n[0], [lambda v: v, jnp.exp, jnp.sin], o[...])
    o[...] = lax.fori_loop(0, 3, lambda i, c: c * 2 + i, o[...])
    pl.when(lax.while_loop(lambda c: c < n[1], lambda c: c * 2, 1) > 8)(lambda: o.__setitem__(..., -o[...]))


@case("dimension_semantics<parallel> scratch_operands = 1", like(256, 256, dtype=BF16), like(256, 256, dtype=BF16),
      like(256, 256, dtype=BF16), grid=(2, 2, 2),
      in_specs=[Block((128, 128), lambda i, j, k: (i, k)), Block((128, 128), lambda i, j, k: (k, j))],
      out_specs=Block((128, 128), lambda i, j, k: (i, j)), scratch_shapes=[tpu.VMEM((128, 128), F32)],
      compiler_params=tpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")))
def product_in_blocks(x, y, o, sums):
    pl.when(pl.program_id(2) == 0)(lambda: sums.__setitem__(..., jnp.zeros((128, 128))))
    sums[...] += jnp.dot(x[...], y[...], preferred_element_type=F32)
    pl.when(pl.program_id(2) == 1)(lambda: o.__setitem__(..., sums[...].astype(o.dtype)))


@case("scalar_prefetch = 1", like(*TILE), like(2, dtype=I32), like(4, *TILE), grid_spec=tpu.PrefetchScalarGridSpec(
    1, grid=(2,), in_specs=[Block((None, 8, 128), lambda i, which: (which[i], i, 0))],
    out_specs=Block((8, 128), lambda i, which: (i, 0))))
def scalars_first(which, x, o):
    o[...] = x[...] * which[pl.program_id(0)].astype(F32)


@case("element_window", like(*TILE), like(40, 128), grid=(2,),
      in_specs=[Block((pl.Element(8), pl.Element(128)), lambda i: (i * 16, 0))], out_specs=Block((8, 128), lambda i: (i, 0)))
def windows(x, o):
    o[...] = x[...]


@case("tpu.enqueue_dma tpu.wait_dma2 tpu.memref_slice tpu.memref_squeeze", like(8, 128), like(8, 8, 128), in_specs=[ANY],
      scratch_shapes={"rows": tpu.VMEM((2, 8, 128), F32), "ready": tpu.SemaphoreType.DMA((2,))})
def fetched_while_computing(x, o, rows, ready):
    def fetch(i):
        return tpu.make_async_copy(x.at[i], rows.at[i % 2], ready.at[i % 2])
    fetch(0).start()
    o[...] = jnp.zeros((8, 128))

    @pl.loop(0, 8)
    def _(i):
        pl.when(i < 7)(lambda: fetch(i + 1).start())
        fetch(i).wait()
        o[...] += rows[i % 2]


@case("memref<?x128xf32", like(32, 128), like(2, dtype=I32), like(64, 128), in_specs=[Block(memory_space=tpu.SMEM), ANY],
      scratch_shapes=[tpu.SemaphoreType.DMA])
def as_many_rows_as_there_are(n, x, o, ready):
    rows = pl.multiple_of(n[0], 8), pl.multiple_of(n[1], 8)
    copy = tpu.make_async_copy(x.at[pl.ds(*rows)], o.at[pl.ds(0, rows[1])], ready)
    copy.start(priority=1)
    copy.wait()
    o[:8] = jnp.concatenate([x * 2 for x in [o[:8]]], 0)


@case("tpu.memref_bitcast tpu.memref_reshape", like(4, 16, 128, dtype=BF16), like(64, 128, dtype=BF16))
def views_of_other_forms(x, o):
    o.bitcast("uint32").at[1][...] = x.bitcast("uint32").reshape(4, 8, 128).at[2][...]
    o[2] = x.reshape(4, 16, 128)[3]


@case("tpu.region memref.alloca tpu.sem_alloc", like(*TILE), like(4, *TILE), in_specs=[ANY])
def memory_of_its_own(x, o):
    def doubled(memory):
        tpu.sync_copy(x.at[1], memory)
        o[...] = memory[...] * 2
        return memory[0, 0]
    o[...] += pl.run_scoped(doubled, tpu.VMEM(TILE, F32))


@case("tpu.sem_signal tpu.sem_wait tpu.sem_read", like(*TILE), like(*TILE), scratch_shapes=[tpu.SemaphoreType.REGULAR])
def semaphores(x, o, ready):
    pl.semaphore_signal(ready, 2)
    o[...] = x[...] * pl.semaphore_read(ready).astype(F32)
    pl.semaphore_wait(ready, 2)


@case("tpu.prng_set_seed_32 tpu.prng_random_bits", like(*TILE, dtype=I32))
def random_bits(o):
    tpu.prng_seed(3)
    o[...] = tpu.prng_random_bits(TILE) ^ tpu.prng_random_bits(TILE)


@case("tpu.prng_random_bits math.log math.cos", like(*TILE, dtype=BF16))
def random_numbers(o):
    numbers = tpu.stateful_normal(TILE) + tpu.stateful_uniform(TILE, minval=-1.0) + tpu.stateful_bits(TILE).astype(F32)
    o[...] = jnp.where(tpu.stateful_bernoulli(0.3, TILE), numbers, 0).astype(BF16)


def added(x, y, o):
    def body(x, y, o):
        pl.when(pl.program_id(1) == 0)(lambda: o.__setitem__(..., jnp.zeros(o.shape)))
        o[...] += x[...] + y[...]
    row = Block((8, 128), lambda i, j: (i, 0))
    tpu.emit_pipeline(body, grid=(4, 2), in_specs=[row, Block((None, 8, 128), lambda i, j: (j, i, 0))], out_specs=[row])(x, y, o)


case("tpu.enqueue_dma", like(32, 128), like(32, 128), like(2, 32, 128), in_specs=[ANY, ANY], out_specs=ANY,
     name="a pipeline")(added)


def by_cores(x, o):
    core = lax.axis_index("core")
    rows = pl.ds(pl.multiple_of(core * 8, 8), 8)

    def doubled(memory):
        tpu.sync_copy(x.at[rows], memory)
        memory[...] *= 2
        tpu.sync_copy(memory, o.at[rows])
    pl.run_scoped(doubled, tpu.VMEM((8, 128), F32))


def as_much_as_there_is(n, x, o):
    """Of each 16 rows the first n, in the reverse order of blocks."""
    def body(x, o):
        o[...] = x[...] + pl.program_id(0).astype(F32)

    def rows(at):
        return Block((pl.BoundedSlice(16), 128), lambda i: (pl.ds(pl.multiple_of(at(i) * 16, 8), pl.multiple_of(n[0], 8)), 0))
    last = pl.num_programs
    tpu.emit_pipeline(body, grid=(2,), in_specs=[rows(lambda i: last(0) - 1 - i)], out_specs=[rows(lambda i: i)])(x, o)


case("memref<?x128xf32", like(32, 128), like(1, dtype=I32), like(32, 128), in_specs=[Block(memory_space=tpu.SMEM), ANY],
     out_specs=ANY, name="a pipeline of bounded slices")(as_much_as_there_is)


@case("tpu.matmul", like(2, 256, 128, dtype=BF16), *[like(2, 256, 128, dtype=BF16)] * 3, grid=(2, 2, 2),
      in_specs=[Block((None, 128, 128), lambda b, i, j: (b, i, 0)), *[Block((None, 128, 128), lambda b, i, j: (b, j, 0))] * 2],
      out_specs=Block((None, 128, 128), lambda b, i, j: (b, i, 0)), scratch_shapes=[tpu.VMEM((128, 128), F32)] * 3)
def attention(q, k, v, o, most, total, sums):
    @pl.when(pl.program_id(2) == 0)
    def _():
        most[...] = jnp.full((128, 128), -1e30)
        total[...] = sums[...] = jnp.zeros((128, 128))
    scores = lax.dot_general(q[...], k[...], (((1,), (1,)), ((), ())), preferred_element_type=F32)
    row, column = (pl.program_id(axis + 1) * 128 + lax.broadcasted_iota(I32, scores.shape, axis) for axis in (0, 1))
    scores = jnp.where(row >= column, scores, -1e30)
    larger = jnp.maximum(most[...], scores.max(1, keepdims=True))
    weights, before = jnp.exp(scores - larger[:, :1]), jnp.exp(most[...] - larger)
    total[...] = before * total[...] + weights.sum(1, keepdims=True)
    sums[...] = sums[...] * before[:, :1] + jnp.dot(weights.astype(v.dtype), v[...], preferred_element_type=F32)
    most[...] = larger
    pl.when(pl.program_id(2) == 1)(lambda: o.__setitem__(..., (sums[...] / total[:, :1]).astype(o.dtype)))
