"""Interpolation on grids, against SciPy."""
import numpy as np
import scipy.interpolate

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy.interpolate import RegularGridInterpolator

RNG = np.random.default_rng(0)


def test_grids():
    points, places = (np.array([1., 2, 4, 4.5]), np.array([-1., 0, 3, 7, 8])), RNG.uniform(-2, 9, (7, 6, 2))
    places[0, 0], places[0, 1, 1], places[1, 0] = (4.5, 8), np.nan, (2, 3)
    values = RNG.normal(size=(4, 5, 3))
    calls = [dict(method=m, fill_value=f) for m in ("linear", "nearest") for f in (np.nan, None, 2.)]
    with jax.enable_x64():
        found = jax.jit(lambda p, v, x: [RegularGridInterpolator(p, v, **call)(x) for call in calls])(points, values, places)
    for call, got in zip(calls, found):
        want = scipy.interpolate.RegularGridInterpolator(points, values, bounds_error=False, **call)
        np.testing.assert_allclose(got, want(places), atol=1e-12)
    f = RegularGridInterpolator((jnp.arange(3.),), jnp.array([0, 1, 4]))
    np.testing.assert_allclose(f((jnp.array([0.5, 1.5]),)), [0.5, 2.5])
    np.testing.assert_allclose(f(jnp.array([0.5, 1.5])), [0.5, 2.5])
    np.testing.assert_allclose(f(jnp.array([0.5])), [0.5])
    np.testing.assert_allclose(jax.jit(lambda f, x: f(x, method="nearest"))(f, jnp.array([[1.7]])), [4])
    assert len(jax.tree.leaves(f)) == 3
