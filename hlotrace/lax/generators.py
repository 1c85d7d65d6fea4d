"""XLA's generators of random numbers, for programs that carry a state themselves; `random` has keys."""
from ..core import dtypes
from ..core.avals import aval_of
from ..placement.out_sharding import with_out_sharding
from ..primitives.arrays.generators import RandomAlgorithm, rng_bit_generator_p, rng_uniform_p
from ..primitives.common import canonical_shape

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p"]


def rng_bit_generator(key, shape, dtype="uint32", algorithm=RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding=None):
    """Random bits from a state.

    Under vmap the first of the states makes the bits of all, as in JAX.

    Args:
        key: the state, uint32[4] or uint64[2].
        dtype: an unsigned dtype.
        algorithm: the default differs between platforms; RNG_PHILOX and RNG_THREE_FRY are those of Salmon et
            al. (2011).
    Returns:
        (the state after it, the bits).
    Raises:
        TypeError: for other dtypes.

    >>> state, philox = jnp.zeros(4, jnp.uint32), lax.RandomAlgorithm.RNG_PHILOX
    >>> after, bits = lax.rng_bit_generator(state, (2,), algorithm=philox)
    >>> bits.shape, bits.dtype
    ((2,), dtype('uint32'))
    """
    aval_of(key)
    if algorithm not in list(RandomAlgorithm):
        raise ValueError("rng_bit_generator: algorithm must be a member of lax.RandomAlgorithm, got "
                         f"{algorithm!r}")
    after, bits = rng_bit_generator_p.bind(
        key, shape=canonical_shape(shape), dtype=dtypes.check_user_dtype(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm))
    return after, with_out_sharding(bits, out_sharding, "lax.rng_bit_generator")


def rng_uniform(a, b, shape):
    """Numbers of `shape`, uniform in [a, b), by a state of the device: not the same at each call.

    Args:
        b: a scalar of the same dtype, which the result has.
    Raises:
        ValueError: where `a` and `b` are not scalars of one dtype.

    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    aval_of(a), aval_of(b)
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))
