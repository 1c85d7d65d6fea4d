"""lax slices, gather and scatter: values, and what they refuse."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
I2, I3, COLUMN = np.array([1, -1]), np.array([2, 0, 1]), np.array([[0], [2]])


ERRORS = [
    (lambda x: jax.jit(lambda x, i: x[i:i + 2])(x, 1), IndexError, "lax.dynamic_slice"),
    (lambda x: lax.dynamic_slice(x, (0, 0, 0), (1, 1, 9)), TypeError, "9 for axis 2 of size 5"),
    (lambda x: lax.dynamic_slice(x, (0, 0), (1, 1)), ValueError, "must match number of operand dimensions"),
    (lambda x: lax.dynamic_slice(x, (0, 0, 0.5), (1, 1, 1)), TypeError, "must be integers"),
    (lambda x: lax.dynamic_update_slice(x, jnp.ones((4, 4, 4)), (0, 0, 0)), TypeError, "axis 0"),
    (lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 1, 1), int), (0, 0, 0)), TypeError,
     "float32, int32"),
    (lambda x: lax.index_in_dim(x, 3), IndexError, "out of bounds for axis 0 with size 3"),
    (lambda x: lax.gather(x, jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4, 5)),
     TypeError, "offset_dims"),
    (lambda x: lax.scatter(x, jnp.zeros((2, 1), int), jnp.ones((3, 4, 5)),
                           _ROWS._replace(update_window_dims=(1, 2))),
     TypeError, "must equal the axes but the last of the indices"),
]


@pytest.mark.parametrize("function, error, words", ERRORS)
def test_errors(function, error, words):
    with pytest.raises(error, match=words):
        function(jnp.array(X))


def test_lax_slices():
    for got, want in [
        (lax.slice(X, (0, 1, 1), (2, 4, 5), (1, 2, 3)), X[:2, 1:4:2, 1::3]),
        (lax.slice_in_dim(X, -3, None, 2, 1), X[:, 1::2]),
        (lax.index_in_dim(X, -1, 1, False), X[:, -1]),
        (lax.dynamic_slice_in_dim(X, jnp.int32(1), 2, 1), X[:, 1:3]),
        (lax.dynamic_index_in_dim(X, -1, 2), X[..., -1:]),
        (lax.dynamic_slice(X, jnp.array([1, 0, 2]), (1, 1, 1)), X[1:2, :1, 2:3]),
        (lax.dynamic_slice(X, (np.int8(1), 0, jnp.uint8(2)), (1, 1, 1)), X[1:2, :1, 2:3]),
        (lax.dynamic_update_index_in_dim(X, X[:, 0], 3, 1), np.concatenate([X[:, :3], X[:, :1]], 1)),
        (lax.dynamic_update_slice_in_dim(X, X[:2], -2, 0), np.concatenate([X[:1], X[:2]])),
        (lax.index_take(X, (I3, I3), (0, 1)), X[I3, I3]),
        (lax.gather(X, jnp.array([[1, 2], [0, 0]]), lax.GatherDimensionNumbers((1,), (0, 1), (0, 1)),
                    (1, 1, 5)),
         X[[1, 0], [2, 0]]),
        (lax.scatter_sub(jnp.ones(3), jnp.array([[0], [0]]), jnp.ones(2),
                         lax.ScatterDimensionNumbers((), (0,), (0,))),
         [-1, 1, 1]),
    ]:
        np.testing.assert_array_equal(got, want)
