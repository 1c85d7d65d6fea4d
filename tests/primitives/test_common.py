"""What rules and public functions share: axes, shapes, indices and dtypes as users give them."""
import logging

import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
from hlotrace.core.config import override
from hlotrace.primitives import common
from hlotrace.primitives.common import (
    as_axes, canonical_axes, canonical_axis, canonical_shape, check_index, is_constant, kind_of, same_dtype,
    static_int)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("axis, ndim, wanted", [(0, 1, 0), (-1, 3, 2), (2, 3, 2), (-3, 3, 0), (np.int64(1), 2, 1), (True, 2, 1)])
def test_an_axis_is_counted_from_the_front(axis, ndim, wanted):
    assert canonical_axis(axis, ndim) == wanted


@pytest.mark.parametrize("axis, ndim, words", [
    (3, 3, r"axis 3 is out of bounds for array of dimension 3: -3 <= axis < 3"), (-4, 3, "axis -4 is out of"), (0, 0, "it has no axes")])
def test_an_axis_that_there_is_not(axis, ndim, words):
    with pytest.raises(np.exceptions.AxisError, match=words):
        canonical_axis(axis, ndim)
    with pytest.raises(np.exceptions.AxisError, match=words.replace("<= axis <", "<= dim <")):
        canonical_axis(axis, ndim, "dim")


@pytest.mark.parametrize("axes, wanted", [
    (None, (0, 1, 2)), (1, (1,)), ((0, -1), (0, 2)), ([2, 0], (2, 0)), ((), ()), (np.array([0, 1]), (0, 1)), (range(2), (0, 1))])
def test_several_axes(axes, wanted):
    assert canonical_axes(axes, 3) == wanted


@pytest.mark.parametrize("axes, error, words", [((0, -3), ValueError, r"duplicate value in axis: \(0, -3\)"), ((0, 3), ValueError, "axis 3"),
                                                (1.0, TypeError, "axis"), ("i", TypeError, "axis")])
def test_wrong_axes(axes, error, words):
    with pytest.raises(error, match=words):
        canonical_axes(axes, 3)


@pytest.mark.parametrize("axes, wanted", [(2, (2,)), ("ab", ("ab",)), ((1, 2), (1, 2)), (np.array(1), (np.array(1),)), (["a", 1], ("a", 1))])
def test_one_axis_or_several(axes, wanted):
    assert as_axes(axes) == wanted


@pytest.mark.parametrize("shape, wanted", [(3, (3,)), ((2, 3), (2, 3)), ([], ()), (np.int32(2), (2,)), (np.array([1, 2]), (1, 2)), ((np.int8(2),), (2,))])
def test_shapes(shape, wanted):
    found = canonical_shape(shape)
    assert found == wanted and all(type(n) is int for n in found)


@pytest.mark.parametrize("shape, words", [((2.0,), "1D sequences of concrete values of integer type"), (((1, 2),), "1D sequences"), ((-1, 2), r"got \(-1, 2\)")])
def test_wrong_shapes(shape, words):
    with pytest.raises((TypeError, ValueError), match=words):
        canonical_shape(shape)
    with pytest.raises((TypeError, ValueError)):
        jax.make_jaxpr(lambda n: jax.numpy.zeros(canonical_shape((n,))))(1)


@pytest.mark.parametrize("dtype, kind", [
    ("float32", "f"), (ml_dtypes.bfloat16, "f"), (ml_dtypes.float8_e4m3fn, "f"), ("complex64", "c"), ("int8", "i"), (ml_dtypes.int4, "i"),
    ("uint32", "u"), ("bool", "b"), (jax.dtypes.float0, "0")])
def test_kinds_of_dtypes(dtype, kind):
    assert kind_of(np.dtype(dtype)) == kind


def test_keys_are_a_kind_of_their_own():
    assert kind_of(jax.eval_shape(lambda: jax.random.key(0)).dtype) == "k"


def test_dtypes_must_be_the_same():
    f32, i32 = (jax.core.ShapedArray((2,), np.dtype(name)) for name in ("float32", "int32"))
    same_dtype("f", f32, f32, f32)
    with pytest.raises(TypeError, match="f requires arguments to have the same dtypes, got float32, float32, int32"):
        same_dtype("f", f32, f32, i32)


def test_constants_and_integers():
    assert all(map(is_constant, (1, 1.0, True, 1j, np.float32(1), np.ones(2)))) and not any(map(is_constant, ("a", None, [1])))
    assert static_int(np.int8(3), "n") == 3
    with pytest.raises(TypeError, match="n"):
        static_int(1.5, "n")


@pytest.mark.parametrize("index, size, more, inside", [
    (0, 1, {}, True), (2, 3, {}, True), (-3, 3, {}, True), (3, 3, {}, False), (-4, 3, {}, False), (3, 3, {"after": 1}, True), (4, 3, {"after": 1}, False),
    (-1, 3, {"first": 0}, False), (np.array([9]), 3, {}, True), (np.int32(5), 3, {}, False)])
def test_indices_that_are_out_of_bounds(index, size, more, inside, caplog):
    with override("jax_check_static_indices", True):
        if inside:
            check_index(index, size, **more)
        else:
            with pytest.raises(IndexError, match=str(int(index))):
                check_index(index, size, **more)
    common._PLACES.clear()
    with caplog.at_level(logging.WARNING, "hlotrace"):
        for _ in range(3):
            check_index(index, size, **more)
    assert len(caplog.records) == (not inside)      # once for a line
