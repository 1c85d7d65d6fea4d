"""Right-hand sides: vectors, matrices, batches of them; what is read of matrices, by values and by slopes."""
import numpy as np
import pytest
from matrices import s

import hlotrace as jax
import hlotrace.numpy as jnp


def test_right_hand_sides():
    """Vectors of a batch have one axis less than the matrices, and broadcast against them."""
    a, shapes = jnp.broadcast_to(jnp.eye(3), (5, 3, 3)), {(3,): (5, 3), (5, 3): (5, 3), (1, 3): (5, 3), (3, 4): (5, 3, 4)}
    for solve in (lambda a, b: s.cho_solve((a, True), b), lambda a, b: s.lu_solve(s.lu_factor(a), b), s.solve_triangular):
        for b, out in shapes.items():
            assert jax.eval_shape(solve, a, jnp.ones(b)).shape == out
        assert jax.eval_shape(solve, a[0], jnp.ones((5, 3, 4))).shape == (5, 3, 4)
    assert jax.eval_shape(s.solve, a, jnp.ones((3, 3))).shape == (5, 3, 3)


@pytest.mark.parametrize("call", [
    *(lambda a, f=f: f(a) for f in (s.cholesky, s.cho_factor, s.eigh, s.lu, s.lu_factor, s.svd, s.qr, s.polar)),
    lambda a: s.funm(a, jnp.exp), lambda a: s.solve_triangular(a, a), lambda a: s.cho_solve((a, True), a),
    lambda a: s.solve_sylvester(a, a, a), lambda a: s.qr_multiply(a, a), lambda a: s.rsf2csf(a, a),
    lambda a: s.expm_frechet(a, a)])
def test_lists_are_matrices(call):
    listed = [[2., 1.], [1., 3.]]
    assert jax.eval_shape(lambda: call(listed)) == jax.eval_shape(call, jnp.array(listed))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        s.cholesky,
        lambda a, lower: s.cho_factor(a, lower)[0],
        lambda a, lower: s.cho_solve((a, lower), jnp.ones(2)),
        lambda a, lower: s.solve_triangular(a, jnp.ones(2), lower=lower),
        lambda a, lower: s.solve(a, jnp.ones((2, 1)), lower=lower, assume_a="pos"),
    ],
)
def test_slopes_are_those_of_the_triangle_that_is_read(call, lower):
    read, other, step = jnp.array([[4.0, 1.0], [1.0, 3.0]]), (0, 1) if lower else (1, 0), 1e-2
    a = read.at[other].set(2.0)
    moves = [call(a + step * m, lower) - call(a - step * m, lower) for m in np.eye(4).reshape(4, 2, 2)]
    wanted = np.moveaxis(np.array(moves), 0, -1) / (2 * step)
    for jacobian in (jax.jacfwd, jax.jacrev):
        slope = jacobian(lambda a: call(a, lower))(a)
        np.testing.assert_allclose(slope.reshape(wanted.shape), wanted, atol=2e-4)
        assert not np.any(slope[(..., *other)])
