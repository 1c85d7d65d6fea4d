"""Functions of half precision on all 65,536 values, against float64: errors in units of the last place of the result."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, nn

BITS = np.arange(2 ** 16, dtype=np.uint16)


def sinc(x):        # NumPy's has sin(pi x) of a rounded pi x
    rest = x - np.rint(x)
    return np.where(
        x == 0, 1, np.sin(np.pi * rest) * np.where(np.rint(x) % 2, -1, 1) / np.where(x, np.pi * x, 1)
    )


def squareplus(x):
    root = np.hypot(x, 2)
    return np.where(x < 0, 2 / (root - np.minimum(x, 0)), (x + root) / 2)


# name: function, reference, ulps
FUNCTIONS = {
    "exp2": (jnp.exp2, np.exp2, 0.51), "expm1": (jnp.expm1, np.expm1, 1.1), "log2": (lax.log2, np.log2, 0.51),
    "logistic": (lax.logistic, scipy.special.expit, 1.1), "sinc": (jnp.sinc, sinc, 3),
    "i0e": (lax.bessel_i0e, scipy.special.i0e, 0.51), "i0": (jnp.i0, scipy.special.i0, 0.51),
    "x**5": (lambda x: lax.integer_pow(x, 5), lambda x: x ** 5, 0.51),
    "x**-2": (lambda x: lax.integer_pow(x, -2), lambda x: x ** -2.0, 0.51),
    "floor_divide": (lambda x: jnp.floor_divide(x, 3), lambda x: np.where(np.isinf(x), x, np.floor_divide(x, 3)), 0.51),
    "squareplus": (nn.squareplus, squareplus, 3),
    "sparse_plus": (nn.sparse_plus, lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)), 2),
    "expi": (jax.scipy.special.expi, scipy.special.expi, 0.51), "i1": (jax.scipy.special.i1, scipy.special.i1, 0.51)}


@np.errstate(all="ignore")
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_all_values(dtype):
    found = jax.jit(lambda x: {name: f(x) for name, (f, *_) in FUNCTIONS.items()})(BITS.view(dtype))
    info, x = ml_dtypes.finfo(dtype), BITS.view(dtype).astype(np.float64)
    tiny, largest = float(info.tiny), float(info.max)
    usual = (np.abs(x) >= tiny) | (x == 0) | np.isnan(x)
    for name, (_, reference, ulps) in FUNCTIONS.items():
        got, want = np.asarray(found[name]).astype(np.float64), reference(x)
        rounded = want.astype(dtype).astype(np.float64)
        assert found[name].dtype == dtype
        unit = np.ldexp(float(info.eps), np.frexp(want)[1] - 1)
        off = np.where(np.abs(want) > 2 * tiny, np.abs(got - want) / unit, 0)  # XLA may lose what is below
        edge = np.isfinite(want) & (np.minimum(np.abs(got), np.abs(want)) > largest / 4)
        wrong = (np.isnan(got) != np.isnan(rounded)) | np.isfinite(rounded) & ~(off <= ulps) | (
            np.isinf(rounded) & (got != rounded))
        wrong &= usual & ~edge
        assert not wrong.any(), f"{name}: {x[wrong][:5]} gives {got[wrong][:5]} for {want[wrong][:5]}"


PLACES = np.zeros(4096, np.int32)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("function, wanted", [
    (lambda ones: jnp.zeros(2, ones.dtype).at[PLACES].add(ones)[0], 4096),
    (lambda ones: jnp.add.at(jnp.zeros(2, ones.dtype), PLACES, ones, inplace=False)[0], 4096),
    (lambda ones: jax.grad(lambda table: table[PLACES].astype(jnp.float32).sum())(ones[:2])[0], 4096),
    (lambda ones: jnp.logaddexp.reduce(ones), 1 + np.log(4096)),
    (lambda ones: jnp.logaddexp.reduce(jnp.stack([ones, ones]), axis=1, keepdims=True)[1, 0], 1 + np.log(4096)),
    (lambda ones: jnp.logaddexp.reduce(ones, where=PLACES == 0), 1 + np.log(4096)),
    (lambda ones: jnp.logaddexp.accumulate(ones)[-1], 1 + np.log(4096))])
def test_many_are_added_in_single_precision(function, wanted, dtype):
    """Sums of ones of their own dtype end at 256 or 2048."""
    found = jax.jit(function)(jnp.ones(4096, dtype))
    assert found.dtype == dtype and float(found) == float(np.asarray(wanted, dtype))
