"""Modes, ranks and errors of means: SciPy's values, ties, NaN, axes, errors."""
import numpy as np
import pytest
from equal import same
from scipy import stats as theirs

import hlotrace as jax
import hlotrace.scipy.stats as ours

f32 = np.float32
TIES = np.array([[3, 1, 2, 1], [5, 5, 5, 0], [4, 3, 2, 1]], f32)
NANS = np.array([[1, np.nan, 3, 1], [2, 2, 7, 5]], f32)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_ranks(method, axis):
    for x in (TIES, TIES.astype(int), np.repeat(TIES, 3, 1)):
        same(ours.rankdata(x, method, axis=axis), theirs.rankdata(x, method, axis=axis).astype(f32).reshape(
            x.shape if axis is not None else -1))


def test_ranks_beside_what_is_not_a_number():
    same(ours.rankdata(NANS, axis=1), theirs.rankdata(NANS, axis=1).astype(f32))
    assert ours.rankdata(np.zeros((0,), f32)).shape == (0,) and ours.rankdata(TIES).dtype == f32


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_commonest_value(axis, keepdims):
    for x in (TIES, TIES.astype(np.int32)):
        got, want = ours.mode(x, axis, keepdims=keepdims), theirs.mode(x, axis, keepdims=keepdims)
        same(tuple(got), (want.mode, want.count))
        assert got.mode.dtype == x.dtype
    assert int(ours.mode(np.array([np.nan, 1, np.nan], f32)).count) == 2
    first = jax.grad(lambda x: ours.mode(x).mode)(np.array([3, 1, 2, 1, 3], f32))
    same(first, np.array([0, 1, 0, 0, 0], f32))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_the_error_of_a_mean(axis, ddof):
    same(ours.sem(TIES, axis, ddof), np.asarray(theirs.sem(TIES.astype(float), axis, ddof)).astype(f32))
    omitted = theirs.sem(NANS.astype(float), axis=1, ddof=0, nan_policy="omit")
    same(ours.sem(NANS, 1, 0, "omit"), np.asarray(omitted).astype(f32))
    assert ours.sem(TIES + 1j, axis, ddof).dtype == "complex64"


def test_under_jit_and_mapped():
    same(jax.jit(ours.rankdata)(TIES), ours.rankdata(TIES))
    same(jax.vmap(ours.rankdata)(TIES), ours.rankdata(TIES, axis=1))


@pytest.mark.parametrize("call, error, words", [
    (lambda: ours.rankdata(TIES, "mean"), ValueError, "'average', 'min', 'max', 'dense'"),
    (lambda: ours.rankdata(TIES, nan_policy="omit"), NotImplementedError, r"stats.rankdata.*nan_policy='omit' is not supported: 'propagate' is"),
    (lambda: ours.mode(TIES, nan_policy="omit"), NotImplementedError, r"stats.mode.*nan_policy='omit' is not supported"),
    (lambda: ours.sem(TIES, nan_policy="raise"), NotImplementedError, "'propagate' and 'omit' are"),
    (lambda: ours.sem(TIES, nan_policy="never"), ValueError, "nan_policy"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
