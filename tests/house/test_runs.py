"""What conftest.py does for every run: programs kept on disk, tests that do without, tests that are quick."""
import ast
import os
import subprocess
import sys

import conftest
import pytest
import syntax
from places import ROOT, TESTS

from hlotrace.core.config import config

pytestmark = pytest.mark.quick


def test_those_that_compile_each_time_are_there():
    for name, tests in [*conftest.COMPILE_EACH_TIME.items(), *conftest.AS_USERS_COMPILE.items()]:
        functions = {node.name for node in syntax.tree(TESTS / name).body
                     if isinstance(node, ast.FunctionDef)}
        assert functions >= {test.partition("[")[0] for test in tests or ()}, name


def test_programs_are_kept_here_whatever_their_size():
    if not conftest.PROGRAMS:
        pytest.skip("this run keeps none")
    assert config.jax_compilation_cache_dir == conftest.PROGRAMS and config.jax_enable_compilation_cache
    assert config.jax_persistent_cache_min_compile_time_secs == config.jax_persistent_cache_min_entry_size_bytes == 0


RUN = """
import hlotrace as jax, pytest

@pytest.mark.quick
def test_that_compiles():
    assert float(jax.jit(lambda x: x * 3)(1.0)) == 3

@pytest.mark.quick
def test_that_traces():
    assert jax.make_jaxpr(lambda x: x * 3)(1.0)

def test_that_may():
    assert float(jax.jit(lambda x: x * 3)(1.0)) == 3
"""


def test_a_quick_test_that_compiles_fails(tmp_path):
    (tmp_path / "test_it.py").write_text(RUN)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider",
                           "-c", os.devnull,
                           "--rootdir", tmp_path, tmp_path], capture_output=True, text=True, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(ROOT)])})
    assert "it is marked quick and compiles 1 program(s)" in done.stdout and "1 failed, 2 passed" in done.stdout, done.stdout
