"""Reductions by segment ids, against loops in NumPy."""
import numpy as np
import pytest
from derivatives import check_derivatives

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import ops

IDS = np.array([2, 0, 2, -1, 7, 3, 0])
DATA = np.array([[3, 1], [2, 5], [1, 4], [9, 9], [7, 7], [2, 2], [1, 6]])
REDUCE = {ops.segment_sum: np.sum, ops.segment_prod: np.prod, ops.segment_max: np.max, ops.segment_min: np.min}


def nothing(reduce, dtype):
    if reduce in (ops.segment_sum, ops.segment_prod):
        return reduce is ops.segment_prod
    limits = jnp.finfo(dtype) if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype) if dtype != "bool" else None
    infinite = jnp.issubdtype(dtype, jnp.floating)
    ends = (np.inf, -np.inf) if infinite else (limits.max, limits.min) if limits else (True, False)
    return ends[reduce is ops.segment_max]


def want(reduce, data, ids, num):
    rows = [data[ids == i] for i in range(num)]
    return np.stack([REDUCE[reduce](r, axis=0) if len(r) else np.full(data.shape[1:], nothing(reduce, data.dtype.name))
                     for r in rows]).astype(data.dtype)


@pytest.mark.parametrize("reduce", REDUCE)
def test_rows_with_one_id_go_into_one_row(reduce):
    others = ["bfloat16", "int8", "uint8", "int32",
              *["bool"] * (reduce in (ops.segment_max, ops.segment_min))]
    cases = [*[("float32", num, {"bucket_size": size})
               for num, size in ((8, None), (5, 3), (3, 100), (0, None))],
             *[(dtype, 8, {}) for dtype in others]]
    arrays = [DATA.astype(jnp.dtype(dtype)) for dtype, *_ in cases]
    compiled = jax.jit(reduce, static_argnums=2, static_argnames=["bucket_size"])
    together = jax.jit(lambda arrays: [compiled(x, IDS, num, **more)
                                       for x, (_, num, more) in zip(arrays, cases)])
    for (dtype, num, _), data, found in zip(cases, arrays, together(arrays), strict=True):
        assert found.dtype == data.dtype and found.shape == (num, 2)
        if num:
            wanted = want(reduce, data, IDS, num).astype("float32")
            np.testing.assert_array_equal(np.asarray(found).astype("float32"), wanted, dtype)
    assert reduce(DATA[:, 0], IDS).shape == (8,)        # the number of segments from the ids
    np.testing.assert_array_equal(reduce(DATA[:, 0], IDS, 4, mode="clip"),
                                  want(reduce, DATA[:, 0].astype("int32"), np.clip(IDS, 0, 3), 4))
    np.testing.assert_array_equal(reduce(DATA[:3, 0], np.array([0, 1, 3]), 4, True, True, mode="promise_in_bounds"),
                                  want(reduce, DATA[:3, 0].astype("int32"), np.array([0, 1, 3]), 4))
    np.testing.assert_array_equal(jax.vmap(lambda d: reduce(d, IDS, 4, bucket_size=2), 1, 1)(jnp.array(DATA)),
                                  want(reduce, DATA.astype("int32"), IDS, 4))
    if reduce is not ops.segment_prod:
        with jax.enable_x64(True):
            check_derivatives(lambda d: jnp.where(jnp.isinf(y := reduce(d, IDS, 4)), 0, y), DATA + np.arange(7)[:, None] / 9)


def test_empty_data_and_sharded_results():
    assert ops.segment_sum(jnp.zeros((0, 3)), jnp.zeros(0, "int32")).shape == (0, 3)
    np.testing.assert_array_equal(ops.segment_prod(jnp.zeros((0, 3)), jnp.zeros(0, "int32"), 2), np.ones((2, 3)))
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    placed = jax.NamedSharding(mesh, jax.P("x"))
    assert ops.segment_sum(jnp.ones(4), jnp.arange(4), out_sharding=placed).sharding == placed


@pytest.mark.parametrize(("args", "kind", "words"), [
    ((jnp.ones(3), jnp.arange(2)), ValueError, r"shape \(3,\).*shape \(2,\)"),
    ((jnp.ones(3), jnp.ones(3)), TypeError, "float32"),
    ((jnp.ones(3), jnp.arange(3), -1), ValueError, "-1"), ((jnp.ones(3) > 0, jnp.arange(3)), TypeError, "bool"),
    ((jnp.ones(3), jnp.arange(3), 3, False, False, 0), ValueError, "bucket_size"), (([1.0], [0]), TypeError, "list"),
])
def test_what_does_not_fit(args, kind, words):
    with pytest.raises(kind, match=words):
        ops.segment_sum(*args)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="num_segments"):
        jax.jit(ops.segment_sum)(jnp.ones(3), jnp.arange(3))


def test_where_nan_is_the_extreme_value_no_slope_is_nan():
    """Old elements that no update meets keep their tangents; NaN from an update has the tangent 0, as in JAX."""
    x = jnp.array([np.nan, np.nan, 1, 5])
    ids = jnp.array([0, 1, 1, 2])
    for reduce in (ops.segment_max, ops.segment_min):
        for jacobian in (jax.jacfwd, jax.jacrev):
            slopes = jacobian(reduce)(x, ids, 3)
            np.testing.assert_array_equal(slopes, [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(jax.jacrev(lambda x: x.at[1:3].max(7))(x), np.diag([1, 1, 0, 1]))


@pytest.mark.parametrize("dtype, count", [("bfloat16", 512), ("float16", 4096), ("float8_e5m2", 64), ("float8_e4m3fn", 64)])
def test_narrow_floats_add_up_wide(dtype, count):
    ones, zeros = jnp.ones(count, dtype), jnp.zeros(count, "int32")
    assert ops.segment_sum(ones, zeros, 1) == ops.segment_sum(ones, zeros, 1, bucket_size=8) == count
    assert jnp.zeros(1, dtype).at[zeros].add(1) == count
