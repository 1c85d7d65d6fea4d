"""Solvers, rotations, signals: systems, angles and segments that do not fit."""
from mistakes import mistake

import hlotrace.numpy as jnp
from hlotrace.scipy import optimize, signal
from hlotrace.scipy.sparse import linalg
from hlotrace.scipy.spatial.transform import Rotation


@mistake(ValueError, "scipy.sparse.linalg.cg", "(3, 3)", "(4,)", advice="whose first size is that of the matrix")
def right_side_of_another_size():
    return linalg.cg(jnp.eye(3), jnp.ones(4))  # <-


@mistake(ValueError, "scipy.optimize.minimize", "(2, 2)", advice="use x0.ravel()")
def minimum_over_a_matrix():
    return optimize.minimize(lambda x: (x ** 2).sum(), jnp.ones((2, 2)), method="BFGS")  # <-


@mistake(ValueError, "Rotation.from_euler", "'xyZ'", advice="X, Y, Z for axes that turn with the body")
def angles_about_axes_of_both_kinds():
    return Rotation.from_euler("xyZ", jnp.ones(3))  # <-


@mistake(ValueError, "scipy.signal.stft", "noverlap=64", "nperseg=64", advice="must be less than")
def segments_that_do_not_move():
    return signal.stft(jnp.ones(256), nperseg=64, noverlap=64)  # <-
