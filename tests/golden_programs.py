"""Programs whose text is kept in `golden/`: one or more of each family of primitives, with the flags that it can carry.

A family is a dict from a title to (function, *arguments): what is written of it is its jaxpr and its StableHLO.
"""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import export, lax, random
from hlotrace.ad_checkpoint import checkpoint_name
from hlotrace.core.platforms import platform_named
from hlotrace.core.primitive import PRIMITIVES
from hlotrace.custom_batching import sequential_vmap
from hlotrace.custom_derivatives import linear_call
from hlotrace.experimental.buffer_callback import buffer_callback
from hlotrace.experimental.checkify import all_checks, check, checkify, debug_check
from hlotrace.experimental.compute_on import compute_on
from hlotrace.experimental.custom_partitioning import custom_partitioning
from hlotrace.experimental.hijax import VJPHiPrimitive
from hlotrace.experimental.layout import Layout, with_layout_constraint
from hlotrace.experimental.shard_alike import shard_alike
from hlotrace.experimental.xla_metadata import xla_metadata_call2
from hlotrace.extend.random import threefry2x32_p
from hlotrace.primitives.linalg.factorizations import geqp3_p, geqrf_p
from hlotrace.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

MESH = AbstractMesh((4,), ("x",))
EXPLICIT = AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)


def f32(*shape):
    return np.zeros(shape, np.float32)


def i32(*shape):
    return np.zeros(shape, np.int32)


def referenced(xs):
    """A loop that reads and writes a Ref."""
    total = jax.new_ref(jnp.zeros(2))

    def body(_, x):
        total[0] += x
        return None, total[...]
    return lax.scan(body, None, xs)[1], jax.freeze(total)


def grad(f, argnums=0):
    return jax.grad(lambda *args: f(*args).sum(), argnums)


def pulled(f):
    """The cotangents of a function of arrays."""
    def pull(ct, *args):
        return jax.vjp(f, *args)[1](ct)
    return pull


# --- elementwise --------------------------------------------------------------------------------------------------

ELEMENTWISE = {
    "of arrays": (lambda x, y: lax.atan2(lax.max(x, y), lax.rem(x, y)), f32(3), f32(3)),
    "constants, weak and strong, of either sign": (
        lambda x: (x + 1.5, 2 * x, x * np.float32(-0.0), x - 0.0, x / -0.0, jnp.copysign(x, -0.0)), f32(3)),
    "constants that are not finite": (lambda x: (x + np.inf, x - np.inf, x * np.nan), f32(2)),
    "array constants": (lambda x: (x + np.array([1.0, -0.0], np.float32), x * np.full(2, -0.0, np.float32)), f32(2)),
    "long constants": (lambda x: x + np.arange(65, dtype=np.float32), f32(65)),
    "constants of other kinds": (
        lambda i, b, c: (i + 7, i & 3, b ^ True, c * (1 - 2j), c + np.complex64(-0.0)),
        np.zeros(2, np.uint8), np.zeros(2, bool), np.zeros(2, np.complex64)),
    "conversions": (lambda x: (x.astype(jnp.bfloat16), x.astype(bool), x.astype(np.int8), lax.bitcast_convert_type(
        x, np.int32), lax.reduce_precision(x, 5, 2)), f32(2)),
    "rounding": (lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)), f32(2)),
    "comparisons": (lambda x, i, u, b: (x < 1, i >= 2, u > 3, b == True), f32(2), i32(2),  # noqa: E712
                    np.zeros(2, np.uint32), np.zeros(2, bool)),
    "select, clamp": (lambda b, x, y: (lax.select_n(b, x, y), lax.clamp(0.0, x, y), lax.select_n(
        b.astype(np.int32), x, y, x)), np.zeros(2, bool), f32(2), f32(2)),
    "shifts": (lambda i: (i << 1, i >> 2, lax.shift_right_logical(i, 3)), i32(2)),
    "integer powers": (lambda x: (x ** 3, x ** -2, x ** 0.5), f32(2)),
    "made of a few": (lambda x, i: (lax.log2(x), lax.one_minus_square(x), lax.mulhi(i, i), lax.eq_to_p.bind(x, x)),
                      f32(2), i32(2)),
    "derivatives": (grad(lambda x, y: lax.max(x, y) * lax.tanh(x) / lax.log1p(y), (0, 1)), f32(2), f32(2)),
}

# --- shapes ---------------------------------------------------------------------------------------------------------


def moved(x):
    return (lax.broadcast_in_dim(x, (2, 4, 3), (0, 2)), x.reshape(3, 2), x.T, lax.rev(x, (1,)), x[None, :, None],
            lax.squeeze(x[:1, :, None], (0, 2)), jnp.array(x, copy=True))


SHAPES = {
    "moved": (moved, f32(2, 3)),
    "slices": (lambda x: (lax.slice(x, (1, 0), (5, 3), (2, 1)), x[::-2, -1]), f32(6, 3)),
    "padding outside, inside and negative": (lambda x: lax.pad(x, -1.5, ((1, 2, 0), (0, -1, 3))), f32(2, 3)),
    "transposed padding": (grad(lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, -1, 3))), (0, 1)), f32(2, 3), np.float32(0)),
    "transposed slice": (pulled(lambda x: lax.slice(x, (1, 0), (6, 3), (2, 1))), f32(3, 3), f32(6, 3)),
    "concatenated, along the last axis": (lambda x, y: lax.concatenate([x, y, x], 1), f32(2, 1), f32(2, 3)),
    "transposed concatenation": (pulled(lambda x, y: lax.concatenate([x, y], 1)), f32(2, 4), f32(2, 1), f32(2, 3)),
    "interleaved, of either length": (lambda x: lax.associative_scan(lax.mul, x), f32(5, 2)),
    "iota": (lambda: (lax.broadcasted_iota(np.uint8, (2, 3), 1), jnp.arange(3.0), jnp.eye(2, 3, 1)),),
    "barrier": (lambda x, y: lax.optimization_barrier((x, y)), f32(2), i32(3)),
    "what is kept": (lambda x: lax.dce_sink(x + 1), f32(2)),
    "dynamic slice and update": (
        lambda x, i: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 0), (1, 2)), (2, i)), f32(3, 4), np.int32(0)),
    "transposed dynamic slice": (pulled(lambda x, i: lax.dynamic_slice(x, (i,), (2,))), f32(2), f32(5), np.int32(0)),
}

# --- reductions -----------------------------------------------------------------------------------------------------

def pooled(f):
    start = -np.inf if f is lax.max else np.inf
    return lambda x: lax.reduce_window(x, start, f, (2,), (2,), ((1, 0),))


KINDS = [np.float32, np.int8, np.uint16, np.bool_]
REDUCE = {
    "of numbers": (lambda x, c: (lax.reduce_sum(x, (0,)), lax.reduce_prod(x, (0, 1)), lax.reduce_sum(c, (0,))),
                   f32(2, 3), np.zeros(2, np.complex64)),
    **{f"identities of {np.dtype(d).name}": (
        lambda x: [r(x, (0,)) for r in (lax.reduce_max, lax.reduce_min)], np.zeros(2, d)) for d in KINDS},
    **{f"bits of {np.dtype(d).name}": (
        lambda x: [r(x, (0,)) for r in (lax.reduce_and, lax.reduce_or, lax.reduce_xor)], np.zeros(2, d))
       for d in KINDS[1:]},
    "narrow floats are summed in float32": (lambda x: (jnp.sum(x), jnp.mean(x), jnp.cumsum(x), x @ x),
                                            np.zeros(2, jnp.bfloat16)),
    "arguments": (lambda x: (lax.argmax(x, 1, np.int32), lax.argmin(x, 0, np.uint8)), f32(2, 3)),
    "by a program": (lambda x, v: lax.reduce(x, v, lambda a, b: a * b + 1, (1,)), f32(2, 3), np.float32(0)),
    "running": (lambda x: [f(x, axis=0, reverse=r) for r in (False, True) for f in (
        lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)], f32(3)),
    "transposed running sum": (pulled(lambda x: lax.cumsum(x, 0, reverse=True)), f32(3), f32(3)),
    "windows": (lambda x: [lax.reduce_window(x, init, f, (2, 3), (1, 2), ((1, 0), (0, 1)), (1, 2), (2, 1)) for init, f in (
        (0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min), (1.0, lax.mul))], f32(4, 5)),
    "transposed windows": (grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (3,), ((1, 2),), (2,), (2,))), f32(6)),
    "chosen in windows": (lambda x: [grad(pooled(f))(x) for f in (lax.max, lax.min)], f32(5)),
    "tangents of what is chosen": (lambda x, t: jax.jvp(pooled(lax.max), (x,), (t,)), f32(5), f32(5)),
}

SORT = {
    "stable": (lambda x: lax.sort(x, dimension=0), f32(3, 2)),
    "unstable integers": (lambda x: lax.sort(x, is_stable=False), i32(3)),
    "two keys of three": (lambda *xs: lax.sort(xs, num_keys=2), i32(3), np.zeros(3, np.uint8), f32(3)),
    "descending": (lambda x: (jnp.sort(x, descending=True), jnp.argsort(x, descending=True)), i32(3)),
    "top_k": (lambda x: lax.top_k(x, 2), f32(2, 3)),
}

# --- linear algebra -------------------------------------------------------------------------------------------------

linalg = lax.linalg
LINEAR_ALGEBRA = {
    "triangular": (lambda a, b: (linalg.triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=True),
                                 linalg.cholesky(a)), f32(2, 3, 3), f32(2, 3, 1)),
    "transposed triangular": (pulled(lambda b, a: linalg.triangular_solve(a, b, transpose_a=True, conjugate_a=True)),
                              np.zeros((2, 3), np.complex64), np.zeros((2, 3), np.complex64),
                              np.zeros((3, 3), np.complex64)),
    "one matrix, many right-hand sides": (jax.vmap(lambda a, b: linalg.triangular_solve(a, b, left_side=True), (None, 0)),
                                          f32(3, 3), f32(5, 3, 2)),
    "lu": (lambda x, p: (linalg.lu(x), linalg.lu_pivots_to_permutation(p, 4)), f32(3, 3), i32(3)),
    "qr": (lambda x: (linalg.qr(x), linalg.qr(x, pivoting=True, full_matrices=False)), f32(3, 2)),
    "reflectors": (lambda x, t: (geqrf_p.bind(x), geqp3_p.bind(x, use_magma=None), linalg.householder_product(x, t)),
                   f32(3, 2), f32(2)),
    "eigenvalues": (lambda x: (linalg.eigh(x, lower=False), linalg.eig(x, compute_left_eigenvectors=False)), f32(2, 2)),
    "singular values": (lambda x: (linalg.svd(x), linalg.svd(x, compute_uv=False)), f32(2, 3)),
    "condensed forms": (lambda x: (linalg.hessenberg(x), linalg.tridiagonal(x, lower=False), linalg.schur(x)), f32(3, 3)),
    "tridiagonal systems": (linalg.tridiagonal_solve, f32(3), f32(3), f32(3), f32(3, 1)),
    "updates": (lambda r, w, c: (linalg.cholesky_update(r, w), linalg.symmetric_product(r, c, alpha=2.0)), f32(2, 2), f32(2),
                f32(2, 2)),
    "products with reflectors": (lambda a, taus, c: linalg.ormqr(a, taus, c, transpose=True), f32(3, 2), f32(2), f32(3, 2)),
}

# --- products -------------------------------------------------------------------------------------------------------

NUMBERS = (((2,), (1,)), ((0,), (0,)))


def dot(**flags):
    return lambda x, y: lax.dot_general(x, y, NUMBERS, **flags)


def conv(**flags):
    return lambda x, y: lax.conv_general_dilated(x, y, **{"window_strides": (1, 1), "padding": "VALID", **flags})


IMAGE, KERNEL, PAIR = f32(2, 4, 7, 8), f32(6, 2, 3, 3), (f32(5, 2, 3), f32(5, 3, 4))
STRIDED = conv(window_strides=(2, 1), padding=((1, 0), (2, 3)), lhs_dilation=(1, 2), rhs_dilation=(2, 1),
               feature_group_count=2)


def under_precision(x, y):
    with jax.default_matmul_precision("highest"):
        return x @ y


PRODUCTS = {
    "batch": (dot(), *PAIR),
    "precision": (dot(precision=(lax.Precision.HIGH, lax.Precision.HIGHEST)), *PAIR),
    "operands that are exchanged": (lambda x, y: jnp.einsum("ij,jk->ki", x, y, precision=(
        lax.Precision.HIGH, lax.Precision.HIGHEST)), f32(2, 3), f32(3, 4)),
    "precision in force": (under_precision, *PAIR),
    "algorithm": (dot(precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3), *PAIR),
    "preferred type": (dot(preferred_element_type=np.int32), np.zeros((5, 2, 3), np.int8), np.zeros((5, 3, 4), np.int8)),
    "transposed": (pulled(dot(precision=(lax.Precision.HIGH, lax.Precision.HIGHEST))), f32(5, 2, 4), *PAIR),
    "mapped": (jax.vmap(dot(), (1, None), 1), f32(5, 6, 2, 3), PAIR[1]),
    "convolution": (STRIDED, IMAGE, KERNEL),
    "transposed convolution": (pulled(STRIDED), f32(*jax.eval_shape(STRIDED, IMAGE, KERNEL).shape), IMAGE, KERNEL),
    "convolution in batch groups": (conv(batch_group_count=2, precision="highest"), f32(2, 2, 5, 5), KERNEL),
    "convolution of other layouts": (conv(dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=np.float32),
                                     np.zeros((2, 7, 8, 4), jnp.bfloat16), np.zeros((3, 3, 4, 6), jnp.bfloat16)),
}

# --- gather and scatter ---------------------------------------------------------------------------------------------

GATHER = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((1,), (0,), (0,))
FLAGS = [(False, False), (True, False), (False, True)]     # indices_are_sorted, unique_indices


def flagged(f):
    return [f(dict(indices_are_sorted=s, unique_indices=u)) for s, u in FLAGS]


GATHERS = {
    **{f"gather, {mode}": (lambda x, i, mode=mode: lax.gather(x, i, GATHER, (1, 3), mode=mode), f32(4, 3), i32(2, 1))
       for mode in ("clip", "fill", "promise_in_bounds")},
    "gather, filled with": (lambda x, i: lax.gather(x, i, GATHER, (1, 3), mode="fill", fill_value=-1), f32(4, 3), i32(2, 1)),
    "gather, flags": (lambda x, i: flagged(lambda flags: lax.gather(
        x, i, GATHER, (1, 3), mode="promise_in_bounds", **flags)), f32(4, 3), i32(2, 1)),
    "transposed gather": (lambda ct, x, i: flagged(lambda flags: pulled(lambda x: lax.gather(
        x, i, GATHER, (1, 3), mode="promise_in_bounds", **flags))(ct, x)), f32(2, 3), f32(4, 3), i32(2, 1)),
    "mapped gather": (jax.vmap(lambda x, i: lax.gather(x, i, GATHER, (1, 3), mode="clip", indices_are_sorted=True,
                                                      unique_indices=True)), f32(5, 4, 3), i32(5, 2, 1)),
    **{f"scatter, {mode}": (lambda x, i, u, mode=mode: lax.scatter(x, i, u, SCATTER, mode=mode), f32(4, 3), i32(2, 1),
                            f32(2, 3)) for mode in ("clip", "drop", "promise_in_bounds")},
    "scatters": (lambda x, i, u: [f(x, i, u, SCATTER, mode="promise_in_bounds") for f in (
        lax.scatter_add, lax.scatter_mul, lax.scatter_min, lax.scatter_max)], f32(4, 3), i32(2, 1), f32(2, 3)),
    "scatter_apply": (lambda x, i: lax.scatter_apply(x, i, lax.square, SCATTER, update_shape=(2, 3), mode="drop",
                                                     unique_indices=True), f32(4, 3), i32(2, 1)),
    "scatter, flags": (lambda x, i, u: flagged(lambda flags: lax.scatter_add(
        x, i, u, SCATTER, mode="promise_in_bounds", **flags)), f32(4, 3), i32(2, 1), f32(2, 3)),
    "transposed scatter_add": (lambda ct, x, i, u: flagged(lambda flags: pulled(lambda x, u: lax.scatter_add(
        x, i, u, SCATTER, mode="promise_in_bounds", **flags))(ct, x, u)), f32(4, 3), f32(4, 3), i32(2, 1), f32(2, 3)),
    "mapped scatter": (jax.vmap(lambda x, i, u: lax.scatter(x, i, u, SCATTER, mode="drop", unique_indices=True)),
                       f32(5, 4, 3), i32(5, 2, 1), f32(5, 2, 3)),
    "array indices": (lambda x, i: (x[i], x.at[i].set(1.0), x.at[1:].add(2.0), x.at[i].get(mode="fill", fill_value=7)),
                      f32(4), i32(2)),
}

# --- programs within programs ---------------------------------------------------------------------------------------


def step(c, x):
    return c * x, lax.sin(c)


def scanned(**flags):
    return lambda c, xs: lax.scan(step, c, xs, **flags)


@jax.custom_jvp
def own_jvp(x):
    return lax.sin(x)


own_jvp.defjvp(lambda primals, tangents: (own_jvp(*primals), 7.0 * tangents[0]))


@jax.custom_vjp
def own_vjp(x, y):
    return x * y


own_vjp.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, 5.0 * ct))


class OwnPrimitive(VJPHiPrimitive):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return lax.sin(x)

    def jvp(self, primals, tangents):
        return self(*primals), 7.0 * tangents[0]


def own_primitive(x):
    return OwnPrimitive(jax.typeof(x))(x)


@jax.custom_vjp
def own_vjp_for_remat(x):
    return x * x


own_vjp_for_remat.defvjp(lambda x: (x * x, 2 * x), lambda slope, ct: (ct * slope,), optimize_remat=True)

CONTROL = {
    "cond": (lambda p, x: lax.cond(p, lax.sin, lambda y: y * 2, x), np.True_, f32(2)),
    "switch": (lambda i, x: lax.switch(i, [lax.sin, lax.cos, lambda y: y], x), np.int32(0), f32(2)),
    "gradient of cond": (lambda p, x: jax.grad(lambda x: lax.cond(p, lax.sin, lambda y: y * 2, x))(x), np.True_,
                         np.float32(0)),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.sin(s[1])), (0, x)), f32(2)),
    "while of so many steps": (lambda x: lax.while_loop(lambda v: v < 3, lambda v: v * x, x, max_steps=4), f32()),
    "mapped while": (jax.vmap(lambda x: lax.while_loop(lambda v: v < 3, lambda v: v * 2, x)), f32(2)),
    "fori": (lambda n, x: lax.fori_loop(0, n, lambda i, c: c + i, x), np.int32(3), np.float32(0)),
    "scan": (scanned(), np.float32(0), f32(4)),
    "scan with a reference": (referenced, f32(4)),
    "scan in reverse": (scanned(reverse=True), np.float32(0), f32(4)),
    "scan unrolled": (scanned(unroll=3), np.float32(0), f32(4)),
    "gradient of scan": (grad(lambda c, xs: scanned()(c, xs)[0], (0, 1)), np.float32(0), f32(4)),
    "gradient of scan in reverse": (grad(lambda c, xs: scanned(reverse=True, unroll=2)(c, xs)[0], (0, 1)), np.float32(0),
                                    f32(4)),
    "jit, inlined and not": (lambda x: jax.jit(lax.sin)(jax.jit(lax.cos, inline=True)(x)), f32(2)),
    "custom_jvp": (lambda x: jax.jvp(own_jvp, (x,), (x,)), np.float32(0)),
    "hijax primitive": (lambda x: jax.vmap(lambda x: jax.jvp(own_primitive, (x,), (x,)))(x), f32(2)),
    "custom_vjp": (lambda x, y: (own_vjp(x, y), jax.grad(own_vjp, (0, 1))(x, y)), np.float32(0), np.float32(0)),
    "checkpoint": (lambda x: jax.grad(jax.checkpoint(lambda y: lax.sin(lax.sin(y))))(x), np.float32(0)),
    "custom_vmap and linear_call": (lambda x: jax.vmap(sequential_vmap(lambda x: linear_call(
        lambda r, x: r * x, lambda r, ct: ct, lax.sin(x), x)))(x), f32(2)),
    "custom_vmap": (sequential_vmap(lax.sin), f32(2)),
    "optimize_remat": (lambda x: jax.grad(jax.checkpoint(own_vjp_for_remat))(x), f32()),
    "composite": (lambda x: lax.composite(lambda x, **_: (lax.sin(x), x), "my.op", version=2)(
        x, flag=True, table=np.arange(2), words=("a", 1.5)), f32(2)),
    "platform_dependent": (lambda x: lax.platform_dependent(x, tpu=lax.cos, default=lax.sin), f32(2)),
    "custom_linear_solve": (lambda a, b: jax.grad(lambda b: lax.custom_linear_solve(
        lambda x: a * x, b, lambda _, b: b / a, transpose_solve=lambda _, b: lax.neg(b)).sum())(b), f32(2), f32(2)),
    "checkpoint with a policy": (lambda x: jax.grad(jax.checkpoint(
        lambda y: lax.sin(checkpoint_name(lax.sin(y), "s")), prevent_cse=False,
        policy=jax.checkpoint_policies.save_only_these_names("s")))(x), np.float32(0)),
    "donated": (jax.jit(lambda a, b, c: (a + c, b * 2), donate_argnums=(1,)), f32(2), f32(3), f32(2)),
    "donated by name": (jax.jit(lambda a, b, c: (a + c, b * 2), donate_argnames=("a", "c")), f32(2), f32(3), f32(2)),
}

# --- effects and keys -----------------------------------------------------------------------------------------------


def shown(x, ordered):
    return jax.experimental.io_callback(print, None, x, ordered=ordered)


@jax.jit
def shown_twice(x):
    shown(x, True)
    shown(x * 2, True)
    return x


def called(x, vmap_method, **options):
    kernel = jax.ffi.ffi_call("kernel", x, vmap_method=vmap_method, output_layouts=tuple(range(x.ndim))[::-1], **options)
    return kernel(x, count=3, scale=np.float32(0.5), mode="fast", table={"on": True})


EFFECTS = {
    "a callback with buffers": (buffer_callback(shown, f32(2), input_output_aliases={1: 0},
                                                command_buffer_compatible=True), f32(3), f32(2)),
    "ordered callbacks": (lambda x: (shown(x, True), shown(x + 1, True), x)[-1], np.float32(0)),
    "unordered callbacks": (lambda x: (shown(x, False), shown(x + 1, False), x)[-1], np.float32(0)),
    "pure callback": (lambda x: jax.pure_callback(np.sin, x, x), f32(2)),
    "debug callback": (lambda x: (jax.debug.callback(print, x), x)[1], f32(2)),
    "kernels": (lambda x: called(x, "broadcast_all") + jax.vmap(lambda x: called(x, "broadcast_all"))(x), f32(2, 3)),
    "attributes of calls": (lambda x: jax.grad(xla_metadata_call2(
        lambda x: lax.sin(x).sum(), {"a": 1, "b": True}, ad_metadata={"c": "d"}))(x), f32(2)),
    "computed on the host": (compute_on(lambda x: x * 2, compute_type="device_host", out_memory_spaces="host"), f32(2)),
    "kernels in a loop": (lambda x: jax.vmap(lambda x: called(x, "sequential", has_side_effect=True))(x), f32(2, 3)),
    "ordered callbacks in functions": (lambda x: (shown_twice(x), shown_twice(x + 1))[0], np.float32(0)),
    "debug checks": (lambda x: (debug_check(x > 0, "{}", x), x)[1], np.float32(0)),
    "checks": (checkify(lambda x: lax.fori_loop(0, 2, lambda i, c: (check(c > i, "{} {i}", c, i=i), lax.log(c) / i)[1], x),
                        all_checks), np.float32(0)),
    "ordered callbacks in a loop": (lambda x: lax.fori_loop(0, 2, lambda i, c: (shown(c, True), c)[-1], x), np.float32(0)),
}

KEY = np.zeros(2, np.uint32)
RANDOM = {
    "key": (lambda s: random.key_data(random.key(s)), np.uint32(0)),
    "split, fold_in, clone": (lambda k: (random.key_data(random.split(random.wrap_key_data(k), 3)), random.fold_in(k, 7),
                                         random.clone(k)), KEY),
    "keys of XLA's bits": (lambda s: [random.split(k, 3)[1] == random.fold_in(k, 7) for k in (
        random.key(s, impl="rbg"), random.key(s, impl="unsafe_rbg"))], np.uint32(0)),
    "the hash": (lambda x: threefry2x32_p.bind(np.uint32(1), x, x, x), np.zeros(3, np.uint32)),
    "gamma": (lambda k, a: (random.gamma(k, a), jax.grad(lambda a: random.loggamma(k, a))(a)), KEY, np.float32(2)),
    "key arrays are moved": (lambda k: random.key_data(jnp.flip(random.wrap_key_data(k), 0)[None]),
                             np.zeros((3, 2), np.uint32)),
    "bits of 8 and 32": (lambda k: [random.bits(k, (3,), d) for d in (np.uint8, np.uint32)], KEY),
    **{name: (lambda k, name=name: getattr(random, name)(k, (2,)), KEY)
       for name in ("cauchy", "exponential", "gumbel", "laplace", "logistic")},
    "other distributions": (lambda k, p: (
        random.gumbel(k, (2,), mode="high"), random.truncated_normal(k, -1, 2, (2,)), random.bernoulli(k, p),
        random.categorical(k, p), random.randint(k, (2,), 0, 10)), KEY, f32(3)),
    "XLA's own": (lambda k: (lax.rng_bit_generator(k, (3,)), lax.rng_bit_generator(
        k, (2, 2), np.uint8, lax.RandomAlgorithm.RNG_PHILOX), lax.rng_uniform(np.float32(1), np.float32(2), (3,))),
                  np.zeros(4, np.uint32)),
    "XLA's own, mapped": (jax.vmap(lambda k: lax.rng_bit_generator(k, (2,))), np.zeros((3, 4), np.uint32)),
    "uniform, normal": (lambda k: (random.uniform(k, (2,), minval=-1, maxval=3), random.normal(k, (2,))), KEY),
}

# --- special functions --------------------------------------------------------------------------------------------

SPECIAL = {
    "incomplete functions": (lambda a, x: (lax.igamma(a, x), lax.igammac(a, x), lax.betainc(a, a, x)), f32(2), f32(2)),
    "derivatives": (grad(lambda a, x: lax.igamma(a, x) + lax.igammac(a, x) + lax.betainc(1.0, 2.0, x), (0, 1)),
                    f32(2), f32(2)),
    "Fourier transforms": (lambda x, z: (lax.fft(x, "rfft", (3, 4)), lax.fft(z, "irfft", (5,)), lax.fft(z, "ifft", (2, 3))),
                           f32(2, 3, 4), np.zeros((2, 3), np.complex64)),
    "transposed, of real numbers": (lambda x, z: (jax.vjp(lambda x: lax.fft(x, "rfft", (4,)), x)[1](z), jax.vjp(
        lambda z: lax.fft(z, "irfft", (4,)), z)[1](x)), f32(4), np.zeros(3, np.complex64)),
    "mapped Fourier transform": (jax.vmap(jnp.fft.ihfft, in_axes=1), f32(4, 2)),
    "approximate extremes": (lambda x: (lax.approx_max_k(x, 2), jax.grad(lambda x: lax.approx_min_k(x, 1, 0)[0].sum())(x)),
                             f32(2, 3)),
    "derivative of a sample": (lax.random_gamma_grad, np.float16(1), np.float16(2)),
}

# --- over devices ---------------------------------------------------------------------------------------------------

GROUPS = [[0, 1], [2, 3]]


CUT = P("x")


def over(f, in_specs=CUT, out_specs=CUT, **flags):
    return jax.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **flags)


def communicated(groups):
    def f(x):
        flags = dict(axis_index_groups=groups)
        return (lax.psum(x, "x", **flags), lax.pmax(x, "x", **flags), lax.pmin(x, "x", **flags),
                lax.all_gather(x, "x", axis=1, tiled=True, **flags), lax.all_gather(x, "x", **flags),
                lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True, **flags),
                lax.all_to_all(x, "x", 1, 0, tiled=True, **flags))
    return f


DOUBLED = jax.make_jaxpr(jax.jit(lambda x: lax.sin(x) * 2))(f32(4))


def doubled(x):
    """One program wherever it is called, as it would not be if it were traced there."""
    return jax.core.eval_jaxpr(DOUBLED, (), x)[0]


product = custom_partitioning(jnp.matmul)
product.def_partition(NotImplemented, sharding_rule="i k, k j -> i j", reduction_factors=("k",),
                      need_replication_factors=("j",))
DEVICES = {
    "a function in and out of shard_map": (lambda x: over(doubled, P(), P())(doubled(x)), f32(4)),
    "collectives": (over(communicated(None), check_vma=False), f32(4, 8)),
    "collectives in groups": (over(communicated(GROUPS), check_vma=False), f32(4, 8)),
    "slices of rows": (over(lambda x, at: lax.ragged_all_to_all(x, x, *[at] * 4, axis_name="x"), (P("x"), P("x"))), f32(8, 2),
                       np.zeros(16, np.int32)),
    "permutation, index": (over(lambda x: (lax.ppermute(x, "x", [(0, 1), (3, 2)]), x * lax.axis_index("x"))), f32(4)),
    "sum of what varies": (over(lambda x, w: lax.psum(x * w, "x"), (P("x"), P()), P()), f32(4), f32(1)),
    "its gradient": (grad(over(lambda x, w: lax.psum(x * w, "x"), (P("x"), P()), P()), (0, 1)), f32(4), f32(1)),
    "some axes manual": (jax.shard_map(
        lambda x: x * 2, mesh=AbstractMesh((2, 2), ("x", "y")), in_specs=CUT, out_specs=CUT, axis_names={"x"}), f32(4, 2)),
    "device_put": (jax.grad(lambda x: jnp.sum(jax.device_put(x, NamedSharding(MESH, P(None, "x"))) ** 2)), f32(3, 4)),
    "parts that the user makes, values that lie alike": (lambda x: shard_alike(
        product(lax.with_sharding_constraint(x, NamedSharding(MESH, P("x"))), x), x), f32(4, 4)),
    "layout": (lambda x: with_layout_constraint(x, Layout((1, 0))), f32(2, 3)),
    "constraint": (lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P(None, "x"))), f32(3, 4)),
    "types over Explicit axes": (jax.grad(lambda x, w: jnp.sum(jnp.tanh(
        jax.reshard(x, NamedSharding(EXPLICIT, P("x"))) @ jax.reshard(w, NamedSharding(EXPLICIT, P(None, "y"))))), 1),
        f32(4, 3), f32(3, 2)),
    "unreduced values": (lambda x, w: [jax.reshard(terms, NamedSharding(EXPLICIT, P())) for terms in (
        jnp.dot(jax.reshard(x, NamedSharding(EXPLICIT, P(None, "x"))), jax.reshard(w, NamedSharding(EXPLICIT, P("x"))),
                out_sharding=NamedSharding(EXPLICIT, P(None, None, unreduced={"x"}))) * 2,
        lax.reduce_sum(jax.reshard(x, NamedSharding(EXPLICIT, P(None, "x"))), (1,),
                       out_sharding=NamedSharding(EXPLICIT, P(None, unreduced={"x"}))))], f32(3, 4), f32(4, 3)),
    "mapped constraint": (jax.vmap(lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P(None))),
                                   spmd_axis_name="x"), f32(4, 4)),
    "named vmap": (jax.vmap(lambda x: (lax.psum(x, "i"), lax.pmax(x, "i"), lax.axis_index("i"), lax.all_gather(x, "i"),
                                       lax.ppermute(x, "i", [(0, 1)])), axis_name="i"), f32(3)),
}

FAMILIES = {"elementwise": ELEMENTWISE, "shapes": SHAPES, "reduce": REDUCE, "sort": SORT,
            "linear_algebra": LINEAR_ALGEBRA, "products": PRODUCTS, "special": SPECIAL,
            "gather_scatter": GATHERS, "control": CONTROL, "effects": EFFECTS, "random": RANDOM, "devices": DEVICES}

# --- programs from elsewhere --------------------------------------------------------------------------------------

EXPORTED = export.export(jax.jit(lambda x, unused: (lax.sin(x), lax.exp(x))), platforms=("cpu", "tpu"))(f32(3), f32())


def for_platforms(index, x):
    program = jax.make_jaxpr(lambda x: [lax.sin(x)])(x).jaxpr
    return PRIMITIVES["by_platform"].bind(index, x, jaxpr=program, platforms=(platform_named("tpu"), platform_named("cpu")))


ELSEWHERE = {
    "an exported function, twice": (lambda x: (EXPORTED.call(x, x[0]), EXPORTED.call(x * 2, x[1])), f32(3)),
    "one program for each platform": (for_platforms, np.int32(0), f32(3)),
}

FAMILIES["elsewhere"] = ELSEWHERE
