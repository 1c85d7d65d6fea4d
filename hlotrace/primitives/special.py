"""Special functions: the error functions, the gamma family, scaled Bessel functions.

Formulas are those of Abramowitz & Stegun, Handbook of Mathematical Functions (1964), "A&S".
"""
import functools

from .common import dtype_of, np, shape_of
from .elementwise import abs_p, add, div, elementwise, eq, exp, lt, mul, neg, select, sign_p, sqrt, square, sub
from .shape import full


def _no_derivative(name, operand):
    def rule(*_):
        raise ValueError(f"{name} gradient with respect to {operand} is not supported. Hold {operand} constant, with "
                         "stop_gradient for example.")
    return rule


_SQRT_PI = float(np.sqrt(np.pi))
# A&S 7.1.1 (erf), 6.3.1 (digamma), 6.4.1 (polygamma), 23.2 (zeta), 9.6.27 (I0' = I1)
erf_p = elementwise("erf", "chlo.erf", "f", lambda g, o, x: mul(g, mul(exp(neg(square(x))), 2 / _SQRT_PI)))
erfc_p = elementwise("erfc", "chlo.erfc", "f", lambda g, o, x: mul(g, mul(exp(neg(square(x))), -2 / _SQRT_PI)))
erf_inv_p = elementwise("erf_inv", "chlo.erf_inv", "f", lambda g, o, x: mul(g, mul(exp(square(o)), _SQRT_PI / 2)))
lgamma_p = elementwise("lgamma", "chlo.lgamma", "f", lambda g, o, x: mul(g, digamma_p.bind(x)))
digamma_p = elementwise("digamma", "chlo.digamma", "f",
                        lambda g, o, x: mul(g, polygamma_p.bind(full(shape_of(x), 1, dtype_of(x)), x)))
polygamma_p = elementwise("polygamma", "chlo.polygamma", "f", _no_derivative("polygamma", "m"),
                          lambda g, o, m, x: mul(g, polygamma_p.bind(add(m, 1), x)))
zeta_p = elementwise("zeta", "chlo.zeta", "f", _no_derivative("zeta", "x"),
                     lambda g, o, x, q: mul(g, mul(neg(x), zeta_p.bind(add(x, 1), q))))
bessel_i1e_p = elementwise("bessel_i1e", "chlo.bessel_i1e", "f", lambda g, o, x: mul(g, _bessel_i1e_slope(o, x)))


def _bessel_i1e_slope(y, x):
    # I1e'(x) = I0e(x) - I1e(x) (sign(x) + 1/x); at 0 the limit is 1/2  (A&S 9.6.26)
    small = eq(x, 0)
    safe = select(small, 1, x)
    slope = sub(bessel_i0e_p.bind(safe), mul(y, add(sign_p.bind(safe), div(1, safe))))
    return select(small, 0.5, slope)


def _bessel_i0e_value(x):
    """exp(-|x|) I0(x): a Chebyshev fit on [0, 8] and one in 8/x beyond (Clenshaw 1962)."""
    ax = abs_p.bind(x)
    near = _chebyshev(sub(div(ax, 4), 1), _i0e_fit("near"))
    safe = select(lt(ax, 8), 8, ax)
    far = div(_chebyshev(sub(div(16, safe), 1), _i0e_fit("far")), sqrt(safe))
    return select(lt(ax, 8), near, far)


@functools.cache
def _i0e_fit(which):
    """Chebyshev coefficients of exp(-x) I0(x) on [0, 8] ("near"), and of that times sqrt(x) on [8, inf) ("far").

    They are computed from the integral I0(x) = 1/pi int_0^pi exp(x cos t) dt (A&S 9.6.16).
    """
    nodes = np.cos(np.pi * (np.arange(48) + 0.5) / 48)
    theta = np.pi * (np.arange(4000) + 0.5) / 4000

    def i0e(x):
        return np.exp(x[:, None] * (np.cos(theta) - 1)).mean(axis=1)
    far = 16 / (nodes + 1)
    values = i0e(4 * (nodes + 1)) if which == "near" else i0e(far) * np.sqrt(far)
    coefficients = np.cos(np.outer(np.arange(48), np.arccos(nodes))) @ values * 2 / 48
    coefficients[0] /= 2
    return [float(c) for c in coefficients[:30 if which == "near" else 25]]


def _chebyshev(t, coefficients):
    """Clenshaw's recurrence for sum c_k T_k(t)."""
    twice, b1, b2 = mul(t, 2), full(shape_of(t), 0, dtype_of(t)), full(shape_of(t), 0, dtype_of(t))
    for c in reversed(coefficients[1:]):
        b1, b2 = add(sub(mul(twice, b1), b2), c), b1
    return add(sub(mul(t, b1), b2), coefficients[0])


bessel_i0e_p = elementwise("bessel_i0e", None, "f",
                           lambda g, o, x: mul(g, sub(bessel_i1e_p.bind(x), mul(sign_p.bind(x), o))),
                           lower=lambda ctx, eqn, x: ctx.lower_fun(_bessel_i0e_value, eqn, x))
