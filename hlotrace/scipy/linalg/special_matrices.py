"""Matrices made of a few numbers: Toeplitz and kin, companions of polynomials, named matrices.

Most entries of such a matrix are those of a vector, at a position that row and column say: one helper,
`_arranged`, and a formula.
"""
import math
import sys

from ... import lax, numpy as jnp
from ...api.composite import composite
from ...core import dtypes
from ...core.avals import ShapedArray
from ...core.errors import check_choice
from ...numpy.util import check_arraylike, promote_dtypes, promote_dtypes_inexact
from ...primitives.common import np, static_int

__all__ = ["block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
           "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
           "leslie", "pascal", "toeplitz"]


def _size(name, n, least=0):
    n = static_int(n, "n")
    if n < least:
        raise ValueError(f"{name}: n is the size of the matrix and must be at least {least}, got {n}")
    ShapedArray((n, n), dtypes.float32)     # raises where XLA cannot count the elements
    return n


def _vectors(name, *args):
    """Arrays (..., n) of one dtype, made of the arguments; a scalar is a vector of one."""
    check_arraylike(name, *args)
    return [jnp.atleast_1d(x) for x in promote_dtypes(*args)]


def _broadcast(first, second):
    """Two vectors with equal leading axes."""
    batch = lax.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    return [jnp.broadcast_to(x, batch + x.shape[-1:]) for x in (first, second)]


def _arranged(vector, m, n, place):
    """The (..., m, n) matrix whose entry i, j is that of the vector (..., k) at `place(i, j)`."""
    i, j = (lax.broadcasted_iota("int32", (m, n), axis) for axis in (0, 1))
    return jnp.take(vector, place(i, j), axis=-1, mode="clip")


# --- from their entries ---------------------------------------------------------------------------

@composite
def toeplitz(c, r=None):
    """The matrix (..., m, n) with constant diagonals, first column c (..., m) and first row r (..., n).

    r[..., 0] is not read; without r, the row is the conjugated column.  Leading axes broadcast.

    >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 3, 4]))
    Array([[1, 3, 4],
           [2, 1, 3]], dtype=int32)
    """
    c, r = _vectors("toeplitz", c, r) if r is not None else 2 * _vectors("toeplitz", c)
    return _toeplitz(c, jnp.conj(r) if r is c else r)


def _toeplitz(c, r):
    (m,), (n,) = c.shape[-1:], r.shape[-1:]
    return _arranged(jnp.concatenate(_broadcast(jnp.flip(c, -1), r[..., 1:]), -1), m, n,
                     lambda i, j: m - 1 - i + j)


@composite
def hankel(c, r=None):
    """The matrix (..., m, n) with constant antidiagonals, first column c (..., m) and last row r (..., n).

    r[..., 0] is not read; without r, the last row is zero.  Leading axes broadcast.

    >>> jax.scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([2, 3, 4]))
    Array([[1, 2, 3],
           [2, 3, 4]], dtype=int32)
    """
    c, r = _vectors("hankel", c, r) if r is not None else 2 * _vectors("hankel", c)
    last = jnp.zeros_like(c) if r is c else r
    return _arranged(jnp.concatenate(_broadcast(c, last[..., 1:]), -1), c.shape[-1], last.shape[-1],
                     lambda i, j: i + j)


@composite
def circulant(c):
    """The square matrix whose first column is c (..., n); each next one is turned down by one.

    >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c, = _vectors("circulant", c)
    n = c.shape[-1]
    return _arranged(c, n, n, lambda i, j: (i - j) % n)


@composite(static=("n", "mode"))
def convolution_matrix(a, n, mode="full"):
    """The matrix A with A @ v == jnp.convolve(a, v, mode) for all v of length n; a has shape (..., m).

    >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, = _vectors("convolution_matrix", a)
    n, m = _size("convolution_matrix", n, 1), a.shape[-1]
    if not m:
        raise ValueError("convolution_matrix: a must have at least one element along its last axis, got "
                         f"shape {a.shape}")
    check_choice("mode", mode, ("full", "valid", "same"))
    zeros = jnp.zeros((*a.shape[:-1], n - 1), a.dtype)
    full = _toeplitz(jnp.concatenate([a, zeros], -1), jnp.concatenate([a[..., :1], zeros], -1))
    rows = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    start = (m + n - 1 - rows) // 2
    return full[..., start:start + rows, :]


@composite
def block_diag(*arrs):
    """The matrix with these matrices along its diagonal, zero elsewhere; a vector is a row, a number 1 by 1.

    >>> jax.scipy.linalg.block_diag(jnp.eye(1), jnp.ones((1, 2)))
    Array([[1., 0., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    check_arraylike("block_diag", *arrs)
    blocks = [jnp.atleast_2d(x) for x in promote_dtypes(*arrs or [np.zeros((1, 0), np.float32)])]
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"block_diag: argument {i} has shape {x.shape}, and a block has at most 2 "
                             "dimensions; for batches of matrices use jax.vmap(block_diag)")
    widths = np.cumsum([0, *(x.shape[1] for x in blocks)])
    return jnp.concatenate([jnp.pad(x, ((0, 0), (left, widths[-1] - right)))
                            for x, left, right in zip(blocks, widths, widths[1:])])


@composite
def leslie(f, s):
    """Leslie's matrix of a population.

    Source: P. H. Leslie, "On the use of matrices in certain population mathematics", Biometrika 33, 1945.

    Args:
        f: fecundities (..., n), in the first row.
        s: survivals (..., n - 1), below the diagonal.

    >>> jax.scipy.linalg.leslie(jnp.array([0.5, 2.]), jnp.array([0.25]))
    Array([[0.5 , 2.  ],
           [0.25, 0.  ]], dtype=float32)
    """
    f, s = _vectors("leslie", f, s)
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ValueError(f"leslie: f has shape {f.shape} and s shape {s.shape}; along the last axis f must "
                         "have at least 2 elements, and s one less than f")
    f, s = _broadcast(f, s)
    return jnp.concatenate([f[..., None, :], jnp.pad(_diagonal(s), [(0, 0)] * s.ndim + [(0, 1)])], -2)


def _diagonal(v):
    return jnp.where(np.eye(v.shape[-1], dtype=bool), v[..., None], jnp.zeros((), v.dtype))


# --- of polynomials -------------------------------------------------------------------------------

def _monic(name, a, least):
    """The coefficients (..., n) over the first one, which is left out."""
    check_arraylike(name, a)
    a, = promote_dtypes_inexact(jnp.atleast_1d(a))
    if a.shape[-1] < least:
        raise ValueError(f"{name}: a holds the coefficients of a polynomial along its last axis, at least "
                         f"{least}, got shape {a.shape}")
    return a[..., 1:] / a[..., :1]


@composite
def companion(a):
    """The matrix whose characteristic polynomial has the coefficients a (..., n), highest power first.

    >>> jax.scipy.linalg.companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = _monic("companion", a, 2)
    n = a.shape[-1]
    below = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=a.dtype), (*a.shape[:-1], n - 1, n))
    return jnp.concatenate([-a[..., None, :], below], -2)


@composite
def fiedler_companion(a):
    """A companion of the polynomial with coefficients a (..., n), highest power first, with five diagonals.

    Source: M. Fiedler, "A note on companion matrices", Linear Algebra and its Applications 372, 2003.

    >>> jax.scipy.linalg.fiedler_companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = _monic("fiedler_companion", a, 1)
    n = a.shape[-1]
    place = np.zeros((n, n), np.int32)      # 0 and 1 are themselves, k + 1 is -a[k]
    for i in range(n):
        for j, k in ((max(i - 1, 0), i + 2), (i + 1, i + 3), (i + 2, 1)) if i % 2 == 0 else ((max(i - 2, 0),
                                                                                              1),):
            if j < n:
                place[i, j] = k
    return jnp.take(jnp.concatenate([jnp.broadcast_to(jnp.arange(2.0, dtype=a.dtype), (*a.shape[:-1], 2)),
                                     -a], -1), place, axis=-1)


@composite
def fiedler(a):
    """The symmetric matrix of distances abs(a[i] - a[j]) for a (..., n).

    >>> jax.scipy.linalg.fiedler(jnp.array([1, 4, 6]))
    Array([[0, 3, 5],
           [3, 0, 2],
           [5, 2, 0]], dtype=int32)
    """
    a, = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


# --- by name --------------------------------------------------------------------------------------

def dft(n, scale=None, *, dtype=None):
    """The matrix of the discrete Fourier transform of n points.

    Args:
        scale: "sqrtn" divides by its square root, "n" by it.
        dtype: a complex dtype.

    >>> jax.scipy.linalg.dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    n = _size("dft", n)
    dtype = dtypes.canonicalize(dtypes.complex128) if dtype is None else dtypes.check_user_dtype(dtype, "dft")
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    if not dtypes.is_complex(dtype):
        raise ValueError(f"dft: dtype must be a complex floating-point type, as complex64, got {dtype.name}")
    # whole turns are left out while they are exact
    turns = np.outer(range(n), range(n)) % n / max(n, 1)
    return jnp.asarray(np.exp(-2j * np.pi * turns) / {None: 1, "sqrtn": max(n, 1) ** 0.5,
                                                      "n": max(n, 1)}[scale], dtype)


def hadamard(n, dtype=int):
    """Sylvester's Hadamard matrix: entries 1 and -1, orthogonal rows.  n is a power of 2.

    >>> jax.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _size("hadamard", n, 1)
    if n & n - 1:
        raise ValueError(f"hadamard: n must be a positive power of 2; got {n}")
    signs = np.ones((1, 1), np.int8)
    while len(signs) < n:
        signs = np.block([[signs, signs], [signs, -signs]])
    return jnp.asarray(signs, dtypes.check_user_dtype(dtype, "hadamard"))


def helmert(n, full=False):
    """Helmert's matrix (n - 1, n) of orthonormal contrasts; with `full`, (n, n) below a constant row.

    >>> jax.scipy.linalg.helmert(2).round(3)
    Array([[ 0.707, -0.707]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    rows[0] = 1
    return jnp.asarray((rows / np.linalg.norm(rows, axis=1, keepdims=True))[not full:])


def hilbert(n):
    """The matrix with entries 1 / (i + j + 1).

    >>> jax.scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    n = _size("hilbert", n)
    return jnp.asarray(1 / (np.add.outer(np.arange(n), np.arange(n)) + 1.0))


def invhilbert(n):
    """The inverse of hilbert(n), whose entries are integers as long as their dtype holds them.

    Source: M.-D. Choi, "Tricks or treats with the Hilbert matrix", American Mathematical Monthly 90, 1983.

    >>> jax.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    factors = np.array([(-1) ** i * _rounded(n * math.comb(n + i, i) * math.comb(n - 1, i))
                        for i in range(n)])
    with np.errstate(over="ignore"):
        return jnp.asarray(np.outer(factors, factors) / (np.add.outer(np.arange(n), np.arange(n)) + 1.0))


def pascal(n, kind="symmetric"):
    """Pascal's triangle as a matrix: "symmetric" C(i + j, j), "lower" C(i, j), or "upper", its transpose.

    >>> jax.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    return _triangle("pascal", n, kind, 1)


def invpascal(n, kind="symmetric"):
    """The inverse of pascal(n, kind).

    >>> jax.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _triangle("invpascal", n, kind, -1)


def _triangle(name, n, kind, sign):
    n = _size(name, n)
    kind = "symmetric" if kind is None else kind
    check_choice("kind", kind, ("symmetric", "lower", "upper"))
    table = np.zeros((n, n))
    table[:, :1] = 1
    with np.errstate(over="ignore"):
        if kind == "symmetric" and sign == 1:
            for i in range(n):
                table[i] = np.cumsum(table[i - 1]) if i else 1
            return jnp.asarray(table)
        for i in range(1, n):
            table[i, 1:] = table[i - 1, 1:] + table[i - 1, :-1]
        if kind == "symmetric":     # upper @ lower, the inverses of the factors of pascal
            largest = np.finfo(table.dtype).max
            table = np.minimum(table, largest)      # 0 times it is 0
            table = table.T @ table
            table[table >= largest] = np.inf
        if sign < 0:
            table *= (-1) ** np.add.outer(np.arange(n), np.arange(n))
        return jnp.asarray(table.T if kind == "upper" else table)


def _rounded(integer):
    """An integer as a float; inf beyond their range."""
    return float(integer) if integer <= sys.float_info.max else math.inf
