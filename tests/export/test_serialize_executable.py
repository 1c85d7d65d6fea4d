"""experimental.serialize_executable: compiled functions as bytes, read here and in another process."""
import pickle

import forked
import numpy as np
import pytest
from mesh8 import devices, line
from piece_programs import PARAMS, X, in_pieces, network

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize

TABLE = np.arange(100, dtype=np.float32)


def f(x, y):
    return {"a": x * 2 + y["b"].sum() + TABLE[:4], "n": 3, "unused": TABLE[:2]}


ARGS = np.ones((3, 4), np.float32), {"b": np.arange(3), "unused": np.ones(2)}


@pytest.fixture(scope="module")
def written():
    return serialize(jax.jit(f).lower(*ARGS).compile())


def again(compiled):
    payload, in_tree, out_tree = serialize(compiled)
    assert type(payload) is bytes
    return deserialize_and_load(payload, in_tree, out_tree)


def test_another_process_calls_it(written, tmp_path):
    (tmp_path / "written").write_bytes(pickle.dumps(written))
    code = ("import pickle, sys, numpy as np\n"
            "from hlotrace.experimental.serialize_executable import deserialize_and_load\n"
            "from hlotrace.runtime.executables import compilation\n"
            f"g = deserialize_and_load(*pickle.load(open({str(tmp_path / 'written')!r}, 'rb')))\n"
            "out = g(np.ones((3, 4), np.float32), {'b': np.arange(3), 'unused': np.ones(2)})\n"
            "print(np.asarray(out['a'])[0], out['n'], compilation.compile_count)")
    done = forked.run(code, check=True)
    assert done.stdout.splitlines()[-1] == "[5. 6. 7. 8.] 3 0"


def test_what_is_read_is_a_compiled_function(written):
    g = deserialize_and_load(*written)
    assert isinstance(g, jax.stages.Compiled) and g.fun_name == "f"
    assert g.in_avals[0][1]["b"].str_short() == "int32[3]" and g.out_info["a"].shape == (3, 4)
    assert g.input_shardings[0][1]["unused"] is None and "fusion" in g.as_text() and g.memory_analysis()
    with pytest.raises(TypeError, match=r"compiled for float32\[3,4\], called with float32\[4\]"):
        g(np.ones(4, np.float32), ARGS[1])
    with pytest.raises(TypeError, match="only compiled has 'b'"):
        g(ARGS[0], {"c": 1, "unused": np.ones(2)})


def test_it_runs_on_other_devices(written):
    there = jax.sharding.SingleDeviceSharding(devices()[0])
    asked = again(jax.jit(lambda x: x + 1, in_shardings=there).lower(jnp.ones(2)).compile())
    assert asked(jnp.ones(2)).committed
    out = deserialize_and_load(*written, execution_devices=devices()[2:3])(*ARGS)
    assert out["a"].devices() == {devices()[2]}
    np.testing.assert_array_equal(out["a"][0], [5, 6, 7, 8])
    with pytest.raises(ValueError, match="runs on 1 devices, and execution_devices names 2"):
        deserialize_and_load(*written, execution_devices=devices()[:2])


def test_programs_in_pieces_over_devices_and_with_donated_arguments():
    deep = in_pieces(network, PARAMS, X)
    np.testing.assert_array_equal(again(deep)(PARAMS, X), deep(PARAMS, X))
    lies = jax.NamedSharding(line(), jax.P("x"))
    x = jax.device_put(jnp.arange(16.0), lies)
    cut = again(jax.jit(lambda x: (x * 2, x.sum()), donate_argnums=0).lower(x).compile())
    doubled, total = cut(x)
    assert doubled.sharding == lies and cut.input_shardings[0][0] == lies and total == 120 and x.is_deleted()
    np.testing.assert_array_equal(doubled, np.arange(16.0) * 2)
    kernel = again(jax.jit(lambda k: jax.random.normal(k, (2,))).lower(jax.random.key(0)).compile())
    np.testing.assert_array_equal(kernel(jax.random.key(0)), jax.random.normal(jax.random.key(0), (2,)))


def test_what_belongs_to_this_process_and_what_is_no_program_is_refused(written):
    calls = jax.jit(lambda x: jax.pure_callback(abs, x, x)).lower(jnp.float32(1)).compile()
    with pytest.raises(ValueError, match="calls Python functions of this process"):
        serialize(calls)
    with pytest.raises(TypeError, match="is not a compiled function"):
        serialize(jax.jit(f))
    payload, *trees = written
    for damaged, words in (b"abc", "not the bytes that serialize gave"), (payload[:-1], "damaged"), (
            payload[:200] + b"x" + payload[201:], "damaged"), (payload.decode("latin1"), "not the bytes"):
        with pytest.raises(ValueError, match=words):
            deserialize_and_load(damaged, *trees)


def test_it_says_for_what_it_was_compiled(written, monkeypatch):
    from hlotrace.runtime import binding
    from hlotrace.runtime.devices import client
    monkeypatch.setattr(binding, "jaxlib_version", "0.9.9")
    with pytest.raises(ValueError, match="compiled by jaxlib .*, and this is jaxlib 0.9.9: compile it again"):
        deserialize_and_load(*written)
    monkeypatch.undo()
    monkeypatch.setattr(client, "platform_of", lambda device: "tpu")
    with pytest.raises(ValueError, match="compiled for cpu, and .* is a device of cpu"):
        deserialize_and_load(*written)
