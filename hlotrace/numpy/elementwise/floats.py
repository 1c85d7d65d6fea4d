"""The parts of floats: sign, mantissa and exponent, and the float next to one."""
from ...core import dtypes
from ...primitives.arrays import elementwise as e
from ...primitives.arrays.bit_formats import bitcast_convert_type_p
from ...primitives.arrays.elementwise import add as _add, convert, div, eq, lt, mul, neg, select, sub
from ...primitives.arrays.slicing import optimization_barrier_p
from ...primitives.common import np, scalar
from ..util import broadcast_args, check_arraylike, dtype_of, promote_args_inexact, promote_dtypes_inexact
from .ufunc_rules import NEVER, binary, like, unary
from .ufuncs import isinf, trunc

__all__ = ["copysign", "frexp", "ldexp", "modf", "signbit", "spacing"]


def _layout(dtype):
    """(integer dtype of the same width, mantissa bits, exponent bias) of a float dtype."""
    info = dtypes.finfo(dtype)
    return np.dtype(f"int{info.bits}"), int(info.nmant), 1 - int(info.minexp)


def _bits(x):
    return bitcast_convert_type_p.bind(x, new_dtype=_layout(dtype_of(x))[0])


def _power_of_two(exponent, dtype):
    """2**exponent, exactly, for int32 exponents from 1 - bias to bias."""
    integer, mantissa, bias = _layout(dtype)
    bits = e.shift_left_p.bind(convert(_add(exponent, bias), integer), scalar(mantissa, integer))
    return bitcast_convert_type_p.bind(bits, new_dtype=dtype)


def _times_power_of_two(x, exponent):
    """x * 2**exponent in three steps, none of which leaves the range of exponents.

    Behind the barrier they are no constants: XLA multiplies those first, and that may be infinite.
    """
    dtype = dtype_of(x)
    limit = _layout(dtype)[2] - 1
    exponent = e.clamp_p.bind(scalar(-3 * limit, dtypes.int32), exponent, scalar(3 * limit, dtypes.int32))
    exponent, = optimization_barrier_p.bind(exponent)
    third = div(exponent, 3)
    for part in (third, third, sub(exponent, mul(third, 2))):
        x = mul(x, _power_of_two(part, dtype))
    return x


def _real(name, x):
    x = promote_args_inexact(name, x)
    if dtypes.is_complex(dtype_of(x[0])):
        raise ValueError(f"{name} is not defined for complex numbers, got {dtype_of(x[0]).name}: take .real "
                         "or .imag")
    return x


@unary(_real, "f", weak=NEVER)
def signbit(x):
    """True where the sign bit is set: negative numbers, -0.0 and NaNs with a sign.

    >>> jnp.signbit(jnp.array([-1., -0., 0., 3.]))
    Array([ True,  True, False, False], dtype=bool)
    """
    return lt(_bits(x), 0)


@binary(promote_args_inexact, "f")
def copysign(x1, x2):
    """|x1| with the sign of x2.

    >>> jnp.copysign(jnp.array([1., -2.]), jnp.array([-0., 3.]))
    Array([-1.,  2.], dtype=float32)
    """
    size = e.abs_p.bind(x1)
    return select(signbit(x2), neg(size), size)


@unary(_real, "f", weak=NEVER)
def spacing(x):
    """The distance from x to the next float away from 0, with the sign of x.

    >>> jnp.spacing(jnp.array([1., 1e6], jnp.float32)), jnp.spacing(jnp.float16(1))
    (Array([1.1920929e-07, 6.2500000e-02], dtype=float32), Array(0.000977, dtype=float16))
    """
    x = e.stop_gradient_p.bind(x)
    step = sub(e.nextafter_p.bind(x, copysign(like(x, np.inf), x)), x)
    smallest = like(x, dtypes.finfo(dtype_of(x)).smallest_subnormal)
    return select(eq(step, 0), copysign(smallest, x), step)


@unary(promote_args_inexact, "f", nout=2, weak=NEVER)
def frexp(x):
    """(m, n), x = m * 2**n, with 0.5 <= |m| < 1 and n int32; (x, 0) for 0, infinities and NaN.

    >>> jnp.frexp(jnp.array([8., -0.3, 0.]))
    (Array([ 0.5, -0.6,  0. ], dtype=float32), Array([ 4, -1,  0], dtype=int32))
    """
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
    """x1 * 2**x2 for integers x2.

    The dtype is that of x1; integers count as the default float.

    Raises:
        ValueError: for other x2.

    >>> jnp.ldexp(jnp.array([0.5, -1.5]), jnp.array([4, -1]))
    Array([ 8.  , -0.75], dtype=float32)
    """
    return _times_power_of_two(x1, x2)


@unary(promote_args_inexact, "f", nout=2)
def modf(x):
    """(fractional part, integer part), both with the sign of x.

    >>> jnp.modf(jnp.array([2.5, -2.5, jnp.inf]))
    (Array([ 0.5, -0.5,  0. ], dtype=float32), Array([ 2., -2., inf], dtype=float32))
    """
    whole = trunc(x)
    part = select(signbit(x), neg(sub(whole, x)), sub(x, whole))     # zeros have the sign of x
    return select(isinf(x), copysign(0, x), part), whole
