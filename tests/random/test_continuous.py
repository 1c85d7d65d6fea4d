"""Continuous distributions: the values that JAX 0.10.2 and 0.12.0.1 give, recorded here; moments, errors."""
import numpy as np
import pytest
from draws import KEY, A, P, has_moments, is_recorded

import hlotrace
from hlotrace import random

RECORDED = [
    (lambda: random.bits(KEY, (4,), "uint8"), "uint8",
     [11, 0, 170, 48]),
    (lambda: random.bits(KEY, (4,), "uint4"), "uint8",
     [11, 0, 170, 48]),
    (lambda: random.bits(KEY, (4,), "uint16"), "uint16",
     [10507, 32256, 10666, 17712]),
    (lambda: random.bits(KEY, (2, 2)), "uint32",
     [[2895194379, 4185947648], [1300703658, 1906787632]]),
    (lambda: random.uniform(KEY, (3,)), "float32",
     [0.6740899, 0.9746169, 0.30284357]),
    (lambda: random.uniform(KEY, (3,), "float16"), "float16",
     [0.16015625, 0.4921875, 0.16210938]),
    (lambda: random.uniform(KEY, (3,), "bfloat16"), "bfloat16",
     [0.0390625, 0.0, 0.6640625]),
    (lambda: random.uniform(KEY, (3,), minval=-3, maxval=P[:3]), "float32",
     [-0.91032135, 0.11877408, -2.0006163]),
    (lambda: random.normal(KEY, (3,)), "float32",
     [0.45123515, 1.9534509, -0.51623946]),
    (lambda: random.normal(KEY, (2,), "bfloat16"), "bfloat16",
     [-1.734375, -2.890625]),
    (lambda: random.normal(KEY, (2,), "complex64"), "complex64",
     [(0.7877503+0.3211209j), (0.10014845+0.66408837j)]),
    (lambda: random.truncated_normal(KEY, -1, A[0] + 1), "float32",
     [0.30246016, 1.7111288, -0.21972597]),
    (lambda: random.exponential(KEY, (3,)), "float32",
     [1.1211338, 3.673671, 0.36074546]),
    (lambda: random.laplace(KEY, (3,)), "float32",
     [-0.42798662, -2.980525, 0.5013916]),
    (lambda: random.logistic(KEY, (3,)), "float32",
     [0.726742, 3.6479602, -0.8337934]),
    (lambda: random.cauchy(KEY, (3,)), "float32",
     [0.6088751, 12.513639, -0.71298087]),
    (lambda: random.gumbel(KEY, (3,)), "float32",
     [0.9304105, 3.6608431, -0.17776018]),
    (lambda: random.gumbel(KEY, (3,), mode="high"), "float32",
     [-0.1143405, -1.3011914, 1.0195823]),
]


@pytest.mark.parametrize("call, dtype, value", RECORDED)
def test_values_are_those_of_jax(call, dtype, value):
    is_recorded(call(), dtype, value)


@pytest.mark.parametrize("call, error, message", [
    (lambda: random.uniform(None), TypeError, "make a key with random.key"),
    (lambda: random.uniform(3), TypeError, r"random.key\(3\)"), (lambda: random.uniform(np.zeros(2)), TypeError, "float32"),
    (lambda: random.uniform(np.zeros(3, np.uint32)), TypeError, r"shape \(..., 2\)"),
    (lambda: random.uniform(random.split(KEY)), ValueError, "use vmap for batching"),
    (lambda: random.bits(KEY, 2, "int8"), ValueError, "uns"),
    (lambda: random.uniform(KEY, (2,), "int32"), ValueError, "must be a float dtype"),
    (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), ValueError, "broadcast"),
    (lambda: random.uniform(KEY, (-2,)), ValueError, "nonnegative"),
    (lambda: random.uniform(KEY, "a"), TypeError, "shape"),
])
def test_draws_refuse(call, error, message):
    with pytest.raises(error, match=message or None):
        call()


def test_uniform_of_key_0_to_the_bit():
    for key in (random.PRNGKey(0), random.key(0), np.array([0, 0], np.uint32)):
        np.testing.assert_array_equal(random.uniform(key, (3,)), np.array([0.947667, 0.9785799, 0.33229148], np.float32))


@pytest.mark.parametrize("shape, low, expected", [((), (1,), (1,)), ((1,), (1, 1), (1, 1)), ((1, 1), (1,), (1, 1))])
def test_bounds_of_one_element_may_have_more_dimensions(shape, low, expected):
    drawn = random.uniform(KEY, shape, minval=np.zeros(low), maxval=np.ones(1))
    assert drawn.shape == expected and drawn.item() == random.uniform(KEY, (1,)).item()


def test_derivative_in_a_bound():
    np.testing.assert_allclose(hlotrace.grad(lambda a: random.uniform(KEY, (3,), maxval=a).sum())(2.0),
                               np.sum(random.uniform(KEY, (3,))), 1e-6)


def test_equal_draws_share_a_function():
    text = hlotrace.jit(lambda k: [random.uniform(s, (3,)) for s in random.split(k, 4)]).lower(KEY).as_text()
    assert text.count("func.func private @random_bits") == 1 and text.count("call @random_bits") == 4


@pytest.mark.parametrize("draw, mean, variance", [
    (random.uniform, 1 / 2, 1 / 12), (random.normal, 0, 1), (random.exponential, 1, 1), (random.laplace, 0, 2),
    (random.logistic, 0, np.pi**2 / 3), (random.gumbel, np.euler_gamma, np.pi**2 / 6),
    (lambda k, n: random.truncated_normal(k, -1, 1, n), 0, 0.2911),
])
def test_moments(draw, mean, variance):
    has_moments(draw, mean, variance)
