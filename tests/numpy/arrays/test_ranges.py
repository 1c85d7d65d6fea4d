"""Ranges: values as NumPy's, dtypes and weak types as JAX's, derivatives, errors."""
import numpy as np
import pytest

import hlotrace
import hlotrace.numpy as jnp

V = np.array([3, 1, 2], np.float32)


@pytest.mark.parametrize("make, value, dtype", [
    (lambda: jnp.arange(3), [0, 1, 2], "int32"), (lambda: jnp.arange(10, 1, -3), [10, 7, 4], "int32"),
    (lambda: jnp.arange(0.5, 3), [0.5, 1.5, 2.5], "float32"), (lambda: jnp.arange(-3), [], "int32"),
    (lambda: jnp.arange(0, 1, 0.1), np.arange(0, 1, 0.1), "float32"),
    (lambda: jnp.arange(3, dtype=complex), [0, 1, 2], "complex64"),
    (lambda: jnp.arange(np.int8(3)), [0, 1, 2], "int8"),
    (lambda: jnp.arange(5, step=2), [0, 2, 4], "int32"),
    (lambda: jnp.arange(1, 600000, 2)[-2:], [599997, 599999], "int32"),
    (lambda: hlotrace.jit(lambda: jnp.arange(2, 8, 3) + jnp.arange(2))(), [2, 6], "int32"),
    (lambda: jnp.linspace(0, 10, 5, dtype=int), [0, 2, 5, 7, 10], "int32"),
    (lambda: jnp.linspace(1, 50, 50, dtype=int), np.arange(1, 51), "int32"),        # none is one too low
    (lambda: jnp.linspace(-7, 91, 99, dtype=int), np.arange(-7, 92), "int32"),
    (lambda: jnp.linspace(V, 2 * V, 3, axis=1), np.linspace(V, 2 * V, 3, axis=1), "float32"),
    (lambda: jnp.linspace(0, 1, 4, endpoint=False), [0, .25, .5, .75], "float32"),
    (lambda: jnp.linspace(0, 1, 1), [0], "float32"), (lambda: jnp.linspace(0, 1, 0), [], "float32"),
    (lambda: jnp.linspace(0, 1, 3, retstep=True)[1], 0.5, "float32"),
    (lambda: jnp.logspace(0, 2, 3, base=2), [1, 2, 4], "float32"),
    (lambda: jnp.geomspace(-1, -1000, 4), [-1, -10, -100, -1000], "float32"),
])
def test_values_and_dtypes(make, value, dtype):
    x = make()
    assert x.dtype == dtype and not x.weak_type
    np.testing.assert_allclose(x, value, rtol=1e-5)


def test_functions_of_positions_derivatives_and_batching():
    np.testing.assert_array_equal(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int), [[0, 1, 2], [10, 11, 12]])
    np.testing.assert_allclose(hlotrace.grad(lambda a: jnp.linspace(a, 2.0, 3).sum())(1.0), 1.5)
    np.testing.assert_array_equal(hlotrace.vmap(lambda a: jnp.array([a, 1]))(V), [[v, 1] for v in V])


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.arange(None), TypeError, "None"), (lambda: jnp.arange(V), ValueError, "scalars"),
    (lambda: jnp.arange(3, dtype=bool), TypeError, "bool"), (lambda: jnp.arange(0, 5, 0), ZeroDivisionError, "step is 0"),
    (lambda: jnp.arange(1j), ValueError, "complex"), (lambda: jnp.linspace(0, 1, -1), ValueError, "non-negative"),
    (lambda: hlotrace.jit(jnp.arange)(3), hlotrace.errors.ConcretizationTypeError, "arange"),
])
def test_what_is_no_range_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function", [jnp.linspace, jnp.logspace, jnp.geomspace])
def test_a_negative_number_of_values(function):
    with pytest.raises(ValueError, match="Number of samples, -1, must be non-negative"):
        function(1, 2, -1)
