"""experimental.sparse, held against dense arrays: each layout is one compiled program of many operations."""
import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.core.config import override
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO, BCSR, COO, CSC, CSR

RNG = np.random.default_rng(0)
D = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
CUBE = (RNG.integers(-3, 4, (2, 3, 4)) * RNG.integers(0, 2, (2, 3, 4))).astype(np.float32)
OTHER = RNG.integers(-3, 4, (2, 3, 4)).astype(np.float32)
WIDE = RNG.integers(-3, 4, (4, 5)).astype(np.float32)
NEW_LAYOUTS = [(0, 0), (1, 1), (3, 0)]
LAYOUTS = [(0, 0), (1, 1), (0, 3)]


def dense(x):
    return sparse.todense(x)


def same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def entries(mat):
    return mat.data.tolist(), mat.indices.tolist()


def of_any_layout(x, np, to, other):
    """What every layout can do; `to` and `np` are identity and NumPy for the array itself."""
    return {
        "itself": to(x), "sums": [to(x.sum(a)).sum() for a in (0, 1, 2)], "sum0": to(x.sum(0)), "sum2": to(x.sum(2)),
        "sum12": to(x.sum((1, 2))), "keepdims": to(x.sum(1, keepdims=True)), "total": x.sum(),
        "scaled": to(-x * 2.0 / 4), "abs": to(abs(x)), "squared": to(x ** 2), "twice": to(x + x), "minus": to(x - 2 * x),
        "product": to(x * x), "with dense": to(x * other), "row": to(other[0, 0] * x), "quotient": to(x / (abs(other) + 1)),
        "slice": to(x[:1, 1:, ::2]), "element": to(x[1, 2]), "last": to(x[..., -1]), "new axis": to(x[None]),
        "joined": to(np.concatenate([x, 2 * x, x], 0)), "reshaped": to(x.reshape(2, 3, 4, 1)),
        "added to dense": x + other}


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_every_layout_does_what_arrays_do(n_batch, n_dense):
    mat = BCOO.fromdense(CUBE, n_batch=n_batch, n_dense=n_dense, nse=None if n_batch + n_dense else 12)
    assert (mat.n_batch, mat.n_dense, mat.shape) == (n_batch, n_dense, CUBE.shape)

    class Sparse:
        concatenate = staticmethod(lambda xs, axis: sparse.bcoo_concatenate(xs, dimension=axis) if n_dense < 3 else
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


def test_what_is_stored_is_what_jax_stores():
    """Padding has the sizes of the axes as indices."""
    mat, rows = BCOO.fromdense(D, nse=6), BCOO.fromdense(D, n_batch=1)
    assert repr(mat) == "BCOO(float32[3, 4], nse=6)"
    assert repr(rows) == "BCOO(float32[3, 4], nse=2, n_batch=1)"
    assert mat.indices_sorted and mat.unique_indices
    assert entries(mat) == ([1, 2, 3, 4, 0, 0], [[0, 1], [0, 3], [2, 0], [2, 2], [3, 4], [3, 4]])
    assert entries(rows) == ([[1, 2], [0, 0], [3, 4]], [[[1], [3]], [[4], [4]], [[0], [2]]])
    assert entries(BCOO.fromdense(D, n_dense=1)) == ([[0, 1, 0, 2], [3, 0, 4, 0]], [[0], [2]])
    twice = BCOO((np.array([1., 2, 3, 0, 5]), np.array([[1, 1], [0, 0], [1, 1], [2, 0], [0, 3]])), shape=(3, 4))

    @jax.jit
    def made(mat, rows, twice):
        return {
            "slice": mat[1:], "row": mat[0], "gather": mat[jnp.array([0, 2])], "columns": mat[:, jnp.array([0, 2])],
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
        "extract": ([1, 1, 0, 1, 1], twice.indices.tolist()), "shared": ([3, 6, 9, 12, 0, 0], mat.indices.tolist()),
        "layout": ([1, 2, 0, 0, 3, 4], [[0, 1], [0, 3], [1, 4], [1, 4], [2, 0], [2, 2]]),
        "not shared": ([1, 2, 3, 4, 0, 0, 2, 4, 6, 8, 0, 0], mat.indices.tolist() * 2)}
    found = made(mat, rows, twice)
    assert {name: entries(m) for name, m in found.items()} == expected
    assert entries(twice.sum_duplicates()) == ([2, 5, 4], [[0, 0], [0, 3], [1, 1]])
    assert entries(sparse.random_bcoo(jax.random.PRNGKey(1), (3, 4), nse=0.3))[1] == [[2, 3], [0, 3], [2, 2], [0, 2]]


def test_products_with_dense_and_with_sparse_arrays():
    stack = [BCOO.fromdense(CUBE, n_batch=b, nse=12 if not b else None) for b in (0, 1)]
    flat = BCOO.fromdense(D)
    numbers = [(((2,), (2,)), ((), ())), (((1, 2), (1, 2)), ((), ())), (((), ()), ((), ())), (((0, 2), (0, 2)), ((), ()))]
    of_batch = [(((2,), (2,)), ((0,), (0,))), (((), ()), ((0,), (0,))), (((1,), (1,)), ((0,), (0,)))]

    def products(stack, flat, np_like):
        found = {"mv": flat @ D[0], "mm": flat @ D.T, "rmm": D.T @ flat, "vm": D[:, 0] @ flat}
        for i, mat in enumerate(stack):
            found[f"{i} wide"] = mat @ WIDE
            for j, n in enumerate(numbers + of_batch * (i > 0)):
                found[f"{i} {j}"] = np_like(mat, OTHER, dimension_numbers=n)
                found[f"{i} {j} swapped"] = np_like(OTHER, mat, dimension_numbers=n)
        found["sparse"] = np_like(stack[0], stack[0], dimension_numbers=numbers[0])
        for n in of_batch:
            found[f"sparse {n}"] = np_like(stack[1], stack[1], dimension_numbers=n)
        found["sparse mixed"] = np_like(stack[1], stack[0], dimension_numbers=numbers[0])
        found["sparse batches"] = np_like(stack[1], stack[1], dimension_numbers=(((1, 2), (1, 2)), ((), ())))
        return found
    found = jax.jit(lambda s, f: {k: dense(v) for k, v in products(s, f, sparse.bcoo_dot_general).items()})(stack, flat)
    of_dense = lambda a, b, dimension_numbers: lax.dot_general(a, b, dimension_numbers)
    expected = jax.jit(lambda s, f: products(s, f, of_dense))([CUBE] * 2, jnp.asarray(D))
    same(found, expected)
    places = np.array([[0, 2], [2, 2], [3, 3]])
    sampled = sparse.bcoo_dot_general_sampled(D, D, places, dimension_numbers=(((1,), (1,)), ((), ())))
    np.testing.assert_allclose(sampled, [0, 25, 0])
    for padding in ("SAME", "VALID", [(2, 1)]):
        lhs, rhs = np.array([[[0, 1, 2, 0]]], np.float32), np.array([[[1, 3]]], np.float32)
        found = sparse.bcoo_conv_general_dilated(BCOO.fromdense(lhs), BCOO.fromdense(rhs), window_strides=(1,),
                                                 padding=padding)
        np.testing.assert_allclose(found.todense(), lax.conv_general_dilated(lhs, rhs, (1,), padding))


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
    if kind is not BCSR:
        np.testing.assert_array_equal(kind.fromdense(D).T.todense(), D.T)
    assert jax.tree.map(lambda x: x * 2, kind.fromdense(D).data).sum() == 20
    if kind is not BCOO:
        with pytest.raises(NotImplementedError, match=rf"{kind.__name__}.__mul__ is not implemented"):
            kind.fromdense(D) * 2


def test_compressed_rows_in_batches():
    mat = BCSR.fromdense(CUBE, n_batch=1)
    assert mat.indptr.shape == (2, 4) and mat.n_sparse == 2 and mat.n_dense == 0
    found = jax.jit(lambda mat: {
        "dense": mat.todense(), "product": mat @ WIDE,
        "batch": sparse.bcsr_dot_general(mat, OTHER, dimension_numbers=(((2,), (2,)), ((0,), (0,)))),
        "joined": sparse.bcsr_concatenate([mat, mat], dimension=1).todense(),
        "data": sparse.bcsr_extract(mat.indices, mat.indptr, CUBE), "sin": sparse.sparsify(jnp.sin)(mat).todense(),
        "wide": sparse.bcsr_todense(sparse.bcsr_broadcast_in_dim(mat, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3))),
        "made": sparse.bcsr_fromdense(D, nse=6).todense()})(mat)
    same(found, {
        "dense": CUBE, "product": CUBE @ WIDE, "batch": np.einsum("bij,bkj->bik", CUBE, OTHER),
        "joined": np.concatenate([CUBE, CUBE], 1), "data": mat.data, "sin": np.sin(CUBE),
        "wide": np.broadcast_to(CUBE, (5, 2, 3, 4)), "made": D})
    doubled = BCSR((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert jax.jit(lambda m: m.sum_duplicates(nse=2))(doubled).data.tolist() == [2, 1]
    assert sparse.bcsr_sum_duplicates(doubled, nse=2).data.tolist() == [2, 1]
    padded = BCSR.fromdense(D, nse=6)
    assert padded.indices.tolist() == [1, 3, 0, 2, 4, 4] and padded.to_bcoo().indices.tolist()[-1] == [3, 4]


def test_functions_are_what_the_methods_are():
    """What `lax` calls an operation, `sparse.bcoo_` is in front of."""
    mat = sparse.bcoo_fromdense(D, nse=5)
    pairs = jax.jit(lambda mat: {
        "transpose": (sparse.bcoo_transpose(mat, permutation=(1, 0)), mat.T),
        "sum": (sparse.bcoo_reduce_sum(mat, axes=(-1,)), mat.sum(1)),
        "reshape": (sparse.bcoo_reshape(mat, new_sizes=(4, 3), dimensions=(1, 0)), mat.T.reshape(4, 3)),
        "slice": (sparse.bcoo_slice(mat, start_indices=(0, 1), limit_indices=(3, 4), strides=(2, 1)), mat[::2, 1:]),
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
    np.testing.assert_array_equal(sparse.coo_matvec(of_coo, D[0]), sparse.csr_matvec(sparse.csr_fromdense(D), D[0]))
    np.testing.assert_array_equal(sparse.coo_matmat(of_coo, D.T), sparse.csr_matmat(sparse.csr_fromdense(D), D.T))


def test_vmap_and_loops_go_over_batch_axes():
    mat = BCOO.fromdense(CUBE, n_batch=1)
    np.testing.assert_allclose(jax.vmap(lambda m, v: m @ v)(mat, OTHER[:, 0]), np.einsum("bij,bj->bi", CUBE, OTHER[:, 0]))
    turned = jax.jit(jax.vmap(lambda m: m.T))(mat)
    assert turned.shape == (2, 4, 3) and turned.n_batch == 1
    np.testing.assert_array_equal(turned.todense(), CUBE.swapaxes(1, 2))
    _, sums = lax.scan(lambda c, m: (c, m.todense().sum()), 0, mat)
    np.testing.assert_allclose(sums, CUBE.sum((1, 2)))
    np.testing.assert_allclose(jax.vmap(lambda v: BCOO.fromdense(D) @ v)(D), D @ D.T)
    one = BCOO((np.ones((1, 2)), np.array([[[0], [1]], [[1], [1]]])), shape=(2, 3))      # one set of numbers for the batch
    np.testing.assert_array_equal(one.todense(), [[1, 1, 0], [0, 2, 0]])
    np.testing.assert_array_equal(one @ np.ones((3, 1), np.float32), [[2], [2]])
    np.testing.assert_array_equal(one.sum_duplicates().todense(), one.todense())
    assert jax.tree.map(jnp.shape, one).data == (1, 2)


def test_sparsified_functions():
    mat, v = BCOO.fromdense(D), D[0]
    f = lambda x, v: {"product": x @ v, "sum": x.sum(), "sin": jnp.sin(x), "turned": x.T, "cubed": x ** 3,
                      "expm1": jnp.expm1(x[1:]), "dense": v + 1, "both": sparse.todense(x) + 1,
                      "joined": jnp.concatenate([x, x]), "stacked": jnp.stack([x, -x]),
                      "einsum": jnp.einsum("ij,kj->ik", x, x)}
    for use_tracer in (False, True):
        g = sparse.sparsify(f, use_tracer=use_tracer)
        found = (jax.jit(g) if use_tracer else g)(mat, v)
        assert isinstance(found["sin"], BCOO) and isinstance(found["einsum"], BCOO)
        same({k: dense(x) for k, x in found.items()}, jax.jit(f)(D, v))
    looped = sparse.sparsify(lambda p, x: (
        lax.cond(p, lambda x: x, lambda x: 2 * x, x), lax.fori_loop(0, 3, lambda i, x: x * 2, x),
        lax.scan(lambda c, row: (x @ c, row.sum()), v[:3] * 0 + 1, jnp.ones((2, 3)))[0] if x.shape[1] == 3 else 0,
        jax.jit(lambda x: x * 2)(x), jax.checkpoint(jnp.sin)(x)))
    taken, doubled, scanned, under_jit, checkpointed = jax.jit(looped)(False, BCOO.fromdense(D[:, :3]))
    np.testing.assert_array_equal(taken.todense(), 2 * D[:, :3])
    np.testing.assert_array_equal(doubled.todense(), 8 * D[:, :3])
    np.testing.assert_allclose(scanned, D[:, :3] @ (D[:, :3] @ np.ones(3)))
    np.testing.assert_array_equal(under_jit.todense(), taken.todense())
    np.testing.assert_allclose(checkpointed.todense(), np.sin(D[:, :3]), rtol=1e-6)
    seen = []
    sparse.sparsify(lambda x, y: seen.append((type(x), float(y))), use_tracer=True)(mat, 2.0)
    assert seen == [(sparse.SparseTracer, 2.0)]
    assert jax.jvp(sparse.todense, (v,), (v,))[1].tolist() == v.tolist() == jax.vmap(sparse.todense)(D)[0].tolist()
    for function, name in ((jnp.cos, "cos"), (lambda x: x > 0, "gt"), (lambda x: x + 1, "Addition"),
                           (lambda x: 1 / x, "Division"), (lambda x: x ** -1, "integer_pow"), (jnp.sort, "sort")):
        with pytest.raises(NotImplementedError, match=name):
            sparse.sparsify(function)(mat)


def test_derivatives_are_those_of_the_numbers_that_are_stored():
    with override("jax_enable_x64", True):
        mat, v = BCOO.fromdense(D.astype(float), nse=5), D[0].astype(float)
        loss = lambda m, v: jnp.sin((m * m).sum() + (m @ v).sum())
        of_dense = jax.grad(lambda x, v: jnp.sin((x * x).sum() + (x @ v).sum()), (0, 1))(D.astype(float), v)
        value, (of_mat, of_v) = jax.jit(sparse.value_and_grad(loss, argnums=(0, 1)))(mat, v)
        np.testing.assert_allclose(of_mat.data[:4], np.asarray(of_dense[0])[tuple(mat.indices[:4].T)])
        np.testing.assert_allclose(of_v, of_dense[1])
        np.testing.assert_allclose(value, loss(mat, v))
        assert (of_mat.indices == mat.indices).all()
        np.testing.assert_allclose(sparse.grad(lambda p: loss(p["m"], v))({"m": mat})["m"].data, of_mat.data)
        by_data = lambda data: (BCOO((data, mat.indices), shape=mat.shape) @ v).sum()
        np.testing.assert_allclose(jax.grad(by_data)(mat.data), jax.jacfwd(by_data)(mat.data))
        assert sparse.jacobian is sparse.jacrev
        for jacobian in (sparse.jacfwd, sparse.jacrev):
            found, aux = jacobian(lambda m, v: (m @ v, 7), has_aux=True)(mat, v)
            assert found.n_batch == 1 and aux == 7
            expected = np.einsum("ik,j->ikj", np.eye(3), v) * (D != 0)
            np.testing.assert_allclose(found.todense(), expected)
        of_csr = sparse.grad(lambda m: (m @ v).sum())(CSR.fromdense(D.astype(float)))
        np.testing.assert_allclose(of_csr.data, [v[1], v[3], v[0], v[2]])


def test_empty_and_scalar_arrays_and_dtypes():
    ones = [(np.ones(shape, np.float32), n) for shape in ((0, 3), (3, 0), ()) for n in range(len(shape) + 1)]
    mats = [BCOO.fromdense(x, n_batch=n, nse=1) for x, n in ones]
    found = jax.jit(lambda mats: [(m.todense(), m.sum(), m.sum_duplicates(nse=1).todense()) for m in mats])(mats)
    for (x, _), (itself, total, summed) in zip(ones, found, strict=True):
        np.testing.assert_array_equal(itself, x)
        np.testing.assert_array_equal(summed, x)
        assert total == x.sum()
    kinds = [np.dtype(d) for d in (np.int8, np.int32, np.complex64, jnp.bfloat16, np.float16)]
    typed = [D.astype(d) for d in kinds]
    products = jax.jit(lambda xs: [(m.todense(), m @ x[0]) for x in xs for m in [BCOO.fromdense(x, nse=5)]])(typed)
    for x, (itself, product) in zip(typed, products, strict=True):
        assert itself.dtype == product.dtype == x.dtype
        np.testing.assert_array_equal(itself, x)
        np.testing.assert_array_equal(product, np.array([5, 0, 0], x.dtype))
    assert BCOO.fromdense(D != 0, nse=4).todense().dtype == bool and BCOO.fromdense(D, nse=4).size == 12
    beyond = BCOO((np.array([1., 7, 2]), np.array([[0, 0], [1, 9], [1, 1]])), shape=(3, 4))     # one index out of bounds
    rows, total, product = jax.jit(lambda m: (m.sum(1).todense(), m.sum(), m @ np.ones(4, np.float32)))(beyond)
    assert rows.tolist() == product.tolist() == [1, 2, 0] and total == 3


def test_equations_and_eigenvalues_of_large_matrices():
    mat = D[:, :3] + 2 * np.eye(3, dtype=np.float32)
    csr = CSR.fromdense(mat)
    solve = lambda data, b: sparse.linalg.spsolve(data, csr.indices, csr.indptr, b)
    np.testing.assert_allclose(solve(csr.data, np.ones(3)), np.linalg.solve(mat, np.ones(3)), rtol=1e-5)
    found = jax.grad(lambda b: solve(csr.data, b).sum())(np.ones(3, np.float32))
    np.testing.assert_allclose(found, np.linalg.solve(mat.T, np.ones(3)), rtol=1e-5)
    a = RNG.normal(size=(40, 40))
    a = a @ a.T
    with override("jax_enable_x64", True):
        for matrix in (lambda x: a @ x, BCOO.fromdense(a)):
            values, vectors, steps = sparse.linalg.lobpcg_standard(matrix, RNG.normal(size=(40, 3)), m=200)
            np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:3], rtol=1e-9)
            np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-6)
            assert 0 < steps < 200
    with pytest.raises(ValueError, match=r"search dim \* 5 < matrix dim \(got 10, 6\)"):
        sparse.linalg.lobpcg_standard(np.eye(6, dtype=np.float32), np.ones((6, 2), np.float32))


def test_what_does_not_fit_is_told():
    mat = BCOO.fromdense(D)
    rows = [
        (ValueError, r"Invalid data.shape=\(3,\) for nse=2",
         lambda: BCOO((np.ones(3), np.zeros((2, 2), int)), shape=(3, 4))),
        (TypeError, "indices must be integers, got float32", lambda: BCOO((np.ones(2), np.zeros((2, 2))), shape=(3, 4))),
        (ValueError, r"do not make an array of shape \(3,\)", lambda: BCOO((np.ones(2), np.zeros((2, 2), int)), shape=(3,))),
        (ValueError, r"plus 1: 3 for 3 rows", lambda: BCSR((np.ones(3), np.zeros(3, int), np.zeros(3, int)), shape=(3, 4))),
        (sparse.SparseEfficiencyError, "increasing n_batch from 0 to 1", lambda: mat.update_layout(n_batch=1)),
        (ValueError, "on_inefficient='no'", lambda: mat.update_layout(n_batch=1, on_inefficient="no")),
        (ValueError, "cannot be larger than mat.ndim=2", lambda: mat.update_layout(n_batch=3)),
        (ValueError, "nse must be specified", lambda: jax.jit(lambda m: m.sum_duplicates())(mat)),
        (ValueError, "nse must be specified", lambda: jax.jit(BCOO.fromdense)(D)),
        (NotImplementedError, "cannot permute batch axes", lambda: BCOO.fromdense(D, n_batch=1).T),
        (ValueError, "cannot mix batch and sparse", lambda: BCOO.fromdense(D, n_batch=1).reshape(12)),
        (ValueError, r"12 elements, not 10", lambda: mat.reshape(10)),
        (NotImplementedError, "silent densification", lambda: mat + 1),
        (NotImplementedError, "result is dense", lambda: mat == mat), (NotImplementedError, "dense", lambda: mat != D),
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
