"""Rows of what XLA computes as a whole, random bits, and of functions by loops."""
import numpy as np
from scipy import special

from hlotrace.primitives.arrays.fft import FftType

from .row import Row, between, fails, op

ROWS = []
STATE = np.array([1, 2, 3, 4], np.uint32)


def philox(state, n):
    """(the state afterwards, n words) of Philox-4x32 with 10 rounds (Salmon et al., 2011, section 4.1)."""
    words, mask = [], 2**32 - 1
    low, high = (int(state[0]) | int(state[1]) << 32), (int(state[2]) | int(state[3]) << 32)
    blocks = -(-n // 4)
    for at in range(high, high + blocks):
        c, k = [at & mask, at >> 32, low & mask, low >> 32], [low & mask, low >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q & mask, p >> 32 ^ c[3] ^ k[1], p & mask]
            k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
        words += c
    after = high + blocks
    return np.array([*state[:2], after & mask, after >> 32], np.uint32), np.array(words[:n], np.uint32)


BITS = dict(shape=(5,), dtype=np.dtype(np.uint32), algorithm=2)
ROWS += [
    Row("rng_bit_generator", lambda: op("rng_bit_generator", **BITS)(STATE), lambda: list(philox(STATE, 5)), (), "",
        derivative="none", bad=(
            fails(TypeError, "unsupported dtype int32", "rng_bit_generator", STATE, **{**BITS, "dtype": np.dtype(np.int32)}),
            fails(TypeError, "the key must be", "rng_bit_generator", STATE[:2], **BITS))),
    # mapped, the first state makes the bits of all; where there are none, each stays what it is
    Row("rng_bit_generator", op("rng_bit_generator", **{**BITS, "shape": (0,)}), lambda state: list(philox(state, 0)),
        (STATE,), "", "no bits", derivative="none"),
    Row("rng_uniform", lambda: op("rng_uniform", shape=(3,))(np.float32(1), np.float32(2)) // 1, lambda: np.ones(3), (), "",
        derivative="none", bad=(
            fails(ValueError, "identical dtypes", "rng_uniform", np.float32(0), np.float16(1), shape=(3,)),
            fails(ValueError, "must be scalars", "rng_uniform", (2,), np.float32(1), shape=(3,)),
            fails(TypeError, "does not accept dtype bool", "rng_uniform", np.False_, np.True_, shape=(3,))))]


# --- incomplete functions ---------------------------------------------------------------------------------------

def by_a(a, x):
    """The derivative of P(a, x) by a, by central differences of fourth order."""
    h = 1e-3 * a
    return sum(c * special.gammainc(a + k * h, x) for k, c in ((-2, 1), (-1, -8), (1, 8), (2, -1))) / (12 * h)


def density(a, x):
    return np.exp((a - 1) * np.log(x) - x - special.gammaln(a))


# one value in each region: series, fraction, transition
A, X = np.array([2.0, 0.7, 64.0]), np.array([1.5, 2.0, 60.0])
INT = np.zeros(2, np.int32)
# such programs take long to compile, and are much alike: the first has all checks, tests/lax/test_special.py has more
for name, ref, fields in (
        ("igamma", special.gammainc, dict(derivative="forward", args=(A, X), kinds="F")),
        ("igammac", special.gammaincc, dict(smooth=(1,))),
        ("igamma_grad_a", by_a, dict(derivative="none")),
        ("random_gamma_grad", lambda a, x: -by_a(a, x) / density(a, x), dict(derivative="none"))):
    bad = fails(TypeError, f"{name} does not accept dtype int32", name, INT, INT),
    ROWS.append(Row(name, op(name), ref, **{
        "args": (A.astype(np.float32), X.astype(np.float32)), "kinds": "", "mapped": (0,), "rtol": 1e-5, "bad": bad,
        **fields}))
ROWS.append(Row("regularized_incomplete_beta", op("regularized_incomplete_beta"), special.betainc,
                (between(0.3, 5, 3), between(0.3, 5, 3), between(0.1, 0.9, 3)), smooth=(2,), mapped=(2,), kinds="F",
                bad=(fails(TypeError, "does not accept dtype int32", "regularized_incomplete_beta", INT, INT, INT),)))


# --- Fourier transforms -----------------------------------------------------------------------------------------

def transform(kind, lengths, ref, *shape, **fields):
    """A row; the samples of the inverse of a real transform are its coefficients."""
    params = dict(fft_type=FftType[kind], fft_lengths=lengths)
    ROWS.append(Row("fft", op("fft", **params), ref, (between(-1, 1, *shape),), "F" if kind == "RFFT" else "c",
                    f"{kind} of {lengths}", linear=True, **fields))


C64 = np.zeros((2, 4), np.complex64)
transform("FFT", (4,), np.fft.fft, 2, 4, bad=(
    fails(ValueError, "must be equal to fft_lengths", "fft", C64, fft_type=FftType.FFT, fft_lengths=(3,)),
    fails(ValueError, "n // 2 \\+ 1", "fft", C64, fft_type=FftType.IRFFT, fft_lengths=(4,)),
    fails(ValueError, "must be complex, got float32", "fft", (2, 4), fft_type=FftType.FFT, fft_lengths=(4,)),
    fails(ValueError, "RFFT of length 0", "fft", (2, 0), fft_type=FftType.RFFT, fft_lengths=(0,)),
    fails(ValueError, "at least as many", "fft", C64, fft_type=FftType.FFT, fft_lengths=(1, 2, 4)),
    fails(ValueError, "up to 3", "fft", C64, fft_type=FftType.FFT, fft_lengths=(1, 1, 2, 4))))
transform("IFFT", (2, 3, 4), np.fft.ifftn, 2, 3, 4)
transform("RFFT", (5,), np.fft.rfft, 2, 5)
transform("RFFT", (3, 4), lambda x: np.fft.rfftn(x, axes=(1, 2)), 2, 3, 4)
transform("IRFFT", (2, 4), np.fft.irfft2, 2, 3)
transform("IRFFT", (5,), lambda x: np.fft.irfft(x, 5), 2, 3)


# --- approximate extremes: exact on a CPU -----------------------------------------------------------------------

def extremes(x, axis, size, best):
    order = np.argsort(-x if best else x, axis, kind="stable").take(range(size), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


APPROXIMATE = dict(k=2, reduction_dimension=1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True)
ROWS += [
    Row("approx_top_k", op("approx_top_k", **APPROXIMATE, is_max_k=True), lambda x: extremes(x, 1, 2, True),
        (between(-3, 3, 2, 6),), "f", "max", bad=(
            fails(ValueError, "must be a floating type", "approx_top_k", INT[None], **APPROXIMATE, is_max_k=True),
            *[fails(ValueError, words, "approx_top_k", (2, 6), **{**APPROXIMATE, **wrong}, is_max_k=True)
              for words, wrong in (("k must be positive", dict(k=0)), ("at most the size 6", dict(k=7)),
                                   ("recall_target must be", dict(recall_target=1.5)),
                                   ("override must be", dict(reduction_input_size_override=5)))])),
    Row("approx_top_k", op("approx_top_k", **{**APPROXIMATE, "reduction_dimension": 0}, is_max_k=False),
        lambda x: extremes(x, 0, 2, False), (between(-3, 3, 3, 2),), "F", "min of the first axis")]
