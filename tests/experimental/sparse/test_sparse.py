"""experimental.sparse, held against dense arrays: each layout is one compiled program of many operations."""
import numpy as np
import pytest
from scipy import sparse as scipy_sparse
from sparse_arrays import CUBE, OTHER, D, dense, same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO, BCSR, COO, CSC, CSR

NEW_LAYOUTS = [(0, 0), (1, 1), (3, 0)]
LAYOUTS = [(0, 0), (1, 1), (0, 3)]


def of_any_layout(x, np, to, other):
    """What every layout can do; `to` and `np` are identity and NumPy for the array itself."""
    return {
        "itself": to(x), "sums": [to(x.sum(a)).sum() for a in (0, 1, 2)], "sum0": to(x.sum(0)),
        "sum2": to(x.sum(2)),
        "sum12": to(x.sum((1, 2))), "keepdims": to(x.sum(1, keepdims=True)), "total": x.sum(),
        "scaled": to(-x * 2.0 / 4), "abs": to(abs(x)), "squared": to(x ** 2), "twice": to(x + x),
        "minus": to(x - 2 * x),
        "product": to(x * x), "with dense": to(x * other), "row": to(other[0, 0] * x),
        "quotient": to(x / (abs(other) + 1)),
        "slice": to(x[:1, 1:, ::2]), "element": to(x[1, 2]), "last": to(x[..., -1]), "new axis": to(x[None]),
        "joined": to(np.concatenate([x, 2 * x, x], 0)), "reshaped": to(x.reshape(2, 3, 4, 1)),
        "added to dense": x + other}


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_every_layout_does_what_arrays_do(n_batch, n_dense):
    mat = BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense, nse=None if n_batch + n_dense else 12)
    assert (mat.n_batch, mat.n_dense, mat.shape) == (n_batch, n_dense, CUBE.shape)

    class Sparse:
        concatenate = staticmethod(lambda xs, axis: sparse.bcoo_concatenate(xs, dimension=axis) if n_dense < 3
                                   else
                                   jnp.concatenate([dense(x) for x in xs], axis))
    found = jax.jit(lambda m: {
        **of_any_layout(m, Sparse, dense, OTHER), "sorted": dense(m.sort_indices()),
        "flipped": dense(sparse.bcoo_rev(m, (0, 2))),
        "duplicates": dense(m.sum_duplicates(nse=m.nse)), "extracted": dense(sparse.bcoo_extract(m, CUBE)),
        "wide": dense(sparse.bcoo_broadcast_in_dim(m, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3))),
        "dynamic": dense(sparse.bcoo_dynamic_slice(m, (1, 0, 2), (1, 2, 2))),
        **{f"layout {b} {d}": dense(m.update_layout(n_batch=b, n_dense=d, on_inefficient=None))
           for b, d in NEW_LAYOUTS}})(mat)
    expected = {**of_any_layout(CUBE, np, lambda x: x, OTHER), "sorted": CUBE, "flipped": CUBE[::-1, :, ::-1],
                "duplicates": CUBE, "extracted": CUBE,
                "wide": np.broadcast_to(CUBE, (5, 2, 3, 4)), "dynamic": CUBE[1:, :2, 2:],
                **{f"layout {b} {d}": CUBE for b, d in NEW_LAYOUTS}}
    same(found, expected)


def test_what_is_known_of_the_order_of_a_transposed_matrix():
    mat = COO.fromdense(D)
    assert [(m.rows_sorted, m.cols_sorted) for m in (mat, mat.T, mat.T.T)] == [
        (True, False), (False, True), (True, False)]


@pytest.mark.parametrize("kind", [COO, CSR, CSC, BCSR, BCOO])
def test_every_format_is_the_matrix_it_was_made_of(kind):
    scipy_csr = scipy_sparse.csr_array(D)
    name = kind.__name__.lower()

    @jax.jit
    def run(mat, full, v):
        return {"dense": mat.todense(), "mv": mat @ v, "mm": mat @ D.T, "same": dense(full), "len": len(mat)}
    for nse in (4, 6):
        found = run(kind.fromdense(D, nse=nse), kind.fromdense(D, nse=12), D[0])
        same(found, {"dense": D, "mv": scipy_csr @ D[0], "mm": scipy_csr @ D.T, "same": D, "len": 3})
    np.testing.assert_array_equal(sparse.eye(3, 4, 1, sparse_format=name).todense(), np.eye(3, 4, 1))
    np.testing.assert_array_equal(sparse.eye(3, 4, -1, sparse_format=name).todense(), np.eye(3, 4, -1))
    np.testing.assert_array_equal(sparse.empty((3, 4), sparse_format=name).todense(), np.zeros((3, 4)))
    if hasattr(kind, "from_scipy_sparse"):
        np.testing.assert_array_equal(kind.from_scipy_sparse(scipy_csr).todense(), D)
    if kind in (COO, CSR):
        mat = kind.fromdense(D)
        words = "matvec matmat fromdense todense".split()
        matvec, matmat, fromdense, todense = (getattr(sparse, f"{name}_{word}") for word in words)
        np.testing.assert_allclose(matvec(mat, D[:, 0], transpose=True), D.T @ D[:, 0])
        np.testing.assert_allclose(matmat(mat, D, transpose=True), D.T @ D)
        np.testing.assert_array_equal(todense(fromdense(D)), D)
        matvec, matmat, fromdense, todense = (getattr(sparse, f"{name}_{word}_p").bind for word in words)
        info = {"shape": (3, 4)} if kind is CSR else {"spinfo": jax.ShapeDtypeStruct((3, 4), float)}
        arrays = fromdense(D, nse=5, index_dtype=np.dtype("int32"))
        np.testing.assert_array_equal(todense(*arrays, **info), D)
        np.testing.assert_allclose(matvec(*arrays, D[:, 0], transpose=True, **info), D.T @ D[:, 0])
        np.testing.assert_allclose(matmat(*arrays, D.T, transpose=False, **info), D @ D.T)
    if kind is not BCSR:
        np.testing.assert_array_equal(kind.fromdense(D).T.todense(), D.T)
    assert jax.tree.map(lambda x: x * 2, kind.fromdense(D).data).sum() == 20
    if kind is not BCOO:
        with pytest.raises(NotImplementedError, match=rf"{kind.__name__}.__mul__ is not implemented"):
            kind.fromdense(D) * 2


def test_empty_and_scalar_arrays_and_dtypes():
    ones = [(np.ones(shape, np.float32), n) for shape in ((0, 3), (3, 0), ()) for n in range(len(shape) + 1)]
    mats = [BCOO.fromdense(x, n_batch=n, nse=1) for x, n in ones]
    found = jax.jit(lambda mats: [(m.todense(), m.sum(), m.sum_duplicates(nse=1).todense()) for m in mats])(
        mats)
    for (x, _), (itself, total, summed) in zip(ones, found, strict=True):
        np.testing.assert_array_equal(itself, x)
        np.testing.assert_array_equal(summed, x)
        assert total == x.sum()
    kinds = [np.dtype(d) for d in (np.int8, np.int32, np.complex64, jnp.bfloat16, np.float16)]
    typed = [D.astype(d) for d in kinds]
    products = jax.jit(lambda xs: [(m.todense(), m @ x[0]) for x in xs for m in [BCOO.fromdense(x, nse=5)]])(
        typed)
    for x, (itself, product) in zip(typed, products, strict=True):
        assert itself.dtype == product.dtype == x.dtype
        np.testing.assert_array_equal(itself, x)
        np.testing.assert_array_equal(product, np.array([5, 0, 0], x.dtype))
    assert BCOO.fromdense(D != 0, nse=4).todense().dtype == bool and BCOO.fromdense(D, nse=4).size == 12
    # one index out of bounds
    beyond = BCOO((np.array([1., 7, 2]), np.array([[0, 0], [1, 9], [1, 1]])), shape=(3, 4))
    rows, total, product = jax.jit(lambda m: (m.sum(1).todense(), m.sum(), m @ np.ones(4, np.float32)))(
        beyond)
    assert rows.tolist() == product.tolist() == [1, 2, 0] and total == 3


def test_what_does_not_fit_is_told():
    mat = BCOO.fromdense(D)
    rows = [
        (ValueError, r"Invalid data.shape=\(3,\) for nse=2",
         lambda: BCOO((np.ones(3), np.zeros((2, 2), int)), shape=(3, 4))),
        (TypeError, "indices must be integers, got float32",
         lambda: BCOO((np.ones(2), np.zeros((2, 2))), shape=(3, 4))),
        (ValueError, r"do not make an array of shape \(3,\)",
         lambda: BCOO((np.ones(2), np.zeros((2, 2), int)), shape=(3,))),
        (ValueError, r"plus 1: 3 for 3 rows",
         lambda: BCSR((np.ones(3), np.zeros(3, int), np.zeros(3, int)), shape=(3, 4))),
        (sparse.SparseEfficiencyError, "increasing n_batch from 0 to 1",
         lambda: mat.update_layout(n_batch=1)),
        (ValueError, "on_inefficient='no'", lambda: mat.update_layout(n_batch=1, on_inefficient="no")),
        (ValueError, "cannot be larger than mat.ndim=2", lambda: mat.update_layout(n_batch=3)),
        (ValueError, "nse must be specified", lambda: jax.jit(lambda m: m.sum_duplicates())(mat)),
        (jax.errors.ConcretizationTypeError, "nse must be specified", lambda: jax.jit(BCOO.fromdense)(D)),
        (NotImplementedError, "cannot permute batch axes", lambda: BCOO.fromdense(D, n_batch=1).T),
        (ValueError, "cannot mix batch and sparse", lambda: BCOO.fromdense(D, n_batch=1).reshape(12)),
        (TypeError, r"\(size 12\) into shape \(10,\)", lambda: mat.reshape(10)),
        (NotImplementedError, "silent densification", lambda: mat + 1),
        (NotImplementedError, "result is dense", lambda: mat == mat),
        (NotImplementedError, "dense", lambda: mat != D),
        (NotImplementedError, "comparisons of BCSR", lambda: D < BCSR.fromdense(D)),
        (NotImplementedError, "different batch/dense", lambda: mat + BCOO.fromdense(D, n_batch=1)),
        (NotImplementedError, "sparse rule for pow", lambda: mat ** 0.5),
        (ValueError, "to be a sequence of BCOO", lambda: sparse.bcoo_concatenate([mat, D], dimension=0)),
        (NotImplementedError, "contracting over dense", lambda: BCOO.fromdense(D, n_dense=1) @ D.T),
        (TypeError, r"expected a BCOO, got float32\[3,4\]", lambda: sparse.bcoo_todense(D)),
        (ValueError, "sparse_format must be 'bcsr'", lambda: sparse.eye(3, sparse_format="foo")),
        (NotImplementedError, "matmul between two sparse", lambda: COO.fromdense(D) @ COO.fromdense(D)),
        (NotImplementedError, "non-unit window_strides", lambda: sparse.bcoo_conv_general_dilated(
            D[None, :1], D[None, :1], window_strides=(2,), padding="SAME"))]
    for kind, words, run in rows:
        with pytest.raises(kind, match=words):
            run()
    with pytest.warns(sparse.SparseEfficiencyWarning):
        mat.update_layout(n_batch=1, on_inefficient="warn")
    assert issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    assert issubclass(BCOO, sparse.JAXSparse) and mat.block_until_ready() is mat
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)
