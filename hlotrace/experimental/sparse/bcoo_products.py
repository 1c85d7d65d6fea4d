"""Products of BCOOs with dense arrays and with each other."""
import math
import operator

import numpy as np

from ... import lax, numpy as jnp
from ...numpy.util import promotes
from .bcoo import BCOO, bcoo_update_layout, gathered, is_bcoo, scattered, summed
from .sparse_array import batched, masked, outside, refuse

__all__ = ["bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_sampled",
           "bcoo_multiply_dense", "bcoo_multiply_sparse"]

# --- elementwise ----------------------------------------------------------------------------------

def beside(what, mat, v, fill=0):
    """The values of `v`, which broadcasts to the shape, at each element of `mat`: [*batch, nse, *dense]."""
    v = jnp.asarray(v)
    if v.ndim > mat.ndim or any(a not in (1, b) for a, b in zip(v.shape[::-1], mat.shape[::-1])):
        raise NotImplementedError(f"{what}: multiplication between sparse and dense is only implemented for "
                                  "cases where the output shape matches the sparse matrix shape. Got "
                                  f"shape={mat.shape}, v.shape={v.shape}")
    if not v.ndim:
        return v
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    sizes = v.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
    axes = [i for i, size in enumerate(sizes) if size != 1 or mat._sparse[i] == 1]

    def one(v, indices):
        there = v.squeeze(tuple(i for i in range(len(sizes)) if i not in axes))
        return gathered(there, indices[:, np.array(axes, int)], fill)
    return batched(one, mat.n_batch)(v, mat.indices)


def bcoo_multiply_dense(sp_mat, v):
    """The `data` of a BCOO times the numbers of a dense array, which broadcasts to its shape, at its places.

    >>> sparse.bcoo_multiply_dense(sparse.BCOO.fromdense(jnp.array([0., 2., 3.])), jnp.array([1., 2., 3.]))
    Array([4., 9.], dtype=float32)
    """
    v = jnp.asarray(v)
    return is_bcoo("bcoo_multiply_dense", sp_mat).data * beside("bcoo_multiply_dense", sp_mat, v)


@promotes()
def bcoo_multiply_sparse(lhs, rhs):
    """The product, element by element, of two BCOOs, whose shapes broadcast.

    It has lhs.nse * rhs.nse elements.  If many, `bcoo_sum_duplicates(result, nse=)` leaves padding out.

    >>> a, b = (sparse.BCOO.fromdense(jnp.array(x)) for x in ([0., 2., 3.], [4., 5., 0.]))
    >>> sparse.bcoo_multiply_sparse(a, b).todense()
    Array([ 0., 10.,  0.], dtype=float32)
    """
    lhs, rhs = is_bcoo("bcoo_multiply_sparse", lhs), is_bcoo("bcoo_multiply_sparse", rhs)
    ndim = max(lhs.ndim, rhs.ndim)
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError("bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: "
                                  f"{lhs} and {rhs}; see bcoo_update_layout")
    lhs, rhs = (_widened(m, ndim) for m in (lhs, rhs))
    lhs, rhs = (bcoo_update_layout(m, n_batch=min(lhs.n_batch, rhs.n_batch)) for m in (lhs, rhs))
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    nse, far = lhs.nse * rhs.nse, max((*shape, 0))

    def one(a, i, b, j):
        share_i, share_j = (np.array([size == 1 and whole != 1
                                      for size, whole in zip(m._sparse, shape[m.n_batch:])], bool)
                            for m in (lhs, rhs))
        same = ((i[:, None] == j) | share_i | share_j).all(-1)
        there = jnp.where(share_i, j[None], i[:, None])
        first, second = jnp.nonzero(same, size=nse, fill_value=(len(i), len(j)))
        product = gathered(a, first[:, None]) * gathered(b, second[:, None])
        return product, there.at[first, second].get(mode="fill", fill_value=far)
    return BCOO(batched(one, lhs.n_batch)(*lhs._bufs, *rhs._bufs), shape=shape)


def _widened(mat, ndim):
    """A BCOO with new batch axes of size 1 in front."""
    new = (1,) * (ndim - mat.ndim)
    return BCOO([x.reshape(new + x.shape) for x in mat._bufs], shape=new + mat.shape)


# --- contractions ---------------------------------------------------------------------------------

def contraction(what, lhs, rhs, dimension_numbers):
    """((lhs, rhs contracted), (lhs, rhs batch)) as tuples of ints; the sizes must fit."""
    numbers = tuple(tuple(tuple(operator.index(a) for a in axes) for axes in pair)
                    for pair in dimension_numbers)
    for kind, (a, b) in zip(("contracting", "batch"), numbers):
        if [lhs.shape[i] for i in a] != [rhs.shape[i] for i in b]:
            raise TypeError(f"{what} requires {kind} dimensions to have the same shape, got "
                            f"{tuple(lhs.shape[i] for i in a)} and {tuple(rhs.shape[i] for i in b)}: those "
                            f"are dimensions {a} of {lhs.shape} and {b} of {rhs.shape}.")
    return numbers


def bcoo_dot_general(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None,
                     out_sharding=None):
    """`lax.dot_general` of two arrays, one or both of them BCOOs.

    With one dense array the result is dense.  Of two BCOOs it is a BCOO, with as many elements as pairs of
    theirs, or as places in the result if these are fewer; contracted axes are then sparse ones.  Batch
    dimensions are batch axes.

    Raises:
        NotImplementedError: for dense axes that are contracted, and other batch dimensions.

    >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> sparse.bcoo_dot_general(mat, jnp.array([1., 10.]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([10.,  2.], dtype=float32)
    """
    refuse(out_sharding=out_sharding)
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    numbers = contraction("bcoo_dot_general", lhs, rhs, dimension_numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _of_sparse(lhs, rhs, numbers, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _of_dense(lhs, rhs, numbers, precision, preferred_element_type)
    (lc, rc), (lb, rb) = numbers
    out = _of_dense(is_bcoo("bcoo_dot_general", rhs), lhs, ((rc, lc), (rb, lb)), precision,
                    preferred_element_type)
    n, free = len(lb), rhs.ndim - len(rb) - len(rc)      # batch, free axes of rhs, free axes of lhs
    return out.transpose((*range(n), *range(n + free, out.ndim), *range(n, n + free)))


def _of_dense(mat, rhs, numbers, precision, preferred):
    """dot_general of a BCOO and a dense array."""
    (lc, rc), (lb, rb) = numbers
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(a >= m for a in lc):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")
    if any(a >= n for a in lb):
        raise NotImplementedError("bcoo_dot_general batch dimensions must be among the batch dimensions in "
                                  f"the sparse representation, got lhs_batch={lb}, n_batch={n}")
    dtype = preferred or jnp.result_type(mat.data, rhs)
    partner = dict(zip((*lb, *lc), (*rb, *rc)))
    rhs_free = [a for a in range(rhs.ndim) if a not in (*rb, *rc)]
    sparse, kept = ([a - n for a in range(n, m) if (a in partner) == c] for c in (True, False))
    # the axes of rhs: those beside the batch, of size 1 where there is none, those beside contracted sparse
    # axes, the rest
    order = [partner[a] for a in range(n) if a in partner] + [partner[a + n] for a in sparse] + rhs_free
    rhs = jnp.expand_dims(rhs.transpose(order), tuple(a for a in range(n) if a not in partner))

    def one(data, indices, rhs):
        taken = gathered(rhs, indices[:, np.array(sparse, int)]) if sparse else None
        data = masked(~outside(indices, mat._sparse), data)
        if not kept:        # all elements go to one place: a product of matrices
            return _product(data, rhs, taken, precision, dtype)
        d, r = data.ndim - 1, len(rhs_free)
        other = rhs[None] if taken is None else taken
        terms = data.reshape(data.shape + (1,) * r).astype(dtype) * other.reshape(
            other.shape[:1] + (1,) * d + other.shape[1:]).astype(dtype)
        return scattered(terms, indices[:, np.array(kept, int)],
                         tuple(mat._sparse[i] for i in kept) + terms.shape[1:])
    out = batched(one, n)(mat.data, mat.indices, rhs)
    batch = [mat.shape[a] for a in range(n)]
    out = jnp.broadcast_to(out, (*batch, *out.shape[n:])).sum(tuple(a for a in lc if a < n), dtype=dtype)
    axes = [a for a in range(n) if a not in lc]
    front = [axes.index(a) for a in lb]
    return out.transpose((*front, *(i for i in range(out.ndim) if i not in front)))


def _product(data, rhs, taken, precision, dtype):
    """The sum over elements of [nse, *dense] times [nse, *free], or times one [*free] for all."""
    if taken is None:
        return jnp.multiply.outer(data.sum(0).astype(dtype), rhs.astype(dtype))
    return lax.dot_general(data.astype(dtype), taken.astype(dtype), (((0,), (0,)), ((), ())),
                           precision=precision)


def _of_sparse(lhs, rhs, numbers, preferred):
    """dot_general of two BCOOs, as a BCOO."""
    (lc, rc), (lb, rb) = numbers
    what = "bcoo_spdot_general"
    for mat, contracted, batch in ((lhs, lc, lb), (rhs, rc, rb)):
        if any(not mat.n_batch <= a < mat.n_batch + mat.n_sparse for a in contracted):
            raise NotImplementedError(f"{what} only supports contraction of sparse indices.")
        if any(a >= mat.n_batch for a in batch):
            raise NotImplementedError(f"{what}: batch_dims must correspond to batch axes of the sparse "
                                      "representation.")
        if mat.n_dense:
            raise NotImplementedError(f"{what}: dense dimensions: n_dense={mat.n_dense}; see "
                                      "bcoo_update_layout")
    own_l, own_r = ([a for a in range(mat.n_batch) if a not in batch]
                    for mat, batch in ((lhs, lb), (rhs, rb)))
    free_l, free_r = ([a for a in range(mat.n_batch, mat.ndim) if a not in c]
                      for mat, c in ((lhs, lc), (rhs, rc)))
    if free_l and own_r:
        raise ValueError(f"{what}: cannot have unused batch dims on rhs with unused sparse dims on lhs.")
    sizes = tuple(lhs.shape[a] for a in free_l) + tuple(rhs.shape[a] for a in free_r)
    nse, dtype = min(lhs.nse * rhs.nse, math.prod(sizes)), preferred or jnp.result_type(lhs.data, rhs.data)
    at = lambda mat, axes: np.array([a - mat.n_batch for a in axes], int)

    def one(a, i, b, j):
        pairs = (len(i), len(j))
        same = (i[:, None, at(lhs, lc)] == j[None, :, at(rhs, rc)]).all(-1)
        same &= ~outside(i, lhs._sparse)[:, None] & ~outside(j, rhs._sparse)
        products = jnp.where(same, a[:, None].astype(dtype) * b.astype(dtype), jnp.zeros((), dtype)).ravel()
        free = [jnp.broadcast_to(i[:, None, at(lhs, free_l)], (*pairs, len(free_l))),
                jnp.broadcast_to(j[None, :, at(rhs, free_r)], (*pairs, len(free_r)))]
        return summed(products, jnp.concatenate(free, -1).reshape(math.prod(pairs),
                                                                  -1 if sizes and products.size else len(
            sizes)), sizes, nse)
    # axes of the batch: those of both, those of lhs alone, those of rhs alone
    a, i = (x.transpose((*lb, *own_l, *range(lhs.n_batch, x.ndim))) for x in lhs._bufs)
    a, i = (jnp.expand_dims(x, tuple(range(lhs.n_batch, lhs.n_batch + len(own_r)))) for x in (a, i))
    b, j = (x.transpose((*rb, *own_r, *range(rhs.n_batch, x.ndim))) for x in rhs._bufs)
    b, j = (jnp.expand_dims(x, tuple(range(len(rb), len(rb) + len(own_l)))) for x in (b, j))
    batch = [lhs.shape[x] for x in (*lb, *own_l)] + [rhs.shape[x] for x in own_r]
    data, indices = batched(one, len(batch))(a, i, b, j)
    return BCOO((data, indices), shape=(*batch, *sizes))


def bcoo_dot_general_sampled(A, B, indices, *, dimension_numbers):
    """The numbers of `lax.dot_general(A, B, dimension_numbers)` at `indices` alone, [*batch, nse, n_sparse].

    >>> a, numbers = jnp.arange(6.).reshape(2, 3), (((1,), (1,)), ((), ()))
    >>> sparse.bcoo_dot_general_sampled(a, a, jnp.array([[0, 1], [1, 1]]), dimension_numbers=numbers)
    Array([14., 50.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    (ac, bc), (ab, bb) = contraction("bcoo_dot_general_sampled", A, B, dimension_numbers)
    n = indices.ndim - 2
    free_a, free_b = ([i for i in range(x.ndim) if i not in (*c, *batch)]
                      for x, c, batch in ((A, ac, ab), (B, bc, bb)))
    if n == len(ab) and indices.shape[-1] == len(free_a) + len(free_b):
        A, B = A.transpose((*ab, *free_a, *ac)), B.transpose((*bb, *free_b, *bc))

        def one(a, b, indices):
            rows, others = gathered(a, indices[:, :len(free_a)]), gathered(b, indices[:, len(free_a):])
            return (rows * others).sum(tuple(range(1, rows.ndim)))
        return batched(one, n)(A, B, indices)
    return batched(gathered, n)(lax.dot_general(A, B, ((ac, bc), (ab, bb))), indices)


@promotes()
def bcoo_conv_general_dilated(lhs, rhs, *, window_strides, padding, lhs_dilation=None, rhs_dilation=None,
                              dimension_numbers=None, feature_group_count=1, batch_group_count=1,
                              precision=None, preferred_element_type=None, out_sharding=None):
    """A convolution along one axis, of arrays of shape (1, 1, size), as a BCOO of lhs.nse * rhs.nse elements.

    The arguments are those of `lax.conv_general_dilated`.

    Raises:
        NotImplementedError: for strides, groups, other shapes and other dimension numbers.

    >>> lhs, rhs = (sparse.BCOO.fromdense(jnp.array([[x]])) for x in ([1., 0., 2.], [1., 1.]))
    >>> sparse.bcoo_conv_general_dilated(lhs, rhs, window_strides=(1,), padding="VALID").todense()
    Array([[[1., 2.]]], dtype=float32)
    """
    refuse(out_sharding=out_sharding, dimension_numbers=dimension_numbers, precision=precision)
    lhs, rhs = (x if isinstance(x, BCOO) else _all_stored(jnp.asarray(x)) for x in (lhs, rhs))
    if tuple(window_strides) != (1,):
        raise NotImplementedError(f"bcoo convolution with non-unit window_strides={tuple(window_strides)}.")
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError(f"bcoo convolution with feature_group_count={feature_group_count}, "
                                  f"batch_group_count={batch_group_count}: only 1 of both")
    for mat in (lhs, rhs):
        if mat.shape[:2] != (1, 1) or mat.ndim != 3 or mat.n_dense:
            raise NotImplementedError(f"bcoo convolution with leading dimensions other than (1, 1): {mat}")
    (spread,), (step,) = lhs_dilation or (1,), rhs_dilation or (1,)
    width, window = ((size - 1) * by + 1 if size else 0
                     for size, by in ((lhs.shape[2], spread), (rhs.shape[2], step)))
    if isinstance(padding, str):
        ((low, high),) = lax.padtype_to_pads((width,), (window,), (1,), padding)
    else:
        ((low, high),) = padding
    size = max(0, width + low + high - window + 1)
    flat = [_flat(mat) for mat in (lhs, rhs)]
    (a, i), (b, j) = flat
    dtype = preferred_element_type or jnp.result_type(a, b)
    at = (i * spread)[:, None] - j * step + low
    there = (at >= 0) & (at < size) & ~outside(i[:, None], lhs.shape[2:])[:, None] & ~outside(j[:, None],
                                                                                              rhs.shape[2:])
    data = jnp.where(there, a[:, None].astype(dtype) * b.astype(dtype), jnp.zeros((), dtype))
    at = jnp.where(there, at, size)
    return BCOO((data.reshape(1, 1, -1), at.reshape(1, 1, -1, 1)), shape=(1, 1, size))


def _all_stored(x):
    """A BCOO that stores every number along the last axis of an array."""
    if x.ndim:
        indices = jnp.broadcast_to(jnp.arange(x.shape[-1])[:, None], (*x.shape, 1))
    else:
        indices = jnp.zeros((1, 0), int)
    return BCOO((x if x.ndim else x[None], indices), shape=x.shape)


def _flat(mat):
    """(data, indices) of a BCOO of shape (1, 1, size) as of one with one axis."""
    out = mat.indices[..., -1]
    for axis in range(mat.n_batch, 2):      # sparse axes of size 1: padding may show in them alone
        out = jnp.where(mat.indices[..., axis - mat.n_batch] >= 1, jnp.asarray(mat.shape[2], out.dtype), out)
    return mat.data.reshape(-1), out.reshape(-1)
