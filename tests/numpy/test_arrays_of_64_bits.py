"""Arrays made while jax_enable_x64 was set, used after: they keep their dtype beside constants."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

with jax.enable_x64(True):
    X = jnp.array([2.0, 1.0])
    Z = X * 1j
    M = jnp.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(("f", "want"), [
    (jnp.sort, [1.0, 2.0]),
    (jnp.diag, [[2.0, 0.0], [0.0, 1.0]]),
    (jnp.mean, 1.5),
    (jnp.var, 0.25),
    (lambda x: jnp.abs(Z), [2.0, 1.0]),
    (jax.grad(lambda x: (x * x).sum()), [4.0, 2.0]),
    (jax.jacfwd(lambda x: x * x), [[4.0, 0.0], [0.0, 2.0]]),
    (lambda x: jnp.triu(M), [[2.0, 1.0], [0.0, 3.0]]),
    (lambda x: jnp.linalg.solve(M, x), [1.0, 0.0]),
    (jnp.zeros_like, [0.0, 0.0]),
], ids=["sort", "diag", "mean", "var", "abs", "grad", "jacfwd", "triu", "solve", "zeros_like"])
def test_their_dtype_stays(f, want):
    with jax.enable_x64(False):
        found = f(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(np.asarray(found), want)
