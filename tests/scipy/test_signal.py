"""Signals against SciPy."""
import itertools
import warnings

import numpy as np
import pytest
import scipy.signal
from derivatives import check_derivatives

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.scipy import signal

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 3, 41)).cumsum(-1)
MODES = ("full", "same", "valid")


def compare(calls):
    """Calls (name, args, kwargs) in one program, each against SciPy's function of that name."""
    with jax.enable_x64():
        found = jax.jit(lambda: [getattr(signal, name)(*args, **kwargs) for name, args, kwargs in calls])()
    for (name, args, kwargs), got in zip(calls, found):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")         # of windows that do not add up to a constant
            wanted = getattr(scipy.signal, name)(*args, **kwargs)
        if name == "istft":         # SciPy counts the times along the first axis
            wanted = np.arange(got[1].shape[kwargs.get("time_axis", -1)]) / kwargs.get("fs", 1.), wanted[1]
        for g, w in zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]:
            np.testing.assert_allclose(g, w, atol=1e-10, err_msg=f"{name} {kwargs}")
            assert g.dtype == w.dtype


def test_convolutions():
    pairs = [(X[0, :6], X[1, :4]), (X[0, :3], X[1, :6]), (X[0, :5] * 1j, X[1, :3] + 1j), (X[:, :5], Y[:2, :2]),
             (X[:1, :2], Y[:2, :4]), (X[:, :8].reshape(3, 2, 4), Y[:1, :4].reshape(1, 2, 2))]
    calls = [(name, pair, dict(mode=mode, **more)) for name in ("convolve", "correlate") for pair in pairs for mode in MODES
             for more in (dict(method="direct"), dict(method="fft"))]
    calls += [(name, pair, dict(mode=mode, boundary=boundary, fillvalue=2.)) for name in ("convolve2d", "correlate2d")
              for pair in ((X[:, :5], Y[:2, :3]), (X[:2, :2], Y[:2, :3]), (X[:, :4] * 1j, Y[:3, :4] + 1j)) for mode in MODES
              for boundary in ("fill", "wrap", "symm")]
    calls += [("fftconvolve", (X[:, :5], Y[:, :4]), dict(mode=mode, axes=1)) for mode in MODES]
    calls += [("fftconvolve", (X[:, :5], Y[:1, :4]), dict(axes=[-1])), ("fftconvolve", (X[:, :5], Y[:2, :4] * 1j), {})]
    compare(calls)
    assert signal.convolve(2., 3.) == 6 and signal.correlate(2., 3j, method="fft") == -6j
    for method, dtype in itertools.product(("direct", "fft"), ("int32", "float16", "bfloat16", "complex64")):
        got = signal.convolve(jnp.ones(3, dtype), jnp.ones(2, dtype), method=method)
        assert got.dtype == ("float32" if dtype == "int32" else dtype) and got.round(2).real.tolist() == [1, 2, 2, 1]


def test_trends():
    compare([("detrend", (X, ), kwargs) for kwargs in (
        {}, dict(type="constant"), dict(type="c", bp=99), dict(axis=0), dict(bp=[3, 20]), dict(bp=5, type="linear"), dict(axis=0, bp=1, type="l"))]
        + [("detrend", (X + 1j * Y,), {})])


def test_result_types():
    x = jnp.ones(16, "bfloat16")
    trends = jax.eval_shape(lambda: [signal.detrend(x), signal.detrend(x, type="constant")])
    assert [t.dtype for t in trends] == ["bfloat16"] * 2
    with jax.enable_x64(True):
        assert jax.eval_shape(signal.detrend, jnp.ones(8, "float32")).dtype == "float32"
    y = jnp.ones(16)
    assert jax.eval_shape(lambda: signal.csd(y, None, nperseg=8)[1]).dtype == "float32"
    assert jax.eval_shape(lambda: signal.csd(y, y, nperseg=8)[1]).dtype == "complex64"


WINDOWS = ["hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "boxcar", "bartlett", "triang", "cosine",
           "tukey", ("tukey", 0.3), ("tukey", 0.), ("tukey", 1.), ("kaiser", 3.), ("gaussian", 2.), ("general_hamming", 0.6),
           np.arange(1., 9)]


def test_spectra():
    options = [*(dict(window=w) for w in WINDOWS), dict(window="cosine", nperseg=7), dict(window="triang", nperseg=7),
               dict(noverlap=6), dict(noverlap=0), dict(nfft=13, fs=3.), dict(return_onesided=False), dict(detrend="linear"),
               dict(axis=0, nperseg=2)]
    calls = [("stft", (X,), dict(nperseg=8) | kwargs) for kwargs in [
        *options, dict(detrend="constant"), *(dict(boundary=b) for b in ("even", "odd", "constant", None)),
        dict(padded=False)]]
    calls += [("welch", (X,), dict(nperseg=8) | kwargs) for kwargs in [
        *options[-6:], {}, dict(detrend=False), dict(scaling="spectrum"), dict(average="median"), dict(nperseg=41)]]
    calls += [("csd", (X, Y), dict(nperseg=8) | kwargs) for kwargs in [
        {}, dict(average="median"), dict(return_onesided=False), dict(axis=0, nperseg=3), dict(nfft=9, fs=0.5)]]
    calls += [("csd", (X, Y[:, :30]), dict(nperseg=8)), ("welch", (X[0],), dict(window=np.ones(9)))]
    calls += [(name, args, dict(nperseg=8, return_onesided=False)) for name, args in (
        ("stft", (X + 1j * Y,)), ("welch", (X + 1j * Y,)), ("csd", (X, Y + 1j * X)))]
    compare(calls)


def test_back():
    signals, calls = X[:2, :40], []
    for kwargs in (dict(nperseg=8), dict(nperseg=8, noverlap=6, window="boxcar"), dict(nperseg=9, noverlap=6),
                   dict(nperseg=8, nfft=12), dict(nperseg=8, fs=2.)):
        Z = scipy.signal.stft(signals, **kwargs)[2]
        calls += [("istft", (Z,), kwargs), ("istft", (Z,), dict(boundary=False, **kwargs)),
                  ("istft", (Z.swapaxes(0, -1),), dict(time_axis=0, freq_axis=1, **kwargs))]
    Z = scipy.signal.stft(signals + 1j, nperseg=8, return_onesided=False)[2]
    compare([*calls, ("istft", (Z,), dict(input_onesided=False)), ("istft", (calls[0][1][0],), {})])
    narrow = X[0, :40].astype(np.float32)
    back = signal.istft(signal.stft(narrow, nperseg=8, detrend=lambda s: s)[2])[1]
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, narrow, atol=1e-5)
    assert signal.stft(np.arange(9), nperseg=4)[2].dtype == "complex64"
    assert signal.welch(jnp.ones(9, "bfloat16"))[1].dtype == "float32"
    assert not any(x.weak_type for x in (*signal.stft(narrow), *signal.istft(Z), *signal.welch(narrow)))


def test_derivatives():
    check_derivatives(lambda x, y: [signal.convolve2d(x, y, boundary="symm"), signal.fftconvolve(x, y, "same"),
                                    signal.correlate(x, y, "valid"), signal.detrend(x, bp=2)], X[:, :5], Y[:2, :3])
    check_derivatives(lambda x, w, fs: [signal.istft(signal.stft(x, fs, w, nperseg=8)[2], window=w)[1],
                                        signal.csd(x, x[::-1], fs, window=w)[1]], X[:2, :17], np.hanning(8) + 0.1, 2.)


@pytest.mark.parametrize("call, error, words", [
    (lambda: signal.convolve(X, X[0]), ValueError, "same number of dimensions"),
    (lambda: signal.convolve(X, Y, "ful"), ValueError, "did you mean 'full'"),
    (lambda: signal.convolve(X, Y, method="x"), ValueError, "'direct'"),
    (lambda: signal.convolve(X[:, :2], X[:2], "valid"), ValueError, "at least as large"),
    (lambda: signal.convolve(X[:, :0], X), ValueError, "zero-size"),
    (lambda: signal.convolve2d(X[0], X[0]), ValueError, "2 dimensions"),
    (lambda: signal.correlate2d(X, X, boundary="mirror"), ValueError, "'symm'"),
    (lambda: signal.fftconvolve(X, X[:2], axes=1), ValueError, "not transformed"),
    (lambda: signal.detrend(X, type="quadratic"), ValueError, "'constant'"),
    (lambda: signal.detrend(X, bp=99), ValueError, "from 0 to 41"),
    (lambda: signal.detrend(X, overwrite_data=True), NotImplementedError, "overwrite_data"),
    (lambda: signal.stft(X, nperseg=8, noverlap=8), ValueError, "noverlap=8 and nperseg=8"),
    (lambda: signal.stft(X, nperseg=8, nfft=4), ValueError, "nfft=4 and nperseg=8"),
    (lambda: signal.stft(X, boundary="wrap"), ValueError, "'even'"), (lambda: signal.stft(X, nperseg=0), ValueError, "pos"),
    (lambda: signal.stft(X, window="parzen"), NotImplementedError, "array of weights"),
    (lambda: signal.stft(X, window=np.ones(7), nperseg=8), ValueError, r"\(8,\), got \(7,\)"),
    (lambda: signal.welch(X, window=np.ones(99)), ValueError, "longer than input"),
    (lambda: signal.welch(X[:, :0]), ValueError, "256 weights for 0 samples"),
    (lambda: signal.welch(X, scaling="power"), ValueError, "'spectrum'"),
    (lambda: signal.welch(X, average="max"), ValueError, "average"),
    (lambda: signal.welch(X, detrend=True), ValueError, "False"),
    (lambda: signal.istft(X[0]), ValueError, "axis of frequencies"),
    (lambda: signal.istft(X, freq_axis=1), ValueError, "1 for")])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
