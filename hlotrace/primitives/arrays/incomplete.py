"""Incomplete gamma and beta functions: series and continued fractions, as loops until nothing changes.

Equations are those of the NIST Digital Library of Mathematical Functions, "DLMF".  What one power and two
gamma functions would lose to cancellation where the parameters are large is said by phi(u) = u - log(1 + u)
and by the factor log_star(a) between gamma(a) and its main term (Temme, "Special Functions", 1996, sections
3.6 and 11.2; DLMF 8.12 and 5.11).
"""
import functools
import math
from fractions import Fraction

from ...core import programs
from ...core.caches import cached
from ...core.jaxpr import eval_jaxpr
from ...core.programs import trace_closed, without_source_info
from ...core.trace import EVAL, entering
from ..common import aval_of, dtype_of, dtypes, np, shape_of
from ..programs.cond_while import while_p
from .elementwise import (
    abs_p, add, and_p, convert, div, elementwise, eq, ge, gt, le, lt, mul, neg, not_p, or_p, select, square,
    sub)
from .reduce import reduce_or_p
from .shape import broadcast_in_dim, full
from .special import digamma_p, erfc_p, lgamma_p, no_derivative
from .transcendental import exp, log, log1p_p, sqrt

# steps of a loop; it needs about sqrt(72 a) of them at worst, and large a have other ways
_LIMIT = 10_000


def _eps(x):
    return float(dtypes.finfo(dtype_of(x)).eps)


def polynomial(x, coefficients):
    """Sum of c_k x**k, by Horner's rule."""
    total = full(shape_of(x), coefficients[-1], dtype_of(x))
    for c in coefficients[-2::-1]:
        total = add(mul(total, x), c)
    return total


def repeated(step, operands, start):
    """`step(n, *operands, *values)` -> (which elements are not done, new values) for n = 1, 2, ... from the
    values `start`.

    An element that is done keeps its values.
    """
    shape, dtype = shape_of(start[0]), dtypes.real_of(dtype_of(start[0]))
    k = len(operands)

    def body(*xs):
        n, going, *values = xs[k:]
        more, new = step(n, *xs[:k], *values)
        return [add(n, 1), and_p.bind(going, more), *[select(going, v, old) for v, old in zip(new, values)]]

    def cond(n, going, *_):
        return [and_p.bind(reduce_or_p.bind(going, axes=tuple(range(len(shape)))), lt(n, _LIMIT))]
    carry = [full((), 1, dtype), full(shape, True, dtypes.bool_), *start]
    avals = [aval_of(x) for x in (*operands, *carry)]
    return while_p.bind(*operands, *carry, cond_jaxpr=trace_closed(cond, avals[k:], "cond"), cond_nconsts=0,
                        body_jaxpr=trace_closed(body, avals, "body"), body_nconsts=k)[2:]


def continued_fraction(term, *operands, least=None):
    """1 / (b_0 + a_1 / (b_1 + a_2 / ...)) by Steed (DLMF 3.10.13); `term(n, *operands)` is (a_n, b_n).

    `least`, a function of the operands: how many terms there are at least.
    """
    def step(n, *xs):
        *xs, d, change, total = xs
        a, b = term(n, *xs)
        d = div(1, add(mul(d, a), b))
        change = mul(sub(mul(b, d), 1), change)
        total = add(total, change)
        more = gt(abs_p.bind(change), mul(abs_p.bind(total), _eps(total)))
        return more if least is None else or_p.bind(more, gt(least(*xs), n)), [d, change, total]
    first = div(1, term(full((), 0, dtypes.real_of(dtype_of(operands[0]))), *operands)[1])
    return repeated(step, operands, [first, first, first])[-1]


def log_gap(u, ratio):
    """u - log(1 + u), of which `ratio` is 1 + u, without cancellation near 0."""
    near = lt(abs_p.bind(u), 0.3)
    safe = select(near, u, 0.0)
    return select(near, mul(square(safe), _phi_near(safe)), sub(u, log(select(near, 1.0, ratio))))


def _phi_near(u):
    """(u - log(1 + u)) / u**2 for |u| < 0.3: log(1 + u) = 2 artanh(r), r = u / (2 + u)  (DLMF 4.6.4)."""
    r = div(u, add(u, 2))
    odd = polynomial(square(r), [2 / (2 * k + 3) for k in range(12)])
    return div(sub(1, mul(div(r, add(u, 2)), odd)), add(u, 2))


# B_2k / (2k (2k - 1))  (DLMF 5.11.1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def log_star(a):
    """log of gamma(a) / (sqrt(2 pi / a) (a / e)**a), which is about 1 / (12 a)."""
    large = gt(a, 10)
    safe, little = select(large, a, 10.0), select(large, 1.0, a)
    series = div(polynomial(div(1, square(safe)), STIRLING), safe)
    main = sub(mul(sub(little, 0.5), log(little)), sub(little, math.log(2 * math.pi) / 2))
    return select(large, series, sub(lgamma_p.bind(little), main))


# --- gamma ----------------------------------------------------------------------------------------

def _density(a, x):
    """x**a exp(-x) / gamma(a + 1)."""
    little = lt(a, 1)       # there x / a may be larger than any number
    b, y = select(little, 1.0, a), select(little, 1.0, x)
    main = mul(b, log_gap(div(sub(y, b), b), div(y, b)))
    large = div(exp(neg(add(main, log_star(b)))), sqrt(mul(b, 2 * math.pi)))
    c, z = select(little, a, 0.5), select(little, x, 0.5)
    return select(little, exp(sub(sub(mul(c, log(z)), z), lgamma_p.bind(add(c, 1)))), large)


def lower_gamma_series(a, x):
    """P(a, x) over the density  (DLMF 8.11.4)."""
    def step(n, a, x, term, total):
        term = mul(term, div(x, add(a, n)))
        return gt(term, mul(total, _eps(total))), [term, add(total, term)]
    one = full(shape_of(x), 1, dtype_of(x))
    return repeated(step, (a, x), [one, one])[-1]


def upper_gamma_fraction(a, x, least=None):
    """Q(a, x) over the density  (DLMF 8.9.2)."""
    def term(n, a, x):
        return mul(n, sub(a, n)), add(sub(x, a), add(mul(n, 2), 1))
    return mul(a, continued_fraction(term, a, x, least=least))


def _fraction_for_slope(a, x):
    """Ends where it does for an `a` that is not whole, as the derivative does: it converges as exp(-4 sqrt(n
    x))."""
    return upper_gamma_fraction(a, x, lambda a, x: div(math.log(_eps(x)) ** 2 / 16, x))


_TRANSITION = 50.0, 0.3      # a, |x - a| / a: where P goes from 0 to 1, and neither of these is quick


@functools.cache
def _temme():
    """d[k][n] of c_k(eta) = sum_n d[k][n] eta**n  (DLMF 8.12.12, from 8.12.9 and 5.11.5)."""
    k_max, size = 7, 32
    alpha = [Fraction(0), Fraction(1)]          # x / a - 1 = sum alpha_n eta**n
    for n in range(2, size):
        alpha.append((alpha[n - 1] - sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))) / (n + 1))
    rows = [[Fraction(-1, 3), *[(n + 2) * alpha[n + 2] for n in range(1, size - 2)]]]
    for k in range(1, k_max):
        gamma = math.prod(range(1, 2 * k + 2, 2)) * alpha[2 * k + 1]      # 5.11.3's g_k
        rows.append([(-1) ** k * gamma * d + (n + 2) * rows[-1][n + 2]
                     for n, d in enumerate(rows[0][:len(rows[-1]) - 2])])
    return [list(map(float, row)) for row in rows]


def _eta(a, x):
    """eta sqrt(a / 2), with eta**2 / 2 = phi((x - a) / a) and the sign of x - a."""
    u = div(sub(x, a), a)
    return mul(mul(u, sqrt(_phi_near(u))), sqrt(a))


def _correction(a, x):
    """S(a, eta) of DLMF 8.12.7 without the factor in front of the sum."""
    eta = mul(_eta(a, x), sqrt(div(2, a)))
    rows, columns = (7, 15) if dtype_of(a).itemsize == 8 else (3, 7)
    inverse, total = div(1, a), full(shape_of(a), 0, dtype_of(a))
    for k in reversed(range(rows)):
        total = add(mul(total, inverse), polynomial(eta, _temme()[k][:columns - 2 * k]))
    return total


def _regions(a, x):
    """The masks of where to use series, fraction and transition, and a function that gives their operands."""
    big, wide = _TRANSITION
    good = and_p.bind(and_p.bind(gt(a, 0), lt(a, np.inf)), and_p.bind(gt(x, 0), lt(x, np.inf)))
    transition = and_p.bind(good, and_p.bind(gt(a, big), lt(abs_p.bind(sub(x, a)), mul(a, wide))))
    rest = and_p.bind(good, not_p.bind(transition))
    upper = and_p.bind(ge(x, 1), gt(x, a))
    masks = [and_p.bind(rest, not_p.bind(upper)), and_p.bind(rest, upper), transition]
    return masks, [(select(m, a, b), select(m, x, y))
                   for m, b, y in zip(masks, (1.0, 1.0, 64.0), (0.5, 2.0, 64.0))]


def _incomplete_gamma(upper, a, x):
    """P(a, x), or Q(a, x)."""
    (low, high, middle), (first, second, third) = _regions(a, x)
    density = _density(*[select(low, f, select(high, s, t)) for f, s, t in zip(first, second, third)])
    p, q = mul(density, lower_gamma_series(*first)), mul(density, upper_gamma_fraction(*second))
    y = _eta(*third)
    tail = mul(mul(density, exp(log_star(third[0]))), _correction(*third))
    p, q = (p, sub(1, p)), (sub(1, q), q)
    between = (sub(mul(erfc_p.bind(neg(y)), 0.5), tail), add(mul(erfc_p.bind(y), 0.5), tail))
    value = select(low, p[upper], select(high, q[upper], between[upper]))
    one = or_p.bind(eq(a, 0), eq(x, np.inf))
    zero = or_p.bind(eq(x, 0), eq(a, np.inf))
    value = select(one, float(not upper), select(zero, float(upper), value))
    return select(_outside(a, x), np.nan, value)


def _outside(a, x):
    both = and_p.bind(eq(a, x), or_p.bind(eq(a, 0), eq(a, np.inf)))
    return or_p.bind(both, not_p.bind(and_p.bind(ge(a, 0), ge(x, 0))))


def _slope(fun, a, x):
    """(fun(a, x), its derivative by a)."""
    program, _ = programs.jvp(trace_closed(lambda a, x: [fun(a, x)], [aval_of(a), aval_of(x)]), (True, False))
    return eval_jaxpr(program, (), a, x, full(shape_of(a), 1, dtype_of(a)))


def _gamma_slope(a, x):
    """The derivative of P(a, x) by a over the density, which may be too small for a number."""
    (low, high, _), ((a1, x1), (a2, x2), (a3, x3)) = _regions(a, x)

    def log_density_slope(a, x):
        return sub(log(x), digamma_p.bind(add(a, 1)))
    s, ds = _slope(lower_gamma_series, a1, x1)
    f, df = _slope(_fraction_for_slope, a2, x2)
    y, dy = _slope(_eta, a3, x3)
    t, dt = _slope(_correction, a3, x3)
    # of the factor of the sum in 8.12.7, exp(-y**2) / sqrt(2 pi a)
    logarithm = log1p_p.bind(div(sub(x3, a3), a3))
    middle = sub(mul(sqrt(mul(a3, 2)), dy), add(dt, mul(t, sub(logarithm, div(0.5, a3)))))
    return select(low, add(mul(s, log_density_slope(a1, x1)), ds), select(
        high, neg(add(mul(f, log_density_slope(a2, x2)), df)), mul(middle, exp(log_star(a3)))))


def _gamma_grad_a(a, x):
    masks, operands = _regions(a, x)
    good = or_p.bind(or_p.bind(*masks[:2]), masks[2])
    value = mul(_density(select(good, a, 1.0), select(good, x, 1.0)), _gamma_slope(a, x))
    return _at_ends(a, x, value)


def _sample_grad(a, x):
    """-(dP/da) / (dP/dx): how x moves with a where P(a, x) stays (Figurnov et al., "Implicit
    Reparameterization Gradients", NeurIPS 2018)."""
    return _at_ends(a, x, neg(mul(div(x, a), _gamma_slope(a, x))))


def _at_ends(a, x, value):
    """0 for x = 0; NaN outside, and where a or x is infinite."""
    inside = and_p.bind(and_p.bind(gt(a, 0), lt(a, np.inf)), and_p.bind(gt(x, 0), lt(x, np.inf)))
    return select(and_p.bind(gt(a, 0), eq(x, 0)), 0.0, select(inside, value, np.nan))


# --- beta -----------------------------------------------------------------------------------------

def beta_tail(p, q, z, w):
    """(r, s) with I_z(p, q) = exp(r) s, for w = 1 - z, by fraction (9) of Didonato and Morris, "Algorithm
    708", ACM Trans. Math. Softw. 18 (1992)."""
    def term(m, p, q, z, w):
        before, after = sub(add(p, mul(m, 2)), 1), add(p, add(mul(m, 2), 1))
        before = select(eq(before, 0), 1, before)       # p = 1 and m = 0, where it divides 0
        step = mul(mul(m, sub(q, m)), z)
        last = sub(m, 1)        # p may be far below 1: p + m - 1 would lose it
        top = mul(mul(mul(add(p, last), add(add(p, q), last)), step), z)
        bottom = add(mul(m, mul(sub(2, z), add(p, m))), mul(add(p, m), add(sub(mul(p, w), mul(q, z)), 1)))
        return div(div(top, before), before), add(m, add(div(step, before), div(bottom, after)))
    total = add(p, q)
    u, v = div(sub(mul(z, q), mul(w, p)), p), div(sub(mul(w, p), mul(z, q)), q)
    main = add(mul(p, log_gap(u, mul(div(z, p), total))), mul(q, log_gap(v, mul(div(w, q), total))))
    star = sub(log_star(total), add(log_star(p), log_star(q)))
    root = sqrt(mul(mul(p, div(q, total)), 1 / (2 * math.pi)))
    return sub(star, main), mul(root, continued_fraction(term, p, q, z, w))


def _beta(a, b, x):
    """I_x(a, b), as 1 - I_{1-x}(b, a) where that is the quicker one (DLMF 8.17.4)."""
    inside = and_p.bind(and_p.bind(gt(a, 0), lt(a, np.inf)), and_p.bind(gt(b, 0), lt(b, np.inf)))
    inside = and_p.bind(inside, and_p.bind(gt(x, 0), lt(x, 1)))
    p, q, z = (select(inside, v, 0.5) for v in (a, b, x))
    swap = gt(z, div(add(p, 1), add(add(p, q), 2)))
    p, q, z, w = select(swap, q, p), select(swap, p, q), select(swap, sub(1, z),
                                                                z), select(swap, z, sub(1, z))
    power, factor = beta_tail(p, q, z, w)
    value = mul(exp(power), factor)
    value = select(inside, select(swap, sub(1, value), value), np.nan)
    zero, one = or_p.bind(eq(b, 0), eq(a, np.inf)), or_p.bind(eq(a, 0), eq(b, np.inf))
    value = select(eq(x, 0), 0.0, select(eq(x, 1), 1.0, select(zero, 0.0, select(one, 1.0, value))))
    known = and_p.bind(and_p.bind(ge(a, 0), ge(b, 0)), and_p.bind(ge(x, 0), le(x, 1)))
    return select(and_p.bind(known, not_p.bind(and_p.bind(zero, one))), value, np.nan)


# --- the primitives -------------------------------------------------------------------------------

@cached(512)
def _program(name, fun, avals):
    """`fun` on operands of these avals, as a program without lines: equal calls in a module share it."""
    shape, dtype = max((a.shape for a in avals), key=len), avals[0].dtype
    wide = dtypes.float32 if dtype.itemsize < 4 else dtype

    def whole(*xs):
        xs = [convert(x, wide) for x in xs]
        return [convert(fun(*[x if shape_of(x) == shape else broadcast_in_dim(x, shape, ()) for x in xs]),
                        dtype)]
    with entering(EVAL):
        return without_source_info(trace_closed(whole, avals, name))


def by_loops(name, fun, *derivatives):
    """An elementwise primitive that is lowered to a call of `fun`; one without derivatives refuses to be
    differentiated."""
    p = elementwise(name, None, "f", *derivatives, lower=lambda ctx, eqn, *names: ctx.call(
        _program(name, fun, tuple([v.aval.strip_weak_type() for v in eqn.invars])), names)[0])
    if not derivatives:
        p.jvp = None
    return p


def _times_log(c, x):
    """c log(x), and 0 where both c and x are."""
    return select(and_p.bind(eq(c, 0), eq(x, 0)), 0.0, mul(c, log(x)))


def _gamma_dx(g, o, a, x):      # DLMF 8.8.13
    return mul(g, exp(sub(sub(_times_log(sub(a, 1), x), x), lgamma_p.bind(a))))


def _beta_dx(g, o, a, b, x):    # DLMF 8.17.1
    beta = sub(add(lgamma_p.bind(a), lgamma_p.bind(b)), lgamma_p.bind(add(a, b)))
    return mul(g, exp(sub(add(_times_log(sub(a, 1), x), _times_log(sub(b, 1), sub(1, x))), beta)))


def _by_a(fun):
    """The rule of the derivative of fun(a, x) by a, along the loops of `fun`."""
    def slope(a, x):
        return _slope(fun, a, x)[1]

    def rule(g, o, a, x):
        program = _program("slope", slope, tuple(aval_of(v).strip_weak_type() for v in (a, x)))
        return mul(g, eval_jaxpr(program, (), a, x)[0])
    return rule


def _log_over_mean(a, x):
    """log(x) less the mean of the logarithms of a gamma distribution."""
    return sub(log(x), digamma_p.bind(a))


igamma_grad_a_p = by_loops("igamma_grad_a", _gamma_grad_a, _by_a(_gamma_grad_a),
                           lambda g, o, a, x: mul(_gamma_dx(g, o, a, x), _log_over_mean(a, x)))
random_gamma_grad_p = by_loops(
    "random_gamma_grad", _sample_grad, _by_a(_sample_grad),
    lambda g, o, a, x: mul(g, sub(mul(o, sub(1, div(sub(a, 1), x))), _log_over_mean(a, x))))
igamma_p = by_loops("igamma", functools.partial(_incomplete_gamma, False),
                    lambda g, o, a, x: mul(g, igamma_grad_a_p.bind(a, x)), _gamma_dx)
igammac_p = by_loops("igammac", functools.partial(_incomplete_gamma, True),
                     lambda g, o, a, x: neg(mul(g, igamma_grad_a_p.bind(a, x))),
                     lambda *args: neg(_gamma_dx(*args)))
regularized_incomplete_beta_p = by_loops("regularized_incomplete_beta", _beta, no_derivative("betainc", "a"),
                                         no_derivative("betainc", "b"), _beta_dx)
