"""Bits packed into bytes, and taken out again."""
from ...api.composite import composite
from ...core import dtypes
from ...core.avals import aval_of
from ...lax import shapes as lax
from ...primitives.arrays.elementwise import convert
from ...primitives.common import canonical_axis, np
from ..arrays.creation import asarray
from ..arrays.shaping import moveaxis, ravel
from ..reductions.reductions import sum as sum_
from ..util import check_arraylike, ndim as ndim_of, promotes
from .ufuncs import not_equal

__all__ = ["packbits", "unpackbits"]


def _bit_weights(bitorder):
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    return np.arange(8, dtype=np.uint8)[::-1 if bitorder == "big" else 1]


@composite(static=("axis", "bitorder"))
@promotes()
def packbits(a, axis=None, bitorder="big"):
    """Bits (elements that are not 0) along `axis` packed into bytes, the last one filled up with zeros.

    The result is uint8.

    Args:
        a: an array of integers or bools.
        axis: the axis; None flattens the array.
        bitorder: the first bit of a byte is its highest one for "big", its lowest for "little".
    Raises:
        TypeError: for floats.

    >>> jnp.packbits(jnp.array([1, 0, 1])), jnp.packbits(jnp.array([1, 0, 1]), bitorder="little")
    (Array([160], dtype=uint8), Array([5], dtype=uint8))
    """
    check_arraylike("packbits", a)
    if not (dtypes.is_integer(aval_of(a).dtype) or dtypes.is_bool(aval_of(a).dtype)):
        raise TypeError("packbits: Expected an input array of integer or boolean data type")
    _bit_weights(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), canonical_axis(axis, ndim_of(a)))
    a = moveaxis(a, axis, -1)
    bits = convert(not_equal(a, 0), dtypes.uint8)
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (a.ndim - 1) + [(0, -a.shape[-1] % 8, 0)])
    bits = bits.reshape(*bits.shape[:-1], -(-a.shape[-1] // 8), 8) << _bit_weights(bitorder)
    return moveaxis(sum_(bits, -1, dtype=dtypes.uint8), -1, axis)


@composite(static=("axis", "count", "bitorder"))
@promotes()
def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes along `axis`, as uint8.

    Args:
        a: an array of uint8.
        axis: the axis; None flattens the array.
        count: how many, or all but the last -count.
        bitorder: as in `packbits`.
    Raises:
        TypeError: for another dtype.

    >>> jnp.unpackbits(jnp.uint8(5)), jnp.unpackbits(jnp.uint8([5]), count=3, bitorder="little")
    (Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8), Array([1, 0, 1], dtype=uint8))
    """
    check_arraylike("unpackbits", a)
    if aval_of(a).dtype != dtypes.uint8:
        raise TypeError("unpackbits: Expected an input array of unsigned byte data type, got "
                        f"{aval_of(a).dtype}")
    _bit_weights(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), canonical_axis(axis, ndim_of(a)))
    a = moveaxis(a, axis, -1)
    bits = (a[..., None] >> _bit_weights(bitorder)) & np.uint8(1)
    bits = bits.reshape(*a.shape[:-1], a.shape[-1] * 8)
    if count is not None:
        missing = max(0, count - bits.shape[-1])
        bits = lax.pad(bits[..., :count], np.uint8(0), [(0, 0, 0)] * (a.ndim - 1) + [(0, missing, 0)])
    return moveaxis(bits, -1, axis)
