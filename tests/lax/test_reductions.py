"""lax reductions, running reductions, windows and sorts: edge cases beyond the op table, derivatives, vmap."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
from hlotrace import lax, numpy as jnp

f32 = np.float32
X = ((np.arange(24) * 7 % 24 - 11) / 10).reshape(2, 3, 4).astype(f32)      # distinct, 0.1 apart
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


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
    (lambda: lax.reduce_max(X, (7,)), ValueError, "out of bounds"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "integer"),
    (lambda: lax.reduce(X, X, lax.add, (0,)), ValueError, "non-scalar initial value"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,)), TypeError, "computation must return"),
    (lambda: lax.top_k(X, 9), ValueError, "k=9"), (lambda: lax.sort((X, X[0])), TypeError, "equal shapes"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2)), TypeError,
     "reduce_window got the wrong number of window_dimensions"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2, 2), (0, 1, 1), "SAME"), TypeError,
     "reduce_window window_strides must have every element be strictly positive"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_match_differences_and_each_other(name):
    f, rng = SMOOTH[name], np.random.default_rng(0)
    t = rng.standard_normal(X.shape).astype(f32)
    ct = rng.standard_normal(jax.eval_shape(f, X).shape).astype(f32)
    everything = jax.jit(lambda x: (*jax.jvp(f, (x,), (t,)), *jax.vjp(f, x)[1](ct)))
    (_, tangent, back), (after, *_), (before, *_) = map(everything, (X, X + 4e-3 * t, X - 4e-3 * t))
    difference = (np.asarray(after, np.float64) - np.asarray(before)) / 8e-3
    np.testing.assert_allclose(tangent, difference, 2e-2, 2e-2)
    np.testing.assert_allclose(np.vdot(back, t), np.vdot(ct, tangent), 1e-3, 1e-3)


@pytest.mark.parametrize("name", [n for n in SMOOTH if n != "unique"])
def test_vmap_equals_the_loop(name):
    batch = np.stack([X, X[::-1], -X], 2)
    same(jax.vmap(SMOOTH[name], in_axes=2)(batch), np.stack([SMOOTH[name](batch[:, :, i]) for i in range(3)]))


def test_max_pooling_has_second_derivatives():
    def pool(x):
        return jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2), (1, 1, 2), "SAME") ** 3)
    t = np.cos(X)
    exact = jax.jvp(jax.grad(pool), (X,), (t,))[1]
    np.testing.assert_allclose(exact, (jax.grad(pool)(X + 4e-3 * t) - jax.grad(pool)(X - 4e-3 * t)) / 8e-3, 3e-2, 3e-2)


def test_general_reduce():
    low, high = lax.reduce((X, X), (np.inf, -np.inf), lambda a, b: (jnp.minimum(a[0], b[0]), jnp.maximum(a[1], b[1])),
                           (0, 1))
    same(low, X.min((0, 1)))
    same(high, X.max((0, 1)))
    same(lax.reduce(X, 2.0, lambda a, b: a + b, (0,)), X.sum(0) + 2)      # an initial value that is not neutral
    same(lax.reduce_window(X[0], 1.0, lax.mul, (1, 2), (1, 2)), X[0, :, ::2] * X[0, :, 1::2])
    text = str(jax.make_jaxpr(lambda x: lax.reduce(x, 0.0, jnp.add, (0,)))(X))
    assert "reduce_sum" in text


def test_reductions_of_integers():
    x = np.array([[12, 10], [7, 3]], dtype=np.int32)
    for name, expected in (("and", [8, 3]), ("or", [14, 7]), ("xor", [6, 4])):
        same(getattr(lax, f"reduce_{name}")(x, (1,)), expected, dtype=np.int32)
    same(lax.reduce_max(x.astype(np.int8)[:0], (0,)), [-128, -128], dtype=np.int8)
    same(lax.reduce_min(np.zeros((0,), f32), (0,)), np.inf)


WITH_NAN = {
    "max": jnp.max,
    "min": jnp.min,
    "ptp": lambda x: jnp.ptp(x, 0),
    "last axis": lambda x: jnp.max(x, -1),
    "mapped": jax.vmap(jnp.min),
    "norm": lambda x: jnp.linalg.norm(x, np.inf),
    "of sizes": lambda x: jnp.max(jnp.abs(x)),
    "reduce": lambda x: lax.reduce(x, np.array(-np.inf, x.dtype), lax.max, (0, 1)),
    "pool": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"),
    "one window": lambda x: lax.reduce_window(x, np.inf, lax.min, x.shape, (1, 1), "VALID"),
    "softmax": lambda x: jax.nn.softmax(x),
    "log_softmax": jax.nn.log_softmax,
    "logsumexp": jax.nn.logsumexp,
    "argmax": lambda x: jnp.where(jnp.isnan(x.reshape(-1)[jnp.argmax(x)]), jnp.nan, 0),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", WITH_NAN)
def test_a_nan_among_thousands_is_found(name, dtype):
    function, x = jax.jit(WITH_NAN[name]), np.random.default_rng(0).normal(size=(64, 80))
    for i, nan in zip((0, 1, 79, 2500, 4999, 5119), (np.nan, -np.nan) * 3):
        y = x.copy()
        y.flat[i] = nan
        assert np.isnan(function(jnp.asarray(y, dtype))).any()
    for extreme in np.inf, 1e30:        # squares of which are infinite
        y = np.where(x > 0, extreme, -extreme)
        assert not np.isnan(jax.jit(jnp.max)(jnp.asarray(y, dtype)))


def test_argmax_takes_the_lowest_index_and_the_first_nan():
    same(lax.argmax(f32([1, np.nan, 9, np.nan]), 0, np.int32), 1, dtype=np.int32)
    same(lax.argmin(f32([4, 1, 1]), 0, np.uint8), 1, dtype=np.uint8)


def test_running_reductions_with_infinities():
    x = f32([-np.inf, -np.inf, 1, 2, np.inf])
    same(lax.cumlogsumexp(x), [-np.inf, -np.inf, 1, np.logaddexp(1, 2), np.inf])
    same(jax.grad(lambda x: lax.cumlogsumexp(x)[3])(x), [0, 0, 1 / (1 + np.e), np.e / (1 + np.e), 0])
    same(lax.cummin(x, reverse=True), x)
    same(lax.cumlogsumexp(np.complex64([-np.inf, 1j, 2, np.inf + 1j])),
         np.complex64([-np.inf, 1j, np.log(np.exp(1j) + np.exp(2)), np.inf + 1j]))


def test_window_shapes_and_paddings():
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3), (2, 1), "SAME") == (3, 6)
    same(lax.reduce_window(X[0], 0.0, lax.add, (1, 2), (1, 1), "SAME"), X[0] + np.pad(X[0, :, 1:], ((0, 0), (0, 1))))
    assert lax.reduce_window(X, 0.0, lax.add, (9, 9, 9)).shape == (0, 0, 0)
    named = lax.reduce_window_shape_tuple((5, 6), (1, 3), (2, 3), "SAME", base_dilation=(2, 2))
    assert named == (5, 3)      # the padding is that of (5, 6), not of (9, 11)


def test_windows_of_any_computation_have_derivatives_forwards():
    def products(x):
        return lax.reduce_window(x, 1.0, lax.mul, (2,), padding="SAME")

    def largest(x):     # and where it is
        return lax.reduce_window((x, np.arange(3)), (-np.inf, 0),
                                 lambda a, b: jax.tree.map(lambda p, q: lax.select(a[0] >= b[0], p, q), a, b), (2,))
    x, dx = np.float32([2, 3, 5]), np.float32([1, 10, 100])
    same(jax.jvp(products, (x,), (dx,))[1], [23, 350, 100])
    same(jax.vmap(jax.jacfwd(products))(x[None])[0], [[3, 2, 0], [0, 5, 3], [0, 0, 1]])
    same(jax.jacfwd(jax.jacfwd(lambda x: products(x).sum()))(x), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    (values, places), (slopes, _) = jax.jvp(largest, (x,), (dx,))
    assert [v.tolist() for v in (values, places, slopes)] == [[3, 5], [1, 2], [10, 100]]
    with pytest.raises(NotImplementedError, match="reduce_window"):
        jax.grad(lambda x: products(x).sum())(x)


@pytest.mark.parametrize("dtype, init, operation, taken", [
    ("float32", 1.0, lax.add, True), ("float32", 1, lax.add, False), ("float32", False, lax.add, True),
    ("bfloat16", 1.0, lax.add, False), ("bfloat16", jnp.bfloat16(1), lax.add, True),
    ("bfloat16", 0.0, lax.add, True),
    ("int8", 300, lax.add, False), ("int8", 256, lax.add, False), ("int8", 0.0, lax.add, True),
    ("int8", -jnp.inf, lax.max, True), ("uint8", -jnp.inf, lax.add, False),
    ("complex64", -jnp.inf, lax.max, True),
    ("int8", np.int8(1), lambda a, b: a + b * 1, True), ("int8", 0, lambda a, b: a + b * 1, False),
    ("bool", False, lax.bitwise_or, True), ("bool", 0, lax.max, True), ("bool", 1, lax.bitwise_or, False)])
def test_an_initial_value_of_another_dtype_is_taken_where_it_is_neutral(dtype, init, operation, taken):
    x = jnp.ones(2, dtype)
    for reduced in (lambda: lax.reduce(x, init, operation, (0,)),
                    lambda: lax.reduce_window(x, init, operation, (2,))):
        if taken:
            assert reduced().dtype == dtype
        else:
            with pytest.raises(TypeError,
                               match="operand dtypes should match corresponding initial value dtypes"):
                reduced()


WEAK = jnp.full(3, 1.0)


@pytest.mark.parametrize("weak, call", [
    (True, lambda: lax.reduce(WEAK, 1.0, lax.add, (0,))),
    (True, lambda: lax.reduce(WEAK, 0.0, lax.add, (0,))),
    (False, lambda: lax.reduce(WEAK, np.float32(0), lax.add, (0,))),
    (True, lambda: lax.reduce(WEAK, 1.0, lambda a, b: a + b * 2, (0,))),
    (False, lambda: lax.reduce(WEAK, np.float32(1), lambda a, b: a + b * 2, (0,))),
    (True, lambda: lax.reduce_window(WEAK, 0.0, lax.add, (2,))),
    (False, lambda: lax.reduce_window(WEAK, 1.0, lax.add, (2,))),
    (False, lambda: lax.dynamic_update_slice(WEAK, WEAK[:2], (0,))),
    (True, lambda: WEAK.at[0].set(np.float32(2))),
    (True, lambda: lax.scatter_add(WEAK, np.array([[0]]), np.ones((1, 1), np.float32),
                                   lax.ScatterDimensionNumbers((1,), (), (0,)))),
    (True, lambda: lax.clamp(0.0, WEAK, 1.0)), (False, lambda: lax.clamp(np.float32(0), WEAK, 1.0))])
def test_weak_types_of_results(weak, call):
    """As JAX has them."""
    assert call().weak_type == jax.eval_shape(call).weak_type == weak


@pytest.mark.parametrize("start", [0, 0.0, np.float32(0), np.zeros(())])
def test_a_known_initial_value_stays_known_under_jit(start):
    """So that a windowed sum is one, which has a derivative."""
    def f(x):
        return lax.reduce_window(x, start, lax.add, (2,)), lax.reduce(x, start, lax.add, (0,))
    x = np.arange(3, dtype=np.float32)
    assert [eqn.primitive.name for eqn in jax.make_jaxpr(f)(x).eqns] == ["reduce_window_sum", "reduce_sum"]
    assert jax.jit(jax.grad(lambda x: f(x)[0] @ np.float32([1, 10])))(x).tolist() == [1, 11, 10]


def test_an_infinite_start_is_the_end_of_integers():
    for dtype, low, high in ("int32", -2, 3), ("uint8", 0, 3), ("bool", False, True):
        x = np.array([high, low, low, high], dtype)
        for init, combine, want in (-np.inf, lax.max, high), (f32(np.inf), lax.min, low):
            same(lax.reduce_window(x, init, combine, (2,), (2,), "VALID"), np.array([want, want], dtype))
