"""Callbacks that write into buffers."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import buffer_callback as buffers
from hlotrace.experimental.buffer_callback import buffer_callback

PAIR = jax.ShapeDtypeStruct((2,), "float32")
SCALAR = jax.ShapeDtypeStruct((), "float32")


def add(context, out, *args, by=0):
    np.asarray(out)[...] = sum(np.asarray(x) for x in args) + np.asarray(by)


@pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_a_callback_fills_its_results(dtype, stage):
    def swap(context, out, args):
        assert isinstance(context, buffers.ExecutionContext)
        assert context.stage == buffers.ExecutionStage.EXECUTE
        for x, writeable in ((out["b"], True), (args[0], False)):
            assert isinstance(x, buffers.Buffer)
            assert (x.shape, x.dtype, x.ndim, x.writeable) == ((2,), jnp.dtype(dtype), 1, writeable)
        np.asarray(out["b"])[...] = np.asarray(args[0])
        np.from_dlpack(out["a"])[...] = 7
    x = jnp.array([0, 1], dtype)
    found = stage(buffer_callback(swap, {"a": SCALAR, "b": jax.ShapeDtypeStruct((2,), dtype)}))([x])
    same(found, {"a": np.float32(7), "b": x})


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_a_mapped_callback(method):
    f = buffer_callback(add, SCALAR, vmap_method=method)
    same(jax.vmap(f, (0, None))(jnp.arange(3.), 2.), jnp.arange(3.) + 2)
    same(jax.jit(jax.vmap(jax.vmap(f, (0, None)), (None, 0)))(jnp.arange(3.), jnp.ones(2)),
         jnp.ones((2, 3)) + jnp.arange(3.))


def test_calls_one_by_one_and_in_place():
    sizes = []

    def halve(context, out, x, y):
        sizes.append(np.asarray(x).size)
        np.asarray(out)[...] += np.asarray(x) / 2
    x, y = jnp.arange(6.).reshape(3, 2), jnp.ones(2)
    for method, seen in (("sequential", [2, 2, 2]), ("sequential_unrolled", [2, 2, 2]), ("expand_dims", [6]),
                         ("legacy_vectorized", [6])):
        f = buffer_callback(halve, PAIR, vmap_method=method, input_output_aliases={1: 0})
        sizes.clear()
        same(jax.vmap(f, (0, None))(x, y), 1 + np.asarray(x) / 2)
        assert sizes == seen
    same(y, [1., 1.])


@pytest.mark.parametrize("recorded", [False, True])
def test_the_target_on_a_gpu(recorded):
    f = jax.jit(buffer_callback(add, PAIR, command_buffer_compatible=recorded))
    text = f.trace(jnp.ones(2)).lower(lowering_platforms=("cuda",)).as_text()
    assert ("@xla_buffer_python_gpu_callback_cmd_buffer(" in text) == recorded
    assert ("@xla_buffer_python_gpu_callback(" in text) != recorded


def test_on_several_devices():
    mesh = jax.make_mesh((8,), ("x",))
    x = jax.device_put(jnp.arange(16.), jax.NamedSharding(mesh, jax.P("x")))
    whole = buffer_callback(add, jax.ShapeDtypeStruct((16,), "float32"))
    same(jax.jit(lambda x: whole(x * 2, by=1) + x)(x), 3 * np.arange(16.) + 1)
    part = jax.shard_map(buffer_callback(add, PAIR), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    same(jax.jit(part)(x), np.arange(16.))


def test_results_that_start_as_arguments():
    def first(context, out, x):
        np.asarray(out)[0] = 9
    same(buffer_callback(first, PAIR, input_output_aliases={0: 0})(jnp.ones(2)), [9., 1.])
    same(buffer_callback(first, PAIR)(jnp.ones(2)), [9., 0.])


def test_what_has_a_side_effect_is_called():
    seen = []
    jax.jit(
        buffer_callback(lambda context, out, x: seen.append(np.asarray(x).copy()), None, has_side_effect=True)
    )(jnp.ones(2))
    jax.effects_barrier()
    same(seen, [np.ones(2, np.float32)])
    same(buffer_callback(add, PAIR)(jnp.ones(2), by=3), [4., 4.])


@pytest.mark.parametrize("call, error, words", [
    (lambda: buffer_callback(add, PAIR)(jnp.ones(2), "a"), TypeError, r"the argument at \[0\]\[1\], 'a'"),
    (lambda: buffer_callback(lambda context, out, x: 3, PAIR)(1.), TypeError,
     "a buffer callback returns None"),
    (lambda: buffer_callback(add, PAIR, input_output_aliases={0: 0})(1.), ValueError,
     "'0:0' referring to an input of type"),
    (lambda: buffer_callback(add, PAIR, input_output_aliases={2: 0})(1.), ValueError,
     "input index 2 outside the range"),
    (lambda: buffer_callback(add, PAIR, input_output_aliases={0: 1})(1.), ValueError,
     "output index 1 outside the range"),
    (lambda: jax.vmap(buffer_callback(add, SCALAR))(jnp.ones(2)), NotImplementedError, "vmap_method"),
    (lambda: jax.grad(buffer_callback(add, SCALAR))(1.), ValueError, "do not support JVP"),
    (lambda: buffer_callback(lambda context, out: context.stream, PAIR)(), jax.errors.JaxRuntimeError,
     "GPU context is not available"),
    (lambda: buffer_callback(add, PAIR, vmap_method="fast"), ValueError, "vmap_method must be one of"),
    (lambda: jax.jit(buffer_callback(add, PAIR)).trace(1.).lower(lowering_platforms=("tpu",)).as_text(),
     NotImplementedError, "not supported on platform tpu")])
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        jax.block_until_ready(call())
