"""Right-hand sides: vectors, matrices, batches of them."""
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
