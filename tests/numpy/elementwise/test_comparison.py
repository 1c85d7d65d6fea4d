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


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("limits", [{}, {"rtol": 0.25}, {"rtol": 0, "atol": 1.5}, {"rtol": np.float32(0.5), "atol": 0}])
def test_closeness_is_relative_to_the_second_of_all_pairs(limits, equal_nan):
    x = np.float32([-INF, -4, -3, -0.0, 0, 1e-9, 3, 3.9999998, 4, INF, NAN])
    for a, b in ((x[:, None], x), (x[:, None] + 1j, x + 1j), (np.arange(5)[:, None], np.arange(3, 9))):
        a, b = (v.astype(np.complex64) if v.dtype.kind == "c" else v for v in (a, b))
        with np.errstate(all="ignore"):
            want = np.isclose(a, b, equal_nan=equal_nan, **limits)
        np.testing.assert_array_equal(jnp.isclose(a, b, equal_nan=equal_nan, **limits), want)
        assert bool(jnp.allclose(a, b, equal_nan=equal_nan, **limits)) == want.all()
    for a, b in ((x, x), (x[:-1], x[:-1]), (x, x[::-1]), (x, x[:2])):
        assert bool(jnp.array_equal(a, b, equal_nan=equal_nan)) == np.array_equal(a, b, equal_nan=equal_nan)


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
