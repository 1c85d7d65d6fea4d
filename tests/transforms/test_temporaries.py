"""The memory that programs take while they run on the CPU, beyond what they are given and give."""
import numpy as np
import pytest

import hlotrace as jax
import hlotrace.numpy as jnp

f32 = np.float32
LONG = 1 << 14


def linear_attention(q, k, v):
    states = jnp.cumsum(jnp.einsum("bld,ble->blde", k, v), 1)
    return jnp.sum(jnp.einsum("bld,blde->ble", q, states) ** 2)


# program, shapes of its arguments, bytes that suffice
PROGRAMS = {
    "argmin": (lambda x: jnp.argmin(x, 1), [(2048, 32)], 2048 * 4 + 512),
    "argmax of a transposed array": (lambda x: jnp.argmax(x, 0), [(32, 2048)], 2048 * 4 + 512),
    # the derivative of a real transform is one, of half as many complex numbers
    "gradient of rfft": (jax.grad(lambda x, y: jnp.sum(jnp.abs(jnp.fft.rfft(x) * y) ** 2)), [(LONG,), (LONG // 2 + 1,)],
                         8 * LONG + 512),
    "gradient of complex absolute values": (jax.grad(lambda x, y: jnp.sum(jnp.abs(x + 1j * y)), (0, 1)), [(LONG,), (LONG,)], 512),
    "gradient of a spectrum": (jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)), [(LONG,)], 4 * LONG + 512),
    # operands are not written out to the shape of their product
    "gradient of an outer product": (jax.grad(linear_attention, (0, 1, 2)), [(4, 64, 64)] * 3, 3 * 4 * 64 ** 3 * 4),
    "gradient of kron": (jax.grad(lambda a, b: jnp.sum(jnp.kron(a, b)), (0, 1)), [(32, 32), (16, 16)], 512),
    # one chain of elements, from an array to its cotangent
    "gradient of gelu": (jax.grad(lambda x: jnp.sum(jax.nn.gelu(jnp.sort(x, 1).transpose(0, 2, 1)) ** 2)), [(16, 128, 32)],
                         5 * 4 * 16 * 128 * 32 + 512),
    "gradient of det": (jax.grad(jnp.linalg.det), [(64, 64)], 3 * 4 * 64 * 64),
    "gradient of convolve2d": (
        jax.grad(lambda a, k: jnp.sum(jax.scipy.signal.convolve2d(a, k, "same") ** 2), (0, 1)), [(256, 256), (5, 5)],
        3 * 4 * 256 * 256 + 512),
    # what is copied to another layout for a product is not copied to a third for the derivative
    "gradient of a product over the first and last axis": (
        jax.grad(lambda w, h: jnp.sum(jnp.einsum("etf,efd->td", jnp.tanh(h), w) ** 2)), [(8, 64, 32), (8, 128, 64)],
        327680 + 512),
    # the largest of three is not transposed
    "gradient of a mixture of experts": (
        jax.grad(lambda w, g, h: jnp.sum(jnp.einsum("te,etf,efd->td", g, jnp.tanh(h), w) ** 2), (0, 1, 2)),
        [(8, 64, 32), (128, 8), (8, 128, 64)], 606208 + 512),
    # a softmax's derivative writes out no product of the weights and their cotangent
    "gradient of attention's weights": (
        jax.grad(lambda q, k, v: jnp.sum(jax.nn.softmax(q @ k.T) @ v), (0, 1, 2)), [(256, 32)] * 3, 2 * 4 * 256 * 256 + 512),
    # softmax and log_softmax of the same scores need one array of them between them, not two
    "gradient of an entropy": (
        jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) * jax.nn.log_softmax(x))), [(256, 256)], 3 * 4 * 256 * 256 + 4096),
    "gradient of a divergence": (
        jax.grad(lambda x, y: jnp.sum(jax.nn.softmax(x) * (jax.nn.log_softmax(x) - jax.nn.log_softmax(y))), (0, 1)),
        [(256, 256)] * 2, 3 * 4 * 256 * 256 + 8192),
    # by digamma functions, not by what its value is made of
    "gradient of betaln": (jax.grad(lambda a, b: jnp.sum(jax.scipy.special.betaln(a, b)), (0, 1)), [(LONG,)] * 2,
                           5 * 4 * LONG),
    # the slope does not need the value
    "gradient of log_ndtr": (jax.grad(lambda x: jnp.sum(jax.scipy.special.log_ndtr(x))), [(LONG,)], 512),
    # the densities at the ends over the mass between them, not the slopes of that mass's quadrature
    "gradient of a truncated normal density": (
        jax.grad(lambda *args: jnp.sum(jax.scipy.stats.truncnorm.logpdf(*args)), (0, 1, 2)), [(LONG,)] * 3, 6 * 4 * LONG),
    # the cotangents of two elements of each row, not those of rows in order
    "gradient of quantiles": (jax.grad(lambda x: jnp.sum(jnp.quantile(x, 0.3, axis=1))), [(64, 1024)],
                              2 * 4 * 64 * 1024 + 4096),
    # what is solved for is negated in no copy of its own
    "gradient of a normal density by its parameters": (
        jax.grad(lambda *args: jnp.sum(jax.scipy.stats.multivariate_normal.logpdf(*args)), (0, 1, 2)),
        [(256, 32), (32,), (32, 32)], 3 * 4 * 256 * 32 + 2 * 4 * 32 * 32),
    # vectors are whitened before they are subtracted, each from each
    "density of samples": (lambda x, y: jax.scipy.stats.gaussian_kde(x)(y), [(512,), (512,)], 3 * 4 * 512 + 512),
    # segments are pieces side by side, no gather with an index for each element; x is transformed once
    "gradient of welch": (jax.grad(lambda x: jnp.sum(jax.scipy.signal.welch(x)[1])), [(LONG,)], 4 * 4 * LONG + 4096),
    # one decomposition of P, no complex one
    "gradient of polar": (jax.grad(lambda a: sum(map(jnp.sum, jax.scipy.linalg.polar(a, method="svd")))), [(160, 64)],
                          5 * 4 * 160 * 64),
    "gradient of lstsq": (jax.grad(lambda a, b: jnp.sum(jnp.linalg.lstsq(a, b)[0])), [(512, 8), (512, 2)], 512 * 8 * 4 * 4),
    "gradient of pinv of a wide matrix": (jax.grad(lambda a: jnp.sum(jnp.linalg.pinv(a))), [(8, 512)], 512 * 8 * 4 * 5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_temporaries(name):
    f, shapes, most = PROGRAMS[name]
    compiled = jax.jit(f).lower(*[jax.ShapeDtypeStruct(s, f32) for s in shapes]).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= most
