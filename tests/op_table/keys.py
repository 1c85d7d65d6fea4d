"""Rows of the primitives on PRNG keys, as functions of the keys' words."""
import numpy as np

from hlotrace import random
from hlotrace.primitives.arrays.random import KEY

from .row import Row, fails, op

ROWS = []
KEYS = np.array([[0, 0], [0, 7], [123456789, 3000000000]], np.uint32)
U32 = np.uint32
WRAP = op("random_wrap", impl=KEY)


def threefry(k0, k1, x0, x1):
    """Threefry-2x32 with 20 rounds: Salmon et al. (2011), section 3.3."""
    keys = (k0, k1, k0 ^ k1 ^ U32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(20):
        r = U32((13, 15, 26, 6, 17, 29, 16, 24)[i % 8])
        x0 = x0 + x1
        x1 = (x1 << r | x1 >> U32(32) - r) ^ x0
        if i % 4 == 3:
            n = i // 4 + 1
            x0, x1 = x0 + keys[n % 3], x1 + keys[(n + 1) % 3] + U32(n)
    return x0, x1


def hashed(words, counters):
    """Two output words for each key (row of `words`) and each counter."""
    low = np.broadcast_to(counters.astype(U32), (len(words), *counters.shape))
    k0, k1 = (words[:, i].reshape(-1, *[1] * counters.ndim) for i in (0, 1))
    return threefry(k0, k1, np.zeros_like(low), low)


def bits(width):
    def ref(words):
        high, low = hashed(words, np.arange(6).reshape(2, 3))
        if width == 64:
            return high.astype(np.uint64) << np.uint64(32) | low
        return (high ^ low).astype(f"u{width // 8}")
    return ref


def on_words(name, **params):
    """The primitive between wrapping and unwrapping."""
    def fun(words, *args):
        out = op(name, **params)(op("random_wrap", impl=KEY)(words), *args)
        return op("random_unwrap")(out) if name != "random_bits" else out
    return fun


def row(name, fun, ref, *args, variant="", bad=()):
    ROWS.append(Row(name, fun, ref, args, "", variant, derivative="none", bad=tuple(bad)))


DATA = np.array([1, 2, 3], U32)
row("random_split", on_words("random_split", shape=(4,)), lambda w: np.stack(hashed(w, np.arange(4)), -1), KEYS,
    bad=[fails(TypeError, "must be given PRNG keys", "random_split", KEYS, shape=(2,))])
row("random_fold_in", on_words("random_fold_in"),
    lambda w, d: np.stack([np.array(hashed(k[None], n[None]))[:, 0, 0] for k, n in zip(w, d)]), KEYS, DATA,
    bad=[fails(TypeError, "must be given PRNG keys", "random_fold_in", KEYS, DATA)])
for width in (8, 16, 32):
    row("random_bits", on_words("random_bits", bit_width=width, shape=(2, 3)), bits(width), KEYS, variant=str(width),
        bad=[fails(TypeError, "must be given PRNG keys", "random_bits", KEYS, bit_width=width, shape=(2,))])
row("random_wrap", lambda w: op("random_unwrap")(op("rev", dimensions=(0,))(WRAP(w))), lambda w: w[::-1],
    KEYS, bad=[fails(TypeError, "expected key_data.dtype = uint32; got dtype=int32", "random_wrap", DATA.astype(np.int32), impl=KEY),
               fails(TypeError, "expected key_data.shape to end with", "random_wrap", DATA, impl=KEY)])
row("random_clone", lambda w: op("random_unwrap")(op("random_clone")(WRAP(w))), lambda w: w, KEYS,
    bad=[fails(TypeError, "must be given PRNG keys", "random_clone", KEYS)])
row("random_unwrap", lambda w: op("random_unwrap")(WRAP(w)), lambda w: w, KEYS,
    bad=[fails(TypeError, "must be given PRNG keys", "random_unwrap", KEYS)])
ROWS.append(Row("threefry2x32", op("threefry2x32"), lambda *xs: list(threefry(*xs)),
                tuple(np.array(x, U32) for x in ([1, 2], [3, 2**31], [0, 5], [7, 2**32 - 1])), "", derivative="none",
                bad=(fails(TypeError, "must have uint32 type", "threefry2x32", *[DATA.astype(np.int32)] * 4),)))

# gamma values of each key and of one, as JAX gives them
A = np.array([[0.5, 2.0], [1.0, 30.0], [0.1, 7.0]], np.float32)
GAMMA = np.array([[-0.12265953, 0.5652805], [-0.06785956, 3.2467275], [-5.738991, 2.0714116]], np.float32)
LOG = op("random_gamma", log_space=True)
ROWS.append(Row("random_gamma", lambda w, a: LOG(WRAP(w), a), lambda w, a: GAMMA, (KEYS, A), "", derivative="none",
                native=True, bad=(fails(TypeError, "must be floating-point", "random_gamma", random.split(random.key(0)), A,
                                        log_space=True),)))
