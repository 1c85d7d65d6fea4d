"""Linear systems solved by multiplying alone: conjugate gradients, BiCGSTAB, GMRES.

Y. Saad, "Iterative methods for sparse linear systems", 2nd edition, 2003.  Whatever the structure of the
unknown, a solver sees one vector.  Derivatives are those of the equation (`lax.custom_linear_solve`): each is
another system, solved alike.
"""
from functools import partial

from ... import lax, numpy as jnp
from ...api.autodiff import linear_transpose
from ...api.shape_dtype_struct import ShapeDtypeStruct, eval_shape
from ...core import dtypes
from ...core.errors import ShapeError, check_choice
from ...core.pytrees import pytree
from ...core.surface.public import export_names as _offer
from ...numpy.util import at_least_float32, check_arraylike, dtype_of, shape
from ...primitives.common import static_int
from ..linalg import solve_triangular

__all__ = ["bicgstab", "cg", "gmres"]

_dot = partial(jnp.vdot, precision=lax.Precision.HIGHEST)


def _norm(x):
    return jnp.sqrt(_dot(x, x).real)


# --- methods: (A, M, b, x, threshold, maxiter) -> (x, residual) -----------------------------------

def _cg(A, M, b, x, threshold, maxiter):
    """Saad, algorithm 9.1."""
    def step(state):
        x, r, z, p, k = state
        q, before = A(p), _dot(r, z).real
        alpha = (before / _dot(p, q).real).astype(b.dtype)
        x, r = x + alpha * p, r - alpha * q
        z = M(r)
        return x, r, z, z + (_dot(r, z).real / before).astype(b.dtype) * p, k + 1
    r = b - A(x)
    z = M(r)
    return lax.while_loop(lambda s: (_norm(s[1]) > threshold) & (s[4] < maxiter), step, (x, r, z, z, 0))[:2]


def _bicgstab(A, M, b, x, threshold, maxiter):
    """H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992; preconditioned as in "Templates", 1994."""
    def step(state):
        x, r, p, q, rho, alpha, omega, k = state
        now = _dot(start, r)
        p = r + now / rho * (alpha / omega) * (p - omega * q)
        p_hat = M(p)
        q = A(p_hat)
        alpha = now / _dot(start, q)
        s = r - alpha * q
        s_hat = M(s)
        t = A(s_hat)
        omega = jnp.where(_norm(s) <= threshold, 0, _dot(t, s) / _dot(t, t))        # done after half a step
        return x + alpha * p_hat + omega * s_hat, s - omega * t, p, q, now, alpha, omega, k + 1
    start, one = b - A(x), jnp.ones((), b.dtype)
    first = (x, start, 0 * b, 0 * b, one, one, one, 0)
    return lax.while_loop(lambda s: (_norm(s[1]) > threshold) & (s[7] < maxiter), step, first)[:2]


def _gmres(A, M, b, x, threshold, maxiter, *, restart, early):
    """Saad, algorithm 6.9 with orthogonalization done twice, and preconditioned from the right (9.5)."""
    m = min(restart, b.size)
    kind = at_least_float32(b.dtype)

    def step(state):
        """One more vector of the basis V; Q makes a triangle R of the columns of the Hessenberg matrix."""
        V, Q, R, j = state
        w, h = A(M(V[j])), 0
        for _ in range(2):
            # vectors still to come are zero
            more = jnp.matmul(V.conj(), w, precision=lax.Precision.HIGHEST)
            w, h = w - jnp.matmul(more, V, precision=lax.Precision.HIGHEST), h + more
        length = _norm(w)
        V = V.at[j + 1].set(w / jnp.where(length > 0, length, 1).astype(w.dtype))
        column = Q @ h.astype(kind).at[j + 1].set(length.astype(kind))
        a, c = column[j], column[j + 1]
        total = jnp.sqrt(abs(a) ** 2 + abs(c) ** 2).astype(kind)
        turn = jnp.array([[a.conj(), c.conj()], [-c, a]]) / jnp.where(total == 0, 1, total)
        turn = jnp.where(total == 0, jnp.eye(2, dtype=kind), turn)
        Q = lax.dynamic_update_slice_in_dim(Q, turn @ lax.dynamic_slice_in_dim(Q, j, 2), j, 0)
        return V, Q, R.at[:, j].set(jnp.where(jnp.arange(m) == j, total,
                                              jnp.where(jnp.arange(m) < j, column[:m], 0))), j + 1

    def cycle(state):
        x, r, k = state
        size = _norm(r)
        V = jnp.zeros((m + 1, b.size), b.dtype).at[0].set(r / jnp.where(size > 0, size, 1).astype(b.dtype))
        first = V, jnp.eye(m + 1, dtype=kind), jnp.zeros((m, m), kind), 0

        def more(s):
            return (s[3] < m) & (abs(s[1][s[3], 0]) * size > threshold if early else True)
        V, Q, R, j = lax.while_loop(more, step, first)
        g = jnp.where(jnp.arange(m) < j, Q[:m, 0] * size.astype(kind), 0)
        y = solve_triangular(R + jnp.diag(((jnp.diag(R) == 0) & (g == 0)).astype(kind)), g)
        x = x + M((y @ V[:m].astype(kind)).astype(b.dtype))
        return x, b - A(x), k + 1
    return lax.while_loop(lambda s: (_norm(s[1]) > threshold) & (s[2] < maxiter), cycle, (x, b - A(x), 0))[:2]


# --- as users call them ---------------------------------------------------------------------------

def _operator(name, what, given, b):
    """What multiplies, as a function of what is like b."""
    if given is None:
        return lambda x: x
    if callable(given):
        return given
    if len(shape(given)) != 2 or given.shape[0] != given.shape[1]:
        check_arraylike(name, given)
        raise ShapeError(f"{name}: {what} must be a function or a square matrix, got shape {shape(given)}")
    if not hasattr(b, "shape") or b.shape[:1] != given.shape[:1]:
        raise ShapeError(f"{name}: b must be an array whose first size is that of the matrix {what} "
                         f"{given.shape}, got {getattr(b, 'shape', pytree.tree_structure(b))}")
    return partial(jnp.matmul, given, precision=lax.Precision.HIGHEST)


def _check(name, what, found, b):
    """ShapeError for what is not like b."""
    leaves, structure = pytree.tree_flatten(found)
    if structure != pytree.tree_structure(b) or list(map(shape, leaves)) != list(map(shape,
                                                                                     pytree.tree_leaves(b))):
        raise ShapeError(f"{name}: {what} must have the structure and the shapes of b, which is "
                         f"{pytree.tree_map(shape, b)}, got {pytree.tree_map(shape, found)}")


def _solved(name, method, A, b, x0, tol, atol, maxiter, M, hermitian=False):
    leaves, structure = pytree.tree_flatten(b)
    check_arraylike(name, *leaves, *pytree.tree_leaves(x0))
    matvec, precondition = _operator(name, "A", A, b), _operator(name, "M", M, b)
    if x0 is not None:
        _check(name, "x0", x0, b)
    types = pytree.tree_map(lambda x: ShapeDtypeStruct(shape(x), dtypes.to_inexact(dtype_of(x))), b)
    products = [eval_shape(f, types) for f in (matvec, precondition)]
    for what, product in zip("AM", products):
        _check(name, f"what {what} gives", product, b)
    dtype = dtypes.to_inexact(jnp.result_type(*map(dtype_of, [*leaves, *pytree.tree_leaves(x0)]),
                                              *(x.dtype for x in pytree.tree_leaves(products))))
    sizes = [x.size for x in pytree.tree_leaves(types)]

    def ravel(values):
        return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in pytree.tree_leaves(values)]
                               or [jnp.zeros(0, dtype)])

    def unravel(x):
        parts, start = [], 0
        for like, size in zip(leaves, sizes):
            parts.append(x[start:start + size].reshape(shape(like)))
            start += size
        return structure.unflatten(parts)

    def on_vectors(function):
        return lambda x: ravel(function(unravel(x)))
    x, A, M = ravel(b), on_vectors(matvec), on_vectors(precondition)
    if not x.size:
        return unravel(x)
    start = jnp.zeros_like(x) if x0 is None else lax.stop_gradient(ravel(x0))
    limit = 10 * x.size if maxiter is None else maxiter

    def solve(matvec, b, precondition=M):
        x, residual = method(matvec, precondition, b, start, jnp.maximum(tol * _norm(b), atol), limit)
        return jnp.where(jnp.isnan(_norm(residual)), jnp.nan, x)

    def transposed(vecmat, b):
        return solve(vecmat, b, lambda x: linear_transpose(M, b)(x)[0])
    symmetric = hermitian and dtype.kind != "c"
    return unravel(lax.custom_linear_solve(A, x, solve, None if symmetric else transposed, symmetric))


_ABOUT = """

    Derivatives of x to any order are those of the system.  What cannot be solved is NaN.

    Args:
        A: a square matrix, or a linear function from pytrees like b to such; what it closes over may be
            differentiated.
        b: an array or a pytree; everything is computed in the common dtype of its leaves and of what A gives,
            at least floating.
        x0: where to start, 0 by default.
        tol: the residual is at most max(tol * norm(b), atol).
        atol: see `tol`.
{more}        maxiter: the most {steps}, 10 times the number of unknowns by default.
        M: a preconditioner, as A, near to the inverse of A.

    Raises:
        ShapeError: for what does not fit.

    >>> x, info = jax.scipy.sparse.linalg.{name}(lambda x: jnp.array([4., 2.]) * x, jnp.array([1., 3.]))
    >>> print((4 * x).round())
    [1. 6.]
    """


def _explained(steps="steps", more=""):
    def decorate(function):
        about = _ABOUT.format(name=function.__name__, steps=steps, more=more)
        function.__doc__ = (function.__doc__ or "").rstrip() + about
        return function
    return decorate


@_explained()
def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None): the solution of A x = b for a Hermitian, positive definite A, by conjugate gradients."""
    return _solved("scipy.sparse.linalg.cg", _cg, A, b, x0, tol, atol, maxiter, M, hermitian=True), None


@_explained()
def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None): the solution of A x = b for any A, by the stabilized bi-conjugate gradient method."""
    return _solved("scipy.sparse.linalg.bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M), None


@_explained("cycles", """        restart: the size of the basis.
        solve_method: 'batched' makes all of a basis before it looks, 'incremental' ends when the residual is
            small.
""")
def gmres(A, b, x0=None, *, tol=1e-5, atol=0.0, restart=20, maxiter=None, M=None, solve_method="batched"):
    """(x, info): the solution of A x = b for any A, by the generalized minimal residual method.

    `info` is -1 for NaN, or 0.
    """
    name = "scipy.sparse.linalg.gmres"
    check_choice(f"{name}: solve_method", solve_method, ("batched", "incremental"))
    restart = static_int(restart, f"{name}: restart")
    if restart < 1:
        raise ValueError(f"{name}: restart is the size of the basis and must be at least 1, got {restart}")
    method = partial(_gmres, restart=restart, early=solve_method == "incremental")
    x = _solved(name, method, A, b, x0, tol, atol, maxiter, M)
    bad = [jnp.isnan(leaf).any() for leaf in pytree.tree_leaves(x)]
    return x, jnp.where(jnp.array(bad).any(), -1, 0)


_offer(globals())
