"""Functions of samples: derivatives, integrals, quantization against SciPy; what is refused."""
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
from derivatives import check_derivatives

import hlotrace.numpy as jnp
from hlotrace.scipy.cluster.vq import vq
from hlotrace.scipy.integrate import trapezoid
from hlotrace.scipy.interpolate import RegularGridInterpolator
from hlotrace.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
MODES = {"constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap", "mirror": "mirror", "reflect": "reflect"}


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
