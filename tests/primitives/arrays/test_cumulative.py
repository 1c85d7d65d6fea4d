"""Cumulative reductions: in both directions, their rules by NumPy, and their types."""
import numpy as np
import pytest
from reference import check_rules, draw, run

import hlotrace as jax
from hlotrace import lax

pytestmark = pytest.mark.quick

X, = draw((3, 4))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_are_linear(axis, reverse):
    check_rules(lambda x: lax.cumsum(x, axis, reverse), X, linear=[0])
    assert np.isclose(run(lambda x: lax.cumsum(x, axis, reverse), X.astype("f"))[0].max(), X.sum(axis).max())


@pytest.mark.parametrize("function", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp])
def test_types_and_errors(function):
    x = jax.ShapeDtypeStruct((3, 4), np.float32)
    for axis in (0, 1):
        assert jax.eval_shape(lambda x: function(x, axis), x) == x  # noqa: B023
    assert jax.eval_shape(jax.vmap(lambda x: function(x, 0), 1, 1), x).shape == (3, 4)
    for axis in (2, -3):
        with pytest.raises((ValueError, TypeError), match="axis"):
            jax.eval_shape(lambda x: function(x, axis), x)  # noqa: B023


@pytest.mark.parametrize("name, function", [("cumprod", np.cumprod), ("cummax", np.maximum.accumulate), ("cummin", np.minimum.accumulate)])
def test_a_mapped_axis_moves_the_axis_that_is_gone_over(name, function):
    for at in (0, 1, 2):
        for axis in (0, 1):
            x, = draw((2, 3, 4))
            found, = run(jax.vmap(lambda v: getattr(lax, name)(v, axis), at, at), x.astype("f"))  # noqa: B023
            want = np.moveaxis(np.stack([function(v, axis=axis) for v in np.moveaxis(x.astype("f"), at, 0)]), 0, at)
            np.testing.assert_array_equal(found, want)
