"""lax.linalg: what its functions give in batches, of size zero and where a factorization fails, on each platform."""
import numpy as np
import pytest
import scipy.linalg
from mesh8 import line

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.primitive import Primitive
from hlotrace.lax import linalg
from hlotrace.primitives.linalg import eigen
from hlotrace.primitives.linalg.factorizations import geqp3_p
from hlotrace.runtime.mlir.bindings import parse_module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
NAN = np.full((2, 2), np.nan, np.float32)


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batches_are_factored_one_by_one():
    q, r = linalg.qr(X)
    near(q @ r, X)
    u, s, vh = linalg.svd(X[..., :3])
    near(u[..., :3] * s[:, None] @ vh, X[..., :3])
    near(u.mT @ u, np.stack([np.eye(4)] * 2))
    packed, _, order = linalg.lu(X)
    near((jnp.tril(packed, -1) + jnp.eye(4)) @ jnp.triu(packed), np.take_along_axis(X, np.asarray(order)[..., None], 1))
    v, w = linalg.eigh(X, sort_eigenvalues=False, implementation=linalg.EighImplementation.QR)
    near((X + X.mT) / 2 @ v, v * w[:, None])
    w, vl, vr = linalg.eig(X, implementation=linalg.EigImplementation.LAPACK)
    near(X @ vr, vr * w[:, None])
    near(vl.conj().mT @ X, w[:, :, None] * vl.conj().mT)


@pytest.mark.parametrize("call, shapes", [
    (lambda x: linalg.cholesky(x[:0, :0]), [(0, 0)]), (lambda x: linalg.lu(x[:, :0]), [(4, 0), (0,), (4,)]),
    (lambda x: linalg.qr(x[:, :0]), [(4, 4), (4, 0)]), (lambda x: linalg.qr(x[:0], pivoting=True), [(0, 0), (0, 4), (4,)]),
    (lambda x: linalg.svd(x[:0]), [(0, 0), (0,), (4, 4)]), (lambda x: linalg.eigh(x[:0, :0]), [(0, 0), (0,)]),
    (lambda x: linalg.eig(x[:0, :0]), [(0,), (0, 0), (0, 0)]),
    (lambda x: linalg.triangular_solve(x, x[:0]), [(0, 4)]),
])
def test_matrices_of_size_zero(call, shapes):
    found = jax.tree.leaves(call(X[0]))
    assert [x.shape for x in found] == shapes
    for x in found:
        if x.ndim == 2 and x.size:
            near(x, np.eye(4))
        elif x.size:
            np.testing.assert_array_equal(x, np.arange(4))


@pytest.mark.parametrize("call", [
    lambda: jnp.tril(linalg.cholesky(-X[0])) + 0 * jnp.tril(X[0]), lambda: linalg.eigh(NAN)[0], lambda: linalg.svd(NAN)[0],
    lambda: abs(linalg.eig(NAN)[1])])
def test_a_factorization_that_fails_is_nan(call):
    x = call()
    assert np.isnan(x[np.tril_indices(2)]).all()


def test_one_matrix_that_fails_spoils_no_other():
    x = np.stack([np.eye(2, dtype=np.float32), -np.eye(2, dtype=np.float32)])
    for factor, scale in zip(jax.jvp(linalg.cholesky, (x,), (x,)), (1, 0.5)):
        near(factor[0], scale * np.eye(2))
        np.testing.assert_array_equal(np.isnan(factor[1]), np.tri(2))


def test_where_eigenvalues_meet_their_own_derivatives_are_finite():
    """As JAX has it: those of eigenvectors are not."""
    near(jax.grad(lambda x: (linalg.eigh(x)[1] ** 2).sum())(jnp.eye(3)), 2 * np.eye(3))
    near(jax.grad(lambda x: linalg.svd(x, compute_uv=False).sum())(jnp.eye(3)), np.eye(3))
    assert np.isnan(jax.grad(lambda x: linalg.eigh(x)[0][0, 0])(jnp.eye(3))).any()


@pytest.mark.parametrize("call", [linalg.cholesky, lambda x, **how: linalg.eigh(x, **how)[1]])
def test_the_triangle_that_is_not_read_has_no_gradient(call):
    x = X[0] @ X[0].T
    gradient = jax.jit(jax.grad(lambda x: call(x, symmetrize_input=False).sum()))(x)
    symmetric = jax.jit(jax.grad(lambda x: call(x).sum()))(x)
    near(gradient, np.tril(symmetric + symmetric.T) - np.diag(np.diag(symmetric)))


def test_derivatives_of_a_wide_pivoted_qr():
    """Of x = Q R: the columns of R beyond the square ones, too."""
    def pushed(x, dx):
        values, (dq, dr, _) = jax.jvp(lambda x: linalg.qr(x, pivoting=True), (x,), (dx,))
        return values, (dq, dr)
    x, dx = X[0, :2], X[1, :2]
    (q, r, order), (dq, dr) = jax.jit(pushed)(x, dx)
    near(dq @ r + q @ dr, dx[:, order])


def test_a_part_of_the_eigenvalues():
    (v, w), (some_v, some_w) = linalg.eigh(X), linalg.eigh(X, subset_by_index=(1, 3))
    near(some_w, w[:, 1:3])
    near(some_v, v[..., 1:3])


def test_vectors_on_the_right_hand_side():
    b = np.array([1, 2, 3, 4], np.float32)
    near(linalg.triangular_solve(X[0], b), np.linalg.solve(np.triu(X[0]).T, b))
    near(linalg.triangular_solve(X[0], b, left_side=True, lower=True), np.linalg.solve(np.tril(X[0]), b))


def test_one_matrix_for_all_right_hand_sides_is_solved_with_once():
    program = jax.make_jaxpr(jax.vmap(lambda a, b: linalg.triangular_solve(a, b, left_side=True), (None, 0)))(X[0], X)
    eqn, = (e for e in program.eqns if e.primitive is linalg.triangular_solve_p)
    assert eqn.invars[1].aval.shape == (4, 8)


def test_pivots_are_exchanges_in_turn():
    order = linalg.lu_pivots_to_permutation(np.array([[1, 1], [2, 2]], np.int32), 3)
    np.testing.assert_array_equal(order, [[1, 0, 2], [2, 0, 1]])


def test_products_of_reflectors():
    q = linalg.householder_product(np.eye(3, 2, dtype=np.float32), np.array([2, 0], np.float32))
    near(q, np.diag([-1.0, 1, 1])[:, :2])


BY_CUSOLVER = {"compute_left_eigenvectors": False, "implementation": linalg.EigImplementation.CUSOLVER}


@pytest.mark.parametrize("call, words", [
    (lambda x: linalg.svd(x), "gesvdj"), (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), "gesvd_ffi"),
    (lambda x: linalg.svd(x[:, :2], algorithm=linalg.SvdAlgorithm.QR), "transposed = true"),
    (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.POLAR), "gesvdp"),
    (lambda x: linalg.qr(x, pivoting=True, use_magma=True), 'magma = "on"'), (linalg.eig, "cuhybrid_eig_real"),
    (lambda x: linalg.eig(x, **BY_CUSOLVER), "cusolver_geev_ffi"),
    (lambda x: linalg.eig(x, **BY_CUSOLVER, compute_right_eigenvectors=False), "right = false"),
    (lambda x: linalg.triangular_solve(x, x), "stablehlo.triangular_solve")])
def test_algorithms_on_cuda(call, words):
    assert words in jax.jit(call).trace(X).lower(platform="cuda").as_text()


def test_eigenvectors_of_real_matrices_are_unpacked():
    x = np.random.default_rng(0).normal(size=(9, 9)).astype(np.float32)
    real, imaginary, _, packed, _ = scipy.linalg.lapack.sgeev(x)
    w = (real + 1j * imaginary).astype(np.complex64)
    assert (imaginary != 0).any() and (imaginary == 0).any()
    v = jax.jit(eigen._unpacked)(packed, w)
    near(x @ v, v * w)


@pytest.mark.parametrize("shape, u", [((40, 33), "40x33"), ((33, 40), "33x33"), ((40, 32), "40x40"), ((3, 9, 5), "3x9x9")])
def test_on_cuda_no_more_singular_vectors_are_computed_than_asked_for(shape, u):
    """But where cuSOLVER's kernel for small matrices knows only square U and V."""
    text = jax.jit(lambda x: linalg.svd(x, full_matrices=False)).trace(np.zeros(shape, np.float32)).lower(
        platform="cuda").as_text()
    call = next(line for line in text.splitlines() if "gesvdj" in line)
    assert call.rpartition("->")[2].split(", ")[2] == f"tensor<{u}xf32>"
    assert ("full_matrices = false" in call) == (min(shape) > 32)


@pytest.mark.parametrize("call, words", [
    (lambda: linalg.svd(X, algorithm=linalg.SvdAlgorithm.JACOBI), "SvdAlgorithm.JACOBI is not implemented on the CPU"),
    (lambda: linalg.eigh(X, implementation=linalg.EighImplementation.QDWH), "implementation=EighImplementation.QDWH"),
    (lambda: jax.jit(lambda x: linalg.eig(x, implementation=BY_CUSOLVER["implementation"])).trace(X).lower(
        platform="cuda").as_text(), "left eigenvectors are not supported by cuSOLVER"),
    (lambda: jax.jacfwd(linalg.eig)(X[0]), "enable_eigvec_derivs=True"),
    (lambda: jax.jacfwd(linalg.svd)(X[0, :2]), "pass full_matrices=False"),
    (lambda: jax.jacfwd(lambda x: linalg.eigh(x, subset_by_index=(0, 2)))(X[0]), "compute all, and take a part"),
    (lambda: jax.jit(linalg.schur).trace(X).lower(platform="tpu").as_text(), "only implemented on the CPU; convert"),
    (lambda: linalg.schur(X, select_callable=abs), "select_callable="),
])
def test_what_is_not_there_is_said(call, words):
    with pytest.raises(NotImplementedError, match=words.replace("(", r"\(")):
        call()


# --- what each platform does ------------------------------------------------------------------------------------

SQUARE, TALL, VECTOR = X, X[..., :2], X[:, 0]
EVERY_FUNCTION = {
    "cholesky": (linalg.cholesky, SQUARE), "cholesky_update": (linalg.cholesky_update, SQUARE[0], VECTOR[0]),
    "symmetric_product": (linalg.symmetric_product, TALL, SQUARE), "lu": (linalg.lu, TALL), "qr": (linalg.qr, TALL),
    "pivoted qr": (lambda x: linalg.qr(x, pivoting=True), TALL), "eigh": (linalg.eigh, SQUARE), "eig": (linalg.eig, SQUARE),
    "svd": (linalg.svd, TALL), "hessenberg": (linalg.hessenberg, SQUARE), "tridiagonal": (linalg.tridiagonal, SQUARE),
    "schur": (lambda x: linalg.schur(x + 0j), SQUARE), "ormqr": (linalg.ormqr, TALL, VECTOR[:, :2], SQUARE),
    "tridiagonal_solve": (linalg.tridiagonal_solve, VECTOR, VECTOR, VECTOR, TALL), "qdwh": (linalg.qdwh, TALL),
    "triangular_solve": (linalg.triangular_solve, SQUARE, SQUARE)}


@pytest.mark.parametrize("platform", ["cuda", "tpu", "rocm"])
def test_each_platform_has_a_lowering(platform):
    """Of batches and of single matrices; that the text is right says the verifier of operations, layouts among them."""
    for call, *operands in EVERY_FUNCTION.values():
        for values in [operands, *([[x[0] for x in operands]] if operands[0].ndim > 2 else [])]:
            text = jax.jit(call).trace(*values).lower(platform=platform).as_text()
            assert "lapack" not in text and parse_module(text).operation.verify()


@pytest.mark.parametrize("name, target, layouts", [
    ("lu", "cu_lu_pivots_to_permutation", ["1, 0"]), ("cholesky_update", "cu_cholesky_update_ffi", ["1, 0", "0"]),
    ("symmetric_product", "cusolver_syrk_ffi", ["2, 1, 0", "2, 1, 0", "", ""]),
    ("lu", "cusolver_getrf_ffi", ["1, 2, 0"]), ("tridiagonal_solve", "cusparse_gtsv2_ffi", [*["1, 0"] * 3, "1, 2, 0"])])
def test_kernels_of_cuda_are_told_how_matrices_lie(name, target, layouts):
    """As JAX has it: LAPACK's kin read column after column, others row after row."""
    call, *operands = EVERY_FUNCTION[name]
    text = jax.jit(call).trace(*operands).lower(platform="cuda").as_text()
    wanted = ", ".join(f"dense<[{order}]> : tensor<{len(order[::3])}xindex>" for order in layouts)
    assert f"operand_layouts = [{wanted}]".replace("[]>", ">") in text[text.index(f"@{target}"):]


def by_loops(primitive, *operands, **params):
    """What the rule of a platform without kernels computes, compiled for this one."""
    rule = dict(primitive.lower)[None]
    loops = Primitive(f"{primitive}_by_loops", abstract_eval=primitive.abstract_eval, multiple_results=primitive.multiple_results, lower=rule)
    return jax.jit(lambda *xs: (loops.bind(*xs, **params), primitive.bind(*xs, **params)))(*operands)


@pytest.mark.parametrize("primitive, operands, params", [
    (linalg.lu_p, (TALL + 1j * TALL,), {}), (geqp3_p, (X,), {"use_magma": None}),
    (linalg.hessenberg_p, (X + 1j * X.mT,), {}),
    (linalg.ormqr_p, (TALL, VECTOR[:, :2], X), {"left": False, "transpose": True}),
    (linalg.tridiagonal_solve_p, (VECTOR, VECTOR + 4, VECTOR, X), {"perturb_singular": False}),
], ids=lambda value: str(value) if value is not None and not isinstance(value, (tuple, dict)) else "")
def test_loops_give_what_kernels_give(primitive, operands, params):
    for got, want in zip(*map(jax.tree.leaves, by_loops(primitive, *operands, **params))):
        near(got, want)


@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal_forms_by_loops(lower):
    (packed, *got), (wanted, *want) = by_loops(linalg.tridiagonal_p, X + 1j * X.swapaxes(1, 2), lower=lower)
    triangle = jnp.tril if lower else jnp.triu
    near(triangle(packed), triangle(wanted))
    for g, w in zip(got, want):
        near(g, w)


def test_the_qr_algorithm_by_loops():
    z = np.eye(4)[[1, 2, 3, 0]].astype(np.complex64)        # all eigenvalues have one size: shifts alone part them
    (t, q), _ = by_loops(linalg.schur_p, z, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)
    near(q @ t @ q.conj().mT, z)
    near(jnp.tril(t, -1), 0 * z)
    (w, vl, vr), _ = by_loops(linalg.eig_p, X[0], compute_left_eigenvectors=True, compute_right_eigenvectors=True,
                              enable_eigvec_derivs=False, implementation=None)
    near(X[0] @ vr, vr * w)
    near(vl.conj().T @ X[0], w[:, None] * vl.conj().T)
    near(jnp.sum(abs(vr) ** 2, 0), np.ones(4))


def test_singular_values_by_polar_decompositions():
    x = np.stack([X[0, :2], 0 * X[0, :2] + [[1], [2]]])      # the second has rank one
    (s, u, vh), (want, *_) = by_loops(linalg.svd_p, x, full_matrices=True, compute_uv=True, subset_by_index=None,
                                      algorithm=None)
    near(s, want)
    near((u * s[:, None]) @ vh[:, :2], x)
    near(vh @ vh.mT, np.stack([np.eye(4)] * 2))


def test_polar_decomposition():
    x, tall = X + X.mT, X[0, :, :3]
    padded = np.pad(tall, ((0, 2), (0, 1)), constant_values=7)

    def several(m):
        signs = jax.vmap(lambda x: linalg.qdwh(x, is_hermitian=True)[0])(x)
        return signs, linalg.qdwh(X[0], max_iterations=1, eps=1e-3), linalg.qdwh(padded, dynamic_shape=(m, 3))[0]
    u, h, steps, converged = linalg.qdwh(tall)
    near(u @ h, tall)
    near(u.T @ u, np.eye(3))
    near(h, h.T)
    assert converged and steps == 4 and steps.dtype == np.int32
    signs, (_, _, steps, converged), cut = jax.jit(several)(4)
    np.testing.assert_array_equal(signs, signs.mT)
    near(signs @ signs, np.stack([np.eye(4)] * 2))
    assert steps == 1 and not converged
    near(cut, np.pad(u, ((0, 2), (0, 1))))


# --- condensed forms, updates, products -------------------------------------------------------------------------

def test_schur_forms():
    t, q = linalg.schur(X)
    near(q @ t @ q.mT, X)
    assert len(linalg.schur(X, compute_schur_vectors=False)) == 1


def test_results_of_kernels_are_lists():
    for function in (linalg.schur, linalg.hessenberg, linalg.tridiagonal, linalg.eig, jax.scipy.linalg.schur):
        assert type(function(X[0])) is list


def test_reflectors_of_a_hessenberg_form_make_its_q():
    h, taus = linalg.hessenberg(X[0])
    q = np.eye(4, dtype=np.float32)
    q[1:, 1:] = linalg.householder_product(h[1:, :-1], taus)
    near(q @ jnp.triu(h, -1) @ q.T, X[0])


def test_tridiagonal_forms_have_the_same_eigenvalues():
    x = X[0] + X[0].T
    for lower in (True, False):
        _, d, e, _ = linalg.tridiagonal(x, lower=lower)
        near(np.linalg.eigvalsh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1)), np.linalg.eigvalsh(x))


def test_products_with_q_are_those_of_qr():
    packed, taus = np.linalg.qr(X[0, :, :2], "raw")
    q = linalg.qr(X[0, :, :2])[0]
    near(linalg.ormqr(packed.T, taus, X[1]), q @ X[1])
    near(linalg.ormqr(packed.T, taus, X[1], left=False, transpose=True), X[1] @ q.T)
    with pytest.raises(NotImplementedError, match="with respect to c alone"):
        jax.jacfwd(lambda a: linalg.ormqr(a, taus, X[1]))(packed.T)


def test_symmetric_products_are_made_symmetric():
    got = linalg.symmetric_product(X[..., :2], X, alpha=2.0, beta=0.5, symmetrize_output=True)
    want = np.tril(2 * X[..., :2] @ X[..., :2].swapaxes(1, 2) + 0.5 * X)
    near(got, want + np.tril(want, -1).swapaxes(1, 2))


def test_singular_tridiagonal_systems():
    zero = np.zeros(3, np.float32)
    assert np.isnan(linalg.tridiagonal_solve(zero, zero, zero, np.ones((3, 1), np.float32))).all()
    d = np.ones(3, np.float32)
    assert np.isfinite(linalg.tridiagonal_solve(d, zero, d, np.ones((3, 1), np.float32), perturb_singular=True)).all()
    with pytest.raises(NotImplementedError, match="perturb_singular=True is only implemented on"):
        jax.jit(lambda d: linalg.tridiagonal_solve(d, d, d, d[:, None], perturb_singular=True)).trace(d).lower(
            platform="tpu").as_text()


# --- over devices -----------------------------------------------------------------------------------------------

def everything(x):
    return (linalg.lu(x), linalg.qr(x, pivoting=True), linalg.svd(x, compute_uv=False), linalg.eigh(x)[1],
            linalg.cholesky(x @ x.mT), linalg.triangular_solve(x, x), linalg.eig(x)[0],
            linalg.tridiagonal_solve(x[:, 0], x[:, 1], x[:, 2], x))


def test_devices_factor_their_part_of_a_batch():
    x = np.tile(X, (4, 1, 1))
    lies = jax.NamedSharding(line(), jax.P("x"))
    compiled = jax.jit(everything, in_shardings=lies, out_shardings=lies).lower(x).compile()
    assert "all-gather" not in compiled.as_text()
    each = jax.jit(jax.shard_map(everything, mesh=line(), in_specs=jax.P("x"), out_specs=jax.P("x")))
    for got, mapped, want in zip(*map(jax.tree.leaves, (compiled(x), each(x), jax.jit(everything)(x)))):
        near(got, want)
        near(mapped, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", [
    *[lambda a, left=left, lower=lower, trans=trans: linalg.triangular_solve(a, a, left_side=left, lower=lower,
                                                                             transpose_a=trans)
      for left in (True, False) for lower in (True, False) for trans in (True, False)],
    lambda a: linalg.symmetric_product(a, a, beta=2.), lambda a: jnp.linalg.slogdet(a)[1],
    lambda a: jax.scipy.linalg.solve_triangular(a, a[0]), lambda a: jax.scipy.linalg.lu_solve((a, jnp.arange(2)), a[0])])
def test_halves_are_solved_in_float32(call, dtype):
    a = jnp.array([[4, 1], [1, 2]], dtype)
    got = call(a)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, call(a.astype("float32")).astype(dtype))
    slope, wide = jax.grad(lambda a: call(a).sum())(a), jax.grad(lambda a: call(a).sum())(a.astype("float32"))
    assert slope.dtype == dtype
    np.testing.assert_allclose(slope.astype("float32"), wide, 0.02, 0.02)


def test_integers_that_are_symmetrized_are_floats():
    a = jnp.array([[4, 1], [1, 2]])
    near(linalg.cholesky(a), linalg.cholesky(a.astype("float32")))
    near(linalg.eigh(a)[1], linalg.eigh(a.astype("float32"))[1])


@pytest.mark.parametrize("function", [jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.eigh])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_have_types_and_no_kernels(function, dtype):
    wide = jax.eval_shape(function, jax.ShapeDtypeStruct((3, 3), "float32"))
    half = jax.eval_shape(function, jax.ShapeDtypeStruct((3, 3), dtype))
    assert [x.shape for x in jax.tree.leaves(half)] == [x.shape for x in jax.tree.leaves(wide)]
    assert {x.dtype.name for x in jax.tree.leaves(half)} == {dtype}
    assert jax.tree.leaves(function(jnp.zeros((0, 0), dtype)))[0].shape[0] == 0
    with pytest.raises(NotImplementedError, match=f"dtype {dtype} has no kernel on platform cpu"):
        function(jnp.eye(3, dtype=dtype))
