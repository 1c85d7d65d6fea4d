"""Repeats, flips, rolls: the same values as NumPy's, derivatives, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2, 5, 4], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I3 = np.arange(3, dtype=np.int32)


SAME = [
    lambda xp: xp.tile(X, (2, 1, 2)), lambda xp: xp.tile(V, 0), lambda xp: xp.tile(V, np.array(2)),
    lambda xp: xp.repeat(X, 2),
    lambda xp: xp.repeat(X, np.array([1, 0, 2]), 1), lambda xp: xp.flip(C, (0, -1)), lambda xp: xp.fliplr(X),
    lambda xp: xp.flipud(X), *(lambda xp, k=k: xp.rot90(C, k, (1, 2)) for k in range(-1, 3)),
    lambda xp: xp.roll(V, -7), lambda xp: xp.roll(X, 1), lambda xp: xp.roll(X, (1, 2), (0, 1)),
    lambda xp: xp.roll(X, (1, 2), 1), lambda xp: xp.roll(X, (1, 2)),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.repeat(V, -1), ValueError, "non-negative"),
    (lambda: jnp.repeat(V, [1, 2]), ValueError, "each of the 5"),
    (lambda: hlotrace.jit(lambda r: jnp.repeat(V, r))(2), hlotrace.errors.ConcretizationTypeError, "total_repeat_length"),
    (lambda: jnp.flip(X, 2), ValueError, "out of bounds"),
    (lambda: jnp.rot90(X, 1, (0, 0)), ValueError, "duplicate"),
    (lambda: jnp.roll(X, (1, 2), (0, 1, 0)), ValueError, "lengths"),
])
def test_rolling_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function, derivative", [
    (lambda a: jnp.roll(a, 2) * V, np.roll(V, -2)), (lambda a: jnp.tile(a, 2) ** 2, 4 * V),
    (lambda a: jnp.repeat(a, 2) ** 2, 4 * V),
])
def test_derivatives(function, derivative):
    np.testing.assert_allclose(hlotrace.grad(lambda a: function(a).sum())(V), derivative, 1e-6)


def test_traced_shifts_and_repeats():
    np.testing.assert_array_equal(hlotrace.vmap(lambda s: jnp.roll(V, s))(np.array([0, 2, -7])),
                                  [np.roll(V, s) for s in (0, 2, -7)])
    np.testing.assert_array_equal(hlotrace.jit(lambda s: jnp.roll(X, (s, 1), (0, 1)))(1), np.roll(X, (1, 1), (0, 1)))
    repeats = hlotrace.jit(lambda r: jnp.repeat(I3, r, total_repeat_length=6))
    for counts, want in (([1, 2, 3], [0, 1, 1, 2, 2, 2]), ([2, 0, 1], [0, 0, 2, 2, 2, 2]), ([4, 4, 4], [0, 0, 0, 0, 1, 1])):
        np.testing.assert_array_equal(repeats(np.array(counts)), want)
