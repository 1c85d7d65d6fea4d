"""Mistakes with matrices: sizes that do not fit, vectors for matrices, what is not square, words that are not known."""
import numpy as np

import hlotrace as jax
import hlotrace.numpy as jnp
from mistakes import mistake

a = jnp.ones((3, 3))
tall = jnp.ones((4, 3))
batch = jnp.ones((2, 3, 3))
b = np.ones((2, 3), np.float32)


@mistake(ValueError, "jnp.linalg.solve(batch: float32[2,3,3], b: float32[2,3])", "(2, 3, 3)", advice="b[..., None]")
def vectors_of_a_batch():
    jnp.linalg.solve(batch, b)  # <-


@mistake(ValueError, "jnp.linalg.inv(tall: float32[4,3])", "(4, 3)", advice="[..., n, n]")
def inverse_of_a_matrix_that_is_not_square():
    jnp.linalg.inv(tall)  # <-


@mistake(ValueError, "jnp.linalg.norm(batch: float32[2,3,3], 2)", "axis=(0, 1, 2)", advice="two axes")
def norms_of_a_batch():
    jnp.linalg.norm(batch, 2)  # <-


@mistake(ValueError, "scipy.linalg.solve_triangular", "(3, 3)", "(4, 3)", advice="[..., 3, k]")
def right_hand_side_of_another_size():
    jax.scipy.linalg.solve_triangular(a, tall)  # <-


@mistake(NotImplementedError, "jnp.linalg.det", "bfloat16", advice="cast with .astype(jnp.float32)")
def determinant_in_bfloat16():
    jnp.linalg.det(jnp.ones((4, 4), "bfloat16"))  # <-


@mistake(ValueError, "scipy.linalg.solve", "'spd'", advice="'pos'")
def a_kind_of_matrix_by_another_name():
    jax.scipy.linalg.solve(a, a, assume_a="spd")  # <-


@mistake(ValueError, "jnp.linalg.multi_dot", "3 of array 1 and 4", advice="must match")
def a_chain_that_does_not_fit():
    jnp.linalg.multi_dot([tall, a, tall])  # <-
