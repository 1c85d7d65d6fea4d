"""What tests of random numbers share: a key, weights, the comparison with values that JAX gave, moments."""
import numpy as np

from hlotrace import random

KEY = random.key(7)
P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
MEAN, COV = P[:2], np.array([[2, 1], [1, 2]], np.float32)
L, A = np.log(P), np.arange(12, dtype=np.float32).reshape(4, 3)


def words(x):
    return random.key_data(x) if isinstance(x.dtype, type(KEY.dtype)) else x


def is_recorded(got, dtype, value):
    got = words(got)
    assert got.dtype.name == dtype
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, value)
    else:
        np.testing.assert_allclose(
            np.asarray(got).astype(np.float32 if got.dtype.kind != "c" else np.complex64), value,
                                   2e-6)


def has_moments(draw, mean, variance):
    x = np.asarray(draw(KEY, (40000,)), np.float64)
    assert abs(x.mean() - mean) < 4 * np.sqrt(variance / x.size)
    assert abs(x.var() / variance - 1) < 0.05
