"""PRNG keys: their dtype, the threefry2x32 hash, and the primitives on keys (split, fold_in, bits, wrap, unwrap).

The hash is the 20-round Threefry-2x32 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
Every primitive takes keys of any shape and treats each key alone, so the axes of its operands are left alone.
"""

from ..core.axes import leading_axes
from ..core.config import config, override
from ..core.kept import kept
from ..core.programs import trace_closed
from ..core.trace import EVAL, entering
from .common import ShapedArray, dtypes, no_tangent_jvp, prod, scalar, shape_of
from .elementwise import add, and_p, convert, mul, or_p, shift_left_p, shift_right_logical_p, xor_p
from .shape import Mapped, broadcast_axis, broadcast_in_dim, reshape, squeeze_p
from .slicing import concatenate_p, iota_p, slice_p

U32 = dtypes.uint32
WORDS = {8: dtypes.uint8, 16: dtypes.uint16, 32: U32, 64: dtypes.uint64}


class KeyDType(dtypes.ExtendedDType):
    """The dtype of threefry keys; an element is two 32-bit words."""
    name = "key<fry>"
    impl = "threefry2x32"
    physical_shape = (2,)
    physical_dtype = U32

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return "KEY"


KEY = KeyDType()


# --- the hash, on arrays of words -------------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _rotate(x, by):
    return or_p.bind(shift_left_p.bind(x, scalar(by, U32)), shift_right_logical_p.bind(x, scalar(32 - by, U32)))


def threefry2x32(k0, k1, x0, x1):
    """The two output words for key words and counter words; uint32 arrays of one shape."""
    schedule = (k0, k1, xor_p.bind(xor_p.bind(k0, k1), scalar(0x1BD11BDA, U32)))
    x0, x1 = add(x0, k0), add(x1, k1)
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = xor_p.bind(x0, _rotate(x1, by))
        x0 = add(x0, schedule[(group + 1) % 3])
        x1 = add(x1, add(schedule[(group + 2) % 3], group + 1))
    return x0, x1


def last_axis(x, i):
    """`x[..., i]`."""
    shape = shape_of(x)
    lead = shape[:-1]
    part = slice_p.bind(x, start_indices=(*(0,) * len(lead), i), limit_indices=(*lead, i + 1), strides=None)
    return squeeze_p.bind(part, dimensions=(len(lead),))


def pair(x0, x1):
    """`stack([x0, x1], axis=-1)`."""
    words = [broadcast_axis(x, 1, len(shape_of(x))) for x in (x0, x1)]
    return concatenate_p.bind(*words, dimension=len(shape_of(x0)))


def _hash(words, x0, x1):
    """Hash counters of shape (*keys, *rest) with the keys `words` of shape (*keys, 2)."""
    shape, lead = shape_of(x0), tuple(range(len(shape_of(words)) - 1))
    return threefry2x32(*(broadcast_in_dim(last_axis(words, i), shape, lead) for i in range(2)), x0, x1)


def _counters(lead, shape):
    """The row-major positions in an array of `shape` as (high, low) words, repeated over `lead`."""
    wide = prod(shape) >= 2 ** 32
    dtype = dtypes.uint64 if wide else U32
    total, stride = broadcast_in_dim(scalar(0, dtype), shape, ()), 1
    for axis in reversed(range(len(shape))):
        if shape[axis] > 1:
            place = iota_p.bind(dtype=dtype, shape=shape, dimension=axis)
            total = add(total, mul(place, stride))
        stride *= shape[axis]
    if wide:
        high, low = convert(shift_right_logical_p.bind(total, scalar(32, dtype)), U32), convert(total, U32)
    else:
        high, low = broadcast_in_dim(scalar(0, U32), shape, ()), total
    axes = tuple(range(len(lead), len(lead) + len(shape)))
    return [broadcast_in_dim(x, (*lead, *shape), axes) for x in (high, low)]


def _flat_hash(words, n):
    """`n` words from counting 0, 1, ... through each key: the counters of `jax_threefry_partitionable=False`."""
    lead, half = shape_of(words)[:-1], (n + 1) // 2
    shape = (*lead, half)
    low = iota_p.bind(dtype=U32, shape=shape, dimension=len(lead))
    high = add(low, half)
    if n % 2:       # an odd count is filled up with a zero
        last = (*lead, 1)
        high = slice_p.bind(high, start_indices=(0,) * len(shape), limit_indices=(*lead, half - 1), strides=None)
        high = concatenate_p.bind(high, broadcast_in_dim(scalar(0, U32), last, ()), dimension=len(lead))
    out = concatenate_p.bind(*_hash(words, low, high), dimension=len(lead))
    return slice_p.bind(out, start_indices=(0,) * len(shape), limit_indices=(*lead, n), strides=None)


def _split(words, *, shape):
    lead = shape_of(words)[:-1]
    if not config.jax_threefry_partitionable:
        return reshape(_flat_hash(words, 2 * prod(shape)), (*lead, *shape, 2))
    return pair(*_hash(words, *_counters(lead, shape)))


def _fold_in(words, data):
    return pair(*_hash(words, broadcast_in_dim(scalar(0, U32), shape_of(data), ()), data))


def _bits(words, *, bit_width, shape):
    lead = shape_of(words)[:-1]
    if config.jax_threefry_partitionable:
        x0, x1 = _hash(words, *_counters(lead, shape))
        return _join64(x0, x1) if bit_width == 64 else convert(xor_p.bind(x0, x1), WORDS[bit_width])
    size = prod(shape)
    count = -(-size * bit_width // 32)
    flat = _flat_hash(words, count)
    axis = len(lead)
    if bit_width == 64:
        first, second = (slice_p.bind(flat, start_indices=(*(0,) * axis, lo), limit_indices=(*lead, lo + size),
                                      strides=None) for lo in (0, size))
        flat = _join64(first, second)
    elif bit_width < 32:
        parts = [shift_right_logical_p.bind(flat, scalar(at, U32)) for at in range(0, 32, bit_width)]
        rows = [broadcast_axis(and_p.bind(p, scalar(2 ** bit_width - 1, U32)), 1, axis + 1) for p in parts]
        flat = convert(reshape(concatenate_p.bind(*rows, dimension=axis + 1), (*lead, count * len(rows))),
                       WORDS[bit_width])
        flat = slice_p.bind(flat, start_indices=(0,) * (axis + 1), limit_indices=(*lead, size), strides=None)
    return reshape(flat, (*lead, *shape))


def _join64(high, low):
    wide = WORDS[64]
    return or_p.bind(shift_left_p.bind(convert(high, wide), scalar(32, wide)), convert(low, wide))


# --- the primitives ---------------------------------------------------------------------------------------------

def _check_key(name, keys):
    if keys.dtype is not KEY:
        raise TypeError(f"{name} must be given PRNG keys, got {keys.str_short(True)}")


@kept(512)
def _program(name, implementation, avals, params):
    """An operation as a program on words: equal calls in one module share one function.

    It has no lines of its own: which call came first must not show in the text.  64-bit words are on
    whatever the option says, for arrays of 2**32 elements.
    """
    with entering(EVAL), override("jax_enable_x64", True):
        jaxpr = trace_closed(lambda *xs: [implementation(*xs, **dict(params))], avals, name)
    return jaxpr.replace(eqns=[e.replace(source=None, name_stack="") for e in jaxpr.eqns])


def key_primitive(name, implementation, typ):
    """A primitive on keys that is lowered to a call of `implementation`, written on their words."""
    def lower(ctx, eqn, *names):
        avals = tuple(v.aval if not dtypes.is_extended(v.aval.dtype) else words_aval(v.aval) for v in eqn.invars)
        program = _program(name, implementation, avals, tuple(sorted(eqn.params.items())))
        return ctx.call(program, names)[0]

    p = Mapped(name, typ=typ, lower=lower, axes=leading_axes(lambda *avals, shape=(), **_: (0, len(shape))))
    p.jvp = no_tangent_jvp(p)
    return p


def words_aval(keys):
    """The aval of the words of keys."""
    return ShapedArray((*keys.shape, *KEY.physical_shape), U32)


def _split_typ(keys, *, shape):
    _check_key("random_split", keys)
    return ShapedArray((*keys.shape, *shape), KEY)


def _fold_in_typ(keys, data):
    _check_key("random_fold_in", keys)
    if data.dtype != U32 or data.shape != keys.shape:
        raise TypeError(f"random_fold_in: data must be uint32 of the shape of the keys {keys.shape}, got "
                        f"{data.str_short()}")
    return keys


def _bits_typ(keys, *, bit_width, shape):
    _check_key("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), WORDS[bit_width])


random_split_p = key_primitive("random_split", _split, _split_typ)
random_fold_in_p = key_primitive("random_fold_in", _fold_in, _fold_in_typ)
random_bits_p = key_primitive("random_bits", _bits, _bits_typ)


def _wrap_typ(words):
    if words.dtype != U32:
        raise TypeError(f"invalid PRNG key data: its dtype must be uint32, got {words.dtype.name}")
    if words.shape[-1:] != KEY.physical_shape:
        raise TypeError(f"invalid PRNG key data: its shape must end with {KEY.physical_shape}, got {words.shape}")
    return ShapedArray(words.shape[:-1], KEY)


def _unwrap_typ(keys):
    _check_key("random_unwrap", keys)
    return words_aval(keys)


def relabelling(name, typ, own):
    """A primitive that changes the type of the words and does not touch them."""
    p = Mapped(name, typ=typ, lower=lambda ctx, eqn, x: x, axes=leading_axes(lambda x: own))
    p.jvp = no_tangent_jvp(p)
    return p


random_wrap_p = relabelling("random_wrap", _wrap_typ, (1, 0))
random_unwrap_p = relabelling("random_unwrap", _unwrap_typ, (0, 1))
