"""lax slices, gather and scatter: values, and what they refuse."""
import re

import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
I2, I3, COLUMN = np.array([1, -1]), np.array([2, 0, 1]), np.array([[0], [2]])


ERRORS = [
    (lambda x: jax.jit(lambda x, i: x[i:i + 2])(x, 1), IndexError, "lax.dynamic_slice"),
    (lambda x: lax.dynamic_slice(x, (0, 0, 0), (1, 1, 9)), TypeError, "9 for axis 2 of size 5"),
    (lambda x: lax.dynamic_slice(x, (0, 0), (1, 1)), ValueError, "must match number of operand dimensions"),
    (lambda x: lax.dynamic_slice(x, (0, 0, 0.5), (1, 1, 1)), TypeError, "must be integers"),
    (lambda x: lax.dynamic_update_slice(x, jnp.ones((4, 4, 4)), (0, 0, 0)), TypeError, "axis 0"),
    (lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 1, 1), int), (0, 0, 0)), TypeError,
     "float32, int32"),
    (lambda x: lax.index_in_dim(x, 3), IndexError, "out of bounds for axis 0 with size 3"),
    (lambda x: lax.gather(x, jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4, 5)),
     TypeError, "offset index"),
    (lambda x: lax.scatter(x, jnp.zeros((2, 1), int), jnp.ones((3, 4, 5)),
                           _ROWS._replace(update_window_dims=(1, 2))),
     TypeError, "For scatter dimension 0, updates bound is 3, indices bound is 2."),
]


@pytest.mark.parametrize("function, error, words", ERRORS)
def test_errors(function, error, words):
    with pytest.raises(error, match=words):
        function(jnp.array(X))


def test_lax_slices():
    for got, want in [
        (lax.slice(X, (0, 1, 1), (2, 4, 5), (1, 2, 3)), X[:2, 1:4:2, 1::3]),
        (lax.slice_in_dim(X, -3, None, 2, 1), X[:, 1::2]),
        (lax.index_in_dim(X, -1, 1, False), X[:, -1]),
        (lax.dynamic_slice_in_dim(X, jnp.int32(1), 2, 1), X[:, 1:3]),
        (lax.dynamic_index_in_dim(X, -1, 2), X[..., -1:]),
        (lax.dynamic_slice(X, jnp.array([1, 0, 2]), (1, 1, 1)), X[1:2, :1, 2:3]),
        (lax.dynamic_slice(X, (np.int8(1), 0, jnp.int8(2)), (1, 1, 1)), X[1:2, :1, 2:3]),
        (lax.dynamic_update_index_in_dim(X, X[:, 0], 3, 1), np.concatenate([X[:, :3], X[:, :1]], 1)),
        (lax.dynamic_update_slice_in_dim(X, X[:2], -2, 0), np.concatenate([X[:1], X[:2]])),
        (lax.index_take(X, (I3, I3), (0, 1)), X[I3, I3]),
        (lax.gather(X, jnp.array([[1, 2], [0, 0]]), lax.GatherDimensionNumbers((1,), (0, 1), (0, 1)),
                    (1, 1, 5)),
         X[[1, 0], [2, 0]]),
        (lax.gather(X, jnp.array([[3], [-1]]), lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 4, 5)),
         X[[2, 0]]),
        (lax.gather(X, jnp.array([[3], [1]]), lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 4, 5),
                    mode="fill", fill_value=7), [np.full((4, 5), 7), X[1]]),
        (lax.scatter_sub(jnp.ones(3), jnp.array([[0], [0]]), jnp.ones(2),
                         lax.ScatterDimensionNumbers((), (0,), (0,))),
         [-1, 1, 1]),
    ]:
        np.testing.assert_array_equal(got, want)


# of an operand of shape (5, 4, 3): what differs from a right gather or scatter, and the words of the error
_RIGHT = dict(window=(2, 3), gone=(0,), map=(0, 1, 2), batch=(), of=(), sizes=(1, 4, 3), indices=(2, 6, 3))
_WRONG = [
    (dict(window=(3, 2)), "{window} in {op} op must be sorted; got (3, 2)"),
    (dict(window=(2, 2)), "{window} in {op} op must not repeat; got: (2, 2)"),
    (dict(gone=(1, 0), window=(2,)), "{gone} in {op} op must be sorted; got (1, 0)"),
    (dict(gone=(7,)), "Invalid {gone} set in {op} op; valid range is [0, 3); got: 7."),
    (dict(map=(0, 1, 1)), "{map} in {op} op must not repeat; got: (0, 1, 1)."),
    (dict(map=(0, 1, 9)), "domain is [0, 3), got: 2->9."),
    (dict(map=(0, 1)), "{Op} op has 2 elements in {map} and the bound of dimension index_vector_dim=2"),
    (dict(indices=(), map=(0,)), "{Op} index leaf dimension must be within [0, rank(indices) + 1)"),
    (dict(batch=(3,), of=(0,)),
     "Invalid operand_batching_dims set in {op} op; valid range is [0, 3); got: 3."),
    (dict(batch=(0,), of=(0,)),
     "{gone} and operand_batching_dims in {op} op must be disjoint; got: (0,) and (0,)."),
    (dict(batch=(1,), of=(0,)),
     "{map} and operand_batching_dims in {op} op must be disjoint; got: (0, 1, 2) and (1,)."),
    (dict(of=(0,)), "{Op} op requires equal numbers of operand_batching_dims and {of}, got () and (0,)."),
    (dict(of=(0, 0)), "{of} in {op} op must not repeat; got: (0, 0)."),
    (dict(of=(2,)), "{Op} op cannot have the index vector dimension as a batching dimension; got (2,)."),
    (dict(gone=(), batch=(0,), of=(0,), map=(1, 2), indices=(2, 6, 2)),
     "batching dimensions and indices batching dimensions to have the same shape, got (5,) and (2,)."),
]
_NAMES = {
    "gather": dict(window="offset_dims", gone="collapsed_slice_dims", map="start_index_map",
                   of="start_indices_batching_dims"),
    "scatter": dict(window="update_window_dims", gone="inserted_window_dims",
                    map="scatter_dims_to_operand_dims", of="scatter_indices_batching_dims")}
_ONLY = [
    ("gather", dict(window=(2, 9)),
     "Offset dimension 1 in gather op is out of bounds; got 9, but should have been in"),
    ("gather", dict(sizes=(1, 4)),
     "one slice size for every input dimension; got: len(slice_sizes)=2, input_shape.rank=3"),
    ("gather", dict(sizes=(2, 4, 3)),
     "can only collapse slice dims with bound 1, but bound is 2 for index 0 at position 0."),
    ("gather", dict(window=(2,)),
     "All components of the offset index in a gather op must either be a offset dimension"),
    ("gather", dict(gone=(), batch=(0,), of=(0,), map=(1, 2), indices=(5, 6, 2), sizes=(2, 4, 3)),
     "can only have operand batching dims with bound 0/1, but bound is 2 for index 0 at position 0."),
    ("scatter", dict(gone=()), "Scatter op has window of size 2; doesn't match operand of rank 3."),
    ("scatter", dict(updates=(2, 6, 4)), "Updates tensor must be of rank 4; got 3."),
    ("scatter", dict(updates=(2, 6, 4, 7)), "For dimension 3, updates bound is 7, operand bound is 3."),
    ("scatter", dict(updates=(2, 5, 4, 3)),
     "For scatter dimension 1, updates bound is 5, indices bound is 6."),
]


@pytest.mark.quick
@pytest.mark.parametrize("op, change, words", [
    *[(op, change, words.format(op=op, Op=op.capitalize(), **names))
      for change, words in _WRONG for op, names in _NAMES.items()],
    *_ONLY])
def test_what_is_wrong_with_the_numbers_of_a_gather_or_scatter(op, change, words):
    case = {**_RIGHT, **change}
    numbers = [case[name] for name in ("window", "gone", "map", "batch", "of")]
    rest = (*case["indices"][:-1], *(4, 3)[:len(case["window"])])
    x, indices, updates = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (
        ((5, 4, 3), "float32"), (case["indices"], "int32"), (case.get("updates", rest), "float32"))]
    with pytest.raises(TypeError, match=re.escape(words)):
        if op == "gather":
            numbers = lax.GatherDimensionNumbers(*numbers)
            jax.eval_shape(lambda x, i: lax.gather(x, i, numbers, case["sizes"]), x, indices)
        else:
            numbers = lax.ScatterDimensionNumbers(*numbers)
            jax.eval_shape(lambda x, i, u: lax.scatter(x, i, u, numbers), x, indices, updates)
