"""Means, variances, medians and quantiles: values as NumPy's, dtypes, errors."""
import ml_dtypes
import numpy as np
import pytest
from derivatives import check_derivatives
from equal import same, same_as_numpy

import hlotrace as jax
from hlotrace import numpy as jnp

f32 = np.float32
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
NANS = np.array([[np.nan, 1, -np.inf, 0], [2, np.nan, np.nan, 5], [np.nan] * 4], f32)


bf16 = ml_dtypes.bfloat16


# name, keyword arguments, array; the reference is NumPy's function of the same name
VALUES = [
    ("mean", {"axis": 1, "where": X > -1}, X), ("var", {"ddof": 1, "axis": (0, 1)}, X),
    ("std", {"axis": 2, "keepdims": True}, X + 1j * X[:, ::-1]), ("median", {"axis": (0, 1)}, X), ("median", {}, NANS),
    ("nanmean", {"axis": 0}, NANS[1:2, ::3]), ("nanstd", {"axis": 0}, X), ("nanmedian", {"axis": 1}, NANS[:2]),
    ("nanquantile", {"q": np.array([0, 0.3, 1]), "axis": -1, "keepdims": True}, X),
    ("nanquantile", {"q": 0.7, "axis": 1}, NANS[1:2]),
    ("nanquantile", {"q": 0.4, "method": "lower", "axis": (0, 2)}, X.astype(np.int8)),
]


@pytest.mark.parametrize("name, options, x", VALUES, ids=[f"{i}-{v[0]}" for i, v in enumerate(VALUES)])
def test_agrees_with_numpy(name, options, x):
    same(getattr(jnp, name)(x, **options), getattr(np, name)(x, **options))


@pytest.mark.parametrize("name, x, dtype", [
    ("mean", np.ones(3, np.int8), "float32"), ("mean", np.ones(3, bf16), "bfloat16"),
    ("var", np.ones(3, np.complex64), "float32"), ("median", np.arange(3), "float32"),
])
def test_result_dtypes(name, x, dtype):
    out = getattr(jnp, name)(x)
    assert out.dtype == dtype and not out.weak_type


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.std(X, dtype=int), ValueError, "inexact"),
    (lambda: jnp.var(X, ddof=1, correction=1), ValueError, "simultaneously"),
    (lambda: jnp.quantile(X, X), ValueError, "rank"),
    (lambda: jnp.average(X, weights=X[0]), ValueError, "Axis must be specified"),
    (lambda: jnp.cov(X), ValueError, "vector"), (lambda: jnp.cov(X[0], X[0, 0, :3]), TypeError, "4 and 3"),
    (lambda: jnp.cov(X[0], dtype=int), ValueError, "int32"),
    (lambda: jnp.cov(X[0], aweights=X[0]), RuntimeError, "aweights"),
    (lambda: jnp.cov(X[0], fweights=X[0, 0]), TypeError, "integers"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
def test_quantiles(method):
    q = np.array([0.0, 0.3, 0.5, 0.9, 1.0], f32)
    same(jnp.quantile(X, q, axis=(0, 2), method=method), np.quantile(X, q, axis=(0, 2), method=method))
    same(jnp.nanpercentile(NANS[:2, ::3], 40, axis=1, method=method), np.nanpercentile(NANS[:2, ::3], 40, 1,
                                                                                       method=method))


def test_weighted_quantile_and_average():
    weights = np.array([1, 0, 2, 4], f32)
    same(jnp.quantile(X, 0.4, axis=2, method="inverted_cdf", weights=weights),
          np.quantile(X, 0.4, axis=2, method="inverted_cdf", weights=np.broadcast_to(weights, X.shape)))
    ours, theirs = (np_.average(X, 2, weights=weights, returned=True) for np_ in (jnp, np))
    same(ours, theirs)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, -2), (2, 0, 1)])
def test_weights_are_along_the_axes_in_their_order(axes):
    weights = np.arange(1, 1 + np.prod([X.shape[i] for i in axes]), dtype=f32).reshape([X.shape[i] for i in axes])
    same(jnp.average(X, axes, weights), np.average(X, axes, weights))


def test_a_variance_without_degrees_of_freedom_is_not_a_number():
    for ddof in (2, 3, 2.5):
        assert np.isnan(jnp.var(f32([1, 3]), ddof=ddof)) and np.isnan(jnp.std(f32([1, 3]), ddof=ddof))
    same(jnp.var(f32([[1, np.nan], [3, 5]]), axis=0, ddof=1), [2, np.nan])
    same(jnp.nanvar(f32([[1, np.nan], [3, 5], [5, 9]]), axis=0, ddof=2), [8, np.nan])


def test_the_weights_of_what_is_not_a_number_count_for_nothing():
    """However heavy: a quantile that skips NaN is that of the others with their weights."""
    x = np.array([[3, np.nan, 1, 2], [np.nan, np.nan, 5, 4]], f32)
    weights = np.array([[1, 50, 2, 3], [100, 1, 1, 3]], f32)
    for q in 0.0, 0.2, 0.5, 0.9, 1.0:
        kept = [np.quantile(row[~np.isnan(row)], q, method="inverted_cdf", weights=w[~np.isnan(row)])
                for row, w in zip(x, weights)]
        same(jnp.nanquantile(x, q, axis=1, method="inverted_cdf", weights=weights), np.array(kept, f32))
    assert np.isnan(jnp.quantile(x, 0.5, axis=1, method="inverted_cdf", weights=weights)).all()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_what_is_left_out_has_no_slope(name, dtype):
    """The others have theirs: a NaN does not spread to them, nor an infinity to the NaN."""
    def slopes(function, x, **options):
        return jax.grad(lambda x: function(x, **options).real)(np.array(x, dtype))
    kept, (ignored, whole) = np.array([1, 0, 1, 1], bool), (getattr(jnp, n) for n in ("nan" + name, name))
    for missing in np.nan, np.inf:
        x, wanted = [1, missing, 3, 7], np.insert(slopes(whole, [1, 3, 7]), 1, 0)
        found = [slopes(whole, x, where=kept)] + [slopes(ignored, x)] * bool(np.isnan(missing))
        for v in found:
            np.testing.assert_allclose(v, wanted, rtol=1e-5)
    assert slopes(ignored, [1, np.nan, np.inf])[1] == 0


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nansum", "nanprod", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16], ids=["float16", "bfloat16"])
def test_half_floats_add_up_in_float32(name, dtype):
    """In the program: a compiler may widen what it adds up here, and not elsewhere."""
    x = jax.ShapeDtypeStruct((3, 4), dtype)
    for options in {}, {"axis": 0}, {"where": np.ones((3, 4), bool)}, {"keepdims": True}:
        program = jax.make_jaxpr(lambda x: getattr(jnp, name)(x, **options))(x)     # noqa: B023
        added = [v.aval.dtype for eqn in equations(program) if eqn.primitive.name in ("reduce_sum", "reduce_prod")
                 for v in eqn.invars]
        assert added and {d for d in added if jnp.issubdtype(d, jnp.floating)} <= {np.dtype(np.float32)}, options
        assert program.out_avals[0].dtype == dtype


def equations(program):
    for eqn in program.eqns:
        yield eqn
        for inner in jax.core.jaxprs_in_params(eqn.params):
            yield from equations(inner)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["sum", "mean", "average", "var", "std", "nansum", "nanmean", "nanvar", "nanstd", "median",
                                  "quantile"])
def test_narrow_floats_are_added_up_in_wider_ones(name, dtype):
    """4096 of them: in eight bits of mantissa a running sum would stop growing long before the end.  Then 16 neighbours,
    whose mean lies between them: the variance around what the mean rounds to is another.
    """
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    eps, options = float(jnp.finfo(dtype).eps), {"q": 0.3} if name == "quantile" else {}
    between = 2 / eps + 2 * (np.arange(16) % 4 == 0)
    for x in ((1 + np.arange(4096) % 7 / 8).astype(dtype), between.astype(dtype)):
        if dtype == np.float16 and "sum" in name and len(x) == 16:      # too much for it
            continue
        got = getattr(jnp, name)(x, **options)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.float64(got), getattr(np, name)(x.astype(np.float64), **options), rtol=eps)


def test_the_dtype_of_a_variance():
    x = jnp.array([1., 3.])
    assert jnp.var(x, dtype=complex) == 1 + 0j and jnp.nanstd(x, dtype=complex).dtype == np.complex64
    assert jnp.nanmean(x, dtype="int8").dtype == np.int8


def test_covariance():
    x, often, much = np.sin(X[0]), np.array([1, 3, 1, 2]), np.array([0.5, 1, 0, 2], f32)
    calls = [
        lambda xp: xp.cov(x), lambda xp: xp.cov(x, x[:1] * 1j, bias=True), lambda xp: xp.cov(x, x[:, :1], rowvar=False),
        lambda xp: xp.cov(x[0], x[1], ddof=0), lambda xp: xp.cov(x[0]), lambda xp: xp.cov(x, fweights=often),
        lambda xp: xp.cov(x, aweights=much), lambda xp: xp.cov(x, fweights=often, aweights=much, ddof=2),
        lambda xp: xp.corrcoef(x), lambda xp: xp.corrcoef(often, often > 1), lambda xp: xp.corrcoef(x[0]), lambda xp: xp.corrcoef(x * 1j, x + 2j, rowvar=False),
    ]
    for call in calls:
        same_as_numpy(call(jnp), call(np), 3)
    assert jnp.cov(x.astype(bf16)).dtype == bf16 and jnp.cov(np.ones((2, 3), int)).dtype == f32
    assert jnp.cov(x, dtype=jnp.float16).dtype == "float16"
    assert jnp.isinf(jnp.cov(x[0], ddof=5)) and jnp.isinf(jnp.cov(x[:2], ddof=99)).all()     # as NumPy, which warns
    assert jnp.cov(np.zeros((0, 3))).shape == (0, 0)


def test_covariance_differentiates_and_batches():
    check_derivatives(lambda x, w: (jnp.cov(x, aweights=w), jnp.corrcoef(x)), X[0], np.array([0.5, 1, 1.5, 2]))
    same(jax.vmap(jnp.corrcoef)(np.sin(X)), np.stack([np.corrcoef(np.sin(x)) for x in X]).astype(f32))


# --- the name of a mapped axis among the axes

X = np.linspace(-1, 2, 24, dtype=np.float32).reshape(2, 3, 4)
OVER_NAMES = [(jnp.sum, {}), (jnp.sum, {"where": X > 0, "initial": 2.0}), (jnp.max, {"where": X < 1, "initial": -3.0}),
              (jnp.min, {}), (jnp.mean, {}), (jnp.mean, {"where": X > 0}), (jnp.var, {"ddof": 1}), (jnp.std, {}),
              (jnp.nansum, {}), (jnp.ptp, {}), (jnp.count_nonzero, {}), (jax.nn.logsumexp, {})]


def test_the_name_of_a_mapped_axis_is_an_axis():
    def mapped(axes, keepdims):
        def one(x, masks):
            return [f(x, axis=axes, keepdims=keepdims, **options, **mask)
                    for (f, options), mask in zip(plain, masks)]
        masks = [{k: v for k, v in options.items() if k == "where"} for _, options in OVER_NAMES]
        plain = [(f, {k: v for k, v in options.items() if k != "where"}) for f, options in OVER_NAMES]
        return jax.jit(jax.vmap(one, axis_name="rows"))(X, masks)
    for axes, positions, keepdims in [("rows", (0,), False), (("rows", 0), (0, 1), False), ((-1, "rows"), (0, 2), True)]:
        for (f, options), got in zip(OVER_NAMES, mapped(axes, keepdims)):
            want = np.asarray(f(X, axis=positions, keepdims=True, **options))
            want = want[0] if keepdims else want.reshape(got.shape[1:])
            np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-5, err_msg=f"{f.__name__} {axes}")


def test_softmax_takes_the_name_of_a_mapped_axis():
    for f in (jax.nn.softmax, jax.nn.log_softmax):
        got = jax.vmap(lambda x, f=f: f(x, axis=("rows", 0)), axis_name="rows")(X)
        np.testing.assert_allclose(got, f(X, axis=(0, 1)), rtol=1e-5)


def test_other_reductions_say_that_they_take_no_names():
    for f in (jnp.prod, jnp.any, jnp.all):
        with pytest.raises(NotImplementedError, match=f"jnp.{f.__name__} over the mapped axis 'rows'"):
            jax.vmap(lambda x, f=f: f(x, axis="rows"), axis_name="rows")(X)
    with pytest.raises(NameError, match="rows"):
        jnp.sum(X, axis="rows")
