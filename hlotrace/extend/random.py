"""JAX's `extend.random`: the hash behind keys."""
from .. import numpy as jnp
from ..primitives.random import KEY as threefry_prng_impl
from ..primitives.random import threefry2x32
from ..random.keys import key

__all__ = ["seed_with_impl", "threefry_2x32", "threefry_prng_impl"]


def threefry_2x32(keypair, count):
    """The Threefry-2x32 hash (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) of counters.

    `keypair` are two words, `count` an array of uint32 whose first half is hashed with its second half; the result has its
    shape.  TypeError for other dtypes.
    """
    words, count = [jnp.asarray(w) for w in keypair], jnp.asarray(count)
    if any(x.dtype != "uint32" for x in (*words, count)):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {', '.join(str(x.dtype) for x in (*words, count))}")
    flat = count.ravel()
    if flat.size % 2:
        flat = jnp.concatenate([flat, jnp.zeros(1, "uint32")])
    words = [jnp.broadcast_to(w, flat.size // 2) for w in words]
    return jnp.concatenate(threefry2x32(*words, *jnp.split(flat, 2)))[:count.size].reshape(count.shape)


def seed_with_impl(impl, seed):
    """A typed key of the generator `impl` from an integer."""
    return key(seed, impl=impl)
