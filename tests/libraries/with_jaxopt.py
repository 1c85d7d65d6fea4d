"""JAXopt: solvers, and derivatives through them."""
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import pytest

A = jnp.array(np.random.default_rng(0).normal(size=(12, 4)), jnp.float32)
B = A @ jnp.array([1., -2., 0.5, 3.]) + 0.1


def ridge(x, weight):
    return jnp.mean((A @ x - B) ** 2) + weight * jnp.sum(x ** 2)


def exact(weight):
    return np.linalg.solve(A.T @ A / 12 + weight * np.eye(4), A.T @ B / 12)


@pytest.mark.parametrize("solver", [
    jaxopt.GradientDescent(ridge, maxiter=2000, tol=1e-5), jaxopt.LBFGS(ridge, tol=1e-5), jaxopt.BFGS(ridge, tol=1e-5),
    jaxopt.NonlinearCG(ridge, tol=1e-5), jaxopt.ScipyMinimize(fun=ridge, method="l-bfgs-b", tol=1e-6)],
    ids=lambda s: type(s).__name__)
def test_a_minimum_and_its_derivative(solver):
    np.testing.assert_allclose(solver.run(jnp.zeros(4), 0.1).params, exact(0.1), atol=1e-3)
    slope = jax.jacobian(lambda w: solver.run(jnp.zeros(4), w).params)(0.1)
    np.testing.assert_allclose(slope, (exact(0.101) - exact(0.099)) / 0.002, rtol=2e-2, atol=2e-3)


def test_constraints_roots_and_batches():
    solver = jaxopt.ProjectedGradient(ridge, jaxopt.projection.projection_simplex, maxiter=500)
    found = solver.run(jnp.full(4, 0.25), 1.0, 0.1).params
    assert abs(float(found.sum()) - 1) < 1e-5 and float(found.min()) >= 0
    lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=500)
    weights = jax.vmap(lambda l: lasso.run(jnp.zeros(4), hyperparams_prox=l, data=(A, B)).params)(jnp.array([0.01, 100.]))
    assert float(jnp.abs(weights[0]).max()) > 1 and not weights[1].any()
    root = jaxopt.Bisection(lambda x, a: x ** 3 - a, 0, 10)
    np.testing.assert_allclose(jax.value_and_grad(lambda a: root.run(a=a).params)(8.), [2, 1 / 12], rtol=1e-3)
    newton = jaxopt.GaussNewton(lambda x: A @ x - B)
    np.testing.assert_allclose(newton.run(jnp.zeros(4)).params, exact(0), atol=1e-3)
