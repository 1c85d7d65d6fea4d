"""Modes and dimension numbers of gathers and scatters: what they mean, and which are wrong."""
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core.avals import ShapedArray
from hlotrace.primitives.arrays.gather_numbers import (
    GatherScatterMode, ScatterDimensionNumbers, check_batching_dims, check_dims, check_index_vectors,
    last_starts, shift, window_sizes)

pytestmark = pytest.mark.quick


def aval(*shape, dtype="int32"):
    return ShapedArray(shape, np.dtype(dtype))


@pytest.mark.parametrize("given, name", [
    (None, "FILL_OR_DROP"), ("fill", "FILL_OR_DROP"), ("drop", "FILL_OR_DROP"), ("clip", "CLIP"),
    ("promise_in_bounds", "PROMISE_IN_BOUNDS"),
    ("one_hot", "ONE_HOT"), (GatherScatterMode.CLIP, "CLIP")])
def test_modes_by_name(given, name):
    assert GatherScatterMode.from_any(given).name == name


@pytest.mark.parametrize("given", ["wrap", 3, [1]])
def test_another_mode_is_refused(given):
    with pytest.raises(ValueError,
                       match="Unknown gather mode .*: choose one of 'clip', 'fill', 'drop', 'promise_in_bounds', 'one_hot'"):
        GatherScatterMode.from_any(given)


@pytest.mark.parametrize("numbers, x, updates, wanted", [
    (((0,), (1,), (1,)), (5, 3), (4, 2), (4, 1)), (((), (0, 1), (0, 1)), (5, 3), (2,), (1, 1)),
    (((1,), (), (0,)), (6,), (2, 3), (3,)),
    (((1,), (), (1,), (0,), (0,)), (4, 5), (4, 2), (1, 2)), (((0,), (1,), (1,)), (5, 0), (5, 2), (5, 0))])
def test_windows_of_scatters(numbers, x, updates, wanted):
    assert window_sizes(ScatterDimensionNumbers(*numbers), x, updates) == wanted


def test_dims_are_shifted():
    assert shift((0, 2)) == (1, 3) and shift((1,), -1) == (0,) and shift(()) == ()


@pytest.mark.parametrize("dims, increasing, words", [
    ((0, 3), True, r"Invalid what set in f op; valid range is \[0, 3\); got: 3"), ((-1,), True, "got: -1"),
    ((1, 0), True, "must be sorted"), ((1, 1), True, "must not repeat"), ((1, 1), False, "must not repeat"),
    ((1, 0), False, None), ((0, 2), True, None), ((), True, None)])
def test_dims_are_checked(dims, increasing, words):
    if words is None:
        return check_dims("f", "what", dims, 3, increasing)
    with pytest.raises(TypeError, match=words):
        check_dims("f", "what", dims, 3, increasing)


@pytest.mark.parametrize("indices, words", [
    (aval(4, 2), None), (aval(2), None), (aval(4, 2, dtype="uint8"), None),
    (aval(4, 2, dtype="float32"), "indices must have an integer type, got"),
    (aval(), r"must be within \[0, rank\(indices\) \+ 1\)"),
    (aval(4, 3),
     "F op has 2 elements in start_index_map and the bound of dimension index_vector_dim=1 of indices is 3")])
def test_index_vectors_are_checked(indices, words):
    if words is None:
        return check_index_vectors("f", indices, (0, 1), "start_index_map")
    with pytest.raises(TypeError, match=words):
        check_index_vectors("f", indices, (0, 1), "start_index_map")


@pytest.mark.parametrize("operand_dims, index_dims, words", [
    ((0,), (1,), None), ((0, 1), (1, 0), None), ((), (), None),
    ((0,), (0,), r"the same shape, got \(3,\) and \(2,\)"),
    ((0,), (2,), "cannot have the index vector dimension"),
    ((0, 0), (1, 1), "must not repeat")])
def test_batching_dims_are_checked(operand_dims, index_dims, words):
    check = lambda: check_batching_dims("f", aval(3, 2, 7), aval(2, 3, 1), operand_dims, index_dims,
                                        "index_dims")
    if words is None:
        return check()
    with pytest.raises(TypeError, match=words):
        check()


def test_the_last_starts_fit_into_the_dtype_of_indices():
    found = last_starts((10, 1000, 4), (3, 1, 4), (1, 0, 2), np.dtype("int8"))
    assert found.dtype == np.int8 and found.tolist() == [127, 7, 0]
    assert last_starts((10, 1000), (3, 1), (1,), np.dtype("int32")).tolist() == [999]


def test_symbolic_sizes_give_a_program():
    n, = jax.export.symbolic_shape("n")
    jaxpr = jax.make_jaxpr(lambda x: last_starts(x.shape, (1, 2), (0, 1), np.dtype("int32")))(
        jax.ShapeDtypeStruct((n, 4), np.float32))
    assert [a.shape for a in jaxpr.out_avals] == [(2,)] and jaxpr.eqns[-1].primitive.name == "concatenate"
