"""Rows of the elementwise primitives."""
import ml_dtypes
import numpy as np
from scipy import special

from .row import BFLOAT16, Row, between, fails, fixed, integers, op

ROWS = []
WRONG = {"f": np.float32, "c": np.complex64, "i": np.int32, "u": np.uint32, "b": np.bool_}


def row(name, ref, *args, kinds="f", params=None, bad=None, **fields):
    """An elementwise row; the bad calls of a first row follow from its dtypes and the number of operands."""
    params = params or {}
    accepted = fields.pop("accepts", kinds)
    if bad is None and "variant" in fields:
        bad = []
    if bad is None:
        bad = [fails(TypeError, f"{name} does not accept dtype", name, *[np.zeros(2, WRONG[k])] * len(args), **params)
               for k in "fciub" if k not in accepted][:1]
        if len(args) > 1:
            x = np.zeros(3, WRONG[kinds[0]])
            other = np.zeros(3, np.float16 if kinds[0] == "f" else np.int16)
            bad += [fails(TypeError, "incompatible shapes", name, x, x[:2], **params),
                    fails(TypeError, "same dtypes", name, x, other, **params)]
    ROWS.append(Row(name, op(name, **params), ref, args, kinds, bad=tuple(bad), **fields))


def unary(name, ref, low, high, kinds="f", **fields):
    row(name, ref, between(low, high, 2, 3), kinds=kinds, **fields)


# --- arithmetic -------------------------------------------------------------------------------------------------

def quotient(x, y):
    return np.trunc(x / y) if x.dtype.kind in "iu" else x / y


unary("neg", np.negative, -3, 3, "fciu", linear=True)
unary("abs", np.abs, -3, 3, "fci")
unary("square", np.square, -3, 3, "fciu")
unary("sign", lambda x: x / np.abs(x) if x.dtype.kind == "c" else np.sign(x), -3, 3, "fciu")
row("add", np.add, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="fciu", linear=True)
row("add_any", np.add, np.arange(6.0).reshape(2, 3) - 2, np.arange(6.0)[::-1].reshape(2, 3), kinds="fciu", linear=True)
row("sub", np.subtract, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="fciu", linear=True)
row("mul", np.multiply, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="fciu")
row("div", quotient, between(-9, 9, 2, 3), between(1, 3, 2, 3), kinds="fciu")
row("rem", np.fmod, between(-9, 9, 2, 3), between(1, 3, 2, 3), kinds="fiu")
row("max", np.maximum, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="fciub")
row("min", np.minimum, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="fciub")
TIED = np.array([1 + 2j, 1 - 1j, 3, -1 + 1j]), np.array([1 + 1j, 2 - 1j, 3 - 1j, -1 + 2j])
row("max", np.maximum, *TIED, kinds="", variant="complex, equal real parts", derivative="none")
row("min", np.minimum, *TIED, kinds="", variant="complex, equal real parts", derivative="none")
row("pow", np.power, between(0.3, 3, 2, 3), between(-2, 2, 2, 3), kinds="fc", accepts="fciu")
row("pow", np.power, integers(-3, 4, 2, 3), integers(0, 4, 2, 3), kinds="iu", accepts="fciu", variant="integer")
row("atan2", lambda y, x: np.arctan2(y, x) if y.dtype.kind == "f" else -1j * np.log((x + 1j * y) / np.sqrt(
    x * x + y * y)), between(0.3, 2, 2, 3), between(0.5, 3, 2, 3), kinds="fc")
row("nextafter", np.nextafter, between(-3, 3, 2, 3), between(-3, 3, 2, 3), native=True, derivative="zero")
row("pow_digit", np.power, np.arange(6).reshape(2, 3) - 2.0, np.arange(6.0)[::-1].reshape(2, 3), kinds="iu")
row("integer_pow", lambda x: x ** 3, between(0.5, 2, 2, 3), kinds="fciu", params={"y": 3})
for power in (-2, 0, 1, 6):
    row("integer_pow", lambda x, y=power: x ** y, between(0.5, 2, 2, 3), kinds="fciu" if power >= 0 else "fc",
        accepts="fciu", params={"y": power}, variant=str(power))

# --- exponential, trigonometric, special functions --------------------------------------------------------------

unary("exp", np.exp, -2, 2, "fc")
unary("exp2", lambda x: 2.0 ** x, -2, 2, "fc")
unary("expm1", np.expm1, -2, 2, "fc")
unary("log", np.log, 0.2, 4, "fc")
unary("log1p", np.log1p, -0.7, 3, "fc")
unary("log2", lambda x: np.log(x) / np.log(2), 0.2, 4, "fc")
unary("one_minus_square", lambda x: 1 - x * x, -2, 2, "fciu")
unary("logistic", lambda x: 1 / (1 + np.exp(-x)), -3, 3, "fc")
unary("sqrt", np.sqrt, 0.2, 4, "fc")
unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.2, 4, "fc")
unary("cbrt", np.cbrt, -4, 4)
unary("sin", np.sin, -3, 3, "fc")
unary("cos", np.cos, -3, 3, "fc")
unary("tan", np.tan, -1.2, 1.2, "fc")
unary("asin", np.arcsin, -0.9, 0.9, "fc")
unary("acos", np.arccos, -0.9, 0.9, "fc")
unary("atan", np.arctan, -3, 3, "fc")
unary("sinh", np.sinh, -2, 2, "fc")
unary("cosh", np.cosh, -2, 2, "fc")
unary("tanh", np.tanh, -2, 2, "fc")
unary("asinh", np.arcsinh, -3, 3, "fc")
unary("acosh", np.arccosh, 1.3, 4, "fc")
unary("atanh", np.arctanh, -0.8, 0.8, "fc")
unary("erf", special.erf, -2, 2)
unary("erfc", special.erfc, -2, 3)
unary("erf_inv", special.erfinv, -0.9, 0.9)
unary("lgamma", special.gammaln, -2.9, 4)
unary("digamma", special.digamma, 0.3, 4)
unary("bessel_i0e", special.i0e, -12, 12)
unary("bessel_i1e", special.i1e, -12, 12)
row("polygamma", lambda m, x: special.polygamma(m.astype(int), x), integers(0, 4, 2, 3), between(0.5, 4, 2, 3),
    smooth=(1,), rtol=1e-10)
row("zeta", special.zeta, between(1.5, 4, 2, 3), between(0.5, 4, 2, 3), smooth=(1,), rtol=1e-10)

# --- rounding, bits ---------------------------------------------------------------------------------------------

HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
unary("floor", np.floor, -3, 3)
unary("ceil", np.ceil, -3, 3)
unary("round", np.rint, -3, 3, params={"rounding_method": 0})
row("round", lambda x: np.trunc(x + np.copysign(0.5, x)), HALVES, params={"rounding_method": 0}, derivative="zero",
    variant="halves away from zero")
row("round", np.rint, HALVES, params={"rounding_method": 1}, derivative="zero", variant="halves to even")
row("is_finite", np.isfinite, np.array([0, 1, np.inf, -np.inf, np.nan]), derivative="none")


def left(x, n):
    return np.where(n < bits(x), x << n % bits(x), 0).astype(x.dtype)


def right(x, n):
    return x >> np.minimum(n, bits(x) - 1)


def logical_right(x, n):
    return np.where(n < bits(x), unsigned(x) >> unsigned(n) % unsigned(bits(x)), 0).astype(x.dtype)


def bits(x):
    return x.dtype.type(x.dtype.itemsize * 8)


def unsigned(x):
    return x.view(f"u{x.dtype.itemsize}")


SHIFTS = np.array([[0, 1, 3], [7, 2, 40]], np.float64)
row("and", np.bitwise_and, integers(-100, 100, 2, 3), integers(-100, 100, 2, 3), kinds="iub")
row("or", np.bitwise_or, integers(-100, 100, 2, 3), integers(-100, 100, 2, 3), kinds="iub")
row("xor", np.bitwise_xor, integers(-100, 100, 2, 3), integers(-100, 100, 2, 3), kinds="iub")
row("not", np.bitwise_not, integers(-100, 100, 2, 3), kinds="iub")
row("shift_left", left, integers(-100, 100, 2, 3), SHIFTS, kinds="iu")
row("shift_right_arithmetic", lambda x, n: np.where(n < bits(x), right(x, n), np.where(x < 0, -1, 0)),
    integers(-100, 100, 2, 3), SHIFTS, kinds="i", accepts="iu")
row("shift_right_logical", logical_right, integers(-100, 100, 2, 3), SHIFTS, kinds="iu")
row("population_count", lambda x: np.bitwise_count(unsigned(x)), integers(-100, 100, 2, 3), kinds="iu")
row("mulhi", lambda x, y: np.vectorize(lambda a, b: int(a) * int(b) >> int(bits(x)), otypes=[x.dtype])(x, y),
    *[np.array([0, 1, 127, 100, -128, -1], np.float64)[order] for order in ([0, 1, 2, 3, 4, 5], [4, 2, 2, 4, 4, 3])],
    kinds="iu")
row("clz", lambda x: np.vectorize(lambda v: int(bits(x)) - int(v).bit_length())(unsigned(x)),
    integers(-100, 100, 2, 3), kinds="iu")

# --- comparisons and choices ------------------------------------------------------------------------------------


def total_order(x):
    """Integers in the order -nan < -inf < ... < -0 < 0 < ... < inf < nan."""
    words = x.view(np.int64)
    return words ^ (words >> 63 & np.iinfo(np.int64).max)


for name, ref in {"eq": np.equal, "ne": np.not_equal}.items():
    row(name, ref, integers(-2, 3, 3, 3), integers(-2, 3, 3, 3), kinds="fciub", derivative="none")
for name, ref in {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}.items():
    row(name, ref, integers(-2, 3, 3, 3), integers(-2, 3, 3, 3), kinds="fiub", derivative="none")
SPECIAL = np.array([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan])
PAIRS = np.broadcast_to(SPECIAL, (7, 7))
row("lt_to", lambda x, y: total_order(x) < total_order(y), PAIRS.copy(), PAIRS.T.copy(), derivative="none")
row("le_to", lambda x, y: total_order(x) <= total_order(y), PAIRS.copy(), PAIRS.T.copy(), derivative="none")
row("eq_to", lambda x, y: total_order(x) == total_order(y), PAIRS.copy(), PAIRS.T.copy(), derivative="none")

MASK = fixed([[True, False, True], [False, False, True]], bool)
CASES = [between(-3, 3, 2, 3) for _ in range(3)]
F32 = np.float32(0)
row("select_n", lambda m, x, y: np.where(m, y, x), MASK, *CASES[:2], kinds="fciub", bad=[
    fails(TypeError, "must be boolean or integer type", "select_n", F32, F32, F32),
    fails(TypeError, "cannot have > 2 cases", "select_n", np.True_, F32, F32, F32),
    fails(TypeError, "cases must have the same shapes", "select_n", np.True_, (2,), (3,)),
    fails(TypeError, "must be scalar or have the same shape as cases", "select_n", np.array([True]), (2,),
          (2,))])
row("select_n", lambda i, *xs: np.choose(i, xs), fixed([[0, 1, 2], [2, 1, 0]], np.uint8), *CASES, kinds="f",
    variant="narrow index")
row("select_n", lambda m, x, y: np.where(m, y, x), fixed(True, bool), *CASES[:2], kinds="fciub",
    variant="one predicate")
row("select_n", lambda i, *xs: np.choose(i, xs), fixed([[0, 1, 2], [2, 1, 0]]), *CASES, kinds="fciub",
    variant="three cases")
row("clamp", lambda a, x, b: np.clip(x, a, b), np.float64(-1), between(-3, 3, 2, 3), np.float64(2), kinds="fiu", bad=[
    fails(TypeError, "min has dtype float16", "clamp", np.float16(0), (2,), F32),
    fails(TypeError, "max.shape == operand.shape or max.shape ==", "clamp", F32, (2,), (3,))])
row("clamp", lambda a, x, b: np.clip(x, a, b), between(-1, 0, 2, 3), between(-3, 3, 2, 3), between(1, 2, 2, 3),
    kinds="fi", variant="bounds for each element")
row("stop_gradient", lambda x: x, between(-3, 3, 2, 3), kinds="fc", derivative="zero", bad=[])

# --- complex parts ----------------------------------------------------------------------------------------------

unary("real", np.real, -3, 3, "c")
unary("imag", np.imag, -3, 3, "c")
unary("conj", np.conj, -3, 3, "c")
row("complex", lambda x, y: x + 1j * y, between(-3, 3, 2, 3), between(-3, 3, 2, 3), kinds="F", bad=[
    fails(TypeError, f"complex does not accept dtype {dtype}", "complex", *[np.zeros(2, dtype)] * 2)
    for dtype in ("float16", "int32")])

# --- conversions ------------------------------------------------------------------------------------------------


def conversion(target, kinds, ref=None, variant="", **fields):
    target = np.dtype(target)
    row("convert_element_type", ref or (lambda x: x.astype(target)), integers(-3, 4, 2, 3), kinds=kinds, bad=[],
        params={"new_dtype": target, "weak_type": False}, variant=variant or f"to {target.name}", native=True,
        **fields)


conversion(np.float32, "fiub", smooth_kinds="")
conversion(np.float64, "fiub", smooth_kinds="f")
conversion(BFLOAT16, "fiub", smooth_kinds="")
conversion(ml_dtypes.float8_e4m3fn, "f", smooth_kinds="")
conversion(ml_dtypes.int4, "fi")
conversion(ml_dtypes.float4_e2m1fn, "f", smooth_kinds="")
conversion(np.complex128, "fciub")
conversion(np.int32, "fiub")
conversion(np.uint8, "iub")
conversion(np.bool_, "fciub", lambda x: x != 0)
conversion(np.float64, "c", np.real, "of the real part")


def bitcast(variant, x, target, ref):
    row("bitcast_convert_type", ref, x, kinds="", params={"new_dtype": np.dtype(target)}, variant=variant, native=True,
        derivative="none", bad=BAD_BITCASTS)


BAD_BITCASTS = [
    fails(TypeError, "does not support bool or complex values", "bitcast_convert_type", np.zeros(2, bool),
          new_dtype=np.dtype(np.uint8)),
    fails(ValueError, "the last axis must have size 4", "bitcast_convert_type", np.zeros((2, 3), np.uint8),
          new_dtype=np.dtype(np.uint32))]
WORDS = fixed([[1, -1], [1 << 30, -123456789]])
bitcast("same width", WORDS, np.float32, lambda x: x.view(np.float32))
bitcast("narrower", WORDS, np.uint8, lambda x: x.view(np.uint8).reshape(2, 2, 4))
bitcast("wider", WORDS.view(np.int16).reshape(2, 2, 2), np.uint32, lambda x: x.view(np.uint32)[..., 0])

row("reduce_precision", lambda x: x.astype(BFLOAT16), between(-3, 3, 2, 3), rtol=1e-2, smooth_kinds="",
    params={"exponent_bits": 8, "mantissa_bits": 7}, bad=[
        fails(TypeError, "does not accept dtype int32", "reduce_precision", np.zeros(2, np.int32), exponent_bits=5,
              mantissa_bits=2),
        fails(ValueError, "exponent_bits must be positive", "reduce_precision", (2,), exponent_bits=0,
              mantissa_bits=2)])
