"""scipy.stats against SciPy: every function of every law over wide ranges, in both precisions; samples; derivatives."""
import warnings

import numpy as np
import pytest
from not_compiled import ones_for_results
from reference import run
from scipy import stats as theirs

import hlotrace as jax
import hlotrace.scipy.stats as ours
from hlotrace.scipy.stats.distributions import LAWS as TABLE

RNG = np.random.default_rng(0)
N, INF, NAN = 120, np.inf, np.nan
LINE = np.concatenate([RNG.normal(size=N) * 2, RNG.normal(size=N) * 20, [0.0, INF, -INF, NAN]])
HALF = np.concatenate([10 ** RNG.uniform(-4, 3, 2 * N), [0.0, INF, -1.0, NAN]])
PART = np.concatenate([RNG.random(N), 10 ** RNG.uniform(-8, -1, N), [0.0, 1.0, -1.0, NAN]])
COUNT = np.concatenate([RNG.integers(0, 8, N), RNG.integers(0, 400, N), [0, -1, 3, 900]])
SIZE = RNG.integers(0, 500, len(COUNT))
A, B = 10 ** RNG.uniform(-1.5, 2.5, (2, len(HALF)))
P = RNG.uniform(0.01, 0.99, len(COUNT))
LEFT = np.concatenate([RNG.uniform(-40, 40, 2 * N), [-INF, 0.5, -INF, 20]])
RIGHT = LEFT + 10 ** RNG.uniform(-2, 2, len(LEFT))
RIGHT[-4:] = [INF, 0.5, 3.0, INF]
AMONG = LEFT + 10 ** RNG.uniform(-2, 2, len(LEFT))
AMONG[-4:] = 1, 0.5, -1, 21
LAWS = {        # values, parameters
    "norm": (LINE,), "cauchy": (LINE,), "laplace": (LINE,), "logistic": (LINE,), "gumbel_r": (LINE,), "gumbel_l": (LINE,),
    "gennorm": (LINE, A), "t": (LINE, A), "vonmises": (LINE, A), "expon": (HALF,), "gamma": (HALF, A),
    "chi2": (HALF, A), "pareto": (HALF, A), "uniform": (PART,), "beta": (PART, A, B), "truncnorm": (AMONG, LEFT, RIGHT),
    "wrapcauchy": (PART * 6.28, P), "bernoulli": (COUNT % 3 - 1, P), "binom": (COUNT, SIZE, P),
    "betabinom": (COUNT, SIZE, A, B), "geom": (COUNT, P), "nbinom": (COUNT, SIZE + 1, P), "poisson": (COUNT, A)}
VALUES, QUANTILES = "pdf logpdf pmf logpmf cdf sf logcdf logsf".split(), ["ppf", "isf"]
WHOLE = ["norm", "beta"]        # of which also that is tested which follows from the rest


def tasks(dtype):
    """(law, function, arguments) of the functions of values and of probabilities that are in rows."""
    for law, (x, *parameters) in LAWS.items():
        counts = hasattr(getattr(ours, law), "pmf")
        place = [3] if counts else [0.0, 1.0] if x is PART else [0.5, 2.0]
        moved = x + 3 if counts else x * place[1] + place[0]
        for name in dir(getattr(ours, law)):
            form = name in TABLE[law].forms and (name not in ("cdf", "sf") or dtype == np.float64 or law == "gennorm")
            if name in VALUES and (form or law in WHOLE and dtype == np.float64):
                args = moved, *parameters, *place
            elif name in QUANTILES:
                args = PART, *parameters, *place
            else:
                continue
            yield law, name, tuple(np.asarray(a, dtype) for a in args)


def expected(law, name, args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(getattr(theirs, law), name)(*[np.asarray(a, float) for a in args])


# Where SciPy itself is not right: NaN, or logarithms of what is below the smallest number.
def known(law, name, args, want):
    usual = ~(np.isinf(args[0]) & np.isnan(want))
    if law == "bernoulli" and name == "ppf":
        usual &= args[0] != 0       # loc - 1 there, and loc in JAX
    if law in ("pareto", "geom", "binom", "nbinom", "poisson") and name.startswith("log"):
        usual &= (want > -700) & (want < -1e-15)
    if law in ("gamma", "chi2", "beta") and name in ("logcdf", "logsf"):
        usual &= want > -700
    return usual


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values(dtype):
    """The wide ones by NumPy's operations, so that the formulas alone are asked, the others by XLA's, each compiled alone:
    of all formulas in one program XLA makes four megabytes in ten seconds."""
    wide = dtype == np.float64
    with jax.enable_x64(wide):
        rows = list(tasks(dtype))

        def everything(inputs):
            return [getattr(getattr(ours, law), name)(*args) for (law, name, _), args in zip(rows, inputs)]
        inputs = [a for *_, a in rows]
        found = run(everything, inputs, compiled="the rest" if wide else "all")
    wrong = []
    for (law, name, args), got in zip(rows, found):
        want = expected(law, name, args)
        assert got.dtype == dtype
        usual = known(law, name, args, want)
        got = np.asarray(got, float)
        with np.errstate(all="ignore"):
            error = np.abs(got - want) / (np.abs(want) + (1e-280 if wide else 0.05))
        if not wide:        # what is too large or small for the dtype
            usual &= (np.abs(want) < 1e38) & ((np.abs(want) > 1e-37) | (want == 0)) & ~(np.isinf(got) & (want < -80))
        error[(got == want) | np.isnan(got) & np.isnan(want) | ~usual] = 0
        error[np.isnan(error)] = INF
        i = int(np.argmax(error))
        if error[i] > (1e-11 if wide else 4e-5):
            at = [float(np.broadcast_to(a, got.shape)[i]) for a in args]
            wrong.append(f"{law}.{name}{at}: {got[i]!r}, not {want[i]!r}: {error[i]:.1e}")
    assert not wrong, "\n".join(wrong)


def test_quantiles_by_name():
    assert ours.logistic.ppf(x=0.5) == ours.logistic.isf(x=0.5) == ours.gumbel_r.ppf(p=np.exp(-1)) == 0


def test_entropy_and_module_paths():
    import hlotrace.scipy.stats.poisson as poisson
    assert poisson is ours.poisson
    mu = np.array([0, 0.01, 1, 10, 99.9, 100.1, 1e4, -1, NAN])
    with jax.enable_x64():
        found = poisson.entropy(mu)
    np.testing.assert_allclose(found[1:-3], theirs.poisson.entropy(mu[1:-3]), rtol=1e-9)
    np.testing.assert_allclose(found[-3], np.log(2e4 * np.pi * np.e) / 2 - 1 / 12e4, rtol=1e-9)
    np.testing.assert_array_equal(np.asarray(found)[[0, -2, -1]], [0, NAN, NAN])


# law, function, arguments, and what mpmath gives: the tail itself is too small for a number
FAR = [("gamma", "logcdf", (1e-5, 100.0), -1515.0318717377), ("gamma", "logsf", (3000.0, 2.0), -2991.9932988643),
       ("gamma", "logcdf", (7e4, 1e5), -5672.9659), ("chi2", "logsf", (1e5, 2e3), -45096.242),
       ("beta", "logcdf", (1e-4, 200.0, 3.0), -1832.1498), ("beta", "logsf", (0.999, 3.0, 300.0), -2061.6042)]


def test_logarithms_of_far_tails():
    everything = lambda rows: (
        [getattr(getattr(ours, law), name)(*args) for (law, name, *_), args in zip(FAR, rows)],
        jax.grad(ours.gamma.logsf, (0, 1))(3000.0, 2.0), jax.grad(ours.beta.logcdf)(1e-4, 200.0, 3.0))
    inputs = [[*np.float32(args)] for _, _, args, _ in FAR]
    *found, by_x, by_a, of_beta = run(everything, inputs, compiled="the rest")
    for (law, *_, want), got in zip(FAR, found, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=3e-6, err_msg=law)
    wanted = -0.9996667777, 7.583916566, 1.999998009
    np.testing.assert_allclose([by_x, by_a, of_beta * 1e-6], wanted, rtol=2e-4)


# law, function, arguments, by which of them
SLOPES = [("norm", "logcdf", (-30.0, 0.5, 2.0), 2), ("norm", "logsf", (9.0,), 0),
          ("truncnorm", "logpdf", (20.5, 20.0, 22.0), 1), ("truncnorm", "logcdf", (-0.3, -1.0, 2.0), 2),
          ("truncnorm", "logsf", (20.5, 20.0, 20.9), 0), ("truncnorm", "logcdf", (1.0, 0.0, np.inf), 0),
          ("truncnorm", "logcdf", (1.0, 0.0, np.inf), 1), ("truncnorm", "logcdf", (-1.0, -np.inf, 1.0), 0),
          ("truncnorm", "logsf", (-1.0, -np.inf, 1.0), 2),
          ("gamma", "logpdf", (3.0, 200.0), 1), ("gamma", "logsf", (3.0, 2.0), 1), ("beta", "logpdf", (0.3, 2.0, 300.0), 2),
          ("t", "logpdf", (1.5, 7.0), 1), ("gennorm", "cdf", (0.5, 1.5), 0), ("cauchy", "ppf", (1e-3,), 0),
          ("binom", "logpmf", (3, 10, 0.4), 2), ("poisson", "logpmf", (3, 2.5), 1), ("nbinom", "logpmf", (3, 10.0, 0.3), 1),
          ("wrapcauchy", "logpdf", (3.0, 0.4), 1), ("vonmises", "logpdf", (1.0, 2.0), 1), ("gumbel_r", "logsf", (20.0,), 0),
          ("pareto", "logcdf", (3.0, 2.0), 1), ("laplace", "logcdf", (0.7,), 0),
          ("betabinom", "logpmf", (3, 10, 2.0, 3.0), 2)]

BEYOND = ("gamma", (-1.0, 0.5)), ("beta", (1.5, 0.5, 2.0)), ("pareto", (0.5, 2.0)), ("truncnorm", (3.0, -1.0, 2.0))


def test_derivatives():
    """And none is NaN outside of the support."""
    with jax.enable_x64():
        everything = lambda rows: (
            [jax.grad(getattr(getattr(ours, law), name), at)(*args) for (law, name, _, at), args in zip(SLOPES, rows)],
            [jax.grad(getattr(ours, law).logpdf, (0, 1))(*args) for law, args in BEYOND])
        found = run(everything, [[float(x) for x in args] for *_, args, _ in SLOPES], compiled="the rest")
        found, outside = found[:len(SLOPES)], found[len(SLOPES):]
    for (law, name, args, at), got in zip(SLOPES, found):
        step = 1e-5 * max(abs(args[at]) * 1e-2, 0.1)
        after, before = ([x + by * (i == at) for i, x in enumerate(args)] for by in (step, -step))
        function = getattr(getattr(theirs, law), name)
        np.testing.assert_allclose(got, (function(*after) - function(*before)) / (2 * step), 2e-6, err_msg=f"{law}.{name}")
    assert not np.any(outside)


def test_nan_has_derivatives_of_nan():
    """Of every function: where its value is NaN, for an argument of NaN or a scale that is not allowed, no derivative by
    that argument is a 0 that hides it."""
    rows = []
    for law, (_, *parameters) in LAWS.items():
        counts = hasattr(getattr(ours, law), "pmf")
        places = [0.5] * len(parameters) + [0.0] + [1.0] * (not counts)
        for name in set(TABLE[law].forms) - {"entropy"}:
            rows.append((law, name, (NAN, *places), 0))
            if not counts:
                rows.append((law, name, (0.5, *places[:-1], -1.0), len(places)))
    everything = lambda inputs: [jax.value_and_grad(getattr(getattr(ours, law), name), at)(*args)
                                 for (law, name, _, at), args in zip(rows, inputs)]
    found = run(everything, [[*np.float32(args)] for *_, args, _ in rows], compiled="the rest")
    for (law, name, args, at), value, slope in zip(rows, found[::2], found[1::2], strict=True):
        assert np.isnan(value), (law, name, args)
        # of counts distribution functions round x
        assert (
            slope != 0 or (law, name, at) == ("uniform", "logpdf", 0) or hasattr(getattr(ours, law), "pmf")
        ), (law, name)


def test_dtypes_and_batches():
    x = np.arange(3)
    assert [ours.norm.pdf(x.astype(t)).dtype.name for t in ("int32", "bool", "float16")] == ["float32", "float32", "float16"]
    assert ours.gamma.cdf(jax.numpy.bfloat16(1), a=2, scale=3).dtype == "bfloat16"
    assert ours.norm.cdf(jax.numpy.bfloat16(0)) == 0.5 and ours.norm.logsf(jax.numpy.bfloat16(1)).dtype == "bfloat16"
    assert ours.norm.ppf(0) == -np.inf and jax.scipy.special.ndtri(1) == np.inf
    found = jax.vmap(ours.poisson.logpmf, (0, None))(x, np.array([0.5, 2.0], np.float32))
    np.testing.assert_allclose(found, theirs.poisson.logpmf(x[:, None], [0.5, 2.0]), rtol=2e-6)
    assert ours.norm.logpdf(np.zeros((0, 3)), np.zeros(3)).shape == (0, 3)
    bad = [ours.norm.pdf(0.0, 0, -1), ours.gamma.logpdf(1.0, -1), ours.beta.cdf(0.5, 0, 1), ours.binom.pmf(0, 3, 1.5),
           ours.truncnorm.logpdf(0.5, 1, 0), ours.norm.ppf(1.5)]
    assert np.isnan(bad).all()


def test_several_variables():
    alpha, p = np.array([0.5, 1.0, 30.0, 4e3]), np.array([0.2, 0.0, 0.5, 0.3])
    x = RNG.dirichlet(alpha, 5).T
    x /= x.sum(0)
    counts = RNG.multinomial(1000, p, 4)
    points, mean, root = RNG.normal(size=(5, 3)), RNG.normal(size=3), RNG.normal(size=(2, 1, 3, 3))
    cov = root @ root.swapaxes(-1, -2)
    with jax.enable_x64():
        found = jax.jit(lambda x, counts, points: (
            ours.dirichlet.logpdf(x, alpha), ours.dirichlet.pdf(x[:-1], alpha), ours.multinomial.logpmf(counts, 1000, p),
            ours.multinomial.pmf(counts, np.array([1000, 999, 0, 1000]), p),
            ours.multivariate_normal.logpdf(points, mean, cov), ours.multivariate_normal.pdf(points, mean, cov[0, 0]),
            ours.multivariate_normal.logpdf(points, 0.5, 2.0)))(x, counts, points)
    want = [theirs.dirichlet.logpdf(x, alpha), theirs.dirichlet.pdf(x, alpha), theirs.multinomial.logpmf(counts, 1000, p),
            theirs.multinomial.pmf(counts, [1000, 999, 0, 1000], p),
            [theirs.multivariate_normal.logpdf(points, mean, c[0]) for c in cov],
            theirs.multivariate_normal.pdf(points, mean, cov[0, 0]), theirs.norm.logpdf(points, 0.5, np.sqrt(2))]
    for got, w in zip(found, want):
        np.testing.assert_allclose(got, w, rtol=1e-8)
    assert np.isneginf(ours.dirichlet.logpdf(np.array([0.2, 0.3]), np.ones(2)))
    assert np.isnan(ours.dirichlet.logpdf(np.array([0.2, 0.8]), np.array([-1.0, 2.0])))
    assert np.isnan(ours.multivariate_normal.logpdf(np.ones(2), np.zeros(2), -np.eye(2)))


def test_samples():
    x = RNG.integers(0, 4, (5, 7, 6))
    for axis, keep in ((0, False), (-1, True), (None, True)):
        for got, want in zip(ours.mode(x, axis, keepdims=keep), theirs.mode(x, axis, keepdims=keep)):
            np.testing.assert_array_equal(got, want)
    for method in ("average", "min", "max", "dense", "ordinal"):
        np.testing.assert_array_equal(ours.rankdata(x[0], method, axis=1), theirs.rankdata(x[0], method, axis=1))
    holes = np.where(x == 3, np.nan, x).astype(np.float32)
    np.testing.assert_array_equal(ours.rankdata(holes[0, 0]), theirs.rankdata(holes[0, 0]))
    for axis, policy in ((None, "omit"), (1, "propagate")):
        np.testing.assert_allclose(ours.sem(holes, axis, 2, policy), theirs.sem(holes, axis, 2, policy), rtol=2e-5)
    empty = ours.mode(np.zeros((0, 2)))
    assert np.isnan(empty.mode).all() and not np.any(empty.count)
    assert ours.rankdata(np.zeros((2, 0)), axis=1).shape == (2, 0)


@pytest.mark.parametrize("shape, method", [((40,), lambda kde: kde.neff ** -0.3), ((2, 40), "silverman")])
def test_density_estimate(shape, method):
    data, points, weights = RNG.normal(size=shape), RNG.normal(size=(*shape[:-1], 9)), RNG.random(40)
    mean, cov = np.ones(len(shape)), np.eye(len(shape)) * 0.3

    def everything(stats, data):
        kde = stats.gaussian_kde(data, method, weights)
        return [kde(points), kde.logpdf(points), kde.integrate_gaussian(mean, cov), kde.integrate_kde(kde), kde.covariance,
                kde.neff, kde.inv_cov, kde.integrate_box_1d(-1, 0.5) if len(shape) == 1 else 0], kde
    with jax.enable_x64():
        found, kde = jax.jit(lambda data: everything(ours, data))(data)
        drawn = np.asarray(kde.resample(jax.random.key(0), (500,)))
        of_half = jax.eval_shape(lambda: ours.gaussian_kde(data.astype(np.float16))(points))
    assert of_half.dtype == np.float64      # the dtypes of both are promoted
    for got, want in zip(found, everything(theirs, data)[0]):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    assert (kde.d, kde.n, drawn.shape) == (len(shape), 40, (len(shape), 500))
    np.testing.assert_allclose(drawn.mean(1), (data * np.asarray(kde.weights)).sum(-1), atol=0.3)


@pytest.mark.parametrize("call, error, words", [
    (lambda: ours.norm.pdf(1j), TypeError, "stats.norm.pdf does not take complex"),
    (lambda: ours.dirichlet.pdf(np.ones(4), np.ones(2)), TypeError, "k=2 or 1 entries"),
    (lambda: ours.dirichlet.pdf(np.ones(4), 1.0), ValueError, "alpha must be a vector"),
    (lambda: ours.multinomial.pmf(np.ones(2), 2, np.ones(2)), ValueError, "x of float"),
    (lambda: ours.multivariate_normal.logpdf(np.ones(2), np.ones(2), np.eye(3)), ValueError, "cov of \\(3, 3\\)"),
    (lambda: ours.multivariate_normal.logpdf(0.0, 0.0, 1.0, allow_singular=True), NotImplementedError, "identity to cov"),
    (lambda: ours.mode(np.ones(2), nan_policy="omit"), NotImplementedError, "nan_policy='omit'"),
    (lambda: ours.rankdata(np.ones(2), "best"), ValueError, "got 'best'"),
    (lambda: ours.sem(np.ones(2), nan_policy="raise"), NotImplementedError, "'propagate' and 'omit' are"),
    (lambda: ours.gaussian_kde(np.ones(1)), ValueError, "multiple elements"),
    (lambda: ours.gaussian_kde(np.ones(3), "best"), ValueError, "got 'best'"),
    (lambda: ours.gaussian_kde(np.arange(3.0)).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    (lambda: ours.gaussian_kde(np.arange(3.0)).set_bandwidth(1), NotImplementedError, "gaussian_kde\\(dataset, 1\\)"),
    (lambda: ours.gaussian_kde(np.arange(3.0)).pdf(np.ones((2, 5))), ValueError, "points must be \\(1, m\\)")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_weak_types():
    """A function of Python numbers gives way to the dtype of what is beside it, but for those of which JAX's does not."""
    special = jax.scipy.special
    for function, count, weak in (
        (ours.norm.pdf, 1, True),
        (ours.beta.pdf, 3, True),
        (ours.chi2.logpdf, 2, True),
        (ours.nbinom.pmf, 3, True),
        (special.betaln, 2, True),
        (special.factorial, 1, True),
        (ours.norm.cdf, 1, False),
        (ours.uniform.cdf, 1, False),
        (ours.truncnorm.pdf, 3, False),
        (special.ndtri, 1, False),
        (special.sici, 1, False),
        (special.exp1, 1, False),
        (lambda a: special.multigammaln(a, 2), 1, False),
    ):
        numbers = [jax.numpy.asarray(0.5)] * count
        with ones_for_results():
            assert {x.weak_type for x in jax.tree.leaves(function(*numbers))} == {weak}, function
            assert not any(x.weak_type for x in jax.tree.leaves(function(*numbers[1:], np.float32(0.5))))
    assert (ours.norm.pdf(0.5) * jax.numpy.bfloat16(2)).dtype == "bfloat16"


def test_ends_of_the_support():
    np.testing.assert_array_equal(ours.cauchy.ppf(np.float32([0, 1])), [-np.inf, np.inf])
    np.testing.assert_array_equal(ours.cauchy.isf(np.float32([0, 1])), [np.inf, -np.inf])
    zero = np.float32(0)
    found = [ours.chi2.pdf(zero, 2), ours.gamma.pdf(zero, 1), ours.beta.pdf(zero, 1, 3)]
    np.testing.assert_allclose(found, [0.5, 1, 3], rtol=1e-6)
    with pytest.raises(TypeError, match="does not take complex numbers"):
        ours.norm.pdf(1j)


@pytest.mark.parametrize("law, function, arguments", [
    ("gamma", "logpdf", ([3.4e38, 2.0**-126, 2.0**-126, 1e-30, 1e30, 0.5, 1.5],
                         [0.5, 1e4, 1e-10, 1e6, 0.999, 0.3, 0.999])),
    ("gamma", "logcdf", ([2.0**-126, 1e-30], [1e-10, 1e-3])),
    ("poisson", "logpmf", ([0, 1, 5, 0], [1e-30, 1e-37, 1e-30, 1e30]))])
def test_ratios_that_are_no_numbers_of_float32(law, function, arguments):
    x, parameter = (np.array(a, np.float32) for a in arguments)
    wanted = getattr(getattr(theirs, law), function)(x.astype(float), parameter.astype(float))
    np.testing.assert_allclose(getattr(getattr(ours, law), function)(x, parameter), wanted, rtol=1e-4,
                               atol=1e-6)
