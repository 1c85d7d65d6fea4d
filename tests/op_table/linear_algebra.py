"""Rows of linear algebra.  Vectors that are known up to a factor of modulus one are compared by their moduli."""
import numpy as np

import hlotrace.numpy as jnp

from .row import Row, between, fails, fixed, op

ROWS = []
EYE = np.eye(3)
A = between(-1, 1, 3, 3) + np.diag([3.0, -2.0, 1.0])        # eigenvalues and singular values lie apart
TALL, WIDE = np.vstack([A, between(-2, 2, 1, 3)]), between(-2, 2, 2, 3)


def row(name, fun, ref, *args, kinds="Fc", **fields):
    ROWS.append(Row(name, fun, ref, args, kinds, **fields))


def adjoint(x):
    return x.conj().T


def positive(x):
    return x @ adjoint(x) + EYE.astype(x.dtype)


def square(name, **params):
    """What refuses anything but a batch of square matrices of floating-point numbers."""
    return (fails(ValueError, r"must have shape \[..., n, n\], got shape \(2, 3\)", name, (2, 3), **params),
            fails(TypeError, "does not accept dtype i32", name, np.ones((2, 2), np.int32), **params))


# --- triangular systems -----------------------------------------------------------------------------------------

def solved(left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    def ref(a, b):
        a = np.tril(a) if lower else np.triu(a)
        a = a - np.diag(np.diag(a)) + np.eye(3) if unit_diagonal else a
        a = a.T if transpose_a else a
        a = a.conj() if conjugate_a else a
        return np.linalg.solve(a, b) if left_side else np.linalg.solve(a.T, b.T).T
    return ref


for flags, shape, kinds in (((True, True, False, False, False), (3, 2), "F"),
                            ((False, False, True, True, True), (2, 3), "Fc"),
                            ((False, True, False, True, False), (1, 3), "c")):
    how = dict(zip(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), flags))
    row("triangular_solve", op("triangular_solve", **how), solved(*flags), A, between(-2, 2, *shape),
        kinds=kinds, variant=" ".join(name for name, on in how.items() if on), smooth=(1,) if kinds == "c" else None,
        linear=kinds == "c", bad=() if shape != (3, 2) else (
            fails(ValueError, "must be a square matrix", "triangular_solve", (2, 3), (2, 3), **how),
            fails(ValueError, "must have 2 rows, as a has, not 3", "triangular_solve", (2, 2), (3, 1), **how),
            fails(TypeError, "same batch dimensions", "triangular_solve", (2, 2, 2), (2, 2), **how),
            fails(TypeError, "same dtypes, got float32, complex64", "triangular_solve", (2, 2),
                  np.ones((2, 2), np.complex64), **how)))
row("cholesky", lambda x: op("cholesky")(positive(x)), lambda x: np.linalg.cholesky(positive(x)), A, bad=square("cholesky"))

row("cholesky_update", op("cholesky_update"), lambda r, w: np.linalg.cholesky(np.triu(r).T @ np.triu(r) + np.outer(w, w)).T
    + np.tril(r, -1), np.triu(between(1, 2, 3, 3)) + 0.5, between(1, 2, 3), kinds="F", rtol=1e-11, bad=(
        fails(ValueError, "takes a square matrix and a vector of the same size", "cholesky_update", (3, 3), (2,)),
        fails(TypeError, "does not accept dtype c64", "cholesky_update", np.ones((2, 2), np.complex64),
              np.ones(2, np.complex64))))
row("symmetric_product", op("symmetric_product", alpha=2.0, beta=0.5), lambda a, c: 2 * a @ a.T + 0.5 * c,
    between(-1, 1, 2, 3), between(-1, 1, 2, 2), kinds="F", bad=(
        fails(ValueError, "square ones c", "symmetric_product", (2, 3), (3, 3), alpha=1.0, beta=0.0),))


def dense(dl, d, du):
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


DIAGONALS = between(-1, 1, 3), between(3, 5, 3), between(-1, 1, 3)
for smooth in (None, (3,)):
    row("tridiagonal_solve", op("tridiagonal_solve", perturb_singular=False),
        lambda dl, d, du, b: np.linalg.solve(dense(dl, d, du), b), *DIAGONALS, between(-1, 1, 3, 2), smooth=smooth,
        linear=bool(smooth), kinds="c" if smooth else "F", variant="for b" if smooth else "", bad=() if smooth else (
            fails(TypeError, "all diagonal arguments have the same shape", "tridiagonal_solve", (3,), (2,), (3,), (3, 1),
                  perturb_singular=False),
            fails(TypeError, "the leading ndim-1 dimensions of b", "tridiagonal_solve", (3,), (3,), (3,), (2, 3),
                  perturb_singular=False)))

# --- lu ---------------------------------------------------------------------------------------------------------

def packed(x):
    """LU as LAPACK packs it, with its exchanges and the order of rows, by elimination."""
    x, order, pivots = x.copy(), np.arange(len(x)), []
    for i in range(min(x.shape)):
        at = i + np.argmax(abs(x[i:, i].real) + abs(x[i:, i].imag))
        x[[i, at]], order[[i, at]] = x[[at, i]], order[[at, i]]
        pivots.append(at)
        x[i + 1:, i] /= x[i, i]
        x[i + 1:, i + 1:] -= np.outer(x[i + 1:, i], x[i, i + 1:])
    return [x, np.array(pivots, np.int32), order.astype(np.int32)]


for shape, x in {"tall": TALL, "wide": WIDE}.items():
    row("lu", op("lu"), packed, x, kinds="F" if x is TALL else "Fc", variant=shape, bad=() if x is not TALL else (
        fails(TypeError, "must have rank at least 2", "lu", (3,)),
        fails(TypeError, "does not accept dtype bool", "lu", np.ones((2, 2), bool))))
row("lu_pivots_to_permutation", op("lu_pivots_to_permutation", permutation_size=4),
    lambda p: np.array([2, 0, 3, 1], np.int32), fixed([2, 2, 3]), kinds="", derivative="none", bad=(
        fails(ValueError, "Output permutation size 2 has to exceed", "lu_pivots_to_permutation", np.zeros(3, np.int32),
              permutation_size=2),
        fails(TypeError, "pivots must be int32", "lu_pivots_to_permutation", (3,), permutation_size=3)))

# --- qr ---------------------------------------------------------------------------------------------------------

def factors(pivoting=False, full_matrices=True):
    return op("qr", pivoting=pivoting, full_matrices=full_matrices, use_magma=None)


def with_order(mode):
    """QR of the columns in the order of what is left of them, by NumPy's QR without pivoting."""
    def ref(x):
        order, left = [], x.copy()
        for _ in range(x.shape[1]):
            norms = np.linalg.norm(left, axis=0)
            order.append(next(i for i in np.argsort(-norms, kind="stable") if i not in order))
            unit = left[:, order[-1]] / np.linalg.norm(left[:, order[-1]]) if len(order) <= len(x) else 0 * left[:, 0]
            left = left - np.outer(unit, unit.conj() @ left)
        return [*np.linalg.qr(x[:, order], mode), np.array(order, np.int32)]
    return ref


row("qr", factors(), lambda x: [*np.linalg.qr(x, "complete")], np.vstack([TALL, WIDE[:1]]), variant="complete", bad=(
    fails(TypeError, "must have rank at least 2", "qr", (3,), pivoting=False, full_matrices=True, use_magma=None),))
row("qr", factors(), lambda x: [*np.linalg.qr(x)], WIDE, kinds="F", variant="wide")
row("qr", factors(True, False), with_order("reduced"), np.array([[1.0, 5, 2], [2, -1, 1], [0, 2, 4], [1, 1, 1]]),
    kinds="F", variant="pivoting")
row("qr", factors(True), with_order("complete"), np.array([[1.0, 5, 2], [2, -1, 3]]), kinds="F", variant="pivoting, wide")


def reflected(x):
    packed, taus = np.linalg.qr(x, "raw")
    return [packed.T, taus]


def gathered(a, taus):
    q = np.eye(len(a), dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.concatenate([np.zeros(i), [1], a[i + 1:, i]])
        q = q @ (np.eye(len(a)) - tau * np.outer(v, v.conj()))
    return q[:, :a.shape[1]]


row("geqrf", op("geqrf"), reflected, TALL, kinds="c", derivative="none", bad=(
    fails(TypeError, "rank at least 2", "geqrf", (3,)),))
row("geqp3", lambda x: op("geqp3", use_magma=None)(x)[1:2], lambda x: [np.array([1, 2, 0], np.int32)],
    np.array([[1.0, 3, 2], [0, 1, 0]]), kinds="F", derivative="none", bad=(
        fails(TypeError, "rank at least 2", "geqp3", (3,), use_magma=None),))
row("householder_product", op("householder_product"), gathered, TALL, between(-1, 1, 2), kinds="c", derivative="none", bad=(
    fails(ValueError, "at least as many rows as columns", "householder_product", (2, 3), (2,)),
    fails(ValueError, "must not have more rows than", "householder_product", (3, 2), (3,)),
    fails(TypeError, "same batch dimensions", "householder_product", (2, 3, 2), (2,))))

def times_q(left, transpose):
    def ref(a, taus, c):
        q = gathered(np.eye(3, dtype=a.dtype) @ np.pad(a, ((0, 0), (0, 3 - a.shape[1]))), taus)
        q = adjoint(q) if transpose else q
        return q @ c if left else c @ q
    return ref


for left, transpose in ((True, True), (False, False)):
    how = {"left": left, "transpose": transpose}
    row("ormqr", op("ormqr", **how), times_q(**how), between(-2, 2, 3, 2), between(0, 2, 2), between(-1, 1, 3, 3),
        kinds="c" if left else "F", smooth=(2,), linear=True, variant="left transpose" if left else "", bad=() if left else (
            fails(ValueError, "c to have the same number of columns", "ormqr", (3, 2), (2,), (3, 2), **how),
            fails(ValueError, "has only 1 reflectors", "ormqr", (3, 1), (2,), (3, 3), **how)))

# --- condensed forms --------------------------------------------------------------------------------------------

def condensed(x):
    """The Hessenberg form as LAPACK packs it."""
    a, taus, n = x.copy(), [], len(x)
    packed = np.zeros_like(a)
    for i in range(n - 1):
        y = a[i + 1:, i]
        beta = -np.copysign(np.linalg.norm(y), y[0].real)
        if np.any(y[1:]) or y[0].imag:
            tau, v = (beta - y[0]) / beta, np.concatenate([[1], y[1:] / (y[0] - beta)])
        else:
            tau, v = 0, np.eye(len(y))[0]
        h = np.eye(n, dtype=a.dtype)
        h[i + 1:, i + 1:] -= tau * np.outer(v, v.conj())
        a = adjoint(h) @ a @ h
        packed[i + 2:, i] = v[1:]
        taus.append(tau)
    return [np.triu(a, -1) + packed, np.array(taus, a.dtype)]


def from_triangle(x):
    low = np.tril(x, -1)
    return low + adjoint(low) + np.diag(np.diag(x).real)


def made_tridiagonal(x):
    packed, taus = condensed(from_triangle(x))
    return [np.tril(packed), np.diag(packed).real, np.diag(packed, -1).real, taus]


row("hessenberg", op("hessenberg"), condensed, A, kinds="c", derivative="none", bad=(
    fails(ValueError, r"must be a square matrix .* Got shape \(2, 3\)", "hessenberg", (2, 3)),))
row("tridiagonal", lambda x: [jnp.tril(y) if i == 0 else y for i, y in enumerate(op("tridiagonal", lower=True)(x))],
    made_tridiagonal, A, derivative="none", bad=(
        fails(TypeError, "does not accept dtype i32", "tridiagonal", np.ones((2, 2), np.int32), lower=True),))
row("schur", lambda x: [jnp.diag(op("schur", compute_schur_vectors=False, sort_eig_vals=False, select_callable=None)(x)[0])],
    lambda x: [np.linalg.eigvals(x)], A, derivative="none", bad=(
    fails(NotImplementedError, "sort_eig_vals=True is not implemented", "schur", (2, 2), compute_schur_vectors=True,
          sort_eig_vals=True, select_callable=None),
    fails(ValueError, "must be a square matrix", "schur", (2, 3), compute_schur_vectors=True, sort_eig_vals=False,
          select_callable=None)))

# --- eigenvalues and singular values ----------------------------------------------------------------------------

def unsigned(f, *vectors):
    """Results of which some are vectors up to a factor."""
    def fun(*args):
        return [abs(x) if i in vectors else x for i, x in enumerate(f(*args))]
    return fun


def eigh(**params):
    return op("eigh", **{"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None, **params})


row("eigh", unsigned(eigh(), 0), unsigned(lambda x: np.linalg.eigh(x)[::-1], 0), A, variant="lower triangle",
    bad=square("eigh", lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None))
row("eigh", unsigned(eigh(lower=False, subset_by_index=(1, 3)), 0), unsigned(lambda x: [
    y[..., 1:3] for y in np.linalg.eigh(x, "U")[::-1]], 0), A, variant="upper triangle, a part", derivative="refused", bad=(
        fails(ValueError, "0 <= start <= end <= 2", "eigh", (2, 2), lower=True, sort_eigenvalues=True,
              subset_by_index=(1, 3), algorithm=None),))


def eig(left, right):
    return op("eig", compute_left_eigenvectors=left, compute_right_eigenvectors=right, enable_eigvec_derivs=True,
              implementation=None)


def unit(v):
    """Eigenvectors as LAPACK scales them."""
    v = v / np.linalg.norm(v, axis=0)
    largest = np.take_along_axis(v, np.argmax(abs(v), 0)[None], 0)
    return v * abs(largest) / largest


def eigenvectors(x):
    w, v = np.linalg.eig(x)
    return [w.astype(complex), unit(np.linalg.inv(v).conj().T), unit(v)]


row("eig", unsigned(eig(True, True), 1, 2), unsigned(eigenvectors, 1, 2), A, bad=square(
    "eig", compute_left_eigenvectors=True, compute_right_eigenvectors=True, enable_eigvec_derivs=True, implementation=None))
row("eig", eig(False, False), lambda x: [np.linalg.eigvals(x).astype(complex)], A, kinds="F", variant="values")


def svd(full_matrices=False, compute_uv=True, subset_by_index=None):
    return op("svd", full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=None)


def numpy_svd(x, full=False):
    u, s, vh = np.linalg.svd(x, full)
    return [s, u, vh]


row("svd", unsigned(svd(), 1, 2), unsigned(numpy_svd, 1, 2), TALL, variant="tall", bad=(
    fails(TypeError, "must have rank at least 2", "svd", (3,), full_matrices=False, compute_uv=True, subset_by_index=None,
          algorithm=None),))
row("svd", unsigned(svd(), 1, 2), unsigned(numpy_svd, 1, 2), WIDE, kinds="F", variant="wide")
row("svd", unsigned(svd(compute_uv=False)), lambda x: numpy_svd(x)[:1], TALL, variant="values")
row("svd", unsigned(svd(subset_by_index=(0, 2)), 1, 2), unsigned(lambda x: [
    f(y) for f, y in zip((lambda s: s[:2], lambda u: u[:, :2], lambda vh: vh[:2]), numpy_svd(x))], 1, 2), TALL,
    kinds="F", variant="part", derivative="refused", bad=(
        fails(ValueError, "cannot both be set", "svd", (3, 3), full_matrices=True, compute_uv=True, subset_by_index=(0, 2),
              algorithm=None),
        fails(ValueError, "0 <= start <= end <= 2", "svd", (3, 2), full_matrices=False, compute_uv=True,
              subset_by_index=(0, 3), algorithm=None)))
