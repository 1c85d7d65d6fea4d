"""Orders that programs ask XLA for: they are in the text, and change no number."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental.control_deps import control_dep, schedule
from hlotrace.experimental.profiler import get_profiled_instructions_proto


def one_after_the_other(x):
    a, b, c = jnp.sin(x), jnp.cos(x), jnp.tan(x)
    schedule([c, a, b])
    return a + b + c


def test_schedule_is_a_dependency_of_each_on_the_one_before():
    text = jax.jit(one_after_the_other).lower(1.0).as_text()
    assert text.count("custom_call @control_dep(") == 2
    np.testing.assert_allclose(jax.jit(one_after_the_other)(1.0), np.sin(1) + np.cos(1) + np.tan(1),
                               rtol=1e-6)


def test_a_value_cannot_be_before_itself():
    with pytest.raises(jax.errors.JaxRuntimeError, match="cycle"):
        jax.jit(lambda x: (control_dep(x, x), x))(1.0)


def test_a_folder_without_profiles_has_no_times_of_instructions(tmp_path):
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND"):
        get_profiled_instructions_proto(tmp_path)
