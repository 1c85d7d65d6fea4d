"""Derivatives are those of the numbers that are stored."""
import numpy as np
from sparse_arrays import D

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.core.config import override
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO, CSR


def test_derivatives_are_those_of_the_numbers_that_are_stored():
    with override("jax_enable_x64", True):
        mat, v = BCOO.fromdense(D.astype(float), nse=5), D[0].astype(float)
        loss = lambda m, v: jnp.sin((m * m).sum() + (m @ v).sum())
        of_dense = jax.jit(jax.grad(lambda x, v: jnp.sin((x * x).sum() + (x @ v).sum()), (0, 1)))(
            D.astype(float), v)
        value, (of_mat, of_v) = jax.jit(sparse.value_and_grad(loss, argnums=(0, 1)))(mat, v)
        np.testing.assert_allclose(of_mat.data[:4], np.asarray(of_dense[0])[tuple(mat.indices[:4].T)])
        np.testing.assert_allclose(of_v, of_dense[1])
        np.testing.assert_allclose(value, loss(mat, v))
        assert (of_mat.indices == mat.indices).all()
        np.testing.assert_allclose(sparse.grad(lambda p: loss(p["m"], v))({"m": mat})["m"].data, of_mat.data)
        by_data = lambda data: (BCOO((data, mat.indices), shape=mat.shape) @ v).sum()
        both = jax.jit(lambda data: (jax.grad(by_data)(data), jax.jacfwd(by_data)(data)))
        np.testing.assert_allclose(*both(mat.data))
        assert sparse.jacobian is sparse.jacrev
        for jacobian in (sparse.jacfwd, sparse.jacrev):
            found, aux = jacobian(lambda m, v: (m @ v, 7), has_aux=True)(mat, v)
            assert found.n_batch == 1 and aux == 7
            expected = np.einsum("ik,j->ikj", np.eye(3), v) * (D != 0)
            np.testing.assert_allclose(found.todense(), expected)
        of_csr = sparse.grad(lambda m: (m @ v).sum())(CSR.fromdense(D.astype(float)))
        np.testing.assert_allclose(of_csr.data, [v[1], v[3], v[0], v[2]])
