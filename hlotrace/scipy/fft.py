"""SciPy's cosine transforms of the second kind, by one complex transform of as many elements along each axis.

J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. Acoust. Speech Signal Process. 28
(1980).
"""
import math

from ..api.composite import composite
from ..core.errors import check_choice
from ..core.surface.public import export_names as _offer
from ..numpy import arange, concatenate, exp, fft as _fft, flip, imag, moveaxis, pad, real, stack, where
from ..numpy.util import at_least_float32, promote_dtypes_inexact, promotes, shape
from ..primitives.common import as_axes

__all__ = ["dct", "dctn", "idct", "idctn"]


@composite(static=("n", "axis", "ortho", "inverse"))
@promotes()
def _cosine(x, *, n, axis, ortho, inverse):
    x, = promote_dtypes_inexact(x)
    if x.dtype.kind == "c":
        re, im = (_cosine(part, n=n, axis=axis, ortho=ortho, inverse=inverse) for part in (real(x), imag(x)))
        return re + 1j * im
    x = moveaxis(x, axis, -1)[..., :n]
    x = pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
    x = x.astype(at_least_float32(x.dtype))
    k, half = arange(n, dtype=x.dtype), (n + 1) // 2
    scale = where(k == 0, math.sqrt(1 / (4 * n)), math.sqrt(1 / (2 * n))) if ortho else 1
    turn = exp(-0.5j * math.pi / n * k)
    if not inverse:
        found = 2 * real(turn * _fft.fft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], -1))) * scale
    else:
        x = x / scale
        mirrored = concatenate([x[..., :1] * 0, flip(x[..., 1:], -1)], -1)
        v = real(_fft.ifft((x - 1j * mirrored) / (2 * turn)))
        odd = pad(flip(v[..., half:], -1), [(0, 0)] * (x.ndim - 1) + [(0, 2 * half - n)])
        found = stack([v[..., :half], odd], -1).reshape(*x.shape[:-1], 2 * half)[..., :n]
    return moveaxis(found, -1, axis)


def _transformed(name, x, type, s, axes, norm, inverse):
    name = f"scipy.fft.{name}"
    axes, lengths = _fft.spans(name, x, *(v if v is None else as_axes(v) for v in (s, axes)))
    if type != 2:
        raise NotImplementedError(f"{name}: type={type!r} is not supported, type 2 is")
    check_choice("norm", "backward" if norm is None else norm, ("backward", "ortho"))
    if 0 in lengths:
        raise ValueError(f"{name}: an axis to be transformed must not be empty, got shape {shape(x)} for "
                         f"axes={axes}")
    for axis, n in zip(axes, lengths):
        x = _cosine(x, n=n, axis=axis, ortho=norm == "ortho", inverse=inverse)
    return x


def dct(x, type=2, n=None, axis=-1, norm=None):
    """Cosine transform along an axis: 2 sum x_j cos(pi k (2j + 1) / (2n)).

    Complex numbers are transformed part by part.

    Args:
        type: 2.
        n: the axis is cut or filled with zeros to this length.
        norm: with "ortho" it is an orthogonal matrix.
    Raises:
        NotImplementedError: for types other than 2.

    >>> jax.scipy.fft.dct(jnp.array([1., 1.]))
    Array([4., 0.], dtype=float32)
    """
    return _transformed("dct", x, type, None if n is None else (n,), (axis,), norm, False)


def idct(x, type=2, n=None, axis=-1, norm=None):
    """Inverse of `dct`.

    >>> jax.scipy.fft.idct(jnp.array([4., 0.]))
    Array([1., 1.], dtype=float32)
    """
    return _transformed("idct", x, type, None if n is None else (n,), (axis,), norm, True)


def dctn(x, type=2, s=None, axes=None, norm=None):
    """`dct` along several axes.

    Args:
        type: 2.
        s: the lengths of the axes.
        axes: None means all, or as many of the last as there are lengths.
        norm: as in `dct`.

    >>> jax.scipy.fft.dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _transformed("dctn", x, type, s, axes, norm, False)


def idctn(x, type=2, s=None, axes=None, norm=None):
    """Inverse of `dctn`.

    >>> jax.scipy.fft.idctn(jnp.array([[16., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _transformed("idctn", x, type, s, axes, norm, True)


_offer(globals())
