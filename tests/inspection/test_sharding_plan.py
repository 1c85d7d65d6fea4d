"""What explain_sharding says of a program, and that XLA compiles what it predicts."""
import functools

import numpy as np
import planned
import pytest
from mesh8 import auto_mesh, on, put

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.sharding import AbstractMesh, NamedSharding, P


def split(shape, *spec, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=on(*spec, mesh=grid))


@functools.cache
def grid():
    return auto_mesh((4, 2), ("data", "model"))


def at(x, *spec):
    return lax.with_sharding_constraint(x, on(*spec, mesh=grid))


def mlp(w, x):
    return (jnp.tanh(jnp.tanh(x @ w["up"]) @ w["down"]) ** 2).mean()


def layers(w, x):
    def layer(x, w):
        return jnp.tanh(jnp.tanh(x @ at(w["up"], None, "model")) @ at(w["down"], "model")), None
    return (lax.scan(layer, x, w)[0] ** 2).sum()


def saving_memory(w, x):
    def layer(x, w):
        return jax.checkpoint(lambda x, w: jnp.tanh(jnp.tanh(x @ w["up"]) @ w["down"]))(x, w), None
    return lax.scan(layer, x, w)[0].sum()


def attention(x, w):
    def block(x):
        q, k, v = ((x @ w[n]).reshape(4, 8, 4, 4) for n in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k))
        return x + jnp.einsum("bhts,bshk->bthk", scores, v).reshape(4, 8, 16) @ w["o"]
    return (block(block(x)) ** 2).sum()


def adam(w, m, v, x):
    g = jax.grad(lambda w: (jnp.tanh(x @ at(w, None, "model")) ** 2).sum())(w)
    g = g / jnp.maximum(jnp.sqrt((g ** 2).sum()), 1)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def cross_entropy(x, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(at(x, "data", "model")), labels[:, None], 1).mean()


def per_device(f):
    return lambda *xs: jax.shard_map(f, mesh=grid(), in_specs=P("data"), out_specs=P("data"),
                                     check_vma=False)(*xs)


@per_device
def every_collective(x):
    whole = lax.all_gather(x, "data", tiled=True)
    turned = lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)])
    return (lax.psum(x, "data") + lax.pmax(x, "data") + lax.pmean(x, ("data", "model")) + turned + whole[:4]
            + lax.psum_scatter(whole, "data", tiled=True) + lax.all_to_all(x, "data", 0, 0, tiled=True))


@per_device
def ring(x):
    return lax.fori_loop(0, 5,
                         lambda _, x: lax.ppermute(jnp.sin(x), "data", [(i, (i + 1) % 4) for i in range(4)]),
                         x)


@per_device
def until_large(x):
    return lax.while_loop(lambda x: lax.psum(x.sum(), "data") < 100, lambda x: x + lax.pmax(x, "data"), x)


def partly_manual(x):
    @functools.partial(jax.shard_map, mesh=grid(), in_specs=P("data"), out_specs=P("data"),
                       axis_names={"data"},
                       check_vma=False)
    def f(x):
        return lax.psum(x, "data") + x.sum(1, keepdims=True)
    return f(x)


@jax.jit
def scaled(x):
    return x.sum() * x


def whole_of(x):
    return at(jnp.tanh(x))


def batch_of_images(*shape):
    """Images whose rows are split."""
    return split(shape, "data", "model")


def conv(x, w, stride=1, padding="SAME"):
    return lax.conv_general_dilated(x, w, (stride, stride), padding,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


PROGRAMS = {    # name -> (function, arguments)
    "data and tensor parallel": lambda: (jax.value_and_grad(mlp), {
        "up": split((16, 32), None, "model"), "down": split((32, 16), "model")}, split((8, 16), "data")),
    "scan over layers": lambda: (jax.grad(layers), {
        "up": split((6, 16, 32), None, "data", "model"), "down": split((6, 32, 16), None, "model", "data")},
        split((8, 16), "data")),
    "remat": lambda: (jax.grad(saving_memory), {
        "up": split((3, 16, 16), None, None, "model"), "down": split((3, 16, 16), None, "model")},
        split((8, 16), "data")),
    "attention": lambda: (jax.grad(attention), split((4, 8, 16), "data"), {
        name: split((16, 16), *((None, "model") if name != "o" else ("model",))) for name in "qkvo"}),
    "optimizer": lambda: (adam, *[split((16, 32), "data", "model")] * 3, split((8, 16), "data")),
    "cross entropy": lambda: (cross_entropy, split((16, 16), None, "model"),
                              split((16,), "data", dtype=np.int32)),
    "exact gelu": lambda: (lambda x, w: jax.nn.gelu(x @ w, approximate=False).mean(), split((16, 8), "data"),
                           split((8, 16), None, "model")),
    "embedding": lambda: (lambda t, i: jax.grad(lambda t: (t[i] ** 2).sum())(t), split((64, 16), "model"),
                          split((8,), "data", dtype=np.int32)),
    "statistics": lambda: (lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), split((16, 16), "data")),
    "sort": lambda: (lambda x: jnp.sort(x, 0), split((16, 16), "data")),
    "other dimension": lambda: (lambda x: at(jnp.tanh(x), None, "data"), split((16, 16), "data")),
    "other order": lambda: (lambda x: at(jnp.tanh(x), ("model", "data")), split((16, 16), ("data", "model"))),
    "whole for two": lambda: (lambda x: (whole_of(x) + 1, whole_of(x) * 2), split((16, 16), "data")),
    "both dimensions": lambda: (jnp.matmul, *[split((16, 16), "data", "model")] * 2),
    "calls": lambda: (lambda x: scaled(scaled(x)), split((16,), "data")),
    "branches": lambda: (lambda p, x: lax.cond(p, jnp.sum, jnp.max, x), jax.ShapeDtypeStruct((), bool),
                         split((16,), "data")),
    "every collective": lambda: (every_collective, split((16,), "data")),
    "loop": lambda: (ring, split((16,), "data")),
    "loop without a count": lambda: (until_large, split((16,), "data")),
    "partly manual": lambda: (partly_manual, split((16, 16), "data", "model")),
    "product and its gradient": lambda:
        (lambda x, y: jax.grad(lambda x, y: (jnp.tanh(x @ y) ** 2).sum(), (0, 1))(x, y),
                                         *[split((16, 16), "data", "model")] * 2),
    "twice the same": lambda: (lambda x: (x.T @ x + 1, (x.T @ x) * x.sum(0) - x.sum(0)),
                               split((16, 16), "data")),
    "twice the same by hand": lambda:
        (per_device(lambda x: lax.psum(x, "data") + jnp.sin(lax.psum(x, "data"))),
                                       split((16,), "data")),
    # where XLA does otherwise than Shardy's collectives say
    "product split on one side": lambda: (jnp.matmul, split((4, 64), "data"), split((64, 64), "data")),
    "sum smaller than an operand": lambda: (jnp.matmul, split((16, 32), None, "data"),
                                            split((32, 8), None, "model")),
    "operand smaller than the sum": lambda: (jnp.matmul, split((16, 32), "data", "model"),
                                             split((32, 64), None, "data")),
    "gathered once for its gradient": lambda: (
        jax.grad(lambda x, w: (jnp.einsum("bij,bjk->bik", x, w) ** 2).sum()), split((8, 16, 8), "model", "data"),
        split((8, 8, 16), None, None, "data")),
    "all dimensions": lambda: (lambda x: at(x), split((16, 8), "data", "model")),
    "cut after it is whole": lambda: (lambda x: at(x, None, "model"), split((8, 8), "data")),
    "wide on the CPU": lambda: (lambda x: (x.T @ x).astype(jnp.bfloat16) @ at(x).T, split((16, 8), "data",
                                                                                        dtype=jnp.bfloat16)),
    "uneven": lambda: (lambda x: jnp.diff(x, axis=0), split((16, 8), "data")),
    "one row": lambda: (lambda x: x[0] + x[-1], split((16, 8), "data")),
    "two of many": lambda: (lambda x: x[12:14], split((16, 8), "data")),
    "every second": lambda: (lambda x: x[3:16:3], split((16, 8), "data")),
    "halves": lambda: (lambda x: jnp.split(x, 2), split((16, 8), "data")),
    "shifted": lambda: (lambda x: lax.pad(x, np.float32(0), ((2, -2, 0), (0, 0, 0))), split((16, 8), "data")),
    "with zeros between": lambda: (lambda x: lax.pad(x, np.float32(0), ((1, 1, 1), (0, 0, 0))),
                                   split((16, 8), "data")),
    "padded": lambda: (lambda x: jnp.pad(x, ((2, 2), (0, 0))), split((16, 8), "data")),
    "padded by much": lambda: (lambda x: jnp.pad(x, ((8, 12), (0, 0))), split((16, 8), "data")),
    "backwards": lambda: (lambda x: x[::-1], split((16, 8), "data")),
    "rolled": lambda: (lambda x: x - jnp.roll(x, 1, 0), split((16, 8), "data")),
    "rolled far": lambda: (lambda x: x - jnp.roll(x, 5, 0), split((16, 8), "data")),
    "convolution": lambda: (conv, batch_of_images(8, 16, 16, 4), split((3, 3, 4, 8))),
    "convolution with strides": lambda: (lambda x, w: conv(x, w, 2), batch_of_images(8, 16, 16, 4),
                                         split((5, 5, 4, 8))),
    "gradients of convolutions": lambda: (
        lambda x, w, v: jax.grad(lambda x, w, v: (conv(conv(x, w), v, 2) ** 2).sum(), (0, 1, 2))(x, w, v),
        batch_of_images(8, 16, 16, 4), split((3, 3, 4, 4)), split((5, 5, 4, 4))),
    "pooling": lambda: (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
                        batch_of_images(8, 16, 16, 4)),
    "wide window": lambda: (lambda x: jnp.cumsum(x, 0), split((16, 8), "data")),
    "some rows": lambda: (lambda x, i: lax.dynamic_slice_in_dim(x, i, 4), split((16, 8), "data"),
                          jax.ShapeDtypeStruct((), np.int32)),
    "largest": lambda: (lambda x: lax.top_k(x, 2), split((16, 8), "data")),
    "all of the largest": lambda: (lambda x: lax.top_k(x.T, 16), split((16, 8), "data")),
    "batches of transforms": lambda: (lambda x: jnp.fft.fft(x).real, split((16, 8, 4), "data", "model")),
    "a transform of what is split": lambda: (lambda x: jnp.fft.rfft2(x).real,
                                             split((8, 16, 8), "data", "model")),
    "factors": lambda: (jnp.linalg.qr, split((16, 8), "data")),
    "taken out of loops": lambda: (
        lambda x, w: lax.fori_loop(0, 5,
                                   lambda i, x: lax.fori_loop(0, 3, lambda j, x: jnp.tanh(x @ w) * w.sum(0),
                                                              x), x),
        *[split((16, 16), "data")] * 2),
    "scan over a split dimension": lambda: (
        lambda x: lax.scan(lambda c, row: (jnp.sin(c) + row, c), jnp.zeros(8), x), split((16, 8), "data")),
    "callback": lambda: (lambda x: jax.pure_callback(np.asarray, jax.ShapeDtypeStruct((16, 8), np.float32),
                                                     x),
                         split((16, 8), "data")),
    "labels": lambda: (lambda x: -jax.nn.log_softmax(x)[..., 0].mean(),
                       split((8, 16, 8), "data", None, "model")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_predicted_is_compiled(name):
    fun, *args = PROGRAMS[name]()
    with jax.set_mesh(grid()):
        lowered = jax.jit(fun).lower(*args)
    predicted = planned.predicted(lowered)
    # of which jaxlib from 0.11 on exchanges nothing
    assert predicted or name == "batches of transforms"
    assert predicted == planned.compiled(lowered.compile().as_text(), grid())


@pytest.mark.quick
def test_a_row_says_line_specs_and_collectives():
    mesh = AbstractMesh((4, 2), ("data", "model"))
    x, w = (jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, P(*spec)))
            for shape, spec in (((64, 256), ("data", "model")), ((256, 512), ("model",))))
    plan = jax.explain_sharding(lambda x, w: jnp.tanh(x @ w))(x, w)
    dot, tanh = plan
    assert dot.where == tanh.where and dot.where.startswith("test_sharding_plan.py:")
    assert (dot.operands, dot.results) == ((P("data", "model"), P("model", None)), (P("data", None),))
    [collective] = dot.collectives
    assert (collective.kind, collective.axes, collective.bytes, collective.times) == (
        "all-reduce", ("model",), 16 * 512 * 4, 1)
    assert tanh.operands == tanh.results == (P("data", None),) and not tanh.collectives
    assert len(plan) == 2 and str(plan).splitlines()[1:] == [
        f"{dot.where}  jit(<lambda>)/dot_general  P('data', 'model') P('model', None)  P('data', None)  "
        "all-reduce over model: 32,768",
        f"{dot.where}  jit(<lambda>)/tanh         P('data', None)                      P('data', None)",
        "total: 1, 32,768 bytes on each device a run (1 all-reduce 32,768)"]


@pytest.mark.quick
def test_other_devices_than_cpus_scatter_sums():
    mesh = AbstractMesh((4,), ("data",))
    x = jax.ShapeDtypeStruct((16, 16), np.float32, sharding=NamedSharding(mesh, P("data")))
    fun = jax.jit(lambda x: x.T @ x, out_shardings=NamedSharding(mesh, P("data")))
    found = [planned.predicted(fun.trace(x).lower(platform=platform)) for platform in ("cpu", "cuda", "tpu")]
    scattered = {("reduce-scatter", ("data",), 256, 1): 1}
    assert found == [{("all-reduce", ("data",), 1024, 1): 1}, scattered, scattered]


@pytest.mark.quick
def test_an_effect_is_needed():
    mesh = AbstractMesh((4,), ("data",))
    x = jax.ShapeDtypeStruct((16,), np.float32, sharding=NamedSharding(mesh, P("data")))

    @jax.jit
    def told(x):
        jax.debug.print("{}", x.sum())
        return x * 2

    def loop(x):
        return lax.fori_loop(0, 3, lambda _, c: told(c), x)
    [total] = jax.explain_sharding(loop)(x).collectives
    assert (total.kind, total.bytes, total.times) == ("all-reduce", 4, 3)


@pytest.mark.quick
def test_what_nothing_needs_is_left_out():
    mesh = AbstractMesh((4,), ("data",))
    x = jax.ShapeDtypeStruct((16,), np.float32, sharding=NamedSharding(mesh, P("data")))

    def fun(x):
        jnp.sum(x)
        return lax.fori_loop(0, 3, lambda _, c: (jnp.sin(c[0]), c[1] + c[0].sum()), (x, 0.))[0]
    plan = jax.explain_sharding(fun)(x)
    assert not plan.collectives and str(plan).endswith("no collectives")
    assert [row.operation.rpartition("/")[2] for row in plan] == ["sin"]


@pytest.mark.quick
@pytest.mark.parametrize("fun, error, words", [
    (lambda: jax.explain_sharding(jnp.sin)(np.ones(3)), ValueError,
     "sin is a program of one device.*NamedSharding"),
    (lambda: jax.explain_sharding(3), TypeError, "explain_sharding: .*callable.*3"),
    (lambda: jax.explain_sharding(lambda x: x @ x)(np.ones((2, 3))), TypeError, r"\(2, ?3\)"),
])
def test_mistakes(fun, error, words):
    with pytest.raises(error, match=words):
        fun()


def test_arrays_are_arguments_too():
    plan = jax.explain_sharding(jnp.sum)(put(np.ones((8, 8), np.float32), "data", mesh=grid))
    assert [(c.kind, c.axes, c.bytes) for c in plan.collectives] == [("all-reduce", ("data",), 4)]
