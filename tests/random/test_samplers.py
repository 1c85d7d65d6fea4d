"""Distributions with parameters: the values that JAX 0.10.2 and 0.12.0.1 give; their laws, by SciPy; errors."""
import numpy as np
import pytest
from draws import COV, KEY, MEAN, P
from scipy import stats

import hlotrace
import hlotrace.numpy as jnp
from hlotrace import random
from hlotrace.core.config import override

N = (2000,)
# a draw, the first three values of JAX's, the law
LAWS = {
    "beta": (lambda k: random.beta(k, 2.0, 0.5, N), [0.7206349, 0.98605925, 0.997959], stats.beta(2, 0.5)),
    "binomial": (lambda k: random.binomial(k, 10, 0.3, N), [5, 4, 3], stats.binom(10, 0.3)),
    "binomial, many": (lambda k: random.binomial(k, 100.0, 0.6, N), [57, 57, 59], stats.binom(100, 0.6)),
    "chisquare": (lambda k: random.chisquare(k, 3, N), [3.0220666, 1.0437909, 1.1556823], stats.chi2(3)),
    "double_sided_maxwell": (lambda k: random.double_sided_maxwell(k, 1.0, 2.0, N), [-1.4771912, -4.1701055, 3.7603445],
                             None),
    "f": (lambda k: random.f(k, 3.0, 4.0, N), [0.55251634, 1.1639649, 1.7831295], stats.f(3, 4)),
    "gamma, below 1": (lambda k: random.gamma(k, 0.3, N), [5.7158809e-07, 0.15852943, 7.0461756e-05], stats.gamma(0.3)),
    "gamma": (lambda k: random.gamma(k, 2.0, N), [2.072419, 0.86365986, 0.93690395], stats.gamma(2)),
    "generalized_normal": (lambda k: random.generalized_normal(k, 3.0, N), [-0.115571216, -0.6661777, 0.05335378],
                           stats.gennorm(3)),
    "generalized_normal, nearly uniform": (lambda k: random.generalized_normal(k, 1e5, N), [], stats.uniform(-1, 2)),
    "geometric": (lambda k: random.geometric(k, 0.2, N), [2, 1, 6], stats.geom(0.2)),
    "loggamma": (lambda k: random.loggamma(k, 0.3, N), [-14.374847, -1.841815, -9.560441], stats.loggamma(0.3)),
    "lognormal": (lambda k: random.lognormal(k, 2.0, N), [2.4656866, 49.744595, 0.35612306], stats.lognorm(2)),
    "maxwell": (lambda k: random.maxwell(k, N), [2.0702865, 0.7144703, 1.4999796], stats.maxwell()),
    "multinomial": (lambda k: random.multinomial(k, 100, P, shape=(*N, 4))[:, 1], [20, 21, 13],
                    stats.binom(100, 0.2)),
    "multivariate_normal": (lambda k: random.multivariate_normal(k, MEAN, COV, N)[:, 1], [2.9115505, -0.33765233, 1.0446743],
                            stats.norm(0.2, 2 ** 0.5)),
    "pareto": (lambda k: random.pareto(k, 2.0, N), [1.7516652, 6.276644, 1.1976637], stats.pareto(2)),
    "poisson": (lambda k: random.poisson(k, 3.0, N), [4, 1, 1], stats.poisson(3)),
    "poisson, many": (lambda k: random.poisson(k, 30.0, N), [33, 33, 31], stats.poisson(30)),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, N), [1.7762698, 0.45352685, 3.0913284], stats.rayleigh(scale=2)),
    "t": (lambda k: random.t(k, 3.0, N), [2.315182, 0.14994875, -0.5002365], stats.t(3)),
    "triangular": (lambda k: random.triangular(k, -1.0, 0.5, 2.0, N), [0.7889693, 1.6620295, 0.16738856],
                   stats.triang(0.5, -1, 3)),
    "wald": (lambda k: random.wald(k, 2.0, N), [0.47095108, 2.4427164, 0.97057796], stats.invgauss(2)),
    "wald, great mean": (lambda k: random.wald(k, 1e4, N), [0.805606, 49.36095, 3.66088],
                         stats.invgauss(1e4)),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 3.0, N), [2.0776982, 3.086006, 1.4237387],
                    stats.weibull_min(3, scale=2)),
}


@pytest.fixture(scope="module")
def drawn():
    """Operation by operation: what they share is compiled once."""
    with hlotrace.disable_jit():
        return {name: np.asarray(call(KEY)) for name, (call, _, _) in LAWS.items()}


@pytest.mark.parametrize("name", LAWS)
def test_values_are_those_of_jax_and_of_the_law(drawn, name):
    _, first, law = LAWS[name]
    x = drawn[name]
    assert x.shape == N and x.dtype == (np.int32 if name[:7] in ("geometr", "poisson") else np.float32)
    np.testing.assert_allclose(x[:len(first)], first, 1e-5)
    if law is not None and not hasattr(law.dist, "pmf"):
        assert stats.kstest(x, law.cdf).pvalue > 1e-3
    elif law is not None:
        counts = np.array([np.sum(x <= q) for q in law.ppf([0.1, 0.3, 0.5, 0.7, 0.9])])
        want = law.cdf(law.ppf([0.1, 0.3, 0.5, 0.7, 0.9])) * x.size
        assert np.all(abs(counts - want) < 4 * np.sqrt(x.size) / 2)


def test_shapes_and_dtypes():
    out = hlotrace.eval_shape(lambda key: {
        "float16": [random.gamma(key, 2.0, (2,), "float16"), random.maxwell(key, (2,), "float16"),
                    random.binomial(key, 10, 0.3, (2,), "float16"), random.multinomial(key, 9, P[:2], dtype="float16")],
        "int8": [random.poisson(key, 3, (2,), "int8"), random.geometric(key, np.full(2, 0.2, np.float32), dtype="int8")],
        "shapes": [random.gamma(key, np.ones((2, 1)), (3, 2, 5)), random.dirichlet(key, np.ones((2, 1, 3)), (2, 4)),
                   random.multivariate_normal(key, np.zeros((2, 1, 2)), COV, (2, 3)), random.ball(key, 4, shape=(2, 3)),
                   random.double_sided_maxwell(key, np.zeros(3), 1.0, (2,)), random.poisson(key, 2.0, (0,))]}, KEY)
    assert {x.dtype.name for x in out["float16"]} == {"float16"} and {x.dtype.name for x in out["int8"]} == {"int8"}
    assert [x.shape for x in out["shapes"]] == [(3, 2, 5), (2, 4, 3), (2, 3, 2), (2, 3, 4), (2, 3), (0,)]
    with hlotrace.enable_x64():
        narrow = hlotrace.eval_shape(
            lambda key: random.multinomial(key, np.float32(9), P, dtype="float32"), KEY
        )
    assert narrow.dtype == "float32"
    ratios = random.f(KEY, 3.0, 4.0, (3,), "bfloat16")        # JAX's, to the bit
    np.testing.assert_array_equal(ratios.astype("float32"), np.float32([0.380859375, 1.6484375, 0.357421875]))


def test_ends_of_what_parameters_can_be():
    a = np.array([0, np.nan, -1, np.inf, 5, 5, 5, 5, 5], np.float32)
    p = np.array([0.5, 0.5, 0.5, 0.5, 0, np.nan, -1, 1.5, 1], np.float32)
    draws = hlotrace.jit(lambda key: [random.gamma(key, a[:4] / 2), random.poisson(key, a[:4]), random.binomial(key, a, p),
                                      random.geometric(key, p[::4])])(KEY)
    gamma, poisson, binomial, geometric = (np.asarray(x).tolist() for x in draws)
    assert gamma[0] == 0 and np.isnan(gamma[1:3]).all() and gamma[3] == np.inf
    assert poisson[:3] == [0, -1, -1] and geometric[1:] == [2**31 - 1, 1]
    np.testing.assert_array_equal(binomial, [0, np.nan, np.nan, np.inf, 0, np.nan, np.nan, np.nan, 5])


def test_x64():
    with override("jax_enable_x64", True):
        draws = [random.pareto(KEY, 2.0), random.geometric(KEY, 0.5), random.binomial(KEY, np.float32(9), np.float32(0.5))]
    assert [x.dtype.name for x in draws] == ["float64", "int64", "float64"]


def test_vmap_is_the_loop():
    keys, a = random.split(KEY, 3), np.array([0.3, 2, 50], np.float32)
    for draw in (lambda k, a: random.gamma(k, a, (2,)), random.poisson):
        got = hlotrace.vmap(draw)(keys, a)
        np.testing.assert_allclose(got, [draw(k, x) for k, x in zip(keys, a)], 1e-6)
    same = hlotrace.vmap(random.gamma, (None, 0))(KEY, a)
    np.testing.assert_allclose(same, [random.gamma(KEY, x) for x in a], 1e-6)


def test_poisson_takes_any_key():
    assert random.poisson(random.key(7, impl="rbg"), np.float32([0, 1e8])).tolist()[0] == 0


@pytest.mark.parametrize("call, error, words", [
    (lambda: random.gamma(KEY, 2.0, dtype="int32"), ValueError, "must be a float dtype, got int32"),
    (lambda: random.poisson(KEY, 2.0, dtype="float32"), ValueError, "must be an int dtype, got float32"),
    (lambda: random.gamma(KEY, np.ones(3), (2,)), ValueError, r"\(3,\)"),
    (lambda: random.gamma(KEY, None), TypeError, "None"),
    (lambda: random.gamma(KEY), TypeError, "'a'"),
    (lambda: random.rayleigh(KEY, 1.0, skale=2), TypeError, "skale"),
    (lambda: random.gamma(KEY, 2.0, method="approximate"), NotImplementedError, "method='approximate'"),
    (lambda: random.poisson(KEY, 2.0, method="fast"), ValueError, "'fast'"),
    (lambda: random.gamma(random.split(KEY), 2.0), ValueError, "single key"),
    (lambda: random.dirichlet(KEY, 2.0), ValueError, "alpha.ndim >= 1"),
    (lambda: random.multinomial(KEY, 3, 0.5), ValueError, "axis of outcomes"),
    (lambda: random.multinomial(KEY, 3, P, shape=(3,)), ValueError, r"\(3,\)"),
    (lambda: random.multinomial(KEY, 3, P, shape=()), ValueError, r"\(\)"),
    (lambda: random.multinomial(KEY, np.ones(2), P, shape=(3, 4)), ValueError, r"\(2,\)"),
    (lambda: random.multivariate_normal(KEY, 0.0, COV), ValueError, "mean.ndim >= 1"),
    (lambda: random.multivariate_normal(KEY, MEAN, MEAN), ValueError, "cov.ndim >= 2"),
    (lambda: random.multivariate_normal(KEY, MEAN, np.eye(3)), ValueError, r"n=2, .*\(3, 3\)"),
    (lambda: random.multivariate_normal(KEY, MEAN, COV, method="lu"), ValueError, "'lu'"),
    (lambda: random.orthogonal(KEY, -1), ValueError, "negative"), (lambda: random.orthogonal(KEY, 2.5), TypeError, "n"),
    (lambda: random.ball(KEY, -1), ValueError, "negative"), (lambda: random.ball(KEY, 2, np.ones(2)), ValueError, "vmap"),
    (lambda: random.lognormal(KEY, np.ones(3), ()), ValueError, r"\(3,\)"),
    (lambda: random.random_gamma_p.bind(KEY, jnp.ones(2, int), log_space=True), TypeError, "floating-point"),
])
def test_laws_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_key_is_a_type_for_annotations():
    assert random.Key(KEY) is KEY
