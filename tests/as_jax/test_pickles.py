"""Pickles in a process for JAX: those that JAX wrote are read, and JAX reads those that are written."""
import os
import pickle
import subprocess
import sys

import forked
import pytest
from places import TESTS

import hlotrace as jax

# the Python of an environment with the real JAX, for those tests that need it
JAX_PYTHON = os.environ.get("HLOTRACE_JAX_PYTHON")


def run(python, *arguments):
    program = TESTS / "as_jax" / "pickled.py"
    if python == sys.executable:
        forked.run(forked.file(program), *arguments, check=True, HLOTRACE_AS_JAX="1")
    else:
        done = subprocess.run([python, program, *arguments], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": ""})
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", ["0.10", "0.12"])
def test_what_jax_wrote_is_read(version):
    """The file was written by `pickled.py jax write` under that version."""
    run(sys.executable, "ours", "read", TESTS / "data" / f"pickles_of_jax_{version}.json")


def test_what_is_written_is_read(tmp_path):
    run(sys.executable, "ours", "write", tmp_path / "file.json")
    run(sys.executable, "ours", "read", tmp_path / "file.json")


@pytest.mark.skipif(not JAX_PYTHON, reason="HLOTRACE_JAX_PYTHON names no Python that has jax")
def test_jax_reads_what_is_written_and_the_other_way_round(tmp_path):
    run(sys.executable, "ours", "write", tmp_path / "file.json")
    run(JAX_PYTHON, "jax", "read", tmp_path / "file.json")
    run(JAX_PYTHON, "jax", "write", tmp_path / "file.json")
    run(sys.executable, "ours", "read", tmp_path / "file.json")


def test_pickles_of_other_processes_are_read_in_one_for_jax(tmp_path):
    """Here pickles are this package's own, and name its classes by their own names."""
    things = {"x": jax.numpy.arange(3.), "key": jax.random.key(1),
              "struct": jax.ShapeDtypeStruct((2,), "float32"),
              "spec": jax.P("x"), "type": jax.typeof(1.)}
    assert b"jax._src" not in pickle.dumps(things)
    (tmp_path / "file").write_bytes(pickle.dumps(things))
    program = """
import hlotrace.as_jax, jax, pickle, sys
found = pickle.load(open(sys.argv[1], "rb"))
assert found["x"].tolist() == [0, 1, 2] and found["struct"] == jax.ShapeDtypeStruct((2,), "float32") and found["spec"] == jax.P("x")
assert found["type"] == jax.typeof(1.) and found["key"] == jax.random.key(1) and b"jax._src" in pickle.dumps(found)
"""
    forked.run(program, tmp_path / "file", check=True, HLOTRACE_AS_JAX="1")


def test_keys_of_a_generator_of_one_s_own_say_what_to_pickle():
    program = """
import hlotrace.as_jax, jax, pickle
from jax.extend.random import define_prng_impl, threefry_prng_impl as t
impl = define_prng_impl(key_shape=(2,), seed=t.seed, split=lambda k, s: t.split(k, shape=s), random_bits=t.random_bits, fold_in=t.fold_in)
try:
    pickle.dumps(jax.random.key(0, impl=impl))
except TypeError as error:
    assert "pickle jax.random.key_data(keys)" in str(error)
else:
    raise AssertionError
"""
    forked.run(program, check=True, HLOTRACE_AS_JAX="1")


def test_manual_axis_types_are_pickled():
    manual = jax.sharding.ManualAxisType(varying={"x"})
    assert pickle.loads(pickle.dumps(manual)) == manual
