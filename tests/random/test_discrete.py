"""Discrete distributions and shuffles: the values that JAX 0.10.2 and 0.12.0.1 give, recorded here; moments, errors."""
import numpy as np
import pytest
from draws import KEY, A, L, P, has_moments, is_recorded

import hlotrace
from hlotrace import random

RECORDED = [
    (lambda: random.randint(KEY, (5,), 0, 10), "int32",
     [9, 2, 0, 7, 2]),
    (lambda: random.randint(KEY, (5,), -2.7, 10.9), "int32",
     [5, 0, -2, -1, 4]),
    (lambda: random.randint(KEY, (4,), 0, 300, "uint8"), "uint8",
     [31, 102, 124, 237]),
    (lambda: random.randint(KEY, (4,), -128, 128, "int8"), "int8",
     [-97, -26, -4, 109]),
    (lambda: random.randint(KEY, (4,), 0, np.uint32(2**32 - 1), "uint32"), "uint32",
     [2899676959, 3548400998, 1692160380, 1822441453]),
    (lambda: random.randint(KEY, (3,), -2**31, 2**31 - 1), "int32",
     [752193311, 1400917350, -455323268]),
    (lambda: random.randint(KEY, (3,), 5, 2), "int32",
     [5, 5, 5]),
    (lambda: random.bernoulli(KEY, 0.3, (6,)), "bool",
     [False, False, False, False, False, False]),
    (lambda: random.bernoulli(KEY, P, mode="high"), "bool",
     [False, False, False, False]),
    (lambda: random.rademacher(KEY, (5,)), "int32",
     [-1, -1, 1, 1, -1]),
    (lambda: random.permutation(KEY, 6), "int32",
     [4, 2, 3, 5, 0, 1]),
    (lambda: random.permutation(KEY, 2000)[:4], "int32",
     [1785, 5, 1002, 442]),
    (lambda: random.permutation(KEY, A)[:, 0], "float32",
     [6.0, 9.0, 0.0, 3.0]),
    (lambda: random.permutation(KEY, A, 1, True), "float32",
     [[2.0, 0.0, 1.0], [4.0, 3.0, 5.0], [7.0, 6.0, 8.0], [10.0, 9.0, 11.0]]),
    (lambda: random.categorical(KEY, L, shape=(6,)), "int32",
     [1, 3, 3, 2, 3, 0]),
    (lambda: random.categorical(KEY, np.tile(L, (2, 1)), axis=0), "int32",
     [1, 0, 1, 0]),
    (lambda: random.categorical(KEY, np.tile(L, (2, 1)), shape=(3, 2), replace=False), "int32",
     [[1, 3], [3, 1], [0, 2]]),
    (lambda: random.categorical(KEY, L, shape=(3,), mode="high"), "int32",
     [2, 3, 1]),
    (lambda: random.choice(KEY, 10, (4,)), "int32",
     [9, 2, 0, 7]),
    (lambda: random.choice(KEY, A, (2,), axis=1)[0], "float32",
     [1.0, 2.0]),
    (lambda: random.choice(KEY, A[:, 0], (2, 2), replace=False), "float32",
     [[6.0, 9.0], [0.0, 3.0]]),
    (lambda: random.choice(KEY, 9, (4,), replace=False), "int32",
     [4, 2, 3, 5]),
    (lambda: random.choice(KEY, 4, (6,), p=P), "int32",
     [2, 0, 3, 2, 1, 2]),
    (lambda: random.choice(KEY, 4, (3,), replace=False, p=P), "int32",
     [1, 3, 0]),
]


@pytest.mark.parametrize("call, dtype, value", RECORDED)
def test_values_are_those_of_jax(call, dtype, value):
    is_recorded(call(), dtype, value)


def test_choice_by_probabilities_has_the_default_int():
    for replace in True, False:
        with hlotrace.enable_x64():
            assert random.choice(KEY, 4, (3,), replace, P).dtype == "int64"
        assert random.choice(KEY, 4, (3,), replace, P).dtype == "int32"


@pytest.mark.parametrize("call, error, message", [
    (lambda: random.randint(KEY, 2, 0, 5, "float32"), TypeError, "integer dtypes"),
    (lambda: random.randint(KEY, 2, 0, 2**40), OverflowError, "too large"),
    (lambda: random.bernoulli(KEY, 1), TypeError, "fl"),
    (lambda: random.bernoulli(KEY, 0.5, mode="a"), ValueError, "'high' or 'low'"),
    (lambda: random.permutation(KEY, 5.0), TypeError, "at least 1-dim"),
    (lambda: random.permutation(KEY, A, 2), ValueError, ""),
    (lambda: random.categorical(KEY, L, shape=(5,), replace=False), ValueError, "cannot exceed number of categories"),
    (lambda: random.categorical(KEY, [0.1]), TypeError, "categorical requires"),
    (lambda: random.choice(KEY, 0), ValueError, "greater than 0"),
    (lambda: random.choice(KEY, 4, p=P[:3]), ValueError, "1D"),
    (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "larger sample"),
])
def test_draws_refuse(call, error, message):
    with pytest.raises(error, match=message or None):
        call()


@pytest.mark.parametrize("draw, mean, variance", [
    (lambda k, n: random.bernoulli(k, 0.3, n), 0.3, 0.21), (lambda k, n: random.randint(k, n, 0, 11), 5, 10),
    (random.rademacher, 0, 1), (lambda k, n: random.choice(k, 4, n, p=P), 2, 1),
    (lambda k, n: random.categorical(k, L, shape=n), 2, 1),
])
def test_moments(draw, mean, variance):
    has_moments(draw, mean, variance)


def test_shuffles_and_draws_without_replacement_repeat_nothing():
    assert sorted(np.asarray(random.permutation(KEY, 1000))) == list(range(1000))
    for p in (None, np.ones(50) / 50):
        assert len(set(np.asarray(random.choice(KEY, 50, (40,), replace=False, p=p)).tolist())) == 40


def test_choice_takes_a_sequence_for_a_shape():
    with pytest.raises(TypeError, match=r"shape must be a sequence, as \(5,\)"):
        random.choice(KEY, 3, 5)
