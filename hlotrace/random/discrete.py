"""Random integers and booleans, shuffles and draws."""
import math

from ..api.composite import composite
from ..core import dtypes
from ..core.avals import aval_of
from ..numpy.indexing.indexing import get
from ..numpy.reductions.sorting import searchsorted
from ..numpy.util import broadcast_to_shape, check_arraylike, shape as shape_of
from ..placement.out_sharding import with_out_sharding
from ..primitives.arrays import elementwise as e
from ..primitives.arrays.cumulative import cumsum_p
from ..primitives.arrays.random import WORDS, random_bits_p
from ..primitives.arrays.reduce import argmax_p
from ..primitives.arrays.shape import broadcast_in_dim, move_axis, reshape
from ..primitives.arrays.slicing import iota_p, slice_along
from ..primitives.arrays.sort import sort, top_k_p
from ..primitives.arrays.transcendental import log
from ..primitives.common import canonical_axis, canonical_shape, np, prod, scalar
from .continuous import float_dtype, gumbel_values, halves, is_high, result_shape, two_scales, uniform_values
from .keys import one_key

__all__ = ["bernoulli", "categorical", "choice", "permutation", "rademacher", "randint"]


# --- integers -------------------------------------------------------------------------------------

def randint(key, shape, minval, maxval, dtype=None, *, out_sharding=None):
    """Uniform integers in [minval, maxval); minval everywhere where the range is empty.

    Args:
        minval: the least value, clipped to what `dtype` can hold.
        maxval: the end; beyond what `dtype` can hold it means that its greatest value can occur.
        dtype: int32, or int64 with 64-bit types on, by default.

    >>> jax.random.randint(jax.random.key(0), (5,), 0, 10)
    Array([9, 0, 2, 3, 1], dtype=int32)
    """
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, "randint")
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype.name}")
    key, shape = one_key("randint", key), result_shape("randint", shape, minval, maxval)
    return with_out_sharding(_randint(key, minval, maxval, shape=shape, dtype=dtype), out_sharding,
                             "random.randint")


def _bound(x, low, high, dtype):
    """`x` within [low, high], Python ints, as `dtype`; and whether it was above all of `dtype`."""
    if not dtypes.is_integer(aval_of(x).dtype):
        x = e.convert(x, dtypes.canonicalize(dtypes.int64))
    info = dtypes.iinfo(aval_of(x).dtype)
    limits = [scalar(min(max(v, int(info.min)), int(info.max)), aval_of(x).dtype) for v in (low, high)]
    beyond = int(info.max) > high == dtypes.iinfo(dtype).max
    above = e.gt(x, limits[1]) if beyond else scalar(False, dtypes.bool_)
    return e.convert(e.clamp_p.bind(limits[0], x, limits[1]), dtype), above


@composite(static=("shape", "dtype"))
def _randint(key, minval, maxval, *, shape, dtype):
    """Two random words for each value, so that the remainder modulo the span is nearly unbiased."""
    info = dtypes.iinfo(dtype)
    small = dtype.itemsize < 4       # the exclusive upper bound of a small type fits in int32
    work = dtypes.int32 if small else dtype
    word = WORDS[work.itemsize * 8]
    minval, _ = _bound(minval, int(info.min), int(info.max), work)
    maxval, above = _bound(maxval, int(info.min), int(info.max) + small, work)
    minval, maxval, above = (broadcast_to_shape(x, shape) for x in (minval, maxval, above))
    span = e.select(e.le(maxval, minval), 1, e.convert(e.sub(maxval, minval), word))
    span = e.select(e.and_p.bind(above, e.gt(maxval, minval)), e.add(span, 1), span)
    high, low = (random_bits_p.bind(k, bit_width=word.itemsize * 8, shape=shape) for k in halves(key))
    half = e.rem_p.bind(broadcast_in_dim(scalar(2 ** (word.itemsize * 4), word), shape, ()), span)
    scale = e.rem_p.bind(e.mul(half, half), span)        # 2 to the number of bits of a word, modulo the span
    offset = e.rem_p.bind(e.add(e.mul(e.rem_p.bind(high, span), scale), e.rem_p.bind(low, span)), span)
    return e.convert(e.add(minval, e.convert(offset, work)), dtype)


def bernoulli(key, p=0.5, shape=None, mode="low", *, out_sharding=None):
    """True with probability `p`.

    Args:
        shape: that of the result, by default that of `p`.
        mode: "high" resolves small probabilities more finely than "low".

    >>> jax.random.bernoulli(jax.random.key(0), jnp.array([0., 0.5, 1.]))
    Array([False, False,  True], dtype=bool)
    >>> jax.random.bernoulli(jax.random.key(1), 0.9, (4,))
    Array([ True,  True,  True,  True], dtype=bool)
    """
    key, high, shape = one_key("bernoulli", key), is_high("bernoulli",
                                                          mode), result_shape("bernoulli", shape, p)
    if not dtypes.is_float(aval_of(p).dtype):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {aval_of(p).dtype.name}")
    return with_out_sharding(_bernoulli(key, p, shape=shape, high=high), out_sharding, "random.bernoulli")


@composite(static=("shape", "high"))
def _bernoulli(key, p, *, shape, high):
    dtype = aval_of(p).dtype
    p = broadcast_to_shape(p, shape)
    if not high:
        return e.lt(uniform_values(key, 0.0, 1.0, shape=shape, dtype=dtype), p)
    coarse, fine = two_scales(key, shape, dtype)
    return e.lt(fine, e.sub(p, coarse))


def rademacher(key, shape=(), dtype=None, *, out_sharding=None):
    """-1 or 1, with equal probability.

    >>> jax.random.rademacher(jax.random.key(0), (5,)), jax.random.rademacher(jax.random.key(0), (2,), float)
    (Array([-1, -1,  1,  1, -1], dtype=int32), Array([-1., -1.], dtype=float32))
    """
    dtype = dtypes.check_user_dtype(int if dtype is None else dtype, "rademacher")
    out = rademacher_values(one_key("rademacher", key), shape=canonical_shape(shape), dtype=dtype)
    return with_out_sharding(out, out_sharding, "random.rademacher")


@composite(static=("shape", "dtype"), name="rademacher")
def rademacher_values(key, *, shape, dtype):
    p = scalar(0.5, dtypes.canonicalize(dtypes.float64))
    signs = dtypes.int32 if dtypes.is_bool(dtype) else dtype        # both are True
    return e.convert(e.sub(e.mul(e.convert(_bernoulli(key, p, shape=shape, high=False), signs), 2), 1), dtype)


# --- shuffles -------------------------------------------------------------------------------------

@composite(static=("axis",))
def _shuffle(key, x, *, axis):
    """Sort by random words, often enough that equal words do not matter."""
    size = prod(shape_of(x))
    for _ in range(math.ceil(3 * math.log(max(1, size)) / math.log(2 ** 32 - 1))):
        key, sub_key = halves(key)
        words = random_bits_p.bind(sub_key, bit_width=32, shape=shape_of(x))
        x = sort(words, x, dimension=axis)[1]
    return x


@composite(static=("n",))
def _shuffled_range(key, *, n):
    dtype = dtypes.canonicalize(dtypes.int64)
    return _shuffle(key, iota_p.bind(dtype=dtype, shape=(n,), dimension=0), axis=0)


def _take(x, indices, axis):
    return get(x, (slice(None),) * axis + (indices,), mode="promise_in_bounds")


def _count(name, what, x):
    """A population given by its size."""
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"{name}: {what} must be an integer or at least 1-dimensional, got "
                        f"{aval.str_short()}")
    return int(x)


def permutation(key, x, axis=0, independent=False, *, out_sharding=None):
    """The array `x` (or `arange(x)`) in random order along `axis`.

    Args:
        x: an array or an int.
        independent: shuffle each vector along the axis for itself, not all in the same way.

    >>> jax.random.permutation(jax.random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    >>> jax.random.permutation(jax.random.key(0), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    key = one_key("permutation", key)
    check_arraylike("permutation", x)
    shape = shape_of(x)
    if not shape:
        shuffled = _shuffled_range(key, n=max(_count("permutation", "x", x), 0))
    else:
        axis = canonical_axis(axis, len(shape))
        shuffled = (_shuffle(key, x, axis=axis) if independent or len(shape) == 1 else
                    _take(x, _shuffled_range(key, n=shape[axis]), axis))
    return with_out_sharding(shuffled, out_sharding, "random.permutation")


# --- draws ----------------------------------------------------------------------------------------

def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None, *, out_sharding=None):
    """Indices along `axis` drawn with probability softmax(logits).

    Args:
        logits: logarithms of probabilities, up to a constant.
        shape: ends with the shape of logits without `axis`; what it has in front are independent draws.
        replace: with False the draws in front differ from each other.
        mode: that of `gumbel`.

    >>> logits = jnp.log(jnp.array([0.1, 0.2, 0.7]))
    >>> draws = jax.random.categorical(jax.random.key(0), logits, shape=(1000,))
    >>> jnp.bincount(draws) // 100
    Array([0, 2, 6], dtype=int32)
    """
    key, high = one_key("categorical", key), is_high("categorical", mode)
    check_arraylike("categorical", logits)
    logits_shape = shape_of(logits)
    axis = canonical_axis(axis, len(logits_shape))
    batch = logits_shape[:axis] + logits_shape[axis + 1:]
    template = broadcast_in_dim(np.bool_(False), batch, ()) if batch else False
    shape = batch if shape is None else result_shape("categorical", shape, template)
    float_dtype("categorical: logits", aval_of(logits).dtype)
    prefix = shape[:len(shape) - len(batch)]
    if not replace and prod(prefix) > logits_shape[axis]:
        raise ValueError(f"Number of samples without replacement ({prod(prefix)}) cannot exceed number of "
                         f"categories ({logits_shape[axis]}).")
    out = _categorical(key, logits, axis=axis, prefix=prefix, shape=shape, replace=replace, high=high)
    return with_out_sharding(out, out_sharding, "random.categorical")


@composite(static=("axis", "prefix", "shape", "replace", "high"))
def _categorical(key, logits, *, axis, prefix, shape, replace, high):
    """The largest of logits plus Gumbel noise is a draw; the k largest are k draws without replacement."""
    dtype, index = aval_of(logits).dtype, dtypes.canonicalize(dtypes.int64)
    noise_shape = (*prefix, *shape_of(logits)) if replace else shape_of(logits)
    noisy = e.add(gumbel_values(key, shape=noise_shape, dtype=dtype, high=high),
                  broadcast_to_shape(logits, noise_shape))
    if replace:
        return argmax_p.bind(noisy, axes=(axis + len(prefix),), index_dtype=index)
    drawn = top_k_p.bind(move_axis(noisy, axis, len(noise_shape) - 1), k=prod(prefix))[1]
    return reshape(move_axis(drawn, len(noise_shape) - 1, 0), shape)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Draws from the entries of `a` along an axis.

    Args:
        a: an array, or an int for arange(a).
        shape: takes the place of the axis.
        replace: an entry may be drawn more than once.
        p: the probabilities, equal by default.
        mode: that of `gumbel`, for draws without replacement.

    >>> jax.random.choice(jax.random.key(0), 5, (3,), replace=False)
    Array([0, 1, 4], dtype=int32)
    >>> jax.random.choice(jax.random.key(0), jnp.array([10, 20]), (4,), p=jnp.array([0.9, 0.1]))
    Array([10, 10, 10, 10], dtype=int32)
    """
    key, high = one_key("choice", key), is_high("choice", mode)
    if isinstance(shape, (int, np.integer)):
        raise TypeError(f"random.choice: shape must be a sequence, as ({shape},), got {shape}")
    shape = canonical_shape(shape)
    check_arraylike("choice", a, *([] if p is None else [p]))
    a_shape, draws = shape_of(a), prod(shape)
    axis = canonical_axis(axis, len(a_shape) or 1)
    size = a_shape[axis] if a_shape else _count("choice", "a", a)
    if draws and size < 1:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > size:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {size}) when "
                         "'replace=False'")
    if p is not None and shape_of(p) != (size,):
        raise ValueError(f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                         f"{shape_of(p)} and a.shape[axis] is {size}.")
    if p is None and not replace and len(a_shape) == 1:
        return _choice_rows(key, a, shape=shape)
    if p is None:
        indices = (_randint(key, 0, size, shape=shape, dtype=dtypes.canonicalize(dtypes.int64)) if replace
                   else _choice_rows(key, None, shape=shape, n=size))
    else:
        indices = _weighted(key, p, shape=shape, replace=replace, high=high)
    return _take(a, indices, axis) if a_shape else indices


@composite(static=("shape", "n"))
def _choice_rows(key, a, *, shape, n=None):
    """The first entries of a shuffle of the vector `a`, or of arange(n)."""
    shuffled = _shuffled_range(key, n=n) if a is None else _shuffle(key, a, axis=0)
    return reshape(slice_along(shuffled, 0, 0, prod(shape)), shape)


@composite(static=("shape", "replace", "high"))
def _weighted(key, p, *, shape, replace, high):
    """Indices drawn with probabilities proportional to p."""
    dtype = aval_of(p).dtype
    if not dtypes.is_float(dtype):
        p, dtype = e.convert(p, dtypes.to_inexact(dtype)), dtypes.to_inexact(dtype)
    if not replace:
        noisy = e.add(gumbel_values(key, shape=shape_of(p), dtype=dtype, high=high), log(p))
        return reshape(e.convert(top_k_p.bind(noisy, k=prod(shape))[1], dtypes.canonicalize(dtypes.int64)),
                       shape)
    total = cumsum_p.bind(p, axis=0, reverse=False)
    n, = shape_of(p)
    last = slice_along(total, 0, n - 1, n)
    uniform = uniform_values(key, 0.0, 1.0, shape=shape, dtype=dtype)
    at = e.mul(broadcast_to_shape(last, shape) if shape else reshape(last, ()), e.sub(1, uniform))
    return e.convert(searchsorted(total, at), dtypes.canonicalize(dtypes.int64))
