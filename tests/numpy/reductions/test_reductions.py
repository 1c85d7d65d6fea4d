"""Sums, extremes, running sums, positions of extremes: values as NumPy's, dtypes, errors."""
import ml_dtypes
import numpy as np
import pytest
from equal import same
from reference import evaluated

import hlotrace as jax
from hlotrace import numpy as jnp

f32 = np.float32
bf16 = ml_dtypes.bfloat16
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
NANS = np.array([[np.nan, 1, -np.inf, 0], [2, np.nan, np.nan, 5], [np.nan] * 4], f32)


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("sum", {"axis": (0, 2), "keepdims": True}, X), ("sum", {"axis": ()}, X), ("prod", {"axis": -1}, X),
    ("sum", {"axis": 1, "where": X > 0, "initial": 2.5}, X), ("max", {"axis": 1, "initial": 0.3}, X),
    ("min", {"where": X > 0, "initial": 9.0}, X), ("max", {}, NANS), ("sum", {"axis": 0}, X + 1j * X[::-1]),
    ("max", {"axis": 0}, np.zeros((2, 0), f32)), ("sum", {"axis": 0}, np.zeros((0, 3), f32)),
    ("prod", {"axis": 1}, np.zeros((3, 0), f32)), ("all", {"axis": 0}, NANS), ("any", {"axis": 1}, X > 1),
    ("sum", {"axis": 1, "dtype": bool}, NANS[:2] - 1), ("prod", {"axis": 0, "dtype": bool}, X > 0),
    ("ptp", {"axis": 1}, X), ("count_nonzero", {"axis": 0}, NANS), ("argmax", {"axis": 1}, NANS),
    ("argmin", {"keepdims": True}, X), ("argmax", {}, np.array([2, 5, 5, 1])), ("nanargmin", {"axis": 1}, NANS[:2]),
    ("nansum", {"axis": 1}, NANS), ("nanprod", {"axis": 0}, NANS), ("nanmax", {"axis": 0}, NANS[:2]),
    ("nanmin", {}, NANS), ("nancumsum", {"axis": 1}, NANS), ("nancumprod", {}, NANS[1:]), ("cumsum", {"axis": 1}, X),
    ("cumprod", {}, X), ("cumulative_sum", {"axis": 0, "include_initial": True}, X),
    ("cumulative_prod", {"axis": -1, "include_initial": True}, X), ("cumulative_prod", {}, np.zeros(0, f32)),
    ("amax", {"axis": -1}, X), ("amax", {"initial": -1.0}, np.zeros(0, f32)), ("amin", {"keepdims": True}, NANS),
    ("amin", {"axis": (0, -1)}, X > 0), ("nanargmax", {"axis": 1}, NANS[:2]), ("nanargmax", {"axis": -2}, X > 0),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


@pytest.mark.parametrize("name", ["sum", "median", "nanvar", "argmax", "cumprod", "sort", "all", "average"])
def test_the_same_under_jit(name):
    same(jax.jit(getattr(jnp, name))(X), getattr(jnp, name)(X))


@pytest.mark.parametrize("name, x, dtype", [
    ("sum", np.ones(300, bool), "int32"), ("sum", np.ones(300, np.int8), "int32"),
    ("sum", np.ones(3, np.uint8), "uint32"), ("prod", np.ones(3, bool), "int32"), ("sum", np.ones(9, bf16), "bfloat16"),
    ("cumsum", np.ones(3, np.int8), "int8"), ("cumsum", np.ones(3, bool), "int32"),
    ("cumulative_sum", np.ones(3, np.int8), "int32"), ("max", np.ones(3, np.int8), "int8"),
    ("cumulative_prod", np.ones(3, np.int8), "int8"), ("cumulative_prod", np.ones(3, bf16), "bfloat16"),
    ("amax", np.ones(3, bf16), "bfloat16"), ("amin", np.ones(3, bool), "bool"), ("nanargmax", np.ones(3, bf16), "int32"),
    ("argmax", np.ones(3), "int32"),
])
def test_result_dtypes(name, x, dtype):
    out = getattr(jnp, name)(x)
    assert out.dtype == dtype and not out.weak_type


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin"])
def test_options_of_reductions_go_together(name):
    options = [{"axis": axis, "keepdims": keepdims, **more} for axis in (None, 0, 1, (-1, 0)) for keepdims in (False, True) for more in (
        {}, {"initial": f32(0.25)}, {"initial": f32(0.25), "where": NANS < 3}, {"initial": f32(-3), "where": np.isnan(NANS)})]
    found = jax.jit(lambda x: [getattr(jnp, name)(x, **more) for more in options])(NANS)
    with np.errstate(invalid="ignore"):
        same(found, [f32(getattr(np, name)(NANS, **more)) for more in options])


@pytest.mark.parametrize("initial", [None, 0.25, (0.25, -0.25), (-5.0, 5.0)])
def test_minimum_and_maximum_at_once(initial):
    """A pair of initial values: the first bounds the minimum, the second the maximum."""
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    bounds = lambda value: {} if value is None else {"initial": f32(value)}
    same(jnp.minmax(X, 1, initial=initial), (np.min(X, 1, **bounds(low)), np.max(X, 1, **bounds(high))))


H, ONES = jnp.array([300, -300, 300, 200], jnp.float16), jnp.ones(1000, bf16)


@pytest.mark.parametrize("call, wanted", [
    (lambda: jnp.sum(ONES), 1000), (lambda: jax.ops.segment_sum(ONES, np.zeros(1000, int)), [1000]),
    (lambda: jnp.bincount(np.zeros(1000, int), ONES), [1000]), (lambda: jnp.histogram(ONES, 1)[0], [1000]),
    (lambda: jax.ops.segment_prod(jnp.full(512, 1 + 2**-7, bf16), np.zeros(512, int)), [(1 + 2**-7) ** 512]),
    (lambda: jnp.linalg.norm(H), np.sqrt(310000)), (lambda: jnp.linalg.norm(H, 3), 89000000 ** (1 / 3)),
    (lambda: jax.grad(jnp.linalg.norm)(jnp.full(4, 1e-4, jnp.float16)), [0.5] * 4),
    (lambda: jnp.average(100 * H, weights=abs(H)), (30000 + 4e6 / 300) / (3 + 2 / 3)),
    (lambda: jnp.corrcoef(H, H[::-1]), np.corrcoef(f32(H), f32(H)[::-1])),
    (lambda: jax.nn.standardize(H), (f32(H) - 125) / np.std(f32(H))),
    (lambda: jax.nn.standardize(H, algorithm="stable"), (f32(H) - 125) / np.std(f32(H))),
])
def test_narrow_floats_are_computed_with_in_float32(call, wanted):
    """Their squares, products and counts leave their range, or their digits, long before what comes of them does."""
    got = call()
    assert got.dtype.itemsize == 2
    np.testing.assert_allclose(f32(got), wanted, rtol=5e-3)


def test_histograms_count_in_integers():
    counts, _ = jnp.histogram(jnp.zeros(2**24 + 8), 1, (0, 1))
    assert counts.tolist() == [2**24 + 8] and counts.dtype == f32


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.max(np.zeros((0, 3), f32), axis=0), ValueError, "zero-size array to reduction operation max"),
    (lambda: jnp.max(X, where=X > 0), ValueError, "initial"), (lambda: jnp.sum(X, out=X), NotImplementedError, "out"),
    (lambda: jnp.sum([1, 2]), TypeError, "list"), (lambda: jnp.sum(X, axis=3), ValueError, "axis 3 is out of bounds"),
    (lambda: jnp.sum(X, axis=(0, 0)), ValueError, "duplicate"), (lambda: jnp.sum(X, initial=X), ValueError, "scalar"),
    (lambda: jnp.argmax(np.zeros((0,), f32)), ValueError, "empty"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- derivatives ------------------------------------------------------------------------------------------------

def test_product_rule_holds_at_zeros():
    same(evaluated(jax.grad(jnp.prod))(f32([0, 2, 3])), f32([6, 0, 0]))
    same(evaluated(jax.grad(jnp.prod))(f32([0, 0, 3])), f32([0, 0, 0]))
    same(evaluated(jax.grad(lambda x: jnp.cumprod(x)[-1]))(f32([0, 2, 3])), f32([6, 0, 0]))
    same(evaluated(jax.hessian(jnp.prod))(f32([0, 2, 3])), f32([[0, 3, 2], [3, 0, 0], [2, 0, 0]]))


def test_ties_share_the_gradient_of_max():
    same(jax.grad(jnp.max)(f32([1, 3, 3, 0])), [0, 0.5, 0.5, 0])
