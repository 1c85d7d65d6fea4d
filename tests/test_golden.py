"""The StableHLO of five small programs, byte for byte, as kept in `golden/`.

After a change that is meant to change the text, write the files anew and read the difference:
HLOTRACE_WRITE_GOLDEN=1 python -m pytest tests/test_golden.py && git diff tests/golden
"""
import os
from pathlib import Path

import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import lax

GOLDEN = Path(__file__).parent / "golden"
WEIGHT, INPUT, TARGET = np.zeros((3, 2), np.float32), np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)


@hlotrace.jit
def layer(w, x):
    return jnp.tanh(x @ w)


@hlotrace.jit
def running_mean(xs):
    def step(carry, x):
        total, count = carry
        carry = total + x, count + 1
        return carry, carry[0] / carry[1]
    return lax.scan(step, (0.0, 0.0), xs)


@hlotrace.jit
def safe_log(x):
    return lax.cond(x > 0, jnp.log, lambda x: jnp.full_like(x, -jnp.inf), x)


@hlotrace.jit
def gradient_of_each(w, x, y):
    def loss(w, x, y):
        return jnp.sum((layer(w, x) - y) ** 2)
    return hlotrace.vmap(hlotrace.grad(loss), (None, 0, 0))(w, x, y)


def descend(params, gradient):
    return {name: p - 0.1 * gradient[name] for name, p in params.items()}


PROGRAMS = {
    "matmul_tanh": (layer, WEIGHT, INPUT),
    "scan": (running_mean, np.zeros(5, np.float32)),
    "cond": (safe_log, np.float32(1)),
    "vmap_of_grad": (gradient_of_each, WEIGHT, INPUT, TARGET),
    "donated": (hlotrace.jit(descend, donate_argnums=0), {"w": WEIGHT}, {"w": WEIGHT}),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_the_golden_one(name):
    function, *args = PROGRAMS[name]
    text, file = function.lower(*args).as_text(), GOLDEN / f"{name}.mlir"
    if os.environ.get("HLOTRACE_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.quick
def test_no_golden_file_is_left_over():
    assert {file.stem for file in GOLDEN.glob("*.mlir")} == set(PROGRAMS)
