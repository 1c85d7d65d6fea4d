"""What moves the elements of a BCOO: slices, concatenations, other shapes."""
import math
import operator

import numpy as np

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core.errors import ShapeError, listed
from ...numpy.util import promotes
from .bcoo import BCOO, bcoo_transpose, bcoo_update_layout, fitted, groups, is_bcoo, whole
from .sparse_array import batched, dense_shape, masked, outside, refuse

__all__ = ["bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_gather", "bcoo_reshape",
           "bcoo_rev", "bcoo_slice", "bcoo_squeeze"]


def bcoo_broadcast_in_dim(mat, *, shape, broadcast_dimensions, sharding=None):
    """The BCOO with more axes, as `lax.broadcast_in_dim`.

    New axes in front of the sparse ones become batch axes, those behind the first dense one dense axes.

    Raises:
        NotImplementedError: for others, unless they have size 1.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.bcoo_broadcast_in_dim(mat, shape=(2, 3, 3), broadcast_dimensions=(1, 2))
    BCOO(float32[2, 3, 3], nse=3, n_batch=1)
    """
    refuse(sharding=sharding)
    shape, places = tuple(map(operator.index, shape)), tuple(map(operator.index, broadcast_dimensions))
    rising = len(places) == is_bcoo("bcoo_broadcast_in_dim", mat).ndim and list(places) == sorted(set(places))
    if not rising or any(not 0 <= p < len(shape) or size not in (1, shape[p])
                         for p, size in zip(places, mat.shape)):
        raise ValueError(f"bcoo_broadcast_in_dim: broadcast_dimensions {places} do not put shape {mat.shape} "
                         f"into {shape}: they say, in order, which axis of the new shape each axis is")
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    n_batch = places[n] if n < mat.ndim else len(shape)
    first_dense = places[m] if mat.n_dense else len(shape)
    sparse = {p: i for i, p in enumerate(places[n:m])}
    for axis in range(n_batch, first_dense):
        if shape[axis] != (mat.shape[n + sparse[axis]] if axis in sparse else 1):
            raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    at = places[:n], [p - first_dense + n_batch + 1 for p in places[m:]]
    batch, dense = shape[:n_batch], shape[first_dense:]
    data = lax.broadcast_in_dim(mat.data, (*batch, mat.nse, *dense), (*at[0], n_batch, *at[1]))
    zeros = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    indices = [mat.indices[..., sparse[p]] if p in sparse else zeros for p in range(n_batch, first_dense)]
    indices = jnp.stack(indices, -1) if indices else mat.indices[..., :0]
    indices = lax.broadcast_in_dim(indices, (*batch, *indices.shape[n:]), (*at[0], n_batch, n_batch + 1))
    return BCOO((data, indices), shape=shape)


def bcoo_squeeze(arr, *, dimensions):
    """The BCOO without axes of size 1.

    >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(jnp.ones((1, 3))), dimensions=(0,))
    BCOO(float32[3], nse=3)
    """
    dimensions = sorted(operator.index(d) for d in dimensions)
    shape = dense_shape(lax.squeeze, is_bcoo("bcoo_squeeze", arr), dimensions=dimensions)
    dimensions = [d % arr.ndim for d in dimensions]
    batch, sparse, dense = groups(arr, dimensions)
    data = arr.data.squeeze((*batch, *(arr.n_batch + 1 + d for d in dense)))
    kept = np.array([i for i in range(arr.n_sparse) if i not in sparse], int)
    return BCOO((data, arr.indices[..., kept].squeeze(tuple(batch))), shape=shape,
                indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_reshape(mat, *, new_sizes, dimensions=None, sharding=None):
    """The BCOO with another shape.

    Args:
        new_sizes: the shape; axes of the batch, sparse and dense ones are reshaped among themselves.
        dimensions: the order in which its axes are read.
        sharding: not supported; None.
    Raises:
        ValueError: for a shape that mixes the kinds of axes.

    >>> sparse.bcoo_reshape(sparse.BCOO.fromdense(jnp.eye(2)), new_sizes=(4,)).indices
    Array([[0],
           [3]], dtype=int32)
    """
    refuse(sharding=sharding)
    if math.prod(new_sizes) != is_bcoo("bcoo_reshape", mat).size:
        raise ShapeError(f"bcoo_reshape: cannot reshape array of shape {mat.shape} (size {mat.size}) into "
                         f"shape {tuple(new_sizes)} (size {math.prod(new_sizes)})")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new, n, m = tuple(map(operator.index, new_sizes)), mat.n_batch, mat.n_batch + mat.n_sparse
    sizes = [mat.shape[:n], mat.shape[n:m], mat.shape[m:]]
    n_batch = next((i for i in range(1, len(new) + 1) if math.prod(new[:i]) == math.prod(sizes[0])),
                   None if n else 0)
    if mat.n_dense:
        dense = math.prod(sizes[2])
        n_dense = next((i for i in range(len(new) + 1) if math.prod(new[len(new) - i:]) == dense), None)
    else:
        n_dense = 0
    for found, kind, count in ((n_batch, "batch and sparse", f"n_batch={n}"),
                               (n_dense, "sparse and dense", f"n_dense={mat.n_dense}")):
        if found is None or n_batch is not None and n_batch + found > len(new) and kind[0] == "s":
            raise ValueError(f"bcoo_reshape: new shape cannot mix {kind} dimensions; got shape={mat.shape} "
                             f"new_shape={new} with {count}")
    batch, sparse, dense = new[:n_batch], new[n_batch:len(new) - n_dense], new[len(new) - n_dense:]
    data, indices = whole(mat)
    flat = jnp.zeros(indices.shape[:-1], indices.dtype)
    for i, size in enumerate(sizes[1]):
        flat = flat * size + indices[..., i]
    parts = []
    for size in sparse[::-1]:
        parts.insert(0, flat % max(size, 1))
        flat = flat // max(size, 1)
    there = ~outside(indices, sizes[1])
    indices = jnp.stack(parts, -1) if parts else indices[..., :0]
    indices = jnp.where(there[..., None], indices, jnp.asarray(sparse, indices.dtype))
    return BCOO((data.reshape(*batch, mat.nse, *dense), indices.reshape(*batch, mat.nse, len(sparse))),
                shape=new)


def reshaped(mat, new):
    """`bcoo_reshape`, where axes of size 1 are added and left out without a look at the indices."""
    old = mat.shape
    kept = [s for s in old if s != 1]
    if kept != [s for s in new if s != 1] or old == new:
        return bcoo_reshape(mat, new_sizes=new)
    if len(new) < len(old):
        ones, wanted = [], list(new)
        for axis, size in reversed(list(enumerate(old))):
            if wanted and wanted[-1] == size:
                wanted.pop()
            else:
                ones.append(axis)
        return bcoo_squeeze(mat, dimensions=ones)
    places, start = [], 0
    for size in old:
        start = next(i for i in range(start, len(new)) if new[i] == size)
        places.append(start)
        start += 1
    return bcoo_broadcast_in_dim(mat, shape=new, broadcast_dimensions=places)


@promotes()
def bcoo_rev(operand, dimensions):
    """The BCOO with axes reversed.

    >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.array([1., 0., 0.])), (0,)).todense()
    Array([0., 0., 1.], dtype=float32)
    """
    dimensions = [operator.index(d) for d in dimensions]
    dense_shape(lax.rev, is_bcoo("bcoo_rev", operand), dimensions=dimensions)
    batch, sparse, dense = groups(operand, dimensions)
    data, indices = operand.data, operand.indices
    data = jnp.flip(data, (*batch, *(operand.n_batch + 1 + d for d in dense)))
    indices = jnp.flip(indices, tuple(batch))
    sizes = jnp.asarray(operand._sparse, indices.dtype)
    turned = np.array([i in sparse for i in range(operand.n_sparse)], bool)
    return BCOO((data, jnp.where(turned & (indices < sizes), sizes - 1 - indices, indices)),
                shape=operand.shape)


def bcoo_concatenate(operands, *, dimension):
    """BCOOs of the same layout one after the other, along a batch or a sparse axis.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(2))
    >>> sparse.bcoo_concatenate([mat, mat], dimension=1).todense()
    Array([[1., 0., 1., 0.],
           [0., 1., 0., 1.]], dtype=float32)
    """
    operands, dimension = list(operands), operator.index(dimension)
    if not operands or not all(isinstance(x, BCOO) for x in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got "
                         f"{operands!r:.200}")
    first = operands[0]
    shape = dense_shape(lambda *xs: lax.concatenate(xs, dimension), *operands)
    for kind in ("batch", "dense"):
        if len({getattr(x, f"n_{kind}") for x in operands}) > 1:
            raise ValueError(f"bcoo_concatenate requires inputs to have matching {kind} dimensions: they "
                             f"have {listed(getattr(x, f'n_{kind}') for x in operands)}; see "
                             "bcoo_update_layout")
    if dimension >= first.ndim - first.n_dense:
        raise NotImplementedError(f"Concatenation along dense dimensions: dimension={dimension} of an array "
                                  f"of shape {first.shape} with n_dense={first.n_dense}")
    if dimension < first.n_batch:
        nse = max(x.nse for x in operands)
        buffers = [_padded(x, nse) for x in operands]
        return BCOO([jnp.concatenate(b, dimension) for b in zip(*buffers)], shape=shape)
    axis, starts = first.n_batch, np.cumsum([0, *(x.shape[dimension] for x in operands)])
    moved = [x.indices.at[..., dimension - axis].add(jnp.asarray(start, x.indices.dtype))
             for x, start in zip(operands, starts)]
    return BCOO((_joined([x.data for x in operands], axis), _joined(moved, axis)), shape=shape)


def _joined(arrays, axis):
    """Arrays one after the other along `axis`; the batch axes in front may be of size 1 in some."""
    batch = jnp.broadcast_shapes(*(x.shape[:axis] for x in arrays))
    return jnp.concatenate([jnp.broadcast_to(x, batch + x.shape[axis:]) for x in arrays], axis)


def _padded(mat, nse):
    """The whole arrays of a BCOO with padding, so that it has `nse` elements."""
    data, indices = whole(mat)
    if nse == mat.nse:
        return data, indices
    more = (*indices.shape[:-2], nse - mat.nse, mat.n_sparse)
    fill = jnp.broadcast_to(jnp.asarray(mat._sparse, indices.dtype), more)
    zeros = jnp.zeros((*more[:-1], *data.shape[mat.n_batch + 1:]), data.dtype)
    return jnp.concatenate([data, zeros], mat.n_batch), jnp.concatenate([indices, fill], mat.n_batch)


# --- parts ----------------------------------------------------------------------------------------

@promotes()
def _part(mat, start, sizes, strides=None):
    """The elements at start + strides * i for i below sizes; what is not there becomes padding."""
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    if m > n:
        indices = mat.indices - jnp.stack([jnp.asarray(s, mat.indices.dtype) for s in start[n:m]])
    else:
        indices = mat.indices
    steps = jnp.asarray([1] * (m - n) if strides is None else strides[n:m], indices.dtype)
    limit = jnp.asarray(sizes[n:m], indices.dtype)
    there = ((indices >= 0) & (indices % steps == 0) & (indices // steps < limit)).all(-1)
    there &= ~outside(mat.indices, mat._sparse)
    indices = jnp.where(there[..., None], indices // steps, limit)
    data = mat.data
    shape = jnp.broadcast_shapes(there.shape, data.shape[:n + 1])
    data = masked(there, jnp.broadcast_to(data, shape + data.shape[n + 1:])) if m > n else data
    return fitted(BCOO((data, indices), shape=sizes))


@composite(static=("start_indices", "limit_indices", "strides"))
def bcoo_slice(mat, *, start_indices, limit_indices, strides=None):
    """The part of a BCOO that `lax.slice` gives.

    >>> mat = sparse.BCOO.fromdense(jnp.arange(5.))
    >>> sparse.bcoo_slice(mat, start_indices=(1,), limit_indices=(5,), strides=(2,)).todense()
    Array([1., 3.], dtype=float32)
    """
    strides = [1] * mat.ndim if strides is None else list(map(operator.index, strides))
    start, limit = list(map(operator.index, start_indices)), list(map(operator.index, limit_indices))
    sizes = dense_shape(lax.slice, is_bcoo("bcoo_slice", mat), start_indices=start, limit_indices=limit,
                        strides=strides)
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    cut = tuple(slice(a, b, step) for a, b, step in zip(start, limit, strides))
    data, indices = (x[tuple(slice(None) if size == 1 else c for c, size in zip(cut[:n], x.shape))]
                     for x in mat._bufs)
    data = data[(slice(None),) * (n + 1) + cut[m:]]
    return _part(BCOO((data, indices), shape=(*sizes[:n], *mat.shape[n:m], *sizes[m:])), start, sizes,
                 strides)


@composite(static=("slice_sizes",))
def bcoo_dynamic_slice(mat, start_indices, slice_sizes):
    """The part of a BCOO that `lax.dynamic_slice` gives.

    >>> sparse.bcoo_dynamic_slice(sparse.BCOO.fromdense(jnp.arange(5.)), (2,), (2,)).todense()
    Array([2., 3.], dtype=float32)
    """
    sizes, start = list(map(operator.index, slice_sizes)), list(start_indices)
    dense_shape(lax.dynamic_slice, is_bcoo("bcoo_dynamic_slice", mat), start_indices=start,
                slice_sizes=sizes)
    start = [jnp.clip(jnp.asarray(a, mat.indices.dtype), 0, size - s)
             for a, s, size in zip(start, sizes, mat.shape)]
    n, m, zero = mat.n_batch, mat.n_batch + mat.n_sparse, jnp.zeros((), mat.indices.dtype)

    def own(x, rest, starts):
        at = [zero if size == 1 else a for a, size in zip(start[:n], x.shape)]
        return lax.dynamic_slice(x, (*at, *starts), (*map(min, sizes[:n], x.shape), *rest))
    data = own(mat.data, (mat.nse, *sizes[m:]), (zero, *start[m:]))
    indices = own(mat.indices, mat.indices.shape[n:], (zero, zero))
    return _part(BCOO((data, indices), shape=(*sizes[:n], *mat.shape[n:m], *sizes[m:])), start, sizes)


def bcoo_gather(operand, start_indices, dimension_numbers, slice_sizes, *, unique_indices=False,
                indices_are_sorted=False, mode=None, fill_value=None):
    """The slices of a BCOO that `lax.gather` gives, with the axes of `start_indices` as batch axes in front.

    Indices out of bounds are clipped.

    Raises:
        NotImplementedError: for a mode or `fill_value` that says otherwise, and for batching dimensions.

    >>> sparse.BCOO.fromdense(jnp.eye(3))[jnp.array([2, 0])].todense()
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    refuse(fill_value=fill_value)
    dn, start_indices = dimension_numbers, jnp.asarray(start_indices)
    mode = lax.GatherScatterMode.from_any("clip" if mode is None else mode)
    inside = mode in (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    if not inside or dn.operand_batching_dims:
        raise NotImplementedError(f"bcoo_gather: mode={mode}, "
                                  f"operand_batching_dims={dn.operand_batching_dims}: only indices that are "
                                  "clipped, and no batching dimensions")
    collapsed = tuple(dn.collapsed_slice_dims)

    def one(start):
        at = [0] * operand.ndim
        for i, axis in enumerate(dn.start_index_map):
            at[axis] = start[i]
        return bcoo_squeeze(bcoo_dynamic_slice(operand, at, slice_sizes), dimensions=collapsed)
    n = start_indices.ndim - 1
    if start_indices.size or not n:
        mat = batched(one, n)(start_indices)
    else:
        mat = one(jnp.zeros(start_indices.shape[-1:], int))
    ndim = mat.ndim
    front = [a for a in range(ndim) if a not in dn.offset_dims]
    if front == list(range(n)):
        return mat
    permutation = np.argsort([*front, *sorted(dn.offset_dims)])
    return bcoo_transpose(bcoo_update_layout(mat, n_batch=0), permutation=permutation)
