"""Special functions: error functions, the gamma family, scaled Bessel functions; products with a name.

Formulas are those of Abramowitz & Stegun, Handbook of Mathematical Functions (1964), "A&S".
"""
import math

from ...runtime.binding import exact_lgamma
from ..common import dtype_of, dtypes, np, shape_of
from .elementwise import (
    abs_p, add, and_p, convert, div, eq, gt, in_single, lt, mul, neg, pair, rem_p, round_p, select,
    shift_right_arithmetic_p, shift_right_logical_p, sign_p, square, sub)
from .elementwise_rules import elementwise, lower_op
from .rational_fits import chebyshev
from .shape import full
from .transcendental import exp, log, sin, sqrt


def no_derivative(name, operand):
    def rule(*_):
        raise ValueError(f"{name} gradient with respect to {operand} is not supported. Hold {operand} "
                         "constant, with stop_gradient for example.")
    return rule


def _lower_lgamma(ctx, eqn, x):
    # XLA's formula cancels near the zeros, which JAX from 0.12 does not; TPUs have no float64 to speak of
    dtype = eqn.outvars[0].aval.dtype
    if exact_lgamma and dtype == dtypes.float32 and ctx.platform != "tpu":
        return ctx.lower_fun(lambda x: convert(lgamma_p.bind(convert(x, dtypes.float64)), dtype), eqn, x)
    return lower_op(ctx, eqn, x)


_SQRT_PI = float(np.sqrt(np.pi))
# A&S 7.1.1 (erf), 6.3.1 (digamma), 6.4.1 (polygamma), 23.2 (zeta), 9.6.27 (I0' = I1)
erf_p = elementwise("erf", "chlo.erf", "f", lambda g, o, x: mul(g, mul(exp(neg(square(x))), 2 / _SQRT_PI)))
erfc_p = elementwise("erfc", "chlo.erfc", "f",
                     lambda g, o, x: mul(g, mul(exp(neg(square(x))), -2 / _SQRT_PI)))
erf_inv_p = elementwise("erf_inv", "chlo.erf_inv", "f",
                        lambda g, o, x: mul(g, mul(exp(square(o)), _SQRT_PI / 2)))
lgamma_p = elementwise("lgamma", "chlo.lgamma", "f", lambda g, o, x: mul(g, digamma_p.bind(x)),
                       lower=_lower_lgamma)
digamma_p = elementwise("digamma", "chlo.digamma", "f",
                        lambda g, o, x: mul(g, _trigamma(x)))
polygamma_p = elementwise("polygamma", "chlo.polygamma", "f", no_derivative("polygamma", "m"),
                          lambda g, o, m, x: mul(g, polygamma_slope(m, x)))
zeta_p = elementwise("zeta", "chlo.zeta", "f", no_derivative("zeta", "x"),
                     lambda g, o, x, q: mul(g, zeta_slope(x, q)))
bessel_i1e_p = elementwise("bessel_i1e", "chlo.bessel_i1e", "f",
                           lambda g, o, x: mul(g, _bessel_i1e_slope(o, x)))


def _reflected(value, sign, both, x):
    """value(x), a multiple of the sum of (k + x)**-s over k = 0, 1, ..., `sign` being (-1)**s.

    XLA loses it left of -8.  Left of 0 it is that over all whole k, `both` of x less the nearest of them,
    without those that 1 - x has  (DLMF 5.15.6).
    """
    rest = sub(x, round_p.bind(x, rounding_method=0))
    left = and_p.bind(and_p.bind(lt(x, 0), gt(abs_p.bind(rest), 0)), eq(square(sign), 1))
    right = value(select(left, sub(1, x), x))
    return select(left, sub(both(select(left, rest, 0.5)), mul(sign, right)), right)


def _trigamma(x):
    one = full(shape_of(x), 1, dtype_of(x))
    return _reflected(lambda x: polygamma_p.bind(one, x), one,
                      lambda rest: square(div(np.pi, sin(mul(rest, np.pi)))), x)


def whole_order(function, s, x):
    """function(s, x), a multiple of the sum of (k + x)**-s, also for negative x where s is a whole number."""
    def value(x):
        return function(s, x)
    sign = sub(1, mul(2, rem_p.bind(*pair(s, 2))))

    def both(rest):
        near = abs_p.bind(rest)
        return mul(select(lt(rest, 0), sign, 1), add(value(near), mul(sign, value(sub(1, near)))))
    return _reflected(value, sign, both, x)


def polygamma_slope(m, x):
    return whole_order(lambda s, x: polygamma_p.bind(sub(s, 1), x), add(m, 2), x)


def zeta_slope(s, q):
    return mul(neg(s), whole_order(zeta_p.bind, add(s, 1), q))


def _bessel_i1e_slope(y, x):
    # I1e'(x) = I0e(x) - I1e(x) (sign(x) + 1/x)  (A&S 9.6.26)
    sign = sign_p.bind(x)       # x times it has slope 0 at 0, |x| has not
    near = sub(bessel_i0e_p.bind(x), add(mul(y, sign), i1_over_x(y, x, exp(neg(mul(x, sign))))))
    far, over, lack = _ratio_far_out(x)
    return select(far, mul(mul(y, sign), sub(div(lack, sub(1, lack)), over)), near)


def _bessel_i0e_slope(y, x):
    far, _, lack = _ratio_far_out(x)
    down = mul(sign_p.bind(x), y)
    return select(far, neg(mul(down, lack)), sub(bessel_i1e_p.bind(x), down))


def _ratio_far_out(x):
    """Where |x| > 100, 1 / |x|, and there 1 - I1(|x|) / I0(|x|), of which differences would leave little.

    Its series in 1 / |x| is that of Riccati's equation for the quotient  (DLMF 10.29.2).
    """
    far, c, total = gt(abs_p.bind(x), 100), [0, 0.5], 0.0
    for k in range(2, 9):
        c.append((sum(c[i] * c[k - i] for i in range(1, k)) + (k - 2) * c[-1]) / 2)
    over = div(1, abs_p.bind(select(far, x, 100)))
    for factor in reversed(c):
        total = add(mul(over, total), factor)
    return far, over, total


def i1_over_x(y, x, factor):
    """y / x for y = I1(x) * factor; near 0, where derivatives of the quotient cancel, by A&S 9.6.10."""
    near, total = lt(abs_p.bind(x), 1), 0.0
    u = div(square(select(near, x, 0)), 4)
    for k in range(8, -1, -1):
        total = add(mul(u, total), 1 / (2 * math.factorial(k) * math.factorial(k + 1)))
    return select(near, mul(total, factor), div(y, select(near, 1, x)))


def _bessel_i0e_value(x):
    ax = abs_p.bind(x)
    far = select(lt(ax, 8), 8, ax)
    return select(lt(ax, 8), chebyshev(sub(div(ax, 4), 1), "i0e near"),
                  div(chebyshev(sub(div(16, far), 1), "i0e far"), sqrt(far)))


bessel_i0e_p = elementwise("bessel_i0e", None, "f",
                           lambda g, o, x: mul(g, _bessel_i0e_slope(o, x)),
                           lower=in_single(lambda ctx, eqn, x: ctx.lower_fun(_bessel_i0e_value, eqn, x)))


# --- made of a few others, which StableHLO has no operation for -----------------------------------

def _made_of(fun, name, kinds, *derivatives):
    return elementwise(name, None, kinds, *derivatives,
                       lower=in_single(lambda ctx, eqn, *xs: ctx.lower_fun(fun, eqn, *xs)))


def _mulhi_value(x, y):
    """Four products of halves (Hacker's Delight, section 8-2)."""
    half, word = dtype_of(x).itemsize * 4, dtype_of(x).type
    up = shift_right_logical_p if dtypes.is_unsigned(dtype_of(x)) else shift_right_arithmetic_p

    def low(v):
        return and_p.bind(v, word((1 << half) - 1))

    def shifted(v, shift=up):
        return shift.bind(v, word(half))
    middle = add(mul(shifted(x), low(y)), shifted(mul(low(x), low(y)), shift_right_logical_p))
    cross = add(mul(low(x), shifted(y)), low(middle))
    return add(add(mul(shifted(x), shifted(y)), shifted(middle)), shifted(cross))


_LOG_2 = float(np.log(2))
log2_p = _made_of(lambda x: div(log(x), _LOG_2), "log2", "fc", lambda g, o, x: div(g, mul(x, _LOG_2)))
# exact near x = 1 and -1
one_minus_square_p = _made_of(lambda x: mul(sub(1, x), add(x, 1)), "one_minus_square", "fciu",
                              lambda g, o, x: mul(g, mul(x, -2)))
mulhi_p = _made_of(_mulhi_value, "mulhi", "iu")
