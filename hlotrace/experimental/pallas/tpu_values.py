"""What kernels for TPUs compute besides: rolled, packed and random values, as operations of any device."""
import math
import re

import numpy as np

from ... import lax, numpy as jnp, random
from ...core import dtypes
from ...core.avals import ShapedArray, aval_of
from ...numpy.indexing.refs import bits_of_rows, shape_of_rows
from ...runtime.devices import client
from .compiled.tpu_parts import operation
from .grid_blocks import core_of_kernel, place_of
from .parts import when
from .triton import load as _load, store as _store


def load(ref, *, mask=None):
    """The value of a Ref; where a mask does not hold, an element is anything, here 0."""
    return _load(ref, mask=mask)


def store(ref, val, *, mask=None):
    """Write a value to a Ref, where a mask holds."""
    _store(ref, val, mask=mask)


def touch(ref):
    """Have a kernel depend on a Ref; nothing here."""


def trace_value(label, value):
    """Show a value in profiles of a TPU; nothing here."""


def with_memory_space_constraint(x, memory_space):
    """`x`, which a TPU has in this memory."""
    return x


def is_tpu_device():
    """Is the default device a TPU?"""
    return client.default_device().platform == "tpu"


# --- elements in other places ---------------------------------------------------------------------

def roll(x, shift, axis, *, stride=None, stride_axis=None):
    """The elements moved along an axis, those of the end to its begin.

    Args:
        shift: by how many places, not negative; it may be traced.
        axis: not negative.
        stride: slice i along `stride_axis` is moved by `i * stride` places more.
        stride_axis: see `stride`.

    >>> jax.experimental.pallas.tpu.roll(jnp.arange(6).reshape(2, 3), 1, 1, stride=1, stride_axis=0)
    Array([[2, 0, 1],
           [4, 5, 3]], dtype=int32)
    """
    if not 0 <= axis < x.ndim or stride_axis is not None and not 0 <= stride_axis < x.ndim:
        raise ValueError(f"tpu.roll: axes of shape {x.shape} are 0 to {x.ndim - 1}; got axis {axis} and "
                         f"stride_axis {stride_axis}")
    if isinstance(shift, (int, np.integer)) and shift < 0:
        raise ValueError(f"tpu.roll: shift must not be negative, got {shift}: to move left by k, move by "
                         "x.shape[axis] - k")
    if (stride is None) != (stride_axis is None) or stride is not None and (
            stride < 0 or axis == stride_axis):
        raise ValueError("tpu.roll: stride and stride_axis go together, stride is not negative, and the axes "
                         f"differ; got {stride} and {stride_axis}")
    if core_of_kernel() is not None:
        stepped = "" if stride is None else (f", stride = {stride} : si32, stride_dimension = {stride_axis} "
                                             ": si32")
        return operation("dynamic_rotate", x, jnp.asarray(shift, np.int32), out=aval_of(x),
                         attributes=f"dimension = {axis} : si32{stepped}")
    if stride is None:
        return jnp.roll(x, shift, axis)
    shifts = shift + stride * lax.broadcasted_iota(np.int32, x.shape, stride_axis)
    places = (lax.broadcasted_iota(np.int32, x.shape, axis) - shifts) % x.shape[axis]
    return jnp.take_along_axis(x, places, axis)


def bitcast(x, ty):
    """The bits of a matrix as elements of another width: rows next to each other share an element.

    >>> jax.experimental.pallas.tpu.bitcast(jnp.array([[1], [2]], "uint16"), "uint32")
    Array([[131073]], dtype=uint32)
    """
    dtype = dtypes.as_dtype(ty)
    if core_of_kernel() is None:
        return bits_of_rows(x, dtype)
    return operation("bitcast", x, out=ShapedArray(shape_of_rows(x, dtype), dtype))


def einshape(equation, x, assert_is_tile_preserving=False, **sizes):
    """An array with its axes ordered, split and joined: "a(bc)->bac" splits the second one, with `b=` or `c=`
    given.

    >>> jax.experimental.pallas.tpu.einshape("(ab)->ba", jnp.arange(4), a=2)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    if assert_is_tile_preserving:
        raise NotImplementedError("tpu.einshape: assert_is_tile_preserving: arrays have no tiles here")
    sides = [[g.strip("()") for g in re.findall(r"\(\w+\)|\w", side)] for side in equation.split("->")]
    if len(sides) != 2 or sorted("".join(sides[0])) != sorted(set("".join(sides[1]))) or (
            len(sides[0]) != x.ndim):
        raise ValueError(f"tpu.einshape: {equation!r} must name each axis once on both sides, and on the "
                         f"left as many as {x.shape} has")
    for names, size in zip(sides[0], x.shape):
        known = math.prod(sizes[n] for n in names if n in sizes)
        missing = [n for n in names if n not in sizes]
        if len(missing) > 1 or (size % known if missing else size != known):
            raise ValueError(f"tpu.einshape: ({names}) of {equation!r} is {size}, and the sizes given are "
                             f"{sizes}")
        sizes.update(dict.fromkeys(missing, size // known))
    order = "".join(sides[0])
    whole = x.reshape([sizes[n] for n in order]).transpose([order.index(n) for n in "".join(sides[1])])
    return whole.reshape([math.prod(sizes[n] for n in names) for names in sides[1]])


# --- several elements in one ----------------------------------------------------------------------

def pack_elementwise(xs, *, packed_dtype):
    """Arrays of 32-bit elements, converted to `packed_dtype`, several in each uint32, the first in the low
    bits.

    >>> tpu = jax.experimental.pallas.tpu
    >>> packed = tpu.pack_elementwise([jnp.ones(2), 2 * jnp.ones(2)], packed_dtype=jnp.bfloat16)
    >>> tpu.unpack_elementwise(packed, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)
    Array([2., 2.], dtype=float32)
    """
    dtype, bits, count = _packing(packed_dtype)
    if len(xs) != count or any(x.dtype.itemsize != 4 or x.shape != xs[0].shape for x in xs):
        raise ValueError(f"tpu.pack_elementwise: {count} arrays of one shape and of 32-bit elements become "
                         f"{dtype.name}; got {[(x.dtype.name, x.shape) for x in xs]}")
    unsigned = dtypes.as_dtype(f"uint{bits}")
    parts = [lax.bitcast_convert_type(x.astype(dtype), unsigned).astype(np.uint32) for x in xs]
    return sum(part << np.uint32(i * bits) for i, part in enumerate(parts))


def unpack_elementwise(x, *, index, packed_dtype, unpacked_dtype):
    """Number `index` of the arrays that `pack_elementwise` packed, converted to `unpacked_dtype`."""
    dtype, bits, count = _packing(packed_dtype)
    if x.dtype not in (np.uint32, np.int32) or not 0 <= index < count:
        raise ValueError(f"tpu.unpack_elementwise: a uint32 holds {count} of {dtype.name}, and indices are 0 "
                         f"to {count - 1}; got {x.dtype.name} and index {index}")
    part = (lax.bitcast_convert_type(x, np.uint32) >> np.uint32(index * bits)).astype(
        dtypes.as_dtype(f"uint{bits}"))
    return lax.bitcast_convert_type(part, dtype).astype(unpacked_dtype)


def _packing(packed_dtype):
    """(the dtype, its bits, how many are in 32 bits)."""
    dtype = dtypes.as_dtype(packed_dtype)
    bits = dtypes.itemsize_bits(dtype)
    if bits not in (4, 8, 16):
        raise ValueError(f"packed_dtype has 4, 8 or 16 bits, and {dtype.name} has {bits}")
    return dtype, bits, 32 // bits


def stochastic_round(x, random_bits, *, target_dtype):
    """float32 rounded to bfloat16, up or down by chance: `random_bits`, uint32, are added below the last bit
    that is kept.

    >>> jax.experimental.pallas.tpu.stochastic_round(jnp.float32(1.003), jnp.uint32(2**16 - 1),
    ...                                              target_dtype=jnp.bfloat16)
    Array(1.00781, dtype=bfloat16)
    """
    if x.dtype != np.float32 or random_bits.dtype != np.uint32 or dtypes.as_dtype(
            target_dtype) != dtypes.bfloat16:
        raise NotImplementedError(
            f"tpu.stochastic_round of {x.dtype.name} to {np.dtype(target_dtype).name} by "
            f"{random_bits.dtype.name}: float32 is rounded to bfloat16, by uint32")
    bits = lax.bitcast_convert_type(x, np.uint32) + (random_bits & np.uint32(0xFFFF))
    rounded = lax.bitcast_convert_type((bits >> 16).astype(np.uint16), dtypes.bfloat16)
    return jnp.where(jnp.isfinite(x), rounded, x.astype(dtypes.bfloat16))


# --- random bits ----------------------------------------------------------------------------------

def prng_seed(*seeds):
    """Begin a kernel's random bits anew, by whole numbers.  ValueError outside of kernels."""
    if core_of_kernel() is not None:
        operation("prng_set_seed_32", *[jnp.asarray(seed, np.int32) for seed in seeds], in_order=True)
        return
    key = random.key(0, impl="threefry2x32")
    for seed in seeds:
        key = random.fold_in(key, seed)
    place_of("tpu.prng_seed").random_state[...] = random.key_data(key)


def _next_key(function):
    state = place_of(function).random_state
    key, used = random.split(random.wrap_key_data(state[...], impl="threefry2x32"))
    state[...] = random.key_data(key)
    return used


def prng_random_bits(shape):
    """The next random bits of a kernel, int32; others than a TPU has.  ValueError outside of kernels."""
    if core_of_kernel() is not None:
        return operation("prng_random_bits", out=ShapedArray(tuple(shape), "int32"), in_order=True)
    bits = random.bits(_next_key("tpu.prng_random_bits"), shape, np.uint32)
    return lax.bitcast_convert_type(bits, np.int32)


def _bits(shape=()):
    return lax.bitcast_convert_type(prng_random_bits(shape), np.uint32)


def _uniform(shape=(), dtype=np.float32, minval=0.0, maxval=1.0):
    ones = lax.bitcast_convert_type(_bits(shape) >> 9 | np.uint32(0x3F800000), np.float32)     # in [1, 2)
    return (minval + (ones - 1) * (maxval - minval)).astype(dtype)


def _normal(shape=(), dtype=np.float32):
    # Box & Muller, "A note on the generation of random normal deviates" (1958)
    radius, angle = jnp.sqrt(-2 * jnp.log(1 - _uniform(shape))), 2 * np.pi * _uniform(shape)
    return (radius * jnp.cos(angle)).astype(dtype)


# of the random bits that a TPU makes, where a kernel is compiled
_COMPILED = {"bits": _bits, "uniform": _uniform, "normal": _normal,
             "bernoulli": lambda p=0.5, shape=(): _uniform(shape) < p}


def _stateful(name):
    sampler = getattr(random, name)

    def sample(*args, **kwargs):
        if core_of_kernel() is not None:
            return _COMPILED[name](*args, **kwargs)
        return sampler(_next_key(f"tpu.stateful_{name}"), *args, **kwargs)
    sample.__name__ = sample.__qualname__ = f"stateful_{name}"
    sample.__doc__ = (f"`random.{name}` without the key: of the next random bits of a kernel, which "
                      "`prng_seed` begins.\n    ValueError outside of kernels.")
    return sample


stateful_bernoulli, stateful_bits = _stateful("bernoulli"), _stateful("bits")
stateful_normal, stateful_uniform = _stateful("normal"), _stateful("uniform")


def sample_block(sampler_fn, global_key, block_size, tile_size, total_size, block_index=None, **kwargs):
    """The block of a random array that is the same by whatever blocks a kernel computes it.

    Args:
        sampler_fn: a function of a key and a shape, such as `random.uniform`, and of `kwargs`.
        global_key: the key of the whole array; each tile has one of its own, folded from it.
        block_size: the shape of the block.
        total_size: the shape of the array.
        tile_size: a shape that divides that of every block by which the array may be computed.
        block_index: the index of the block, by default the place in the grid.
    Raises:
        ValueError: for sizes that do not divide each other.

    >>> block = partial(jax.experimental.pallas.tpu.sample_block, jax.random.uniform, jax.random.key(0),
    ...                 tile_size=(2, 2), total_size=(4, 4))
    >>> whole = block(block_size=(4, 4), block_index=(0, 0))
    >>> (whole[2:, 2:] == block(block_size=(2, 2), block_index=(1, 1))).all()
    Array(True, dtype=bool)
    """
    if block_index is None:
        block_index = place_of("tpu.sample_block").ids
    sizes = total_size, block_size, tile_size
    if len({len(s) for s in (*sizes, block_index)}) > 1 or any(
            total % block or block % tile for total, block, tile in zip(*sizes)):
        raise ValueError(f"tpu.sample_block: tile_size {tile_size} must divide block_size {block_size}, and "
                         f"that total_size {total_size}, along as many axes as block_index {block_index} has")
    counts = [block // tile for block, tile in zip(block_size, tile_size)]
    found = np.empty(counts, object)
    for place in np.ndindex(*counts):
        number = 0
        for i, count, at, total, tile in zip(place, counts, block_index, total_size, tile_size):
            number = number * (total // tile) + at * count + i
        found[place] = sampler_fn(random.fold_in(global_key, number), tile_size, **kwargs)
    return jnp.block(found.tolist())


def to_pallas_key(key):
    """The key as kernels take it: the same here."""
    return key


# --- cores ----------------------------------------------------------------------------------------

def run_on_first_core(core_axis_name):
    """Decorator: call a function at once, on the first core along an axis."""
    return when(lax.axis_index(core_axis_name) == 0)


def core_barrier(sem, *, core_axis_name):
    """Wait until all cores along an axis are here.  NotImplementedError for more than one core."""
    if lax.axis_size(core_axis_name) > 1:
        raise NotImplementedError("tpu.core_barrier: interpret mode runs one core after another")
