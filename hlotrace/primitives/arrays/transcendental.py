"""Exponentials, logarithms, roots, powers, circular and hyperbolic functions: rows as in `elementwise`."""
from ..common import aval_of, dtype_of, dtypes, kind_of, np, number, shape_of
from .elementwise import (
    abs_p, add, and_p, complex_p, convert, div, eq, imag_p, in_single, infinite, is_finite_p, lt, maximum,
    mended, minimum, mul, ne, neg, nonzero_or_one, not_p, or_p, pair, real, select, shift_right_logical_p,
    square, sub)
from .elementwise_rules import elementwise, lower_op, type_rule
from .shape import full


def exp(x): return exp_p.bind(x)
def log(x): return log_p.bind(x)
def sqrt(x): return sqrt_p.bind(x)
def sin(x): return sin_p.bind(x)
def cos(x): return cos_p.bind(x)
def tanh(x): return tanh_p.bind(x)
def rsqrt(x): return rsqrt_p.bind(x)
def power(a, b): return pow_p.bind(*pair(a, b))
def integer_pow(x, y): return integer_pow_p.bind(x, y=y)


# --- complex values that XLA gets wrong: (real part, imaginary part, what it gives) -> the value -------

def _loses(part, b):               # is `part` true, and infinity or NaN the other part?
    return and_p.bind(part, not_p.bind(is_finite_p.bind(b)))


def _near(a):                      # 0, where XLA takes sinh(a) as half of exp(a) - exp(-a): the digits cancel
    return lt(abs_p.bind(a), 1)


def _exp_of_infinite(a, b, out, function=None):       # exp or expm1: the size decides where it is infinite
    lost = _loses(infinite(a), b)
    return complex_p.bind(select(lost, (function or exp)(a), real(out)),
                          select(and_p.bind(lost, lt(a, 0)), 0, imag_p.bind(out)))


def _mended_expm1(a, b, out):      # XLA takes exp(a) as expm1(a) + 1, and cos(b) - 1 as that
    half = sin(mul(b, 0.5))
    part = sub(mul(expm1_p.bind(a), cos(b)), mul(square(half), 2))
    out = complex_p.bind(select(_near(a), part, real(out)),
                         select(lt(a, 0), mul(exp(a), sin(b)), imag_p.bind(out)))
    return _exp_of_infinite(a, b, out, expm1_p.bind)


def _log_of_infinite(a, b, out):
    return complex_p.bind(select(or_p.bind(infinite(a), infinite(b)), np.inf, real(out)), imag_p.bind(out))


def _sqrt_of_infinite(a, b, out):
    up = and_p.bind(eq(a, -np.inf), ne(b, b))
    return complex_p.bind(select(eq(a, np.inf), a, real(out)), select(up, np.inf, imag_p.bind(out)))


def _tanh_on_axis(a, b, out):
    return complex_p.bind(select(_loses(eq(a, 0), b), a, real(out)), imag_p.bind(out))


def _mended_sinh(a, b, out):       # sinh(a) cos(b) + i cosh(a) sin(b)
    part = select(_near(a), mul(sinh_p.bind(a), cos(b)), real(out))
    return complex_p.bind(select(_loses(or_p.bind(eq(a, 0), infinite(a)), b), a, part), imag_p.bind(out))


def _mended_cosh(a, b, out):       # cosh(a) cos(b) + i sinh(a) sin(b)
    part = select(_near(a), mul(sinh_p.bind(a), sin(b)), imag_p.bind(out))
    return complex_p.bind(select(_loses(infinite(a), b), np.inf, real(out)),
                          select(_loses(eq(a, 0), b), 0, part))


def _acos_of_nan(a, b, out):
    return complex_p.bind(select(and_p.bind(eq(a, 0), ne(b, b)), np.pi / 2, real(out)), imag_p.bind(out))


def _acosh_of_nan(a, b, out):
    return complex_p.bind(real(out), select(and_p.bind(eq(a, 0), ne(b, b)), np.pi / 2, imag_p.bind(out)))


def _acosh_dx(g, o, x):         # of real numbers also below -1, where there is no value
    x = x if dtypes.is_complex(dtype_of(x)) else abs_p.bind(x)
    return mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1))))


def _asinh_of_nan(a, b, out):
    return complex_p.bind(real(out), select(and_p.bind(ne(a, a), eq(b, 0)), b, imag_p.bind(out)))


def _atanh_of_nan(a, b, out):
    unknown = or_p.bind(ne(b, b), and_p.bind(ne(a, a), is_finite_p.bind(b)))
    return complex_p.bind(select(and_p.bind(eq(a, 0), ne(b, b)), a, real(out)),
                          select(unknown, np.nan, imag_p.bind(out)))


def _mended_sin(a, b, out):        # sin(a) cosh(b) + i cos(a) sinh(b), where 0 times infinity is not NaN
    return complex_p.bind(select(eq(a, 0), a, real(out)),
                          select(_near(b), mul(sinh_p.bind(b), cos(a)), imag_p.bind(out)))


def _mended_cos(a, b, out):        # cos(a) cosh(b) - i sin(a) sinh(b): a zero has its sign
    size = select(_near(b), sinh_p.bind(b), select(ne(b, b), -1, minimum(maximum(b, -1), 1)))
    return complex_p.bind(real(out), select(or_p.bind(eq(a, 0), _near(b)), neg(mul(sin(a), size)),
                                            imag_p.bind(out)))


# --- the table ------------------------------------------------------------------------------------

exp_p = elementwise("exp", "stablehlo.exponential", "fc", lambda g, o, x: mul(g, o),
                    lower=mended(_exp_of_infinite))
exp2_p = elementwise("exp2", None, "fc", lambda g, o, x: mul(g, mul(o, np.log(2).item())),
                     lower=in_single(lambda ctx, eqn, x: ctx.lower_fun(
                         lambda v: exp_p.bind(mul(v, np.log(2).item()), **eqn.params), eqn, x)))
expm1_p = elementwise("expm1", "stablehlo.exponential_minus_one", "fc", lambda g, o, x: mul(g, add(o, 1)),
                      lower=in_single(mended(_mended_expm1), dtypes.float16))
log_p = elementwise("log", "stablehlo.log", "fc", lambda g, o, x: div(g, x), lower=mended(_log_of_infinite))
log1p_p = elementwise("log1p", "stablehlo.log_plus_one", "fc", lambda g, o, x: div(g, add(x, 1)),
                      lower=mended(_log_of_infinite))
logistic_p = elementwise("logistic", "stablehlo.logistic", "fc", lambda g, o, x: mul(g, mul(o, sub(1, o))),
                         lower=in_single(lower_op, dtypes.float16))
sqrt_p = elementwise("sqrt", "stablehlo.sqrt", "fc", lambda g, o, x: mul(g, div(0.5, o)),
                     lower=mended(_sqrt_of_infinite))
rsqrt_p = elementwise("rsqrt", "stablehlo.rsqrt", "fc", lambda g, o, x: mul(g, mul(div(o, x), -0.5)))
sin_p = elementwise("sin", "stablehlo.sine", "fc", lambda g, o, x: mul(g, cos(x)),
                    lower=mended(_mended_sin))
cos_p = elementwise("cos", "stablehlo.cosine", "fc", lambda g, o, x: neg(mul(g, sin(x))),
                    lower=mended(_mended_cos))
tan_p = elementwise("tan", "stablehlo.tan", "fc", lambda g, o, x: mul(g, add(square(o), 1)))
asin_p = elementwise("asin", "chlo.asin", "fc", lambda g, o, x: mul(g, rsqrt(sub(1, square(x)))))
acos_p = elementwise("acos", "chlo.acos", "fc", lambda g, o, x: neg(mul(g, rsqrt(sub(1, square(x))))),
                     lower=mended(_acos_of_nan))
atan_p = elementwise("atan", "chlo.atan", "fc", lambda g, o, x: div(g, add(square(x), 1)))
sinh_p = elementwise("sinh", "chlo.sinh", "fc", lambda g, o, x: mul(g, cosh_p.bind(x)),
                     lower=mended(_mended_sinh))
cosh_p = elementwise("cosh", "chlo.cosh", "fc", lambda g, o, x: mul(g, sinh_p.bind(x)),
                     lower=mended(_mended_cosh))
tanh_p = elementwise("tanh", "stablehlo.tanh", "fc", lambda g, o, x: mul(g, sub(1, square(o))),
                     lower=mended(_tanh_on_axis))
asinh_p = elementwise("asinh", "chlo.asinh", "fc", lambda g, o, x: mul(g, rsqrt(add(square(x), 1))),
                      lower=mended(_asinh_of_nan))
acosh_p = elementwise("acosh", "chlo.acosh", "fc", _acosh_dx, lower=mended(_acosh_of_nan))
atanh_p = elementwise("atanh", "chlo.atanh", "fc", lambda g, o, x: div(div(g, add(x, 1)), sub(1, x)),
                      lower=mended(_atanh_of_nan))


# --- powers ---------------------------------------------------------------------------------------

def _pow_dx(g, o, x, y):
    flat = eq(y, 0)     # x**0 is constant, also where 1 / x is infinite; elsewhere a float y moves its slope
    if kind_of(dtype_of(y)) not in "iu":
        flat = and_p.bind(flat, lt(abs_p.bind(x), float(dtypes.finfo(dtype_of(x)).tiny)))
    return mul(g, mul(convert(y, dtype_of(x)), power(select(flat, 1, x), sub(y, 1))))


def _pow_dy(g, o, x, y):
    return mul(g, mul(log(nonzero_or_one(x)), o))     # at x == 0 the slope in y is 0, not log(0) * 0


def _whole_pow(x, y):
    """x**y of integers, which wraps: 0 where 1 / x**-y is a fraction.

    The product of powers by the digits of y: XLA's looks at six bits of y, takes one with the highest bit for
    a negative one, and folds constants to a negative power by another rule.
    """
    dtype, fractions = dtype_of(x), None
    bits = dtypes.itemsize_bits(dtype)
    digit = min(6, bits - 1)
    if not dtypes.is_unsigned(dtype):
        negative = lt(y, 0)
        fractions = and_p.bind(negative, ne(abs_p.bind(x), 1))
        y = select(negative, and_p.bind(*pair(y, 1)), y)
    low, out = number((1 << digit) - 1, aval_of(y)), None
    for place in range(0, bits, digit):
        if place:
            root = pow_digit_p.bind(x, full(shape_of(x), 1 << digit - 1, dtype))
            x, y = mul(root, root), shift_right_logical_p.bind(*pair(y, digit))
        factor = pow_digit_p.bind(x, and_p.bind(y, low))
        out = factor if out is None else mul(out, factor)
    return out if fractions is None else select(fractions, 0, out)


def _pow_lower(ctx, eqn, *names):
    x, y = (v.aval.dtype for v in eqn.invars)
    if x != y:
        return ctx.lower_fun(lambda a, b: power(a, convert(b, x)), eqn, *names)
    return ctx.lower_fun(_whole_pow, eqn, *names) if kind_of(x) in "iu" else lower_op(ctx, eqn, *names)


def _pow_abstract_eval(x, y):
    """Of equal dtypes, or of a float or complex base and an exponent of integers."""
    if kind_of(x.dtype) in "fc" and kind_of(y.dtype) in "iu":
        y = y.update(dtype=x.dtype)
    return _equal_dtypes(x, y)


_equal_dtypes = type_rule("pow", "fciu")
pow_p = elementwise("pow", "stablehlo.power", "fciu", _pow_dx, _pow_dy, lower=_pow_lower,
                    abstract_eval=_pow_abstract_eval)
pow_digit_p = elementwise("pow_digit", "stablehlo.power", "iu")     # y of six bits and not negative
cbrt_p = elementwise("cbrt", "stablehlo.cbrt", "f", lambda g, o, x: mul(g, mul(integer_pow(o, -2), 1 / 3)))


def _integer_pow_value(x, y):
    """x**y by repeated squaring."""
    if y == 0:
        return full(shape_of(x), 1, dtype_of(x))
    base, result, n = x, None, abs(y)
    while n:
        if n & 1:
            result = base if result is None else mul(result, base)
        n >>= 1
        if n:
            base = mul(base, base)
    return div(1, result) if y < 0 else result


def _integer_pow_lower(ctx, eqn, x):
    y = eqn.params["y"]
    lower = lambda ctx, eqn, x: ctx.lower_fun(lambda v: _integer_pow_value(v, y), eqn, x)
    return (lower if -2 < y < 3 else in_single(lower))(ctx, eqn, x)


def _integer_pow_slope(x, y):
    if y == 0:
        return full(shape_of(x), 0, dtype_of(x))
    return mul(number(y, aval_of(x)), x if y == 2 else integer_pow(x, y - 1))


integer_pow_p = elementwise("integer_pow", None, "fciu", lambda g, o, x, y: mul(g, _integer_pow_slope(x, y)),
                            lower=_integer_pow_lower)
