"""JAX's `extend.random`: the generators behind keys, and generators of one's own."""
import functools

from .. import numpy as jnp
from ..api.vmap import vmap
from ..core.surface.public import install_getattr as _explain
from ..primitives.arrays.random import (
    KEY as threefry_prng_impl, RBG as rbg_prng_impl, UNSAFE_RBG as unsafe_rbg_prng_impl, KeyDType,
    threefry2x32_p)
from ..random.keys import key

__all__ = ["define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
           "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl"]


def define_prng_impl(*, key_shape, seed, split, random_bits, fold_in, name="<unnamed>", tag="?"):
    """A generator of one's own, as the `impl` of `random.key` and its kin; it is the dtype of its keys.

    Each of the functions takes one key and is one that vmap can map.

    Args:
        key_shape: that of a key, an array of uint32 words.
        seed: seed(seed) makes a key from a scalar integer.
        split: split(key, shape) makes an array of keys of shape (*shape, *key_shape).
        random_bits: random_bits(key, bit_width, shape) makes unsigned integers.
        fold_in: fold_in(key, data) makes a key.
        tag: the dtype is printed `key<tag>`.
    """
    def of_each(fun):
        def mapped(words, *data, **params):
            def rule(words, *data):
                return fun(words, *data, *params.values())
            for _ in range(words.ndim - len(key_shape)):
                rule = vmap(rule, (0, *(0 if x.ndim else None for x in data)))
            return rule(words, *data)
        return mapped
    return KeyDType(name, tag, tuple(key_shape), seed, of_each(split), of_each(random_bits), of_each(fold_in))


def random_seed(seeds, impl):
    """Typed keys of the generator `impl` from integers of any shape."""
    make = functools.partial(key, impl=impl)
    for _ in jnp.shape(seeds):
        make = vmap(make)
    return make(seeds)


def seed_with_impl(impl, seed):
    """A typed key of the generator `impl` from an integer."""
    return key(seed, impl=impl)


def threefry_2x32(keypair, count):
    """The Threefry-2x32 hash of counters (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
    2011).

    Args:
        keypair: two words.
        count: an array of uint32, whose first half is hashed with its second half; the result has its shape.
    Raises:
        TypeError: for other dtypes.
    """
    words, count = [jnp.asarray(w) for w in keypair], jnp.asarray(count)
    if any(x.dtype != "uint32" for x in (*words, count)):
        raise TypeError("threefry_2x32 requires uint32 arguments, got "
                        f"{', '.join(str(x.dtype) for x in (*words, count))}")
    flat = count.ravel()
    if flat.size % 2:
        flat = jnp.concatenate([flat, jnp.zeros(1, "uint32")])
    return jnp.concatenate(threefry2x32_p.bind(*words, *jnp.split(flat, 2)))[:count.size].reshape(count.shape)


_explain(globals())
