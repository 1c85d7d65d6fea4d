"""The elementwise functions of hlotrace.numpy: values against NumPy, dtypes, weak types, edges, ufunc methods."""

import inspect
import pickle

import ml_dtypes
import numpy as np
import pytest

import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.api.autodiff import grad
from hlotrace.api.jit import jit
from hlotrace.api.vmap import vmap

FLOAT = np.array([-2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 3.0])
SAMPLES = {
    "float32": FLOAT.astype("float32"),
    "bfloat16": FLOAT.astype(ml_dtypes.bfloat16),
    "int8": np.array([-3, -1, 0, 1, 2, 7], "int8"),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j, -0.5 + 0.25j, 0.3 - 1j, 2j], "complex64"),
}
TOLERANCE = {"float32": 2e-6, "bfloat16": 2e-2, "int8": 2e-6, "bool": 2e-6, "complex64": 2e-5}
REAL, ALL = ("float32", "bfloat16", "int8", "bool"), tuple(SAMPLES)
NUMBER = ("float32", "bfloat16", "int8", "complex64")

INEXACT = ["exp", "exp2", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
           "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "log2", "log10", "sinc", "reciprocal"]
UNARY = {
    **dict.fromkeys(INEXACT, ALL),
    **dict.fromkeys(["cbrt", "fabs", "i0", "deg2rad", "rad2deg", "signbit", "isposinf", "isneginf"], REAL),
    **dict.fromkeys(["floor", "ceil", "trunc", "rint"], ("float32", "bfloat16", "int8")),
    **dict.fromkeys(["negative", "positive", "square", "sign"], NUMBER),
    **dict.fromkeys(["abs", "conjugate", "real", "imag", "isfinite", "isinf", "isnan", "isreal",
                     "iscomplex", "logical_not", "angle", "nan_to_num"], ALL),
    **dict.fromkeys(["invert"], ("int8", "bool")),
    "bitwise_count": ("int8",), "modf": REAL, "frexp": REAL, "round": NUMBER,
}
BINARY = {
    **dict.fromkeys(["add", "multiply", "divide", "equal", "not_equal", "logical_and", "logical_or", "logical_xor",
                     "isclose"], ALL),
    **dict.fromkeys(["subtract"], NUMBER),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin"], ALL),
    **dict.fromkeys(["arctan2", "hypot", "logaddexp", "logaddexp2", "heaviside", "copysign"], REAL),
    **dict.fromkeys(["floor_divide", "remainder", "fmod", "divmod"], ("float32", "int8")),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ("int8", "bool")),
    **dict.fromkeys(["gcd", "lcm", "left_shift", "right_shift"], ("int8",)),
    "nextafter": ("float32",), "power": ("float32", "complex64"), "float_power": ("float32",), "ldexp": (),
}


WIDE = {"bfloat16": "float64", "complex64": "complex128", "float32": "float64"}


def reference(name, found, *args):
    """What NumPy gives: computed in double precision, but for integers that stay integers."""
    if name == "sign" and np.iscomplexobj(args[0]):
        return args[0] / np.abs(args[0])
    dtype = args[0].dtype.name
    if name != "nextafter":
        first = found[0] if isinstance(found, tuple) else found
        floats = dtype in WIDE or jnp.issubdtype(first.dtype, jnp.inexact) or name in ("signbit", "isposinf", "isneginf")
        args = [a.astype(WIDE.get(dtype, "float64") if floats else dtype) for a in args]
    with np.errstate(all="ignore"):
        return getattr(np, name)(*args)


def check(name, dtype, found, wanted):
    for f, w in zip(found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)):
        f, w = np.asarray(f), np.asarray(w)
        f = f.astype("float64") if f.dtype == ml_dtypes.bfloat16 else f
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(f, w, rtol=tolerance, atol=tolerance, err_msg=f"{name} of {dtype}")


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_one_array_agree_with_numpy(dtype):
    names = [n for n, dtypes in UNARY.items() if dtype in dtypes]
    x = SAMPLES[dtype]
    found = jit(lambda x: {n: getattr(jnp, n)(x) for n in names})(x)
    for name in names:
        check(name, dtype, found[name], reference(name, found[name], x))
        if name in INEXACT:
            assert found[name].dtype == ("float32" if dtype in ("int8", "bool") else x.dtype), name
        if name in ("negative", "square", "sign", "floor", "trunc", "positive", "conjugate", "invert"):
            assert found[name].dtype == x.dtype, name


@pytest.mark.parametrize("dtype", SAMPLES)
def test_functions_of_two_arrays_agree_with_numpy(dtype):
    names = [n for n, dtypes in BINARY.items() if dtype in dtypes]
    a = SAMPLES[dtype]
    x, y = a[:, None], a[a != 0]
    shifts = np.abs(y) % 8 if dtype == "int8" else y
    found = jit(lambda x, y, s: {n: getattr(jnp, n)(x, s if "shift" in n else y) for n in names})(x, y, shifts)
    for name in names:
        second = shifts if "shift" in name else y
        check(name, dtype, found[name], reference(name, found[name], *np.broadcast_arrays(x, second)))


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
    (lambda: jnp.power(array("bool"), 2), "int32"), (lambda: jnp.power(array("int8"), 2), "int8"),
    (lambda: jnp.power(array("bfloat16"), array("int8")), "bfloat16"), (lambda: jnp.square(array("bool")), "int32"),
    (lambda: jnp.floor_divide(array("bool"), True), "int32"), (lambda: jnp.abs(array("complex64")), "float32"),
    (lambda: jnp.abs(array("bool")), "bool"), (lambda: jnp.floor(array("int8")), "int8"),
    (lambda: jnp.rint(array("int8")), "float32"), (lambda: jnp.add(array("bool"), array("bool")), "bool"),
    (lambda: jnp.left_shift(array("bool"), array("bool")), "int32"),
    (lambda: jnp.bitwise_count(array("int32")), "uint8"),
    (lambda: jnp.where(array("int32"), array("int8"), 2), "int8"), (lambda: jnp.where(True, 1, 2.0), "float32"),
    (lambda: jnp.clip(array("int8"), -300, 300), "int8"), (lambda: jnp.clip(array("int8"), 0.5), "float32"),
    (lambda: jnp.frexp(array("bfloat16"))[1], "int32"), (lambda: jnp.angle(array("int8")), "float32"),
])
def test_result_dtypes(call, dtype):
    assert call().dtype == dtype


def test_python_integers_wrap_in_arithmetic_but_compare_exactly():
    x = jnp.arange(3, dtype="int8")
    assert (x + 300).tolist() == [44, 45, 46]
    assert jnp.less(x, 300).all() and not jnp.equal(x, 300).any() and jnp.greater(x, -2**40).all()
    assert (x < 2**70).all() and (-(2**70) < x).all()
    assert jit(lambda v: (v < 300, v > 300))(x)[0].all()


def test_the_sign_of_zero_survives_as_a_constant():
    assert np.signbit(np.asarray(jnp.copysign(1.0, -0.0))) and not np.signbit(np.asarray(jnp.copysign(1.0, 0.0)))
    for dtype in ("float32", "bfloat16"):
        x = jit(lambda x: (x * 0.0, x * -0.0))(array(dtype))
        assert [bool(jnp.signbit(v).any()) for v in x] == [False, True]


# --- values at edges --------------------------------------------------------------------------------------------

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(("found", "wanted"), [
    (lambda: jnp.sinc(0.0), 1.0), (lambda: jnp.logaddexp(-INF, -INF), -INF), (lambda: jnp.logaddexp(INF, -INF), INF),
    (lambda: jnp.logaddexp(INF, INF), INF), (lambda: jnp.hypot(0.0, 0.0), 0.0), (lambda: jnp.hypot(NAN, INF), INF),
    (lambda: jnp.hypot(3e30, 4e30), 5e30), (lambda: jnp.remainder(-1.0, INF), INF), (lambda: jnp.remainder(7, 0), 0),
    (lambda: jnp.floor_divide(1.0, 0.0), INF), (lambda: jnp.maximum(NAN, 1.0), NAN), (lambda: jnp.fmax(NAN, 1.0), 1.0),
    (lambda: jnp.heaviside(NAN, 0.5), NAN), (lambda: jnp.clip(NAN, 0, 1), NAN), (lambda: jnp.power(0, 0), 1),
    (lambda: jnp.power(jnp.array(2), jnp.array(-1)), 0), (lambda: jnp.modf(-INF)[0], -0.0),
    (lambda: jnp.ldexp(1.0, 200), INF), (lambda: jnp.ldexp(np.float32(2.0**100), -140), 2.0**-40),
    (lambda: jnp.frexp(np.float32(1e-40))[1], -132), (lambda: jnp.gcd(0, 0), 0), (lambda: jnp.lcm(0, 4), 0),
    (lambda: jnp.spacing(1.0), 2.0**-23), (lambda: jnp.round(2.5), 2.0), (lambda: jnp.round(1.234567, 3), 1.235),
    (lambda: jnp.isclose(INF, INF), True), (lambda: jnp.allclose(NAN, NAN, equal_nan=True), True),
    (lambda: jnp.array_equal(array("int8"), jnp.ones(3)), False), (lambda: jnp.array_equal([1, 2], jnp.array([1, 2])),
                                                                   True),
    (lambda: jnp.array_equiv(array("int8"), 1), True), (lambda: jnp.array_equiv(jnp.ones(2), jnp.ones(3)), False),
    (lambda: jnp.log10(1000.0), 3.0), (lambda: jnp.nan_to_num(jnp.array([NAN, INF]), nan=7, posinf=8), [7.0, 8.0]),
])
def test_values_at_edges(found, wanted):
    np.testing.assert_allclose(np.asarray(found()), wanted, rtol=1e-6)


@pytest.mark.parametrize(("function", "point", "slopes"), [
    (jnp.logaddexp, (-INF, 0.0), (0.0, 1.0)), (jnp.logaddexp, (1.0, 1.0), (0.5, 0.5)),
    (jnp.logaddexp2, (1.0, 1.0), (0.5, 0.5)), (jnp.hypot, (3.0, 4.0), (0.6, 0.8)), (jnp.hypot, (0.0, 0.0), (0.5, 0.5)),
    (jnp.maximum, (1.0, 1.0), (0.5, 0.5)), (jnp.power, (0.0, 2.0), (0.0, 0.0)), (jnp.power, (0.0, 1.0), (1.0, 0.0)),
    (jnp.power, (2.0, 3.0), (12.0, 8 * np.log(2))), (jnp.remainder, (-7.0, 3.0), (1.0, 3.0)),
    (jnp.fmod, (-7.0, 3.0), (1.0, 2.0)), (jnp.floor_divide, (7.0, 3.0), (0.0, 0.0)),
    (jnp.fmax, (1.0, NAN), (1.0, 0.0)), (jnp.copysign, (1.0, -2.0), (-1.0, 0.0)),
    (jnp.heaviside, (0.0, 0.5), (0.0, 1.0)), (lambda a, b: jnp.clip(a, b, 2.0), (1.0, 1.0), (0.5, 0.5)),
    (lambda a, b: jnp.where(a > 0, a, b), (0.0, 1.0), (0.0, 1.0)), (lambda a, b: jnp.modf(a)[0] * b, (1.5, 2.0), (2.0, 0.5)),
    (lambda a, b: jnp.ldexp(a, 3) + b, (1.5, 0.0), (8.0, 1.0)), (jnp.arctan2, (1.0, 2.0), (0.4, -0.2)),
])
def test_slopes_at_edges(function, point, slopes):
    np.testing.assert_allclose(grad(function, (0, 1))(*point), slopes, rtol=1e-5)


def test_higher_derivatives_at_zero():
    found = [grad(f)(0.0) for f in (jnp.sinc, grad(jnp.sinc), grad(grad(jnp.sinc)), jnp.i0, grad(jnp.i0), jnp.cbrt,
                                    lambda x: x**2, grad(lambda x: x**2), lambda x: x**0)]
    np.testing.assert_allclose(found, [0, -np.pi**2 / 3, 0, 0, 0.5, INF, 0, 2, 0], rtol=1e-5, atol=1e-6)
    assert grad(grad(jnp.logaddexp))(1.0, 1.0) == 0.25


# --- where ------------------------------------------------------------------------------------------------------

def test_where():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jnp.where(x > 2, x, -1), np.where(np.asarray(x) > 2, x, -1))
    np.testing.assert_array_equal(jnp.where(jnp.array([1, 0, 2]), x, jnp.zeros((2, 1))), np.asarray(x) * [1, 0, 1])
    assert [i.tolist() for i in jnp.where(x > 3)] == [[1, 1], [1, 2]]
    np.testing.assert_array_equal(vmap(lambda row: jnp.where(row[0] > 1, row, 0))(x), [[0, 0, 0], [3, 4, 5]])
    with pytest.raises(TypeError, match="where requires ndarray"):
        jnp.where(x > 0, x, [1.0])
    with pytest.raises(ValueError, match="size and fill_value"):
        jnp.where(x > 0, x, x, size=2)


# --- one compiled program, or one primitive ---------------------------------------------------------------------

def test_calls_are_traced_as_few_equations():
    from hlotrace.core.trace import trace_to_jaxpr
    avals = [jnp.ones((2, 3)).aval, jnp.ones((2, 3)).aval]

    row = jnp.ones(3)

    def names(fun):
        return [e.primitive.name for e in trace_to_jaxpr(lambda x, y: [fun(x, y)], avals).eqns]
    assert names(jnp.add) == ["add"]
    assert names(lambda x, y: 2 * x + 1) == ["mul", "add"]
    assert names(lambda x, y: x**2) == ["integer_pow"]
    assert names(lambda x, y: jnp.where(x < y, x, y)) == ["lt", "select_n"]
    assert names(lambda x, y: x + row) == ["broadcast_in_dim", "add"]


# --- ufunc objects ----------------------------------------------------------------------------------------------

def test_ufunc_methods_agree_with_numpy():
    x = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 1.5]], "float32")
    i = np.array([[6, 3, 5], [2, 7, 1]], "int32")
    calls = {
        "reduce": lambda n, f, a: (f.reduce(a), f.reduce(a, axis=None), f.reduce(a, axis=1, keepdims=True)),
        "accumulate": lambda n, f, a: (f.accumulate(a), f.accumulate(a, axis=1)),
        "outer": lambda n, f, a: f.outer(a[0], a),
        "reduceat": lambda n, f, a: f.reduceat(a, np.array([0, 2, 1]), axis=1),
    }
    for name, a in [("add", x), ("subtract", x), ("multiply", x), ("maximum", x), ("logaddexp", x), ("bitwise_xor", i),
                    ("gcd", i), ("logical_and", x > 1)]:
        for method, call in calls.items():
            if (name, method) == ("subtract", "reduce"):
                call = lambda n, f, a: (f.reduce(a), f.reduce(a, axis=1))    # NumPy has no order for two axes
            found, wanted = call(name, getattr(jnp, name), a), call(name, getattr(np, name), a)
            for f, w in zip(found, wanted, strict=True):
                np.testing.assert_allclose(f, w, rtol=1e-5, err_msg=f"{name}.{method}")
    assert jnp.add.reduce(jnp.ones(3), initial=5.0, where=np.array([True, False, True])) == 7
    assert jnp.logaddexp.reduce(jnp.ones(0)) == -INF
    with pytest.raises(ValueError, match="zero-size"):
        jnp.subtract.reduce(jnp.ones(0))
    with pytest.raises(ValueError, match="only supported for binary"):
        jnp.sin.reduce(x)


def test_ufunc_at_gives_an_updated_copy():
    x = jnp.array([5, 3, 4])
    for name in ("add", "subtract", "maximum", "bitwise_xor"):
        wanted = np.array([5, 3, 4])
        getattr(np, name).at(wanted, [0, 0, 2], [1, 7, 2])
        found = getattr(jnp, name).at(x, jnp.array([0, 0, 2]), jnp.array([1, 7, 2]), inplace=False)
        assert found.tolist() == wanted.tolist(), name
    assert jnp.negative.at(x, 1, inplace=False).tolist() == [5, -3, 4]
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(x, 0, 1)


def test_ufunc_objects():
    assert isinstance(jnp.add, jnp.ufunc) and (jnp.add.nin, jnp.add.nout, jnp.add.identity) == (2, 1, 0)
    assert repr(jnp.add) == "<jnp.ufunc 'add'>" and jnp.add.__name__ == "add" and jnp.add.__doc__
    assert pickle.loads(pickle.dumps(jnp.hypot)) is jnp.hypot
    assert list(inspect.signature(jnp.sin).parameters)[0] == "x"
    with pytest.raises(NotImplementedError, match="out argument of add"):
        jnp.add(1, 2, out=jnp.ones(()))
    multiply_add = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=0)
    x = jnp.arange(3.0)
    assert multiply_add(x[:, None], x).shape == (3, 3) and multiply_add.reduce(x) == 5


def test_vectorize():
    x = jnp.arange(6.0).reshape(2, 3)
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    np.testing.assert_allclose(dot(x, x), [5, 50])
    np.testing.assert_allclose(dot(x[:, None], x), [[5, 14], [14, 50]])
    scaled = jnp.vectorize(lambda v, kind, scale: v * scale if kind == "mul" else v, excluded={1})
    np.testing.assert_allclose(scaled(x, "mul", jnp.array([[2.0], [3.0]])), np.asarray(x) * [[2], [3]])
    high, low = jnp.vectorize(lambda a, b: (jnp.maximum(a, b), jnp.minimum(a, b)))(x, 2.0)
    assert high.min() == 2 and low.max() == 2
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n'"):
        dot(x, jnp.ones(4))
    with pytest.raises(ValueError, match="does not match core dimensions"):
        jnp.vectorize(lambda a: a, signature="(n)->()")(x)
    with pytest.raises(TypeError, match="wrong number of positional arguments"):
        dot(x)
    with pytest.raises(ValueError, match="not a valid gufunc signature"):
        jnp.vectorize(jnp.dot, signature="n,n->")


# --- errors -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: jnp.add([1, 2], 3), TypeError, "add requires ndarray or scalar arguments, got <class 'list'> at position 0"),
    (lambda: jnp.sin("a"), TypeError, "sin"), (lambda: jnp.add(jnp.ones(2), None), TypeError, "NoneType"),
    (lambda: jnp.add(jnp.ones(2), jnp.ones(3)), ValueError, "Incompatible shapes"),
    (lambda: jnp.subtract(True, True), TypeError, "sub does not accept dtype bool"),
    (lambda: jnp.invert(1.0), TypeError, "not does not accept dtype f32"),
    (lambda: jnp.power(2, -1), TypeError, "Integers cannot be raised to negative powers"),
    (lambda: jnp.hypot(1j, 1), TypeError, "hypot does not accept dtype complex64"),
    (lambda: jnp.gcd(1.0, 2), ValueError, "must be integers"), (lambda: jnp.clip(1j, 0, 1), ValueError, "complex"),
    (lambda: jnp.round(jnp.arange(3), -1), NotImplementedError, "decimals < 0"),
    (lambda: jnp.add(array("int4"), array("int8")), ValueError, "no available implicit dtype promotion path"),
    (lambda: lax.add(jnp.ones(2), jnp.ones(2, "int8")), TypeError, "same dtypes, got float32, int8"),
    (lambda: lax.add(jnp.ones(2), jnp.ones(3)), TypeError, "incompatible shapes"),
    (lambda: lax.exp(1), TypeError, "exp does not accept dtype i32"), (lambda: lax.sin([1.0]), TypeError, "argument 0"),
    (lambda: lax.clamp(0, jnp.ones(2, "int8"), 1.5), TypeError, "clamp: max has dtype"),
    (lambda: lax.integer_pow(2, -1), TypeError, "negative powers"),
    (lambda: lax.stop_gradient({"a": "text"}), TypeError, "not a valid JAX type"),
])
def test_errors_name_the_function_and_the_fault(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- lax --------------------------------------------------------------------------------------------------------

def test_lax_operands():
    x = jnp.array([1.0, 2.0, 3.0])
    assert lax.add(x, 1.5).dtype == "float32" and lax.mul(2, array("bfloat16")).dtype == "bfloat16"
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


def test_stop_gradient():
    assert grad(lambda x: x * lax.stop_gradient(x))(3.0) == 3
    assert grad(lambda x: lax.stop_gradient({"a": x, "n": 1})["a"])(3.0) == 0
