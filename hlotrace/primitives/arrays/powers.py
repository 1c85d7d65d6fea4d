"""Powers, and the cube root: of floats as XLA has them, of integers by products that wrap."""
from ..common import aval_of, dtype_of, dtypes, kind_of, number, shape_of
from .elementwise import (
    abs_p, and_p, convert, div, eq, in_single, log, lt, mul, ne, nonzero_or_one, pair, select,
    shift_right_logical_p, sub)
from .elementwise_rules import elementwise, lower_op, type_rule
from .shape import full


def power(a, b): return pow_p.bind(*pair(a, b))
def integer_pow(x, y): return integer_pow_p.bind(x, y=y)


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
    return ctx.lower_fun(lambda v: _integer_pow_value(v, eqn.params["y"]), eqn, x)


def _integer_pow_slope(x, y):
    if y == 0:
        return full(shape_of(x), 0, dtype_of(x))
    return mul(number(y, aval_of(x)), x if y == 2 else integer_pow(x, y - 1))


integer_pow_p = elementwise(
    "integer_pow", None, "fciu",
    lambda g, o, x, y: mul(g, _integer_pow_slope(x, y)),
    lower=lambda ctx, eqn, x: (_integer_pow_lower if -2 < eqn.params["y"] < 3 else in_single(
        _integer_pow_lower))(ctx, eqn, x))
