"""BCSR, batched compressed rows: a BCOO with column indices and, for each row, where its elements begin.

Operations are those of the BCOO.  Padding has the number of columns as its index, after the last row's end.
"""

import numpy as np

from ... import numpy as jnp
from ...core import dtypes
from ...core.pytrees.pytree import register_pytree_node_class
from .bcoo import BCOO, bcoo_fromdense, bcoo_sum_duplicates, bcoo_todense, gathered
from .bcoo_products import bcoo_dot_general
from .bcoo_shapes import bcoo_broadcast_in_dim, bcoo_concatenate
from .sparse_array import JAXSparse, batched, described, refuse

__all__ = ["BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
           "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense"]


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array by compressed rows: `BCSR((data, indices, indptr), shape=)`.

    There are two sparse axes.  `data` is [*batch, nse, *dense], `indices` ints [*batch, nse], of columns, and
    `indptr` ints [*batch, rows + 1], where each row's elements begin.

    Raises:
        ValueError: for arrays that do not fit to each other or to the shape.

    >>> mat = sparse.BCSR.fromdense(jnp.array([[0., 1.], [2., 3.]]))
    >>> mat.indptr, mat @ jnp.array([1., 10.])
    (Array([0, 1, 3], dtype=int32), Array([10., 32.], dtype=float32))
    """
    _arrays = "data", "indices", "indptr"
    _flags = "indices_sorted", "unique_indices"

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        if not all(dtypes.is_integer(x.dtype) for x in (self.indices, self.indptr)):
            raise TypeError(f"BCSR: indices and indptr must be integers, got {self.indices.dtype.name} and "
                            f"{self.indptr.dtype.name}")
        n = self.n_batch
        if self.indptr.ndim != n + 1 or len(self.shape) != n + 2 + self.n_dense:
            raise ValueError(f"BCSR: data of shape {self.data.shape}, indices of shape {self.indices.shape} "
                             f"and indptr of shape {self.indptr.shape} do not make an array of shape "
                             f"{self.shape}: it has two sparse axes")
        if self.indptr.shape[-1] != self.shape[n] + 1:
            raise ValueError(f"indptr shape must match the matrix shape plus 1: {self.indptr.shape[-1]} for "
                             f"{self.shape[n]} rows")
        if self.data.shape[n:] != (self.nse, *self.shape[n + 2:]):
            raise ValueError(f"Invalid data.shape={self.data.shape} for nse={self.nse}, n_batch={n} and "
                             f"shape {self.shape}")

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    nse = property(lambda self: self.indices.shape[-1], doc="The number of stored elements.")
    _sparse_shape = property(lambda self: self.shape[self.n_batch:self.n_batch + 2])

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
        """`bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, arr):
        """The BCSR of a BCOO with two sparse axes, whose elements are sorted first."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: n_sparse must be 2, got {arr.n_sparse}")
        arr = arr if arr.indices_sorted else arr.sort_indices()
        rows = arr.shape[arr.n_batch]

        def starts(indices):
            counts = jnp.zeros(rows, indices.dtype).at[indices[:, 0]].add(1, mode="drop")
            return jnp.concatenate([jnp.zeros(1, indices.dtype), jnp.cumsum(counts).astype(indices.dtype)])
        return cls((arr.data, arr.indices[..., 1], batched(starts, arr.n_batch)(arr.indices)),
                   shape=arr.shape)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
        """The matrix that one of SciPy's sparse matrices or arrays is."""
        if n_dense or n_batch:
            raise NotImplementedError(f"BCSR.from_scipy_sparse: n_dense={n_dense}, n_batch={n_batch}: only 0 "
                                      "of both")
        mat, dtype = mat.tocsr(), index_dtype or dtypes.canonicalize(np.int32)
        return cls((jnp.asarray(mat.data), *(jnp.asarray(x, dtype) for x in (mat.indices, mat.indptr))),
                   shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, n_dense=n_dense,
                                         n_batch=n_batch, nse=nse))

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
        return cls.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, n_batch=n_batch,
                                       n_dense=n_dense))

    def to_bcoo(self):
        """The same array as a BCOO."""
        rows, cols = self._sparse_shape
        pairs = batched(lambda indices, indptr: jnp.stack(coordinates(indices, indptr, rows), -1),
                        self.n_batch)
        return BCOO((self.data, pairs(self.indices, self.indptr)), shape=self.shape)

    def todense(self):
        """The array with all its numbers."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse=None, remove_zeros=True):
        """The BCSR with elements at the same place added; with `remove_zeros` without those that are 0."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def transpose(self, axes=None):
        raise NotImplementedError(f"BCSR.transpose(axes={axes}): make it a BCOO by to_bcoo() first")


def coordinates(indices, indptr, rows):
    """(rows, columns) of elements given by compressed rows; the row of those after the last one is `rows`."""
    at = jnp.arange(indices.shape[0], dtype=indptr.dtype)
    row = jnp.searchsorted(indptr, at, side="right") - 1
    return jnp.where(at < indptr[-1], row, rows).astype(indices.dtype), indices


def _as_bcoo(what, mat):
    if not isinstance(mat, BCSR):
        raise TypeError(f"{what}: expected a BCSR, got {described(mat)}")
    return mat.to_bcoo()


def bcsr_fromdense(mat, *, nse=None, n_batch=0, n_dense=0, index_dtype=jnp.int32):
    """The BCSR of an array's numbers that are not zero; as `bcoo_fromdense`, with two axes that are sparse.

    >>> sparse.bcsr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: must have 2 sparse dimensions. Of shape {mat.shape} with "
                         f"n_batch={n_batch} and n_dense={n_dense} there are {mat.ndim - n_batch - n_dense}")
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                         index_dtype=index_dtype))


def bcsr_todense(mat):
    """The array with all its numbers.

    >>> sparse.bcsr_todense(sparse.BCSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return bcoo_todense(_as_bcoo("bcsr_todense", mat))


def bcsr_extract(indices, indptr, mat):
    """The numbers of a matrix at the places that `indices` and `indptr` give: the `data` of a BCSR.

    >>> sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1., 2.], [3., 4.]]))
    Array([2., 3.], dtype=float32)
    """
    mat, indices, indptr = jnp.asarray(mat), jnp.asarray(indices), jnp.asarray(indptr)
    rows = indptr.shape[-1] - 1
    one = lambda mat, indices, indptr: gathered(mat, jnp.stack(coordinates(indices, indptr, rows), -1))
    return batched(one, indices.ndim - 1)(mat, indices, indptr)


def bcsr_dot_general(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None,
                     out_sharding=None):
    """`lax.dot_general` of a BCSR and a dense array; see `bcoo_dot_general`.

    >>> mat, numbers = sparse.BCSR.fromdense(jnp.eye(2)), (((1,), (0,)), ((), ()))
    >>> sparse.bcsr_dot_general(mat, jnp.array([1., 2.]), dimension_numbers=numbers)
    Array([1., 2.], dtype=float32)
    """
    refuse(out_sharding=out_sharding)
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    return bcoo_dot_general(lhs.to_bcoo(), rhs, dimension_numbers=dimension_numbers, precision=precision,
                            preferred_element_type=preferred_element_type)


def bcsr_broadcast_in_dim(mat, *, shape, broadcast_dimensions, sharding=None):
    """The BCSR with more batch or dense axes; see `bcoo_broadcast_in_dim`.

    >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_broadcast_in_dim(mat, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    wide = bcoo_broadcast_in_dim(_as_bcoo("bcsr_broadcast_in_dim", mat), shape=shape,
                                 broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    return BCSR.from_bcoo(wide)


def bcsr_concatenate(operands, *, dimension):
    """BCSRs of the same layout one after the other, along a batch or a sparse axis.

    >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_concatenate([mat, mat], dimension=0).indptr
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    return BCSR.from_bcoo(bcoo_concatenate([_as_bcoo("bcsr_concatenate", x) for x in operands],
                                           dimension=dimension))


def bcsr_sum_duplicates(mat, nse=None):
    """The BCSR with elements at the same place added; `nse` as in `bcoo_sum_duplicates`.

    >>> mat = sparse.BCSR((jnp.array([1., 2.]), jnp.array([1, 1]), jnp.array([0, 2])), shape=(1, 2))
    >>> sparse.bcsr_sum_duplicates(mat).data
    Array([3.], dtype=float32)
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(_as_bcoo("bcsr_sum_duplicates", mat), nse=nse))
