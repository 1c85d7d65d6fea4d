"""BCOO: what is stored is what JAX stores, functions are what methods are, batches."""
import numpy as np
import pytest
from sparse_arrays import CUBE, OTHER, D, entries

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO


def test_what_is_stored_is_what_jax_stores():
    """Padding has the sizes of the axes as indices."""
    mat, rows = BCOO.fromdense(D, nse=6), BCOO.fromdense(D, n_batch=1)
    assert repr(mat) == "BCOO(float32[3, 4], nse=6)"
    assert repr(rows) == "BCOO(float32[3, 4], nse=2, n_batch=1)"
    assert mat.indices_sorted and mat.unique_indices
    assert entries(mat) == ([1, 2, 3, 4, 0, 0], [[0, 1], [0, 3], [2, 0], [2, 2], [3, 4], [3, 4]])
    assert entries(rows) == ([[1, 2], [0, 0], [3, 4]], [[[1], [3]], [[4], [4]], [[0], [2]]])
    assert entries(BCOO.fromdense(D, n_dense=1)) == ([[0, 1, 0, 2], [3, 0, 4, 0]], [[0], [2]])
    turned = sparse.bcoo_rev(mat, (0,))
    assert entries(turned) == ([1, 2, 3, 4, 0, 0], [[2, 1], [2, 3], [0, 0], [0, 2], [3, 4], [3, 4]])
    twice = BCOO((np.array([1., 2, 3, 0, 5]), np.array([[1, 1], [0, 0], [1, 1], [2, 0], [0, 3]])),
                 shape=(3, 4))

    @jax.jit
    def made(mat, rows, twice):
        return {
            "slice": mat[1:], "row": mat[0], "gather": mat[jnp.array([0, 2])],
            "columns": mat[:, jnp.array([0, 2])],
            "reshape": mat.reshape(4, -1), "sum": mat.sum(0), "new": mat[:, None], "product": mat @ mat.T,
            "times": mat * mat, "duplicates": twice.sum_duplicates(nse=4),
            "extract": sparse.bcoo_extract(twice, jnp.ones((3, 4))),
            "zeros": twice.sum_duplicates(nse=4, remove_zeros=False), "layout": rows.update_layout(n_batch=0),
            "shared": sparse.sparsify(lambda x: x + 2 * x)(mat), "not shared": mat + 2 * mat}
    expected = {
        "slice": ([0, 0, 3, 4, 0, 0], [[2, 4], [2, 4], [1, 0], [1, 2], [2, 4], [2, 4]]),
        "row": ([1, 2, 0, 0], [[1], [3], [4], [4]]),
        "gather": ([[1, 2, 0, 0], [3, 4, 0, 0]], [[[1], [3], [4], [4]], [[0], [2], [4], [4]]]),
        "columns": ([3, 0, 0, 4, 0, 0], [[2, 0], [3, 0], [3, 0], [2, 1], [3, 1], [3, 1]]),
        "reshape": ([1, 2, 3, 4, 0, 0], [[0, 1], [1, 0], [2, 2], [3, 1], [4, 3], [4, 3]]),
        "sum": ([1, 2, 3, 4, 0, 0], [[1], [3], [0], [2], [4], [4]]),
        "new": ([1, 2, 3, 4, 0, 0], [[0, 0, 1], [0, 0, 3], [2, 0, 0], [2, 0, 2], [3, 0, 4], [3, 0, 4]]),
        "product": ([5, 0, 0, 25, 0, 0, 0, 0, 0], [[0, 0], [0, 2], [2, 0], [2, 2], *[[3, 3]] * 5]),
        "times": ([1, 4, 9, 16, *[0] * 32], [[0, 1], [0, 3], [2, 0], [2, 2], *[[3, 4]] * 4, *[[4, 4]] * 28]),
        "duplicates": ([2, 5, 4, 0], [[0, 0], [0, 3], [1, 1], [3, 4]]),
        "zeros": ([2, 5, 4, 0], [[0, 0], [0, 3], [1, 1], [2, 0]]),
        "extract": ([1, 1, 0, 1, 1], twice.indices.tolist()),
        "shared": ([3, 6, 9, 12, 0, 0], mat.indices.tolist()),
        "layout": ([1, 2, 0, 0, 3, 4], [[0, 1], [0, 3], [1, 4], [1, 4], [2, 0], [2, 2]]),
        "not shared": ([1, 2, 3, 4, 0, 0, 2, 4, 6, 8, 0, 0], mat.indices.tolist() * 2)}
    found = made(mat, rows, twice)
    assert {name: entries(m) for name, m in found.items()} == expected
    assert entries(twice.sum_duplicates()) == ([2, 5, 4], [[0, 0], [0, 3], [1, 1]])
    assert entries(sparse.random_bcoo(jax.random.PRNGKey(1), (3, 4), nse=0.3))[1] == [
        [2, 3], [0, 3], [2, 2], [0, 2]]


def test_functions_are_what_the_methods_are():
    """What `lax` calls an operation, `sparse.bcoo_` is in front of."""
    mat = sparse.bcoo_fromdense(D, nse=5)
    pairs = jax.jit(lambda mat: {
        "transpose": (sparse.bcoo_transpose(mat, permutation=(1, 0)), mat.T),
        "sum": (sparse.bcoo_reduce_sum(mat, axes=(-1,)), mat.sum(1)),
        "reshape": (sparse.bcoo_reshape(mat, new_sizes=(4, 3), dimensions=(1, 0)), mat.T.reshape(4, 3)),
        "slice": (sparse.bcoo_slice(mat, start_indices=(0, 1), limit_indices=(3, 4), strides=(2, 1)),
                  mat[::2, 1:]),
        "squeeze": (sparse.bcoo_squeeze(mat[:, None], dimensions=(1,)), mat),
        "sort": (sparse.bcoo_sort_indices(mat.T), mat.T.sort_indices()),
        "duplicates": (sparse.bcoo_sum_duplicates(mat, nse=5), mat.sum_duplicates(nse=5)),
        "layout": (sparse.bcoo_update_layout(mat, n_dense=1, on_inefficient=None),
                   mat.update_layout(n_dense=1, on_inefficient=None)),
        "multiply": (sparse.bcoo_multiply_sparse(mat, mat[:1]), mat * mat[:1])})(mat)
    for name, (found, expected) in pairs.items():
        assert found.shape == expected.shape and entries(found) == entries(expected), name
    assert sparse.bcoo_multiply_dense(mat, D[0]).tolist() == (mat * D[0]).data.tolist()
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    assert entries(sparse.bcoo_gather(mat, np.array([[2]]), numbers, (1, 4))) == entries(mat[np.array([2])])
    for function in "matvec matmat fromdense todense".split():
        assert getattr(sparse, f"coo_{function}").__name__ == f"coo_{function}"
    of_coo = sparse.coo_fromdense(D)
    np.testing.assert_array_equal(sparse.coo_todense(of_coo), sparse.csr_todense(sparse.csr_fromdense(D)))
    np.testing.assert_array_equal(sparse.coo_matvec(of_coo, D[0]),
                                  sparse.csr_matvec(sparse.csr_fromdense(D), D[0]))
    np.testing.assert_array_equal(sparse.coo_matmat(of_coo, D.T),
                                  sparse.csr_matmat(sparse.csr_fromdense(D), D.T))


def test_vmap_and_loops_go_over_batch_axes():
    mat = BCOO.fromdense(CUBE, n_batch=1)
    np.testing.assert_allclose(jax.vmap(lambda m, v: m @ v)(mat, OTHER[:, 0]),
                               np.einsum("bij,bj->bi", CUBE, OTHER[:, 0]))
    turned = jax.jit(jax.vmap(lambda m: m.T))(mat)
    assert turned.shape == (2, 4, 3) and turned.n_batch == 1
    np.testing.assert_array_equal(turned.todense(), CUBE.swapaxes(1, 2))
    _, sums = lax.scan(lambda c, m: (c, m.todense().sum()), 0, mat)
    np.testing.assert_allclose(sums, CUBE.sum((1, 2)))
    np.testing.assert_allclose(jax.vmap(lambda v: BCOO.fromdense(D) @ v)(D), D @ D.T)
    # one set of numbers for the batch
    one = BCOO((np.ones((1, 2)), np.array([[[0], [1]], [[1], [1]]])), shape=(2, 3))
    np.testing.assert_array_equal(one.todense(), [[1, 1, 0], [0, 2, 0]])
    np.testing.assert_array_equal(one @ np.ones((3, 1), np.float32), [[2], [2]])
    np.testing.assert_array_equal(one.sum_duplicates().todense(), one.todense())
    assert jax.tree.map(jnp.shape, one).data == (1, 2)


def test_what_does_not_fit_raises_what_lax_raises():
    mat, cube = BCOO.fromdense(D, nse=4), BCOO.fromdense(CUBE, n_batch=1, nse=12)
    for error, words, function, arguments in [
            (TypeError, "rev dimensions must all be less", sparse.bcoo_rev, {"dimensions": (2,)}),
            (TypeError, "must be unique", sparse.bcoo_rev, {"dimensions": (0, 0)}),
            (TypeError, "isn't a permutation", sparse.bcoo_transpose, {"permutation": (0, 0)}),
            (ValueError, "out of bounds", sparse.bcoo_reduce_sum, {"axes": (2,)}),
            (ValueError, "not equal to one", sparse.bcoo_squeeze, {"dimensions": (0,)}),
            (TypeError, "limit_indices must be", sparse.bcoo_slice,
             {"start_indices": (0, 1), "limit_indices": (2, 9)}),
            (ValueError, "Length of slice indices", sparse.bcoo_dynamic_slice,
             {"start_indices": (1,), "slice_sizes": (2,)})]:
        with pytest.raises(error, match=words):
            function(mat, **arguments)
    for operands, dimension, words in [([mat, cube], 0, "different numbers of dimensions"),
                                       ([mat, mat], 2, "dimension out of bounds"),
                                       ([mat, mat.T], 0, "shapes that differ in dimensions")]:
        with pytest.raises(TypeError, match=words):
            sparse.bcoo_concatenate(operands, dimension=dimension)
    row = sparse.bcoo_squeeze(mat[None], dimensions=(0,))
    assert row.indices_sorted == mat[None].indices_sorted and row.unique_indices == mat[None].unique_indices
