"""Where memory is too small, the error names the largest values that are alive at the peak, with their lines."""
from types import SimpleNamespace

import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.api.parallel.plan import Plan, Row
from hlotrace.inspection.planning.lowered_estimates import refused
from hlotrace.runtime.binding import JaxRuntimeError
from hlotrace.runtime.executables import runtime_checks
from hlotrace.runtime.executables.executable import Executable

X = jnp.ones((256, 256))


def big(x):
    return (jnp.sin(x @ x) @ x).sum()


def fails(words):
    def fail(*_):
        raise JaxRuntimeError(words)
    return fail


def test_a_program_that_a_chip_has_no_memory_for(monkeypatch):
    monkeypatch.setattr(runtime_checks, "compile_lowered", fails("RESOURCE_EXHAUSTED: big does not fit"))
    with pytest.raises(JaxRuntimeError) as caught:
        jax.jit(big).lower(X).compile()
    first, second, *values = str(caught.value).splitlines()
    assert first == "RESOURCE_EXHAUSTED: big does not fit"
    assert second.startswith("In memory: the largest values when most are alive, ")
    assert any("f32[256,256]" in v or "float32[256, 256]" in v for v in values) and any("argument" in v for v in values)
    assert any("test_lowered_estimates.py:18" in v for v in values), values


def test_a_run_for_which_there_is_no_memory(monkeypatch):
    f = jax.jit(big)
    f(X)
    monkeypatch.setattr(Executable, "__call__", fails("RESOURCE_EXHAUSTED: Out of memory"))
    monkeypatch.setattr(f, "_quick", {})
    monkeypatch.setattr(Executable, "run", fails("RESOURCE_EXHAUSTED: Out of memory"))
    with pytest.raises(JaxRuntimeError, match="In memory: the largest values") as caught:
        f.lower(X).compile()(X)
    assert "f32[256,256]" in str(caught.value)


def test_other_errors_are_left_as_they_are():
    error = JaxRuntimeError("INTERNAL: something else")
    assert refused(None, None, error) is error


@pytest.mark.quick
def test_a_plan_shows_the_words_in_a_line_and_the_values_below():
    error = "RESOURCE_EXHAUSTED: it\ndoes not fit\nIn memory: the largest values\n  f32[8]  argument"
    plan = Plan("f", {"chips": [SimpleNamespace(device_kind="chip")]}, [Row("chips", {"data": 2}, None, error)])
    assert "\ndata=2: RESOURCE_EXHAUSTED: it does not fit\nIn memory: the largest values\n  f32[8]  argument\n" in str(plan)
