"""Resampling against direct sums of the kernels, pixel by pixel."""
import math

import numpy as np
import pytest
from derivatives import check_derivatives
from equal import same
from reference import evaluated

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.image import ResizeMethod, resize, scale_and_translate

SINC = lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.
CUBIC = lambda a: lambda x: ((a + 2) * x ** 3 - (a + 3) * x ** 2 + 1 if x < 1 else
                             a * (x ** 3 - 5 * x ** 2 + 8 * x - 4) if x < 2 else 0)
KERNELS = {"linear": lambda x: max(1 - x, 0), "cubic": CUBIC(-0.5), "cubic-pytorch": CUBIC(-0.5),
           "lanczos3": lambda x: SINC(x) * SINC(x / 3) * (x < 3),
           "lanczos5": lambda x: SINC(x) * SINC(x / 5) * (x < 5)}
METHODS = [*KERNELS, "area"]


def weights(old, new, scale, translation, method, antialias):
    """One pixel after the other: the kernel at the distance of the middles, made wider by the step, each row
    of sum 1."""
    rows, step = np.zeros((new, old)), 1 / scale
    for i in range(new):
        middle = (i + 0.5 - translation) * step
        if method == "cubic-pytorch" and not antialias:
            for j in range(-50, 50):
                rows[i, min(max(j, 0), old - 1)] += CUBIC(-0.75)(abs(middle - j - 0.5))
            continue
        if not 0 <= middle <= old:
            continue
        for j in range(old):
            rows[i, j] = (KERNELS[method](abs(middle - j - 0.5) / max(step if antialias else 1, 1))
                          if method != "area" else
                          max(0, min(middle + step / 2, j + 1) - max(middle - step / 2, j)))
        rows[i] /= rows[i].sum()
    return rows


def test_weights_are_those_of_the_kernels():
    calls = [(7, 1.7, -1.2, True), (3, 0.4, 0.3, True), (3, 0.4, 0.3, False), (9, 1., 2.25, False)]
    with jax.enable_x64():
        found = jax.jit(
            lambda x: [[scale_and_translate(x, (3, n), (1,), jnp.array([s]), jnp.array([t]), method,
                                            antialias)
                                    for n, s, t, antialias in calls] for method in METHODS])(
                                        np.tile(np.eye(6)[2], (3, 1)))
        sizes = jax.jit(
            lambda x: [[resize(x, (n, 3), method, antialias) for n in (2, 6, 11)
                        for antialias in (True, False)]
                                   for method in METHODS])(np.eye(6)[:, :4] @ np.eye(4, 5))
    for method, results in zip(METHODS, found):
        for (n, s, t, antialias), got in zip(calls, results):
            np.testing.assert_allclose(got[0], weights(6, n, s, t, method, antialias)[:, 2], atol=1e-12)
    for method, results in zip(METHODS, sizes):
        for k, got in enumerate(results):
            n, antialias = (2, 6, 11)[k // 2], k % 2 == 0
            left, right = weights(6, n, n / 6, 0, method, antialias), weights(5, 3, 0.6, 0, method, antialias)
            want = left[:, :4] @ np.eye(4, 5) @ right.T
            np.testing.assert_allclose(got, want, atol=1e-12)


def test_nearest_and_types():
    x = np.arange(35).reshape(5, 7)
    for shape in ((3, 7), (8, 2), (1, 14), (0, 7)):
        places = [np.floor((np.arange(n) + 0.5) * m / max(n, 1)).astype(int) for n, m in zip(shape, x.shape)]
        np.testing.assert_array_equal(resize(x, shape, ResizeMethod.NEAREST), x[np.ix_(*places)])
    for dtype, result in (("int32", "float32"), ("bool", "float32"), ("bfloat16", "bfloat16"),
                          ("float16", "float16"),
                          ("complex64", "complex64")):
        assert resize(jnp.ones((4, 4), dtype), (3, 5), "linear").dtype == result
        assert resize(jnp.ones((4, 4), dtype), (3, 5), "nearest").dtype == dtype
    np.testing.assert_array_equal(resize(x, (5, 7), "cubic"), x)
    assert resize(x, (0, 7), "cubic").shape == (0, 7)
    np.testing.assert_allclose(jax.vmap(lambda x: resize(x, (3,), "linear"))(x), resize(x, (5, 3), "linear"),
                               rtol=1e-6)


def test_derivatives():
    x = np.random.default_rng(0).normal(size=(4, 5))
    check_derivatives(lambda x, s, t: [scale_and_translate(x, (5, 6), (0, 1), s, t, m) for m in METHODS
                                       if m != "linear"],
                      x, [1.31, 0.83], [0.217, 0.341], tolerance=1e-5, by=evaluated)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: resize(x, (3,), "linear"), ValueError, "equal to the number of dimensions"),
    (lambda x: resize(x, (3, 3), "cubik"), ValueError, "did you mean 'cubic'"),
    (lambda x: resize(x[:0], (3, 5), "linear"), ValueError, "without elements"),
    (lambda x: scale_and_translate(x, (3, 3), (0, 1), jnp.ones(2), jnp.ones(2), "nearest"), ValueError,
     "image.resize"),
    (lambda x: scale_and_translate(x, (3, 3), (0, 1), jnp.ones(1), jnp.ones(2), "linear"), ValueError,
     r"scale .*\(2,\)"),
    (lambda x: scale_and_translate(x, (3, 3), (0,), jnp.ones(1), jnp.ones(1), "linear"), ValueError,
     "axis 1 has size 5")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(jnp.ones((4, 5)))


def test_names_of_the_cubic_kernel_of_pytorch():
    x = jnp.arange(16.).reshape(4, 4)
    for antialias in (True, False):
        same(jax.image.resize(x, (3, 6), "bicubic-pytorch", antialias),
             jax.image.resize(x, (3, 6), jax.image.ResizeMethod.CUBIC_PYTORCH, antialias))
