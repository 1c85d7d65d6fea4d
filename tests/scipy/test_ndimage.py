"""map_coordinates, against SciPy."""
import numpy as np
import scipy.ndimage

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
PLACES = RNG.uniform(-9, 12, (2, 60))
MODES = {"constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap", "mirror": "mirror", "reflect": "reflect"}


def test_coordinates():
    with jax.enable_x64():
        found = jax.jit(lambda x, c: [[map_coordinates(x, c, order, mode, 7.) for mode in MODES]
                                      for order in (0, 1)])(X, PLACES)
    for order, results in enumerate(found):
        for mode, got in zip(MODES.values(), results):
            want = scipy.ndimage.map_coordinates(X, PLACES, order=order, mode=mode, cval=7.)
            np.testing.assert_allclose(got, want, atol=1e-12)
    c = [np.array([0.6, 1.25, 3.9])]
    for dtype in ("int32", "uint8", "bfloat16", "complex64"):
        got = map_coordinates(jnp.array([2, 5, 8, 3], dtype), c, 1)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype("complex64"), [3.8, 5.75, 0.3] if dtype[0] in "bc" else [4, 6, 0], rtol=5e-3)
    beyond = map_coordinates(jnp.arange(6), [np.array([-1., -0.25, 2.5])], 1, "constant", 1.5)
    np.testing.assert_array_equal(beyond, [1, 0, 3])          # cval is of the array's dtype
    halves = map_coordinates(jnp.arange(4), [np.array([0.5, 1.5, 2.5, -0.5])], 0, "nearest")
    np.testing.assert_array_equal(halves, [1, 2, 3, 0])
    for mode in MODES:
        np.testing.assert_allclose(map_coordinates(jnp.ones(1), [np.array([-2., 0, 3])], 1, mode, 1.), 1)
    np.testing.assert_allclose(map_coordinates(X, [1.5, np.array([0, 2])], 1), (X[1] + X[2])[[0, 2]] / 2, rtol=1e-6)
    np.testing.assert_allclose(map_coordinates([1.0, 3.0], [[0.5]], 1), [2])
