"""Diagonals and triangles: values as NumPy's, derivatives, errors."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace
import hlotrace.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([3, 1, 2], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("function", [
    lambda xp: xp.eye(3, dtype=np.float32), lambda xp: xp.eye(2, 4, 1, dtype=np.int32),
    lambda xp: xp.eye(3, k=-5, dtype=bool), lambda xp: xp.identity(2, np.complex64),
    lambda xp: xp.tri(3, 4, 1, dtype=np.float32), lambda xp: xp.tril(C, -1), lambda xp: xp.triu(C, 1),
    lambda xp: xp.triu(np.ones((3, 2), bool)), lambda xp: xp.diag(V, 1), lambda xp: xp.diag(V, -2),
    lambda xp: xp.diag(X, 1), lambda xp: xp.diag(X, -1), lambda xp: xp.diag(X, 7), lambda xp: xp.diagflat(X, -1),
    lambda xp: xp.diagonal(C, 1, 1, 2), lambda xp: xp.diagonal(C, -1, 2, 0),
    lambda xp: xp.diagonal(C, axis1=-1, axis2=0), lambda xp: xp.vander(V, 4),
    lambda xp: xp.vander(V, 2, increasing=True), lambda xp: xp.vander(V, 0),
])
def test_matrices_are_those_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


def test_a_diagonal_number_may_be_traced():
    np.testing.assert_array_equal(hlotrace.jit(lambda k: jnp.eye(3, k=k))(1), np.eye(3, k=1))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.eye(-1), ValueError, "negative"), (lambda: jnp.tril(V), ValueError, "at least 2D"),
    (lambda: jnp.diag(np.zeros((2, 2, 2))), ValueError, "1d or 2d"),
    (lambda: jnp.vander(X), ValueError, "one-dimensional"), (lambda: jnp.diagonal(X, 0, 1, 1), ValueError, "same"),
    (lambda: jnp.diagonal(V), ValueError, "two dimensions"),
])
def test_what_is_no_matrix_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_derivatives_and_batching():
    np.testing.assert_array_equal(hlotrace.grad(lambda a: (jnp.diagonal(a, 1) * 2).sum())(X), np.eye(2, 3, 1) * 2)
    np.testing.assert_array_equal(hlotrace.grad(lambda a: jnp.tril(a).sum())(X), np.tri(2, 3))
    np.testing.assert_array_equal(hlotrace.vmap(jnp.diag)(X), [np.diag(row) for row in X])
