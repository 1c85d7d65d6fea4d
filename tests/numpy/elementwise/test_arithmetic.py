"""Quotients, powers, rounding, divisors, bounds: values as NumPy's, dtypes, edges, slopes, errors."""
import numpy as np
import pytest
from elementwise import ALL, NUMBER, REAL, SAMPLES, one_array_agrees, specials_agree, two_arrays_agree
from reference import evaluated

import hlotrace.numpy as jnp
from hlotrace import jit, lax, vmap
from hlotrace.api.autodiff import grad, vjp


def array(dtype):
    return jnp.ones(2, dtype)


INF, NAN = np.inf, np.nan
UNARY = {"sinc": ALL, "i0": REAL, "rint": ("float32", "bfloat16", "int8"), "angle": ALL, "nan_to_num": ALL, "round": NUMBER}
BINARY = {
    **dict.fromkeys(["hypot", "logaddexp", "logaddexp2", "heaviside"], REAL),
    **dict.fromkeys(["floor_divide", "remainder", "fmod", "divmod"], ("float32", "int8")),
    **dict.fromkeys(["gcd", "lcm"], ("int8",)), **dict.fromkeys(["fmax", "fmin"], ALL),
    "power": ("float32", "complex64"), "float_power": ("float32",),
}


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_one_array_agree_with_numpy(dtype):
    one_array_agrees(UNARY, dtype)


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_two_arrays_agree_with_numpy(dtype):
    two_arrays_agree(BINARY, dtype)


def test_infinities_zeros_and_nan():
    """Quotients are as the array API standard says, not as NumPy's: see docs/differences.md."""
    specials_agree(
        [name for name in UNARY if name != "sinc"],
        [name for name in BINARY if name not in ("gcd", "lcm", "floor_divide", "divmod")],
    )


@pytest.mark.parametrize("options", [{}, {"nan": 7.0}, {"posinf": 8.0}, {"neginf": -9.0}, {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}])
def test_what_stands_for_numbers_that_are_none(options):
    parts = np.array([1.5, np.inf, -np.inf, np.nan], np.float32)
    both = np.stack(np.broadcast_arrays(parts[:, None], parts), -1).view(np.complex64)
    for x in (parts, both, np.arange(3)):
        np.testing.assert_array_equal(jnp.nan_to_num(x, **options), np.nan_to_num(x, **options))


@pytest.mark.parametrize(("dtype", "numbers"), [
    ("int32", [-2**31, -7, -1, 0, 1, 2, 31, 33]), ("uint8", [0, 1, 2, 31, 128, 255]),
    ("float32", [-INF, -2.5, -1, -0.0, 0, 0.5, 1, 1.5, 3, INF, NAN])])
def test_constants_of_a_program_are_computed_with_as_its_arguments_are(dtype, numbers):
    """XLA computes with constants itself while it compiles, by other code than the one that it makes."""
    x, y = (v.ravel() for v in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))
    bits = ["left_shift", "right_shift", "bitwise_xor", "gcd", "lcm"] if dtype != "float32" else []
    functions = [getattr(jnp, name) for name in [
        "sign", "rint", "floor", "divide", "floor_divide", "remainder", "fmod", "power", "maximum", "arctan2",
        "copysign", "hypot", *bits]] + ([lax.div, lax.rem] if bits else [])
    operands = lambda f: (x,) if f.__name__ in ("sign", "rint", "floor") else (x, y)
    known = jit(lambda: [f(*map(jnp.asarray, operands(f))) for f in functions])()
    found = jit(lambda x, y: [f(*(x, y)[:len(operands(f))]) for f in functions])(x, y)
    for function, one, other in zip(functions, known, found):
        np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=function.__name__)


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda: jnp.power(array("bool"), 2), "int32"), (lambda: jnp.power(array("int8"), 2), "int8"),
    (lambda: jnp.power(array("bfloat16"), array("int8")), "bfloat16"),
    *[(lambda x=x, n=n, how=how: how(x, n), dtype) for n in (jnp.int8(2), np.array(2), jnp.array(2))
      for x, dtype in ((jnp.uint8(3), "uint8"), (3, "int32"), (jnp.float16(3), "float16"), (True, "int32"))
      for how in (jnp.power, lambda x, n: jnp.asarray(x)**n, lambda x, n: jit(lambda x: x**n)(x))],
    (lambda: jnp.floor_divide(array("bool"), True), "int32"), (lambda: jnp.rint(array("int8")), "float32"),
    (lambda: jnp.clip(array("int8"), -300, 300), "int8"), (lambda: jnp.clip(array("int8"), 0.5), "float32"),
    (lambda: jnp.angle(array("int8")), "float32"),
])
def test_result_dtypes(call, dtype):
    assert call().dtype == dtype


@pytest.mark.parametrize(("found", "wanted"), [
    (lambda: jnp.sinc(0.0), 1.0), (lambda: jnp.logaddexp(-INF, -INF), -INF), (lambda: jnp.logaddexp(INF, -INF), INF),
    (lambda: jnp.logaddexp(INF, INF), INF), (lambda: jnp.logaddexp(2.5j, -1j).imag, -2.3915927),
    (lambda: jnp.hypot(0.0, 0.0), 0.0), (lambda: jnp.hypot(NAN, INF), INF),
    (lambda: jnp.hypot(3e30, 4e30), 5e30), (lambda: jnp.remainder(-1.0, INF), INF), (lambda: jnp.remainder(7, 0), 0),
    (lambda: jnp.floor_divide(1.0, 0.0), INF), (lambda: jnp.fmax(NAN, 1.0), 1.0),
    (lambda: jnp.heaviside(NAN, 0.5), NAN), (lambda: jnp.clip(NAN, 0, 1), NAN), (lambda: jnp.power(0, 0), 1),
    (lambda: jnp.power(jnp.array(2), jnp.array([-1])), [0]), (lambda: jnp.gcd(0, 0), 0),
    (lambda: jnp.lcm(0, 4), 0),
    (lambda: jnp.power(2j, True).real, 0), (lambda: jnp.power(2j, True).imag, 2),
    (lambda: jnp.power(jnp.array([0, -6, -1, -1]), jnp.array([64, 100, -3, -2])), [0, 0, -1, 1]),
    (lambda: jnp.power(np.uint8([0, 2, 3]), np.uint8([128, 65, 5])), [0, 0, 243]),
    (lambda: jnp.power(jnp.array([2, -1], "int4"), jnp.array([2, -3], "int4")), [4, -1]),
    (lambda: jnp.round(2.5), 2.0), (lambda: jnp.round(1.234567, 3), 1.235),
    (lambda: jnp.round(jnp.float16([10.0, 0.5, INF]), 4), [10.0, 0.5, INF]),      # 10e4 is no float16
    (lambda: jnp.round(jnp.array([1e35, 1.26, -INF]), 5), [1e35, 1.26, -INF]), (lambda: jnp.round(1.26, 2**63), 1.26),
    (lambda: jnp.round(1250.0, -2), 1200.0),
    (lambda: jnp.nan_to_num(jnp.array([NAN, INF]), nan=7, posinf=8), [7.0, 8.0]),
])
def test_values_at_edges(found, wanted):
    np.testing.assert_allclose(np.asarray(found()), wanted, rtol=1e-6)


@pytest.mark.parametrize(("function", "point", "slopes"), [
    (jnp.logaddexp, (-INF, 0.0), (0.0, 1.0)), (jnp.logaddexp, (1.0, 1.0), (0.5, 0.5)),
    (jnp.logaddexp2, (1.0, 1.0), (0.5, 0.5)), (jnp.hypot, (3.0, 4.0), (0.6, 0.8)), (jnp.hypot, (0.0, 0.0), (0.5, 0.5)),
    (jnp.power, (0.0, 2.0), (0.0, 0.0)), (jnp.power, (0.0, 1.0), (1.0, 0.0)),
    (jnp.power, (2.0, 3.0), (12.0, 8 * np.log(2))), (jnp.remainder, (-7.0, 3.0), (1.0, 3.0)),
    (jnp.fmod, (-7.0, 3.0), (1.0, 2.0)), (jnp.floor_divide, (7.0, 3.0), (0.0, 0.0)), (jnp.fmax, (1.0, NAN), (1.0, 0.0)),
    (jnp.heaviside, (0.0, 0.5), (0.0, 1.0)), (lambda a, b: jnp.round(a, 400) + jnp.round(b, 2), (1.3, 2.0), (0.0, 0.0)), (lambda a, b: jnp.clip(a, b, 2.0), (1.0, 1.0), (0.5, 0.5)),
])
def test_slopes_at_edges(function, point, slopes):
    np.testing.assert_allclose(grad(function, (0, 1))(*point), slopes, rtol=1e-5)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: jnp.power(2, -1), TypeError, "Integers cannot be raised to negative powers"),
    (lambda: jnp.power(2, jnp.int8(-1)), TypeError, "Integers cannot be raised to negative powers"),
    (lambda: jnp.hypot(1j, 1), ValueError, "hypot is not well defined for complex"),
    (lambda: jnp.gcd(1.0, 2), ValueError, "must be integers"), (lambda: jnp.clip(1j, 0, 1), ValueError, "complex"),
    (lambda: jnp.round(jnp.arange(3), -1), NotImplementedError, "decimals < 0"),
])
def test_errors_name_the_function_and_the_fault(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_higher_derivatives_at_zero():
    functions = (
        jnp.sinc,
        grad(jnp.sinc),
        grad(grad(jnp.sinc)),
        jnp.i0,
        grad(jnp.i0),
        jnp.cbrt,
        grad(jnp.cbrt),
        lambda x: x**2,
        grad(lambda x: x**2),
        lambda x: x**0,
    )
    found = evaluated(lambda x: [grad(f)(x) for f in functions])(0.0)
    np.testing.assert_allclose(found, [0, -np.pi**2 / 3, 0, 0, 0.5, INF, -INF, 0, 2, 0], rtol=1e-5, atol=1e-6)
    assert grad(grad(jnp.logaddexp))(1.0, 1.0) == 0.25


def test_slopes_of_sinc_near_zero_do_not_cancel():
    x = np.float32([0, 1e-30, -1e-12, 1e-5, -1e-3, 0.05, 0.0999, 0.1001])
    angle = np.pi**2 * x.astype(float) ** 2
    second = jit(vmap(grad(grad(jnp.sinc))))(x)
    np.testing.assert_allclose(
        second, -(np.pi**2) * (1 / 3 - angle / 10 + angle**2 / 168 - angle**3 / 6480), 2e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_equal_operands_share_the_slope(dtype):
    x = jnp.array([1, -2], dtype)
    for function in (lax.max, lax.min, jnp.maximum, jnp.minimum):
        for slope in vjp(function, x, x)[1](jnp.ones_like(x)):
            np.testing.assert_array_equal(slope, [0.5, 0.5], function.__name__)
