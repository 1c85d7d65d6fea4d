"""Reductions, running reductions, sorting, windows and sets: edge cases beyond the op table."""
import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
from hlotrace import lax
from hlotrace import numpy as jnp

f32 = np.float32
bf16 = ml_dtypes.bfloat16
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
NANS = np.array([[np.nan, 1, -np.inf, 0], [2, np.nan, np.nan, 5], [np.nan] * 4], f32)
U = np.array([3, 1, 2, 1, 3])


def equal(ours, theirs, dtype=None, tolerance=1e-5):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if dtype is not None:
        assert ours.dtype == dtype
    np.testing.assert_allclose(ours.astype(np.complex128), theirs.astype(np.complex128), tolerance, tolerance)


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("sum", {"axis": (0, 2), "keepdims": True}, X), ("sum", {"axis": ()}, X), ("prod", {"axis": -1}, X),
    ("sum", {"axis": 1, "where": X > 0, "initial": 2.5}, X), ("max", {"axis": 1, "initial": 0.3}, X),
    ("min", {"where": X > 0, "initial": 9.0}, X), ("max", {}, NANS), ("sum", {"axis": 0}, X + 1j * X[::-1]),
    ("max", {"axis": 0}, np.zeros((2, 0), f32)), ("sum", {"axis": 0}, np.zeros((0, 3), f32)),
    ("prod", {"axis": 1}, np.zeros((3, 0), f32)), ("all", {"axis": 0}, NANS), ("any", {"axis": 1}, X > 1),
    ("mean", {"axis": 1, "where": X > -1}, X), ("var", {"ddof": 1, "axis": (0, 1)}, X),
    ("std", {"axis": 2, "keepdims": True}, X + 1j * X[:, ::-1]), ("median", {"axis": (0, 1)}, X), ("median", {}, NANS),
    ("ptp", {"axis": 1}, X), ("count_nonzero", {"axis": 0}, NANS), ("argmax", {"axis": 1}, NANS),
    ("argmin", {"keepdims": True}, X), ("argmax", {}, np.array([2, 5, 5, 1])), ("nanargmin", {"axis": 1}, NANS[:2]),
    ("nansum", {"axis": 1}, NANS), ("nanprod", {"axis": 0}, NANS), ("nanmax", {"axis": 0}, NANS[:2]),
    ("nanmin", {}, NANS), ("nanmean", {"axis": 0}, NANS[1:2, ::3]), ("nanstd", {"axis": 0}, X),
    ("nanmedian", {"axis": 1}, NANS[:2]), ("nancumsum", {"axis": 1}, NANS), ("nancumprod", {}, NANS[1:]),
    ("cumsum", {"axis": 1}, X), ("cumprod", {}, X), ("cumulative_sum", {"axis": 0, "include_initial": True}, X),
    ("sort", {"axis": None}, X), ("sort", {"axis": 0}, NANS), ("argsort", {"axis": 1, "stable": True}, U[None] % 2),
    ("sort", {}, np.array([1 + 2j, 1 - 1j, 0 + 5j])), ("sort", {"axis": 0}, np.zeros((0, 2), f32)),
    ("unique", {"return_index": True, "return_inverse": True, "return_counts": True}, U),
    ("unique", {"axis": 0, "return_inverse": True}, U[[0, 1, 0]][:, None] + np.arange(2)), ("unique", {}, NANS),
    ("nonzero", {}, X > 0), ("flatnonzero", {}, U - 1), ("argwhere", {}, X > 0.8), ("bincount", {"minlength": 6}, U),
    ("histogram", {"bins": 4}, X), ("histogram", {"bins": 3, "range": (0, 1), "density": True}, X),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    ours, theirs = getattr(jnp, name)(x, **options), getattr(np, name)(x, **options)
    for a, b in zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]:
        equal(a, b)


@pytest.mark.parametrize("name", ["sum", "median", "nanvar", "argmax", "cumprod", "sort", "all", "average"])
def test_the_same_under_jit(name):
    equal(jax.jit(getattr(jnp, name))(X), getattr(jnp, name)(X))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
def test_quantiles(method):
    q = np.array([0.0, 0.3, 0.5, 0.9, 1.0], f32)
    equal(jnp.quantile(X, q, axis=(0, 2), method=method), np.quantile(X, q, axis=(0, 2), method=method))
    equal(jnp.nanpercentile(NANS[:2, ::3], 40, axis=1, method=method), np.nanpercentile(NANS[:2, ::3], 40, 1,
                                                                                       method=method))


def test_weighted_quantile_and_average():
    weights = np.array([1, 0, 2, 4], f32)
    equal(jnp.quantile(X, 0.4, axis=2, method="inverted_cdf", weights=weights),
          np.quantile(X, 0.4, axis=2, method="inverted_cdf", weights=np.broadcast_to(weights, X.shape)))
    ours, theirs = (np_.average(X, 2, weights=weights, returned=True) for np_ in (jnp, np))
    for a, b in zip(ours, theirs):
        equal(a, b)


@pytest.mark.parametrize("name, x, dtype", [
    ("sum", np.ones(300, bool), "int32"), ("sum", np.ones(300, np.int8), "int32"),
    ("sum", np.ones(3, np.uint8), "uint32"), ("prod", np.ones(3, bool), "int32"),
    ("sum", np.ones(9, bf16), "bfloat16"), ("cumsum", np.ones(3, np.int8), "int8"),
    ("cumsum", np.ones(3, bool), "int32"), ("cumulative_sum", np.ones(3, np.int8), "int32"),
    ("mean", np.ones(3, np.int8), "float32"), ("mean", np.ones(3, bf16), "bfloat16"),
    ("max", np.ones(3, np.int8), "int8"), ("argmax", np.ones(3), "int32"),
    ("var", np.ones(3, np.complex64), "float32"), ("median", np.arange(3), "float32")])
def test_result_dtypes(name, x, dtype):
    out = getattr(jnp, name)(x)
    assert out.dtype == dtype and not out.weak_type


def test_bfloat16_sums_in_float32():
    assert float(jnp.sum(jnp.ones(1000, jnp.bfloat16))) == 1000


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.max(np.zeros((0, 3), f32), axis=0), ValueError, "zero-size array to reduction operation max"),
    (lambda: jnp.max(X, where=X > 0), ValueError, "initial"),
    (lambda: jnp.sum(X, out=X), NotImplementedError, "out"),
    (lambda: jnp.sum([1, 2]), TypeError, "list"),
    (lambda: jnp.sum(X, axis=3), ValueError, "axis 3 is out of bounds"),
    (lambda: jnp.sum(X, axis=(0, 0)), ValueError, "duplicate"),
    (lambda: jnp.sum(X, initial=X), ValueError, "scalar"),
    (lambda: jnp.argmax(np.zeros((0,), f32)), ValueError, "empty"),
    (lambda: jnp.std(X, dtype=int), ValueError, "inexact"),
    (lambda: jnp.var(X, ddof=1, correction=1), ValueError, "simultaneously"),
    (lambda: jnp.quantile(X, X), ValueError, "rank"),
    (lambda: jnp.average(X, weights=X[0]), ValueError, "Axis must be specified"),
    (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
    (lambda: lax.reduce_max(X, (7,)), ValueError, "out of bounds"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "integer"),
    (lambda: lax.reduce(X, X, lax.add, (0,)), ValueError, "non-scalar initial value"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,)), TypeError, "computation must return"),
    (lambda: lax.top_k(X, 9), ValueError, "k=9"),
    (lambda: lax.sort((X, X[0])), TypeError, "equal shapes"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2)), TypeError, "window_dimensions"),
    (lambda: jnp.searchsorted(X, 1.0), ValueError, "1-dimensional"),
    (lambda: jax.jit(jnp.unique)(U), jax.errors.ConcretizationTypeError, "size"),
    (lambda: jax.jit(jnp.nonzero)(U), jax.errors.ConcretizationTypeError, "size"),
    (lambda: jnp.bincount(X[0, 0]), TypeError, "integer"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- derivatives and vmap ---------------------------------------------------------------------------------------

WINDOW = dict(window_dimensions=(1, 2, 3), window_strides=(1, 2, 1), padding=((0, 0), (1, 0), (-1, 2)),
              base_dilation=(1, 2, 1))
SMOOTH = {
    "prod": lambda x: jnp.prod(x, 1), "max": lambda x: jnp.max(x, (0, 2)), "median": lambda x: jnp.median(x, 2),
    "cumprod": lambda x: lax.cumprod(x, 2, reverse=True), "cummax": lambda x: lax.cummax(x, 1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 2), "cumsum": lambda x: lax.cumsum(x, 1, reverse=True),
    "sort": lambda x: lax.sort((x, -x), dimension=1)[1], "top_k": lambda x: lax.top_k(x, 2, axis=1)[0],
    "var": lambda x: jnp.var(x, 1, ddof=1), "nanmean": lambda x: jnp.nanmean(x, 0),
    "window sum": lambda x: lax.reduce_window(x, 0.0, lax.add, window_dilation=(1, 2, 1), **WINDOW),
    "window max": lambda x: lax.reduce_window(x, -np.inf, lax.max, **WINDOW),
    "window min": lambda x: lax.reduce_window(x, np.inf, lax.min, **WINDOW),
    "reduce": lambda x: lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,))[1],
    "unique": lambda x: jnp.unique(x, size=24),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_match_differences_and_each_other(name):
    f, rng = SMOOTH[name], np.random.default_rng(0)
    t = rng.standard_normal(X.shape).astype(f32)
    out, tangent = jax.jvp(f, (X,), (t,))
    difference = (np.asarray(f(X + 4e-3 * t), np.float64) - np.asarray(f(X - 4e-3 * t))) / 8e-3
    np.testing.assert_allclose(tangent, difference, 2e-2, 2e-2)
    ct = rng.standard_normal(out.shape).astype(f32)
    back, = jax.vjp(f, X)[1](ct)
    np.testing.assert_allclose(np.vdot(back, t), np.vdot(ct, tangent), 1e-3, 1e-3)


@pytest.mark.parametrize("name", [n for n in SMOOTH if n != "unique"])
def test_vmap_equals_the_loop(name):
    batch = np.stack([X, X[::-1], -X], 2)
    equal(jax.vmap(SMOOTH[name], in_axes=2)(batch), np.stack([SMOOTH[name](batch[:, :, i]) for i in range(3)]))


def test_product_rule_holds_at_zeros():
    equal(jax.grad(jnp.prod)(f32([0, 2, 3])), [6, 0, 0])
    equal(jax.grad(jnp.prod)(f32([0, 0, 3])), [0, 0, 0])
    equal(jax.grad(lambda x: jnp.cumprod(x)[-1])(f32([0, 2, 3])), [6, 0, 0])
    equal(jax.hessian(jnp.prod)(f32([0, 2, 3])), [[0, 3, 2], [3, 0, 0], [2, 0, 0]])


def test_ties_share_the_gradient_of_max():
    equal(jax.grad(jnp.max)(f32([1, 3, 3, 0])), [0, 0.5, 0.5, 0])


def test_max_pooling_has_second_derivatives():
    def pool(x):
        return jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2), (1, 1, 2), "SAME") ** 3)
    t = np.cos(X)
    exact = jax.jvp(jax.grad(pool), (X,), (t,))[1]
    np.testing.assert_allclose(exact, (jax.grad(pool)(X + 4e-3 * t) - jax.grad(pool)(X - 4e-3 * t)) / 8e-3, 3e-2, 3e-2)


# --- the rest ---------------------------------------------------------------------------------------------------

def test_general_reduce():
    low, high = lax.reduce((X, X), (np.inf, -np.inf), lambda a, b: (jnp.minimum(a[0], b[0]), jnp.maximum(a[1], b[1])),
                           (0, 1))
    equal(low, X.min((0, 1)))
    equal(high, X.max((0, 1)))
    equal(lax.reduce(X, 2.0, lambda a, b: a + b, (0,)), X.sum(0) + 2)      # an initial value that is not neutral
    equal(lax.reduce_window(X[0], 1.0, lax.mul, (1, 2), (1, 2)), X[0, :, ::2] * X[0, :, 1::2])
    text = str(jax.make_jaxpr(lambda x: lax.reduce(x, 0.0, jnp.add, (0,)))(X))
    assert "reduce_sum" in text


def test_reductions_of_integers():
    x = np.array([[12, 10], [7, 3]], np.int32)
    for name, expected in (("and", [8, 3]), ("or", [14, 7]), ("xor", [6, 4])):
        equal(getattr(lax, f"reduce_{name}")(x, (1,)), expected, np.int32)
    equal(lax.reduce_max(x.astype(np.int8)[:0], (0,)), [-128, -128], np.int8)
    equal(lax.reduce_min(np.zeros((0,), f32), (0,)), np.inf)


def test_argmax_takes_the_lowest_index_and_the_first_nan():
    equal(lax.argmax(f32([1, np.nan, 9, np.nan]), 0, np.int32), 1, np.int32)
    equal(lax.argmin(f32([4, 1, 1]), 0, np.uint8), 1, np.uint8)


def test_running_reductions_with_infinities():
    x = f32([-np.inf, -np.inf, 1, 2, np.inf])
    equal(lax.cumlogsumexp(x), [-np.inf, -np.inf, 1, np.logaddexp(1, 2), np.inf])
    equal(jax.grad(lambda x: lax.cumlogsumexp(x)[3])(x), [0, 0, 1 / (1 + np.e), np.e / (1 + np.e), 0])
    equal(lax.cummin(x, reverse=True), x)


def test_sort_of_several_keys_is_stable_and_ordered():
    keys = f32([np.nan, 0.0, -0.0, -np.inf, 1, -np.nan])
    out, places = lax.sort_key_val(keys, np.arange(6))
    equal(places, [3, 1, 2, 4, 0, 5])        # equal zeros and equal nans keep their order
    assert np.signbit(np.asarray(out)[2]) and not np.signbit(np.asarray(out)[1])
    first, second = lax.sort((np.array([1, 0, 1, 0]), f32([4, 3, 2, 1])), num_keys=2)
    equal(first, [0, 0, 1, 1])
    equal(second, [1, 3, 2, 4])
    equal(jnp.argsort(np.array([1, 0, 1, 0]), descending=True), [0, 2, 1, 3])
    equal(jnp.lexsort((U, U % 2)), np.lexsort((U, U % 2)))
    assert np.asarray(jnp.partition(U, 2))[2] == np.sort(U)[2]


@pytest.mark.parametrize("method", ["scan", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method, side):
    a, v = f32([-1, 0, 0, 2, 7]), f32([[-2, -0.0, 0], [1, 7, np.nan]])
    equal(jnp.searchsorted(a, v, side, method=method), np.searchsorted(a, v, side))
    equal(jax.vmap(lambda row: jnp.searchsorted(a, row, side, method=method))(v), np.searchsorted(a, v, side))


def test_digitize_and_searchsorted_with_sorter():
    a = f32([3, 1, 2])
    equal(jnp.searchsorted(a, 2.5, sorter=np.argsort(a)), 2)
    for right in (False, True):
        equal(jnp.digitize(X, f32([-0.5, 0.1, 1]), right), np.digitize(X, f32([-0.5, 0.1, 1]), right))
        equal(jnp.digitize(X, f32([1, 0.1, -0.5]), right), np.digitize(X, f32([1, 0.1, -0.5]), right))


def test_sizes_make_results_of_values_static():
    values, index, inverse, counts = jax.jit(lambda u: jnp.unique(u, True, True, True, size=5, fill_value=-1))(U)
    equal(values, [1, 2, 3, -1, -1])
    equal(index, [1, 2, 0, 1, 1])
    equal(inverse, [2, 0, 1, 0, 2])
    equal(counts, [2, 1, 2, 0, 0])
    equal(jnp.unique(U, size=2), [1, 2])
    equal(jnp.nonzero(U > 1, size=5, fill_value=-1)[0], [0, 2, 4, -1, -1])
    equal(jnp.argwhere(X > 9, size=1, fill_value=7), [[7, 7, 7]])
    equal(jax.jit(lambda u: jnp.bincount(u, length=3))(U), [0, 2, 1])


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"])
def test_set_operations(name):
    other = np.array([9, 1, 1, 2])
    equal(getattr(jnp, name)(U, other), getattr(np, name)(U, other))
    equal(getattr(jnp, name)(U, other[:0]), getattr(np, name)(U, other[:0]))
    if name != "isin":
        found = jax.jit(lambda a, b: getattr(jnp, name)(a, b, size=6, fill_value=-1))(U, other)
        expected = getattr(np, name)(U, other)
        equal(found, [*expected, *[-1] * (6 - len(expected))])


def test_intersection_tells_where():
    ours, theirs = (np_.intersect1d(U, np.array([9, 2, 3, 2]), return_indices=True) for np_ in (jnp, np))
    for a, b in zip(ours, theirs):
        equal(a, b)


def test_window_shapes_and_paddings():
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3), (2, 1), "SAME") == (3, 6)
    equal(lax.reduce_window(X[0], 0.0, lax.add, (1, 2), (1, 1), "SAME"), X[0] + np.pad(X[0, :, 1:], ((0, 0), (0, 1))))
    assert lax.reduce_window(X, 0.0, lax.add, (9, 9, 9)).shape == (0, 0, 0)
