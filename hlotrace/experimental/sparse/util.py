"""Functions mapped over leading axes of size 1 or n, and what is known of a sparse array."""
from typing import NamedTuple

from ... import numpy as jnp
from ...api.vmap import vmap
from ...core.surface.public import export_names
from .sparse_array import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning

__all__ = ["CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseInfo",
           "broadcasting_vmap", "nfold_vmap"]


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and what is known of its indices."""
    shape: tuple
    indices_sorted: bool = False
    unique_indices: bool = False


def broadcasting_vmap(fun, in_axes=0, out_axes=0):
    """`fun` mapped as by vmap, where mapped axes of size 1 fit to others.

    Raises:
        ValueError: for mapped axes of other sizes.

    >>> from hlotrace.experimental.sparse.util import broadcasting_vmap
    >>> broadcasting_vmap(jnp.dot)(jnp.ones((1, 3)), jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    def mapped(*args):
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        sizes = {jnp.shape(x)[axis] for x, axis in zip(args, axes) if axis is not None}
        if len(sizes - {1}) > 1:
            raise ValueError("broadcasting_vmap: mismatched input shapes: the mapped axes have sizes "
                             f"{sorted(sizes)}, and only those of size 1 are broadcast")
        if len(sizes) == 2:
            for i, axis in enumerate(axes):
                if axis is not None and jnp.shape(args[i])[axis] == 1:
                    args, axes[i] = (*args[:i], jnp.squeeze(args[i], axis), *args[i + 1:]), None
        return vmap(fun, tuple(axes), out_axes)(*args)
    return mapped


def nfold_vmap(fun, N, *, broadcasted=True, in_axes=0):
    """`fun` mapped over N leading axes, by `broadcasting_vmap` or by vmap.

    >>> from hlotrace.experimental.sparse.util import nfold_vmap
    >>> nfold_vmap(jnp.dot, 2)(jnp.ones((2, 1, 3)), jnp.ones((2, 4, 3))).shape
    (2, 4)
    """
    for _ in range(N):
        fun = (broadcasting_vmap if broadcasted else vmap)(fun, in_axes=in_axes)
    return fun


export_names(globals())
