"""isclose, allclose, array_equal and array_equiv; iscomplexobj and its kin."""
import numpy as np
import pytest
from elementwise import SAMPLES, two_arrays_agree

import hlotrace.numpy as jnp


def array(dtype):
    return jnp.ones(2, dtype)


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", SAMPLES)
def test_isclose_agrees_with_numpy(dtype):
    two_arrays_agree({"isclose": tuple(SAMPLES)}, dtype)


@pytest.mark.parametrize(("found", "wanted"), [
    (lambda: jnp.isclose(INF, INF), True), (lambda: jnp.allclose(NAN, NAN, equal_nan=True), True),
    (lambda: jnp.array_equal(array("int8"), jnp.ones(3)), False),
    (lambda: jnp.array_equal([1, 2], jnp.array([1, 2])), True),
    (lambda: jnp.array_equiv(array("int8"), 1), True), (lambda: jnp.array_equiv(jnp.ones(2), jnp.ones(3)), False),
])
def test_values_at_edges(found, wanted):
    np.testing.assert_allclose(np.asarray(found()), wanted, rtol=1e-6)


def test_questions_about_objects():
    assert jnp.isscalar(3) and jnp.isscalar(jnp.array(3)) and jnp.isscalar(np.array(1.0)) and not jnp.isscalar(jnp.ones(1))
    assert jnp.iscomplexobj(1j) and jnp.iscomplexobj([1j]) and jnp.isrealobj(jnp.ones(1))
