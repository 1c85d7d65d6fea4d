"""lineax: solvers, operators and their derivatives."""
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

MATRIX = jnp.array([[4., 1., 0.], [1., 3., .5], [0., .5, 2.]])
VECTOR = jnp.array([1., 2., 3.])
DEFINITE = lx.positive_semidefinite_tag


@pytest.mark.parametrize("solver", [
    lx.LU(), lx.QR(), lx.SVD(), lx.Cholesky(), lx.AutoLinearSolver(well_posed=True), lx.CG(1e-6, 1e-6),
    lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)], ids=lambda s: type(s).__name__)
def test_a_solver_and_its_derivative(solver):
    def solve(matrix, vector):
        return lx.linear_solve(lx.MatrixLinearOperator(matrix, DEFINITE), vector, solver).value
    want = np.linalg.solve(MATRIX, VECTOR)
    np.testing.assert_allclose(jax.jit(solve)(MATRIX, VECTOR), want, rtol=1e-4)
    batch = jax.vmap(solve, (None, 0))(MATRIX, jnp.stack([VECTOR, 2 * VECTOR]))
    np.testing.assert_allclose(batch, [want, 2 * want], rtol=1e-4)
    pulled = jax.grad(lambda b: solve(MATRIX, b).sum())(VECTOR)
    np.testing.assert_allclose(pulled, np.linalg.solve(MATRIX, np.ones(3)), rtol=1e-4)


def test_operators_without_a_matrix():
    stencil = lambda v: 2 * v - jnp.roll(v, 1) - jnp.roll(v, -1) + v
    operator = lx.FunctionLinearOperator(stencil, jax.eval_shape(lambda: VECTOR), DEFINITE)
    np.testing.assert_allclose(operator.as_matrix() @ VECTOR, stencil(VECTOR), rtol=1e-6)
    found = lx.linear_solve(operator, VECTOR, lx.CG(1e-6, 1e-6)).value
    np.testing.assert_allclose(stencil(found), VECTOR, rtol=1e-4)
    jacobian = lx.JacobianLinearOperator(lambda x, _: jnp.sin(x) * x[0], VECTOR)
    np.testing.assert_allclose(jacobian.T.as_matrix(), jax.jacobian(lambda x: jnp.sin(x) * x[0])(VECTOR).T, rtol=1e-5)


def test_structures():
    three = lx.TridiagonalLinearOperator(VECTOR + 4, jnp.ones(2), jnp.ones(2))
    np.testing.assert_allclose(three.as_matrix() @ lx.linear_solve(three, VECTOR).value, VECTOR, rtol=1e-4)
    assert lx.is_tridiagonal(three) and lx.is_diagonal(lx.DiagonalLinearOperator(VECTOR))
    two = lx.DiagonalLinearOperator(VECTOR) + lx.MatrixLinearOperator(MATRIX)
    np.testing.assert_allclose(two.mv(VECTOR), VECTOR ** 2 + MATRIX @ VECTOR, rtol=1e-6)


def test_least_squares_and_a_singular_matrix():
    tall = jnp.array([[1., 0.], [1., 1.], [1., 2.]])
    fitted = lx.linear_solve(lx.MatrixLinearOperator(tall), VECTOR, lx.AutoLinearSolver(well_posed=None)).value
    np.testing.assert_allclose(fitted, np.linalg.lstsq(tall, VECTOR)[0], rtol=1e-4)
    with pytest.raises(Exception, match="singular|infinite|nonfinite|non-finite"):
        lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((3, 3))), VECTOR, lx.LU())
