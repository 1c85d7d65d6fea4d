"""Collectives over axes that are not of devices."""
import functools

import numpy as np
import pytest

import hlotrace as jax
from hlotrace import lax


@pytest.mark.parametrize("collective, plain", [(lax.psum, np.sum), (lax.pmax, np.max), (lax.pmin, np.min), (lax.pmean, np.mean)])
def test_an_axis_that_is_an_int_is_one_of_the_arrays(collective, plain):
    x = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    close(collective(x, -1), plain(x, -1))
    close(collective({"x": x}, (0, 2))["x"], plain(x, (0, 2)))
    close(jax.vmap(lambda x: collective(x, (1, "i")), axis_name="i")(x), [plain(x, (0, 2))] * 2)
    with pytest.raises(ValueError, match="axis 3"):
        collective(x, 3)
