"""lax.linalg: matrices that are none, systems that do not fit, what a platform does not have."""
from mistakes import mistake

import hlotrace as jax
import hlotrace.numpy as jnp
from hlotrace.lax import linalg

A, B = jnp.eye(3), jnp.ones((4, 2))


@mistake(ValueError, "lax.linalg.cholesky", "(4, 2)", "B: float32[4,2]", advice="must have shape [..., n, n]")
def cholesky_of_a_matrix_that_is_not_square():
    return linalg.cholesky(B)  # <-


@mistake(ValueError, "lax.linalg.triangular_solve", "(3, 3)", "(4, 2)", "A: float32[3,3]", advice="must have 3 rows")
def right_hand_side_of_another_size():
    return linalg.triangular_solve(A, B, left_side=True)  # <-


@mistake(TypeError, "lax.linalg.triangular_solve", "(5,)", "(5,), (3,)", "(5, 3, 3)", advice="broadcast them")
def one_right_hand_side_for_a_batch():
    return linalg.triangular_solve(jnp.ones((5, 3, 3)), A, left_side=True)  # <-


@mistake(TypeError, "lax.linalg.lu", "int32", advice="cast with .astype(dtype)")
def lu_of_integers():
    return linalg.lu(jnp.ones((3, 3), int))  # <-


@mistake(NotImplementedError, "lax.linalg.qr", "bfloat16", "cpu", advice="cast with .astype(jnp.float32)")
def qr_of_a_narrow_float():
    return linalg.qr(B.astype(jnp.bfloat16))  # <-


@mistake(NotImplementedError, "jvp", "eigenvectors", advice="enable_eigvec_derivs=True")
def derivative_of_general_eigenvectors():
    return jax.jvp(linalg.eig, (A,), (A,))  # <-


@mistake(TypeError, "lax.linalg.tridiagonal_solve", "(3,)", "(2,)", advice="pad dl in front")
def diagonals_of_their_own_lengths():
    return linalg.tridiagonal_solve(jnp.ones(2), jnp.ones(3), jnp.ones(2), A)  # <-


@mistake(NotImplementedError, "lax.linalg.svd", "SvdAlgorithm.JACOBI", advice="may be None, DEFAULT, QR")
def an_algorithm_that_the_cpu_does_not_have():
    return linalg.svd(B, algorithm=linalg.SvdAlgorithm.JACOBI)  # <-
