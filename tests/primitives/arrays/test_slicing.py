"""Parts of arrays and arrays of parts: their types, and their rules by NumPy."""
import numpy as np
import pytest
from reference import check_rules, draw, run

import hlotrace as jax
from hlotrace import lax

pytestmark = pytest.mark.quick

X, Y, COLUMN = draw((3, 4), (2, 4), (3, 1))
LINEAR = {
    "rev": lambda x: lax.rev(x, (0,)), "rev of both": lambda x: lax.rev(x, (1, 0)),
    "slice": lambda x: lax.slice(x, (1, 0), (3, 3)), "slice with strides": lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)),
    "a stride that ends early": lambda x: lax.slice(x, (0, 0), (3, 3), (2, 3)), "an empty slice": lambda x: lax.slice(x, (1, 2), (1, 4)),
    "pad": lambda x: lax.pad(x, 0.0, ((1, 2, 0), (0, 0, 1))), "pad and cut": lambda x: lax.pad(x, 0.0, ((-1, 1, 0), (2, -2, 2))),
    "cut before what is between": lambda x: lax.pad(x, 0.0, ((-1, 0, 2), (0, -1, 1))),
    "concatenate with itself": lambda x: lax.concatenate([x, x[:1], x], 0),
}


@pytest.mark.parametrize("name", LINEAR)
def test_rules_of_linear_functions(name):
    check_rules(LINEAR[name], X, linear=[0])


def test_rules_of_several_operands():
    check_rules(lambda x, v: lax.pad(x, v, ((1, -1, 1), (2, 0, 0))), X, np.float64(0.7), linear=[])
    check_rules(lambda x, y: lax.concatenate([y, x, y], 0), X, Y)
    check_rules(lambda x, c: lax.concatenate([c, x], 1), X, COLUMN)


def test_each_example_may_have_a_padding_value_of_its_own():
    found, = run(jax.vmap(lambda x, v: lax.pad(x, v, ((1, 0, 1),))), X.astype(np.float32), np.float32([5, 6, 7]))
    for row, value, got in zip(X.astype(np.float32), (5, 6, 7), found):
        np.testing.assert_array_equal(got, [value, row[0], value, row[1], value, row[2], value, row[3]])


@pytest.mark.parametrize("call, shape", [
    (lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), (2, 2)), (lambda x: lax.slice(x, (3, 0), (3, 4)), (0, 4)),
    (lambda x: lax.pad(x, 0.0, ((1, 2, 3), (-1, -1, 0))), (12, 2)), (lambda x: lax.pad(x[:0], 0.0, ((1, 1, 5), (0, 0, 0))), (2, 4)),
    (lambda x: lax.concatenate([x, x], 1), (3, 8)), (lambda x: lax.iota("float32", 5), (5,)),
    (lambda x: lax.broadcasted_iota("int32", (2, 3), 1), (2, 3))])
def test_shapes(call, shape):
    assert jax.eval_shape(call, X).shape == shape


@pytest.mark.parametrize("call, words", [
    (lambda x: lax.rev(x, (0, 0)), r"rev dimensions must be unique, got \(0, 0\)"),
    (lambda x: lax.rev(x, (2,)), "all be less than operand ndim"),
    (lambda x: lax.slice(x, (0,), (1,)), "one entry for each axis"),
    (lambda x: lax.slice(x, (0, 2), (3, 1)), "limit_indices must be greater than or equal to start_indices"),
    (lambda x: lax.slice(x, (0, 0), (4, 4)), "limit_indices \\(4, 4\\)"),
    (lambda x: lax.slice(x, (0, 0), (3, 4), (1, 0)), "strides must be positive"),
    (lambda x: lax.pad(x, 0.0, ((0, 0, 0),)), "one \\(low, high, interior\\) for each"),
    (lambda x: lax.pad(x, 0.0, ((0, 0, -1), (0, 0, 0))),
     "interior padding in padding_config must be nonnegative"),
    (lambda x: lax.pad(x, 0.0, ((-2, -2, 0), (0, 0, 0))), r"not at least 0, got result shape \(-1, 4\)"),
    (lambda x: lax.pad(x, np.ones(2, np.float32), ((0, 0, 0),) * 2), "padding_value must be a scalar"),
    (lambda x: lax.concatenate([x, x], 2), "concatenate dimension out of bounds: dimension 2")])
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jax.eval_shape(call, X.astype(np.float32))
