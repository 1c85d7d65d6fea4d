"""Functions of dense arrays, made functions of sparse ones."""
import numpy as np
import pytest
from sparse_arrays import D, dense, same

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace import lax
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO


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
        lax.scan(lambda c, row: (x @ c, row.sum()), v[:3] * 0 + 1, jnp.ones((2, 3)))[0] if x.shape[1] == 3
        else 0,
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
    assert jax.jvp(sparse.todense, (v,), (v,))[1].tolist() == v.tolist() == jax.vmap(sparse.todense)(D)[
        0].tolist()
    for function, name in ((jnp.cos, "cos"), (lambda x: x > 0, "gt"), (lambda x: x + 1, "Addition"),
                           (lambda x: 1 / x, "Division"), (lambda x: x ** -1, "integer_pow"),
                           (jnp.sort, "sort")):
        with pytest.raises(NotImplementedError, match=name):
            sparse.sparsify(function)(mat)
