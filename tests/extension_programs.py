"""Primitives as a user writes them for JAX: with other import lines, this file runs under jax as it stands.
"""
from functools import partial

import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core import ShapedArray
from hlotrace.extend.core import Primitive
from hlotrace.interpreters import ad, batching, mlir, xla
from hlotrace.interpreters.mlir import hlo

# --- the worked example of the documentation: x * y + z, all rules by hand, lowered with MLIR objects -------

mul_add_p = Primitive("mul_add")


def mul_add(x, y, z):
    return mul_add_p.bind(x, y, z)


@mul_add_p.def_impl
def _(x, y, z):
    return np.add(np.multiply(x, y), z)


@mul_add_p.def_abstract_eval
def _(x, y, z):
    assert x.shape == y.shape == z.shape
    return ShapedArray(x.shape, x.dtype)


def mul_add_lowering(ctx, x, y, z):
    assert len(ctx.avals_in) == 3 and ctx.avals_out[0].shape == ctx.avals_in[0].shape
    return [hlo.AddOp(hlo.multiply(x, y), z).result]


mlir.register_lowering(mul_add_p, mul_add_lowering)


def mul_add_jvp(primals, tangents):
    x, y, z = primals
    dx, dy, dz = [ad.instantiate_zeros(t) for t in tangents]
    return mul_add(x, y, z), mul_add(dx, y, mul_add(x, dy, dz))


def mul_add_transpose(ct, x, y, z):
    zeros = jnp.zeros(ct.shape, ct.dtype)
    if ad.is_undefined_primal(x):
        assert type(x) is ad.UndefinedPrimal and x.aval.shape == ct.shape
        return mul_add(ct, y, zeros), None, ct if ad.is_undefined_primal(z) else None
    ct_y = mul_add(x, ct, zeros) if ad.is_undefined_primal(y) else None
    return None, ct_y, ct if ad.is_undefined_primal(z) else None


def elementwise_batch(p, args, dims):
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    return p.bind(*[batching.bdim_at_front(a, d, size) for a, d in zip(args, dims)]), 0


ad.primitive_jvps[mul_add_p] = mul_add_jvp
ad.primitive_transposes[mul_add_p] = mul_add_transpose
batching.primitive_batchers[mul_add_p] = partial(elementwise_batch, mul_add_p)


# --- several results, of which some have no derivative; lowered as what a function does ---------------------

sin_cos_p = Primitive("sin_cos_sign")
sin_cos_p.multiple_results = True


def sin_cos(x, *, scale=2.0):
    return sin_cos_p.bind(x, scale=scale)


def sin_cos_reference(x, scale=2.0):
    return [jnp.sin(scale * x), jnp.cos(scale * x), jnp.sign(x).astype("int32")]


sin_cos_p.def_impl(partial(xla.apply_primitive, sin_cos_p))
sin_cos_p.def_abstract_eval(lambda x, scale: [x, x, x.update(dtype=np.dtype("int32"), weak_type=False)])
mlir.register_lowering(sin_cos_p, mlir.lower_fun(sin_cos_reference, multiple_results=True))


def sin_cos_jvp(primals, tangents, *, scale):
    (x,), (dx,) = primals, tangents
    outs = sin_cos_p.bind(x, scale=scale)
    if type(dx) is ad.Zero:
        return outs, [ad.Zero(dx.aval), ad.Zero(dx.aval), no_tangent(outs[2])]
    return outs, [scale * outs[1] * dx, -scale * outs[0] * dx, no_tangent(outs[2])]


def no_tangent(x):
    return ad.Zero(ShapedArray(x.shape, jax.dtypes.float0))


ad.primitive_jvps[sin_cos_p] = sin_cos_jvp
batching.primitive_batchers[sin_cos_p] = lambda args, dims, **params: (
    sin_cos_p.bind(*args, **params), list(dims) * 3)


# --- linear, several results --------------------------------------------------------------------------------

spread_p = Primitive("spread")
spread_p.multiple_results = True
spread_p.def_impl(partial(xla.apply_primitive, spread_p))
spread_p.def_abstract_eval(lambda x, n: (x,) * n)


def spread(x, n=3):
    return spread_p.bind(x, n=n)


def spread_reference(x, n=3):
    return [(i + 1) * x for i in range(n)]


def spread_transpose(cts, x, *, n):
    assert ad.is_undefined_primal(x) and len(cts) == n
    total = ad.Zero(x.aval)
    for i, ct in enumerate(cts):
        total = ad.add_tangents(total, ct if type(ct) is ad.Zero else (i + 1) * ct)
    return [total]


def spread_lowering(ctx, x, *, n):
    out = []
    for i in range(n):
        factor = mlir.ir_constant(np.full(ctx.avals_in[0].shape, i + 1, ctx.avals_in[0].dtype))
        out.append(hlo.multiply(factor, x))
    return out


mlir.register_lowering(spread_p, spread_lowering)
ad.deflinear2(spread_p, spread_transpose)
batching.primitive_batchers[spread_p] = lambda args, dims, n: (spread_p.bind(*args, n=n), [dims[0]] * n)


# --- linear, one result -------------------------------------------------------------------------------------

halve_p = Primitive("halve")
halve_p.def_impl(partial(xla.apply_primitive, halve_p))
halve_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(halve_p, mlir.lower_fun(lambda x: x * 0.5, multiple_results=False))
ad.deflinear(halve_p, lambda ct: [halve_p.bind(ct)])
batching.defvectorized(halve_p)


# --- bilinear -----------------------------------------------------------------------------------------------

times_p = Primitive("times")
times_p.def_impl(partial(xla.apply_primitive, times_p))
times_p.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))
mlir.register_lowering(times_p, lambda ctx, x, y: hlo.MulOp(x, y).results)
ad.defbilinear(times_p, lambda ct, x, y: times_p.bind(ct, y), lambda ct, x, y: times_p.bind(x, ct))
batching.primitive_batchers[times_p] = partial(elementwise_batch, times_p)


# --- by a derivative for each operand -----------------------------------------------------------------------

hypot_p = Primitive("hypotenuse")
hypot_p.def_impl(partial(xla.apply_primitive, hypot_p))
hypot_p.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))
mlir.register_lowering(hypot_p, mlir.lower_fun(lambda x, y: jnp.sqrt(x * x + y * y), multiple_results=False))
ad.defjvp2(hypot_p, lambda g, out, x, y: g * x / out, lambda g, out, x, y: g * y / out)
batching.primitive_batchers[hypot_p] = partial(elementwise_batch, hypot_p)

square_p = Primitive("squared")
square_p.def_impl(partial(xla.apply_primitive, square_p))
square_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(square_p, mlir.lower_fun(lambda x: x * x, multiple_results=False))
ad.defjvp(square_p, lambda g, x: 2.0 * g * x)
batching.defvectorized(square_p)

# (what is under test, the same in jnp, number of operands)
FUNCTIONS = {
    "mul_add": (mul_add, lambda x, y, z: x * y + z, 3),
    "sin_cos": (sin_cos, sin_cos_reference, 1),
    "spread": (spread, spread_reference, 1),
    "halve": (halve_p.bind, lambda x: x * 0.5, 1),
    "times": (times_p.bind, lambda x, y: x * y, 2),
    "hypot": (hypot_p.bind, lambda x, y: jnp.sqrt(x * x + y * y), 2),
    "square": (square_p.bind, lambda x: x * x, 1),
}


# --- what is done with them: each takes a function of n arrays of one shape ---------------------------------

def operands(n, *lead):
    return [jnp.asarray(np.random.RandomState(i).uniform(0.5, 2.0, (*lead, 4)).astype("float32"))
            for i in range(n)]


def listed(out):
    return list(out) if isinstance(out, (list, tuple)) else [out]


def loss(f):
    """The sum of all floating results, weighted so that each counts in its own way."""
    return lambda *xs: sum((i + 1.5) * jnp.sum(jnp.cos(o) * o) for i, o in enumerate(listed(f(*xs)))
                           if o.dtype == "float32")


def every(n):
    return tuple(range(n))


def _jvp(f, n):
    return jax.jvp(lambda *xs: [o for o in listed(f(*xs)) if o.dtype == "float32"], operands(n),
                   operands(n)[::-1])


def _vjp(f, n):
    out, pull = jax.vjp(lambda *xs: [o for o in listed(f(*xs)) if o.dtype == "float32"], *operands(n))
    return pull([o * 2 for o in out])


def _linearize(f, n):
    out, linear = jax.linearize(loss(f), *operands(n))
    return out, linear(*operands(n)[::-1])


def _vmap_one(f, n):
    """Only the first operand is mapped, along its last axis."""
    xs = operands(n)
    first = jnp.stack([xs[0], 2 * xs[0], 3 * xs[0]], axis=1)
    return jax.vmap(f, in_axes=(1,) + (None,) * (n - 1))(first, *xs[1:])


def _scan(f, n):
    def body(carry, xs):
        return carry + listed(f(carry, *xs))[0], f(carry, *xs)
    return jax.lax.scan(body, operands(1)[0], tuple(operands(n, 3)[1:]), length=3)


def _cond(f, n):
    return [jax.lax.cond(p, lambda *xs: loss(f)(*xs), lambda *xs: xs[0].sum(), *operands(n))
            for p in (True, False)]


def _while(f, n):
    xs = operands(n)
    return jax.lax.fori_loop(0, 3, lambda i, c: 0.5 * listed(f(c, *xs[1:]))[0], xs[0])


def _custom_jvp(f, n):
    @jax.custom_jvp
    def g(*xs):
        return loss(f)(*xs)
    g.defjvp(lambda primals, tangents: jax.jvp(loss(f), primals, tangents))
    return jax.grad(lambda *xs: g(*xs) * 2.0, every(n))(*operands(n))


def _custom_vjp(f, n):
    @jax.custom_vjp
    def g(*xs):
        return loss(f)(*xs)
    g.defvjp(lambda *xs: jax.vjp(loss(f), *xs), lambda pull, ct: pull(ct))
    return jax.jit(jax.grad(lambda *xs: g(*xs) * 2.0, every(n)))(*operands(n))


def _shard_map(f, n, check_vma=False):
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    g = jax.shard_map(lambda *xs: jax.lax.psum(loss(f)(*xs), "i"), mesh=mesh, in_specs=(spec,) * n,
                      out_specs=jax.sharding.PartitionSpec(), check_vma=check_vma)
    return jax.jit(g)(*operands(n)), jax.jit(jax.grad(g, every(n)))(*operands(n))


TRANSFORMATIONS = {
    "eager": lambda f, n: f(*operands(n)),
    "jit": lambda f, n: jax.jit(f)(*operands(n)),
    "grad": lambda f, n: jax.grad(loss(f), every(n))(*operands(n)),
    "grad of jit": lambda f, n: jax.grad(jax.jit(loss(f)), every(n))(*operands(n)),
    "jit of grad": lambda f, n: jax.jit(jax.grad(loss(f), every(n)))(*operands(n)),
    "jvp": _jvp,
    "jvp under jit": lambda f, n: jax.jit(lambda: _jvp(f, n))(),
    "vjp": _vjp,
    "linearize": _linearize,
    "second derivative": lambda f, n: jax.jit(jax.hessian(loss(f)))(*operands(n)),
    "forward over reverse": lambda f, n: jax.jvp(jax.grad(loss(f)), operands(n), operands(n)[::-1]),
    "vmap": lambda f, n: jax.vmap(f)(*operands(n, 3)),
    "vmap over one operand": _vmap_one,
    "grad of vmap": lambda f, n: jax.grad(lambda *xs: jax.vmap(loss(f))(*xs).sum(),
                                          every(n))(*operands(n, 3)),
    "vmap of grad": lambda f, n: jax.vmap(jax.grad(loss(f), every(n)))(*operands(n, 3)),
    "jit of vmap of grad": lambda f, n: jax.jit(jax.vmap(jax.grad(loss(f), every(n))))(*operands(n, 3)),
    "scan": _scan,
    "grad of scan": lambda f, n: jax.grad(lambda s: sum(
        jnp.sum(o) for o in jax.tree_util.tree_leaves(_scan(lambda c, *xs: f(c * s, *xs), n))
        if o.dtype == "float32"))(0.7),
    "cond": _cond,
    "grad of cond": lambda f, n: jax.grad(lambda s: _cond(lambda x, *xs: f(x * s, *xs), n)[0])(0.7),
    "while": _while,
    "vmap of while": lambda f, n: jax.vmap(lambda s: _while(lambda x, *xs: f(x * s, *xs), n))(
        jnp.array([0.5, 0.9])),
    "grad of checkpoint": lambda f, n: jax.grad(jax.checkpoint(loss(f)), every(n))(*operands(n)),
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "shard_map": _shard_map,
    "make_jaxpr": lambda f, n:
        jax.core.eval_jaxpr(*(lambda j: (j.jaxpr, j.consts))(jax.make_jaxpr(f)(*operands(n))),
                                                   *operands(n)),
}
