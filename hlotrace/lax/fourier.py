"""JAX's `lax.fft`."""
from ..core import dtypes
from ..core.avals import aval_of
from ..core.errors import not_one_of
from ..primitives.arrays.elementwise import convert
from ..primitives.arrays.fft import FftType, fft_p
from ..primitives.common import canonical_shape

__all__ = ["FftType", "fft", "fft_p"]


def fft(x, fft_type, fft_lengths):
    """Fourier transform over the last axes.

    Real numbers become complex, integers become floating point where needed.

    Args:
        x: an array; RFFT takes real numbers, the other types complex ones.
        fft_type: an FftType or its name.  RFFT gives n // 2 + 1 coefficients along the last axis, IRFFT takes
            those and gives n real numbers; the others take and give complex numbers.
        fft_lengths: the lengths of the last axes, up to 3 of them.
    Raises:
        ValueError: for lengths that are not those of `x`.

    >>> lax.fft(jnp.array([1., 2.]), 'fft', (2,))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        names = [t.name for t in FftType]
        if fft_type.upper() not in names:
            raise not_one_of("fft: fft_type", fft_type, names)
        fft_type = FftType[fft_type.upper()]
    if not isinstance(fft_type, FftType):
        raise TypeError(f"fft: fft_type must be a member of lax.FftType or its name, got {fft_type!r}")
    aval = aval_of(x)
    dtype = aval.dtype
    if fft_type != FftType.RFFT:
        dtype = dtypes.complex_of(dtypes.to_inexact(dtype))
    elif dtypes.is_complex(dtype):
        raise ValueError(f"only real valued inputs supported for rfft, got {aval.str_short()}: take .real, "
                         "or use fft")
    else:
        dtype = dtypes.to_inexact(dtype)
    return fft_p.bind(convert(x, dtype), fft_type=fft_type,
                      fft_lengths=canonical_shape(fft_lengths, "fft_lengths"))
