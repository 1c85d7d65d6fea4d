"""Compiled programs as bytes: also of programs that jaxlib made of bytes itself, which it writes without their code."""
import numpy as np
import piece_programs
import pytest
from mesh8 import devices, line, on, one

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.effects import IO
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
from hlotrace.runtime.executables import compilation
from hlotrace.runtime.executables.executable_bytes import dump, load

X = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)


def f(x):
    return jnp.sort(jnp.sin(x) @ x, axis=0)


OPTIONS = {"jax_enable_compilation_cache": True, "jax_persistent_cache_min_compile_time_secs": 0,
           "jax_persistent_cache_min_entry_size_bytes": 0}


@pytest.fixture
def compiled(tmp_path):
    """A function that compiles `f`, or finds it in a cache on disk."""
    options = {**OPTIONS, "jax_compilation_cache_dir": str(tmp_path)}
    before = {name: jax.config.read(name) for name in options}

    def compile_again():
        compilation._loaded.clear()
        jax.clear_caches()
        return jax.jit(f).lower(X).compile()
    for name, value in options.items():
        jax.config.update(name, value)
    yield compile_again
    for name, value in before.items():
        jax.config.update(name, value)


def test_a_program_from_disk_is_written_with_its_code(compiled):
    expected = np.asarray(compiled()(X))
    again = compiled()
    assert again._executable.from_disk
    np.testing.assert_array_equal(deserialize_and_load(*serialize(again))(X), expected)
    # found in memory, where it came from disk
    np.testing.assert_array_equal(deserialize_and_load(*serialize(jax.jit(f).lower(X).compile()))(X), expected)


def test_a_program_from_bytes_is_written_again(compiled):
    expected = np.asarray(compiled()(X))
    once = deserialize_and_load(*serialize(compiled()))
    np.testing.assert_array_equal(deserialize_and_load(*serialize(once))(X), expected)


def test_a_file_that_is_gone_is_said(compiled, tmp_path):
    compiled()
    again = compiled()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(ValueError, match="cannot be read any more.*compile it again"):
        serialize(again)


def ordered():
    """A program with an effect that is no call of Python's."""
    executable = jax.jit(jnp.cos).lower(X).compile()._executable
    executable.lowered.effects, executable.lowered.ordered = (IO(True),), True
    return executable


PROGRAMS = {
    "on the first device": lambda: jax.jit(jnp.sin).lower(X),
    "on another device": lambda: jax.jit(jnp.sin).lower(jax.device_put(X, one(5))),
    "donating": lambda: jax.jit(lambda x, y: (y + 1, x.sum()), donate_argnums=1).lower(X, X),
    "with kernels": lambda: jax.jit(jnp.linalg.cholesky).lower(X),
    "over devices backwards": lambda: jax.jit(jnp.tanh).lower(
        jax.device_put(X, on("x", mesh=lambda: jax.sharding.Mesh(devices()[:3:-1], "x")))),
    "over devices, donating": lambda: jax.jit(jnp.exp, donate_argnums=0, out_shardings=on(None, "x", mesh=line)).lower(
        jax.device_put(X, on("x", mesh=line))),
    "in pieces": lambda: jax.jit(piece_programs.network).lower(piece_programs.PARAMS, piece_programs.X),
}


@pytest.mark.parametrize("name", [*PROGRAMS, "ordered"])
def test_what_is_known_of_a_program_is_written_with_it(name):
    """Everything that a call reads of it."""
    made = ordered() if name == "ordered" else PROGRAMS[name]().compile()._executable
    found, more = load(dump(made, {"beside": made.out_avals}))
    assert more == {"beside": made.out_avals}
    for field in ("out_avals", "in_shardings", "out_shardings", "device", "pieces"):
        before, after = getattr(made, field), getattr(found, field)
        assert len(after) == len(before) if field == "pieces" else after == before, field
    for field in ("donated", "ordered", "targets", "platform", "partition"):
        assert getattr(found.lowered, field) == getattr(made.lowered, field), field
    assert bool(found.lowered.effects) == bool(made.lowered.effects) and found.lowered.callbacks == []
    assert (found.lowered.jaxpr.in_avals, found.lowered.jaxpr.name) == (made.lowered.jaxpr.in_avals, made.lowered.jaxpr.name)
