"""BCSR: compressed rows in batches."""
import numpy as np
from sparse_arrays import CUBE, OTHER, WIDE, D, same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCSR


def test_compressed_rows_in_batches():
    mat = BCSR.fromdense(CUBE, n_batch=1)
    assert mat.indptr.shape == (2, 4) and mat.n_sparse == 2 and mat.n_dense == 0
    found = jax.jit(lambda mat: {
        "dense": mat.todense(), "product": mat @ WIDE,
        "batch": sparse.bcsr_dot_general(mat, OTHER, dimension_numbers=(((2,), (2,)), ((0,), (0,)))),
        "joined": sparse.bcsr_concatenate([mat, mat], dimension=1).todense(),
        "data": sparse.bcsr_extract(mat.indices, mat.indptr, CUBE),
        "sin": sparse.sparsify(jnp.sin)(mat).todense(),
        "wide": sparse.bcsr_todense(
            sparse.bcsr_broadcast_in_dim(mat, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3))),
        "new": mat[None].todense(), "made": sparse.bcsr_fromdense(D, nse=6).todense()})(mat)
    same(found, {
        "dense": CUBE, "product": CUBE @ WIDE, "batch": np.einsum("bij,bkj->bik", CUBE, OTHER),
        "joined": np.concatenate([CUBE, CUBE], 1), "data": mat.data, "sin": np.sin(CUBE),
        "wide": np.broadcast_to(CUBE, (5, 2, 3, 4)), "new": CUBE[None], "made": D})
    doubled = BCSR((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert jax.jit(lambda m: m.sum_duplicates(nse=2))(doubled).data.tolist() == [2, 1]
    assert sparse.bcsr_sum_duplicates(doubled, nse=2).data.tolist() == [2, 1]
    padded = BCSR.fromdense(D, nse=6)
    assert padded.indices.tolist() == [1, 3, 0, 2, 4, 4] and padded.to_bcoo().indices.tolist()[-1] == [3, 4]
