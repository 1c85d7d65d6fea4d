"""S2FFT: harmonics on the sphere, there and back."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import s2fft


@pytest.mark.parametrize("sampling", ["mw", "mwss", "dh", "gl"])
def test_there_and_back(sampling):
    with jax.enable_x64(True):
        size, m = jnp.arange(5)[:, None], jnp.arange(-4, 5)
        harmonics = jnp.where(abs(m) <= size, jnp.exp(1j * (size + m)), 0)
        back = s2fft.forward_jax(s2fft.inverse_jax(harmonics, 5, sampling=sampling), 5, sampling=sampling)
        np.testing.assert_allclose(back, harmonics, atol=1e-10)
