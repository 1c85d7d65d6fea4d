"""Fourier transforms over the last axes, as XLA computes them: linear, so they are their own derivatives."""
import enum

from ...core.axes import leading_axes
from ...core.symbolic.dimension import is_constant_shape
from ..common import ShapedArray, dtype_of, dtypes, first_operand_jvp, kind_of, ndim_of, prod, shape_of
from .elementwise import conj_p, eq, mul, or_p, select
from .shape import Mapped, full, int_list, types_text
from .slicing import iota_p


class FftType(enum.IntEnum):
    """Complex numbers forwards and backwards; real numbers to the first half of theirs, and back."""
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _fft_abstract_eval(x, *, fft_type, fft_lengths):
    n = len(fft_lengths)
    if n > 3:
        raise ValueError(f"FFT over {n} axes of lengths {fft_lengths}: XLA transforms up to 3 at once; "
                         "transform the others afterwards, as jnp.fft.fftn does")
    if x.ndim < n:
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions as "
                         f"fft_lengths {fft_lengths}")
    real = fft_type == FftType.RFFT
    if kind_of(x.dtype) != ("f" if real else "c") or real and x.dtype.itemsize < 4:
        raise ValueError(f"{fft_type.name} input must be {'float32 or float64' if real else 'complex'}, got "
                         f"{x.dtype.name}: cast it with .astype")
    if not n:
        return x
    lengths = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    given, made = {FftType.RFFT: (fft_lengths, lengths), FftType.IRFFT: (lengths, fft_lengths)}.get(
        fft_type, (fft_lengths, fft_lengths))
    if x.shape[-n:] != given:
        half = ", whose last one is n // 2 + 1 for a result of length n" if fft_type == FftType.IRFFT else ""
        raise ValueError(f"FFT input shape {x.shape} minor dimensions must be equal to fft_lengths "
                         f"{fft_lengths}{half}: they must be {given}; jnp.fft cuts, or fills with zeros")
    if real and not fft_lengths[-1]:
        raise ValueError(f"RFFT of length 0: the operand of shape {x.shape} has nothing to transform")
    dtype = {FftType.RFFT: dtypes.complex_of, FftType.IRFFT: dtypes.real_of}.get(fft_type,
                                                                                 lambda dtype: dtype)(x.dtype)
    return ShapedArray((*x.shape[:-n], *made), dtype)


def _fft_lower(ctx, eqn, x):
    p, (operand,), out = eqn.params, [v.aval for v in eqn.invars], eqn.outvars[0].aval
    if not is_constant_shape(p["fft_lengths"]):
        raise NotImplementedError("Shape polymorphism for FFT with non-constant fft_length is not "
                                  f"implemented: fft_lengths={p['fft_lengths']}; XLA's transforms have fixed "
                                  "lengths")
    if not p["fft_lengths"]:
        return x
    if not out.size:
        return ctx.lower_fun(lambda _: full(out.shape, 0, out.dtype), eqn, x)
    n = operand.ndim
    x = ctx.replicate(x, operand, tuple(range(n - len(p["fft_lengths"]), n)))
    return ctx.emit(f"stablehlo.fft {x}, type = {p['fft_type'].name}, length = "
                    f"{int_list(p['fft_lengths'])} : {types_text(eqn)}")


def _fft_transpose(ct, x, *, fft_type, fft_lengths):
    """The complex ones are symmetric.  A real one is the other, where the coefficients that it has once count
    once and those that it has for two count twice."""
    def again(x, fft_type):
        return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths)
    if not fft_lengths or fft_type in (FftType.FFT, FftType.IFFT):
        return [again(ct, fft_type)]
    n, last = fft_lengths[-1], ndim_of(ct) - 1
    if not n:
        return [full(x.aval.shape, 0, x.aval.dtype)]
    forward = fft_type == FftType.RFFT
    half = conj_p.bind(ct if forward else again(ct, FftType.RFFT))
    k = iota_p.bind(dtype=dtypes.int32, shape=shape_of(half), dimension=last)
    single = or_p.bind(eq(k, 0), eq(mul(k, 2), n))
    times = prod(fft_lengths) if forward else 1 / prod(fft_lengths)
    half = mul(half, select(single, full(shape_of(half), times, dtype_of(half)),
                            times / 2 if forward else times * 2))
    return [again(half, FftType.IRFFT) if forward else half]


fft_p = Mapped("fft", abstract_eval=_fft_abstract_eval, lower=_fft_lower, transpose=_fft_transpose,
               axes=leading_axes(lambda x, *, fft_lengths, **_: (len(fft_lengths), len(fft_lengths)),
                                 computed="kept"))
fft_p.jvp = first_operand_jvp(fft_p)
