"""Arithmetic that takes several primitives: quotients and remainders, powers, rounding, divisors, bounds."""
import functools
import operator

from ...api.composite import composite
from ...api.custom_derivatives import custom_jvp
from ...core import dtypes
from ...core.array import Array
from ...core.avals import aval_of, is_arraylike
from ...core.dtypes import python_scalars
from ...core.surface.public import renamed
from ...core.trace import Tracer
from ...lax.control_flow import while_loop
from ...lax.elementwise import stop_gradient
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.elementwise import (
    add as _add, convert, div, eq, ge, gt, lt, mul, ne, neg, select, sub)
from ...primitives.arrays.special import bessel_i0e_p, bessel_i1e_p
from ...primitives.arrays.transcendental import (
    exp as _exp, exp2_p, integer_pow_p, log1p_p, logistic_p, pow_p, sin, sqrt)
from ...primitives.common import np
from ..arrays.creation import asarray
from ..indexing.conditions import where
from ..reductions.reductions import any, wider
from ..util import (
    broadcast_args, broadcast_to_shape, cast, check_arraylike, dtype_of, joint_shape, promote_args,
    promote_args_inexact, result_type, shape)
from .ufunc import ufunc
from .ufunc_rules import ALWAYS, FIRST, SCALARS, Binary, binary, like, numeric, unary, weakened
from .ufuncs import abs, arctan2, greater, imag, isnan, less, maximum, minimum, rad2deg, real


def _round_even(x):
    return e.round_p.bind(x, rounding_method=1)


def _floats(name, x):
    """x in floating point, integers in the default one, where they do not give way."""
    check_arraylike(name, x)
    return [x if dtypes.is_inexact(dtype_of(x)) else cast(x, dtypes.canonicalize(float))]


@unary(_floats, "fc")
def rint(x):
    """The nearest integer, halves to even; floating point also for integers.

    >>> jnp.rint(jnp.array([0.5, 1.5, -2.7])), jnp.rint(2)
    (Array([ 0.,  2., -3.], dtype=float32), Array(2., dtype=float32))
    """
    return _parts(_round_even, x) if dtypes.is_complex(dtype_of(x)) else _round_even(x)


def _parts(function, x):
    return e.complex_p.bind(function(e.real(x)), function(e.imag_p.bind(x)))


@unary(promote_args_inexact, "fc", weak=SCALARS)
def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0.

    >>> jnp.sinc(jnp.array([0., 0.5, 1.])).round(4)
    Array([ 1.        ,  0.63659996, -0.        ], dtype=float32)
    """
    near, angle = lt(e.abs_p.bind(x), 0.1), mul(x, float(np.pi))
    safe, square, series = select(near, 0.5, x), e.square(select(near, angle, 0)), like(x, 1)
    for k in range(7, 0, -1):       # slopes of sin(x) / x cancel near 0, those of its Taylor series do not
        series = sub(1, mul(square, div(series, 2 * k * (2 * k + 1))))
    # by the distance to the next whole number: x pi is rounded
    whole = 0 if dtypes.is_complex(dtype_of(x)) else e.round_p.bind(safe, rounding_method=0)
    sine = sin(mul(sub(safe, whole), float(np.pi)))
    if type(whole) is not int:
        sine = select(eq(e.abs_p.bind(e.rem_p.bind(*e.pair(whole, 2))), 1), neg(sine), sine)
    return select(near, series, div(sine, mul(safe, float(np.pi))))


@unary(promote_args_inexact, "f")
def i0(x):
    """The modified Bessel function of order 0.

    >>> jnp.i0(jnp.array([0., 1., 2.]))
    Array([1.       , 1.2660658, 2.2795851], dtype=float32)
    """
    return _i0(x)


def _unscaled(scaled, x):
    if dtype_of(x) in e.HALVES:
        return convert(_unscaled(scaled, convert(x, dtypes.float32)), dtype_of(x))
    root = _exp(mul(e.maximum(x, neg(x)), 0.5))     # max, unlike abs, has slope 0 at 0
    return mul(mul(scaled.bind(x), root), root)      # the result is finite where its square is not yet


_i0 = custom_jvp(functools.partial(_unscaled, bessel_i0e_p))
_i0.defjvps(lambda t, out, x: mul(t, _unscaled(bessel_i1e_p, x)))


# --- functions of two arrays made of several primitives -------------------------------------------

def _quotient_parts(x1, x2):
    """Remainder, and whether it must be moved by one divisor to have the divisor's sign."""
    rest = e.rem_p.bind(x1, x2)
    return rest, e.and_p.bind(ne(rest, 0), ne(lt(rest, 0), lt(x2, 0)))


@binary(numeric, "fiu")
def remainder(x1, x2):
    """x1 - floor(x1 / x2) * x2: it has the sign of x2.  For integers, 0 where x2 is 0.

    >>> jnp.remainder(jnp.array([7, -7, 7]), jnp.array([3, 3, 0]))
    Array([1, 2, 0], dtype=int32)
    >>> jnp.remainder(-7.5, 2.)
    Array(0.5, dtype=float32, weak_type=True)
    """
    rest, wrong = _quotient_parts(x1, x2)
    result = select(wrong, _add(rest, x2), rest)
    if not dtypes.is_float(dtype_of(x1)):
        return select(eq(x2, 0), like(x1, 0), result)
    below = lt(x2, 0)       # a zero gets the sign of x2 in steps that keep its derivative
    one = select(below, like(x1, -1), like(x1, 1))
    moved = _add(rest, one)
    return select(eq(rest, 0), select(below, neg(sub(one, moved)), sub(moved, one)), result)


@binary(numeric, "fiu")
def floor_divide(x1, x2):
    """The greatest integer that is not above x1 / x2, in the promoted dtype.

    As in the array API standard, that of x1 / x2 for an infinite x1, and 0 with its sign for an infinite x2.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2), jnp.floor_divide(7., 2)
    (Array([ 3, -4], dtype=int32), Array(3., dtype=float32, weak_type=True))
    """
    if dtypes.is_unsigned(dtype_of(x1)):
        return div(x1, x2)
    if dtypes.is_integer(dtype_of(x1)):
        quotient = div(x1, x2)
        wrong = e.and_p.bind(ne(e.sign_p.bind(x1), e.sign_p.bind(x2)), ne(e.rem_p.bind(x1, x2), 0))
        return select(wrong, sub(quotient, 1), quotient)
    if dtype_of(x1) in e.HALVES:     # x1 less the remainder may be none of their numbers
        return convert(floor_divide(*[convert(x, dtypes.float32) for x in (x1, x2)]), dtype_of(x1))
    rest, wrong = _quotient_parts(x1, x2)
    # where the remainder says nothing
    plain = e.not_p.bind(e.or_p.bind(e.or_p.bind(ne(rest, rest), eq(x1, 0)),
                                     eq(e.abs_p.bind(x2), like(x2, np.inf))))
    quotient = div(select(plain, sub(x1, rest), x1), x2)
    return e.round_p.bind(select(e.and_p.bind(plain, wrong), sub(quotient, 1), quotient), rounding_method=0)


fmod = Binary("fmod", """Remainder of division toward 0, with the sign of x1; for integers, 0 where x2 is 0.

    >>> jnp.fmod(jnp.array([7, -7]), 3), jnp.remainder(jnp.array([7, -7]), 3)
    (Array([ 1, -1], dtype=int32), Array([1, 2], dtype=int32))
    """,
              numeric, f=e.rem_p, iu=lambda x1, x2: select(eq(x2, 0), 0, e.rem_p.bind(x1, x2)))


@composite
def divmod(x1, x2):
    """(floor_divide(x1, x2), remainder(x1, x2)).

    The dtype is the promoted one, where booleans count as integers.

    >>> jnp.divmod(jnp.array([7, -7]), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x1, x2 = numeric("divmod", x1, x2)
    return floor_divide(x1, x2), remainder(x1, x2)


_power = Binary("power", "x1**x2.", numeric, fciu=pow_p)


@composite
def _power_of_integers(x1, x2):
    return pow_p.bind(*broadcast_args(x1, x2))


@composite
def _strong_power(x1, x2):
    out = _power(x1, x2)
    return convert(out, dtype_of(out))


def _leads(x1, x2):
    """Does a weak base meet integers that do not give way?  Their power does not either."""
    weak = x1.aval.weak_type if isinstance(x1, Array) else type(x1) in python_scalars
    if not weak or not is_arraylike(x2) or aval_of(x2).weak_type or type(x2) is bool:
        return False
    kind = dtype_of(x2)
    return dtypes.is_integer(kind) or dtypes.is_bool(kind) and not dtypes.is_inexact(dtype_of(x1))


def _is_known_integer(x):
    return isinstance(x, np.integer) or (isinstance(x, (Array, np.ndarray)) and not isinstance(x, Tracer)
                                         and not x.ndim and dtypes.is_integer(x.dtype))


def power(x1, x2):
    """x1**x2.  A single integer x2 whose value is known is static: the result has the type of x1, and
    integers cannot be raised to a negative one.

    Integers to negative powers in another x2 give 0, or 1 and -1 where x1 is.

    >>> jnp.power(jnp.array([2, 3]), 3), jnp.power(2., jnp.array([-1, 2])), jnp.array([1., 4.])**0.5
    (Array([ 8, 27], dtype=int32), Array([0.5, 4. ], dtype=float32), Array([1., 2.], dtype=float32))
    >>> jax.grad(jnp.power)(3., 2)
    Array(6., dtype=float32, weak_type=True)
    >>> jnp.power(2, -1)
    Traceback (most recent call last):
        ...
    TypeError: jnp.power: Integers cannot be raised to negative powers, got power(int32[], -1); use a
    floating-point base
    """
    if type(x2) not in (int, bool):
        if not _is_known_integer(x2):
            if _leads(x1, x2):
                return _strong_power(x1, x2)
            if isinstance(x2, Array) and is_arraylike(x1) and (dtypes.is_integer(dtype_of(x2))
                                                               and dtypes.is_inexact(dtype_of(x1))):
                result_type(x1, x2)     # strict promotion refuses it
                return _power_of_integers(x1, x2)
            return _power(x1, x2)
        x2 = int(x2)
    check_arraylike("power", x1)
    dtype = dtype_of(x1)
    if x2 < 0 and not dtypes.is_inexact(dtype):
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"power({aval_of(x1).str_short()}, {x2}); use "
                        "a floating-point base")
    return integer_pow_p.bind(convert(x1, dtypes.int32) if dtypes.is_bool(dtype) else x1, y=x2)


@binary(promote_args_inexact, "fc")
def float_power(x1, x2):
    """x1**x2 in floating point, also for integers.

    >>> jnp.float_power(2, jnp.array([-1, 2]))
    Array([0.5, 4. ], dtype=float32)
    """
    return pow_p.bind(*e.pair(x1, x2))


@binary(promote_args_inexact, "f", weak=FIRST)
def heaviside(x1, x2):
    """0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0.

    >>> jnp.heaviside(jnp.array([-1., 0., 2., jnp.nan]), 0.5)
    Array([0. , 0.5, 1. , nan], dtype=float32)
    """
    step = select(lt(x1, 0), 0, select(gt(x1, 0), like(x1, 1), x2))
    return select(ne(x1, x1), x1, step)


@binary(promote_args_inexact, "fc", weak=SCALARS, identity=0)
def hypot(x1, x2):
    """sqrt(x1**2 + x2**2) without overflow on the way.

    >>> jnp.hypot(3, jnp.array([4., jnp.inf])), jnp.hypot(3e30, 4e30)
    (Array([ 5., inf], dtype=float32), Array(5.e+30, dtype=float32, weak_type=True))
    """
    if dtypes.is_complex(dtype_of(x1)):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs: pass their abs(x)")
    a, b = e.abs_p.bind(x1), e.abs_p.bind(x2)
    first = lt(a, b)        # not maximum and minimum: at a tie second derivatives would be wrong
    large, small = select(first, b, a), select(first, a, b)
    ratio = div(small, select(eq(large, 0), 1, large))
    result = select(e.and_p.bind(eq(large, 0), eq(small, 0)), mul(_add(a, b), 0.5),
                    mul(large, sqrt(_add(1, e.square(ratio)))))
    return select(e.or_p.bind(eq(a, np.inf), eq(b, np.inf)), np.inf, result)


def _log_of_sum(name, doc, exp, unit, weak):
    """log(exp(x1) + exp(x2)) to a base whose natural logarithm is `unit`."""
    def function(x1, x2):
        x1_first = ge(e.real(x1), e.real(x2)) if dtypes.is_complex(dtype_of(x1)) else ge(x1, x2)
        high, low = select(x1_first, x1, x2), select(x1_first, x2, x1)
        difference = sub(low, high)
        undefined = ne(difference, difference)      # equal infinities, or NaN
        tail = div(log1p_p.bind(exp(select(undefined, 0, difference))), unit)
        return select(undefined, _add(x1, x2), _add(high, tail))

    def share(t, _, x, other):      # of the sum is exp(x); equal infinities move it both
        difference = mul(sub(x, other), unit)
        both = e.and_p.bind(eq(x, other), ne(difference, difference))
        return mul(t, select(both, 1, logistic_p.bind(difference)))
    def of_complex(x1, x2):         # the principal value
        out, period = function(x1, x2), 2 * np.pi / unit
        turns = e.round_p.bind(div(e.imag_p.bind(out), period), rounding_method=1)
        return e.complex_p.bind(e.real(out), sub(e.imag_p.bind(out), mul(turns, period)))
    function.__name__ = name
    of_reals = custom_jvp(function)
    of_reals.defjvps(share, lambda t, out, x1, x2: share(t, out, x2, x1))
    return Binary(name, doc, promote_args_inexact, -np.inf, weak=weak, f=of_reals, c=of_complex)


logaddexp = _log_of_sum("logaddexp", """log(e**x1 + e**x2) without overflow: adds logarithms of probabilities.

    >>> jnp.logaddexp(1000., 1000.) - 1000, jnp.logaddexp(-jnp.inf, 3.)
    (Array(0.69317627, dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """, _exp, 1, {"f": ALWAYS, "c": SCALARS})
logaddexp2 = _log_of_sum("logaddexp2", """log2(2**x1 + 2**x2) without overflow.

    >>> jnp.logaddexp2(1000., 1000.), jnp.logaddexp2(-jnp.inf, 3.)
    (Array(1001., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """, exp2_p.bind, float(np.log(2)),
                         SCALARS)
fmax = Binary("fmax", """The greater; the other where one is NaN.

    >>> jnp.fmax(jnp.array([1., 5., jnp.nan]), 3)
    Array([3., 5., 3.], dtype=float32)
    """, promote_args,
              fciub=lambda x, y: select(e.or_p.bind(greater(x, y), isnan(y)), x, y))
fmin = Binary("fmin", """The lesser; the other where one is NaN.

    >>> jnp.fmin(jnp.array([1., 5., jnp.nan]), 3)
    Array([1., 3., 3.], dtype=float32)
    """, promote_args,
              fciub=lambda x, y: select(e.or_p.bind(less(x, y), isnan(y)), x, y))


def _integers(name, *args):
    args = numeric(name, *args)
    if not dtypes.is_integer(dtype_of(args[0])):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers, got {dtype_of(args[0]).name}: "
                         "convert it with .astype(int)")
    return args


@binary(_integers, "iu", weak=SCALARS, identity=0)
def gcd(x1, x2):
    """The greatest common divisor of integers, by Euclid; not negative.

    Booleans count as integers.

    Raises:
        ValueError: for what is no integer.

    >>> jnp.gcd(12, jnp.array([8, -18, 0]))
    Array([ 4,  6, 12], dtype=int32)
    """

    def step(pair):
        a, b = pair
        done = eq(b, 0)
        return select(done, a, b), select(done, 0, e.rem_p.bind(a, select(done, 1, b)))
    target = joint_shape(shape(x1), shape(x2))
    pair = broadcast_to_shape(abs(x1), target), broadcast_to_shape(abs(x2), target)
    result = while_loop(lambda pair: any(ne(pair[1], 0)), step, pair)[0]
    return abs(result)      # a least integer is its own absolute value, and left its sign


@binary(_integers, "iu", weak=SCALARS)
def lcm(x1, x2):
    """The least common multiple of integers; not negative.

    Booleans count as integers.

    Raises:
        ValueError: for what is no integer.

    >>> jnp.lcm(4, jnp.array([6, -10, 0]))
    Array([12, 20,  0], dtype=int32)
    """
    x1, x2 = abs(x1), abs(x2)
    divisor = gcd(x1, x2)
    return select(eq(divisor, 0), 0, mul(x1, div(x2, select(eq(divisor, 0), 1, divisor))))


# --- bounds, rounding, parts ----------------------------------------------------------------------


@composite
def clip(arr=None, /, min=None, max=None):
    """`arr`, but not below `min` nor above `max`; either may be None.

    All three broadcast and are promoted to one dtype.  Where `min` exceeds `max`, the result is `max`. The
    slope is 1 between the bounds, 1/2 on one, and 0 outside.

    Raises:
        ValueError: for complex numbers, which have no order.

    >>> jnp.clip(jnp.array([-3, 0, 7]), -1, 5)
    Array([-1,  0,  5], dtype=int32)
    >>> jax.vmap(jax.grad(jnp.clip), (0, None, None))(jnp.array([-3., 0., 7.]), -1., 5.)
    Array([0., 1., 0.], dtype=float32)
    """
    check_arraylike("clip", arr, *[bound for bound in (min, max) if bound is not None])
    for value in (arr, min, max):
        if value is not None and dtypes.is_complex(dtype_of(value)):
            raise ValueError("Clip received a complex value either through the input or the min/max "
                             "keywords: complex numbers have no order. Clip the real and imaginary parts.")
    if min is not None:
        arr = maximum(min, arr)
    return arr if max is None else minimum(max, arr)


@composite(static=("decimals",))
def round(a, decimals=0, out=None):
    """`a` rounded to so many decimals, halves to even.  Integers stay; they take no negative decimals.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.345]))
    Array([0., 2., 2.], dtype=float32)
    >>> jnp.round(jnp.array([2.345, 1234.5]), -2)
    Array([   0., 1200.], dtype=float32)
    >>> jnp.round(2.345, 1)
    Array(2.3, dtype=float32, weak_type=True)
    """
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
        wide = cast(x, wider(dtype_of(x)))
        digits = operator.index(decimals)
        power = like(wide, float(f"1e{max(digits, -digits)}"))      # infinite where 10.0**digits would raise
        if digits < 0:
            return cast(mul(_round_even(div(wide, power)), power), dtype_of(x))
        scaled = mul(wide, power)       # infinite: then x has no digits there
        rounded = select(e.is_finite_p.bind(scaled), div(_round_even(scaled), power), stop_gradient(wide))
        return cast(rounded, dtype_of(x))
    return weakened(_parts(nearest, a) if dtypes.is_complex(dtype) else nearest(a), a,
                    kept=SCALARS if decimals else ALWAYS)


@composite(static=("deg",))
def angle(z, deg=False):
    """The angle of complex numbers in the plane, in radians (or degrees), in (-pi, pi].

    Integers, and real scalars below the default floating dtype, have their angle in that one.

    >>> jnp.angle(jnp.array([1, 1j, -1])), jnp.angle(1 + 1j, deg=True)
    (Array([0.       , 1.5707964, 3.1415927], dtype=float32), Array(45., dtype=float32, weak_type=True))
    """
    check_arraylike("angle", z)
    aval = aval_of(z)
    default = dtypes.canonicalize(dtypes.float64)
    if dtypes.is_complex(aval.dtype):
        weak = aval.weak_type
    else:
        small = dtypes.is_float(aval.dtype) and not shape(z) and aval.dtype.itemsize < default.itemsize
        dtype = aval.dtype if dtypes.is_float(aval.dtype) and not small else default
        weak = aval.weak_type and dtypes.is_float(aval.dtype) and bool(shape(z))
        z = cast(z, dtype, weak)
    result = arctan2(imag(z), real(z))
    return convert(rad2deg(result) if deg else result, dtype_of(result), weak and not (deg and shape(z)))


@composite(static=("copy",))
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN replaced by `nan`, infinities by `posinf` and `neginf`.

    The dtype stays; integers have nothing to replace.

    Args:
        copy: accepted, and has no effect: arrays are immutable.
        posinf: a number, the greatest finite one for None.
        neginf: a number, the least finite one for None.

    >>> jnp.nan_to_num(jnp.array([1., jnp.nan, jnp.inf, -jnp.inf]), posinf=99.)
    Array([ 1.0000000e+00,  0.0000000e+00,  9.9000000e+01, -3.4028235e+38], dtype=float32)
    """
    check_arraylike("nan_to_num", x)
    dtype = dtype_of(x)
    if not dtypes.is_inexact(dtype):
        return asarray(x)
    if dtypes.is_complex(dtype):
        return _parts(lambda part: nan_to_num(part, copy, nan, posinf, neginf), x)
    info = dtypes.finfo(dtype)
    posinf, neginf = info.max if posinf is None else posinf, info.min if neginf is None else neginf
    for mask, value in ((ne(x, x), nan), (eq(x, np.inf), posinf), (eq(x, -np.inf), neginf)):
        x = where(mask, convert(value, dtype) if isinstance(value, Array) else like(x, value), x)
    return x


# --- other names ----------------------------------------------------------------------------------

around = renamed(round, "around")
mod = remainder.named("mod")
pow = renamed(power, "pow")

__all__ = [name for name, value in globals().items() if not name.startswith("_")
           and (isinstance(value, ufunc) or getattr(value, "__module__", None) == __name__)]
