"""MPAX: linear and quadratic programs, dense and sparse, one and several."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpax import create_lp, create_qp, r2HPDHG, raPDHG

COSTS = jnp.array([-1., -2., -3.])
CONSTRAINTS = (jnp.array([[1., 0., 0.]]), jnp.array([0.5]), -jnp.array([[1., 1, 1], [1, 3, 0], [0, 1, 2]]),
               -jnp.array([4., 6, 5]), jnp.zeros(3), jnp.full(3, jnp.inf))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", [r2HPDHG, raPDHG])
def test_linear_programs(solver, sparse):
    program = create_lp(COSTS, *CONSTRAINTS, use_sparse_matrix=sparse)
    found = jax.jit(solver(eps_abs=1e-4, eps_rel=1e-4, verbose=False).optimize)(program)
    np.testing.assert_allclose(found.primal_solution, [0.5, 1.8333, 1.5833], atol=2e-3)
    assert float(found.primal_objective) == pytest.approx(-8.9167, abs=2e-3)


def test_several_programs():
    objectives = jax.vmap(lambda costs: raPDHG(verbose=False).optimize(
        create_lp(costs, *CONSTRAINTS)).primal_objective)(jnp.stack([COSTS, 2 * COSTS]))
    np.testing.assert_allclose(objectives, [-8.9167, -17.8333], atol=5e-3)


def test_quadratic_program():
    found = raPDHG(verbose=False).optimize(create_qp(jnp.eye(3), COSTS, *CONSTRAINTS))
    np.testing.assert_allclose(found.primal_solution, [0.5, 1.4, 1.8], atol=5e-3)
