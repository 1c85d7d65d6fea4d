"""Functions of samples against SciPy: interpolation, integrals, quantization."""
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
from derivatives import check_derivatives

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy.cluster.vq import vq
from hlotrace.scipy.integrate import trapezoid
from hlotrace.scipy.interpolate import RegularGridInterpolator
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
    halves = map_coordinates(jnp.arange(4), [np.array([0.5, 1.5, 2.5, -0.5])], 0, "nearest")
    np.testing.assert_array_equal(halves, [1, 2, 3, 0])
    for mode in MODES:
        np.testing.assert_allclose(map_coordinates(jnp.ones(1), [np.array([-2., 0, 3])], 1, mode, 1.), 1)
    np.testing.assert_allclose(map_coordinates(X, [1.5, np.array([0, 2])], 1), (X[1] + X[2])[[0, 2]] / 2, rtol=1e-6)


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
    np.testing.assert_allclose(jax.jit(lambda f, x: f(x, method="nearest"))(f, jnp.array([[1.7]])), [4])
    assert len(jax.tree.leaves(f)) == 3


def test_derivatives():
    inside = RNG.uniform(0.1, 2.9, (2, 9))
    check_derivatives(lambda x, c: [map_coordinates(x, 2 * c, 1, mode) for mode in MODES], X, inside)
    check_derivatives(lambda p, q, v, x: RegularGridInterpolator((p, q), v)(x), np.arange(4.), np.arange(5.), X, inside.T)
    check_derivatives(lambda o, c: vq(o, c)[1], X, X[:3] + 0.3)
    check_derivatives(trapezoid, X, X ** 2)


def test_codes():
    obs, code = RNG.normal(size=(20, 3)), RNG.normal(size=(6, 3))
    for a, b in ((obs, code), (obs[:, 0], code[:, 0])):
        for got, want in zip(vq(a, b), scipy.cluster.vq.vq(a, b)):
            np.testing.assert_allclose(got, want, atol=1e-6)
    np.testing.assert_allclose(vq(jnp.array([[1, 5]]), jnp.array([[4, 1]]))[1], [5])


def test_integrals():
    x = np.sort(RNG.normal(size=5))
    for kwargs in (dict(x=x), dict(dx=0.3), dict(axis=0)):
        np.testing.assert_allclose(trapezoid(X, **kwargs), scipy.integrate.trapezoid(X, **kwargs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, error, words", [
    (lambda: map_coordinates(X, [1.], 1), ValueError, "length input.ndim"),
    (lambda: map_coordinates(X, [1., 2.], 3), NotImplementedError, "order=3"),
    (lambda: map_coordinates(X, [1., 2.], 1, "edge"), NotImplementedError, "mode='edge'"),
    (lambda: vq(X, X[:, :2]), ValueError, r"\(4, 5\) and \(4, 2\)"), (lambda: vq(X, X[:0]), ValueError, "k > 0"),
    (lambda: RegularGridInterpolator((X[0],), X), ValueError, "of their sizes"),
    (lambda: RegularGridInterpolator((X[:, 0],), X, bounds_error=True), NotImplementedError, "bounds_error"),
    (lambda: RegularGridInterpolator((X[:, 0],), X, "cubic"), ValueError, "'nearest'"),
    (lambda: RegularGridInterpolator((X[:, 0],), X, fill_value=1j), ValueError, "compatible"),
    (lambda: RegularGridInterpolator((X[:, 0], X[0]), X)(X), ValueError, r"\(\.\.\., 2\)")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
