"""BCOO, batched coordinates: the numbers that are stored and, for each, the indices of its place.

`data` is [*batch, nse, *dense] and `indices` [*batch, nse, n_sparse], for an array of shape [*batch, *sparse,
*dense].  An element with an index out of bounds is padding: those made here have the sizes of the sparse axes
as indices, and 0.  Elements with the same indices are added.

Each operation is written for one element of the batch, by gathers, scatters, sorts, and mapped over batches.
"""
import math
import operator
import warnings
from functools import partial

import numpy as np

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core import dtypes
from ...core.errors import ConcretizationTypeError
from ...core.pytrees.pytree import register_pytree_node_class
from .sparse_array import (
    JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning, batched, columns, dense_shape, described,
    masked, outside, static_count)

__all__ = ["BCOO", "bcoo_extract", "bcoo_fromdense", "bcoo_reduce_sum", "bcoo_sort_indices",
           "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout"]


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array by coordinates: `BCOO((data, indices), shape=)`.

    It is a pytree of both arrays, `data` [*batch, nse, *dense] and `indices`, ints [*batch, nse, n_sparse],
    so it goes through jit, vmap (along its batch axes) and loops.  `indices_sorted` and `unique_indices` are
    what the caller knows of the indices.

    Raises:
        ValueError: for arrays that do not fit to each other or to the shape.
        TypeError: for indices that are no integers.

    >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> mat, mat @ jnp.array([1., 10.])
    (BCOO(float32[2, 2], nse=2), Array([10.,  2.], dtype=float32))
    """
    _arrays = "data", "indices"
    _flags = "indices_sorted", "unique_indices"

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        _check(self)

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    nse = property(lambda self: self.indices.shape[-2], doc="The number of stored elements.")
    _sparse = property(lambda self: self.shape[self.n_batch:self.n_batch + self.n_sparse])

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
        """`bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
        """The matrix that one of SciPy's sparse matrices or arrays is."""
        if n_dense or n_batch:
            raise NotImplementedError(f"BCOO.from_scipy_sparse: n_dense={n_dense}, n_batch={n_batch}: only 0 "
                                      "of both")
        mat = mat.tocoo()
        dtype = index_dtype or dtypes.canonicalize(np.int32)
        return cls((jnp.asarray(mat.data), jnp.stack([jnp.asarray(i, dtype) for i in (mat.row, mat.col)],
                                                     -1)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, "
                             f"nse={nse}")
        batch, sparse, dense = np.split(np.array(shape, int), [n_batch, n_batch + n_sparse])
        return cls((jnp.zeros((*batch, nse, *dense), dtype),
                    jnp.full((*batch, nse, n_sparse), sparse, index_dtype)), shape=shape, indices_sorted=True,
                   unique_indices=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, n_dense={n_dense}, n_batch={n_batch}")
        size = max(0, min(N + min(k, 0), M - max(k, 0)))
        if n_batch + n_dense:
            return bcoo_fromdense(jnp.eye(N, M, k, dtype), nse=1 if n_batch or n_dense == 2 else size,
                                  n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
        start = jnp.arange(size, dtype=index_dtype)
        return cls((jnp.ones(size, dtype), jnp.stack([start + max(0, -k), start + max(0, k)], -1)),
                   shape=(N, M), indices_sorted=True, unique_indices=True)

    def todense(self):
        """The array with all its numbers."""
        return bcoo_todense(self)

    def sum_duplicates(self, nse=None, remove_zeros=True):
        """`bcoo_sum_duplicates`; with `remove_zeros` without the elements that are 0."""
        if remove_zeros:
            zero = ~jnp.any(self.data != 0, axis=tuple(range(self.n_batch + 1, self.data.ndim)))
            indices = jnp.where(zero[..., None], jnp.asarray(self._sparse, self.indices.dtype), self.indices)
            self = BCOO((self.data, indices), shape=self.shape)
        return bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self):
        """`bcoo_sort_indices`."""
        return bcoo_sort_indices(self)

    def update_layout(self, *, n_batch=None, n_dense=None, on_inefficient="error"):
        """`bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def transpose(self, axes=None):
        """`bcoo_transpose`; without axes they are reversed within the batch, the sparse, the dense ones."""
        return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else axes)


def _check(mat):
    data, indices, shape = mat.data, mat.indices, mat.shape
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"BCOO: indices must be integers, got {indices.dtype.name}")
    if indices.ndim < 2 or mat.n_dense < 0 or mat.n_batch + mat.n_sparse + mat.n_dense != len(shape):
        raise ValueError(f"BCOO: data of shape {data.shape} and indices of shape {indices.shape} do not make "
                         f"an array of shape {shape}: data is [*batch, nse, *dense], indices [*batch, nse, "
                         "n_sparse]")
    batch, dense = shape[:mat.n_batch], shape[mat.n_batch + mat.n_sparse:]
    if data.shape[mat.n_batch:] != (mat.nse, *dense):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={mat.nse}, n_batch={mat.n_batch}, "
                         f"n_dense={mat.n_dense} and shape {shape}")
    for name, array in (("data", data), ("indices", indices)):
        if any(n not in (1, size) for n, size in zip(array.shape, batch)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={array.shape}, "
                             f"shape={shape}")


def groups(mat, axes):
    """`axes` of an array, as axes of the batch, numbers of sparse ones and numbers of dense ones."""
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    return [a for a in axes if a < n], [a - n for a in axes if n <= a < m], [a - m for a in axes if a >= m]


def is_bcoo(what, mat):
    if not isinstance(mat, BCOO):
        raise TypeError(f"{what}: expected a BCOO, got {described(mat)}")
    return mat


# --- between dense and sparse ---------------------------------------------------------------------

@composite
def bcoo_todense(mat):
    """The array with all its numbers; elements with the same indices are added.

    >>> sparse.bcoo_todense(sparse.BCOO((jnp.array([1., 2.]), jnp.array([[1], [1]])), shape=(3,)))
    Array([0., 3., 0.], dtype=float32)
    """
    n = is_bcoo("bcoo_todense", mat).n_batch
    out = batched(partial(scattered, shape=mat.shape[n:]), n)(mat.data, mat.indices)
    return jnp.broadcast_to(out, mat.shape)


def scattered(data, indices, shape):
    """The sum of the elements at each place of `shape`, whose leading axes are sparse."""
    if not indices.shape[1]:
        return data.any(0) if data.dtype == bool else data.sum(0).astype(data.dtype)
    at = jnp.zeros(shape, data.dtype).at[columns(indices)]
    return at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")


def _nonzero_places(mat, n_batch, n_dense):
    """[*batch, *sparse]: is something there not zero?"""
    if not 0 <= n_batch <= mat.ndim or not 0 <= n_dense <= mat.ndim - n_batch:
        raise ValueError(f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} of an array with "
                         f"{mat.ndim} axes")
    return (mat != 0).any(tuple(range(mat.ndim - n_dense, mat.ndim)))


def bcoo_fromdense(mat, *, nse=None, n_batch=0, n_dense=0, index_dtype=jnp.int32):
    """The BCOO of an array's numbers that are not zero, in order.

    Args:
        nse: how many elements are stored, for each of the batch; the most there are by default, which must
            then be known: not under jit.  With less, the last ones are left out.
        n_batch: how many leading axes are not sparse.
        n_dense: how many trailing axes are not sparse.

    >>> mat = sparse.bcoo_fromdense(jnp.array([[0., 1.], [2., 3.]]), nse=4)
    >>> mat.data.tolist(), mat.indices.tolist()
    ([1.0, 2.0, 3.0, 0.0], [[0, 1], [1, 0], [1, 1], [2, 2]])
    """
    mat = jnp.asarray(mat)
    if nse is None:
        most = _most_nonzero(mat, n_batch=n_batch, n_dense=n_dense)
        nse = static_count("bcoo_fromdense", most, ConcretizationTypeError)
    stored = _stored(mat, nse=operator.index(nse), n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCOO(stored, shape=mat.shape, indices_sorted=True, unique_indices=True)


@composite(static=("n_batch", "n_dense"))
def _most_nonzero(mat, *, n_batch, n_dense):
    """How many places of an element of the batch are not zero: the most."""
    there = _nonzero_places(mat, n_batch, n_dense)
    return there.sum(tuple(range(n_batch, there.ndim))).max(initial=0)


@composite(static=("nse", "n_batch", "n_dense", "index_dtype"))
def _stored(mat, *, nse, n_batch, n_dense, index_dtype):
    """(data, indices) of the first `nse` places that are not zero."""
    def places(there):
        if not there.ndim:
            return jnp.zeros((nse, 0), index_dtype)
        found = jnp.nonzero(there, size=nse, fill_value=there.shape)
        return jnp.stack(found, -1).astype(index_dtype)
    indices = batched(places, n_batch)(_nonzero_places(mat, n_batch, n_dense))
    return batched(gathered, n_batch)(mat, indices), indices


def gathered(dense, indices, fill=0):
    """The numbers of a dense array at indices [nse, n_sparse]; `fill` out of bounds."""
    if not indices.shape[1]:
        return jnp.broadcast_to(dense, (indices.shape[0], *dense.shape))
    if 0 in dense.shape[:indices.shape[1]]:      # there is nothing to gather from
        return jnp.full((indices.shape[0], *dense.shape[indices.shape[1]:]), fill, dense.dtype)
    return dense.at[columns(indices)].get(mode="fill", fill_value=fill)


@composite(static=("assume_unique",))
def bcoo_extract(sparr, arr, *, assume_unique=None):
    """The numbers of an array of the same shape at the places that `sparr` stores, as such a BCOO.

    Args:
        assume_unique: no two of its indices are the same; by default what `sparr.unique_indices` says.
            Otherwise the first of them gets the number, the others 0.

    >>> mat = sparse.BCOO.fromdense(jnp.array([0., 1., 0., 1.]))
    >>> sparse.bcoo_extract(mat, jnp.arange(4.)).data
    Array([1., 3.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != is_bcoo("bcoo_extract", sparr).shape:
        raise ValueError(f"bcoo_extract: the array has shape {arr.shape}, the sparse one {sparr.shape}: they "
                         "must be equal")
    unique = sparr.unique_indices if assume_unique is None else assume_unique

    def one(arr, indices):
        data = gathered(arr, indices)
        return data if unique else masked(_firsts(indices, sparr._sparse), data)
    return BCOO((batched(one, sparr.n_batch)(arr, sparr.indices), sparr.indices), shape=sparr.shape,
                indices_sorted=sparr.indices_sorted, unique_indices=sparr.unique_indices)


# --- order and duplicates -------------------------------------------------------------------------

def _sorted(indices):
    """The permutation that sorts indices, and the sorted ones."""
    if not indices.shape[1]:
        return jnp.arange(indices.shape[0]), indices
    *keys, order = lax.sort((*columns(indices), jnp.arange(indices.shape[0])), num_keys=indices.shape[1])
    return order, jnp.stack(keys, -1)


def _groups(indices, sizes):
    """Of one element of a batch, the order, indices in it, padding's all alike, and which are first."""
    order, indices = _sorted(jnp.where(outside(indices, sizes)[:, None], jnp.asarray(sizes, indices.dtype),
                                       indices))
    return order, indices, jnp.concatenate([jnp.ones(min(1, len(indices)), bool),
                                            (indices[1:] != indices[:-1]).any(-1)])


def _firsts(indices, sizes):
    """[nse]: is it the first element with its indices?"""
    order, _, first = _groups(indices, sizes)
    return jnp.zeros(order.shape, bool).at[order].set(first)


@composite
def bcoo_sort_indices(mat):
    """The BCOO with its elements in the order of their indices.

    >>> sparse.bcoo_sort_indices(sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [0]])), shape=(3,))).data
    Array([2., 1.], dtype=float32)
    """
    def one(data, indices):
        order, indices = _sorted(indices)
        return data[order], indices
    return BCOO(batched(one, is_bcoo("bcoo_sort_indices", mat).n_batch)(*mat._bufs), shape=mat.shape,
                indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat, nse=None):
    """The BCOO with elements of the same indices added, and sorted.

    Args:
        nse: how many are stored; as many as needed by default, which must then be known: not under jit.

    >>> mat = sparse.BCOO((jnp.array([1., 2., 3.]), jnp.array([[1], [0], [1]])), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(mat).data
    Array([2., 4.], dtype=float32)
    """
    is_bcoo("bcoo_sum_duplicates", mat)
    if nse is None:
        nse = static_count("bcoo_sum_duplicates", _most_distinct(mat))
    return BCOO(_without_duplicates(mat, nse=operator.index(nse)), shape=mat.shape, indices_sorted=True,
                unique_indices=True)


@composite
def _most_distinct(mat):
    """How many different indices an element of the batch has: the most."""
    def count(indices):
        _, indices, first = _groups(indices, mat._sparse)
        return (first & ~outside(indices, mat._sparse)).sum()
    return batched(count, mat.n_batch)(mat.indices).max(initial=0)


@composite(static=("nse",))
def _without_duplicates(mat, *, nse):
    return batched(partial(summed, sizes=mat._sparse, nse=nse), mat.n_batch)(*mat._bufs)


def summed(data, indices, sizes, nse):
    """(data, indices) of one element of the batch, sorted and without duplicates."""
    order, indices, first = _groups(indices, sizes)
    number = jnp.cumsum(first) - 1
    data = masked(~outside(indices, sizes), data[order])
    where = jnp.full((nse, len(sizes)), jnp.asarray(sizes, indices.dtype), indices.dtype)
    return scattered(data, number[:, None],
                     (nse, *data.shape[1:])), where.at[number].set(indices, mode="drop")


def fitted(mat):
    """A BCOO with no more elements than there are places for."""
    most = math.prod(mat._sparse)
    if mat.nse <= most or not mat.n_sparse:
        return mat
    less = bcoo_sum_duplicates(mat, nse=most)
    return BCOO(less._bufs, shape=less.shape)


# --- axes -----------------------------------------------------------------------------------------

def bcoo_transpose(mat, *, permutation):
    """The BCOO with its axes permuted: those of the batch, the sparse and the dense ones among themselves.

    Raises:
        NotImplementedError: for a permutation that mixes them.

    >>> sparse.bcoo_transpose(sparse.BCOO.fromdense(jnp.eye(2, 3)), permutation=(1, 0))
    BCOO(float32[3, 2], nse=2)
    """
    permutation = tuple(map(operator.index, permutation))
    shape = dense_shape(lax.transpose, is_bcoo("bcoo_transpose", mat), permutation=permutation)
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    for kind, low, high in (("batch", 0, n), ("dense", m, mat.ndim)):
        if any(not low <= a < high for a in permutation[low:high]):
            raise NotImplementedError(f"transpose permutation cannot permute {kind} axes with non-{kind} "
                                      f"axes; got permutation {permutation}, with n_{kind}={high - low}.")
    batch, sparse, dense = permutation[:n], [a - n for a in permutation[n:m]], permutation[m:]
    data = mat.data.transpose((*batch, n, *(a - m + n + 1 for a in dense)))
    return BCOO((data, mat.indices.transpose((*batch, n, n + 1))[..., np.array(sparse, int)]),
                shape=shape, unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted and permutation == tuple(range(mat.ndim)))


def bcoo_reduce_sum(mat, *, axes):
    """The sum along axes, as a BCOO: the indices of sparse axes are left out, batch axes become elements.

    >>> sparse.bcoo_reduce_sum(sparse.BCOO.fromdense(jnp.eye(3)), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    axes = sorted(operator.index(a) for a in axes)
    shape = dense_shape(jnp.sum, is_bcoo("bcoo_reduce_sum", mat), axis=tuple(axes))
    axes = [a % mat.ndim for a in axes]
    batch, sparse, dense = groups(mat, axes)
    n, data, indices = mat.n_batch, mat.data, mat.indices
    if sparse:
        data = masked(~outside(indices, mat._sparse), jnp.broadcast_to(data, jnp.broadcast_shapes(
            data.shape[:n], indices.shape[:n]) + data.shape[n:]))
    data = data.sum(tuple(n + 1 + a for a in dense), dtype=data.dtype)
    indices = indices[..., np.array([i for i in range(mat.n_sparse) if i not in sparse], int)]

    def merged(array):
        array = jnp.broadcast_to(array, [mat.shape[i] if i in batch else s
                                         for i, s in enumerate(array.shape)])
        kept = [i for i in range(n) if i not in batch]
        array = array.transpose((*kept, *batch, *range(n, array.ndim)))
        return array.reshape(*array.shape[:len(kept)], math.prod(array.shape[len(kept):n + 1]),
                             *array.shape[n + 1:])
    return BCOO((merged(data), merged(indices)), shape=shape)


def bcoo_update_layout(mat, *, n_batch=None, n_dense=None, on_inefficient="error"):
    """The same array as a BCOO with other numbers of batch and dense axes.

    Args:
        on_inefficient: what to do where sparse axes longer than 1 become batch or dense ones, so that each
            element is stored as often as they are long: "error" (a SparseEfficiencyError), "warn" or None.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
    >>> sparse.bcoo_update_layout(mat, n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    n_batch = is_bcoo("bcoo_update_layout", mat).n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of n_batch={n_batch} and n_dense={n_dense} cannot be larger than "
                         f"mat.ndim={mat.ndim}.")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None].")
    spread = [("n_batch", mat.n_batch, n_batch, mat.shape[mat.n_batch:n_batch]),
              ("n_dense", mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense:mat.ndim - mat.n_dense])]
    for name, old, new, sizes in spread:
        if math.prod(sizes) > 1 and on_inefficient:
            words = (f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in "
                     "inefficient storage.")
            if on_inefficient == "error":
                raise SparseEfficiencyError(f"{words} To disable this error, set the on_inefficient argument "
                                            "of bcoo_update_layout to 'warn' or None.")
            warnings.warn(words, category=SparseEfficiencyWarning, stacklevel=2)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    mat = _batch_to_sparse(mat, n_batch)
    for step, count in ((_dense_to_sparse, mat.n_dense - n_dense), (_sparse_to_batch, n_batch - mat.n_batch),
                        (_sparse_to_dense, n_dense - mat.n_dense)):
        for _ in range(count):
            mat = step(mat)
    return mat


def whole(mat):
    """The arrays of a BCOO, with batch axes of their full sizes."""
    batch = mat.shape[:mat.n_batch]
    return tuple(jnp.broadcast_to(x, batch + x.shape[len(batch):]) for x in mat._bufs)


def _batch_to_sparse(mat, n_batch):
    """The trailing batch axes beyond `n_batch` become sparse ones."""
    n = mat.n_batch
    if n_batch >= n:
        return mat
    data, indices = whole(mat)
    places = jnp.stack(jnp.meshgrid(*map(jnp.arange, mat.shape[n_batch:n]), indexing="ij"),
                       -1).astype(indices.dtype)
    indices = jnp.concatenate([jnp.broadcast_to(places[..., None, :], (*indices.shape[:-1], n - n_batch)),
                               indices], -1)
    joined = lambda x: x.reshape(*x.shape[:n_batch], math.prod(x.shape[n_batch:n + 1]), *x.shape[n + 1:])
    return BCOO((joined(data), joined(indices)), shape=mat.shape)


def _dense_to_sparse(mat):
    """The first dense axis becomes the last sparse one."""
    n, nse, size = mat.n_batch, mat.nse, mat.data.shape[mat.n_batch + 1]
    data = mat.data.reshape(*mat.data.shape[:n], nse * size, *mat.data.shape[n + 2:])
    indices = jnp.repeat(mat.indices, size, axis=n)
    new = jnp.tile(jnp.arange(size, dtype=indices.dtype), nse)[:, None]
    return BCOO((data, jnp.concatenate([indices, jnp.broadcast_to(new, (*indices.shape[:-1], 1))], -1)),
                shape=mat.shape)


def _sparse_to_batch(mat):
    """The first sparse axis becomes the last batch one, each of which has its own elements, and padding."""
    n, size = mat.n_batch, mat.shape[mat.n_batch]
    # [*batch, size, nse]
    own = mat.indices[..., None, :, 0] == jnp.arange(size, dtype=mat.indices.dtype)[:, None]
    data = jnp.expand_dims(mat.data, n)
    data = jnp.broadcast_to(data, jnp.broadcast_shapes(own.shape, data.shape[:n + 2]) + data.shape[n + 2:])
    return BCOO((masked(own, data), jnp.repeat(jnp.expand_dims(mat.indices[..., 1:], n), size, axis=n)),
                shape=mat.shape)


def _sparse_to_dense(mat):
    """The last sparse axis becomes the first dense one: zeros but where the element is."""
    n, size = mat.n_batch, mat.shape[mat.n_batch + mat.n_sparse - 1]
    own = mat.indices[..., -1:] == jnp.arange(size, dtype=mat.indices.dtype)        # [*batch, nse, size]
    data = jnp.expand_dims(mat.data, n + 1)
    data = jnp.broadcast_to(data, jnp.broadcast_shapes(own.shape, data.shape[:n + 1] + (size,)) +
                            data.shape[n + 2:])
    return BCOO((masked(own, data), mat.indices[..., :-1]), shape=mat.shape)
