"""COO, CSR and CSC: matrices by coordinates, by compressed rows, by compressed columns, made of BCOO.

Padding has the indices 0 and the number 0, but in compressed formats is after the last row or column.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import numpy as jnp
from ...core.pytrees.pytree import register_pytree_node_class
from .bcoo import BCOO, bcoo_fromdense
from .bcoo_products import bcoo_dot_general
from .bcsr import coordinates
from .sparse_array import JAXSparse, described

__all__ = ["COO", "CSC", "CSR", "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p",
           "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p", "csr_fromdense", "csr_fromdense_p",
           "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p", "csr_todense", "csr_todense_p"]


class _Matrix(JAXSparse):
    """`_coordinates` gives (rows, columns) of the elements; products and `todense` follow."""

    nse = property(lambda self: self.data.size, doc="The number of stored elements.")
    _bcoo = property(lambda self: BCOO((self.data, jnp.stack(self._coordinates(), -1)), shape=self.shape))

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32):
        """The matrix's numbers that are not zero; `nse` as in `bcoo_fromdense`."""
        mat = jnp.asarray(mat)
        if mat.ndim != 2:
            raise ValueError(f"{cls.__name__}.fromdense: the array must have two axes, got shape {mat.shape}")
        return cls._of(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        if len(shape) != 2:
            raise ValueError(f"{cls.__name__}: the shape must have two axes, got {tuple(shape)}")
        return cls._of(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype))

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32"):
        return cls._of(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype))

    def todense(self):
        """The matrix with all its numbers."""
        return self._bcoo.todense()

    def transpose(self, axes=None):
        """The matrix with rows and columns in each other's place."""
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"axes argument to transpose(): {axes}: only (1, 0)")
        return self._turned()

    def __matmul__(self, other):
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects: make them BCOOs.")
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {other.shape}")
        return product(self, other)


def product(mat, other, transpose=False):
    """mat @ other or mat.T @ other."""
    return bcoo_dot_general(mat._bcoo, other, dimension_numbers=(((1 - transpose,), (0,)), ((), ())))


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix by coordinates: `COO((data, row, col), shape=)`, three arrays of one axis.

    >>> arrays = jnp.array([2., 3.]), jnp.array([0, 1]), jnp.array([1, 1])
    >>> sparse.COO(arrays, shape=(2, 2)) @ jnp.array([1., 10.])
    Array([20., 30.], dtype=float32)
    """
    _arrays = "data", "row", "col"
    _flags = "rows_sorted", "cols_sorted"

    def __init__(self, args, *, shape, rows_sorted=False, cols_sorted=False):
        super().__init__(args, shape=shape)
        self.rows_sorted, self.cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @classmethod
    def _of(cls, mat):
        there = jnp.arange(mat.nse) < (mat.indices[:, 0] < mat.shape[0]).sum()
        return cls((mat.data, *jnp.where(there, mat.indices.T, 0).astype(mat.indices.dtype)), shape=mat.shape,
                   rows_sorted=True)

    def _coordinates(self):
        return self.row, self.col

    def _turned(self):
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self.cols_sorted,
                   cols_sorted=self.rows_sorted)


def _compressed(mat, axis):
    """(data, indices along the other axis, where each row or column begins) of a BCOO in order."""
    if axis:
        mat = mat.transpose().sort_indices()
    there = mat.indices[:, 0] < mat.shape[0]
    counts = jnp.zeros(mat.shape[0] + 1, mat.indices.dtype).at[mat.indices[:, 0] + 1].add(1, mode="drop")
    return mat.data, jnp.where(there, mat.indices[:, 1], 0), jnp.cumsum(counts).astype(counts.dtype)


class _Compressed(_Matrix):
    """A matrix by compressed rows (`_axis` 0) or columns (1)."""
    _arrays = "data", "indices", "indptr"

    @classmethod
    def _of(cls, mat):
        return cls(_compressed(mat, cls._axis), shape=mat.shape)

    def _coordinates(self):
        found = coordinates(self.indices, self.indptr, self.shape[self._axis])
        return found[::-1] if self._axis else found


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by compressed rows: `CSR((data, indices, indptr), shape=)`.

    `indices` are ints [nse], of columns, and `indptr` ints [rows + 1], where each row's elements begin.

    >>> sparse.CSR.fromdense(jnp.array([[0., 1.], [2., 3.]])).indptr
    Array([0, 1, 3], dtype=int32)
    """
    _axis = 0

    def _turned(self):
        return CSC(self._bufs, shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by compressed columns: `CSC((data, indices, indptr), shape=)`.

    `indices` are ints [nse], of rows, and `indptr` ints [columns + 1], where each column's elements begin.

    >>> sparse.CSC.fromdense(jnp.array([[0., 1.], [2., 3.]])).data
    Array([2., 1., 3.], dtype=float32)
    """
    _axis = 1

    def _turned(self):
        return CSR(self._bufs, shape=self.shape[::-1])


# --- as functions ---------------------------------------------------------------------------------

def _of_kind(kind, what, mat):
    if not isinstance(mat, kind):
        raise TypeError(f"{what}: expected a {kind.__name__}, got {described(mat)}")
    return mat


def _functions(kind):
    name = kind.__name__.lower()
    made = f"""
    >>> mat = sparse.{kind.__name__}.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    """

    def fromdense(mat, *, nse=None, index_dtype=jnp.int32):
        return kind.fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(mat):
        return _of_kind(kind, f"{name}_todense", mat).todense()

    def matvec(mat, v, transpose=False):
        return _multiplied(kind, f"{name}_matvec", 1, mat, v, transpose)

    def matmat(mat, B, *, transpose=False):
        return _multiplied(kind, f"{name}_matmat", 2, mat, B, transpose)
    docs = {
        fromdense: f"""The {kind.__name__} of a matrix's nonzero numbers; `nse` as in `bcoo_fromdense`.
{made}>>> sparse.{name}_fromdense(jnp.eye(2)).data
    Array([1., 1.], dtype=float32)
    """,
        todense: f"""The matrix of a {kind.__name__} with all its numbers.
{made}>>> sparse.{name}_todense(mat)
    Array([[0., 1.],
           [2., 0.]], dtype=float32)
    """,
        matvec: f"""The product of a {kind.__name__}, or with `transpose` of its transpose, and a vector.
{made}>>> sparse.{name}_matvec(mat, jnp.array([1., 10.]), transpose=True)
    Array([20.,  1.], dtype=float32)
    """,
        matmat: f"""The product of a {kind.__name__}, or with `transpose` of its transpose, and a matrix.
{made}>>> sparse.{name}_matmat(mat, jnp.array([[1.], [10.]]))
    Array([[10.],
           [ 2.]], dtype=float32)
    """}
    for function, text in docs.items():
        function.__doc__, function.__name__ = text, f"{name}_{function.__name__}"
        function.__qualname__ = function.__name__
    return docs


def _multiplied(kind, what, ndim, mat, other, transpose):
    other = jnp.asarray(other)
    if other.ndim != ndim:
        raise ValueError(f"{what}: the second operand must have {ndim} axes, got shape {other.shape}")
    return product(_of_kind(kind, what, mat), other, bool(transpose))


coo_fromdense, coo_todense, coo_matvec, coo_matmat = _functions(COO)
csr_fromdense, csr_todense, csr_matvec, csr_matmat = _functions(CSR)


class _OnArrays(NamedTuple):
    """What is a primitive in JAX: `bind` takes a matrix's three arrays, and computes by other primitives."""
    name: str
    bind: Callable[..., Any]
    multiple_results: bool = False


def _on_arrays(kind):
    name = kind.__name__.lower()

    def matrix(arrays, shape=None, spinfo=None):
        return kind(arrays, shape=spinfo.shape if shape is None else shape)

    def multiply(*operands, transpose, **info):
        return product(matrix(operands[:3], **info), operands[3], transpose)
    return (_OnArrays(f"{name}_fromdense", lambda mat, **how: list(kind.fromdense(mat, **how)._bufs), True),
            _OnArrays(f"{name}_todense", lambda *arrays, **info: matrix(arrays, **info).todense()),
            _OnArrays(f"{name}_matvec", multiply), _OnArrays(f"{name}_matmat", multiply))


coo_fromdense_p, coo_todense_p, coo_matvec_p, coo_matmat_p = _on_arrays(COO)
csr_fromdense_p, csr_todense_p, csr_matvec_p, csr_matmat_p = _on_arrays(CSR)
