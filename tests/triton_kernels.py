"""Kernels that Triton compiles: each is a row of CASES, (kernel, type of the results, operands, options of
pallas_call).  `test_compiled.py` reads what is written of them, `make gpu` compiles them, `make gpu-run` runs them."""
from functools import partial

import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, nn
from hlotrace.experimental import pallas as pl
from hlotrace.experimental.pallas import triton

CASES = {}
F32, I32 = "float32", "int32"
Struct, Block = jax.ShapeDtypeStruct, pl.BlockSpec
rng = np.random.default_rng(0)


def normal(*shape, dtype=F32):
    return jnp.asarray(rng.normal(size=shape), dtype)


def integers(low, high, *shape, dtype=I32):
    return jnp.asarray(rng.integers(low, high, shape), dtype)


def case(out, *args, name=None, **options):
    def add(kernel):
        CASES[name or kernel.__name__] = kernel, out, args, options
        return kernel
    return add


def interpreted(kernel, out, args, options):
    return pl.pallas_call(kernel, out, interpret=True, **options)(*args)


ROWS = dict(grid=(8,), in_specs=[Block((128,), lambda i: (i,))] * 2, out_specs=Block((128,), lambda i: (i,)))


@case(Struct((1000,), F32), normal(1000), normal(1000), **ROWS)
def blocks_beyond_the_array(x, y, o):
    o[...] = x[...] + y[...]


def each(*functions):
    """A kernel that writes the functions of its operands to the rows of its result."""
    def kernel(*refs):
        for i, function in enumerate(functions):
            refs[-1][i] = function(*[ref[...] for ref in refs[:-1]])
    return kernel


def positive(function):
    return lambda x: function(jnp.abs(x) + 0.5)


def small(function):
    return lambda x: function(x / 10)


FLOATS = [jnp.exp, positive(jnp.log), jnp.sin, jnp.cos, jnp.tan, jnp.tanh, positive(jnp.sqrt), positive(lax.rsqrt), jnp.floor,
          jnp.ceil, jnp.round, jnp.sign, jnp.negative, jnp.abs, jnp.exp2, positive(jnp.log2), jnp.expm1,
          positive(jnp.log1p), lax.erf, lax.erfc, small(lax.erf_inv), lax.logistic, jnp.square, lambda x: x**3,
          lambda x: x**-2, lambda x: jnp.power(jnp.abs(x), x), lambda x: jnp.arctan2(x, x + 1), small(jnp.arcsin),
          small(jnp.arccos), jnp.arctan, jnp.sinh, jnp.cosh, jnp.arcsinh, small(jnp.arctanh), positive(lambda x: jnp.arccosh(x + 1)),
          jnp.cbrt, positive(lax.lgamma), lambda x: jnp.maximum(x, 0.2), lambda x: jnp.minimum(x, -0.1),
          lambda x: jnp.clip(x, -0.5, 0.5), lambda x: jnp.where(x > 0, x, 2 * x), nn.relu, nn.gelu, nn.silu, nn.softplus,
          lambda x: jnp.isfinite(x).astype(F32), lambda x: jnp.mod(x, 0.7), lambda x: lax.rem(x, x + 3),
          lambda x: lax.nextafter(x, x + 1), jax.grad(lambda x: jnp.sum(jnp.tanh(x) * nn.gelu(x)))]
case(Struct((len(FLOATS), 64), F32), normal(64), name="functions of floats")(each(*FLOATS))
HALVES = [jnp.exp, lambda x: x * x + 1, jnp.tanh, lambda x: jnp.sum(x) * jnp.ones_like(x), nn.relu,
          lambda x: x / (1 + jnp.abs(x)), positive(jnp.sqrt), lambda x: x.astype(F32).astype(x.dtype)]
for dtype in ("bfloat16", "float16"):
    case(Struct((8, 64), dtype), normal(64, dtype=dtype), name=f"functions of {dtype}")(each(*HALVES))
INTEGERS = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a // b, lambda a, b: a % b, lax.div,
            lax.rem, lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: ~a, lambda a, b: a << 2,
            lambda a, b: a >> 1, jnp.maximum, jnp.minimum, lambda a, b: -a, lambda a, b: jnp.abs(a),
            lambda a, b: jnp.sign(a), lambda a, b: lax.shift_right_logical(a, jnp.full_like(a, 3)),
            lambda a, b: (a > b).astype(I32), lambda a, b: (a == b).astype(I32), lambda a, b: a**2,
            lambda a, b: (a.astype(F32) * 1.5).astype(I32), lambda a, b: a.astype("uint8").astype(I32),
            lambda a, b: a.astype("int8").astype(I32), lambda a, b: jnp.where((a > 0) ^ (b > 0) | (a == b), a, b),
            lambda a, b: jnp.clip(a, -3, 3), lambda a, b: lax.iota(I32, 32)]
case(Struct((len(INTEGERS), 32), I32), integers(-50, 50, 32), integers(1, 9, 32) * jnp.array([-1, 1] * 16),
     name="functions of integers")(each(*INTEGERS))
UNSIGNED = [lambda a: a + a, lambda a: a // 3, lambda a: a % 7, lambda a: a >> 2, lambda a: jnp.maximum(a, jnp.uint32(5)),
            lambda a: (a > jnp.uint32(2**31)).astype("uint32"), lambda a: a.astype(F32).astype("uint32"), lambda a: ~a]
case(Struct((8, 16), "uint32"), integers(0, 2**24, 16, dtype="uint32"), name="functions of uint32")(each(*UNSIGNED))


@case([Struct((32,), F32), Struct((32,), "bool")], normal(32), integers(0, 2, 32, dtype="bool"))
def bools_in_memory(x, mask, o, above):
    o[...] = jnp.where(mask[...], x[...], 0)
    above[...] = x[...] > 0


@case([Struct((7, 16), F32), Struct((3, 16), I32)], normal(16, 32))
def reductions(x, o, found):
    v = x[...]
    for i, row in enumerate([jnp.sum(v, 1), jnp.max(v, 1), jnp.min(v, 1), jnp.prod(v / 2, 1), jnp.full(16, jnp.mean(v)),
                             jnp.any(v > 2, 1) * 1.0, jnp.all(v > -2, 1) * 1.0]):
        o[i] = row
    for i, row in enumerate([jnp.argmax(v, 1), jnp.argmin(jnp.where(v > 0.5, jnp.nan, v), 1), jnp.sum(v > 0, axis=1)]):
        found[i] = row


@case(Struct((4, 32), F32), normal(32))
def cumulative(x, o):
    o[0], o[1] = jnp.cumsum(x[...]), jnp.cumprod(x[...] / 9 + 1)
    o[2], o[3] = lax.cummax(x[...]), lax.cumsum(x[...], reverse=True)


@case(Struct((32, 64), F32), normal(32, 64), grid=(32,), in_specs=[Block((None, 64), lambda i: (i, 0))],
      out_specs=Block((None, 64), lambda i: (i, 0)))
def softmax_of_rows(x, o):
    o[...] = nn.softmax(x[...])


@case(Struct((16, 64), F32), normal(16, 64), normal(64), normal(64), grid=(4,),
      in_specs=[Block((4, 64), lambda i: (i, 0)), Block((64,), lambda i: (0,)), Block((64,), lambda i: (0,))],
      out_specs=Block((4, 64), lambda i: (i, 0)))
def layer_norm(x, scale, bias, o):
    centred = x[...] - jnp.mean(x[...], 1, keepdims=True)
    o[...] = centred * lax.rsqrt(jnp.mean(centred**2, 1, keepdims=True) + 1e-5) * scale[...] + bias[...]


@case(Struct((64, 64), F32), normal(64, 32), normal(32, 64), grid=(2, 4), out_specs=Block((32, 16), lambda i, j: (i, j)),
      in_specs=[Block((32, 32), lambda i, j: (i, 0)), Block((32, 16), lambda i, j: (0, j))])
def product_of_blocks(x, y, o):
    o[...] = jnp.dot(x[...], y[...], precision="highest")


def product(x, y, o):
    def body(i, sums):
        part = pl.ds(i * 16, 16)
        return sums + triton.dot(x[:, part], y[part, :], precision="highest")
    o[...] = lax.fori_loop(0, 4, body, jnp.zeros((32, 16))).astype(o.dtype)


for dtype in (F32, "bfloat16", "float16"):
    case(Struct((64, 64), dtype), normal(64, 64, dtype=dtype), normal(64, 64, dtype=dtype), name=f"product of {dtype}",
         grid=(2, 4), out_specs=Block((32, 16), lambda i, j: (i, j)),
         in_specs=[Block((32, 64), lambda i, j: (i, 0)), Block((64, 16), lambda i, j: (0, j))])(product)


@case([Struct((16,), F32), Struct((16,), F32), Struct((2, 4, 8), F32), Struct((32, 32), I32)], normal(16, 32), normal(32),
      normal(2, 4, 16), normal(2, 8, 16), integers(-9, 9, 32, 32, dtype="int8"))
def other_products(matrix, vector, a, b, bytes_, o, back, batch, whole):
    o[...] = matrix[...] @ vector[...]
    back[...] = vector[...] @ matrix[...].T
    batch[...] = jnp.einsum("bij,bkj->bik", a[...], b[...])
    whole[...] = triton.dot(bytes_[...], bytes_[...], trans_b=True)


@case(Struct((4, 64, 32), F32), *[normal(4, 64, 32) for _ in range(3)], grid=(4, 2),
      in_specs=[Block((None, 32, 32), lambda h, i: (h, i, 0)), *[Block((None, 64, 32), lambda h, i: (h, 0, 0))] * 2],
      out_specs=Block((None, 32, 32), lambda h, i: (h, i, 0)))
def attention(q, k, v, o):
    """Dao, Fu, Ermon, Rudra & Re, "FlashAttention" (2022): softmax is made in parts as the keys are read."""
    def body(i, carry):
        out, most, total = carry
        part = pl.ds(i * 16, 16)
        scores = triton.dot(q[...], k[part, :], trans_b=True, precision="highest") / np.sqrt(32).astype(F32)
        larger = jnp.maximum(most, jnp.max(scores, 1))
        weights, less = jnp.exp(scores - larger[:, None]), jnp.exp(most - larger)
        out = out * less[:, None] + triton.dot(weights, v[part, :], precision="highest")
        return out, larger, total * less + jnp.sum(weights, 1)
    out, _, total = lax.fori_loop(0, 4, body, (jnp.zeros((32, 32)), jnp.full(32, -jnp.inf), jnp.zeros(32)))
    o[...] = out / total[:, None]


@case(Struct((128,), F32), normal(100), jnp.zeros(128), input_output_aliases={1: 0}, grid=(4,))
def loads_and_stores_under_masks(x, _, o):
    places = pl.program_id(0) * 32 + jnp.arange(32)
    inside = places < x.shape[0]
    part = pl.ds(pl.program_id(0) * 32, 32)
    triton.store(o.at[part], triton.load(x.at[part], mask=inside, other=-1.0) * 2, mask=inside)


@case(Struct((24,), F32), normal(24), grid=(3,), in_specs=[Block((8,), lambda i: (i,))],
      out_specs=Block((8,), lambda i: (i,)))
def branches(x, o):
    i = pl.program_id(0)
    o[...] = x[...]

    @pl.when(i == 1)
    def _():
        o[...] = x[...] * 10
    o[0] = jnp.where(i == 2, 99.0, o[0])
    o[1] = lax.cond(i > 0, lambda v: v + 1, lambda v: v * 3, x[1])
    o[2] = lax.switch(i, [lambda v: v, lambda v: -v, lambda v: v * 7], x[2])


@case(Struct((16,), F32), normal(16))
def loops(x, o):
    value, steps = lax.while_loop(lambda c: jnp.sum(c[0]) > 1, lambda c: (c[0] / 2, c[1] + 1), (jnp.abs(x[...]), 0))
    o[...] = value + steps

    @pl.loop(0, 8)
    def _(i):
        o[i] += i.astype(F32)
    last = jnp.sum(x[...] > 0)      # known when it runs

    @pl.loop(0, last)
    def _(i):
        o[i] *= 2


@case([Struct((8,), F32), Struct((16,), F32), Struct((4, 32), F32)], normal(16), jnp.asarray(rng.permutation(16)[:8], I32),
      normal(16, 32), jnp.array([3, 0, -1, 7]))
def gathers_and_scatters(x, places, rows, some, o, scattered, chosen):
    o[...] = x[places[...]]
    scattered[...] = jnp.zeros(16)
    scattered[places[...]] = o[...] * 2
    chosen[...] = rows[some[...], :]


@case([Struct((2, 8), F32), Struct((16, 32), F32)], normal(16, 32), jnp.array([[3], [-2]]), jnp.arange(8) * 2)
def arrays_of_places_beside_each_other(x, i, j, o, written):
    o[...] = x[i[...], j[...]] + x[jnp.full((2, 8), 5), jnp.argmin(i[...])]
    written[...] = jnp.zeros((16, 32))
    written[i[...], j[...]] = o[...]
    o[1] += triton.load(x.at[-1, pl.ds(jnp.argmin(i[...]) + 27, 8)], mask=jnp.arange(8) < 4, other=2.0)


@case(Struct((4, 8), F32), normal(8, 8), jnp.zeros((4, 8)), input_output_aliases={1: 0})
def views(x, _, o):
    o.at[1:3].at[:, 2:4][...] = x.at[4:6][:, :2]
    o[0] = x[-1]
    o[3, ::2] = x[1, :4]
    o[1:3, :2] = x[pl.ds(2, 2), pl.ds(4, 2)]
    o[1:3, 4:] = x.T[:2, 4:]
    o[3, 1] = o[3, 0] + x[2, 5]


@case(Struct((4, 8), F32), normal(8, 4))
def shapes(x, o):
    v = x[...]
    o[...] = jnp.sum(v.T.reshape(4, 8)[:, None] * jnp.ones((1, 2, 1)), 1) + v.reshape(4, 8) + jnp.arange(8)


@case(Struct((8, 16), F32), normal(8, 16), grid=(2, 4), in_specs=[Block((4, 4), lambda i, j: (1 - i, j))],
      out_specs=Block((4, 4), lambda i, j: (i, j)))
def places_of_the_grid(x, o):
    o[...] = x[...] + pl.program_id(0) * 10 + pl.program_id(1) * pl.num_programs(1)


@case(Struct((8,), F32), normal(8), input_output_aliases={0: 0})
def one_element_of_what_is_passed(x, o):
    o[0] = x[1] + jnp.max(x[...])


@case(Struct((5,), F32), normal(8), grid=(5,), in_specs=[Block((pl.Element(4),), lambda i: (i,))],
      out_specs=Block((1,), lambda i: (i,)))
def windows(x, o):
    o[...] = jnp.sum(x[...])[None]


@case([Struct((64,), F32), Struct((8,), I32)], normal(4, 32), jnp.zeros(64), jnp.zeros(8, I32), grid=(4,),
      input_output_aliases={1: 0, 2: 1},
      in_specs=[Block((None, 32), lambda i: (i, 0)), Block((64,), lambda i: (0,)), Block((8,), lambda i: (0,))])
def atomic_operations(x, _, __, sums, counts):
    i = pl.program_id(0)
    triton.atomic_add(sums, (pl.ds(0, 32),), x[...], mask=jnp.arange(32) < 20)
    triton.atomic_add(counts, 0, 1)
    triton.atomic_max(counts, 1, i)
    triton.atomic_min(counts, 2, -i)
    triton.atomic_or(counts, 3, 1 << i)
    triton.atomic_xor(counts, 4, 1 << i)
    triton.atomic_and(counts, 5, i)
    triton.atomic_xchg(counts, 6, 7)
    triton.atomic_cas(counts.at[7], 0, 5)


mapped = partial(jax.vmap, in_axes=(1, None), out_axes=1)
