"""NumPy's functions that are made of several primitives, and those that are not of one shape: where, clip, ..."""
from ..api.composite import composite
from ..core import dtypes
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..primitives import elementwise as e
from ..primitives.common import full, np, scalar
from ..primitives.elementwise import add as _add
from ..primitives.elementwise import convert, div, eq, ge, gt, lt, mul, ne, neg, select, sub
from ..primitives.special import bessel_i0e_p
from .ufunc import ufunc
from .ufuncs import (
    Binary,
    abs,
    add,
    arctan2,
    binary,
    equal,
    greater,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    like,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    numeric,
    rad2deg,
    real,
    subtract,
    trunc,
    unary,
    weakened,
)
from .util import (
    broadcast_args,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    dtype_of,
    ndim,
    promote_args,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    shape,
)


def _round_even(x):
    return e.round_p.bind(x, rounding_method=1)


@unary(promote_args_inexact, "fc")
def rint(x):
    """The nearest integer, halves to even; floating point also for integers."""
    return _parts(_round_even, x) if dtypes.is_complex(dtype_of(x)) else _round_even(x)


def _parts(function, x):
    return e.complex_p.bind(function(e.real(x)), function(e.imag_p.bind(x)))


@unary(promote_args_inexact, "fc")
def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0."""
    angle = mul(x, float(np.pi))
    at_zero = eq(x, 0)
    # where x is 0 the value is that of the Taylor series, so that derivatives of each order are right there
    squared, series = mul(angle, angle), like(x, 0)
    for n in (5, 4, 3, 2, 1, 0):
        series = sub(1, div(mul(squared, series), (2 * n + 2) * (2 * n + 3)))
    safe = select(at_zero, 1, angle)
    return select(at_zero, series, div(e.sin(safe), safe))


@unary(promote_args_inexact, "f")
def i0(x):
    """The modified Bessel function of order 0."""
    return mul(bessel_i0e_p.bind(x), e.exp(e.maximum(x, neg(x))))    # max, unlike abs, has slope 0 at 0


# --- the bits of floats -----------------------------------------------------------------------------------------

def _layout(dtype):
    """(integer dtype of the same width, mantissa bits, exponent bias) of a float dtype."""
    info = dtypes.finfo(dtype)
    return np.dtype(f"int{info.bits}"), int(info.nmant), 1 - int(info.minexp)


def _bits(x):
    return e.bitcast_convert_type_p.bind(x, new_dtype=_layout(dtype_of(x))[0])


def _power_of_two(exponent, dtype):
    """2**exponent, exactly, for int32 exponents from 1 - bias to bias."""
    integer, mantissa, bias = _layout(dtype)
    bits = e.shift_left_p.bind(convert(_add(exponent, bias), integer), scalar(mantissa, integer))
    return e.bitcast_convert_type_p.bind(bits, new_dtype=dtype)


def _times_power_of_two(x, exponent):
    """x * 2**exponent in three steps, none of which leaves the range of exponents."""
    dtype = dtype_of(x)
    limit = _layout(dtype)[2] - 1
    exponent = e.clamp_p.bind(scalar(-3 * limit, dtypes.int32), exponent, scalar(3 * limit, dtypes.int32))
    third = div(exponent, 3)
    for part in (third, third, sub(exponent, mul(third, 2))):
        x = mul(x, _power_of_two(part, dtype))
    return x


@unary(promote_args_inexact, "f")
def signbit(x):
    """True where the sign bit is set: negative numbers, -0.0 and NaNs with a sign."""
    return lt(_bits(x), 0)


@binary(promote_args_inexact, "f")
def copysign(x1, x2):
    """|x1| with the sign of x2."""
    size = e.abs_p.bind(x1)
    return select(signbit(x2), neg(size), size)


@unary(promote_args_inexact, "f")
def spacing(x):
    """The distance from x to the next float away from 0, with the sign of x."""
    x = e.stop_gradient_p.bind(x)
    step = sub(e.nextafter_p.bind(x, copysign(like(x, np.inf), x)), x)
    smallest = like(x, dtypes.finfo(dtype_of(x)).smallest_subnormal)
    return select(eq(step, 0), copysign(smallest, x), step)


@unary(promote_args_inexact, "f", nout=2)
def frexp(x):
    """(m, n), x = m * 2**n, with 0.5 <= |m| < 1 and n int32; (x, 0) for 0, infinities and NaN."""
    integer, mantissa, bias = _layout(dtype_of(x))
    bits = _bits(x)
    size = e.and_p.bind(bits, scalar(np.iinfo(integer).max, integer))       # without the sign
    special = e.or_p.bind(eq(size, 0), e.not_p.bind(e.is_finite_p.bind(x)))
    # the mantissa of a subnormal number as a number: devices take the subnormal number itself for 0
    subnormal = lt(size, 1 << mantissa)
    normal = select(subnormal, copysign(convert(size, dtype_of(x)), x), x)
    stored = e.and_p.bind(e.shift_right_logical_p.bind(_bits(normal), scalar(mantissa, integer)),
                          scalar(2 * bias + 1, integer))
    exponent = sub(convert(stored, dtypes.int32), bias - 1)
    fraction = _times_power_of_two(normal, neg(exponent))
    exponent = select(subnormal, sub(exponent, bias - 1 + mantissa), exponent)
    return select(special, x, fraction), select(special, 0, exponent)


def _float_and_int(name, x1, x2):
    check_arraylike(name, x1, x2)
    if not (dtypes.is_integer(dtype_of(x2)) or dtypes.is_bool(dtype_of(x2))):
        raise ValueError(f"{name} requires integers as x2, got {dtype_of(x2).name}")
    x1, = promote_dtypes_inexact(x1)
    if dtypes.is_complex(dtype_of(x1)):
        raise ValueError(f"{name} does not support complex-valued inputs")
    return broadcast_args(x1, convert(x2, dtypes.int32))


@binary(_float_and_int, "f")
def ldexp(x1, x2):
    """x1 * 2**x2 for integers x2."""
    return _times_power_of_two(x1, x2)


@unary(promote_args_inexact, "f", nout=2)
def modf(x):
    """(fractional part, integer part), both with the sign of x."""
    whole = trunc(x)
    return copysign(select(isinf(x), 0, sub(x, whole)), x), whole


# --- functions of two arrays made of several primitives ---------------------------------------------------------

def _quotient_parts(x1, x2):
    """Remainder, and whether it must be moved by one divisor to have the divisor's sign."""
    rest = e.rem_p.bind(x1, x2)
    return rest, e.and_p.bind(ne(rest, 0), ne(lt(rest, 0), lt(x2, 0)))


@binary(numeric, "fiu")
def remainder(x1, x2):
    """x1 - floor(x1 / x2) * x2: it has the sign of x2.  For integers, 0 where x2 is 0."""
    rest, wrong = _quotient_parts(x1, x2)
    result = select(wrong, _add(rest, x2), rest)
    return result if dtypes.is_float(dtype_of(x1)) else select(eq(x2, 0), like(x1, 0), result)


@binary(numeric, "fiu")
def floor_divide(x1, x2):
    """The greatest integer that is not above x1 / x2, in the promoted dtype."""
    if dtypes.is_unsigned(dtype_of(x1)):
        return div(x1, x2)
    rest, wrong = _quotient_parts(x1, x2)
    if dtypes.is_integer(dtype_of(x1)):
        quotient = div(x1, x2)
        return select(wrong, sub(quotient, 1), quotient)
    quotient = div(select(eq(x2, 0), x1, sub(x1, rest)), x2)
    return e.round_p.bind(select(wrong, sub(quotient, 1), quotient), rounding_method=0)


fmod = Binary("fmod", "Remainder of division toward zero: it has the sign of x1.  For integers, 0 where x2 is 0.",
              numeric, f=e.rem_p, iu=lambda x1, x2: select(eq(x2, 0), 0, e.rem_p.bind(x1, x2)))


@composite
def divmod(x1, x2):
    """(floor_divide(x1, x2), remainder(x1, x2))."""
    x1, x2 = numeric("divmod", x1, x2)
    return floor_divide(x1, x2), remainder(x1, x2)


_power = Binary("power", "x1**x2.", numeric, fciu=e.pow_p)


def power(x1, x2):
    """x1**x2.  A Python int x2 is static; integers cannot be raised to a negative one.

    Integers to negative powers in an array x2 give 0, or 1 and -1 where x1 is.
    """
    if type(x2) is not int:
        return _power(x1, x2)
    check_arraylike("power", x1)
    dtype = dtype_of(x1)
    if x2 < 0 and not dtypes.is_inexact(dtype):
        raise TypeError(f"Integers cannot be raised to negative powers, got power({aval_of(x1)}, {x2}); use a "
                        "floating-point base")
    return e.integer_pow_p.bind(convert(x1, dtypes.canonicalize(int)) if dtypes.is_bool(dtype) else x1, y=x2)


@binary(promote_args_inexact, "fc")
def float_power(x1, x2):
    """x1**x2 in floating point, also for integers."""
    return e.power(x1, x2)


@binary(promote_args_inexact, "f")
def heaviside(x1, x2):
    """0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0."""
    step = select(lt(x1, 0), 0, select(gt(x1, 0), like(x1, 1), x2))
    return select(ne(x1, x1), x1, step)


@binary(promote_args_inexact, "f")
def hypot(x1, x2):
    """sqrt(x1**2 + x2**2) without overflow on the way."""
    a, b = e.abs_p.bind(x1), e.abs_p.bind(x2)
    large, small = e.maximum(a, b), e.minimum(a, b)
    ratio = div(small, select(eq(large, 0), 1, large))
    result = select(eq(large, 0), large, mul(large, e.sqrt(_add(1, e.square(ratio)))))
    return select(e.or_p.bind(eq(a, np.inf), eq(b, np.inf)), np.inf, result)


def _log_of_sum(name, doc, exp, unit):
    """log(exp(x1) + exp(x2)) to a base whose natural logarithm is `unit`."""
    def function(x1, x2):
        x1_first = ge(e.real(x1), e.real(x2)) if dtypes.is_complex(dtype_of(x1)) else ge(x1, x2)
        high, low = select(x1_first, x1, x2), select(x1_first, x2, x1)
        difference = sub(low, high)
        undefined = ne(difference, difference)      # equal infinities, or NaN
        tail = div(e.log1p_p.bind(exp(select(undefined, 0, difference))), unit)
        return select(undefined, _add(x1, x2), _add(high, tail))
    return Binary(name, doc, promote_args_inexact, -np.inf, fc=function)


logaddexp = _log_of_sum("logaddexp", "log(e**x1 + e**x2) without overflow.", e.exp, 1)
logaddexp2 = _log_of_sum("logaddexp2", "log2(2**x1 + 2**x2) without overflow.", e.exp2_p.bind, float(np.log(2)))
fmax = Binary("fmax", "The greater; the other where one is NaN.", promote_args,
              fciub=lambda x, y: select(e.or_p.bind(greater(x, y), isnan(y)), x, y))
fmin = Binary("fmin", "The lesser; the other where one is NaN.", promote_args,
              fciub=lambda x, y: select(e.or_p.bind(less(x, y), isnan(y)), x, y))


def _integers(name, *args):
    args = numeric(name, *args)
    if not dtypes.is_integer(dtype_of(args[0])):
        raise ValueError(f"Arguments to {name} must be integers, got {dtype_of(args[0]).name}.")
    return args


@binary(_integers, "iu")
def gcd(x1, x2):
    """The greatest common divisor of integers, by Euclid; not negative."""
    from ..lax.control_flow import while_loop
    from .reductions import any

    def step(pair):
        a, b = pair
        done = eq(b, 0)
        return select(done, a, b), select(done, 0, e.rem_p.bind(a, select(done, 1, b)))
    target = broadcast_shapes(shape(x1), shape(x2))
    pair = broadcast_to_shape(abs(x1), target), broadcast_to_shape(abs(x2), target)
    return while_loop(lambda pair: any(ne(pair[1], 0)), step, pair)[0]


@binary(_integers, "iu")
def lcm(x1, x2):
    """The least common multiple of integers; not negative."""
    x1, x2 = abs(x1), abs(x2)
    divisor = gcd(x1, x2)
    return select(eq(divisor, 0), 0, mul(x1, div(x2, select(eq(divisor, 0), 1, divisor))))


# --- choices, rounding, comparisons of whole arrays -------------------------------------------------------------

def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """x where the condition holds (is not 0), else y; all three broadcast.

    With the condition alone: `nonzero(condition, size=size, fill_value=fill_value)`.
    """
    if x is None and y is None:
        from .sets import nonzero
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments of where cannot be used with x and y: they are for "
                         "where(condition), the indices of what is true")
    if (isinstance(condition, Array) and isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval
            and condition.aval.shape == x.aval.shape and condition.aval.dtype == dtypes.bool_):
        return e.select_n_p.bind(condition, y, x)
    return _where(condition, x, y)


@composite
def _where(condition, x, y):
    check_arraylike("where", condition, x, y)
    if not dtypes.is_bool(dtype_of(condition)):
        condition = ne(condition, 0)
    x, y = promote_dtypes(x, y)
    target = broadcast_shapes(shape(condition), shape(x), shape(y))
    x, y = broadcast_to_shape(x, target), broadcast_to_shape(y, target)
    return e.select_n_p.bind(broadcast_to_shape(condition, target) if ndim(condition) else condition, y, x)


@composite
def clip(arr, /, min=None, max=None):
    """arr, but not below `min` nor above `max`; either may be None.  They broadcast."""
    check_arraylike("clip", arr, *[bound for bound in (min, max) if bound is not None])
    for value in (arr, min, max):
        if value is not None and dtypes.is_complex(dtype_of(value)):
            raise ValueError("Clip received a complex value either through the input or the min/max keywords: complex "
                             "numbers have no order. Clip the real and imaginary parts.")
    if min is not None:
        arr = maximum(min, arr)
    return arr if max is None else minimum(max, arr)


@composite(static=("decimals", "out"))
def round(a, decimals=0, out=None):
    """`a` rounded to so many decimals, halves to even.  Integers stay; they take no negative decimals."""
    check_arraylike("round", a)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported: arrays are immutable.")
    dtype = dtype_of(a)
    if not dtypes.is_inexact(dtype):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a

    def nearest(x):
        if decimals == 0:
            return _round_even(x)
        factor = like(x, 10.0**decimals)
        return div(_round_even(mul(x, factor)), factor)
    return weakened(_parts(nearest, a) if dtypes.is_complex(dtype) else nearest(a), a)


@composite(static=("deg",))
def angle(z, deg=False):
    """The angle of complex numbers in the plane, in radians (or degrees), in (-pi, pi]."""
    z, = promote_args_inexact("angle", z)
    result = arctan2(imag(z), real(z))
    return rad2deg(result) if deg else result


@composite(static=("copy",))
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers; None stands for the greatest and the least finite one."""
    check_arraylike("nan_to_num", x)
    dtype = dtype_of(x)
    if not dtypes.is_inexact(dtype):
        return x
    if dtypes.is_complex(dtype):
        return _parts(lambda part: nan_to_num(part, copy, nan, posinf, neginf), x)
    info = dtypes.finfo(dtype)
    posinf, neginf = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    for mask, value in ((ne(x, x), nan), (eq(x, np.inf), posinf), (eq(x, -np.inf), neginf)):
        x = where(mask, convert(value, dtype) if isinstance(value, Array) else like(x, value), x)
    return x


@composite(static=("equal_nan",))
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a - b| <= atol + rtol * |b|, elementwise; infinities are close to themselves."""
    a, b = promote_args("isclose", a, b)
    if not dtypes.is_inexact(dtype_of(a)):
        a, b = promote_dtypes_inexact(a, b)
    limit = dtypes.real_of(dtype_of(a))
    rtol, atol = (convert(t, limit) if isinstance(t, Array) else scalar(t, limit) for t in (rtol, atol))
    near = less_equal(abs(subtract(a, b)), add(atol, multiply(rtol, abs(b))))
    result = logical_or(equal(a, b), logical_and(isfinite(b), near))
    return logical_or(result, logical_and(isnan(a), isnan(b))) if equal_nan else result


@composite(static=("equal_nan",))
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close?  See `isclose`."""
    from .reductions import all
    return all(isclose(a, b, rtol, atol, equal_nan))


@composite(static=("equal_nan",))
def array_equal(a1, a2, equal_nan=False):
    """Have both arrays the same shape and the same elements?"""
    from .reductions import all
    a1, a2 = _sequences(a1, a2)
    if shape(a1) != shape(a2):
        return full((), False, np.dtype(bool))
    same = equal(a1, a2)
    return all(logical_or(same, logical_and(isnan(a1), isnan(a2))) if equal_nan else same)


@composite
def array_equiv(a1, a2):
    """Have both arrays, broadcast to one shape, the same elements?  False where they do not broadcast."""
    from .reductions import all
    a1, a2 = _sequences(a1, a2)
    try:
        broadcast_shapes(shape(a1), shape(a2))
    except ValueError:
        return full((), False, np.dtype(bool))
    return all(equal(a1, a2))


def _sequences(*args):
    from .creation import asarray
    return [asarray(x) if isinstance(x, (list, tuple)) else x for x in args]


def iscomplexobj(x):
    """Is the dtype complex?"""
    return dtypes.is_complex(dtype_of(x)) if is_arraylike(x) else np.iscomplexobj(x)


def isrealobj(x):
    """Is the dtype not complex?"""
    return not iscomplexobj(x)


def isscalar(element):
    """Is it a Python or NumPy scalar, or an array of rank 0?"""
    return np.isscalar(element) or isinstance(element, Array) and not element.shape


# --- other names ------------------------------------------------------------------------------------------------

around = round
mod = remainder
pow = power

__all__ = [name for name, value in globals().items() if not name.startswith("_")
           and (isinstance(value, ufunc) or getattr(value, "__module__", None) == __name__)]
