"""jax-finufft: a compiled library called through the FFI, with rules of its own for derivatives and batches."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_grads
from jax_finufft import nufft1, nufft2

NUMBERS = np.random.default_rng(0)
POINTS = NUMBERS.uniform(0, 2 * np.pi, 20).astype(np.float32)
COEFFICIENTS = (NUMBERS.normal(size=20) + 1j * NUMBERS.normal(size=20)).astype(np.complex64)
WAVES = np.exp(1j * np.arange(-4, 4)[:, None] * POINTS)


def test_sums_of_waves():
    found = nufft1(8, COEFFICIENTS, POINTS, eps=1e-5)
    np.testing.assert_allclose(found, WAVES @ COEFFICIENTS, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(nufft2(found, POINTS, iflag=1), WAVES.T @ found, rtol=1e-3, atol=1e-3)


def test_derivatives_and_batches():
    check_grads(
        lambda x: jnp.abs(nufft1(8, COEFFICIENTS, x)), (jnp.asarray(POINTS),), 1, rtol=0.05, atol=0.05
    )
    both = jax.jit(jax.vmap(lambda c: nufft1(8, c, POINTS)))(jnp.stack([COEFFICIENTS, 2 * COEFFICIENTS]))
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-5)
