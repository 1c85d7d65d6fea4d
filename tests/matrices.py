"""Matrices of which tests of linear algebra are made."""
import numpy as np

import hlotrace as jax

s = jax.scipy.linalg
RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
M = A[0, :, :3]
V = A[1, 0]
Z = (RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))).astype(np.complex64)
H = Z @ Z.conj().T + np.eye(4, dtype=np.complex64)
S = A[0] @ A[0].T + np.eye(4, dtype=np.float32)
