"""SciPy's signals: convolutions, trends, spectra of segments.

P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE Trans. Audio
Electroacoust. 15, 1967; J. B. Allen & L. R. Rabiner, "A unified approach to short-time Fourier analysis and
synthesis", Proc. IEEE 65, 1977.
"""
import numpy as np

from .. import lax, numpy as jnp
from ..api.composite import composite
from ..core.errors import ShapeError, check_choice, not_one_of
from ..core.surface.public import export_names as _offer
from ..numpy import fft
from ..numpy.util import (
    at_least_float32, check_arraylike, promote_dtypes_inexact, promotes, shape as shape_of)
from ..primitives.common import canonical_axes, canonical_axis, static_int

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
           "stft", "welch"]


# --- convolutions ---------------------------------------------------------------------------------

def _operands(name, in1, in2, mode, ndim=None):
    """Two arrays of one inexact dtype and one rank."""
    check_arraylike(name, in1, in2)
    shapes = shape_of(in1), shape_of(in2)
    if len(shapes[0]) != len(shapes[1]) or ndim not in (None, len(shapes[0])):
        raise ShapeError(f"{name}: in1 and in2 must have {f'{ndim}' if ndim else 'the same number of'} "
                         f"dimensions, got shapes {shapes[0]} and {shapes[1]}")
    check_choice(f"{name}: mode", mode, ("full", "same", "valid"))
    return [jnp.asarray(x) for x in promote_dtypes_inexact(in1, in2)]


def _ordered(name, in1, in2, mode, axes):
    """For what is symmetric in its operands: the larger one first, where the mode needs that."""
    sizes = [[x.shape[i] for i in axes] for x in (in1, in2)]
    if mode != "valid" or all(m >= n for m, n in zip(*sizes)):
        return in1, in2
    if any(m > n for m, n in zip(*sizes)):
        raise ShapeError(f"{name}: in mode 'valid' one array must be at least as large as the other along "
                         f"each axis, got shapes {in1.shape} and {in2.shape}")
    return in2, in1


_PADDING = {"fill": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric",
            "symmetric": "symmetric"}


@composite(static=("name", "mode", "precision", "boundary", "late"))
def _convolved(in1, in2, fillvalue=None, *, name, mode, precision, boundary="fill", late=False):
    """Directly, with zeros where there is no `fillvalue`.

    With `late`, the middle of 'same' is one further where in2 has an even size.
    """
    if not in1.ndim:
        return in1 * in2
    in1, in2 = _ordered(name, in1, in2, mode, range(in1.ndim))
    if 0 in (*in1.shape, *in2.shape):
        raise ShapeError(f"{name}: zero-size arrays not supported, got shapes {in1.shape} and {in2.shape}")
    starts = [0 if mode == "full" else (n - 1 + late) // 2 for n in in2.shape]
    pads = [(n - 1 - start, n - 1 if mode == "full" else start) for start, n in zip(starts, in2.shape)]
    pads = [(0, 0)] * in1.ndim if mode == "valid" else pads
    if fillvalue is not None or _PADDING[boundary] != "constant":
        given = {} if fillvalue is None else {"constant_values": jnp.asarray(fillvalue).astype(in1.dtype)}
        in1, pads = jnp.pad(in1, pads, _PADDING[boundary], **given), [(0, 0)] * in1.ndim
    return lax.conv_general_dilated(in1[None, None], jnp.flip(in2)[None, None], (1,) * in1.ndim, pads,
                                    precision=precision)[0, 0]


def _by_method(name, in1, in2, mode, method, precision):
    check_choice(f"{name}: method", method, ("auto", "direct", "fft"))
    if method == "fft":
        return _by_transforms(in1, in2, name=name, mode=mode, axes=tuple(range(in1.ndim)))
    return _convolved(in1, in2, name=name, mode=mode, precision=precision)


def convolve(in1, in2, mode="full", method="auto", precision=None):
    """The convolution of two arrays of one rank, sum_k in1[n - k] in2[k]; the dtype is floating.

    Args:
        mode: 'full'; 'same', the middle of it in the shape of in1; 'valid', where one is inside of the other.
        method: 'direct', 'fft', or 'auto', which is direct.
        precision: of the direct one.

    >>> jax.scipy.signal.convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    name = "scipy.signal.convolve"
    return _by_method(name, *_operands(name, in1, in2, mode), mode, method, precision)


def correlate(in1, in2, mode="full", method="auto", precision=None):
    """The cross-correlation of two arrays of one rank, sum_k in1[n + k] conj(in2[k]); see `convolve`.

    >>> jax.scipy.signal.correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]), mode='valid')
    Array([2., 3.], dtype=float32)
    """
    name = "scipy.signal.correlate"
    in1, in2 = _operands(name, in1, in2, mode)
    return _by_method(name, in1, jnp.flip(jnp.conj(in2)), mode, method, precision)


def _in_a_plane(name, in1, in2, mode, boundary, fillvalue, precision, conjugate):
    in1, in2 = _operands(name, in1, in2, mode, 2)
    check_choice(f"{name}: boundary", boundary, _PADDING)
    check_arraylike(name, fillvalue)
    in2 = jnp.flip(jnp.conj(in2)) if conjugate else in2
    if _PADDING[boundary] != "constant" or type(fillvalue) in (int, float) and not fillvalue:
        fillvalue = None
    return _convolved(in1, in2, fillvalue, name=name, mode=mode, precision=precision, boundary=boundary,
                      late=conjugate)


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """The convolution of two matrices.

    Args:
        mode: as in `convolve`.
        boundary: in1 goes on with `fillvalue` ('fill'), from its other end ('wrap', 'circular'), or mirrored
            ('symm', 'symmetric'); JAX has 'fill' with 0 alone.

    >>> jax.scipy.signal.convolve2d(jnp.ones((2, 3)), jnp.ones((2, 2)), mode='valid')
    Array([[4., 4.]], dtype=float32)
    """
    return _in_a_plane("scipy.signal.convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """The cross-correlation of two matrices, with in2 conjugated; for arguments see `convolve2d`.

    >>> jax.scipy.signal.correlate2d(jnp.eye(2), jnp.array([[1., 2.]]))
    Array([[2., 1., 0.],
           [0., 2., 1.]], dtype=float32)
    """
    return _in_a_plane("scipy.signal.correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)


def fftconvolve(in1, in2, mode="full", axes=None):
    """The convolution of two arrays along axes, by Fourier transforms.

    Args:
        in2: an array; other axes broadcast.
        mode: as in `convolve`.
        axes: all by default.
    Raises:
        ShapeError: for arrays that do not fit.

    >>> jax.scipy.signal.fftconvolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.])).round()
    Array([1., 3., 5., 3.], dtype=float32)
    """
    name = "scipy.signal.fftconvolve"
    in1, in2 = _operands(name, in1, in2, mode)
    axes = canonical_axes(axes if axes is None or isinstance(axes, (tuple, list)) else (axes,), in1.ndim,
                          "axes")
    for i, (m, n) in enumerate(zip(in1.shape, in2.shape)):
        if i not in axes and m != n and 1 not in (m, n):
            raise ShapeError(f"{name}: in1 and in2 must have the same sizes along the axes that are not "
                             f"transformed, got shapes {in1.shape} and {in2.shape} for axes={axes}")
    return _by_transforms(in1, in2, name=name, mode=mode, axes=axes)


@composite(static=("name", "mode", "axes"))
@promotes("in1", "in2")
def _by_transforms(in1, in2, *, name, mode, axes):
    dtype = in1.dtype
    in1, in2 = _ordered(name, in1, in2, mode, axes)
    if not axes:
        return in1 * in2
    in1, in2 = (x.astype(at_least_float32(dtype)) for x in (in1, in2))
    full = [max(in1.shape[i] + in2.shape[i] - 1, 0) for i in axes]
    there, back = (fft.fftn, fft.ifftn) if dtype.kind == "c" else (fft.rfftn, fft.irfftn)
    sizes = [max(n, 1) for n in full]
    found = back(there(in1, sizes, axes) * there(in2, sizes, axes), sizes, axes).astype(dtype)
    for axis, n in zip(axes, full):
        m, k = in1.shape[axis], in2.shape[axis]
        start, size = {"full": (0, n), "same": ((n - m) // 2, m), "valid": (k - 1, m - k + 1)}[mode]
        found = lax.slice_in_dim(found, start, start + size, axis=axis)
    return found


# --- trends ---------------------------------------------------------------------------------------

_TRENDS = {"linear": "linear", "l": "linear", "constant": "constant", "c": "constant"}


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):
    """The data less the line that fits them best along an axis, or less their mean; the dtype is floating.

    Args:
        type: 'linear' or 'constant'.
        bp: where one line ends and the next begins: ints from 0 to the size of the axis.
        overwrite_data: None.
    Raises:
        ValueError: for another type, or breaks outside of the data.

    >>> jax.scipy.signal.detrend(jnp.array([1., 2., 3., 5.]), type='constant')
    Array([-1.75, -0.75,  0.25,  2.25], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("scipy.signal.detrend: overwrite_data is not supported, as arrays are "
                                  "immutable: leave it out")
    check_arraylike("scipy.signal.detrend", data)
    if type not in _TRENDS:
        raise not_one_of("scipy.signal.detrend: type", type, ("linear", "constant"))
    axis = canonical_axis(axis, len(shape_of(data)))
    n, linear = shape_of(data)[axis], _TRENDS[type] == "linear"
    ends = sorted({0, n, *(np.ravel(bp).tolist() if linear else ())})
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(f"scipy.signal.detrend: breaks bp must be from 0 to {n}, the size of axis {axis}, "
                         f"got {bp}")
    return _detrended(data, axis=axis, linear=linear, ends=tuple(ends))


@composite(static=("axis", "linear", "ends"))
@promotes()
def _detrended(x, *, axis, linear, ends):
    x, = promote_dtypes_inexact(x)
    x = jnp.moveaxis(jnp.asarray(x), axis, -1)
    if not linear:
        return jnp.moveaxis(x - x.mean(-1, keepdims=True), -1, axis)
    parts = [x[..., :0]]
    for low, high in zip(ends, ends[1:]):
        part = x[..., low:high] - x[..., low:high].mean(-1, keepdims=True)
        t = np.arange(high - low) - (high - low - 1) / 2
        slope = (part * t.astype(x.dtype)).sum(-1, keepdims=True) / (float((t * t).sum()) or 1)
        parts.append(part - slope * t.astype(x.dtype))
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


# --- windows --------------------------------------------------------------------------------------

# Sums of cosines: F. J. Harris, "On the use of windows for harmonic analysis", Proc. IEEE 66, 1978; A. H.
# Nuttall, "Some windows with very good sidelobe behavior", IEEE Trans. ASSP 29, 1981; G. D'Antona & A.
# Ferrero, "Digital signal processing", 2006.
_COSINES = {
    "boxcar": (1,), "rectangular": (1,), "hann": (0.5, 0.5), "hanning": (0.5, 0.5), "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08), "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)}


def _tukey(x, alpha):
    edge = np.minimum(x, 1 - x)
    return np.where(edge < alpha / 2, 0.5 - 0.5 * np.cos(2 * np.pi * edge / (alpha or 1)), 1)


_FORMULAS = {       # of places x in [0, 1], the number n of intervals, and parameters
    "bartlett": lambda x, n: 1 - abs(2 * x - 1),
    "cosine": lambda x, n: np.sin(np.pi * (x * n + 0.5) / (n + 1)),
    "triang": lambda x, n: 1 - abs(2 * x - 1) * n / (n + 2 - n % 2),
    "tukey": lambda x, n, alpha=0.5: _tukey(x, alpha),
    "gaussian": lambda x, n, std: np.exp(-0.5 * ((x - 0.5) * n / std) ** 2),
    "kaiser": lambda x, n, beta: np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta),
    "general_hamming": lambda x, n, alpha: alpha - (1 - alpha) * np.cos(2 * np.pi * x)}


def _window(name, window, nperseg):
    """The window of nperseg weights: those given, or of a name, or of (name, parameters), as one period."""
    if not isinstance(window, (str, tuple)):
        check_arraylike(name, window)
        if shape_of(window) != (nperseg,):
            raise ShapeError(f"{name}: window must have shape (nperseg,) = ({nperseg},), got "
                             f"{shape_of(window)}")
        return window
    kind, *parameters = (window,) if isinstance(window, str) else window
    if kind not in _COSINES and kind not in _FORMULAS:
        raise NotImplementedError(f"{name}: window {kind!r} is not supported; there are "
                                  f"{', '.join(_COSINES | _FORMULAS)}, and any array of weights")
    x = np.arange(nperseg) / nperseg
    if kind in _COSINES:
        return sum(a * np.cos(2 * np.pi * k * x) * (-1) ** k for k, a in enumerate(_COSINES[kind]))
    return _FORMULAS[kind](x, nperseg, *parameters) if nperseg > 1 else np.ones(nperseg)


# --- spectra --------------------------------------------------------------------------------------

_EDGES = {"even": dict(mode="reflect"), "odd": dict(mode="reflect", reflect_type="odd"),
          "constant": dict(mode="edge"), "zeros": dict(mode="constant")}


def _lengths(name, nperseg, noverlap, nfft):
    """The sizes of segments, overlap and transform, with their defaults."""
    nperseg = static_int(nperseg, f"{name}: nperseg")
    noverlap = nperseg // 2 if noverlap is None else static_int(noverlap, f"{name}: noverlap")
    nfft = nperseg if nfft is None else static_int(nfft, f"{name}: nfft")
    if nperseg < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    if noverlap >= nperseg:
        raise ValueError(f"{name}: noverlap must be less than nperseg, got noverlap={noverlap} and "
                         f"nperseg={nperseg}")
    if nfft < nperseg:
        raise ValueError(f"{name}: nfft must be greater than or equal to nperseg, got nfft={nfft} and "
                         f"nperseg={nperseg}")
    return nperseg, noverlap, nfft


@promotes("x", "y")
def _spectra(name, x, y, fs, window, nperseg, noverlap, nfft, detrend_type, onesided, scaling, axis,
             boundary=None, padded=False, cross=False):
    """(frequencies, times, spectra (..., segments, frequencies)) of x, `axis` last.

    `cross` spectra are those with y, None for x itself.
    """
    check_arraylike(name, x, fs, *([] if y is None else [y]))
    check_choice(f"{name}: scaling", scaling, ("density", "spectrum"))
    if boundary is not None and boundary not in _EDGES:
        raise not_one_of(f"{name}: boundary", boundary, (*_EDGES, None))
    if not callable(detrend_type) and detrend_type is not False and detrend_type not in _TRENDS:
        raise not_one_of(f"{name}: detrend", detrend_type, ("linear", "constant", False))
    signals = [jnp.moveaxis(jnp.asarray(s), axis, -1)
               for s in promote_dtypes_inexact(*([x] if y is None else [x, y]))]
    size = max(s.shape[-1] for s in signals)
    if not isinstance(window, (str, tuple)):
        nperseg = shape_of(window)[0] if nperseg is None and shape_of(window) else nperseg
    else:
        nperseg = 256 if nperseg is None else nperseg
        nperseg = min(nperseg, size) if isinstance(nperseg, int) and size else nperseg
    nperseg, noverlap, nfft = _lengths(name, nperseg, noverlap, nfft)
    weights = _window(name, window, nperseg)
    if nperseg > size:
        raise ShapeError(f"{name}: window is longer than input signal: {nperseg} weights for {size} samples")
    onesided = onesided and signals[0].dtype.kind != "c"
    spectra, total = _transformed(tuple(signals), jnp.asarray(weights), fs, nperseg=nperseg,
                                  step=nperseg - noverlap, nfft=nfft, trend=detrend_type,
                                  onesided=bool(onesided), scaling=scaling, boundary=boundary,
                                  padded=bool(padded), cross=cross)
    frequencies = (fft.rfftfreq if onesided else fft.fftfreq)(nfft) * fs
    start = 0 if boundary is not None else nperseg / 2
    return frequencies, _strong((jnp.arange(total) * (nperseg - noverlap) + start) / fs), spectra


def _strong(x):
    """`x` of a type that is not weak, as times are, whatever `fs` is."""
    return x.astype(x.dtype)


def _segments(x, count, size, step):
    """(..., count, size), each `step` after the last: pieces side by side, where few make a segment."""
    pieces = -(-size // step)
    if pieces > 8:
        return x[..., np.arange(count)[:, None] * step + np.arange(size)]
    end = (count + pieces - 1) * step
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, max(end - x.shape[-1], 0))])
    x = [x[..., i * step:(i + count) * step].reshape(*x.shape[:-1], count, step) for i in range(pieces)]
    return jnp.concatenate(x, -1)[..., :size]


@composite(static=("nperseg", "step", "nfft", "trend", "onesided", "scaling", "boundary", "padded", "cross"))
def _transformed(signals, weights, fs, *, nperseg, step, nfft, trend, onesided, scaling, boundary, padded,
                 cross):
    kind = at_least_float32(signals[0].dtype)
    weights = weights.astype(kind)
    size = max(s.shape[-1] for s in signals)
    found = []
    for x in signals:
        x = x.astype(kind)
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])
        if boundary is not None:
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(nperseg // 2, nperseg // 2)], **_EDGES[boundary])
        if padded:
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -(x.shape[-1] - nperseg) % step % nperseg)])
        count = (x.shape[-1] - nperseg) // step + 1
        x = _segments(x, count, nperseg, step)
        if callable(trend):
            x = trend(x)
        elif trend:
            x = detrend(x, type=trend)
        found.append((fft.rfft if onesided else fft.fft)(x * weights, nfft))
    scale = 1 / (abs(weights.sum()) ** 2 if scaling == "spectrum" else fs * (abs(weights) ** 2).sum())
    if not cross:
        return found[0] * jnp.sqrt(scale).astype(kind), count
    both = jnp.conj(found[0]) * found[-1] * scale.astype(kind)
    k = np.arange(found[0].shape[-1])       # onesided: what is at negative frequencies counts here, too
    return both * np.where(onesided & (k > 0) & (2 * k != nfft), 2, 1).astype("float32"), count


def _placed(spectra, ndim, axis):
    """(..., segments, frequencies) with the frequencies in place of `axis`, and the segments last."""
    return jnp.moveaxis(spectra, -1, canonical_axis(axis, ndim))


def stft(x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True,
         boundary="zeros", padded=True, axis=-1):
    """(frequencies, times, Zxx): the Fourier transforms of overlapping segments of a signal, under a window.

    Args:
        x: a signal along `axis`, real or complex.
        fs: samples in a unit of time.
        window: 'hann', 'hamming', 'blackman', 'boxcar', ...; (name, parameters), as ('tukey', 0.25) or
            ('kaiser', 14.); or the weights, (nperseg,).  One period, of the length nperseg.
        nperseg: the length of a segment, at most that of x.
        noverlap: what two segments share, nperseg // 2 by default.
        nfft: the length of the transforms, filled with zeros.
        detrend: False, 'constant', 'linear', or a function of segments (..., nperseg).
        return_onesided: of real signals, the frequencies from 0 on alone.
        boundary: how half a segment at each end goes on: 'zeros', 'even', 'odd', 'constant', None not at all.
        padded: fill the last segment with zeros.
    Returns:
        Zxx (..., frequencies in place of `axis`, ..., segments) is scaled by 1 / sum(window).
    Raises:
        ValueError: for arguments that do not fit.
        ShapeError: for shapes that do not fit.
        NotImplementedError: for windows that SciPy alone has.

    >>> f, t, Z = jax.scipy.signal.stft(jnp.ones(16), nperseg=8)
    >>> Z.shape, abs(Z[0, 2])
    ((5, 5), Array(1., dtype=float32))
    """
    frequencies, times, found = _spectra("scipy.signal.stft", x, None, fs, window, nperseg, noverlap, nfft,
                                         detrend, return_onesided, "spectrum", axis, boundary, padded)
    return frequencies, times, _placed(found, len(shape_of(x)), axis)


def csd(x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
        return_onesided=True, scaling="density", axis=-1, average="mean"):
    """(frequencies, Pxy): the cross spectral density of two signals by Welch's method, a mean of segments.

    Other arguments are as in `stft`.

    Args:
        y: None for x itself, whose density is real; zeros fill up the shorter one, other axes broadcast.
        nperseg: 256 by default.
        scaling: 'density', a power in a unit of frequency, or 'spectrum'.
        average: 'mean' or 'median', unbiased (Allen et al., "FINDCHIRP", Phys. Rev. D 85, 2012, appendix B).

    >>> f, P = jax.scipy.signal.csd(jnp.array([0., 2.] * 8), None, nperseg=8, detrend=False)
    >>> P.real.argmax()
    Array(0, dtype=int32)
    """
    frequencies, found = _averaged("scipy.signal.csd", x, y, fs, window, nperseg, noverlap, nfft, detrend,
                                   return_onesided, scaling, axis, average)
    return frequencies, found.real if y is None else found


@promotes("x", "y")
def _averaged(name, x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
              average):
    check_choice(f"{name}: average", average, ("mean", "median"))
    frequencies, _, found = _spectra(name, x, y, fs, window, nperseg, noverlap, nfft, detrend,
                                     return_onesided, scaling, axis, cross=True)
    if average == "median":
        even = 2 * np.arange(1, (found.shape[-2] - 1) // 2 + 1)
        bias = 1 + (1 / (even + 1) - 1 / even).sum()
        found = lax.complex(*(jnp.median(part, -2) for part in (found.real, found.imag))) / bias
    else:
        found = found.mean(-2)
    return frequencies, _placed(found, found.ndim, axis)


def welch(x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
          return_onesided=True, scaling="density", axis=-1, average="mean"):
    """(frequencies, Pxx): the power spectral density of a signal by Welch's method; for arguments see `csd`.

    >>> f, P = jax.scipy.signal.welch(jnp.array([0., 2.] * 8), nperseg=8)
    >>> f[P.argmax()]
    Array(0.5, dtype=float32)
    """
    frequencies, found = _averaged("scipy.signal.welch", x, None, fs, window, nperseg, noverlap, nfft,
                                   detrend, return_onesided, scaling, axis, average)
    return frequencies, found.real


@promotes()
def istft(Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True,
          boundary=True, time_axis=-1, freq_axis=-2):
    """(times, x): the signal of a short-time Fourier transform, from the segments, weighted by the window.

    Where squares of the windows sum to less than 1e-10, x is not scaled.  Other arguments are as in `stft`.

    Args:
        nperseg: what follows from the number of frequencies by default.
        input_onesided: Zxx is of a real signal.
        boundary: half a segment at both ends is left out.
        time_axis: of Zxx; x has the time in place of the first of both axes.
        freq_axis: of Zxx.

    >>> x = jnp.arange(16.)
    >>> t, same = jax.scipy.signal.istft(jax.scipy.signal.stft(x, nperseg=8)[2])
    >>> bool(jnp.allclose(x, same, atol=1e-5))
    True
    """
    name = "scipy.signal.istft"
    check_arraylike(name, Zxx, fs)
    ndim = len(shape_of(Zxx))
    if ndim < 2:
        raise ShapeError(f"{name}: Zxx must have an axis of frequencies and one of times, got shape "
                         f"{shape_of(Zxx)}")
    time_axis = canonical_axis(time_axis, ndim, "time_axis")
    freq_axis = canonical_axis(freq_axis, ndim, "freq_axis")
    if time_axis == freq_axis:
        raise ValueError(f"{name}: time_axis and freq_axis must be different, got {time_axis} for both")
    usual = 2 * (shape_of(Zxx)[freq_axis] - 1) if input_onesided else shape_of(Zxx)[freq_axis]
    nperseg = usual if nperseg is None else static_int(nperseg, f"{name}: nperseg")
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == usual + 1 else usual
    nperseg, noverlap, nfft = _lengths(name, nperseg, noverlap, nfft)
    weights = jnp.asarray(_window(name, window, nperseg))
    x = _added(jnp.moveaxis(jnp.asarray(Zxx), (time_axis, freq_axis), (-2, -1)), weights, nperseg=nperseg,
               step=nperseg - noverlap, nfft=nfft, onesided=bool(input_onesided), boundary=bool(boundary))
    return _strong(jnp.arange(x.shape[-1]) / fs), jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))


@composite(static=("nperseg", "step", "nfft", "onesided", "boundary"))
def _added(spectra, weights, *, nperseg, step, nfft, onesided, boundary):
    parts = (fft.irfft if onesided else fft.ifft)(spectra, nfft)[..., :nperseg]
    weights = weights.astype(parts.real.dtype)
    places = np.arange(parts.shape[-2])[:, None] * step + np.arange(nperseg)
    size = (parts.shape[-2] - 1) * step + nperseg
    x = jnp.zeros((*parts.shape[:-2], size), parts.dtype).at[..., places].add(parts * weights * weights.sum())
    square = jnp.zeros(size, weights.dtype).at[places].add(weights * weights)
    x = x / jnp.where(square > 1e-10, square, 1)
    return x[..., nperseg // 2:size - nperseg // 2] if boundary else x


_offer(globals())
