"""float32, int8, ... as objects, and questions about dtypes."""
import dataclasses
import re
import warnings

import ml_dtypes
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core import dtypes


def test_dtype_objects():
    assert jnp.float32(1.5).dtype == np.float32 and jnp.int8([1, 2]).shape == (2,)
    assert np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16 and np.zeros(1, jnp.int32).dtype == np.int32
    assert jnp.float32 == np.float32 and np.float32 == jnp.float32 and jnp.float32 == np.dtype("float32")
    assert jnp.float32 != np.float64 and jnp.float32 != jnp.bfloat16 and jnp.float32 != "float32"
    assert {np.float32: 1}[jnp.float32] == 1 and isinstance(jnp.float32, type)
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(1.0, jnp.float32)
    assert jnp.int_ is jnp.int64 and jnp.uint is jnp.uint64 and jnp.complex_ is jnp.complex128
    with pytest.warns(UserWarning, match="dtype float64 requested in .* is not available"):
        assert jnp.zeros(1, jnp.float_).dtype == np.float32
    assert repr(jnp.int4) == "<class 'hlotrace.numpy.int4'>" and jnp.int4(3).dtype == ml_dtypes.int4
    assert jnp.finfo(jnp.bfloat16).eps == 0.0078125 and jnp.iinfo("int4").max == 7
    with pytest.warns(UserWarning, match="dtype float64 requested in .*array is not available"):
        assert jnp.float64(1).dtype == np.float32
    with pytest.raises(OverflowError):
        jnp.int8(300)


def test_scalar_types_can_be_subclassed():
    class Step(jnp.int8):
        FIRST = jnp.asarray(0, jnp.int8)

    assert Step == jnp.int8 and issubclass(Step, jnp.int8) and Step.__name__ == "Step" and Step.FIRST == 0
    assert np.dtype(Step) == np.int8 and Step(3).dtype == np.int8 and jnp.zeros(2, Step).dtype == np.int8


def test_scalar_types_are_classes():
    """Those of jax.dtypes are of NumPy scalars; those of jax.numpy make arrays, and know NumPy scalars of their dtype."""
    assert jax.dtypes.bfloat16 is ml_dtypes.bfloat16 and isinstance(jax.dtypes.bfloat16(1.5), jax.dtypes.bfloat16)
    for name in [n for n in jax.numpy.__all__ if type(getattr(jnp, n)).__name__ == "_ScalarMeta"]:
        kind = getattr(jnp, name)
        scalar = kind.dtype.type(1)
        assert isinstance(kind, type) and isinstance(scalar, kind) and np.asarray(scalar).dtype == kind
        assert not isinstance(1.0, kind) and np.dtype(kind) == kind.dtype and jnp.issubdtype(kind, kind.dtype.type)
    assert isinstance(jax.dtypes.bfloat16(1), jnp.bfloat16) and not isinstance(np.float32(1), jnp.bfloat16)
    assert all(isinstance(kind, type) for kind in (jnp.finfo, jnp.iinfo, jax.dtypes.prng_key, jax.dtypes.extended))


@pytest.mark.parametrize(("dtype", "bits"), [("int4", 4), (jnp.int2, 2), ("bool", 8), ("uint8", 8), (jnp.bfloat16, 16),
                                             ("float8_e4m3fn", 8), ("float4_e2m1fn", 4), ("complex64", 64), ("float64", 64),
                                             (float, 64), (complex, 128)])
def test_bits_of_an_element(dtype, bits):
    assert jax.dtypes.itemsize_bits(dtype) == bits


@pytest.mark.parametrize(("value", "kind"), [
    (1, int), (2.0, float), (True, bool), (1j, complex), (jnp.bfloat16(1), float), (np.int8(1), int),
    (jnp.ones(2, bool), bool), (jnp.uint8(1), int), (jnp.ones(1, "complex64"), complex)])
def test_the_python_type_of_a_kind(value, kind):
    assert jax.dtypes.scalar_type_of(value) is kind
    for wrong in "a", jax.random.key(0):
        with pytest.raises(TypeError, match="no Python type holds values of dtype"):
            jax.dtypes.scalar_type_of(wrong)


def test_questions_about_dtypes():
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and jnp.issubdtype("int4", jnp.integer)
    assert jnp.issubdtype(np.floating, np.inexact) and not jnp.issubdtype(np.inexact, np.floating)
    assert jnp.issubdtype(jnp.ones(1), jnp.float32) and not jnp.issubdtype(jnp.float32, float)
    assert jnp.issubdtype(None, jnp.floating) and not jax.dtypes.issubdtype(None, jax.dtypes.prng_key)      # float64
    for kind in (int, float, complex):      # of 64 bits, whatever arrays have
        assert jax.dtypes.issubdtype(kind, kind) and jax.dtypes.issubdtype(kind, np.dtype(kind))
        assert not jax.dtypes.issubdtype(kind, jnp.ones(1, kind).dtype) and not jnp.issubdtype(jnp.ones(1, kind), kind)
    assert jax.dtypes.issubdtype(np.integer, np.number) and not jax.dtypes.issubdtype(np.integer, "int32")
    for a, b, wanted in [("int32", "float64", "float64"), ("int8", "bfloat16", "bfloat16"), (int, "int8", "int8"),
                         ("uint8", float, "float64"), ("float16", "bfloat16", "float32"), ("int64", "float32", "float32"),
                         ("int8", complex, "complex128"), (int, int, "int64"), (int, None, "float64")]:
        assert jnp.promote_types(a, b) == np.dtype(wanted)
    assert jnp.result_type(1, 2.0) == jnp.result_type("int8", float) == np.float32
    assert jnp.result_type(jnp.ones(1), jnp.ones(1, jnp.bfloat16), 1) == np.float32
    assert jnp.can_cast("int8", jnp.bfloat16) and not jnp.can_cast("float32", "int8")
    assert jnp.can_cast(int, float) and not jnp.can_cast(float, jnp.float32) and jnp.can_cast(bool, jnp.int4)
    assert jnp.isdtype(jnp.bfloat16, "real floating") and jnp.isdtype("int8", ("bool", "integral"))
    assert jnp.isdtype(jnp.int4, "signed integer") and not jnp.isdtype("int8", jnp.int16)
    with pytest.raises(ValueError, match="Unrecognized kind"):
        jnp.isdtype("int8", "foo")
    with pytest.raises(TypeError, match="Expected kind"):
        jnp.isdtype("int8", np.integer)


# --- names that stand for others, and the narrow types ------------------------------------------------------------------

@pytest.mark.parametrize("name", ["character", "complexfloating", "flexible", "generic", "object_", "signedinteger",
                                  "unsignedinteger"])
def test_abstract_types_are_those_of_numpy(name):
    assert getattr(jnp, name) is getattr(np, name)
    assert jnp.issubdtype(jnp.float32, jnp.generic) and not jnp.issubdtype(jnp.float32, jnp.flexible)
    assert jnp.issubdtype("uint8", jnp.unsignedinteger) and not jnp.issubdtype("uint8", jnp.signedinteger)


@pytest.mark.parametrize(("name", "dtype", "wide"), [
    ("uint", "uint32", "uint64"), ("complex_", "complex64", "complex128"), ("csingle", "complex64", "complex64"),
    ("cdouble", "complex64", "complex128")])
def test_old_names_of_types(name, dtype, wide):
    with jax.enable_x64(True):
        assert jnp.zeros(1, getattr(jnp, name)).dtype == wide
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype")      # that of cdouble is not there
        assert jnp.zeros(1, getattr(jnp, name)).dtype == dtype


NARROW = {
    **dict.fromkeys(["float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                     "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"],
                    np.array([0, -0.0, 1, -1.5, 3, 0.3, 448, 1e-3, -57, np.inf, np.nan], np.float32)),
    **dict.fromkeys(["int2", "uint2", "int4", "uint4"], np.arange(-5, 6, dtype=np.int32)),
}


@pytest.mark.parametrize("name", NARROW)
def test_narrow_types_hold_what_ml_dtypes_says(name):
    """Rounded on the way in, exact on the way out, compiled or not, and as constants of a program."""
    x, dtype = NARROW[name], np.dtype(getattr(ml_dtypes, name))
    want = x.astype(dtype)
    wide = want.astype(x.dtype)
    assert np.dtype(getattr(jnp, name)) == dtype
    for got in (jnp.asarray(x).astype(getattr(jnp, name)), jax.jit(lambda x: x.astype(dtype))(x), jax.jit(lambda: want)()):
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got).view(np.uint8), want.view(np.uint8))
        np.testing.assert_array_equal(got.astype(x.dtype), wide)
    assert jnp.zeros((0, 2), dtype).astype(np.float32).shape == (0, 2)


INTEGERS = ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_that_does_not_fit_says_what_the_dtype_holds(name):
    info, kind = jnp.iinfo(name), getattr(jnp, name)
    for value in (int(info.max) + 1, int(info.min) - 1, 2**40, -2**70):
        words = re.escape(f"Python int {value} is too large to convert to {name}, which holds {info.min} to {info.max};")
        for make in (kind, lambda v: jnp.array(v, kind), lambda v: jnp.asarray([0, [v][0]], kind), lambda v: kind([[v]])):
            for f in (make, lambda v, make=make: jax.jit(lambda: make(v))()):
                with pytest.raises(OverflowError, match=words):
                    f(value)
    for value in (int(info.max), int(info.min)):
        assert int(kind(value)) == int(kind([value])[0]) == value


def test_a_float_that_does_not_fit_an_integer_dtype_is_an_error_too():
    with pytest.raises(OverflowError, match=r"-1.0 is too large to convert to uint32, which holds 0 to 4294967295"):
        jnp.uint32(-1.)
    with pytest.raises(OverflowError, match="is too large to convert to float32"):
        jnp.float32([1., 10**400])
    with pytest.raises(ValueError, match="NaN"):
        jnp.uint8(float("nan"))


def test_dtypes_that_have_a_name_only():
    for dtype, bits in (jnp.int1, 1), (jnp.uint1, 1), (jnp.float6_e2m3fn, 6), (jnp.float6_e3m2fn, 6):
        kind = jnp.floating if bits == 6 else jnp.integer
        assert (jnp.finfo if bits == 6 else jnp.iinfo)(dtype).bits == bits and jnp.issubdtype(dtype, kind)
        with pytest.raises(TypeError, match=dtype.dtype.name):
            jnp.zeros(2, dtype)
        with pytest.raises(TypeError, match=dtype.dtype.name):
            jnp.promote_types(dtype, jnp.float32)


class _LargestRules:
    """Numbers of which a derivative takes the largest where it would take the sum."""
    physical_element_aval = staticmethod(lambda dtype: jax.core.ShapedArray((), dtype.of))
    convert_from = staticmethod(lambda source, target: source.of == target)
    convert_to = staticmethod(lambda source, target: target.of == source)
    tangent_dtype = staticmethod(lambda dtype: dtype)
    zero = staticmethod(lambda dtype: lax.convert_element_type(np.array(-np.inf, dtype.of), dtype))
    full = staticmethod(lambda shape, value, dtype: lax.convert_element_type(lax.full(shape, value, dtype.of), dtype))

    @staticmethod
    def add(dtype, x, y):
        return lax.convert_element_type(jnp.maximum(*(lax.convert_element_type(v, dtype.of) for v in (x, y))), dtype)


class _Kind(jax.dtypes.extended):
    pass


@dataclasses.dataclass(frozen=True)
class _Largest(dtypes.ExtendedDType):
    of: np.dtype
    _rules: type = _LargestRules
    type: type = _Kind
    name = "largest"


def test_a_dtype_of_the_users_own_says_how_its_cotangents_are_added():
    largest = _Largest(np.dtype("float32"))
    assert jnp.issubdtype(largest, _Kind) and jnp.issubdtype(largest, jax.dtypes.extended)
    assert not jnp.issubdtype(largest, jax.dtypes.prng_key) and not jnp.issubdtype(largest, jnp.floating)

    def f(x, y):
        y = lax.convert_element_type(y, largest)
        scaled = lambda v: x * lax.convert_element_type(v, jnp.float32)
        out, _ = lax.scan(lambda c, w: (c + scaled(y) * w, None), jnp.zeros(2), jnp.array([3., 5., 4.]))
        return (out + scaled(y[::-1])).sum()
    x, y = np.float32([1, 2]), np.float32([3, 7])
    for wrapped in (lambda f: f), jax.jit:
        dx, dy = wrapped(jax.grad(f, (0, 1)))(x, y)
        np.testing.assert_array_equal(dx, y * 12 + y[::-1])
        np.testing.assert_array_equal(dy, np.maximum(x * 5, x[::-1]))
    made = jax.jit(lambda: lax.full((2, 1), 3., largest))()
    assert made.shape == (2, 1) and made.dtype == largest and "largest" in repr(made.aval)
    np.testing.assert_array_equal(jax.vmap(lambda v: lax.convert_element_type(v, jnp.float32))(made), [[3.], [3.]])
    with pytest.raises(TypeError, match="cannot convert largest to i32: convert_from of its rules says no"):
        lax.convert_element_type(made, jnp.int32)
