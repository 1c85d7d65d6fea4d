"""Pytrees of arrays as one vector, and back (`hlotrace.flatten_util`)."""
from functools import lru_cache
from itertools import accumulate

from ..core import dtypes
from ..core.avals import aval_of, is_arraylike
from ..core.errors import ShapeError
from ..core.pytrees import pytree as tree
from ..core.surface.boundary import filtered
from ..primitives.arrays.elementwise import convert
from .arrays.creation import asarray, zeros
from .arrays.joining import concatenate, split
from .arrays.shaping import ravel
from .util import result_type

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree):
    """(All numbers of a pytree as one vector, the function that makes such a pytree of a vector).

    The vector's dtype is what the leaves promote to, the default float where there are none.  The function
    gives each leaf its shape and dtype back; where all leaves have one dtype, the vector may have another,
    which the leaves then have.  It can be a static argument: functions for trees of the same structure,
    shapes and dtypes are equal.  It raises a ShapeError for a vector of another length, and a TypeError for
    one of another dtype where the leaves have several.

    Raises:
        TypeError: for a leaf that is no array of numbers.

    >>> flat, unravel = jax.flatten_util.ravel_pytree({"w": jnp.ones((2, 2)), "n": jnp.array(3)})
    >>> flat
    Array([3., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(2 * flat)["n"]
    Array(6, dtype=int32)
    """
    leaves, treedef = tree.tree_flatten(pytree)
    for x in leaves:
        if not is_arraylike(x):
            raise TypeError(f"ravel_pytree: a leaf is {x!r:.60} of type {type(x).__name__}, and no array or "
                            "number")
        if dtypes.is_extended(aval_of(x).dtype):
            raise TypeError(f"ravel_pytree: a leaf of dtype {aval_of(x).dtype} is no array of numbers; for "
                            "PRNG keys there is random.key_data")
    alike = len({aval_of(x).dtype for x in leaves}) == 1
    dtype = result_type(*leaves) if leaves else None
    flat = concatenate([ravel(asarray(x, None if alike else dtype)) for x in leaves]) if leaves else zeros(0)
    return flat, _unraveler(treedef, tuple([aval_of(x) for x in leaves]), flat.dtype)


@lru_cache(4096)
def _unraveler(treedef, avals, dtype):
    """The function from a vector of `dtype` to a tree of these types."""
    ends = list(accumulate([a.size for a in avals], initial=0))
    free = all(a.dtype == dtype for a in avals)

    @filtered
    def unravel(flat):
        if flat.shape != (ends[-1],):
            raise ShapeError(f"unravel: expected a vector of {ends[-1]} elements, as ravel_pytree gave it, "
                             f"got shape {flat.shape}")
        if not free and flat.dtype != dtype:
            raise TypeError(f"unravel function given array of dtype {flat.dtype.name}, but expected dtype "
                            f"{dtype.name}, to which the leaves' dtypes promote; convert it with "
                            f".astype({dtype.name!r})")
        parts = [part.reshape(a.shape) for part, a in zip(split(asarray(flat), ends[1:-1]), avals)]
        return treedef.unflatten(parts if free else [convert(part, a.dtype) for part, a in zip(parts, avals)])
    return unravel
