"""PRNG keys: their dtypes, the generators, and the primitives on keys (split, fold_in, bits, wrap, unwrap).

The generators are the hash threefry2x32 and two of XLA's bits (`generators.py`).  The hash is the 20-round
Threefry-2x32 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
Every primitive takes keys of any shape and treats each key alone, so the axes of its operands are left alone.
"""

from ...core.array import Array
from ...core.axes import AxisMap, AxisRule, leading_axes
from ...core.caches import cached
from ...core.config import config, override
from ...core.programs import trace_closed
from ...core.symbolic.dimension import surely
from ...core.trace import EVAL, entering
from ..common import ShapedArray, aval_of, dtypes, no_tangent_jvp, np, prod, scalar, shape_of
from . import elementwise as e
from .elementwise_rules import ELEMENTWISE, elementwise_shape
from .generators import RandomAlgorithm, rng_bit_generator_p
from .shape import Mapped, broadcast_axis, broadcast_in_dim, full, move_axis, reshape, squeeze_p
from .slicing import concatenate_p, iota_p, slice_along, slice_p

U32 = dtypes.uint32
WORDS = {8: dtypes.uint8, 16: dtypes.uint16, 32: U32, 64: dtypes.uint64}


class KeyDType(dtypes.ExtendedDType):
    """The dtype of the keys of a generator, which it also is: functions of the words of keys of any shape.

    A key is an array of 32-bit words of shape `physical_shape`.  seed(seed) makes the words of one,
    split(words, shape=) and fold_in(words, data) those of others, random_bits(words, bit_width=, shape=)
    makes random words.
    """
    physical_dtype = U32
    type = dtypes.prng_key
    key_shape = property(lambda self: self.physical_shape)
    tag = property(lambda self: self.name[4:-1])

    def __init__(self, impl, tag, key_shape, seed, split, random_bits, fold_in):
        self.impl, self.name, self.physical_shape = impl, f"key<{tag}>", key_shape
        self.seed, self.split, self.random_bits, self.fold_in = seed, split, random_bits, fold_in

    def __eq__(self, other):
        return self is other or isinstance(other, KeyDType) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.impl)

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return generator, (self.impl,)


# --- the hash, on arrays of words -----------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _rotate(x, by):
    return e.or_p.bind(e.shift_left_p.bind(x, scalar(by, U32)),
                       e.shift_right_logical_p.bind(x, scalar(32 - by, U32)))


def threefry2x32(k0, k1, x0, x1):
    """The two output words for key words and counter words; uint32 arrays of one shape."""
    schedule = (k0, k1, e.xor_p.bind(e.xor_p.bind(k0, k1), scalar(0x1BD11BDA, U32)))
    x0, x1 = e.add(x0, k0), e.add(x1, k1)
    for group in range(5):
        for by in _ROTATIONS[group % 2]:
            x0 = e.add(x0, x1)
            x1 = e.xor_p.bind(x0, _rotate(x1, by))
        x0 = e.add(x0, schedule[(group + 1) % 3])
        x1 = e.add(x1, e.add(schedule[(group + 2) % 3], group + 1))
    return x0, x1


def last_axis(x, i):
    """`x[..., i]`."""
    return squeeze_p.bind(slice_along(x, -1, i, i + 1), dimensions=(len(shape_of(x)) - 1,))


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
    wide = surely(prod(shape), low=2 ** 32)
    dtype = dtypes.uint64 if wide else U32
    total, stride = broadcast_in_dim(scalar(0, dtype), shape, ()), 1
    for axis in reversed(range(len(shape))):
        if not surely(shape[axis], high=1):
            place = iota_p.bind(dtype=dtype, shape=shape, dimension=axis)
            total = e.add(total, e.mul(place, stride))
        stride *= shape[axis]
    if wide:
        high = e.convert(e.shift_right_logical_p.bind(total, scalar(32, dtype)), U32)
        low = e.convert(total, U32)
    else:
        high, low = broadcast_in_dim(scalar(0, U32), shape, ()), total
    axes = tuple(range(len(lead), len(lead) + len(shape)))
    return [broadcast_in_dim(x, (*lead, *shape), axes) for x in (high, low)]


def _flat_hash(words, n):
    """`n` words from counting 0, 1, ... through each key, as for `jax_threefry_partitionable=False`."""
    lead, half = shape_of(words)[:-1], (n + 1) // 2
    shape = (*lead, half)
    low = iota_p.bind(dtype=U32, shape=shape, dimension=len(lead))
    high = e.add(low, half)
    if n % 2:       # an odd count is filled up with a zero
        high = concatenate_p.bind(slice_along(high, -1, 0, half - 1),
                                  broadcast_in_dim(scalar(0, U32), (*lead, 1), ()), dimension=len(lead))
    out = concatenate_p.bind(*_hash(words, low, high), dimension=len(lead))
    return slice_along(out, -1, 0, n)


def _split(words, *, shape):
    lead = shape_of(words)[:-1]
    if not config.jax_threefry_partitionable:
        return reshape(_flat_hash(words, 2 * prod(shape)), (*lead, *shape, 2))
    return pair(*_hash(words, *_counters(lead, shape)))


def _fold_in(words, data):
    data = broadcast_in_dim(data, shape_of(words)[:-1], range(len(shape_of(data))))
    return pair(*_hash(words, full(shape_of(data), 0, U32), data))


def _bits(words, *, bit_width, shape):
    lead = shape_of(words)[:-1]
    if config.jax_threefry_partitionable:
        x0, x1 = _hash(words, *_counters(lead, shape))
        return _join64(x0, x1) if bit_width == 64 else e.convert(e.xor_p.bind(x0, x1), WORDS[bit_width])
    size = prod(shape)
    count = -(-size * bit_width // 32)
    flat = _flat_hash(words, count)
    axis = len(lead)
    if bit_width == 64:
        flat = _join64(*(slice_along(flat, -1, lo, lo + size) for lo in (0, size)))
    elif bit_width < 32:
        parts = [e.shift_right_logical_p.bind(flat, scalar(at, U32)) for at in range(0, 32, bit_width)]
        rows = [broadcast_axis(e.and_p.bind(p, scalar(2 ** bit_width - 1, U32)), 1, axis + 1) for p in parts]
        flat = e.convert(reshape(concatenate_p.bind(*rows, dimension=axis + 1), (*lead, count * len(rows))),
                         WORDS[bit_width])
        flat = slice_along(flat, -1, 0, size)
    return reshape(flat, (*lead, *shape))


def _join64(high, low):
    wide = WORDS[64]
    return e.or_p.bind(e.shift_left_p.bind(e.convert(high, wide), scalar(32, wide)), e.convert(low, wide))


def _threefry_seed(seed):
    """A key of the 64 bits of a seed: a NumPy array where that is a number."""
    wide = aval_of(seed).dtype.itemsize == 8
    if not isinstance(seed, Array):
        return np.array([int(seed) >> 32 & 0xFFFFFFFF if wide else 0, int(seed) & 0xFFFFFFFF], U32)
    if not wide:
        return pair(scalar(0, U32), e.convert(seed, U32))
    high = e.convert(e.shift_right_logical_p.bind(seed, scalar(32, seed.dtype)), U32)
    return pair(high, e.convert(seed, U32))


# --- the generators of XLA's bits -----------------------------------------------------------------
#
# Their keys are four words, those of XLA's state.  "rbg" derives keys with the hash, from two halves that are
# keys of it; "unsafe_rbg" with bits.  As under vmap in JAX, the first key of an array makes the bits for all.

def _rbg_seed(seed):
    words = _threefry_seed(seed)
    if isinstance(words, np.ndarray):
        return np.tile(words, 2)
    return concatenate_p.bind(words, words, dimension=0)


def _halves(words):
    return reshape(words, (*shape_of(words)[:-1], 2, 2))


def _rbg_split(words, *, shape):
    lead = len(shape_of(words)) - 1
    both = _split(_halves(words), shape=shape)      # (*keys, half, *shape, word)
    both = move_axis(both, lead, lead + len(shape))
    return reshape(both, (*shape_of(both)[:-2], 4))


def _rbg_fold_in(words, data):
    data = broadcast_in_dim(data, (*shape_of(words)[:-1], 2), range(len(shape_of(data))))
    return reshape(_fold_in(_halves(words), data), shape_of(words))


def _rbg_bits(words, *, bit_width, shape):
    lead = shape_of(words)[:-1]
    if 0 in lead:
        return full((*lead, *shape), 0, WORDS[bit_width])
    first = slice_p.bind(words, start_indices=(0,) * (len(lead) + 1), limit_indices=(*(1,) * len(lead), 4),
                         strides=None)
    return rng_bit_generator_p.bind(reshape(first, (4,)), shape=(*lead, *shape), dtype=WORDS[bit_width],
                                    algorithm=RandomAlgorithm.RNG_DEFAULT)[1]


_APART = 10      # of so many keys made from bits one is used


def _unsafe_split(words, *, shape):
    lead = shape_of(words)[:-1]
    rows = _rbg_bits(words, bit_width=32, shape=(_APART * prod(shape), 4))
    rank = len(lead) + 2
    rows = slice_p.bind(rows, start_indices=(0,) * rank, limit_indices=shape_of(rows),
                        strides=(*(1,) * len(lead), _APART, 1))
    return reshape(rows, (*lead, *shape, 4))


def _unsafe_fold_in(words, data):
    lead = shape_of(data)
    key = pair(full(shape_of(data), 0, U32), data)
    rows = _rbg_bits(concatenate_p.bind(key, key, dimension=len(lead)), bit_width=32, shape=(_APART, 4))
    last = slice_p.bind(rows, start_indices=(*(0,) * len(lead), _APART - 1, 0), limit_indices=shape_of(rows),
                        strides=None)
    axes = (*range(len(lead)), len(shape_of(words)) - 1)
    return e.xor_p.bind(words, broadcast_in_dim(reshape(last, (*lead, 4)), shape_of(words), axes))


KEY = KeyDType("threefry2x32", "fry", (2,), _threefry_seed, _split, _bits, _fold_in)
RBG = KeyDType("rbg", "rbg", (4,), _rbg_seed, _rbg_split, _rbg_bits, _rbg_fold_in)
UNSAFE_RBG = KeyDType("unsafe_rbg", "urbg", (4,), _rbg_seed, _unsafe_split, _rbg_bits, _unsafe_fold_in)
GENERATORS = KEY, RBG, UNSAFE_RBG


def generator(impl=None):
    """The generator of a name, or of the dtype of its keys; for None that of jax_default_prng_impl."""
    if isinstance(impl, KeyDType):
        return impl
    if impl is not None and not isinstance(impl, str):
        raise TypeError(f"{impl!r:.80} of type {type(impl)} is no PRNG implementation: give a name, as "
                        "'rbg', or the dtype of a key")
    for each in GENERATORS:
        if each.impl == (impl or config.jax_default_prng_impl):
            return each
    raise ValueError(f'unrecognized PRNG implementation "{impl}": ' "hlotrace has 'threefry2x32', 'rbg' and "
                     "'unsafe_rbg'")


# --- the primitives -------------------------------------------------------------------------------

@cached(512)
def _program(name, implementation, dtype, avals, params):
    """An operation as a program on words: equal calls in one module share one function.

    It has no lines of its own: which call came first must not show in the text.  64-bit words are on
    whatever the option says, for arrays of 2**32 elements.
    """
    with entering(EVAL), override("jax_enable_x64", True), override("jax_disable_jit", False):
        jaxpr = trace_closed(lambda *xs: [implementation(dtype, *xs, **dict(params))], avals, name)
    return jaxpr.replace(eqns=[eqn.replace(source=None, name_stack="") for eqn in jaxpr.eqns])


_EACH_KEY = leading_axes(lambda *avals, shape=(), **_: (0, len(shape)))


def key_primitive(name, implementation, abstract_eval, axes=_EACH_KEY):
    """A primitive on keys that is lowered to a call of `implementation(dtype of the keys, words, ...)`."""
    def checked(keys, *avals, **params):
        if not isinstance(keys.dtype, KeyDType):
            raise TypeError(f"{name} must be given PRNG keys, got {keys.str_short(True)}")
        return abstract_eval(keys, *avals, **params)

    def lower(ctx, eqn, *names):
        keys, *rest = (v.aval for v in eqn.invars)
        program = _program(name, implementation, keys.dtype, (words_aval(keys), *rest),
                           tuple(sorted(eqn.params.items())))
        made, out = ctx.call(program, names)[0], eqn.outvars[0].aval
        if ctx.platform.on_host and isinstance(out.dtype, KeyDType):
            # else XLA hashes the key again wherever a word made from it is used, in seconds of compiling
            made = ctx.emit(f"stablehlo.optimization_barrier {made} : {words_aval(out).mlir}")
        return made

    p = Mapped(name, abstract_eval=checked, lower=lower, axes=axes)
    p.jvp = no_tangent_jvp(p)
    return p


def words_aval(keys):
    """The aval of the words of keys."""
    return ShapedArray((*keys.shape, *keys.dtype.physical_shape), U32)


def _fold_in_abstract_eval(keys, data):
    if data.dtype != U32 or data.shape not in (keys.shape, ()):
        raise TypeError(f"random_fold_in: data must be uint32 of the shape of the keys {keys.shape} or a "
                        f"scalar, got {data.str_short()}")
    return keys


def _fold_in_axes(keys, data):
    lead = tuple(range(keys.ndim))
    return AxisMap((lead, lead[:data.ndim]), lead)


random_split_p = key_primitive(
    "random_split", lambda dtype, words, **params: dtype.split(words, **params),
    lambda keys, *, shape: ShapedArray((*keys.shape, *shape), keys.dtype))
random_fold_in_p = key_primitive(
    "random_fold_in", lambda dtype, *xs: dtype.fold_in(*xs), _fold_in_abstract_eval,
    AxisRule(_fold_in_axes, scalars=lambda n: (1,)))
random_bits_p = key_primitive(
    "random_bits", lambda dtype, words, **params: dtype.random_bits(words, **params),
    lambda keys, *, bit_width, shape: ShapedArray((*keys.shape, *shape), WORDS[bit_width]))


def _wrap_abstract_eval(words, *, impl):
    shape = impl.physical_shape
    if words.dtype != U32:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got "
                        f"dtype={words.dtype.name}")
    if words.shape[-len(shape):] != shape:
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data.shape to end with "
                        f"{shape}; got shape={words.shape} for impl={impl.impl}")
    return ShapedArray(words.shape[:-len(shape)], impl)


def _of_keys(name, result):
    def abstract_eval(keys):
        if not isinstance(keys.dtype, KeyDType):
            raise TypeError(f"{name} must be given PRNG keys, got {keys.str_short(True)}")
        return result(keys)
    return abstract_eval


def relabelling(name, abstract_eval, own):
    """A primitive that changes the type of the words and does not touch them."""
    p = Mapped(name, abstract_eval=abstract_eval, lower=lambda ctx, eqn, x: x,
               axes=leading_axes(lambda x, **_: own))
    p.jvp = no_tangent_jvp(p)
    return p


random_wrap_p = relabelling("random_wrap", _wrap_abstract_eval, (1, 0))
random_wrap_p.shown = lambda eqn: {"impl": eqn.outvars[0].aval.dtype.tag}
random_unwrap_p = relabelling("random_unwrap", _of_keys("random_unwrap", words_aval), (0, 1))
random_clone_p = relabelling("random_clone", _of_keys("random_clone", lambda keys: keys), (0, 0))


def _threefry_abstract_eval(*avals):
    if any(a.dtype != U32 for a in avals):
        raise TypeError("Arguments to threefry2x32 must have uint32 type, got "
                        f"{', '.join(a.str_short() for a in avals)}")
    return [ShapedArray(elementwise_shape("threefry2x32", avals), U32)] * 2


def _threefry_lower(ctx, eqn, *names):
    shape = eqn.outvars[0].aval.shape
    def whole(*xs):
        return threefry2x32(*[x if shape_of(x) else broadcast_in_dim(x, shape, ()) for x in xs])
    return ctx.lower_fun(whole, eqn, *names)


threefry2x32_p = Mapped("threefry2x32", multiple_results=True, abstract_eval=_threefry_abstract_eval,
                        lower=_threefry_lower, axes=ELEMENTWISE)
threefry2x32_p.jvp = no_tangent_jvp(threefry2x32_p)
