"""Compiled programs as bytes: also of programs that jaxlib made of bytes itself, which it writes without their code."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.serialize_executable import deserialize_and_load, serialize
from hlotrace.runtime.executables import compilation

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
