"""Random programs of loops, branches, custom rules and transformations within each other."""
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import random_programs

import hlotrace as jax

FORWARD = pytest.mark.parametrize("forward", [True, False], ids=["forward", "reverse"])


@FORWARD
@pytest.mark.parametrize("seed", range(6))
def test_what_changes_no_number_changes_none(seed, forward):
    """jit, checkpoint and custom rules that give the derivative, in values, first and second derivatives."""
    with jax.enable_x64(True):
        found, expected = (random_programs.results(jax, seed, 1, forward, plain) for plain in (False, True))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


SIDE = """
import os, pickle, sys
os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
import jax
import random_programs
found = {}
for case in pickle.load(sys.stdin.buffer):
    try:
        found[case] = random_programs.results(jax, *case)
    except Exception as error:
        found[case] = type(error)
pickle.dump(found, sys.stdout.buffer)
"""


@FORWARD
def test_random_programs_give_what_jax_gives(forward):
    python = os.environ.get("HLOTRACE_JAX_PYTHON")
    if not python:
        pytest.skip("HLOTRACE_JAX_PYTHON names no Python that has jax")
    first = int(os.environ.get("HLOTRACE_SEED", 100))
    cases = [(seed, 2, forward) for seed in range(first, first + 20)]
    folder = Path(random_programs.__file__).parent
    done = subprocess.run([python, "-c", SIDE], input=pickle.dumps(cases), stdout=subprocess.PIPE, check=True,
                          cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)})
    compared = 0
    for case, expected in pickle.loads(done.stdout).items():
        if isinstance(expected, list):
            with jax.enable_x64(True):
                found = random_programs.results(jax, *case)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8, err_msg=str(case))
            compared += 1
    assert compared > 10
