"""Matrices of which tests of sparse arrays are made, and how results are compared."""
import numpy as np

from hlotrace.experimental import sparse

RNG = np.random.default_rng(0)
D = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
CUBE = (RNG.integers(-3, 4, (2, 3, 4)) * RNG.integers(0, 2, (2, 3, 4))).astype(np.float32)
OTHER = RNG.integers(-3, 4, (2, 3, 4)).astype(np.float32)
WIDE = RNG.integers(-3, 4, (4, 5)).astype(np.float32)


def dense(x):
    return sparse.todense(x)


def same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def entries(mat):
    return mat.data.tolist(), mat.indices.tolist()
