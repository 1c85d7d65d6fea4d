"""Equations and eigenvalues of large matrices."""
import numpy as np
import pytest
from sparse_arrays import RNG, D

import hlotrace as jax
from hlotrace.core.config import override
from hlotrace.experimental import sparse
from hlotrace.experimental.sparse import BCOO, CSR


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
