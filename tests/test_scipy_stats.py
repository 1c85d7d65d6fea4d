"""scipy.stats against SciPy: every function of every law over wide ranges, in both precisions; samples; derivatives."""
import warnings

import numpy as np
import pytest
from scipy import stats as theirs

import hlotrace as jax
import hlotrace.scipy.stats as ours
from hlotrace.scipy.stats.laws import LAWS as TABLE

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
    return usual


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values(dtype):
    wide = dtype == np.float64
    with jax.enable_x64(wide):
        rows = list(tasks(dtype))
        found = jax.jit(lambda inputs: [
            getattr(getattr(ours, law), name)(*args) for (law, name, _), args in zip(rows, inputs)])([a for *_, a in rows])
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
