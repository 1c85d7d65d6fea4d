"""Sorting and searching: order, stability, NaN, derivatives."""
import ml_dtypes
import numpy as np
import pytest
from equal import same

import hlotrace as jax
from hlotrace import lax, numpy as jnp

f32 = np.float32
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
NANS = np.array([[np.nan, 1, -np.inf, 0], [2, np.nan, np.nan, 5], [np.nan] * 4], f32)
U = np.array([3, 1, 2, 1, 3])


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("sort", {"axis": None}, X), ("sort", {"axis": 0}, NANS), ("argsort", {"axis": 1, "stable": True}, U[None] % 2),
    ("sort", {}, np.array([1 + 2j, 1 - 1j, 0 + 5j])), ("sort", {"axis": 0}, np.zeros((0, 2), f32)),
    ("sort_complex", {}, X), ("sort_complex", {}, U),
    ("sort_complex", {}, np.array([[1 + 2j, 1 - 1j, 0 + 5j], [-0.0, 1j, -1j]])), ("sort_complex", {}, np.zeros((2, 0), f32)),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


@pytest.mark.parametrize("x, kth, axis", [
    (X, 1, 0), (X, 2, -1), (X.astype(ml_dtypes.bfloat16), -1, 1), (U, 3, 0), (X > 0, 1, -2), (NANS, 1, 1),
    (np.zeros((3, 0), f32), 1, 0)])
def test_argpartition_leaves_the_smaller_before_and_the_larger_after(x, kth, axis):
    """NaN counts as the largest, as in a sort."""
    indices = np.asarray(jnp.argpartition(x, kth, axis))
    assert (np.sort(indices, axis) == np.arange(x.shape[axis]).reshape(*[-1], *[1] * (x.ndim - 1 - axis % x.ndim))).all()
    wide = x.astype(f32)
    found, ordered = np.take_along_axis(wide, indices, axis), np.sort(wide, axis)
    same(np.take(found, kth, axis), np.take(ordered, kth, axis))
    cut = kth % x.shape[axis]
    for part in (slice(0, cut), slice(cut, None)):
        take = (slice(None),) * (axis % x.ndim) + (part,)
        same(np.sort(found[take], axis), ordered[take])


@pytest.mark.parametrize("kth, values, places", [
    (2, [1, 2, 3, 6, 5, 4], [1, 4, 0, 2, 3, 5]), (0, [1, 6, 5, 4, 3, 2], [1, 0, 2, 3, 4, 5]),
    (-1, [1, 2, 3, 4, 5, 6], [1, 4, 0, 3, 2, 5])])
def test_partitions_ascend_up_to_kth_and_then_values_descend_and_places_keep_their_order(kth, values, places):
    x = np.array([3, 1, 5, 4, 2, 6])
    same(jnp.partition(x, kth), np.array(values, np.int32))
    same(jnp.argpartition(x, kth), np.array(places, np.int32))


def test_sort_of_several_keys_is_stable_and_ordered():
    keys = f32([np.nan, 0.0, -0.0, -np.inf, 1, -np.nan])
    out, places = lax.sort_key_val(keys, np.arange(6))
    same(places, [3, 1, 2, 4, 0, 5])        # equal zeros and equal nans keep their order
    assert np.signbit(np.asarray(out)[2]) and not np.signbit(np.asarray(out)[1])
    first, second = lax.sort((np.array([1, 0, 1, 0]), f32([4, 3, 2, 1])), num_keys=2)
    same(first, [0, 0, 1, 1])
    same(second, [1, 3, 2, 4])
    same(jnp.argsort(np.array([1, 0, 1, 0]), descending=True), [0, 2, 1, 3])
    same(jnp.lexsort((U, U % 2)), np.lexsort((U, U % 2)))
    assert np.asarray(jnp.partition(U, 2))[2] == np.sort(U)[2]


@pytest.mark.parametrize("method", ["scan", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method, side):
    a, v = f32([-1, 0, 0, 2, 7]), f32([[-2, -0.0, 0], [1, 7, np.nan]])
    same(jnp.searchsorted(a, v, side, method=method), np.searchsorted(a, v, side))
    same(jax.vmap(lambda row: jnp.searchsorted(a, row, side, method=method))(v), np.searchsorted(a, v, side))


def test_digitize_and_searchsorted_with_sorter():
    a = f32([3, 1, 2])
    same(jnp.searchsorted(a, 2.5, sorter=np.argsort(a)), 2)
    for right in (False, True):
        same(jnp.digitize(X, f32([-0.5, 0.1, 1]), right), np.digitize(X, f32([-0.5, 0.1, 1]), right))
        same(jnp.digitize(X, f32([1, 0.1, -0.5]), right), np.digitize(X, f32([1, 0.1, -0.5]), right))


def test_greatest_and_least():
    for x, axis in (X, -1), ((X * 10).astype(np.int8), 0), ((X * 10 + 20).astype(np.uint8), 1), (U, 0):
        values, places = jnp.top_k(x, 2, axis=axis)
        least, below = jnp.top_k(x, 2, axis=axis, mode="smallest")
        rising = np.sort(x, axis)
        same([values, least], [np.flip(np.take(rising, [-2, -1], axis), axis), np.take(rising, [0, 1], axis)])
        for found, at in ((values, places), (least, below)):
            assert at.dtype == "int32" and found.dtype == jnp.asarray(x).dtype
            same(np.take_along_axis(x, np.asarray(at), axis), found)
    same([*jnp.top_k(np.array([True, False, True]), 3, mode="smallest")],
         [np.array([False, True, True]), np.array([1, 0, 2])])
    same(jnp.top_k(NANS[0], 3, mode="smallest")[0], np.array([-np.inf, 0, 1], f32))
    for dtype in ("float64", "float32", "bfloat16", "float16", "float8_e5m2"):  # NaN of both signs after all
        mixed = jnp.asarray(
            np.array([1, np.nan, -np.inf, 0, -np.nan, np.inf, -0.0], "float32").astype(jnp.dtype(dtype))
        )
        assert jnp.top_k(mixed, 7, mode="smallest")[1].tolist() == [2, 6, 3, 0, 5, 1, 4]
    low, high = jnp.minmax(X, (0, 2), keepdims=True, initial=(0.1, 2), where=X < 1)
    same([low, high], [np.min(X, (0, 2), None, True, 0.1, X < 1), np.max(X, (0, 2), None, True, 2, X < 1)])


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4"])
def test_integers_of_a_few_bits_are_ordered_and_joined(dtype):
    """XLA's own ways with two bits order the bytes, or end the process."""
    x = jnp.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0]]).astype(dtype)
    wide = np.asarray(x).astype("int32")
    for f, g in (
        (jnp.sort, np.sort),
        (lambda x: jnp.argmax(x, 1), lambda x: np.argmax(x, 1)),
        (jnp.unique, np.unique),
        (lambda x: jnp.concatenate([x, x[:, 1:]], 1), lambda x: np.concatenate([x, x[:, 1:]], 1)),
        (lambda x: jnp.top_k(x, 3)[0], lambda x: -np.sort(-x)[:, :3]),
    ):
        found = f(x)
        assert found.dtype == x.dtype or found.dtype == "int32"
        np.testing.assert_array_equal(np.asarray(found).astype("int32"), g(wide))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.searchsorted(X, 1.0), ValueError, "1-dimensional"),
    (lambda: jnp.top_k(X, 2, mode="least"), ValueError, "'smallest'"), (lambda: jnp.top_k(X * 1j, 2), ValueError, "complex"),
    (lambda: jnp.top_k(X, 5), ValueError, "larger"), (lambda: jnp.minmax(X[:0]), ValueError, "minmax"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
