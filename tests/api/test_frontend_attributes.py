"""experimental.compute_on and experimental.xla_metadata: functions whose operations carry what the compiler
reads."""
import enum
import re

import numpy as np
import pytest
from equal import same
from gpu_topologies import needs_wheels

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental.compute_on import compute_on, compute_on2
from hlotrace.experimental.xla_metadata import (
    fuse_limit, must_fuse_call, set_xla_metadata, xla_metadata_call, xla_metadata_call2)

X = np.arange(3, dtype=np.float32)
Space = enum.Enum("Space", "Device Host Any")


def calls(f, *args):
    """The attributes of the calls in the program of `f`."""
    text = jax.jit(f).lower(*args).as_text()
    return [line.partition("mhlo.frontend_attributes = ")[2].partition("}")[0] + "}"
            for line in text.splitlines() if "call @" in line]


def tags(f, *args):
    """The operations in the program of `f` that carry attributes, each with them."""
    text = jax.jit(f).lower(*args).as_text()
    return [f"{found[1]} {found[2]}" for found in
            re.finditer(r"= \"?(?:stablehlo\.)?(\w+)[^\n]* (?:\{|, )mhlo.frontend_attributes = (\{[^}]*\})",
                        text)]


@compute_on(compute_type="device_host", out_memory_spaces="device")
def on_host(x, *, scale=1.0):
    return {"sin": jnp.sin(x) * scale, "n": x.sum()}


def test_a_function_is_computed_on_the_host():
    out = jax.jit(on_host)(X)
    np.testing.assert_allclose(out["sin"], np.sin(X), rtol=1e-6)
    assert on_host(X, scale=2.0)["n"] == 3
    assert calls(on_host, X) == ['{_xla_compute_type = "host"}']
    mapped = jax.jit(jax.vmap(lambda x: on_host(x)["sin"]))(np.stack([X, X]))
    np.testing.assert_allclose(mapped, np.sin([X, X]), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(lambda x: on_host(x)["sin"], (X,), (X,))[1], np.cos(X) * X, rtol=1e-6)


def test_a_block_is_computed_on_the_host():
    def f(x):
        with compute_on("device_host"):
            return jnp.sin(x) * 2
    decorated = compute_on(compute_type="device_host")(jax.jit(lambda x: jnp.sin(x) * 2))
    for g in f, decorated:
        for h, want in ((g, 2 * np.sin(X)), (jax.vmap(g), 2 * np.sin(X)),
                        (jax.grad(lambda x, g=g: g(x).sum()), 2 * np.cos(X))):
            np.testing.assert_allclose(jax.jit(h)(X), want, rtol=1e-6)
            np.testing.assert_allclose(h(X), want, rtol=1e-6)
        assert 'compute_type = "host"' in " ".join([*tags(g, X), *calls(g, X)])
    with pytest.raises(ValueError, match="Invalid compute type weird"):
        compute_on("weird")
    with pytest.raises(TypeError, match="out_memory_spaces"):
        compute_on(jnp.sin, compute_type="device_host")


def test_its_derivative_is_computed_there_too():
    loss = lambda x, w: (on_host(x * w)["sin"] ** 2).sum()
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(X, 2.0), 2 * np.sin(2 * X) * np.cos(2 * X) * 2,
                               rtol=1e-5)
    assert calls(jax.grad(loss), X, 2.0) == ['{_xla_compute_type = "host"}'] * 2
    np.testing.assert_allclose(jax.hessian(loss)(X, 2.0), np.diag(8 * np.cos(4 * X)), rtol=1e-4, atol=1e-5)
    w = jnp.float32(2)
    closed = lambda w: compute_on(lambda x: x * w, compute_type="device_host", out_memory_spaces=Space.Any)(
        X).sum()
    assert jax.grad(closed)(w) == 3


def test_results_go_to_the_memory_that_is_named():
    def put(space):
        return jax.jit(compute_on(jnp.sin, compute_type="device_host", out_memory_spaces=space)).lower(
            X).as_text()
    assert '_xla_buffer_placement = "pinned_host"' in put(Space.Host) == put("pinned_host") == put("host")
    assert "_xla_buffer_placement" not in put("device") == put(Space.Device) == put("any")


def test_types_of_computation():
    named = lambda kind: calls(compute_on(jnp.sin, compute_type=kind, out_memory_spaces="any"), X)
    assert named("device") == ["}"] and named("tpu_sparsecore") == ['{_xla_compute_type = "sparseoffload"}']
    assert named("gpu_stream:3") == ['{_xla_stream_annotation = "3", inlineable = "false"}']


def test_metadata_is_on_the_calls_of_a_function_and_of_its_derivative():
    f = lambda x: jnp.sin(x).sum()
    assert calls(xla_metadata_call(f, tag="hi", on=True, n=3), X) == ['{tag = "hi", on = "true", n = "3"}']
    assert calls(jax.grad(xla_metadata_call(tag="hi")(f)), X) == ['{tag = "hi"}'] * 2
    assert calls(jax.grad(xla_metadata_call2(f, {"tag": "hi"}, ad_metadata={"tag": "back"})), X) == [
        '{tag = "hi"}', '{tag = "back"}']
    assert calls(jax.grad(xla_metadata_call2(f, {"tag": "hi"}, ad_metadata="drop")), X) == [
        '{tag = "hi"}', "}"]
    assert calls(must_fuse_call("1")(f), X) == ['{MUST_FUSE = "1"}']


def test_effects_go_through_a_tagged_function(capfd):
    @xla_metadata_call(tag="hi")
    def f(x):
        jax.debug.print("x = {}", x, ordered=True)
        return x
    jax.jit(lambda x: f(f(x)))(1.0)
    jax.effects_barrier()
    assert capfd.readouterr().out == "x = 1.0\nx = 1.0\n"


@pytest.mark.quick
@pytest.mark.parametrize("call, error, words", [
    (lambda: compute_on(jnp.sin, compute_type="moon", out_memory_spaces="any"), ValueError,
     "Invalid compute type moon"),
    (lambda: compute_on(jnp.sin, compute_type="device", out_memory_spaces="moon"), ValueError, "must name"),
    (lambda: compute_on("device_host", compute_type="device", out_memory_spaces="any"), TypeError,
     "Expected a callable"),
    (lambda: compute_on(jnp.sin, compute_type="device", out_memory_spaces="any", compiler_options={"a": 1}),
     NotImplementedError, "compiler_options"),
    (lambda: xla_metadata_call(jnp.sin, tag=[1]), TypeError, r"tag=\[1\] is a list"),
    (lambda: xla_metadata_call2(jnp.sin, {}, ad_metadata="other"), ValueError,
     "'same', 'drop' or a dict, got 'other'")])
def test_what_does_not_fit_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_functions_that_are_one_kernel():
    from hlotrace.experimental import fused
    space = jax.memory.Space
    f = fused.fused(out_spaces=(space.Host, space.Device))(lambda x, y: (x + y, x * y))
    text = jax.jit(f).lower(1.0, 2.0).as_text()
    assert 'MUST_FUSE = "<lambda>"' in text and '_xla_buffer_placement = "pinned_host"' in text
    assert [float(v) for v in jax.jit(f)(2.0, 3.0)] == [float(v) for v in f(2.0, 3.0)] == [5, 6]
    assert jax.vmap(f, (0, None))(jnp.arange(2.0), 3.0)[1].tolist() == [0, 3]
    assert float(jax.grad(lambda x: f(x, 3.0)[1])(2.0)) == 3 and jax.jvp(f, (2.0, 3.0), (1.0, 0.0))[1][1] == 3
    assert [e.primitive for e in jax.make_jaxpr(f)(1.0, 2.0).eqns] == [fused.fused_p]
    assert fused.ad is jax.interpreters.ad and fused.batching is jax.interpreters.batching
    with pytest.raises(ValueError, match='fused: out_spaces must name "device"'):
        fused.fused(out_spaces="moon")


def test_blocks_whose_operations_carry_metadata():
    def f(x):
        with set_xla_metadata(a=1, b=True):
            y = jnp.sin(x)
            with set_xla_metadata(a=None, c=2.5):
                y = jax.vmap(lambda v: v * 2)(y)
        return y.sum()
    assert {'sine {a = "1", b = "true"}', 'multiply {b = "true", c = "2.5"}'} < {*tags(f, X)}
    assert not any(tag.startswith("reduce") for tag in tags(f, X))
    np.testing.assert_allclose(jax.jit(f)(X), 2 * np.sin(X).sum(), rtol=1e-6)
    np.testing.assert_allclose(f(X), 2 * np.sin(X).sum(), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X), 2 * np.cos(X), rtol=1e-6)
    assert 'cosine {a = "1", b = "true"}' in tags(jax.grad(f), X)

    @set_xla_metadata(told="again")
    def g(x):
        return jax.jit(jnp.cos)(x)
    assert tags(g, X) == tags(jax.vmap(g), X) == ['cosine {told = "again"}']
    np.testing.assert_allclose(g(X), np.cos(X), rtol=1e-6)
    assert 'multiply {FUSE_LIMIT = "true"}' in tags(fuse_limit()(lambda x: x * 2), X)
    h = jax.jit(lambda x: x * 2)
    with set_xla_metadata(out=1):
        assert 'out = "1"' in h.lower(X).as_text() and "tagged" not in str(h.trace(X).jaxpr)
        np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(X), X + 1)
        assert jnp.stack([X, X])[1].tolist() == [0, 1, 2]
    assert "frontend" not in h.lower(X).as_text()


def test_values_whose_origins_carry_metadata():
    def f(x):
        y, z = set_xla_metadata((x * 2, jnp.sin(x)), tag="v")
        return set_xla_metadata(x, tag="an argument has no origin") + y + z
    assert {'sine {tag = "v"}', 'multiply {tag = "v"}'} <= {*tags(f, X)} and not calls(f, X)
    np.testing.assert_allclose(jax.jit(f)(X), 3 * X + np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(jax.jit(f), (X,), (X,))[1], 3 * X + X * np.cos(X), rtol=1e-6)
    assert set_xla_metadata(X, tag="computed already") is X
    assert 'sine {tag = "1"}' in tags(jax.vmap(lambda x: set_xla_metadata(jnp.sin(x), tag=1)), X)
    np.testing.assert_allclose(jax.grad(lambda x: set_xla_metadata(x * x, tag=1))(3.0), 6)


KINDS = {
    "sort": lambda x: jnp.sort(x, axis=0), "product": lambda x: x @ x.T, "sum": lambda x: x.sum(0),
    "cumulative": lambda x: jnp.cumsum(x, 0), "gather": lambda x: x[jnp.array([1, 0])],
    "scatter": lambda x: x.at[jnp.array([1])].add(2.0),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * 2), x[0], x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c * 2, x),
    "convolution": lambda x: lax.conv_general_dilated(x[None, None], x[None, None], (1, 1), "SAME"),
    "kernel": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), (3, 3)),
    "select": lambda x: jnp.where(x > 0, x, -x).astype("int32"), "pad": lambda x: jnp.pad(x, 1),
    "top": lambda x: lax.top_k(x, 2),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (x[0, 0].astype("int32"), 0), (1, 1)), "erf": lax.erf,
    "fft": jnp.fft.fft,
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "argmax": lambda x: jnp.argmax(x, 0),
    "precision": lambda x: lax.reduce_precision(x, 5, 10), "complex": lambda x: lax.complex(x, x).real,
    "reverse": lambda x: x[::-1], "barrier": lax.optimization_barrier,
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "concatenate": lambda x: jnp.concatenate([x, x]), "clip": lambda x: jnp.clip(x, 0, 1)}


def test_every_kind_of_operation_carries_metadata():
    def tagged(x):
        with set_xla_metadata(tag="all"):
            return {kind: f(x) for kind, f in KINDS.items()}
    x = np.linspace(-1, 2, 9, dtype=np.float32).reshape(3, 3)
    same(jax.jit(tagged)(x), jax.jit(lambda x: {kind: f(x) for kind, f in KINDS.items()})(x))
    for kind, f in KINDS.items():
        assert any(tag.endswith('{tag = "all"}') for tag in tags(set_xla_metadata(tag="all")(f), x)), kind


def test_a_block_computes_on_the_host():
    def f(x):
        with compute_on("device_host"):
            y = jnp.sin(x)
        return y * 2
    assert tags(f, X) == ['sine {_xla_compute_type = "host"}'] and "cosine" in str(
        tags(jax.grad(lambda x: f(x).sum()), X))
    np.testing.assert_allclose(jax.jit(f)(X), 2 * np.sin(X), rtol=1e-6)
    assert compute_on("device_host")(lambda x: x * 2)(3) == 6
    assert compute_on2(lambda x: x * 2, compute_type="device_host", out_memory_spaces="device")(3) == 6
    with pytest.raises(ValueError, match="Invalid compute type moon"):
        compute_on("moon")
    with pytest.raises(TypeError, match="write compute_on"):
        compute_on(jnp.sin, compute_type="device_host")
    with pytest.raises(TypeError, match="metadata is text"):
        set_xla_metadata(a=[1])


def test_the_inner_of_two_blocks_says_where_it_is_computed():
    def f(x):
        with compute_on("device_host"):
            with compute_on("tpu_sparsecore"):
                x = jnp.sin(x)
            with compute_on("device"):
                x = jnp.cos(x)
            with compute_on("gpu_stream:1"):
                return jnp.exp(x) + jax.jit(lambda x: jnp.tan(x))(x)
    text = jax.jit(f).trace(1.0).lower(lowering_platforms=("tpu",)).as_text()
    lines = {word: next(line for line in text.splitlines() if f"stablehlo.{word} " in line)
             for word in ("sine", "cosine", "exponential")}
    assert "sparseoffload" in lines["sine"] and "frontend_attributes" not in lines["cosine"]
    assert '_xla_stream_annotation = "1"' in lines["exponential"] and "host" not in lines["exponential"]
    np.testing.assert_allclose(jax.jit(f)(1.0), f(1.0), rtol=1e-6)


GIVING_BACK = {
    "unchanged": lambda x: x, "beside another": lambda x: (x, x + 1),
    "through jit": jax.jit(lambda x: (x, x * 3)),
    "once simplified": lambda x: (x * 1, x * 3), "nothing of it": lambda x: jnp.ones(3)}


@pytest.mark.parametrize("name", GIVING_BACK)
def test_for_gpus_no_result_of_the_host_is_an_operand(name):
    """XLA would end the process."""
    on_host = compute_on(GIVING_BACK[name], compute_type="device_host", out_memory_spaces="device")
    for platform, barriers in (("cuda", 1), ("tpu", 0), ("cpu", 0)):
        text = jax.jit(on_host).trace(X).lower(lowering_platforms=(platform,)).as_text()
        assert text.count("stablehlo.optimization_barrier") == barriers
    jax.tree.map(np.testing.assert_array_equal, jax.jit(on_host)(X), GIVING_BACK[name](X))


@needs_wheels
@pytest.mark.parametrize("name", GIVING_BACK)
def test_for_gpus_what_the_host_computes_is_compiled(name):
    gpu = jax.sharding.SingleDeviceSharding(jax.topologies.get_topology_desc("h100").devices[0])
    on_host = compute_on(GIVING_BACK[name], compute_type="device_host", out_memory_spaces="device")
    compiled = jax.jit(on_host).lower(jax.ShapeDtypeStruct((8,), "float32", sharding=gpu)).compile()
    assert "DEVICE_TYPE_HOST" in compiled.as_text() or name == "nothing of it"
