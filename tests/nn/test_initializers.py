"""Initializers: the values that JAX draws, orthogonality, errors."""
import numpy as np
import pytest

import hlotrace
from hlotrace import nn

INITIALIZERS = [  # initializer, shape, JAX's first values for PRNGKey(0)
    (nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal"), (3, 4), [0.955632, 1.1254908, -0.27086318]),
    (nn.initializers.variance_scaling(1.0, "fan_geo_avg", "uniform"), (2, 3, 4), [0.5891629, 0.6298465, -0.22071682]),
    (nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal", dtype="complex64"), (3, 4),
     [0.8013652 + 0.03675104j, 0.26673716 + 0.035215266j, -0.26532578 - 0.14897642j]),
    (nn.initializers.variance_scaling(1.0, "fan_in", "normal", dtype="complex64"), (3, 4), [0.40988708 - 0.99712837j]),
    (nn.initializers.variance_scaling(1.0, "fan_in", "uniform", dtype="complex64"), (3, 4),
     [0.74857473 + 0.03433004j, 0.3456918 + 0.045639046j]),
    (nn.initializers.truncated_normal(), (4,), [0.014559592, 0.017147487, -0.004126753]),
    (nn.initializers.normal(), (4,), [0.016226422, 0.020252647, -0.004335944]),
    (nn.initializers.uniform(), (4,), [0.00947667, 0.009785798, 0.0033229147]),
    (nn.initializers.he_normal(batch_axis=0), (5, 4, 3), [1.1704054, 1.3784391, -0.3317383]),
    (nn.initializers.he_normal(in_axis=0), (4,), [2.3408108, 2.7568781, -0.6634766]),
    (nn.initializers.orthogonal(), (3, 2), [0.96083665, 0.18604839, -0.25675002]),
    (nn.initializers.orthogonal(column_axis=0), (2, 4), [0.9220003, -0.24637239, 0.100056484]),
    (nn.initializers.orthogonal(), (5, 7), [0.3992859, -0.23920344, 0.53632027]),
    (nn.initializers.orthogonal(dtype="complex64"), (4, 4),
     [0.25247407 - 0.6141913j, -0.19686839 - 0.54138875j]),
    (nn.initializers.constant(3), (4,), [3, 3]), (nn.initializers.zeros, (3,), [0, 0]), (nn.initializers.ones, (3,), [1]),
]


@pytest.mark.parametrize("init, shape, values", INITIALIZERS)
def test_initializers_draw_what_jax_draws(init, shape, values):
    got = init(hlotrace.random.PRNGKey(0), shape)
    assert got.shape == shape
    np.testing.assert_array_equal(np.ravel(got)[:len(values)], np.array(values, got.dtype))


def test_orthogonal_matrices_are_orthogonal():
    key = hlotrace.random.PRNGKey(1)
    q = np.asarray(nn.initializers.orthogonal(2.0)(key, (3, 5, 4)))
    np.testing.assert_allclose(np.einsum("abi,abj->ij", q, q), 4 * np.eye(4), atol=1e-5)
    w = np.asarray(nn.initializers.delta_orthogonal()(key, (3, 3, 2, 4)))
    np.testing.assert_allclose(w[1, 1] @ w[1, 1].T, np.eye(2), atol=1e-6)
    assert np.count_nonzero(w) == 8
    assert nn.initializers.orthogonal()(key, (0, 3)).shape == (0, 3)


def test_initializers_check_their_arguments():
    key, inits = hlotrace.random.PRNGKey(0), nn.initializers
    for init, shape, words in [(inits.variance_scaling(1.0, "x", "normal"), (2, 3), "invalid mode"),
                               (inits.variance_scaling(1.0, "fan_in", "x"), (2, 3), "invalid distribution"),
                               (inits.lecun_normal(), (3,), "1-dimensional weights"),
                               (inits.orthogonal(), (3,), "at least a 2D shape"),
                               (inits.delta_orthogonal(), (3, 3, 2), "`fan_in` must be less")]:
        with pytest.raises(ValueError, match=words):
            init(key, shape)


@pytest.mark.parametrize("normal, uniform, variance", [
    ("glorot_normal", "glorot_uniform", 1 / 300), ("xavier_normal", "xavier_uniform", 1 / 300),
    ("lecun_normal", "lecun_uniform", 1 / 200), ("he_normal", "he_uniform", 2 / 200),
    ("kaiming_normal", "kaiming_uniform", 2 / 200)])
def test_scaled_initializers_have_the_variance_that_they_name(normal, uniform, variance):
    """In 80 000 draws it is known to about half a percent; uniform ones fill [-b, b), where b^2 is three times it."""
    key, shape = hlotrace.random.key(3), (200, 400)
    normal, uniform = (np.asarray(getattr(nn.initializers, name)()(key, shape), np.float64) for name in (normal, uniform))
    for draws in (normal, uniform):
        assert abs(draws.mean()) < 4 * np.sqrt(variance / draws.size)
        np.testing.assert_allclose(draws.var(), variance, rtol=0.02)
    bound = np.sqrt(3 * variance)
    assert 0.999 * bound < np.abs(uniform).max() <= bound * (1 + 1e-6)
    assert np.abs(normal).max() < 2 * np.sqrt(variance) / 0.8796 * (1 + 1e-6)      # truncated at two standard deviations
