"""What tests of products share: small integers, and the checks of a function that is linear in each of two
arrays."""
import numpy as np

import hlotrace

RNG = np.random.default_rng(0)


def ints(*shape, dtype=np.float32):
    """Small integers, so that sums of products are exact in any order and float type."""
    if np.dtype(dtype).kind == "c":
        return (ints(*shape) + 1j * ints(*shape)).astype(dtype)
    if np.dtype(dtype) == bool:
        return RNG.integers(0, 2, shape).astype(bool)
    low = 0 if np.dtype(dtype).kind == "u" else -2
    return RNG.integers(low, 3, shape).astype(dtype)


def check_bilinear(f, x, y):
    """Forward mode is the product rule; reverse mode is its transpose; vmap is the loop."""
    dx, dy = ints(*x.shape), ints(*y.shape)
    out, tangent = hlotrace.jit(lambda *a: hlotrace.jvp(f, a[:2], a[2:]))(x, y, dx, dy)
    np.testing.assert_array_equal(tangent, np.add(f(dx, y), f(x, dy)))
    ct = ints(*out.shape)
    x_bar, y_bar = hlotrace.jit(lambda x, y, ct: hlotrace.vjp(f, x, y)[1](ct))(x, y, ct)
    assert (x_bar.shape, y_bar.shape) == (x.shape, y.shape)
    assert np.vdot(ct, tangent) == np.vdot(x_bar, dx) + np.vdot(y_bar, dy)
    xs, ys = ints(2, *x.shape), ints(*y.shape[:1], 2, *y.shape[1:])
    for in_axes in ((0, None), (None, 1), (0, 1)):
        got = hlotrace.jit(hlotrace.vmap(f, in_axes))(
            x if in_axes[0] is None else xs, y if in_axes[1] is None else ys)
        want = [f(x if in_axes[0] is None else xs[i], y if in_axes[1] is None else ys[:, i])
                for i in range(2)]
        np.testing.assert_array_equal(got, np.stack(want))
