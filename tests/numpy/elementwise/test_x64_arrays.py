"""Arrays made while 64-bit types were on, used when they are off: beside others they give way, as in JAX."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

with jax.enable_x64():
    X, N = jnp.arange(3.0) + 1, jnp.arange(3)


@pytest.mark.parametrize("function, dtype", [
    (lambda: X + 1, "float32"), (lambda: 2 / X, "float32"), (lambda: N + 1, "int32"), (lambda: N // 2, "int32"),
    (lambda: X + jnp.ones(3), "float32"), (lambda: X + X, "float64"), (lambda: X == 1, "bool"), (lambda: 2 > X, "bool"),
    (lambda: jnp.where(X > 1, X, 0), "float32"), (lambda: jnp.maximum(X, 0), "float32"), (lambda: -X, "float64"),
    (lambda: jnp.ones(3)[N], "float32"), (lambda: (X + 1j) * 2, "complex64"), (lambda: X ** 2, "float64")])
def test_numbers_beside_64_bit_arrays(function, dtype):
    for found in (function(), jax.jit(function)()):
        assert found.dtype == dtype
    with jax.enable_x64():
        np.testing.assert_allclose(found, function(), rtol=1e-6)
