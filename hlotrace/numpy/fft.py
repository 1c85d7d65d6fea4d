"""NumPy's Fourier transforms: of one axis, two or any, of real, complex and Hermitian arrays."""
from collections.abc import Iterable

from ..api.composite import composite
from ..core import dtypes
from ..core.errors import did_you_mean
from ..core.surface.public import export_names as _offer
from ..core.symbolic.dimension import max_dim
from ..lax import fourier
from ..lax.fourier import FftType
from ..primitives.arrays.elementwise import div, mul
from ..primitives.arrays.shape import transpose
from ..primitives.arrays.slicing import zero_filled
from ..primitives.common import as_axes, canonical_axes, canonical_axis, prod, scalar, static_int
from .arrays.ranges import arange
from .arrays.rolling import roll
from .elementwise.ufuncs import conjugate
from .util import check_arraylike, dtype_of, ndim, shape

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
           "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

# --- transforms -----------------------------------------------------------------------------------

_NORMS = ("backward", "ortho", "forward")


def _checked(norm):
    """Which direction divides by the number of elements.

    "backward": the inverse; "ortho": both, by its square root; "forward": the other one.
    """
    if norm is not None and norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward"'
                         + did_you_mean(norm, _NORMS))
    return norm or "backward"


def _mirrored(norm):
    return _NORMS[2 - _NORMS.index(_checked(norm))]


def spans(name, a, s, axes):
    """(axes, lengths) of a transform of `a`: lengths `s` along `axes`, by default the last ones, or all."""
    check_arraylike(name, a)
    for what, given in (("s", s), ("axes", axes)):
        if given is not None and not isinstance(given, Iterable):
            raise TypeError(f"{name}: {what} must be a sequence of ints, got {given!r}: write ({given!r},)")
    s, axes = (None if given is None else tuple(given) for given in (s, axes))
    lengths = None if s is None else tuple([static_int(n, "the length of a transform") for n in s])
    if axes is None:
        axes = range(ndim(a)) if s is None else range(ndim(a) - len(s), ndim(a))
    axes = canonical_axes(axes, ndim(a), "axes")
    if s is None:
        return axes, tuple([shape(a)[i] for i in axes])
    if len(lengths) != len(axes):
        raise ValueError(f"{name}: Shape and axes have different lengths, got s={lengths} and axes={axes}: "
                         "one length for each axis")
    if any(n < 1 for n in lengths):
        raise ValueError(f"{name}: Shape should be positive, the lengths of transforms, got {lengths}")
    return axes, lengths


def _transformed(name, kind, a, s, axes, norm):
    axes, lengths = spans(f"jnp.fft.{name}", a, s, axes)
    if kind == FftType.IRFFT and s is None and axes:
        lengths = (*lengths[:-1], max_dim(2 * (lengths[-1] - 1), 0))
    return _transform(a, kind=kind, axes=axes, lengths=lengths, norm=_checked(norm))


@composite(static=("kind", "axes", "lengths", "norm"))
def _transform(x, *, kind, axes, lengths, norm):
    if len(axes) > 3:       # XLA takes three at once; the last one, of real numbers, goes with the last three
        complex_kind = FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT
        parts = [dict(kind=kind, axes=axes[-3:], lengths=lengths[-3:]),
                 dict(kind=complex_kind, axes=axes[:-3], lengths=lengths[:-3])]
        for part in parts[::-1] if kind == FftType.IRFFT else parts:
            x = _transform(x, **part, norm=norm)
        return x
    order = (*[i for i in range(ndim(x)) if i not in axes], *axes)
    back = sorted(range(len(order)), key=order.__getitem__)
    x = transpose(x, order)
    given = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == FftType.IRFFT and lengths else lengths
    x = fourier.fft(zero_filled(x, (*shape(x)[:ndim(x) - len(axes)], *given)), kind, lengths)
    total, forward = prod(lengths), kind in (FftType.FFT, FftType.RFFT)
    if norm != "backward":      # as XLA does it: IFFT and IRFFT divide by the number of elements
        x = (div if forward else mul)(x, scalar(total ** (0.5 if norm == "ortho" else 1), dtype_of(x)))
    return transpose(x, back)


def _along(name, kind, a, n, axis, norm):
    """A transform along one axis; None is the last, or all where there is no length `n`."""
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use "
                         f"jax.numpy.fft.{name}n. Got axis = {axis}.")
    return _transformed(name, kind, a, *(None if v is None else (v,) for v in (n, axis)), norm)


def _one(name, kind, doc, *example):
    def function(a, n=None, axis=-1, norm=None):
        return _along(name, kind, a, n, axis, norm)
    return _named(function, name, doc + "  `n` is the length, to which a is cut or filled with zeros.",
                  *example)


def _two(name, kind, doc, *example):
    def function(a, s=None, axes=(-2, -1), norm=None):
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}: "
                             f"jnp.fft.{name[:-1]}n takes others")
        return _transformed(name, kind, a, s, axes, norm)
    return _named(function, name, doc + "  `s` are the lengths, to which a is cut or filled with zeros.",
                  *example)


def _any(name, kind, doc, *example):
    def function(a, s=None, axes=None, norm=None):
        return _transformed(name, kind, a, s, axes, norm)
    return _named(function, name,
                  doc + "  None for `axes` means all, or as many of the last as there are lengths `s`.",
                  *example)


def _named(function, name, doc, argument, result):
    """With an example: its argument, and what that gives."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\n    >>> jnp.fft.{name}({argument})\n    {result}\n    "
    return function


_ONES, _SUM = "jnp.ones((2, 2))", "Array([[4.+0.j, 0.+0.j], [0.+0.j, 0.+0.j]], dtype=complex64)"
_EYE, _SAME = "4 * jnp.eye(2)", "Array([[2.+0.j, 0.+0.j], [0.+0.j, 2.+0.j]], dtype=complex64)"
_REAL = "Array([[2., 0.], [0., 2.]], dtype=float32)"

fft = _one("fft", FftType.FFT, "Fourier transform along an axis.",
           "jnp.array([1., 2.])", "Array([ 3.+0.j, -1.+0.j], dtype=complex64)")
ifft = _one("ifft", FftType.IFFT, "Inverse of `fft`.",
            "jnp.array([3., -1.])", "Array([1.+0.j, 2.+0.j], dtype=complex64)")
rfft = _one("rfft", FftType.RFFT,
            "Fourier transform of real numbers along an axis: the first n // 2 + 1 coefficients.",
            "jnp.array([1., 2., 3., 2.])", "Array([ 8.+0.j, -2.+0.j,  0.+0.j], dtype=complex64)")
irfft = _one("irfft", FftType.IRFFT,
             "Inverse of `rfft`: n real numbers, 2 (m - 1) of m coefficients if n is not given.",
             "jnp.array([8., -2., 0.])", "Array([1., 2., 3., 2.], dtype=float32)")
fft2 = _two("fft2", FftType.FFT, "Fourier transform over two axes.", _ONES, _SUM)
ifft2 = _two("ifft2", FftType.IFFT, "Inverse of `fft2`.", _EYE, _SAME)
rfft2 = _two("rfft2", FftType.RFFT,
             "Fourier transform of real numbers over two axes, n // 2 + 1 coefficients in the last.", _ONES,
             _SUM)
irfft2 = _two("irfft2", FftType.IRFFT, "Inverse of `rfft2`.", _EYE, _REAL)
fftn = _any("fftn", FftType.FFT, "Fourier transform over any axes.", _ONES, _SUM)
ifftn = _any("ifftn", FftType.IFFT, "Inverse of `fftn`.", _EYE, _SAME)
rfftn = _any("rfftn", FftType.RFFT,
             "Fourier transform of real numbers over any axes, n // 2 + 1 coefficients in the last.", _ONES,
             _SUM)
irfftn = _any("irfftn", FftType.IRFFT, "Inverse of `rfftn`.", _EYE, _REAL)


def hfft(a, n=None, axis=-1, norm=None):
    """Fourier transform of a signal with Hermitian symmetry, given by its first half: n real numbers.

    >>> jnp.fft.hfft(jnp.array([1., 2., 1.]))
    Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    check_arraylike("jnp.fft.hfft", a)
    return _along("hfft", FftType.IRFFT, conjugate(a), n, axis, _mirrored(norm))


def ihfft(a, n=None, axis=-1, norm=None):
    """Inverse of `hfft`: the first half of the coefficients of n real numbers.

    >>> jnp.fft.ihfft(jnp.array([6., 0., -2., 0.]))
    Array([1.-0.j, 2.-0.j, 1.-0.j], dtype=complex64)
    """
    return conjugate(_along("ihfft", FftType.RFFT, a, n, axis, _mirrored(norm)))


# --- what belongs to coefficients -----------------------------------------------------------------

def _frequencies(name, n, d, dtype, device, start, stop):
    if isinstance(n, (list, tuple)) or getattr(n, "ndim", 0):
        raise ValueError(f"jnp.fft.{name}: n must be an int, got {n!r:.60}")
    if isinstance(d, (list, tuple)) or getattr(d, "ndim", 0):
        raise ValueError(f"jnp.fft.{name}: d must be one number, got {d!r:.60}")
    n = static_int(n, f"jnp.fft.{name}: n")
    k = arange(start(n), stop(n), dtype=dtypes.canonicalize(float), device=device)
    found = roll(k, start(n)) / (d * n)
    return found if dtype is None else found.astype(dtype)


def fftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies of the coefficients of `fft` of n samples that are `d` apart.

    They are 0, 1, ..., -2, -1 over d n.

    >>> jnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    return _frequencies("fftfreq", n, d, dtype, device, lambda n: -(n // 2), lambda n: (n + 1) // 2)


def rfftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies of the coefficients of `rfft` of n samples that are `d` apart.

    They are 0, 1, ..., n // 2 over d n.

    >>> jnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: 0, lambda n: n // 2 + 1)


def _shifted(name, x, axes, shift):
    check_arraylike(f"jnp.fft.{name}", x)
    axes = range(ndim(x)) if axes is None else [canonical_axis(i, ndim(x)) for i in as_axes(axes)]
    return roll(x, [shift(shape(x)[i]) for i in axes], axes)


def fftshift(x, axes=None):
    """The coefficients of `fftn` with that of frequency zero in the middle of `axes`, all for None.

    >>> jnp.fft.fftshift(jnp.arange(4))
    Array([2, 3, 0, 1], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x, axes=None):
    """Undoes `fftshift`.

    >>> jnp.fft.ifftshift(jnp.arange(3))
    Array([1, 2, 0], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


_offer(globals())
