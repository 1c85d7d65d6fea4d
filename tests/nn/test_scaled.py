"""Products of blocks with scales: lax.scaled_dot, nn.scaled_matmul, nn.scaled_dot_general with the numbers of JAX."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax, nn

RNG = np.random.default_rng(0)
X, Y = (jnp.array(RNG.normal(size=shape), jnp.float32) for shape in ((2, 64, 64), (2, 32, 64)))
W = RNG.normal(size=(2, 64, 32)).astype(np.float32)
NUMBERS = (((2,), (2,)), ((0,), (0,)))
LHS, RHS = X[:, :4].astype(jnp.float8_e4m3fn), jnp.swapaxes(Y[:, :3], 1, 2).astype(jnp.float8_e4m3fn)
SCALES = [jnp.array(2.0 ** RNG.integers(-3, 3, shape), jnp.float8_e8m0fnu) for shape in ((2, 4, 2), (2, 2, 3))]


def test_scaled_dot():
    def repeated(x, axis):
        return np.repeat(np.asarray(x).astype(float), 32, axis)
    want = np.einsum("bmk,bkn->bmn", np.asarray(LHS).astype(float) * repeated(SCALES[0], 2),
                     np.asarray(RHS).astype(float) * repeated(SCALES[1], 1))

    def product(l, r, s, t, **options):
        return lax.scaled_dot(l, r, lhs_scale=s, rhs_scale=t, **options)
    found, wide, swapped, each = jax.jit(lambda l, r, s, t: (
        product(l, r, s, t), product(l, r, s, t, preferred_element_type="float32"),
        product(l, jnp.swapaxes(r, 1, 2), s, jnp.swapaxes(t, 1, 2), dimension_numbers=NUMBERS),
        jax.vmap(product)(l, r, s, t)))(LHS, RHS, *SCALES)
    assert found.dtype == jnp.bfloat16 and wide.dtype == np.float32
    np.testing.assert_allclose(wide, want, rtol=1e-5)
    for got in (found, swapped, each):
        np.testing.assert_allclose(np.asarray(got).astype(float), want, rtol=2e-2, atol=0.2)


# sum and first numbers of the product, sum of absolute values and first numbers of the slope by X, from jax 0.12
JAX = {"mxfp8": (-1269.2399, [1.0652466, -5.7705994, 0.55648804], 36131.773, [-2.703476, -2.8334427, -0.13362122]),
       "nvfp4": (-1318.1038, [1.7578125, -6.5625, 0.09277344], 36157.66, [-2.4947412, -2.9807315, -0.16035356]),
       "mxfp4": (-1221.4844, [1.5, -4.3125, 0.6875], 35907.5, [-2.4375, -2.5, 0.375])}


@pytest.mark.parametrize("mode", JAX)
def test_rounded_products_are_those_of_jax(mode):
    config = nn.get_scaled_dot_general_config(mode, jnp.array([0.5]) if mode == "nvfp4" else None)

    def loss(x, y):
        out = nn.scaled_dot_general(x, y, NUMBERS, configs=[config] * 3)
        return (out * W).sum(), out
    (slope, _), out = jax.jit(jax.grad(loss, (0, 1), has_aux=True))(X, Y)
    total, first, size, slopes = JAX[mode]
    np.testing.assert_allclose(np.asarray(out)[0, 0, :3], first, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(out).sum(), total, rtol=1e-4)
    np.testing.assert_allclose(np.abs(slope).sum(), size, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(slope)[0, 0, :3], slopes, rtol=1e-5)


def test_other_axes_and_types():
    config = nn.get_scaled_dot_general_config("mxfp8")
    out = jax.eval_shape(lambda x, y: nn.scaled_dot_general(
        x, y, (((1,), (2,)), ((), ())), jnp.bfloat16, [config] * 3), X[0], Y)
    assert out.shape == (64, 2, 32) and out.dtype == jnp.bfloat16
    np.testing.assert_array_equal(nn.scaled_dot_general(X, Y, NUMBERS), lax.dot_general(X, Y, NUMBERS))
    ones = jnp.array([[[0.5]]])
    assert nn.scaled_matmul(jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), ones, ones).item() == 8


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.scaled_dot(LHS, RHS, lhs_scale=SCALES[0][:, :3]), TypeError, "axis 1 of lhs, of size 4"),
    (lambda: lax.scaled_dot(LHS, RHS, rhs_scale=jnp.ones((2, 3, 3))), TypeError, "contracted axis 1 of rhs, of size 64"),
    (lambda: lax.scaled_dot(LHS, RHS, lhs_scale=SCALES[0][0]), TypeError, "lhs_scale of rank 2"),
    (lambda: lax.scaled_dot(LHS[None], RHS[None]), TypeError, "dimension_numbers are needed"),
    (lambda: nn.get_scaled_dot_general_config("mxfp6"), ValueError, "did you mean 'mxfp"),
    (lambda: nn.get_scaled_dot_general_config("mxfp4", jnp.ones(1)), ValueError, "has no global_scale"),
    (lambda: nn.scaled_matmul(X, Y, X[:, :, :5], Y), ValueError, "a divisor of K"),
    (lambda: nn.scaled_dot_general(X, Y, NUMBERS, implementation="cudnn"), NotImplementedError, "implementation='cudnn'"),
    (lambda: nn.scaled_dot_general(X[:, :, :30], Y[:, :, :30], NUMBERS, configs=[nn.get_scaled_dot_general_config(
        "mxfp8")] * 3), ValueError, "pad it to a multiple")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
