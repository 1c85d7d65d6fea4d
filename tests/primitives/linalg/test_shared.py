"""Matrices made of a few numbers: entries as SciPy's, batches, dtypes, derivatives, what is refused."""
import numpy as np
import pytest
import scipy.linalg
from equal import same, same_as_numpy

import hlotrace as jax
import hlotrace.numpy as jnp

V = np.array([2, -1, 3, 5], np.float32)
W = np.array([2, 7, 4], np.float32)
C = np.array([1, 2j, 3 - 1j], np.complex64)
N = np.array([1, 2, 4], np.int32)

SAME = [
    lambda s: s.toeplitz(V), lambda s: s.toeplitz(V, W), lambda s: s.toeplitz(C), lambda s: s.toeplitz(N),
    lambda s: s.hankel(V), lambda s: s.hankel(V, W), lambda s: s.circulant(C), lambda s: s.companion(V),
    *(lambda s, v=v, n=n, mode=mode: s.convolution_matrix(v, n, mode)
      for v, n in ((V, 3), (N, 5)) for mode in ("full", "same", "valid")),
    lambda s: s.block_diag(V, np.float32(3), np.ones((2, 1), np.float32), np.ones((0, 2), np.float32)),
    lambda s: s.leslie(V, W), lambda s: s.fiedler(V), lambda s: s.fiedler(N), lambda s: s.fiedler_companion(V),
    lambda s: s.fiedler_companion(np.array([3, 1, 4, 1, 5, 9], np.float32)), lambda s: s.dft(5), lambda s: s.dft(4, "sqrtn"),
    lambda s: s.dft(3, "n"), lambda s: s.hadamard(8), lambda s: s.helmert(4), lambda s: s.helmert(3, full=True),
    lambda s: s.hilbert(4), lambda s: s.invhilbert(4),
    *(lambda s, kind=kind: s.pascal(5, kind) for kind in ("symmetric", "lower", "upper")),
    *(lambda s, kind=kind: s.invpascal(5, kind) for kind in ("symmetric", "lower", "upper")),
]


def test_entries_are_those_of_scipy():
    found = jax.jit(lambda: [make(jax.scipy.linalg) for make in SAME])()
    for make, got in zip(SAME, found):
        want = np.asarray(make(scipy.linalg))
        integers = want.dtype == np.uint64 or want.dtype == np.int64 and want.shape == (5, 5)     # SciPy's exact integers
        same_as_numpy(got, want.astype(np.float64) if integers else want)


def test_leading_axes_are_batches():
    s = jax.scipy.linalg
    for make, *shapes in ((s.toeplitz, (2, 3)), (s.toeplitz, (2, 1, 3), (4, 5)), (s.hankel, (2, 3), (4,)),
                          (s.circulant, (2, 3)), (s.companion, (2, 3)), (s.fiedler_companion, (2, 5)), (s.fiedler, (2, 3)),
                          (s.leslie, (2, 3), (2,)), (lambda v: s.convolution_matrix(v, 3, "same"), (2, 4))):
        args = [jnp.arange(1.0, 1 + np.prod(shape)).reshape(shape) for shape in shapes]
        same(make(*args), jnp.vectorize(make, signature=",".join(["(n)", "(m)"][:len(args)]) + "->(i,j)")(*args))


def test_derivatives_are_the_places_of_the_entries():
    same(jax.grad(lambda c: (jax.scipy.linalg.toeplitz(c) * jnp.arange(16.0).reshape(4, 4)).sum())(V),
         [30.0, 45.0, 30.0, 15.0])
    same(jax.jacfwd(jax.scipy.linalg.companion)(V)[:, :, 1], np.array([[-0.5, 0, 0], [0, 0, 0], [0, 0, 0]]))


def test_sizes_of_nothing():
    s = jax.scipy.linalg
    for empty in s.hilbert(0), s.invhilbert(0), s.pascal(0), s.dft(0), s.fiedler(V[:0]), s.fiedler_companion(V[:1]):
        assert empty.shape == (0, 0)
    assert s.block_diag().shape == (1, 0) and s.helmert(1).shape == (0, 1) and s.toeplitz(3).tolist() == [[3]]


def test_exact_integers_are_rounded_once():
    assert jax.scipy.linalg.pascal(40)[-1, -1] == np.float32(27217014869199032015600)
    assert jax.scipy.linalg.invhilbert(215)[-1, -1] == np.inf        # more than float64 holds too
    with jax.enable_x64():
        assert jax.scipy.linalg.dft(3).dtype == "complex128" and jax.scipy.linalg.hadamard(2, int).dtype == "int64"


@pytest.mark.parametrize("call, error, words", [
    (lambda s: s.block_diag(np.ones((2, 2, 2))), ValueError, r"argument 0 has shape \(2, 2, 2\)"),
    (lambda s: s.companion(V[:1]), ValueError, r"at least 2, got shape \(1,\)"),
    (lambda s: s.convolution_matrix(V, 0), ValueError, "at least 1, got 0"),
    (lambda s: s.convolution_matrix(V, 3, "half"), ValueError, "'full', 'valid' or 'same', got 'half'"),
    (lambda s: s.convolution_matrix(V[:0], 3), ValueError, r"got shape \(0,\)"),
    (lambda s: s.dft(3, "m"), ValueError, "'sqrtn' or 'n', got 'm'"), (lambda s: s.dft(2.5), TypeError, "n must be an int"),
    (lambda s: s.dft(3, dtype="float32"), ValueError, "complex64, got float32"),
    (lambda s: s.hadamard(6), ValueError, "power of 2; got 6"), (lambda s: s.hilbert(-1), ValueError, "at least 0, got -1"),
    (lambda s: s.leslie(V, V), ValueError, r"f has shape \(4,\) and s shape \(4,\)"),
    (lambda s: s.pascal(3, "middle"), ValueError, "'symmetric', 'lower' or 'upper', got 'middle'"),
    (lambda s: s.toeplitz([1, 2]), TypeError, "jnp.array"),
])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(jax.scipy.linalg)
