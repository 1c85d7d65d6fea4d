"""Making keys and deriving keys from keys."""
import warnings

from ..core import dtypes, errors, source_info
from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..core.config import config, state
from ..core.jaxpr_trace import JaxprTrace
from ..numpy.util import cast
from ..placement.out_sharding import new_array
from ..primitives.arrays.random import (
    GENERATORS, U32, generator, random_clone_p, random_fold_in_p, random_split_p, random_unwrap_p,
    random_wrap_p)
from ..primitives.common import canonical_shape, np
from ..runtime.array_impl import ArrayImpl, as_array
from ..runtime.devices.transfer import move

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
           "wrap_key_data"]


def _relabel(primitive):
    """Eager wrap and unwrap: the same buffer with its sharding as another type; keys are whole on devices."""
    def evaluate(x, **params):
        x = as_array(x)
        spec = getattr(x.sharding, "spec", None)
        if x.aval.explicit:
            aval = JaxprTrace.typed(primitive, [x.aval], params)
        else:
            aval = primitive.abstract_eval(x.aval, **params)
        if len(x.sharding._devices) > 1 and (spec is None or len(spec) > aval.ndim):
            from ..sharding.named import as_named  # keys on one device need none of those modules
            from ..sharding.spec import PartitionSpec
            held = as_named(x.sharding, x.ndim)
            x = move(x, held.with_spec(PartitionSpec(*held.spec[:aval.ndim])), x._committed)
        return ArrayImpl(aval, x._buf, x._committed)
    primitive.impl_rule = evaluate


_relabel(random_wrap_p)
_relabel(random_unwrap_p)
_relabel(random_clone_p)


def _generator(name, impl, dtype=None):
    if impl is not None and dtype is not None:
        raise ValueError(f"Cannot specify both `impl` and `dtype` arguments to random.{name}: they say the "
                         "same")
    return generator(dtype if impl is None else impl)


def is_typed(keys):
    return isinstance(keys, Array) and dtypes.is_extended(keys.dtype)


def typed_keys(keys):
    """Typed keys for keys of either kind; the option `jax_legacy_prng_key` may warn or raise.  TypeError for
    what is no key."""
    if is_typed(keys):
        return keys
    aval = aval_of(keys) if is_arraylike(keys) and type(keys) is not int else None
    impl = generator()
    if aval is None or aval.dtype != U32 or aval.shape[-1:] != impl.physical_shape:
        raise errors.not_a_key(keys, aval, impl.physical_shape)
    if config.jax_legacy_prng_key != "allow":
        _legacy(config.jax_legacy_prng_key)
    return random_wrap_p.bind(keys, impl=impl)


def _legacy(level):
    text = ("a key of the old kind, an array of uint32, was given to a random function: make keys with "
            "random.key(seed), or let both kinds be with hlotrace.config.update('jax_legacy_prng_key', "
            "'allow')")
    if level == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, stacklevel=source_info.user_stacklevel())


def one_key(name, key):
    """The typed form of a single key.  ValueError for an array of keys."""
    typed = typed_keys(key)
    if typed.ndim:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {typed.shape} != "
                         "(). Unpack it, as in k1, k2 = random.split(key), or use vmap for batching.")
    return typed


def like(keys, template):
    """Typed keys as the user's kind of keys."""
    return keys if is_typed(template) else random_unwrap_p.bind(keys)


def _seed(name, seed):
    """A seed as an array."""
    if isinstance(seed, int):
        if not -2**63 <= seed < 2**63:
            raise OverflowError(f"{name}: the seed {seed} does not fit in 64 bits")
        seed = np.int64(seed)
    if not is_arraylike(seed):
        raise TypeError(f"{name}: the seed must be an integer, got {seed!r:.60} of type {type(seed)}, as in "
                        f"random.{name}(0)")
    aval = aval_of(seed)
    if not dtypes.is_integer(aval.dtype) and aval.dtype != dtypes.bool_:
        raise TypeError(f"PRNG key seed must be an integer; got {aval.str_short()}: use int(...) or "
                        ".astype(int)")
    if aval.shape:
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != (). "
                        "Use vmap for batching")
    offset = config.jax_random_seed_offset
    return seed + np.int64(offset) if offset else seed


def _seeded(name, seed, impl):
    words = impl.seed(_seed(name, seed))
    if state.mesh_to_run_on is not None and not state.trace.staging and not isinstance(words, Array):
        words = new_array(words, aval=aval_of(words), given=True)
    return random_wrap_p.bind(words, impl=impl)


def key(seed, *, impl=None, dtype=None):
    """A typed key from an integer seed.

    Args:
        seed: an integer; with 64-bit types off, its low 32 bits count.
        impl: the generator: "threefry2x32", "rbg", "unsafe_rbg", the dtype of a key; None is the option
            jax_default_prng_impl.
        dtype: another name of `impl`.

    >>> key = jax.random.key(7)
    >>> key.dtype, key.shape, jax.random.key(7, impl="rbg").dtype
    (key<fry>, (), key<rbg>)
    """
    return _seeded("key", seed, _generator("key", impl, dtype))


def PRNGKey(seed, *, impl=None):
    """A key of the old kind, an array of uint32, from an integer seed.  See `key`.

    Functions take it for a key of the option jax_default_prng_impl.

    >>> jax.random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    typed = _seeded("PRNGKey", seed, generator(impl))
    return typed if config.jax_enable_custom_prng else random_unwrap_p.bind(typed)


def key_data(keys):
    """The words of keys: uint32 of shape (*keys.shape, 2), for keys of XLA's generators (*keys.shape, 4).

    >>> jax.random.key_data(jax.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return random_unwrap_p.bind(typed_keys(keys))


def wrap_key_data(key_bits_array, *, impl=None, dtype=None):
    """Typed keys of their words, as `key_data` gives them; `impl` and `dtype` as in `key`.

    >>> jax.random.wrap_key_data(jnp.array([0, 7], jnp.uint32)) == jax.random.key(7)
    Array(True, dtype=bool)
    """
    impl = _generator("wrap_key_data", impl, dtype)
    if not is_arraylike(key_bits_array):
        raise TypeError("JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and "
                        f"dtype attributes. Got {key_bits_array!r:.80}")
    return random_wrap_p.bind(key_bits_array, impl=impl)


def key_dtype(impl_spec=None):
    """The dtype of typed keys of a generator.

    >>> jax.random.key_dtype(), jax.random.key_dtype("rbg")
    (key<fry>, key<rbg>)
    """
    return generator(impl_spec)


def key_impl(keys):
    """The name of the generator of keys, or what define_prng_impl gave.

    >>> jax.random.key_impl(jax.random.key(7))
    'threefry2x32'
    """
    impl = typed_keys(keys).dtype
    return impl.impl if impl in GENERATORS else impl


def clone(key):
    """The same key, for a second use that is meant: see the option jax_debug_key_reuse.

    >>> with jax.debug_key_reuse():
    ...     key = jax.random.key(0)
    ...     x, y = jax.random.normal(key), jax.random.normal(jax.random.clone(key))
    >>> x == y
    Array(True, dtype=bool)
    """
    return like(random_clone_p.bind(typed_keys(key)), key)


def split(key, num=2):
    """New keys from one: an array of them of shape (num,), or of the shape `num`.

    A key makes the same numbers each time: give each use one of its own.

    >>> key, at_once = jax.random.split(jax.random.key(0))
    >>> jax.random.normal(at_once) != jax.random.normal(key), jax.random.split(key, (2, 3)).shape
    (Array(True, dtype=bool), (2, 3))
    """
    shape = canonical_shape(num if isinstance(num, tuple) else (num,), "split: num")
    return like(random_split_p.bind(one_key("split", key), shape=shape), key)


def fold_in(key, data):
    """A new key from a key and an integer, such as the number of a step or of a layer.

    >>> key = jax.random.key(0)
    >>> noise = [jax.random.normal(jax.random.fold_in(key, step)) for step in range(2)]
    >>> noise[0] != noise[1]
    Array(True, dtype=bool)
    """
    typed = one_key("fold_in", key)
    if isinstance(data, (int, float)):
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: data must be from 0 to {2**32 - 1}, the numbers of uint32, got "
                                f"{data}: take it modulo 2**32")
        data = np.uint32(data)
    if not is_arraylike(data):
        raise TypeError(f"fold_in: data must be an integer, got {data!r:.60} of type {type(data)}: number "
                        "the names, or use a hash that is the same in every process, such as "
                        "zlib.crc32(name.encode())")
    if aval_of(data).shape:
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {aval_of(data).shape} != "
                        "(). Use vmap for batching.")
    return like(random_fold_in_p.bind(typed, cast(data, U32)), key)
