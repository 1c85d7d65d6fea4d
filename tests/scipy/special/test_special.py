"""scipy.special against SciPy: values over wide grids and at ends, derivatives against differences of SciPy's values."""
import numpy as np
import pytest
from reference import run
from scipy import special as theirs

import hlotrace as jax
import hlotrace.scipy.special as ours

RNG = np.random.default_rng(0)
N, INF = 200, np.inf
WIDE = np.concatenate([RNG.normal(size=N) * 3, RNG.normal(size=N) * 25, [0.0, -0.0, INF, -INF, np.nan]])
POSITIVE, OTHER = 10 ** RNG.uniform(-4, 2.5, (2, N))
SIGNED = RNG.uniform(-9.5, 20, N)
PART = np.concatenate([RNG.random(N), 10 ** RNG.uniform(-30, 0, N), [0.0, 1.0]])
ORDER = RNG.integers(0, 25, N)


def even_ci(x):
    return theirs.sici(x)[0], theirs.sici(np.abs(x))[1]


# name, arguments, relative error allowed to float64
VALUES = [
    ("erfcx", (WIDE,), 3e-14), ("ndtr", (WIDE,), 1e-13), ("log_ndtr", (WIDE,), 1e-12), ("dawsn", (WIDE,), 3e-14),
    ("fresnel", (WIDE,), 1e-13), ("i0e", (WIDE,), 2e-15), ("i0", (WIDE[:N],), 1e-13), ("i1", (WIDE[:N],), 1e-13),
    ("gammasgn", (SIGNED,), 0),
    ("gamma", (SIGNED,), 1e-12), ("ndtri", (PART,), 4e-15), ("erfcinv", (2 * PART,), 4e-15), ("logit", (PART,), 1e-11),
    ("expi", (np.concatenate([POSITIVE, -POSITIVE, [0.0]]),), 1e-13), ("spence", (np.append(POSITIVE, [0, 1, -1]),), 1e-12),
    ("sici", (np.concatenate([POSITIVE, -POSITIVE, [INF]]),), 1e-11), ("entr", (np.append(POSITIVE, [0, -1]),), 1e-13),
    ("betaln", (POSITIVE, OTHER), 1e-10), ("beta", (POSITIVE, OTHER), 1e-10), ("poch", (POSITIVE, OTHER / 30), 1e-10),
    ("xlog1py", (POSITIVE, OTHER), 1e-13), ("kl_div", (POSITIVE, OTHER), 1e-7), ("boxcox", (POSITIVE, WIDE[:N]), 1e-13),
    ("boxcox1p", (POSITIVE, WIDE[:N]), 1e-13), ("owens_t", (WIDE[:N], SIGNED), 1e-11), ("expn", (ORDER, POSITIVE), 1e-13),
    ("polygamma", (ORDER % 6, POSITIVE), 1e-12), ("hyp1f1", (PART[:N] * 3, OTHER + 1, WIDE[:N] * 4), 1e-9),
    ("hyp1f1", (np.array([0.5, 1.5, -10.5, -2, 0, 5, 2, -1]), np.array([1.5, 0.5, 1.5, 3, 1, 2, 30, -0.5]), np.array(
        [-1e3, -1e6, -1e4, -1e3, -800, 300, 1e3, -2e3])), 1e-12),
    ("wofz", (WIDE[:N] + 1j * SIGNED / 4,), 1e-12), ("loggamma", (WIDE[:N] + 1j * SIGNED,), 1e-11),
    ("loggamma", (np.append(POSITIVE, [0, -1.5]),), 1e-12), ("gamma", (WIDE[:N] + 1j * SIGNED,), 1e-11),
    ("erfcx", (WIDE[:N] / 4 + 1j * SIGNED / 4,), 1e-11),
    ("hyp2f1", (SIGNED / 4, WIDE[:N] / 2, OTHER / 20 + 0.1, np.append(RNG.uniform(-20, 1, N - 2), [1.5, -1e-3])), 1e-9),
    ("hyp2f1", (np.array([1, 1, -2, 0.5]), np.array([2, 2, 3, 1.5]), np.array([3, 4, 1.5, 2.5]),
                np.array([-5, 1, 7, 1])), 1e-11),
    ("hyp2f1", (np.array([0.5, 1, -0.5, 2, 1, -0.5, 0.5]), np.array([1, 1.5, 0.5, -0.5, 1, -0.5, 5]), np.array(
        [1, 1.5, 0.5, 2, -0.5, -0.5, -0.5]), np.array([0.95, -10, 0.99, 0.95, 1, 1, 0.999])), 1e-11),
    ("sph_harm_y", (ORDER, ORDER[::-1] - 12, RNG.uniform(0, 3, N), SIGNED), 1e-11),
    ("sph_harm_y", (ORDER, ORDER[::-1] - 12, RNG.uniform(-9, 9, N), SIGNED * 4), 1e-11),
    ("comb", (ORDER + 0.0, ORDER[::-1] * 0.5), 1e-11)]
REFERENCES = {"sici": even_ci}
MORE = {"sph_harm_y": {"n_max": 24}}


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def test_values():
    with jax.enable_x64():
        found = jax.jit(lambda rows: [getattr(ours, name)(*args, **MORE.get(name, {})) for (name, *_), args in zip(
            VALUES, rows)])([args for _, args, _ in VALUES])
    for (name, args, rtol), got in zip(VALUES, found):
        with np.errstate(all="ignore"):
            want = REFERENCES.get(name, getattr(theirs, name))(*args)
        for g, w in zip(as_tuple(got), as_tuple(want)):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-290, err_msg=name)


def test_values_in_single_precision():
    names = ["ndtri", "sici", "betaln"]
    rows = [row for row in VALUES if row[0] in names]
    narrow = [[x.astype(np.float32) if x.dtype == np.float64 else x for x in args] for _, args, _ in rows]
    found = jax.jit(lambda inputs: [getattr(ours, name)(*args) for (name, *_), args in zip(rows, inputs)])(narrow)
    for (name, *_), args, got in zip(rows, narrow, found):
        want = REFERENCES.get(name, getattr(theirs, name))(*[x.astype(float) for x in args])
        for g, w in zip(as_tuple(got), as_tuple(want)):
            usual = (np.abs(w) < 1e30) | ~np.isfinite(w)
            assert g.dtype == np.float32
            np.testing.assert_allclose(np.asarray(g)[usual], w[usual], rtol=2e-5, atol=2e-6, err_msg=name)


# name, arguments, by which of them
SLOPES = [("erfcx", (2.5,), 0), ("log_ndtr", (-3.0,), 0), ("ndtri", (0.01,), 0), ("erfcinv", (0.3,), 0), ("exp1", (0.7,), 0),
          ("expi", (-2.0,), 0), ("expn", (3, 1.5), 1), ("dawsn", (0.3,), 0), ("spence", (0.2,), 0), ("spence", (1.0,), 0),
          ("spence", (5.0,), 0), ("owens_t", (0.5, 2.0), 0), ("owens_t", (0.5, 0.3), 1), ("gamma", (-1.5,), 0),
          ("betaln", (20.0, 0.3), 0), ("poch", (4.0, 2.5), 1), ("xlogy", (0.5, 2.0), 1), ("entr", (0.4,), 0),
          ("logit", (0.3,), 0), ("boxcox", (2.0, 0.7), 1),
          ("boxcox", (3.0, 0.0), 1), ("boxcox1p", (3.0, 1e-3), 1), ("boxcox1p", (0.5, -2.0), 1),
          ("boxcox1p", (0.5, -2.0), 0),
          ("boxcox", (0.0, 2.0), 1), ("i1", (-2.0,), 0), ("hyp1f1", (1.5, 2.5, 0.7), 0),
          ("hyp1f1", (1.5, 2.5, 0.7), 1), ("hyp1f1", (1.5, 2.5, -3.0), 2), ("gammainc", (2.0, 1.5), 0),
          ("betainc", (2.0, 1.5, 0.3), 2), ("hyp2f1", (0.5, 1.5, 2.5, 0.3), 2), ("hyp2f1", (0.5, 1.5, 2.5, 0.3), 3)]


def test_derivatives():
    with jax.enable_x64():
        found = run(lambda rows: [
            jax.grad(getattr(ours, name), at)(*args) for (name, _, at), args in zip(SLOPES, rows)],
            [args for _, args, _ in SLOPES], compiled="the rest")
    for (name, args, at), got in zip(SLOPES, found):
        h = 1e-5
        after, before = ([x + step * (i == at) for i, x in enumerate(args)] for step in (h, -h))
        slope = (getattr(theirs, name)(*after) - getattr(theirs, name)(*before)) / (2 * h)
        np.testing.assert_allclose(got, slope, rtol=1e-6, err_msg=f"{name} {args}")


ENDS = [("gammasgn", (np.array([0.0, -0.0, -1, -0.5, -1.5, -INF]),), [1, -1, np.nan, -1, 1, np.nan]),
        ("gamma", (np.array([0.0, -0.0, -1, 172, INF, -INF]),), [INF, -INF, np.nan, INF, INF, np.nan]),
        ("xlogy", (0.0, -1.0), 0), ("xlogy", (0.0, np.nan), np.nan), ("entr", (-1.0,), -INF), ("rel_entr", (1.0, 0.0), INF),
        ("rel_entr", (0.0, 0.0), 0), ("kl_div", (0.0, 2.0), 2), ("comb", (2, 5), 0), ("comb", (-2, 1), 0),
        ("factorial", (-1.0,), 0), ("poch", (0.0, 0.0), 1), ("expn", (np.array([1, 2, 3]), np.array([0.0, 0.0, -1.0])), [
            INF, 1, np.nan]), ("ndtri", (-1.0,), np.nan), ("boxcox", (0.0, 0.5), -2), ("sici", (0.0,), (0, -INF))]


def test_ends():
    """As JAX gives them."""
    found, *slopes = jax.jit(lambda inputs: (
        [getattr(ours, name)(*args) for (name, *_), args in zip(ENDS, inputs)], jax.grad(ours.entr)(0.0),
        jax.grad(ours.entr)(-1.0), jax.grad(ours.poch, 1)(2.0, 0.0),
        jax.grad(ours.xlogy, 1)(0.0, 2.0)))([args for _, args, _ in ENDS])
    for (name, _, want), got in zip(ENDS, found):
        np.testing.assert_allclose(got, want, err_msg=name)
    np.testing.assert_allclose(slopes, [INF, 0, 0.42278436, 0], 1e-5)
    poles = [jax.grad(ours.polygamma, 1)(n, x) for n in (0, 1) for x in (0.0, -1.0)] + [
        jax.grad(ours.boxcox)(0.0, power) for power in (0.0, 1.0, -2.0)]
    np.testing.assert_array_equal(poles, [INF, INF, np.nan, np.nan, INF, 1, INF])


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("name, args", [
    ("hyp1f1", (1.5, 2.5, 0.7)), ("boxcox", (2.0, 0.7)), ("owens_t", (0.5, 2.0)), ("gammainc", (2.0, 1.5)),
    ("poch", (4.0, 2.5)), ("poch", (2.0, 0.0)), ("poch", (2.0, 1e-20)), ("hyp2f1", (0.5, 1.5, 2.5, 0.3)),
])
def test_derivatives_where_one_argument_is_an_array(name, args, at):
    """The others are numbers: as if they were arrays too."""
    at = min(at, len(args) - 1)
    x, function = np.float32([args[at], args[at] * 1.25]), getattr(ours, name)

    def both(x):
        return jax.vjp(lambda x: function(*args[:at], x, *args[at + 1:]), x)[1](np.ones(2, np.float32))[0]
    found = [both(x), jax.jit(both)(x), jax.vmap(both)(np.stack([x, x]))[1]]
    each = [jax.grad(function, at)(*args[:at], v, *args[at + 1:]) for v in x]
    for v in found:
        np.testing.assert_allclose(v, each, rtol=1e-4)


@pytest.mark.parametrize("name, scale, sign", [("dawsn", 0.5, 1), ("erfcx", np.pi**-0.5, -1)])
@pytest.mark.parametrize("x", [30.0, 100.0, 1e30, INF])
def test_slopes_far_out_do_not_cancel(name, scale, sign, x):
    """There the functions are nearly scale / x."""
    first, second = jax.grad(getattr(ours, name)), jax.grad(jax.grad(getattr(ours, name)))
    small = sign * 1.5 / x**2
    np.testing.assert_allclose(
        [first(x), second(x)],
        [-scale / x**2 * (1 + small), 2 * scale / x**3 * (1 + 2 * small)],
        rtol=2e-4,
        atol=1e-37,
    )


def polygamma(m, x):
    """By the recurrence from far to the right  (DLMF 5.15.5)."""
    m, steps = np.asarray(m), np.arange(200)[:, None]
    return theirs.polygamma(m, x + 200) + (-1) ** (m + 1) * theirs.factorial(m) * (
        1 / (x + steps) ** (m + 1)
    ).sum(0)


def far_bessel(k, x, *c):
    return sum(
        f * theirs.poch(-0.5 - n - k + 1, k) * x ** (-0.5 - n - k) for n, f in enumerate([1, *c])
    ) / np.sqrt(2 * np.pi)


WAY = np.array([-1e6, -300, 101, 1e4, 1e6])
LEFT = np.array([-0.3, -0.999, -3.4, -8.6, -10.5, -20.3, -100.25, 0.01, 2.0])
SMALL, FAR = np.array([-0.5, -1e-3, 1e-4, 0.1, 0.9, 1.1, 4]), np.array([-1e4, -1e3, -100, -20])
STEPS = {
    "gammaln": lambda k, x: polygamma(k - 1, x),
    "digamma": polygamma,
    "i0": lambda k, x: theirs.ivp(0, x, k),
    "i1": lambda k, x: theirs.ivp(1, x, k),
    "trigamma": lambda k, x: polygamma(k + 1, x),
    "hurwitz": lambda k, x: polygamma(k + 2, x) / -2,
    "log_ndtr": lambda k, x: [2 / x**3 - x - 1 / x, 1 / x**2 - 1 - 6 / x**4][k - 1],
    "logit": lambda k, x: np.array([-INF, -INF, INF]),
    # of sqrt(2 pi x) times them: 1 + 1 / (8 x) and 1 - 3 / (8 x)  (DLMF 10.40.1)
    "i0e": lambda k, x: np.sign(x) ** k * far_bessel(k, np.abs(x), 1 / 8, 9 / 128),
    "i1e": lambda k, x: np.sign(x) ** (k + 1) * far_bessel(k, np.abs(x), -3 / 8, -15 / 128),
    "poch": lambda k, x: theirs.gamma(2.5) * [1, 2 * (np.euler_gamma + theirs.digamma(2.5))][k - 1] + 0 * x,
}
OTHER_NAMES = {"trigamma": lambda x: ours.polygamma(1, x), "hurwitz": lambda x: ours.zeta(3.0, x),
               "poch": lambda x: ours.poch(x, 2.5)}


@pytest.mark.parametrize("name, order, x", [
    ("gammaln", 2, LEFT), ("gammaln", 3, LEFT), ("gammaln", 4, LEFT), ("digamma", 1, LEFT), ("trigamma", 1, LEFT),
    ("trigamma", 2, LEFT), ("hurwitz", 1, LEFT), ("hurwitz", 2, LEFT), ("i1", 1, SMALL), ("i1", 2, SMALL), ("i1", 3, SMALL),
    ("i0e", 1, WAY), ("i0e", 2, WAY), ("i1e", 1, WAY), ("i1e", 2, WAY),
    ("i0", 1, np.append(SMALL, [1e-10, 0])), ("i0", 2, SMALL), ("log_ndtr", 1, FAR), ("log_ndtr", 2, FAR),
    ("logit", 2, [0.0, 1e-30, 1.0]), ("poch", 1, [0.0, 1e-10]), ("poch", 2, [0.0, 1e-10])])
def test_slopes_of_slopes_in_single_precision(name, order, x):
    """Where sums of large terms, or XLA's functions left of 0, would leave nothing of them."""
    slope = OTHER_NAMES.get(name) or getattr(ours, name)
    for _ in range(order):
        slope = jax.grad(slope)
    x = np.float32(x)
    np.testing.assert_allclose(jax.vmap(slope)(x), STEPS[name](order, x.astype(float)), rtol=1e-3)


def test_those_of_other_arguments():
    np.testing.assert_allclose(ours.bernoulli(8), theirs.bernoulli(8), atol=1e-7)
    assert ours.bernoulli(300)[-1] == -np.inf      # which no float holds
    np.testing.assert_allclose(ours.multigammaln(3.5, 3), theirs.multigammaln(3.5, 3), rtol=1e-6)
    np.testing.assert_allclose(ours.comb(5, 2, repetition=True), 15, rtol=1e-5)
    z = np.array([0.0, 0.5, 3.0, 12.0], np.float32)
    np.testing.assert_allclose(ours.bessel_jn(z, v=3), [theirs.jv(k, z) for k in range(4)], atol=1e-6)
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(ours.softmax(x, axis=1), theirs.softmax(x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(ours.log_softmax(x), theirs.log_softmax(x), rtol=1e-5)
    np.testing.assert_allclose(ours.logsumexp(x), theirs.logsumexp(x), rtol=1e-5)
    np.testing.assert_allclose(ours.log_ndtr(-30.0, series_order=0), -454.32013, rtol=1e-6)
    types = jax.eval_shape(lambda x, y: (ours.erfcx(x), ours.ndtri(y), ours.expit(1j), ours.wofz(1.0)), np.ones(
        2, np.float16), np.ones(2, jax.numpy.bfloat16))
    assert [t.dtype.name for t in types] == ["float16", "bfloat16", "complex64", "complex64"]
    assert [float(ours.factorial(n)) for n in (0, 5, 35)] == [1, 120, INF] and ours.comb(20, 10) == 184756
    np.testing.assert_allclose(ours.boxcox(2 + 1j, 0.5j), ((2 + 1j) ** 0.5j - 1) / 0.5j, rtol=1e-5)
    np.testing.assert_allclose(ours.betainc(b=2, a=1, x=np.array([0.1, 1])), theirs.betainc(1, 2, [0.1, 1]), rtol=1e-5)


def test_those_that_are_primitives():
    x = np.array([0.3, 0.7], np.float32)
    found = jax.jit(lambda x: [f(x) for f in PRIMITIVE])(x)
    for function, got in zip(PRIMITIVE, found):
        np.testing.assert_allclose(got, getattr(theirs, function.__name__)(x), rtol=2e-6, err_msg=function.__name__)
    np.testing.assert_array_equal(ours.multigammaln(x, 0), [0, 0])
    np.testing.assert_array_equal(ours.poch(np.float32([2, 0.5, -0.5]), np.inf), [np.inf, np.inf, -np.inf])
    np.testing.assert_allclose(ours.zeta(x + 1.5, 2), theirs.zeta(x + 1.5, 2), rtol=2e-6)
    np.testing.assert_allclose(ours.gammaincc(2, x), theirs.gammaincc(2, x), rtol=2e-6)


@pytest.mark.parametrize("x, q", [(1.1, 0.2), (1.5, 1.0), (2.0, 4.0), (5.5, 0.5), (30.0, 2.0), (3.0, 100.0)])
def test_the_derivative_of_zeta_by_its_exponent_is_that_of_differences(x, q):
    with jax.enable_x64(True):
        slope = jax.grad(ours.zeta)(x, q)
    step = 1e-4
    around = theirs.zeta(x + step * np.array([-2, -1, 1, 2]), q)
    np.testing.assert_allclose(slope, around @ [1, -8, 8, -1] / (12 * step), rtol=1e-7)


PRIMITIVE = [ours.erf, ours.erfc, ours.erfinv, ours.digamma, ours.gammaln, ours.i0e, ours.i1e, ours.expit]


@pytest.mark.parametrize("call, error, words", [
    (lambda: ours.erf(1j), TypeError, "does not take complex numbers, got complex64"),
    (lambda: ours.entr(1j), ValueError, "does not take complex numbers, got complex64"),
    (lambda: ours.polygamma(1.5, 2.0), ValueError, "integer type, got float32"),
    (lambda: ours.zeta(2.0), NotImplementedError, "is zeta\\(x, 1\\)"),
    (lambda: ours.factorial(5, exact=True), NotImplementedError, "math.factorial"),
    (lambda: ours.bernoulli(-1), ValueError, "non-negative"),
    (lambda: ours.log_ndtr(0.0, 1.5), TypeError, "Python integer"), (lambda: ours.log_ndtr(0.0, 31), ValueError, "0 to 30"),
    (lambda: ours.bessel_jn(1.0, v=-1), ValueError, "0 <= v < n_iter"),
    (lambda: ours.gamma([1.0, 2.0]), TypeError, "jnp.array"),
    (lambda: ours.sph_harm_y(1, 1, 0.3, 0.4, diff_n=1), NotImplementedError, "diff_n"),
    (lambda: ours.sph_harm_y(1.0, 1, 0.3, 0.4), TypeError, "n must be of integers"),
    (lambda: jax.jit(ours.sph_harm_y)(1, 1, 0.3, 0.4), TypeError, "n_max"),
    (lambda: ours.lpmn_values(1, 2, np.ones(2), True), NotImplementedError, "m=1, n=2"),
    (lambda: ours.lpmn_values(2, 2, 0.5, True), ValueError, "vector"),
    (lambda: ours.lpmn(-1, -1, np.ones(2)), ValueError, "n=-1"),
    (lambda: ours.lpmn(1, 1, np.arange(2)), TypeError, "float32 or float64, got int32")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("degree", [0, 1, 12])
def test_legendre_functions(degree):
    z = np.float32([-1, -0.5, 0.3, 0.9, 1])
    orders, degrees = np.indices((degree + 1, degree + 1))
    expected = theirs.lpmv(orders[..., None], degrees[..., None], z.astype(float))
    expected[orders > degrees] = 0
    np.testing.assert_allclose(ours.lpmn_values(degree, degree, z, False), expected, rtol=1e-4, atol=1e-5)
    scale = np.sqrt((2 * degrees + 1) / (4 * np.pi) * theirs.poch(degrees + orders + 1.0, -2 * orders))
    scale[orders > degrees] = 0
    normalized = ours.lpmn_values(degree, degree, z, True)
    np.testing.assert_allclose(normalized, expected * scale[..., None], rtol=1e-4, atol=1e-5)
    values, slopes = ours.lpmn(degree, degree, z[1:4])
    np.testing.assert_allclose(values, expected[..., 1:4], rtol=1e-4, atol=1e-5)
    h, at = 1e-6, z[1:4].astype(float)
    above, below = (theirs.lpmv(orders[..., None], degrees[..., None], at + d) for d in (h, -h))
    np.testing.assert_allclose(slopes, np.where((orders > degrees)[..., None], 0, above - below) / (2 * h), rtol=1e-3, atol=1e-3)


def test_limits():
    p, q = np.float32([INF, 0, 1, 2, -1]), np.float32([0, INF, 0, 2, -1])
    for name, args in (("expi", ([INF, -INF, 0],)), ("exp1", ([INF, 0],)), ("expn", (2, [INF, 0])), ("spence", ([0, 1],)),
                       ("sici", ([INF, 1],)), ("kl_div", (p, q)), ("rel_entr", (p, q)), ("loggamma", ([0, INF],))):
        args = [np.float32(a) if isinstance(a, list) else a for a in args]
        np.testing.assert_allclose(getattr(ours, name)(*args), getattr(theirs, name)(*args), rtol=1e-6, atol=1e-7,
                                   err_msg=name)


def test_python_numbers_outside_of_programs():
    """As arrays also where a function is run step by step: under vmap of something else, and with disable_jit."""
    names = "gamma loggamma factorial expi log_ndtr erfcx softmax log_softmax".split()
    functions = [getattr(jax.scipy.special, name) for name in names]
    want = [float(f(2.5)) for f in functions]
    mapped = jax.vmap(lambda x: [x * f(2.5) for f in functions])(np.ones(1))
    np.testing.assert_allclose(np.ravel(mapped), want, 1e-6)
    with jax.disable_jit():
        found = [f(2.5) for f in functions]
    np.testing.assert_allclose(found, want, 1e-6)


def test_the_slopes_of_the_sine_and_cosine_integrals():
    x = np.array([-9., -1., 0.5, 3., 5., 40.], np.float32)
    for i, want in enumerate((np.sin(x) / x, np.cos(x) / x)):
        np.testing.assert_allclose(jax.vmap(jax.grad(lambda x, i=i: ours.sici(x)[i]))(x), want, rtol=1e-5)
    assert jax.grad(lambda x: ours.sici(x)[0])(0.) == 1


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betaln"])
def test_every_pair_of_sizes_of_float32(name):
    sizes = [2 ** -126, 1e-30, 1e-8, 1e-3, 0.2, 0.75, 0.999, 1, 1.5, 10, 60, 1e3, 1e10, 1e30]
    if name != "betaln":        # a number whose ratio to 1 is too small is lost there, as in JAX
        sizes.append(float(np.finfo(np.float32).max))
    a, b = (x.ravel().astype(np.float32) for x in np.meshgrid(sizes, sizes))
    with np.errstate(all="ignore"):
        wanted = getattr(theirs, name)(a.astype(float), b.astype(float)).astype(np.float32)
    np.testing.assert_allclose(getattr(ours, name)(a, b), wanted, rtol=2e-3, atol=1e-6)
