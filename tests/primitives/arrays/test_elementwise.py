"""Elementwise operations: derivatives against slopes of NumPy's functions, types, and the operands that they
take."""
import numpy as np
import pytest
from reference import check_rules, draw

import hlotrace as jax
from hlotrace import lax

pytestmark = pytest.mark.quick

X, Y = draw((2, 3), (2, 3), seed=5)
ONE = {**{name: getattr(lax, name) for name in (
    "sin cos tan exp exp2 log log1p expm1 tanh sinh cosh asin acos atan asinh atanh sqrt rsqrt cbrt square neg logistic abs sign "
    "floor ceil").split()}, "acosh": lambda x: lax.acosh(x + 1), "cube": lambda x: lax.integer_pow(x, 3),
    "inverse square": lambda x: lax.integer_pow(x, -2), "power zero": lambda x: lax.integer_pow(x, 0)}
TWO = {**{name: getattr(lax, name) for name in "add sub mul div pow atan2 max min rem".split()},
       "where": lambda x, y: lax.select(x > 0.6, x, y), "abs of a difference": lambda x, y: lax.abs(x - y)}


@pytest.mark.parametrize("name", ONE)
def test_derivatives_of_one(name):
    check_rules(ONE[name], X, linear=[0] if name == "neg" else None)


@pytest.mark.parametrize("name", TWO)
def test_derivatives_of_two(name):
    check_rules(TWO[name], X, Y, linear={"add": [], "mul": [0, 1], "div": [0]}.get(name))


def slopes(function, *points):
    """The derivative by each operand, of scalars, evaluated by NumPy."""
    from reference import run
    with jax.enable_x64():
        return [float(x) for x in run(jax.grad(function, tuple(range(len(points)))),
                                      *map(np.float64, points))]


def test_derivatives_of_a_quotient_divide_once():
    """They are made of the result and the divisor, which others keep too: no second quotient is kept for
    them."""
    both = jax.make_jaxpr(jax.grad(lambda x, y: lax.reduce(lax.div(x, y), 0.0, lax.add, (0, 1)), (0, 1)))
    assert str(both(X, Y)).count(" div ") == 2


def test_ties_share_the_derivative():
    assert slopes(lax.max, 2.0, 2.0) == slopes(lax.min, 2.0, 2.0) == [0.5, 0.5]
    assert slopes(lax.max, 3.0, 2.0) == slopes(lax.min, 2.0, 3.0) == [1, 0]


@pytest.mark.parametrize(
    "function, point, slope, second",
    [
        (lax.acosh, -3.0, 8**-0.5, 3 * 8**-1.5),
        (lax.acosh, -np.inf, 0, 0),
        (lax.acosh, 3.0, 8**-0.5, -3 * 8**-1.5),
        (lax.acosh, 0.5, np.nan, np.nan),
        (lax.atanh, np.inf, 0, 0),
        (lax.atanh, -np.inf, 0, 0),
        (lax.atanh, 0.5, 4 / 3, 16 / 9),
        (lax.atanh, -3.0, -0.125, -0.09375),
    ],
)
def test_slopes_at_edges_and_where_there_is_no_value(function, point, slope, second):
    found = slopes(function, point) + slopes(jax.grad(function), point)
    np.testing.assert_allclose(found, [slope, second], rtol=1e-6)


def test_powers_at_zero():
    assert slopes(lambda x: lax.integer_pow(x, 1), 0.0) == [1] and slopes(
        lambda x: lax.integer_pow(x, 2), 0.0) == [0]
    assert slopes(lambda x: lax.pow(x, 2.0), 0.0) == [0] and slopes(
        lambda y: lax.pow(2.0, y), 0.0) == pytest.approx([np.log(2)])


@pytest.mark.parametrize("call, dtype", [
    (lambda x: x < 1, "bool"), (lax.abs, "float32"), (lambda x: lax.complex(x, x), "complex64"),
    (lambda x: lax.real(lax.complex(x, x)), "float32"),
    (lambda x: lax.abs(lax.complex(x, x)), "float32"), (lambda x: lax.is_finite(x), "bool"),
    (lambda x: lax.convert_element_type(x, np.int8), "int8"),
    (lambda x: lax.population_count(lax.convert_element_type(x, np.uint8)), "uint8")])
def test_types(call, dtype):
    found = jax.eval_shape(call, jax.ShapeDtypeStruct((2, 3), np.float32))
    assert (found.shape, found.dtype) == ((2, 3), dtype)


@pytest.mark.parametrize("p", [lax.add_p, lax.sub_p, lax.mul_p, lax.max_p])
def test_the_tangent_of_a_scalar_beside_an_array_has_the_shape_of_the_result(p):
    moved = lambda s: jax.jvp(lambda s: p.bind(s, np.ones(3, "f")), (s,), (s,))
    out, tangent = jax.eval_shape(moved, np.float32(2))
    assert out.shape == tangent.shape == (3,)


@pytest.mark.parametrize("call, words", [
    (lambda: lax.sin(np.int32([1])), "sin"),
    (lambda: lax.add(np.float32([1]), np.int32([1])), "add.*same dtypes"),
    (lambda: lax.add(np.ones(2, "f"), np.ones(3, "f")), r"add.*\(2,\).*\(3,\)"),
    (lambda: lax.population_count(np.float32(1)), "population_count"),
    (lambda: lax.bitwise_and(np.float32([1]), np.float32([1])), "and"),
    (lambda: lax.select(np.ones(2, bool), np.ones(3, "f"), np.ones(3, "f")), "select"),
    (lambda: lax.shift_left(np.float32(1), np.float32(1)), "shift_left"),
    (lambda: lax.integer_pow(np.int32(2), -1), "integer_pow")])
def test_operands_that_are_not_taken(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jax.eval_shape(call)
