"""Making keys and deriving keys from keys."""
import operator
import warnings

from ..core import dtypes, source
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..core.config import config
from ..numpy.util import cast
from ..primitives.common import canonical_shape, np, scalar
from ..primitives.elementwise import convert, shift_right_logical_p
from ..primitives.random import KEY, U32, pair, random_fold_in_p, random_split_p, random_unwrap_p, random_wrap_p
from ..runtime.array import ArrayImpl, as_array

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]


def _relabel(primitive):
    """Eager wrap and unwrap: the same buffer under another type."""
    def evaluate(x):
        x = as_array(x)
        return ArrayImpl(primitive.typ(x.aval), x._buf, x._committed)
    primitive.evaluate = evaluate


_relabel(random_wrap_p)
_relabel(random_unwrap_p)


def _check_impl(impl):
    if impl in ("rbg", "unsafe_rbg"):
        raise NotImplementedError(f'the PRNG implementation {impl!r} is not supported: hlotrace has "{KEY.impl}"')
    if impl not in (None, KEY, KEY.impl):
        raise ValueError(f'unrecognized PRNG implementation {impl!r}: hlotrace has "{KEY.impl}"')


def is_typed(keys):
    return isinstance(keys, Array) and dtypes.is_extended(keys.dtype)


def typed_keys(keys):
    """Typed keys for keys of either kind.  TypeError for what is not one; `jax_legacy_prng_key` may warn or refuse."""
    if is_typed(keys):
        return keys
    if not is_arraylike(keys):
        raise TypeError(f"unexpected PRNG key type {type(keys)}: make a key with random.key(seed)")
    if config.jax_legacy_prng_key != "allow":
        _legacy(config.jax_legacy_prng_key)
    return random_wrap_p.bind(keys)


def _legacy(level):
    text = ("a key of the old kind, an array of uint32, was given to a random function: make keys with random.key(seed), or "
            "let both kinds be with hlotrace.config.update('jax_legacy_prng_key', 'allow')")
    if level == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=source.user_stacklevel())


def one_key(name, key):
    """The typed form of a single key.  ValueError for an array of keys."""
    typed = typed_keys(key)
    if typed.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {key.shape} != (). Use "
                         "vmap for batching.")
    return typed


def like(keys, template):
    """Typed keys as the user's kind of keys."""
    return keys if is_typed(template) else random_unwrap_p.bind(keys)


def _seed_words(name, seed):
    """The two words of a seed; a NumPy array where the seed is known."""
    if isinstance(seed, int):
        if not -2**63 <= seed < 2**63:
            raise OverflowError(f"{name}: the seed {seed} does not fit in 64 bits")
        seed = np.int64(seed)
    if not is_arraylike(seed):
        raise TypeError(f"{name}: the seed must be an integer, got {seed!r} of type {type(seed)}")
    aval = aval_of(seed)
    if not dtypes.is_integer(aval.dtype) and aval.dtype != dtypes.bool_:
        raise TypeError(f"PRNG key seed must be an integer; got {aval.str_short(True)}")
    if aval.shape:
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != (). Use vmap "
                        "for batching")
    if isinstance(seed, Array):
        high = convert(shift_right_logical_p.bind(seed, scalar(32, aval.dtype)), U32) if aval.dtype.itemsize == 8 else (
            scalar(0, U32))
        return pair(high, convert(seed, U32))
    value = int(seed)
    return np.array([value >> 32 & 0xFFFFFFFF if aval.dtype.itemsize == 8 else 0, value & 0xFFFFFFFF], U32)


def key(seed, *, impl=None, dtype=None):
    """A typed key from an integer seed.  With 64-bit types off, the low 32 bits of the seed count."""
    _check_impl(impl)
    _check_impl(dtype)
    return random_wrap_p.bind(_seed_words("key", seed))


def PRNGKey(seed, *, impl=None):
    """A key of the old kind, uint32[2], from an integer seed.  See `key`."""
    _check_impl(impl)
    typed = random_wrap_p.bind(_seed_words("PRNGKey", seed))
    return typed if config.jax_enable_custom_prng else random_unwrap_p.bind(typed)


def key_data(keys):
    """The words of keys: uint32 of shape (*keys.shape, 2)."""
    return random_unwrap_p.bind(typed_keys(keys))


def wrap_key_data(key_bits_array, *, impl=None, dtype=None):
    """Typed keys of words of shape (..., 2) and dtype uint32."""
    _check_impl(impl)
    _check_impl(dtype)
    if not is_arraylike(key_bits_array):
        raise TypeError(f"invalid PRNG key data: expected an array of uint32, got {key_bits_array!r}")
    return random_wrap_p.bind(key_bits_array)


def key_dtype(impl_spec=None):
    """The dtype of typed keys."""
    _check_impl(impl_spec)
    return KEY


def key_impl(keys):
    """The name of the generator of keys."""
    typed_keys(keys)
    return KEY.impl


def clone(key):
    """The same key, for a second use that is meant."""
    typed_keys(key)
    return key


def split(key, num=2):
    """New keys from one: an array of them of shape (num,), or of the shape `num`."""
    shape = tuple(map(operator.index, num)) if isinstance(num, tuple) else (operator.index(num),)
    return like(random_split_p.bind(one_key("split", key), shape=canonical_shape(shape, "split: num")), key)


def fold_in(key, data):
    """A new key from a key and an integer, such as the number of a step or of a layer."""
    typed = one_key("fold_in", key)
    if isinstance(data, (int, float)):
        data = np.uint32(data)
    if not is_arraylike(data):
        raise TypeError(f"fold_in: data must be an integer, got {data!r} of type {type(data)}")
    if aval_of(data).shape:
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {aval_of(data).shape} != (). Use "
                        "vmap for batching.")
    return like(random_fold_in_p.bind(typed, cast(data, U32)), key)
