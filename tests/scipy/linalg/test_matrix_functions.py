"""The exponential of large and of many matrices; equations without a solution."""
import numpy as np
from equal import same
from matrices import s

import hlotrace as jax
import hlotrace.numpy as jnp


def test_expm_of_large_and_of_many():
    norms = np.array([1e-3, 1.0, 30.0, 3e6], np.float32)
    many = norms[:, None, None] * np.diag([-1, -2, 0]).astype(np.float32)

    @jax.jit
    def both(many):
        out, back = jax.vjp(lambda x: s.expm(x, upper_triangular=True), many)
        return out, back(jnp.broadcast_to(jnp.diag(jnp.array([1.0, 0, 0])), many.shape))[0]
    (out, _), (_, gradient) = both(many), both(many[:3])
    same(out[:3], np.exp(many[:3]) * np.eye(3), 100, "float32")
    assert np.isnan(out[3]).all()
    for size, squarings, value in (
        (6, 0, np.exp(6)),
        (8, 0, np.nan),
        (15, 1, np.exp(15)),
        (16, 1, np.nan),
    ):  # as in JAX
        same(s.expm(jnp.full((1, 1), size, float), max_squarings=squarings), [[value]], 10, "float32")
    same(gradient[:, 0, 0], np.exp(-norms[:3]), 100)
    assert jax.eval_shape(s.expm, jnp.zeros((0, 0))).shape == (0, 0)
    same(s.expm(jnp.array([[2]])), [[np.exp(2)]])
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        same(s.expm(jnp.zeros((2, 2))), np.eye(2, dtype="float32"))


@jax.jit
def without_a_solution():
    nilpotent, one = jnp.eye(2, k=1), jnp.eye(2)
    return (s.sqrtm(nilpotent), s.sqrtm(0 * one), s.solve_sylvester(one, -one, one), s.funm(one, jnp.exp, disp=False)[0],
            s.funm(nilpotent, jnp.exp, disp=False)[1])


def test_equations_without_a_solution():
    root, zero, unsolved, exponential, error = without_a_solution()
    assert np.isnan(root).any() and np.isnan(unsolved).all() and not zero.any() and error == 1
    same(exponential, np.eye(2) * np.exp(1) + 0j)
