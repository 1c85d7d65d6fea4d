"""Elementwise operations: operands of one dtype and one shape, nothing is promoted.

A Python number is of its default dtype, as jnp.asarray makes it; a value of rank 0 takes the array's shape.
"""
import enum

from ..core import dtypes
from ..core.array import Array
from ..core.avals import aval_of, fault_of, is_arraylike, not_an_array
from ..core.dtypes import python_scalars
from ..core.pytrees import pytree
from ..primitives.arrays import elementwise as e, special as s, transcendental as t
from ..primitives.arrays.bit_formats import bitcast_convert_type_p, reduce_precision_p
from ..primitives.arrays.precision import AccuracyMode, Tolerance
from ..primitives.arrays.shape import broadcast_in_dim, full
from ..primitives.arrays.special import polygamma_p, zeta_p
from ..primitives.arrays.transcendental import cbrt_p, integer_pow_p, pow_p
from ..primitives.common import is_constant, number, scalar, shape_of, static_int, warn_of_imaginary_part


class RoundingMethod(enum.IntEnum):
    """Where `round` takes a value that is halfway between two integers."""
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# --- operands -------------------------------------------------------------------------------------

def _check(name, args):
    for i, x in enumerate(args):
        if not is_arraylike(x):
            raise fault_of(x)(f"Error interpreting argument to {name} as a JAX value. The problematic value "
                              f"is of type {type(x)} and was passed to {name} at position {i}.\nlax.{name}: "
                              f"{not_an_array(x, str(i))}")


def coerced_operands(name, *args):
    """The operands in one shape, Python numbers as constants beside the others; TypeError, from the
    primitive, for one of another dtype than theirs."""
    _check(name, args)
    arrays = [x for x in args if type(x) not in python_scalars]
    if arrays and len(arrays) < len(args):
        aval = aval_of(arrays[0])
        args = [number(x, aval) if type(x) in python_scalars and aval_of(x).dtype == aval.dtype else x
                for x in args]
    return _repeat_operands(args)


def _repeat_operands(args):
    """Traced values of rank 0, and sizes of 1 in arrays of equal ranks, repeated to the others' shape."""
    shapes = [shape for x in args if (shape := shape_of(x))]
    if not shapes:
        return args
    shape = shapes[0]
    if any(other != shape for other in shapes) and len({*map(len, shapes)}) == 1:
        shape = tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*shapes)])
        if not all(n == 1 or n == m for other in shapes for n, m in zip(other, shape)):
            return args     # an error of the primitive
    return [_repeated(x, shape) for x in args]


def _repeated(x, shape):
    own = shape_of(x)
    if own == shape or not own and is_constant(x) or own and len(own) != len(shape):
        return x        # of another rank: an error of the primitive
    return broadcast_in_dim(x, shape, tuple(range(len(own))))


def _unary(primitive, doc, args, result, name=None):
    bind, name = primitive.bind, name or primitive.name

    def function(x):
        if not isinstance(x, Array):
            _check(name, (x,))
        return bind(x)
    return _named(function, name, doc, args, result)


def _with_accuracy(primitive, doc, args, result, choice=True):
    bind, name = primitive.bind, primitive.name

    def function(x, *, accuracy=None):
        if not isinstance(x, Array):
            _check(name, (x,))
        if accuracy is None or accuracy is AccuracyMode.DEFAULT:
            return bind(x)
        if not choice or type(accuracy) not in (AccuracyMode, Tolerance):
            raise NotImplementedError(f"lax.{name}: accuracy={accuracy!r} is not supported, "
                                      f"AccuracyMode.DEFAULT{' or a Tolerance' if choice else ''} is")
        return bind(x, accuracy=accuracy)
    return _named(function, name, f"{doc}  `accuracy`: AccuracyMode or Tolerance.", args, result)


def _binary(primitive, doc, args, result, name=None):
    bind, name = primitive.bind, name or primitive.name

    def function(x, y):
        if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
            return bind(x, y)
        return bind(*coerced_operands(name, x, y))
    return _named(function, name, doc, args, result)


def _named(function, name, doc, args, result):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\n>>> lax.{name}({args}).item()\n{result}\n"
    return function


# --- one row for each function --------------------------------------------------------------------

neg = _unary(e.neg_p, "Minus x.", "1.", "-1.0")
sign = _unary(e.sign_p, "-1, 0 or 1 by the sign; x/|x| for complex numbers.", "-3.", "-1.0")
abs = _unary(e.abs_p, "Absolute value; real also for complex numbers.", "3 + 4j", "5.0")
floor = _unary(e.floor_p, "The greatest integer that is not above x; floating point.", "-1.5", "-2.0")
ceil = _unary(e.ceil_p, "The least integer that is not below x; floating point.", "-1.5", "-1.0")
is_finite = _unary(e.is_finite_p, "Neither infinite nor NaN; floating point.", "jnp.inf", "False")
exp = _with_accuracy(t.exp_p, "e**x.", "0.", "1.0")
exp2 = _with_accuracy(t.exp2_p, "2**x.", "3.", "8.0")
expm1 = _with_accuracy(t.expm1_p, "e**x - 1, exact for small x.", "0.", "0.0")
log = _with_accuracy(t.log_p, "Natural logarithm.", "1.", "0.0")
log2 = _with_accuracy(s.log2_p, "Logarithm to base 2.", "8.", "3.0", False)
log1p = _with_accuracy(t.log1p_p, "Natural logarithm of 1 + x, exact for small x.", "0.", "0.0")
logistic = _with_accuracy(t.logistic_p, "1 / (1 + e**-x).", "0.", "0.5")
sin = _with_accuracy(t.sin_p, "Sine of an angle in radians.", "0.", "0.0")
cos = _with_accuracy(t.cos_p, "Cosine of an angle in radians.", "0.", "1.0")
tan = _with_accuracy(t.tan_p, "Tangent of an angle in radians.", "0.", "0.0")
asin = _unary(t.asin_p, "The angle in radians whose sine is x.", "1.", "1.570...")
acos = _unary(t.acos_p, "The angle in radians whose cosine is x.", "1.", "0.0")
atan = _unary(t.atan_p, "The angle in radians whose tangent is x.", "1.", "0.785...")
sinh = _unary(t.sinh_p, "Hyperbolic sine.", "0.", "0.0")
cosh = _unary(t.cosh_p, "Hyperbolic cosine.", "0.", "1.0")
tanh = _with_accuracy(t.tanh_p, "Hyperbolic tangent.", "0.", "0.0")
asinh = _unary(t.asinh_p, "Inverse hyperbolic sine.", "0.", "0.0")
acosh = _unary(t.acosh_p, "Inverse hyperbolic cosine.", "1.", "0.0")
atanh = _unary(t.atanh_p, "Inverse hyperbolic tangent.", "0.", "0.0")
sqrt = _with_accuracy(t.sqrt_p, "Square root.", "9.", "3.0")
rsqrt = _with_accuracy(t.rsqrt_p, "1 / sqrt(x).", "4.", "0.5")
cbrt = _with_accuracy(cbrt_p, "Cube root; floating point.", "8.", "2.0")
square = _unary(e.square_p, "x * x.", "3", "9")
erf = _unary(s.erf_p, "Error function; floating point.", "0.", "0.0")
erfc = _with_accuracy(s.erfc_p, "1 - erf(x), exact for large x; floating point.", "0.", "1.0", False)
erf_inv = _unary(s.erf_inv_p, "Inverse of erf; floating point.", "0.", "0.0")
lgamma = _unary(s.lgamma_p, "log|Gamma(x)|; floating point.", "5.", "3.178...")
one_minus_square = _unary(s.one_minus_square_p, "1 - x*x, exact near x = 1 and -1.", "3.", "-8.0")
digamma = _unary(s.digamma_p, "Derivative of lgamma; floating point.", "1.", "-0.577...")
bessel_i0e = _unary(s.bessel_i0e_p,
                    "e**-|x| I0(x), the scaled modified Bessel function of order 0; floating point.", "0.",
                    "1.0")
bessel_i1e = _unary(s.bessel_i1e_p,
                    "e**-|x| I1(x), the scaled modified Bessel function of order 1; floating point.", "0.",
                    "0.0")
real = _unary(e.real_p, "Real part of complex numbers.", "3 + 4j", "3.0")
imag = _unary(e.imag_p, "Imaginary part of complex numbers.", "3 + 4j", "4.0")
bitwise_not = _unary(e.not_p, "All bits flipped; integers and booleans.", "5", "-6", "bitwise_not")
population_count = _unary(e.population_count_p, "Number of bits set; integers.", "7", "3")
clz = _unary(e.clz_p, "Number of leading zero bits; integers.", "1", "31")

add = _binary(e.add_p, "x + y.", "1., 2.", "3.0")
sub = _binary(e.sub_p, "x - y.", "1., 2.", "-1.0")
div = _binary(e.div_p, "x / y; for integers, rounded toward zero.", "-7, 2", "-3")
rem = _binary(e.rem_p, "Remainder of division toward zero; it has the sign of x.", "-7, 2", "-1")
max = _binary(e.max_p, "The greater of x and y; NaN where either is NaN.", "1., 2.", "2.0")
min = _binary(e.min_p, "The lesser of x and y; NaN where either is NaN.", "1., 2.", "1.0")
atan2 = _binary(e.atan2_p, "The angle in radians of the point (y, x), in (-pi, pi].", "1., 1.", "0.785...")
complex = _binary(e.complex_p, "x + iy of real arrays.", "3., 4.", "(3+4j)")
bitwise_and = _binary(e.and_p, "Bitwise and; integers and booleans.", "6, 3", "2", "bitwise_and")
bitwise_or = _binary(e.or_p, "Bitwise or; integers and booleans.", "6, 3", "7", "bitwise_or")
bitwise_xor = _binary(e.xor_p, "Bitwise exclusive or; integers and booleans.", "6, 3", "5", "bitwise_xor")
shift_left = _binary(e.shift_left_p, "Bits moved left, zeros come in; integers.", "3, 2", "12")
shift_right_logical = _binary(e.shift_right_logical_p, "Bits moved right, zeros come in; integers.", "-1, 28",
                              "15")
shift_right_arithmetic = _binary(e.shift_right_arithmetic_p,
                                 "Bits moved right, the sign bit comes in; integers.", "-8, 2", "-2")
mulhi = _binary(s.mulhi_p, "The high half of the product of integers, as wide as they are.", "2**30, 8", "2")
eq = _binary(e.eq_p, "x == y.", "1, 2", "False")
ne = _binary(e.ne_p, "x != y.", "1, 2", "True")
lt = _binary(e.lt_p, "x < y.", "1, 2", "True")
le = _binary(e.le_p, "x <= y.", "1, 2", "True")
gt = _binary(e.gt_p, "x > y.", "1, 2", "False")
ge = _binary(e.ge_p, "x >= y.", "1, 2", "False")


def mul(x, y, *, out_dtype=None):
    """x * y.  With `out_dtype`, the operands are converted to it first: the product of int8 may be an int32.

    >>> lax.mul(jnp.int8([100, 2]), jnp.int8([100, 3]), out_dtype=jnp.int32)
    Array([10000,     6], dtype=int32)
    """
    if out_dtype is None and isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
        return e.mul_p.bind(x, y)
    x, y = coerced_operands("mul", x, y)
    if out_dtype is not None:
        x, y = (convert_element_type(v, out_dtype) for v in (x, y))
    return e.mul_p.bind(x, y)


def nextafter(x1, x2):
    """The float next to x1 towards x2.

    >>> lax.nextafter(0.0, 1.0).item() > 0
    True
    """
    return e.nextafter_p.bind(*coerced_operands("nextafter", x1, x2))


def polygamma(m, x):
    """The m-th derivative of digamma at x; both floating point.

    >>> lax.polygamma(1.0, 1.0).item()      # pi**2 / 6
    1.644...
    """
    return polygamma_p.bind(*coerced_operands("polygamma", m, x))


def zeta(x, q):
    """Hurwitz zeta function: the sum of (k + q)**-x over k = 0, 1, ...; both floating point.

    >>> lax.zeta(2.0, 1.0).item()           # pi**2 / 6
    1.644...
    """
    return zeta_p.bind(*coerced_operands("zeta", x, q))


# --- made of others -------------------------------------------------------------------------------

def conj(x):
    """Complex conjugate; a real array becomes complex.

    >>> lax.conj(1 + 2j).item()
    (1-2j)
    """
    _check("conj", (x,))
    aval = aval_of(x)
    if dtypes.is_complex(aval.dtype):
        return e.conj_p.bind(x)
    return e.complex_p.bind(x, e.convert(full(aval.shape, 0, aval.dtype), aval.dtype, aval.weak_type))


def reciprocal(x):
    """1 / x.

    >>> lax.reciprocal(4.0).item()
    0.25
    """
    return integer_pow(x, -1)


def pow(x, y):
    """x**y.  x is inexact; y has its dtype, or is of integers; a Python int becomes `integer_pow`.

    >>> lax.pow(2.0, 0.5).item()
    1.414...
    >>> lax.pow(2.0, 10).item()
    1024.0
    """
    _check("pow", (x, y))
    base, exponent = aval_of(x), aval_of(y)
    if not dtypes.is_inexact(base.dtype):
        raise TypeError(f"pow does not accept dtype {base.dtype.name} at position 0. Accepted dtypes at "
                        "position 0 are subtypes of floating, complexfloating: lax.integer_pow and jnp.power "
                        "take integers")
    if type(y) is int:
        return integer_pow(x, y)
    if dtypes.is_integer(exponent.dtype) and dtypes.is_inexact(base.dtype):
        return pow_p.bind(*_repeat_operands([x, y]))
    return pow_p.bind(*coerced_operands("pow", x, y))


def integer_pow(x, y):
    """x**y for a Python int y, by multiplication.

    Raises:
        TypeError: for integers x and negative y.

    >>> lax.integer_pow(jnp.array([1., 2., 3.]), 3)
    Array([ 1.,  8., 27.], dtype=float32)
    """
    _check("integer_pow", (x,))
    y = static_int(y, "the exponent y", "; lax.pow takes others")
    if y < 0 and not dtypes.is_inexact(aval_of(x).dtype):
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"integer_pow({aval_of(x).str_short()}, {y}); use a floating-point base")
    return integer_pow_p.bind(x, y=y)


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest integer; floating point.

    >>> lax.round(jnp.array([0.5, 2.5]))
    Array([1., 3.], dtype=float32)
    >>> lax.round(jnp.array([0.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    _check("round", (x,))
    return e.round_p.bind(x, rounding_method=int(RoundingMethod(rounding_method)))


def convert_element_type(operand, new_dtype):
    """`operand` with another dtype; complex to real drops the imaginary part, with a warning.

    >>> lax.convert_element_type(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    _check("convert_element_type", (operand,))
    dtype = dtypes.check_user_dtype(new_dtype, "convert_element_type")
    warn_of_imaginary_part(operand, dtype)
    return e.convert(operand, dtype)


def bitcast_convert_type(operand, new_dtype):
    """The same bits read as another dtype.

    A narrower dtype adds a last axis of the ratio of the widths; for a wider one such a last axis goes.

    >>> lax.bitcast_convert_type(jnp.float32(1), jnp.uint8)
    Array([  0,   0, 128,  63], dtype=uint8)
    """
    _check("bitcast_convert_type", (operand,))
    return bitcast_convert_type_p.bind(operand,
                                       new_dtype=dtypes.check_user_dtype(new_dtype, "bitcast_convert_type"))


def reduce_precision(operand, exponent_bits, mantissa_bits):
    """`operand` rounded to a float format with these numbers of bits; the dtype stays.

    >>> lax.reduce_precision(jnp.float32(1.001), 5, 3).item()
    1.0
    """
    _check("reduce_precision", (operand,))
    return reduce_precision_p.bind(operand, exponent_bits=int(exponent_bits),
                                   mantissa_bits=int(mantissa_bits))


def clamp(min, x, max):
    """x, but not below min nor above max.  The bounds have the dtype of x, and its shape or rank 0.

    >>> lax.clamp(0, jnp.array([-3, 3, 30]), 10)
    Array([ 0,  3, 10], dtype=int32)
    """
    _check("clamp", (min, x, max))
    dtype = aval_of(x).dtype
    out = e.clamp_p.bind(*[scalar(b, dtype) if type(b) in python_scalars and aval_of(b).dtype == dtype else b
                           for b in (min, x, max)])
    return e.convert(out, dtype, aval_of(min).weak_type and aval_of(x).weak_type and aval_of(max).weak_type)


def select(pred, on_true, on_false):
    """on_true where pred, else on_false: arrays of one shape and dtype; pred is of that shape or of rank 0.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([ 1, 20], dtype=int32)
    """
    _check("select", (pred, on_true, on_false))
    return e.select_n_p.bind(pred, on_false, on_true)


def select_n(which, *cases):
    """cases[which] at each place: `which` is boolean or of integers, of the shape of the cases or rank 0.

    >>> lax.select_n(jnp.array([0, 2, 1]), *(jnp.full(3, c, int) for c in (10, 20, 30)))
    Array([10, 30, 20], dtype=int32)
    """
    _check("select_n", (which, *cases))
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return e.select_n_p.bind(which, *cases)


def stop_gradient(x):
    """x, whose derivative is taken as zero.  x may be a pytree of arrays.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0).item()
    3.0
    """
    def stop(leaf):
        if isinstance(leaf, Array) and dtypes.is_inexact(leaf.dtype):
            return e.stop_gradient_p.bind(leaf)
        if not is_arraylike(leaf):
            raise TypeError("stop_gradient: " + not_an_array(leaf))
        return leaf
    return pytree.tree_map(stop, x)


__all__ = [name for name, value in globals().items()
           if getattr(value, "__module__", None) == __name__ and not name.startswith("_")
           and value is not coerced_operands] + ["AccuracyMode", "Tolerance"]
