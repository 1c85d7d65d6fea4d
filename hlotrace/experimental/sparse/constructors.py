"""Sparse arrays that are made of a shape: zeros, ones along a diagonal, random numbers."""
import math
import operator

from ... import numpy as jnp, random
from ...core import dtypes
from ...core.errors import check_choice
from .bcoo import BCOO
from .bcsr import BCSR
from .coo import COO, CSC, CSR

_FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name):
    check_choice("sparse_format", name, _FORMATS)
    return _FORMATS[name]


def empty(shape, dtype=None, index_dtype="int32", sparse_format="bcoo", **kwds):
    """A sparse array of zeros.

    Args:
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        kwds: of "bcoo" and "bcsr", `n_batch`, `n_dense` and `nse`, how many elements are stored as padding.

    >>> sparse.empty((2, 3), nse=1).indices
    Array([[2, 3]], dtype=int32)
    """
    return _format(sparse_format)._empty(tuple(map(operator.index, shape)), dtype=dtype,
                                         index_dtype=index_dtype, **kwds)


def eye(N, M=None, k=0, dtype=None, index_dtype="int32", sparse_format="bcoo", **kwds):
    """A sparse matrix with ones along the k-th diagonal.

    Args:
        M: the number of columns, N by default.
        k: which diagonal, above the main one for k > 0.
        sparse_format: as in `empty`.
        kwds: as in `empty`.

    >>> sparse.eye(2, 3, k=1).indices
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    N, M, k = operator.index(N), operator.index(N if M is None else M), operator.index(k)
    return _format(sparse_format)._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)


def random_bcoo(key, shape, *, dtype=jnp.float64, indices_dtype=None, nse=0.2, n_batch=0, n_dense=0,
                unique_indices=True, sorted_indices=False, generator=random.uniform, **kwds):
    """A BCOO of random numbers at random places.

    Args:
        nse: how many elements are stored for each of the batch, or, below 1, which part of all.
        unique_indices: places are drawn without replacement.
        generator: `generator(key, shape=, dtype=, **kwds)` makes the numbers.

    >>> sparse.random_bcoo(jax.random.key(0), (4, 5), nse=0.5)
    BCOO(float32[4, 5], nse=10)
    """
    shape = tuple(map(operator.index, shape))
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={shape}")
    batch, sparse, dense = shape[:n_batch], shape[n_batch:n_batch + n_sparse], shape[n_batch + n_sparse:]
    size = math.prod(sparse)
    if not 0 <= nse < 1 and not 0 <= nse <= size or nse != int(nse) and nse >= 1:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    nse = math.ceil(nse * size) if 0 < nse < 1 else int(nse)
    key_numbers, *keys = random.split(key, math.prod(batch) + 1)
    dtype = dtypes.canonicalize(dtype)
    data = generator(key_numbers, shape=(*batch, nse, *dense), dtype=dtype, **kwds)

    def places(key):
        if not sparse:
            return jnp.zeros((nse, 0), int)
        flat = random.choice(key, size, (nse,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), -1)
    indices = jnp.stack([places(key) for key in keys]) if keys else jnp.zeros((0, nse, n_sparse), int)
    indices = indices.reshape(*batch, nse, n_sparse).astype(dtypes.canonicalize(indices_dtype or int))
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat
