"""vectorize, apply_along_axis, apply_over_axes."""
import numpy as np
import pytest
from equal import same_as_numpy

import hlotrace.numpy as jnp

C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


SAME = [
    lambda xp: xp.apply_along_axis(lambda a: a[:2] * a.sum(), 1, C), lambda xp: xp.apply_over_axes(xp.sum, C, (0, 2)),
]


@pytest.mark.parametrize("function", SAME)
def test_result_is_that_of_numpy(function):
    same_as_numpy(function(jnp), function(np))


def test_vectorize():
    x = jnp.arange(6.0).reshape(2, 3)
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    np.testing.assert_allclose(dot(x, x), [5, 50])
    np.testing.assert_allclose(dot(x[:, None], x), [[5, 14], [14, 50]])
    scaled = jnp.vectorize(lambda v, kind, scale: v * scale if kind == "mul" else v, excluded={1})
    np.testing.assert_allclose(scaled(x, "mul", jnp.array([[2.0], [3.0]])), np.asarray(x) * [[2], [3]])
    high, low = jnp.vectorize(lambda a, b: (jnp.maximum(a, b), jnp.minimum(a, b)))(x, 2.0)
    assert high.min() == 2 and low.max() == 2
    filled = jnp.vectorize(lambda v: v.at[0].set(9), signature="(n)->(n)")
    np.testing.assert_allclose(filled(np.ones(2)), [9, 1])      # the function sees Arrays
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n'"):
        dot(x, jnp.ones(4))
    with pytest.raises(ValueError, match="does not match core dimensions"):
        jnp.vectorize(lambda a: a, signature="(n)->()")(x)
    with pytest.raises(TypeError, match="wrong number of positional arguments"):
        dot(x)
    with pytest.raises(ValueError, match="not a valid gufunc signature"):
        jnp.vectorize(jnp.dot, signature="n,n->")
