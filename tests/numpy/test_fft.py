"""jnp.fft against NumPy: lengths, axes, norms, types; what is refused; derivatives are in the op table."""
import numpy as np
import pytest
from equal import same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(4, 5, 6))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)


def operand(name):
    return REAL if name in ("rfft", "rfft2", "rfftn", "ihfft") else COMPLEX


def agree(name, calls):
    """All calls of a function in one program, which has the values and types of NumPy's."""
    x = operand(name)
    with jax.enable_x64():
        found = jax.jit(lambda x: [getattr(jnp.fft, name)(x, **call) for call in calls])(x)
    for got, call in zip(found, calls):
        want = getattr(np.fft, name)(x, **call)
        np.testing.assert_allclose(got, want, atol=1e-12, err_msg=str(call))
        assert got.dtype == want.dtype


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_of_one_axis(name):
    agree(name, [{}, dict(n=1), dict(n=3, axis=0), dict(n=9, norm="ortho"), dict(axis=1, norm="forward"),
                 dict(n=10, axis=-2, norm="backward")])


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_of_two_axes(name):
    agree(name, [{}, dict(s=(3, 8)), dict(axes=(1, 0), norm="ortho"), dict(s=(5, 4), axes=(-1, 0), norm="forward")])


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_of_any_axes(name):
    agree(name, [{}, dict(axes=(2,)), dict(axes=(1, 2, 0), norm="ortho"), dict(s=(7, 3, 2), axes=(0, 1, 2), norm="forward")])


@pytest.mark.filterwarnings("ignore:.*axes. should not be .None:DeprecationWarning")
def test_more_than_three_axes_and_lengths_without_axes():
    x = RNG.normal(size=(2, 3, 2, 3, 4)).astype(np.float32)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        want = getattr(np.fft, name)(x, norm="ortho")
        np.testing.assert_allclose(getattr(jnp.fft, name)(x, norm="ortho"), want, atol=1e-5)
    np.testing.assert_allclose(jnp.fft.fftn(x, s=(2, 5)), np.fft.fftn(x, s=(2, 5)), atol=1e-5)
    assert jnp.fft.fftn(x, s=()).dtype == np.complex64


def test_an_axis_that_is_none_is_the_last_or_all_and_several_are_refused():
    same(jnp.fft.ihfft(REAL, 4, axis=None), jnp.fft.ihfft(REAL, 4))
    same(jnp.fft.fft(COMPLEX, axis=None), jnp.fft.fftn(COMPLEX))
    for name in ("fft", "irfft", "hfft", "ihfft"):
        with pytest.raises(ValueError, match=f"{name} does not support multiple axes"):
            getattr(jnp.fft, name)(REAL, axis=(0,))


def test_lengths_as_arrays_and_results_without_elements():
    x = np.ones((2, 2), np.complex64)
    same(jnp.fft.ifftn(x, s=jnp.array([1, 2])), np.fft.ifftn(x, s=[1, 2], axes=(0, 1)).astype(np.complex64))
    assert jnp.fft.irfft(jnp.ones(1)).shape == jnp.fft.hfft(jnp.array([])).shape == (0,)


def test_frequencies_and_shifts():
    same(jnp.fft.fftshift(jnp.float32(2.5)), np.float32(2.5))
    assert jnp.fft.fftfreq(5, dtype="bfloat16").dtype == jnp.bfloat16
    for n in (1, 4, 5):
        np.testing.assert_allclose(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(jnp.fft.rfftfreq(n, d=0.5), np.fft.rfftfreq(n, 0.5))
    assert jnp.fft.fftfreq(5, dtype=np.float16).dtype == np.float16
    assert jnp.fft.rfftfreq(4, device=jax.devices()[0]).dtype == np.float32
    for axes in (None, 0, (1, -1)):
        shifted = jnp.fft.fftshift(REAL, axes)
        np.testing.assert_allclose(shifted, np.fft.fftshift(REAL, axes), rtol=1e-6)
        np.testing.assert_array_equal(jnp.fft.ifftshift(shifted, axes), REAL.astype(np.float32))


def test_types():
    """Narrow floats and integers become complex64; a real transform takes no narrow floats; JAX says the same."""
    for dtype in (np.float16, jnp.bfloat16, np.int32, bool, np.float32):
        assert jnp.fft.fft(np.ones(4).astype(dtype)).dtype == np.complex64
    assert jnp.fft.rfft(np.ones(4, int)).dtype == np.complex64
    assert jnp.fft.irfft(np.ones(4, np.float32)).dtype == np.float32


def test_nothing():
    assert jnp.fft.fft(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert jnp.fft.fft(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert jnp.fft.irfft(np.zeros((2, 1), np.complex64)).shape == (2, 0)
    assert jnp.fft.rfft(np.zeros((0, 4), np.float32)).shape == (0, 3)
    _, pull = jax.vjp(lambda x: lax.fft(x, "IRFFT", (0,)), np.zeros((2, 1), np.complex64))
    np.testing.assert_array_equal(pull(np.zeros((2, 0), np.float32))[0], np.zeros((2, 1)))


def test_any_layout():
    """The axes of a transform need not be the innermost ones of the operand in memory."""
    x = REAL.astype(np.float32)
    np.testing.assert_allclose(jax.jit(lambda x: lax.fft(x.T, "rfft", (4,)))(x), np.fft.rfft(x.T), atol=1e-5)
    mapped = jax.vmap(jnp.fft.rfft, in_axes=1, out_axes=2)(x)
    np.testing.assert_allclose(mapped, np.moveaxis(np.fft.rfft(x), 1, 2), atol=1e-5)


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.fft(COMPLEX, 0, (6,)), TypeError, "member of lax.FftType"),
    (lambda: lax.fft(COMPLEX, "fft", (-1,)), ValueError, "non-negative"),
    (lambda: jnp.fft.fft(REAL, n=0), ValueError, "should be positive"),
    (lambda: jnp.fft.fft(REAL, axis=(0, 1)), ValueError, "use jnp.fft.fftn"),
    (lambda: jnp.fft.fft2(REAL, axes=(0,)), ValueError, "use jnp.fft.fftn"),
    (lambda: jnp.fft.fftn(REAL, axes=(0, 0)), ValueError, "duplicate"),
    (lambda: jnp.fft.fftn(REAL, s=3), TypeError, "write \\(3,\\)"),
    (lambda: jnp.fft.hfft(REAL, norm="orto"), ValueError, "did you mean 'ortho'"),
    (lambda: jnp.fft.rfft(np.ones(3, np.float16)), ValueError, "float32 or float64, got float16")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("function", [jnp.fft.fftfreq, jnp.fft.rfftfreq])
@pytest.mark.parametrize("args, words", [(([0, 1, 2],), "n must be an int"), (((4,),), "n must be an int"),
                                         ((np.array([4]),), "n must be an int"), ((4, [1., 2.]), "d must be one number"),
                                         ((4, jnp.ones(2)), "d must be one number")])
def test_frequencies_of_several_sizes(function, args, words):
    with pytest.raises(ValueError, match=words):
        function(*args)
