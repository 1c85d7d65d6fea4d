"""approx_max_k and approx_min_k: exact on a CPU, with the sizes of JAX's results; what a TPU is asked for."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace import lax

X = np.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]], np.float32)


def test_values_places_and_derivative():
    values, places = lax.approx_max_k(X, 3)
    np.testing.assert_array_equal(values, [[9, 6, 5], [8, 8, 8]])
    np.testing.assert_array_equal(places, [[5, 7, 4], [3, 5, 7]])
    values, places = lax.approx_min_k(X, 1, reduction_dimension=0)
    np.testing.assert_array_equal(values, X.min(0)[None])
    np.testing.assert_array_equal(places, X.argmin(0)[None])
    np.testing.assert_array_equal(jax.grad(lambda x: lax.approx_min_k(x, 2)[0].sum())(X),
                                  [[0, 1, 0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 1, 0]])


@pytest.mark.parametrize("shape, k, recall, whole, size", [
    ((50,), 3, 0.95, -1, 50), ((1025,), 1, 1.0, -1, 1024), ((1025,), 3, 0.5, 200000, 2048),
    ((5000,), 10, 1.0, -1, 5000),
    ((2, 1000), 3, 0.95, -1, 256), ((2, 1000), 3, 0.99, -1, 256), ((2, 5000), 50, 0.99, -1, 5000),
    ((2, 5000), 10, 0.8, 200000, 128), ((2, 129), 3, 0.8, -1, 129)])
def test_how_many_are_found_without_aggregation(shape, k, recall, whole, size):
    options = dict(recall_target=recall, reduction_input_size_override=whole, aggregate_to_topk=False)
    values, _ = jax.eval_shape(lambda x: lax.approx_max_k(x, k, **options), np.zeros(shape, np.float32))
    assert values.shape == (*shape[:-1], size)


def test_text_for_a_tpu():
    text = jax.jit(lambda x: lax.approx_min_k(x, 3, aggregate_to_topk=False)).trace(X).lower(
        lowering_platforms=("tpu",)).as_text()
    for part in ("custom_call @ApproxTopK(%arg0,", "called_computations = [@", "aggregate_to_topk = false",
                 "recall_target = 9.500000000e-01 : f32", "reduction_dim = 1 : i64", "top_k = 3 : i64",
                 "compare LT"):
        assert part in text
