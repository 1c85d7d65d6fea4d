"""Cosine transforms against SciPy."""
import numpy as np
import pytest
import scipy.fft

import hlotrace as jax
from hlotrace.scipy.fft import dct, dctn, idct, idctn

X = np.random.default_rng(0).normal(size=(4, 5, 6))


@pytest.mark.parametrize("function", [dct, idct, dctn, idctn])
def test_values(function):
    calls = [{}, dict(norm="ortho"), dict(norm="backward")]
    calls += ([dict(n=3), dict(n=9, axis=0, norm="ortho"), dict(n=1, axis=1)] if function in (dct, idct) else
              [dict(s=(3,), axes=(1,)), dict(s=(7, 4), axes=(0, -1), norm="ortho"), dict(axes=(2, 0))])
    with jax.enable_x64():
        found = jax.jit(lambda x: [function(x, **call) for call in calls])(X)
    for got, call in zip(found, calls):
        np.testing.assert_allclose(got, getattr(scipy.fft, function.__name__)(X, **call), atol=1e-12)


def test_types_and_derivative():
    for dtype, result in ((np.float16, np.float32), (np.int32, np.float32), (np.complex64, np.complex64)):
        assert dct(np.ones(4).astype(dtype)).dtype == result
    np.testing.assert_allclose(dct(X + 2j * X), scipy.fft.dct(X + 2j * X), atol=1e-5)
    matrix = jax.jacobian(lambda x: dct(x, norm="ortho"))(np.ones(5, np.float32))
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-6)


@pytest.mark.parametrize("call, error, words", [
    (lambda: dct(X, type=3), NotImplementedError, "type=3"), (lambda: idct(X, norm="forward"), ValueError, "'ortho'"),
    (lambda: dct(X[:0], axis=0), ValueError, "must not be empty"),
    (lambda: dctn(X, s=(3,), axes=(0, 1)), ValueError, "one length for each axis")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
