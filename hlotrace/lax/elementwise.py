"""Elementwise operations: operands of one dtype and one shape, nothing is promoted.

A Python number beside an array takes the array's dtype; a value of rank 0 takes the array's shape.
"""
import enum
import warnings
from typing import NamedTuple

from ..core import dtypes, source, tree
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike, not_an_array
from ..core.dtypes import python_scalars
from ..primitives import elementwise as e
from ..primitives import special as s
from ..primitives.common import is_constant, kind_of, np, number, scalar, shape_of, static_int
from ..primitives.elementwise import (
    bitcast_convert_type_p,
    clamp_p,
    complex_p,
    conj_p,
    convert,
    integer_pow_p,
    nextafter_p,
    pow_p,
    reduce_precision_p,
    round_p,
    select_n_p,
    stop_gradient_p,
)
from ..primitives.shape import broadcast_in_dim, full
from ..primitives.special import polygamma_p, zeta_p

_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}      # kinds of dtype in the order of python_scalars


class RoundingMethod(enum.IntEnum):
    """Where `round` takes a value that is halfway between two integers."""
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """How exactly a function is to be computed."""
    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """Wanted accuracy of a function."""
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


# --- operands ---------------------------------------------------------------------------------------------------

def _check(name, args):
    for i, x in enumerate(args):
        if not is_arraylike(x):
            raise TypeError("lax." + name + ": " + not_an_array(x, str(i)))


def _operands(name, *args):
    """The operands with Python numbers in the dtype, and traced values of rank 0 in the shape, of the others."""
    _check(name, args)
    arrays = [x for x in args if type(x) not in python_scalars]
    if arrays and len(arrays) < len(args):
        aval = aval_of(arrays[0])
        rank = _RANK.get(kind_of(aval.dtype), -1)
        args = [number(x, aval) if type(x) in python_scalars and python_scalars.index(type(x)) <= rank else x
                for x in args]
    found = {aval_of(x).dtype: None for x in args}
    if len(found) > 1:
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                        f"{', '.join(aval_of(x).dtype.name for x in args)}. Cast one with .astype(dtype), or use the "
                        "hlotrace.numpy function, which promotes.")
    shape = next((shape_of(x) for x in args if shape_of(x)), ())
    return [broadcast_in_dim(x, shape, ()) if shape and shape_of(x) == () and not is_constant(x) else x for x in args]


def _unary(primitive, doc, name=None):
    bind, name = primitive.bind, name or primitive.name

    def function(x):
        if not isinstance(x, Array):
            _check(name, (x,))
        return bind(x)
    return _named(function, name, doc)


def _with_accuracy(primitive, doc):
    bind, name = primitive.bind, primitive.name

    def function(x, *, accuracy=None):
        if accuracy not in (None, AccuracyMode.DEFAULT):
            raise NotImplementedError(f"lax.{name}: accuracy={accuracy!r} is not supported, AccuracyMode.DEFAULT is")
        if not isinstance(x, Array):
            _check(name, (x,))
        return bind(x)
    return _named(function, name, doc + "  `accuracy` is the default one.")


def _binary(primitive, doc, name=None):
    bind, name = primitive.bind, name or primitive.name

    def function(x, y):
        if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
            return bind(x, y)
        return bind(*_operands(name, x, y))
    return _named(function, name, doc)


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# --- one row for each function ----------------------------------------------------------------------------------

neg = _unary(e.neg_p, "Minus x.")
sign = _unary(e.sign_p, "-1, 0 or 1 by the sign; x/|x| for complex numbers.")
abs = _unary(e.abs_p, "Absolute value; real also for complex numbers.")
floor = _unary(e.floor_p, "The greatest integer that is not above x; floating point.")
ceil = _unary(e.ceil_p, "The least integer that is not below x; floating point.")
is_finite = _unary(e.is_finite_p, "Neither infinite nor NaN; floating point.")
exp = _with_accuracy(e.exp_p, "e**x.")
exp2 = _with_accuracy(e.exp2_p, "2**x.")
expm1 = _with_accuracy(e.expm1_p, "e**x - 1, exact for small x.")
log = _with_accuracy(e.log_p, "Natural logarithm.")
log1p = _with_accuracy(e.log1p_p, "Natural logarithm of 1 + x, exact for small x.")
logistic = _with_accuracy(e.logistic_p, "1 / (1 + e**-x).")
sin = _with_accuracy(e.sin_p, "Sine of an angle in radians.")
cos = _with_accuracy(e.cos_p, "Cosine of an angle in radians.")
tan = _with_accuracy(e.tan_p, "Tangent of an angle in radians.")
asin = _unary(e.asin_p, "The angle in radians whose sine is x.")
acos = _unary(e.acos_p, "The angle in radians whose cosine is x.")
atan = _unary(e.atan_p, "The angle in radians whose tangent is x.")
sinh = _unary(e.sinh_p, "Hyperbolic sine.")
cosh = _unary(e.cosh_p, "Hyperbolic cosine.")
tanh = _with_accuracy(e.tanh_p, "Hyperbolic tangent.")
asinh = _unary(e.asinh_p, "Inverse hyperbolic sine.")
acosh = _unary(e.acosh_p, "Inverse hyperbolic cosine.")
atanh = _unary(e.atanh_p, "Inverse hyperbolic tangent.")
sqrt = _with_accuracy(e.sqrt_p, "Square root.")
rsqrt = _with_accuracy(e.rsqrt_p, "1 / sqrt(x).")
cbrt = _with_accuracy(e.cbrt_p, "Cube root; floating point.")
square = _unary(e.square_p, "x * x.")
erf = _unary(s.erf_p, "Error function; floating point.")
erfc = _unary(s.erfc_p, "1 - erf(x), exact for large x; floating point.")
erf_inv = _unary(s.erf_inv_p, "Inverse of erf; floating point.")
lgamma = _unary(s.lgamma_p, "log|Gamma(x)|; floating point.")
digamma = _unary(s.digamma_p, "Derivative of lgamma; floating point.")
bessel_i0e = _unary(s.bessel_i0e_p, "e**-|x| I0(x), the scaled modified Bessel function of order 0; floating point.")
bessel_i1e = _unary(s.bessel_i1e_p, "e**-|x| I1(x), the scaled modified Bessel function of order 1; floating point.")
real = _unary(e.real_p, "Real part of complex numbers.")
imag = _unary(e.imag_p, "Imaginary part of complex numbers.")
bitwise_not = _unary(e.not_p, "All bits flipped; integers and booleans.", "bitwise_not")
population_count = _unary(e.population_count_p, "Number of bits set; integers.")
clz = _unary(e.clz_p, "Number of leading zero bits; integers.")

add = _binary(e.add_p, "x + y.")
sub = _binary(e.sub_p, "x - y.")
mul = _binary(e.mul_p, "x * y.")
div = _binary(e.div_p, "x / y; for integers, rounded toward zero.")
rem = _binary(e.rem_p, "Remainder of division toward zero; it has the sign of x.")
max = _binary(e.max_p, "The greater of x and y; NaN where either is NaN.")
min = _binary(e.min_p, "The lesser of x and y; NaN where either is NaN.")
atan2 = _binary(e.atan2_p, "The angle in radians of the point (y, x), in (-pi, pi].")
complex = _binary(e.complex_p, "x + iy of real arrays.")
bitwise_and = _binary(e.and_p, "Bitwise and; integers and booleans.", "bitwise_and")
bitwise_or = _binary(e.or_p, "Bitwise or; integers and booleans.", "bitwise_or")
bitwise_xor = _binary(e.xor_p, "Bitwise exclusive or; integers and booleans.", "bitwise_xor")
shift_left = _binary(e.shift_left_p, "Bits moved left, zeros come in; integers.")
shift_right_logical = _binary(e.shift_right_logical_p, "Bits moved right, zeros come in; integers.")
shift_right_arithmetic = _binary(e.shift_right_arithmetic_p, "Bits moved right, the sign bit comes in; integers.")
eq = _binary(e.eq_p, "x == y.")
ne = _binary(e.ne_p, "x != y.")
lt = _binary(e.lt_p, "x < y.")
le = _binary(e.le_p, "x <= y.")
gt = _binary(e.gt_p, "x > y.")
ge = _binary(e.ge_p, "x >= y.")


def nextafter(x1, x2):
    """The float next to x1 towards x2."""
    return nextafter_p.bind(*_operands("nextafter", x1, x2))


def polygamma(m, x):
    """The m-th derivative of digamma at x; both floating point."""
    return polygamma_p.bind(*_operands("polygamma", m, x))


def zeta(x, q):
    """Hurwitz zeta function: the sum of (k + q)**-x over k = 0, 1, ...; both floating point."""
    return zeta_p.bind(*_operands("zeta", x, q))


# --- made of others ---------------------------------------------------------------------------------------------

def conj(x):
    """Complex conjugate; a real array becomes complex."""
    _check("conj", (x,))
    aval = aval_of(x)
    if dtypes.is_complex(aval.dtype):
        return conj_p.bind(x)
    return complex_p.bind(x, convert(full(aval.shape, 0, aval.dtype), aval.dtype, aval.weak_type))


def reciprocal(x):
    """1 / x."""
    return integer_pow(x, -1)


def log2(x):
    """Logarithm to base 2."""
    return div(log(x), float(np.log(2)))


def one_minus_square(x):
    """1 - x*x, exact near x = 1 and -1."""
    return mul(sub(1, x), add(1, x))


def pow(x, y):
    """x**y.  y has the dtype of x, or is of integers; a Python int becomes `integer_pow`."""
    _check("pow", (x, y))
    if type(y) is int:
        return integer_pow(x, y)
    base, exponent = aval_of(x), aval_of(y)
    if dtypes.is_integer(exponent.dtype) and dtypes.is_inexact(base.dtype):
        y = convert(y, base.dtype, exponent.weak_type)
    return pow_p.bind(*_operands("pow", x, y))


def integer_pow(x, y):
    """x**y for a Python int y, by multiplication.  TypeError for integers x and negative y."""
    _check("integer_pow", (x,))
    y = static_int(y, "the exponent y", "; lax.pow takes others")
    if y < 0 and not dtypes.is_inexact(aval_of(x).dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({aval_of(x)}, {y}); use a "
                        "floating-point base")
    return integer_pow_p.bind(x, y=y)


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest integer; floating point."""
    _check("round", (x,))
    return round_p.bind(x, rounding_method=int(RoundingMethod(rounding_method)))


def mulhi(x, y, /):
    """The high half of the product of integers, as wide as they are (Hacker's Delight, section 8-2)."""
    x, y = _operands("mulhi", x, y)
    dtype = aval_of(x).dtype
    if not dtypes.is_integer(dtype):
        raise TypeError(f"mulhi does not accept dtype {dtype.name}; it must be an integer dtype")
    half = dtype.itemsize * 4
    shift = shift_right_logical if dtypes.is_unsigned(dtype) else shift_right_arithmetic
    mask = (1 << half) - 1
    x_low, x_high, y_low, y_high = bitwise_and(x, mask), shift(x, half), bitwise_and(y, mask), shift(y, half)
    middle = add(mul(x_high, y_low), shift_right_logical(mul(x_low, y_low), half))
    cross = add(mul(x_low, y_high), bitwise_and(middle, mask))
    return add(add(mul(x_high, y_high), shift(middle, half)), shift(cross, half))


def convert_element_type(operand, new_dtype):
    """`operand` with another dtype; complex to real drops the imaginary part, with a warning."""
    _check("convert_element_type", (operand,))
    dtype = dtypes.check_user_dtype(new_dtype, "convert_element_type")
    if aval_of(operand).dtype.kind == "c" and not (dtypes.is_complex(dtype) or dtypes.is_bool(dtype)):
        warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning,
                      stacklevel=source.user_stacklevel())
    return convert(operand, dtype)


def bitcast_convert_type(operand, new_dtype):
    """The same bits read as another dtype.

    A narrower dtype adds a last axis, of the size of the ratio of the widths; for a wider one the last axis has
    that size and goes.
    """
    _check("bitcast_convert_type", (operand,))
    return bitcast_convert_type_p.bind(operand,
                                       new_dtype=dtypes.check_user_dtype(new_dtype, "bitcast_convert_type"))


def reduce_precision(operand, exponent_bits, mantissa_bits):
    """`operand` rounded to a float format with these numbers of bits; the dtype stays."""
    _check("reduce_precision", (operand,))
    return reduce_precision_p.bind(operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits))


def clamp(min, x, max):
    """x, but not below min nor above max.  The bounds have the dtype of x, and its shape or rank 0."""
    _check("clamp", (min, x, max))
    dtype = aval_of(x).dtype
    rank = _RANK.get(kind_of(dtype), -1)
    return clamp_p.bind(*[scalar(b, dtype) if type(b) in python_scalars and python_scalars.index(type(b)) <= rank
                          else b for b in (min, x, max)])


def select(pred, on_true, on_false):
    """on_true where pred, else on_false: arrays of one shape and dtype; pred is boolean of that shape or rank 0."""
    _check("select", (pred, on_true, on_false))
    return select_n_p.bind(pred, on_false, on_true)


def select_n(which, *cases):
    """cases[which] at each place: `which` is boolean or int32, of the shape of the cases or rank 0."""
    _check("select_n", (which, *cases))
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def stop_gradient(x):
    """x, whose derivative is taken as zero.  x may be a pytree of arrays."""
    def stop(leaf):
        if isinstance(leaf, Array) and dtypes.is_inexact(leaf.dtype):
            return stop_gradient_p.bind(leaf)
        if not is_arraylike(leaf):
            raise TypeError("stop_gradient: " + not_an_array(leaf))
        return leaf
    return tree.tree_map(stop, x)


__all__ = [name for name, value in globals().items()
           if getattr(value, "__module__", None) == __name__ and not name.startswith("_")]
