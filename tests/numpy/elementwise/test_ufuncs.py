"""The elementwise functions of hlotrace.numpy: values against NumPy, dtypes, weak types, edges."""


import numpy as np
import pytest
from elementwise import ALL, NUMBER, REAL, SAMPLES, one_array_agrees, two_arrays_agree

import hlotrace.numpy as jnp
from hlotrace.api.autodiff import grad
from hlotrace.api.contexts import enable_x64
from hlotrace.api.jit import jit

INEXACT = ["exp", "exp2", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
           "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "log2", "log10", "reciprocal"]
UNARY = {
    **dict.fromkeys(INEXACT, ALL),
    **dict.fromkeys(["cbrt", "fabs", "deg2rad", "rad2deg", "radians", "degrees", "isposinf", "isneginf"], REAL),
    **dict.fromkeys(["floor", "ceil", "trunc", "fix"], ("float32", "bfloat16", "int8")),
    **dict.fromkeys(["negative", "positive", "square", "sign"], NUMBER),
    **dict.fromkeys(["abs", "absolute", "conjugate", "real", "imag", "isfinite", "isinf", "isnan", "isreal", "iscomplex",
                     "logical_not"], ALL),
    **dict.fromkeys(["invert", "bitwise_invert", "bitwise_not"], ("int8", "bool")), "bitwise_count": ("int8",),
}
BINARY = {
    **dict.fromkeys(["add", "multiply", "divide", "true_divide", "equal", "not_equal",
                     "logical_and", "logical_or", "logical_xor", "less",
                     "less_equal", "greater", "greater_equal", "maximum", "minimum"], ALL),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ("int8", "bool")),
    **dict.fromkeys(["left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift"], ("int8",)),
    "subtract": NUMBER, "arctan2": REAL, "nextafter": ("float32",),
}


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_one_array_agree_with_numpy(dtype):
    found = one_array_agrees(UNARY, dtype)
    for name in INEXACT:
        assert found[name].dtype == ("float32" if dtype in ("int8", "bool") else dtype), name
    for name in {"negative", "square", "sign", "floor", "trunc", "positive", "conjugate", "invert"} & found.keys():
        assert found[name].dtype == dtype, name


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_two_arrays_agree_with_numpy(dtype):
    two_arrays_agree(BINARY, dtype)


# --- dtypes -----------------------------------------------------------------------------------------------------

def array(dtype):
    return jnp.ones(2, dtype)


@pytest.mark.parametrize(("left", "right", "dtype", "weak"), [
    ("int8", "uint8", "int16", False), ("int8", "float32", "float32", False), ("int8", "bfloat16", "bfloat16", False),
    ("float16", "bfloat16", "float32", False), ("uint32", "int32", "int32", False), ("bool", "int8", "int8", False),
    ("float32", "complex64", "complex64", False), ("bool", "bool", "bool", False),
    ("int8", 1, "int8", False), ("int8", 1.5, "float32", True), ("bfloat16", 1, "bfloat16", False),
    ("bfloat16", 1.5, "bfloat16", False), ("float32", 1j, "complex64", False), ("bool", 1, "int32", True),
    ("uint8", -1, "uint8", False), (1, 2.5, "float32", True), (1, 2, "int32", True),
    ("float16", np.float32(1), "float32", False), ("int8", np.float64(1), "float32", False),
])
def test_addition_follows_the_promotion_lattice(left, right, dtype, weak):
    left, right = (array(x) if isinstance(x, str) else x for x in (left, right))
    for result in (jnp.add(left, right), jnp.add(right, left), jit(jnp.add)(left, right)):
        assert (result.dtype.name, result.weak_type) == (dtype, weak)


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda: jnp.divide(array("int8"), array("int8")), "float32"), (lambda: jnp.sin(array("int32")), "float32"),
    (lambda: jnp.square(array("bool")), "int32"), (lambda: jnp.abs(array("complex64")), "float32"),
    (lambda: jnp.abs(array("bool")), "bool"), (lambda: jnp.floor(array("int8")), "int8"),
    (lambda: jnp.add(array("bool"), array("bool")), "bool"),
    (lambda: jnp.left_shift(array("bool"), array("bool")), "int32"),
    (lambda: jnp.bitwise_count(array("int32")), "uint8"),
])
def test_result_dtypes(call, dtype):
    assert call().dtype == dtype


def test_python_integers_wrap_in_arithmetic_but_compare_exactly():
    x = jnp.arange(3, dtype="int8")
    assert (x + 300).tolist() == [44, 45, 46]
    assert jnp.less(x, 300).all() and not jnp.equal(x, 300).any() and jnp.greater(x, -2**40).all()
    assert (x < 2**70).all() and (-(2**70) < x).all()
    assert jit(lambda v: (v < 300, v > 300))(x)[0].all()


# --- values at edges --------------------------------------------------------------------------------------------

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(("found", "wanted"), [
    (lambda: jnp.maximum(NAN, 1.0), NAN), (lambda: jnp.log10(1000.0), 3.0),
])
def test_values_at_edges(found, wanted):
    np.testing.assert_allclose(np.asarray(found()), wanted, rtol=1e-6)


@pytest.mark.parametrize(("function", "point", "slopes"), [
    (jnp.maximum, (1.0, 1.0), (0.5, 0.5)), (jnp.arctan2, (1.0, 2.0), (0.4, -0.2)),
])
def test_slopes_at_edges(function, point, slopes):
    np.testing.assert_allclose(grad(function, (0, 1))(*point), slopes, rtol=1e-5)


# --- one compiled program, or one primitive ---------------------------------------------------------------------

def test_calls_are_traced_as_few_equations():
    from hlotrace.core.jaxpr_trace import trace_to_jaxpr
    avals = [jnp.ones((2, 3)).aval, jnp.ones((2, 3)).aval]

    row = jnp.ones(3)

    def names(fun):
        return [e.primitive.name for e in trace_to_jaxpr(lambda x, y: [fun(x, y)], avals).eqns]
    assert names(jnp.add) == ["add"]
    assert names(lambda x, y: 2 * x + 1) == ["mul", "add"]
    assert names(lambda x, y: x**2) == ["integer_pow"]
    assert names(lambda x, y: jnp.where(x < y, x, y)) == ["lt", "select_n"]
    assert names(lambda x, y: x + row) == ["broadcast_in_dim", "add"]


# --- errors -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "error", "words"), [

    (lambda: jnp.add([1, 2], 3), TypeError, "add requires ndarray or scalar arguments, got <class 'list'> at position 0"),
    (lambda: jnp.sin("a"), TypeError, "sin"), (lambda: jnp.add(jnp.ones(2), None), TypeError, "NoneType"),
    (lambda: jnp.add(jnp.ones(2), jnp.ones(3)), ValueError, "Incompatible shapes"),
    (lambda: jnp.subtract(True, True), TypeError, "sub does not accept dtype bool"),
    (lambda: jnp.invert(1.0), TypeError, "not does not accept dtype float32"),
    (lambda: jnp.add(array("int4"), array("int8")), ValueError, "no available implicit dtype promotion path"),
])
def test_errors_name_the_function_and_the_fault(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_special_values_of_the_array_api_standard():
    inf, nan, pi = np.inf, np.nan, np.pi
    cases = [   # function, (argument, result) as pairs of a real and an imaginary part
        (jnp.exp, [((-inf, inf), (0, 0)), ((-inf, nan), (0, 0)), ((inf, inf), (inf, nan)), ((inf, nan), (inf, nan))]),
        (jnp.expm1, [((-inf, inf), (-1, 0)), ((-inf, nan), (-1, 0)), ((inf, inf), (inf, nan)), ((inf, nan), (inf, nan))]),
        (jnp.log, [((inf, nan), (inf, nan)), ((nan, inf), (inf, nan)), ((0, nan), (nan, nan))]),
        (jnp.log1p, [((-inf, nan), (inf, nan)), ((nan, inf), (inf, nan))]),
        (jnp.sqrt, [((-inf, nan), (nan, inf)), ((inf, nan), (inf, nan)), ((1, nan), (nan, nan))]),
        (jnp.sinh, [((0, inf), (0, nan)), ((-0.0, nan), (-0.0, nan)), ((-inf, inf), (-inf, nan)), ((inf, nan), (inf, nan))]),
        (jnp.cosh, [((0, inf), (nan, 0)), ((0, nan), (nan, 0)), ((-inf, inf), (inf, nan)), ((inf, nan), (inf, nan))]),
        (jnp.tanh, [((0, inf), (0, nan)), ((-0.0, nan), (-0.0, nan)), ((1, nan), (nan, nan))]),
        (jnp.acos, [((0, nan), (pi / 2, nan)), ((1, nan), (nan, nan))]), (jnp.acosh, [((0, nan), (nan, pi / 2))]),
        (jnp.asinh, [((nan, 0), (nan, 0)), ((nan, 1), (nan, nan))]),
        (jnp.atanh, [((0, nan), (0, nan)), ((1, nan), (nan, nan)), ((inf, nan), (0, nan)), ((nan, 1), (nan, nan))]),
    ]
    z = [np.array([complex(*x) for x, _ in pairs], np.complex64) for _, pairs in cases]
    found = jit(lambda z: [function(x) for (function, _), x in zip(cases, z)])(z)
    for (function, pairs), out in zip(cases, found):
        expected = np.array([complex(*y) for _, y in pairs])
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(out, part), getattr(expected, part), 1e-6, err_msg=function.__name__)
            known = ~np.isnan(getattr(expected, part))
            np.testing.assert_array_equal(*(np.signbit(getattr(v, part))[known] for v in (out, expected)))
    x1 = np.array([-0.0, 0, inf, -inf, inf, 1, -1, 1, -4, 4, -7], np.float32)
    x2 = np.array([1, -1, 2, 2, -2, inf, inf, -inf, 2, -2, 2], np.float32)
    quotient, rest = jit(lambda x1, x2: (jnp.floor_divide(x1, x2), jnp.remainder(x1, x2)))(x1, x2)
    for out, expected in ((quotient, [-0.0, -0.0, inf, -inf, -inf, 0, -0.0, -0.0, -2, -2, -4]),
                          (rest, [0, -0.0, nan, nan, nan, 1, inf, -inf, 0, -0.0, 1])):
        np.testing.assert_array_equal(out, np.array(expected, np.float32))
        np.testing.assert_array_equal(np.signbit(out)[~np.isnan(expected)], np.signbit(expected)[~np.isnan(expected)])
    assert str(jnp.sign(jnp.array(complex(-0.0, -0.0)))) == "0j"
    assert grad(lambda x: jnp.remainder(x, 2.0))(-4.0) == 1 and grad(jnp.remainder, 1)(5.0, 2.5) == -2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_functions_near_the_axes(dtype):
    """Of numbers of all sizes, against NumPy's long double: errors in units of the last place of each part."""
    rng, n, info = np.random.default_rng(0), 4000, np.finfo(dtype)
    parts = rng.normal(size=(2, n)) * 10 ** rng.uniform(-12, 1.2, (2, n))
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    a, b = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    wanted = {name: getattr(np, name)(a + 1j * b) for name in ("sin", "cos", "sinh", "cosh", "exp", "square")}
    expm1 = np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2, wanted["exp"].imag
    with enable_x64(dtype == "complex128"):
        found, (real, imag) = jit(lambda z: ({name: getattr(jnp, name)(z) for name in wanted},
                                             (jnp.expm1(z).real, jnp.expm1(z).imag)))(z)
    for name, want in wanted.items():
        for g, w in (found[name].real, want.real), (found[name].imag, want.imag):
            np.testing.assert_allclose(g, w, rtol=16 * info.eps, atol=info.tiny, err_msg=name)
    np.testing.assert_allclose(imag, expm1[1], rtol=16 * info.eps, atol=info.tiny)
    np.testing.assert_allclose(real, expm1[0], rtol=1e4 * info.eps)
