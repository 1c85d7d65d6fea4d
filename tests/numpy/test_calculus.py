"""Differences, slopes, integrals, interpolation: values as NumPy's, derivatives, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    lambda xp: xp.diff(V, 2), lambda xp: xp.diff(X, prepend=1, axis=0), lambda xp: xp.diff(V > 2),
    lambda xp: xp.ediff1d(V, to_end=V[:2], to_begin=V[0]), lambda xp: xp.gradient(V),
    lambda xp: xp.gradient(X, 2.0, axis=1), lambda xp: xp.gradient(X, 2.0, 3.0),
    lambda xp: xp.gradient(V, np.array([0, 1, 3, 4, 8], np.float32)), lambda xp: xp.trapezoid(V, dx=2),
    lambda xp: xp.trapezoid(X, np.array([0, 1, 3], np.float32)), lambda xp: xp.trapezoid(X, axis=0),
    lambda xp: xp.trapezoid(V, dx=np.arange(1., 5)), lambda xp: xp.trapezoid(V, dx=np.arange(1., 3)[:, None]),
    lambda xp: xp.trapezoid(V, np.square(np.arange(5., dtype=np.float32))[None]),
    lambda xp: xp.trapezoid(X, dx=np.arange(1., X.shape[0])[:, None], axis=0), lambda xp: xp.trapezoid(X, dx=.5, axis=0),
    lambda xp: xp.unwrap(V * 2), lambda xp: xp.unwrap(X * 4, axis=0),
    lambda xp: xp.unwrap(np.array([0, 3, 1, 5, 9], np.int32), period=np.int32(4)),
    lambda xp: xp.unwrap(np.array([0, 2, 0, 2, 4, 2, -2], np.float32), period=4.0),      # each a jump of half a period
    lambda xp: xp.unwrap(np.array([0, 3, -3, 0, 9, 3], np.int32), period=6),
    lambda xp: xp.interp(V - 1.5, I3, V[:3]), lambda xp: xp.interp(V, I3, V[:3], left=-5, right=9),
    lambda xp: xp.interp(V, I3, V[:3], period=2.5), lambda xp: xp.interp(X, I3, V[:3] * np.complex64(1j)),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


def test_interpolation_goes_on_with_the_slope_at_each_end():
    x, xp, fp = np.array([-2, -1, 0.5, 3, 5], np.float32), np.array([0, 1, 3], np.float32), np.array([1, 3, 2], np.float32)
    at = lambda **beyond: jnp.interp(x, xp, fp, **beyond).tolist()
    assert at(left="extrapolate") == [-3, -1, 2, 2, 2] and at(right="extrapolate") == [1, 1, 2, 2, 1]
    assert at(left="extrapolate", right=7) == [-3, -1, 2, 2, 7] and at(left=7, right="extrapolate") == [7, 7, 2, 2, 1]


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.diff(V, -1), ValueError, "non-negative"), (lambda: jnp.gradient(V[:1]), ValueError, "too small"),
    (lambda: jnp.gradient(X, 1, 2, 3), TypeError, "spacing"),
    (lambda: jnp.interp(V, X, X), ValueError, "one-dimensional"),
    (lambda: jnp.interp(V, V, V, left="a"), ValueError, "left"),
    (lambda: jnp.unwrap(V * 1j), ValueError, "complex"),
])
def test_calculus_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function, derivative", [
    (lambda a: jnp.gradient(a), [-1.5, .5, 0, -.5, 1.5]),
    (lambda a: jnp.interp(1.5, V[:0:-1] * 0 + np.arange(4), a[:4]), [0, .5, .5, 0, 0]),
])
def test_derivatives(function, derivative):
    np.testing.assert_allclose(hlotrace.grad(lambda a: function(a).sum())(V), derivative, 1e-6)
