"""lax elementwise functions: operands, results, what they refuse."""
import functools
import inspect
import itertools

import numpy as np
import pytest
from reference import evaluate, run

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.autodiff import grad


def array(dtype):
    return jnp.ones(2, dtype)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: lax.add(jnp.ones(2), jnp.ones(2, "int8")), TypeError, "same dtypes, got float32, int8"),
    (lambda: lax.add(jnp.ones(2), jnp.ones(3)), TypeError, "incompatible shapes"),
    (lambda: lax.exp(1), TypeError, "exp does not accept dtype int32"),
    (lambda: lax.sin([1.0]), TypeError, "argument 0"),
    (lambda: lax.clamp(0, jnp.ones(2, "int32"), 1.5), TypeError, "max has dtype"),
    (lambda: lax.integer_pow(2, -1), TypeError, "negative powers"),
    (lambda: lax.stop_gradient({"a": "text"}), TypeError, "not a valid JAX type"),
])
def test_errors_name_the_function_and_the_fault(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_lax_operands():
    x = jnp.array([1.0, 2.0, 3.0])
    assert lax.add(x, 1.5).dtype == "float32" and lax.mul(2, jnp.arange(3)).dtype == "int32"
    np.testing.assert_allclose(lax.add(x, jnp.float32(1)), [2, 3, 4])
    np.testing.assert_allclose(lax.clamp(1.5, x, 2.5), [1.5, 2, 2.5])
    np.testing.assert_allclose(lax.pow(x, 2), lax.pow(x, jnp.array([2, 2, 2])))
    np.testing.assert_allclose(lax.select(x > 1, x, -x), [-1, 2, 3])
    np.testing.assert_allclose(lax.select_n(jnp.array([2, 0, 1]), x, x * 10, x * 100), [100, 2, 30])
    assert lax.round(jnp.array([0.5, 1.5, 2.5])).tolist() == [1, 2, 3]
    assert lax.round(jnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN).tolist() == [0, 2, 2]
    assert lax.conj(x).dtype == "complex64" and lax.reduce_precision(1.2345, 5, 3) == 1.25
    assert lax.bitcast_convert_type(x, "int8").shape == (3, 4)
    assert lax.bitcast_convert_type(lax.bitcast_convert_type(x, "uint8"), "float32").tolist() == x.tolist()
    for dtype, a, b in (("int32", -2**31, 7), ("uint32", 2**32 - 1, 2**32 - 3), ("int8", -77, 93)):
        bits = np.dtype(dtype).itemsize * 8
        assert int(lax.mulhi(np.array(a, dtype), np.array(b, dtype))) == (a * b) >> bits
    assert lax.add_p.name == "add" and "accuracy" in inspect.signature(lax.exp).parameters


def test_what_lax_leaves_to_numpy():
    for call in (lambda: lax.pow(2, 3), lambda: lax.pow(jnp.arange(3), jnp.arange(3)),
                 lambda: lax.abs(np.uint8(3))):
        with pytest.raises(TypeError, match="does not accept dtype"):
            call()
    assert lax.integer_pow(2, 3) == jnp.power(2, 3) == 8 and jnp.abs(np.uint8(3)) == 3


def test_a_selector_of_a_narrow_type_counts_all_cases():
    assert lax.select_n(np.int8(127), *map(float, range(300))) == 127
    assert lax.select_n(np.array([0, 255], np.uint8), *jnp.eye(300, 2)).tolist() == [1, 0]


def test_stop_gradient():
    assert grad(lambda x: x * lax.stop_gradient(x))(3.0) == 3
    assert grad(lambda x: lax.stop_gradient({"a": x, "n": 1})["a"])(3.0) == 0


def test_one_minus_square_is_exact_near_one():
    x = np.float32([1 - 2**-20, -1 + 2**-20, 0, 3, np.nan, np.inf])
    want = 1 - x.astype(np.float64) ** 2
    np.testing.assert_allclose(lax.one_minus_square(x), want, rtol=1e-6)
    assert lax.one_minus_square(np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert grad(lax.one_minus_square)(3.0) == -6


def test_second_derivatives_of_powers():
    """d2/dx2 = y (y - 1) x**(y - 2), d2/dxdy = x**(y - 1) (1 + y log x), d2/dy2 = log(x)**2 x**y, also where
    y is 0."""
    x, y = (v.ravel() for v in np.meshgrid([0.5, 1., 4.], [-1., 0., 1., 2.5]))
    want = [y * (y - 1) * x ** (y - 2), x ** (y - 1) * (1 + y * np.log(x)), np.log(x) ** 2 * x ** y]
    for outer, inner in ((jax.grad, jax.grad), (jax.jacfwd, jax.grad), (jax.grad, jax.jacfwd),
                         (jax.jacfwd, jax.jacfwd)):
        for (i, j), values in zip(((0, 0), (0, 1), (1, 1)), want):
            for a, b in ((i, j), (j, i)):
                found, = run(jax.vmap(outer(inner(lax.pow, a), b)), *np.float32([x, y]))
                np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)
    slope = jax.grad(lax.pow)
    # along x at 0, as of a polynomial
    for n in range(4):
        for y in jnp.int32(n), float(n):
            assert (float(slope(0., y)), float(jax.grad(slope)(0., y))) == (n == 1, 2 * (n == 2))


TWO = (
    "add sub mul div rem max min pow atan2 nextafter complex eq ne lt le gt ge igamma igammac zeta igamma_grad_a "
       "random_gamma_grad").split()
BITS = "add mul max bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical mulhi".split()


def at_one_size(primitive, operands, params):
    """An elementwise primitive of operands of any one shape, by the program for twelve elements."""
    shape, = {x.shape for x in operands}
    found = primitive.bind(*(np.resize(x, 12) for x in operands), **params)
    return np.asarray(found)[:np.prod(shape, dtype=int)].reshape(shape)


@pytest.mark.parametrize("name, dtype",
                         [*((name, "float32") for name in TWO), *((name, "int32") for name in BITS)])
def test_sizes_of_one_are_repeated(name, dtype):
    function = getattr(lax, name)
    parts = [jnp.asarray(np.random.RandomState(0).uniform(1, 6, shape), dtype)
             for shape in [(3, 4), (1, 4), (3, 1), (1, 1)]]
    pairs = list(itertools.permutations(parts, 2))

    def slopes(*args):
        return jax.grad(lambda a, b: function(a, b).sum(), (0, 1))(*args)

    def everything(pairs):
        wide = [jnp.broadcast_arrays(a, b) for a, b in pairs]
        want = [function(*both) for both in wide]
        found = [(function(a, b), jax.vmap(function, (None, 0))(a, b[None])[0]) for a, b in pairs]
        if dtype == "float32" and jnp.issubdtype(want[0].dtype, jnp.floating) and name not in (
                "nextafter", "igamma_grad_a", "random_gamma_grad", "zeta"):
            a, b = parts[1:3]
            return want, found, list(zip(slopes(a, b), slopes(*jnp.broadcast_arrays(a, b))))
        return want, found, []

    jaxpr, shapes = jax.make_jaxpr(everything, return_shape=True)(pairs)
    wants, found, derivatives = jax.tree.unflatten(
        jax.tree.structure(shapes), evaluate(jaxpr, *jax.tree.leaves(pairs), compiled=at_one_size))
    for want, both in zip(wants, found):
        for got in both:
            np.testing.assert_array_equal(got, want)
    for axis, (slope, whole) in enumerate(derivatives):
        np.testing.assert_allclose(slope, whole.sum(axis, keepdims=True), rtol=1e-5)


def test_sizes_that_are_not_repeated():
    x = jnp.ones((3, 4))
    for wrong in (lambda: lax.add(x, jnp.ones(4)), lambda: lax.add(x, jnp.ones((2, 4))),
                  lambda: lax.select(x > 0, x, x[:1]),
                  lambda: lax.clamp(x[:1], x, x), lambda: lax.add(x, jnp.ones((1, 0)))):
        with pytest.raises(TypeError, match="shape"):
            wrong()
    assert lax.add(jnp.ones((1, 1)), jnp.ones((0, 4))).shape == (0, 4) and lax.betainc(
        x, x[:1], x[:, :1] / 2).shape == (3, 4)


WITH_ACCURACY = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()


@pytest.mark.parametrize("accuracy, attribute", [
    (lax.AccuracyMode.HIGHEST, "mode = #stablehlo.result_accuracy_mode<HIGHEST>"),
    (lax.Tolerance(atol=1e-3, ulps=2), "atol = 1.00000000000000002e-03, rtol = 0.0")])
def test_an_accuracy_is_in_the_program_and_not_in_its_derivative(accuracy, attribute):
    def both(x, **given):
        functions = [functools.partial(getattr(lax, name), **given) for name in WITH_ACCURACY]
        return [(jax.vmap(f)(jnp.stack([x, x])), grad(f)(x)) for f in functions]

    def exact(x):
        return both(x, accuracy=accuracy)
    x = jnp.float32(0.5)
    text = jax.jit(exact).lower(x).as_text()
    assert text.count("result_accuracy<") >= len(WITH_ACCURACY) and attribute in text
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), jax.jit(exact)(x),
                 jax.jit(both)(x))
    assert all(getattr(lax, name)(1 + 1j, accuracy=accuracy).dtype == "complex64"
               for name in WITH_ACCURACY[1:4])


def test_tolerances():
    assert lax.Tolerance(1e-3) == lax.Tolerance(1e-3) != lax.Tolerance(1e-2) and len(
        {*[lax.Tolerance(1e-3)] * 2}) == 1
    for wrong, words in [((), "must be set"), ((0.0, -1.0), "non-negative")]:
        with pytest.raises(ValueError, match=words):
            lax.Tolerance(*wrong)


@pytest.mark.parametrize("bounds", [(0., 1.), (1., 1.), (1., 0.)])
def test_clamp_has_no_slope_at_its_bounds(bounds):
    """The operand has one strictly between them, a bound where the operand is strictly beyond it."""
    low, high = bounds
    x = np.array([-1., 0., .5, 1., 2.], np.float32)
    slopes = jax.vmap(jax.grad(lax.clamp, (0, 1, 2)), (None, 0, None))(low, x, high)
    for found, want in zip(slopes, ((x < low) & (low < high), (x > low) & (x < high), x > high)):
        np.testing.assert_array_equal(found, want)
