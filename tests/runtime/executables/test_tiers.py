"""Tiered compilation: a quick form first, the full one by itself later; equal results, quiet failures, quick exits."""
import logging
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from places import ROOT

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.runtime.executables import compilation, tiers

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def tiered():
    jax.config.update("hlotrace_tiered_compile", "on")
    yield
    jax.config.update("hlotrace_tiered_compile", "off")


def f(x):
    return jnp.tanh(x @ x.T).sum(), {"y": jnp.sin(x)}


def test_the_full_form_takes_over_with_the_same_results():
    jitted = jax.jit(f)
    quick = jitted(X)
    assert jitted.tiers(wait=True) == ["full"]
    full = jitted(X)
    for a, b, want in zip(jax.tree.leaves(quick), jax.tree.leaves(full), (np.tanh(X @ X.T).sum(), np.sin(X))):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(a, want, rtol=1e-5)


def test_which_tier_runs(monkeypatch):
    compile_elsewhere, hold = tiers.compile_elsewhere, threading.Event()

    def slow(*args):
        assert hold.wait(60)
        compile_elsewhere(*args)
    monkeypatch.setattr(tiers, "compile_elsewhere", slow)
    jitted = jax.jit(lambda x: x * 3)
    compiled = compilation.compile_count
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X), X * 3)
        assert jitted.tiers() == ["quick"]
    hold.set()
    assert jitted.tiers(wait=True) == ["full"] and compilation.compile_count == compiled + 1
    np.testing.assert_array_equal(jitted(X), X * 3)


def test_options_of_the_calling_thread_hold_in_the_background():
    with jax.enable_x64(True):
        jitted = jax.jit(lambda x: jax.random.normal(jax.random.key(0), (4,), x.dtype) * x)
        x = jnp.arange(4.0)
        quick = jitted(x)
        jitted.tiers(wait=True)
        assert jitted(x).dtype == quick.dtype == jnp.float64
        np.testing.assert_allclose(jitted(x), quick, rtol=1e-12)


def test_a_failure_in_the_background_is_told_and_the_quick_form_goes_on(monkeypatch, caplog):
    compile_elsewhere = tiers.compile_elsewhere
    monkeypatch.setattr(tiers, "compile_elsewhere", lambda texts, *args: compile_elsewhere(["module {"], *args))
    jitted = jax.jit(lambda x: x + 2)
    with caplog.at_level(logging.WARNING, "hlotrace"):
        jitted(X)
        assert jitted.tiers(wait=True) == ["quick"]
    assert "error" in caplog.text.lower() and "quick form" in caplog.text
    np.testing.assert_array_equal(jitted(X), X + 2)


def test_donation():
    step, x = jax.jit(lambda x: x * 2, donate_argnums=0), jnp.ones(3)
    for i in range(3):
        x, old = step(x), x
        assert old.is_deleted() and step.tiers(wait=i == 1) == ["full" if i else "quick"]
    np.testing.assert_array_equal(x, np.full(3, 8.0))


def test_programs_with_effects_have_one_form():
    jitted = jax.jit(lambda x: (jax.debug.callback(lambda v: None, x), x + 1)[1])
    jitted(X)
    assert jitted.tiers() == ["full"]


def test_auto_is_for_large_programs_and_explicit_compilation_has_one_tier():
    jax.config.update("hlotrace_tiered_compile", "auto")
    jitted = jax.jit(lambda x: x - 1)
    jitted(X)
    assert jitted.tiers() == ["full"] and not isinstance(next(
        v for v in jitted._known.calls.values()).executable, tiers.TieredExecutable)
    jax.config.update("hlotrace_tiered_compile", "on")
    assert jitted.lower(X).compile()._executable.tier == "full"


PROGRAM = """
import hlotrace as jax, hlotrace.numpy as jnp
jax.config.update("hlotrace_tiered_compile", "on")
jax.config.update("hlotrace_outline", False)
def f(x):
    for i in range(400):
        x = jnp.sin(x) * (1 + i / 100) + jnp.cos(x @ x) * x
    return x
jitted = jax.jit(f)
print(float(jitted(jnp.eye(4)).sum()) < 1e9, jitted.tiers(), flush=True)
"""


def test_the_process_ends_while_the_full_form_compiles():
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "['quick']" in done.stdout, done.stdout + done.stderr
