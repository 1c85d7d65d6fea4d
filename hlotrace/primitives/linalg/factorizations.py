"""Factorizations that finish in a known number of steps: lu, and qr with the reflectors that it is made of.

A reflector is I - tau v v^H; a product of them is stored as the columns v below the diagonal of a matrix, and
their taus. Derivatives: of lu, de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using
triangular factorization" (2011); of qr, Walter and Lehmann, "Algorithmic differentiation of linear algebra
functions with application in optimum experimental design" (2010), and for wide matrices Roberts and
Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep matrices"
(2020).
"""
from ...core.symbolic.dimension import min_dim
from ..arrays.dynamic_slice import dynamic_slice_p
from ..arrays.elementwise import add, eq, lt, select, sub
from ..arrays.shape import Mapped, broadcast_in_dim, full, reshape
from ..arrays.slicing import zero_filled
from ..common import ShapedArray, aval_of, no_tangent_jvp, scalar, shape_of
from . import linalg_fallbacks
from .linalg_fallbacks import counted
from .shared import (
    INT32, adjoint, batched, block, by_kernels, check_dtypes, check_matrices, check_ranks, checked, conj,
    eye_like, infos, joined, kernel, lapack, matmul, matrices, place, skew, taken_rows, transposed, triangle,
    vectors)
from .triangular import triangular_solve

# --- lu -------------------------------------------------------------------------------------------

def _lu_abstract_eval(x):
    check_matrices("lu", x)
    m, n = x.shape[-2:]
    return [x.strip_weak_type(), vectors(x, min_dim(m, n), INT32), vectors(x, m, INT32)]


def _lu_by(target):
    def lower(x):
        aval = aval_of(x)
        m, n = aval.shape[-2:]
        if not aval.size:       # nothing to exchange
            return [x, *(place(vectors(aval, k).shape, -1) for k in (min_dim(m, n), m))]
        packed, pivots, info = kernel(target(aval.dtype), (x,),
                                      [aval, vectors(aval, min_dim(m, n), INT32), infos(aval)],
                                      aliases=((0, 0),))
        # info > 0 says that U is singular: the factors are right all the same
        packed = checked(select(lt(info, 0), info, 0), packed)[0]
        pivots = sub(pivots, 1)
        return [packed, pivots, lu_pivots_to_permutation_p.bind(pivots, permutation_size=m)]
    return lower


def _lu_by_steps(x):
    packed, pivots = linalg_fallbacks.eliminated(x)
    return [packed, pivots, lu_pivots_to_permutation_p.bind(pivots, permutation_size=shape_of(x)[-2])]


def _lu_xla(x):
    aval = aval_of(x)
    m, n = aval.shape[-2:]
    results = [aval, vectors(aval, min_dim(m, n), INT32), vectors(aval, m, INT32)]
    return kernel("LuDecomposition", (x,), results, config="", api_version=2)


def _padded(x, *size):
    """`x` with zeros below and to the right, of this size."""
    return zero_filled(x, (*shape_of(x)[:-2], *size))


def _lu_jvp(primals, tangents):
    """With M = inv(L) P dA inv(U), L^-1 dL is its strictly lower triangle and dU U^-1 the rest.

    A wide or tall matrix is part of a square one: U has rows, or L columns, of the identity to fill up.
    """
    (x,), (dx,) = primals, tangents
    packed, pivots, order = lu_p.bind(x)
    m, n = shape_of(x)[-2:]
    k = min_dim(m, n)
    low = _padded(block(packed, cols=(0, k)), m, m)
    low = add(triangle(low, inset=1), eye_like(low))
    up = _padded(triangle(block(packed, rows=(0, k)), lower=False), n, n)
    if n > k:
        rest = eye_like(up)
        up = add(up, sub(rest, _padded(block(rest, (0, k), (0, k)), n, n)))
    inner = triangular_solve(low, taken_rows(dx, order), unit_diagonal=True)
    inner = triangular_solve(up, inner, left_side=False, lower=False)
    moved = add(matmul(low, triangle(inner, inset=1)), matmul(triangle(inner, lower=False), up))
    return [packed, pivots, order], [moved, None, None]


lu_p = Mapped(
    "lu", multiple_results=True, abstract_eval=_lu_abstract_eval, jvp=_lu_jvp,
    axes=batched((2,), (2, 1, 1)), lower=by_kernels({
    "cpu": _lu_by(lambda dtype: lapack("getrf", dtype)), "cuda": _lu_by(lambda dtype: "cusolver_getrf_ffi"),
    "tpu": _lu_xla, None: _lu_by_steps}))


def solve(a, b):
    """The solution of A X = B for square matrices, by an LU factorization."""
    packed, _, order = lu_p.bind(a)
    inner = triangular_solve(packed, taken_rows(b, order), unit_diagonal=True)
    return triangular_solve(packed, inner, lower=False)


def _permutation_abstract_eval(pivots, *, permutation_size):
    if pivots.dtype != INT32:
        raise TypeError("lu_pivots_to_permutation: pivots must be int32, as lu gives them, got "
                        f"{pivots.dtype.name}")
    check_ranks("lu_pivots_to_permutation", (pivots, 1))
    if permutation_size < pivots.shape[-1]:
        raise ValueError(f"Output permutation size {permutation_size} has to exceed the trailing dimension "
                         f"of the pivots. Got pivots size {pivots.shape[-1]}")
    return vectors_of(pivots, permutation_size)


def vectors_of(x, size):
    """The aval of as many vectors as there are in `x`, of this size."""
    return ShapedArray((*x.shape[:-1], size), x.dtype)


def _permutation(pivots, *, permutation_size):
    """The rows 0, 1, ... after row i was exchanged with row pivots[i], for each i in turn."""
    start = place((*vectors_of(pivots, permutation_size).shape, 1), -2)
    everywhere = tuple(range(len(shape_of(start)) - 1))

    def exchange(i, order, pivots):
        rows = place(shape_of(order)[:-1], -1)
        starts = [*[scalar(0, INT32)] * (len(everywhere) - 1), i]
        pivot = dynamic_slice_p.bind(pivots, *starts, slice_sizes=(*shape_of(pivots)[:-1], 1))
        pivot = broadcast_in_dim(pivot, shape_of(rows), everywhere)
        return [taken_rows(order, select(eq(rows, i), pivot, select(eq(rows, pivot), i, rows))), pivots]
    return [reshape(counted(shape_of(pivots)[-1], exchange, start, pivots)[0], shape_of(start)[:-1])]


def _permutation_cuda(pivots, *, permutation_size):
    return kernel("cu_lu_pivots_to_permutation", (pivots,), [vectors_of(pivots, permutation_size)],
                  row_major=True)


lu_pivots_to_permutation_p = Mapped(
    "lu_pivots_to_permutation", abstract_eval=_permutation_abstract_eval, axes=batched((1,), (1,)),
    lower=by_kernels({"cuda": _permutation_cuda, None: _permutation}))
lu_pivots_to_permutation_p.jvp = no_tangent_jvp(lu_pivots_to_permutation_p)


# --- reflectors -----------------------------------------------------------------------------------

def _geqrf_abstract_eval(x):
    check_matrices("geqrf", x)
    return [x.strip_weak_type(), vectors(x, min_dim(*x.shape[-2:]))]


def _geqrf_by(target):
    return lambda x: kernel(target(aval_of(x).dtype), (x,), _geqrf_abstract_eval(aval_of(x)),
                            aliases=((0, 0),))


geqrf_p = Mapped(
    "geqrf", multiple_results=True, abstract_eval=_geqrf_abstract_eval,
    axes=batched((2,), (2, 1)), lower=by_kernels({
    "cpu": _geqrf_by(lambda dtype: lapack("geqrf", dtype)),
    "cuda": _geqrf_by(lambda dtype: "cusolver_geqrf_ffi"),
    None: lambda x: kernel("Qr", (x,), _geqrf_abstract_eval(aval_of(x)), config="", api_version=1)}))


def _geqp3_abstract_eval(x, *, use_magma):
    check_matrices("geqp3", x)
    return [x.strip_weak_type(), vectors(x, x.shape[-1], INT32), vectors(x, min_dim(*x.shape[-2:]))]


def _geqp3_by(target, **settings):
    def lower(x, *, use_magma):
        aval = aval_of(x)
        outs = _geqp3_abstract_eval(aval, use_magma=use_magma)
        if not aval.size:
            return [x, place(outs[1].shape, -1), full(outs[2].shape, 0, aval.dtype)]
        free = full(outs[1].shape, 0, INT32)        # any column may come first
        packed, order, taus = kernel(target(aval.dtype), (x, free), outs, aliases=((0, 0), (1, 1)),
                                     **{key: values[use_magma] for key, values in settings.items()})
        return [packed, sub(order, 1), taus]
    return lower


geqp3_p = Mapped(
    "geqp3", multiple_results=True, abstract_eval=_geqp3_abstract_eval,
    axes=batched((2,), (2, 1, 1)), lower=by_kernels({
    "cpu": _geqp3_by(lambda dtype: lapack("geqp3", dtype)),
    "cuda": _geqp3_by(lambda dtype: "cuhybrid_geqp3", magma={None: "auto", True: "on", False: "off"}),
    None: lambda x, *, use_magma: linalg_fallbacks.pivoted(x)}))


def _product_abstract_eval(a, taus):
    check_dtypes("householder_product", a, taus)
    check_ranks("householder_product", (a, 2), (taus, 1))
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError("The first argument to householder_product must have at least as many rows as "
                         f"columns, got shape {a.shape}")
    if taus.shape[-1] > n:
        raise ValueError("The second argument to householder_product must not have more rows than the "
                         f"minimum of the first argument's rows and columns: it has {taus.shape[-1]}, and "
                         f"the first argument shape {a.shape}.")
    return a.strip_weak_type()


def _product_by(target):
    return lambda a, taus: kernel(target(aval_of(a).dtype), (a, taus), [aval_of(a)], aliases=((0, 0),))


householder_product_p = Mapped(
    "householder_product", abstract_eval=_product_abstract_eval,
    axes=batched((2, 1), (2,)), alike="All inputs to householder_product must have the same batch sharding",
    lower=by_kernels({
        "cpu": _product_by(lambda dtype: lapack("orgqr", dtype)),
        "cuda": _product_by(lambda dtype: "cusolver_orgqr_ffi"),
        None: lambda a, taus: kernel("ProductOfElementaryHouseholderReflectors", (a, taus), [aval_of(a)],
                                     config="", api_version=1)}))


def _ormqr_abstract_eval(a, taus, c, *, left, transpose):
    check_dtypes("ormqr", a, taus, c)
    check_ranks("ormqr", (a, 2), (taus, 1), (c, 2))
    m, n = a.shape[-2:]
    if taus.shape[-1] > min_dim(m, n):
        raise ValueError(f"ormqr: there are {taus.shape[-1]} taus, but a of shape {a.shape} has only "
                         f"{min_dim(m, n)} reflectors")
    if c.shape[-2 if left else -1] != m:
        raise ValueError(f"ormqr with left={left} expects c to have the same number of "
                         f"{'rows' if left else 'columns'} as the Householder matrix a has rows. Got a "
                         f"shape {a.shape} and c shape {c.shape}.")
    return c.strip_weak_type()


def _ormqr_by(target):
    def lower(a, taus, c, *, left, transpose):
        a = block(a, cols=(0, shape_of(taus)[-1]))
        return kernel(target(aval_of(a).dtype), (a, taus, c), [aval_of(c)], aliases=((2, 0),), left=left,
                      transpose=transpose)
    return lower


def _ormqr_jvp(primals, tangents, **params):
    a, taus, c = primals
    if tangents[0] is not None or tangents[1] is not None:
        raise NotImplementedError("ormqr has a derivative with respect to c alone; with respect to the "
                                  "matrix that was factored take that of qr, and multiply by its Q")
    return ormqr_p.bind(a, taus, c, **params), ormqr_p.bind(a, taus, tangents[2], **params)


def _ormqr_transpose(ct, a, taus, c, *, left, transpose):
    """The transpose of Q is the conjugate of its adjoint."""
    return [None, None, conj(ormqr_p.bind(a, taus, conj(ct), left=left, transpose=not transpose))]


ormqr_p = Mapped("ormqr", abstract_eval=_ormqr_abstract_eval, jvp=_ormqr_jvp, transpose=_ormqr_transpose,
                 axes=batched((2, 1, 2), (2,)),
                 lower=by_kernels({"cpu": _ormqr_by(lambda dtype: lapack("ormqr", dtype)),
                                   "cuda": _ormqr_by(lambda dtype: "cusolver_ormqr_ffi"),
                                   None: linalg_fallbacks.multiplied}))


# --- qr -------------------------------------------------------------------------------------------

def _qr_abstract_eval(x, *, pivoting, full_matrices, use_magma):
    check_matrices("qr", x)
    m, n = x.shape[-2:]
    k = m if full_matrices else min_dim(m, n)
    return [matrices(x, m, k), matrices(x, k, n), *([vectors(x, n, INT32)] if pivoting else [])]


def _qr(x, *, pivoting, full_matrices, use_magma):
    m, n = shape_of(x)[-2:]
    k = m if full_matrices else min_dim(m, n)
    packed, *order, taus = geqp3_p.bind(x, use_magma=use_magma) if pivoting else geqrf_p.bind(x)
    reflectors = _padded(packed, m, k) if n < k else block(packed, cols=(0, k))
    return [householder_product_p.bind(reflectors, taus), triangle(block(packed, rows=(0, k)), lower=False),
            *order]


def _qr_jvp(primals, tangents, *, pivoting, full_matrices, use_magma):
    """With M = Q^H dA inv(R), Q^H dQ is skew-Hermitian with M's strictly lower triangle, dR R^-1 the rest.

    Of a wide matrix the first columns, a square, say this; the others follow from dA = dQ R + Q dR.  If Q has
    more columns than that, these, Q2, follow from the others, Q1, as reflectors make them: with Q - I = -V T
    V^H (Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder
    transformations", 1989) and both of these cut into upper and lower rows, Q2 - I2 = (Q1 - I1) N, where N =
    inv(Q11 - I)^H Q21^H.
    """
    (x,), (dx,) = primals, tangents
    q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    if pivoting:
        dx = transposed(taken_rows(transposed(dx), order[0]))
    m, n = shape_of(x)[-2:]
    k = min_dim(m, n)
    thin, square = block(q, cols=(0, k)), block(r, (0, k), (0, k))
    inner = triangular_solve(square, block(dx, cols=(0, k)), left_side=False, lower=False)
    seen = matmul(adjoint(thin), inner)
    turn = skew(seen)
    dq = add(matmul(thin, sub(turn, seen)), inner)
    dr = matmul(sub(seen, turn), square)
    if n > k:
        late = sub(block(dx, cols=(k, None)), matmul(dq, block(r, cols=(k, None))))
        dr = joined([dr, matmul(adjoint(thin), late)])
    if shape_of(q)[-1] > k:
        minus = sub(thin, _padded(eye_like(square), m, k))
        top = adjoint(block(minus, rows=(0, k)))
        made = solve(top, adjoint(block(q, (k, None), (0, k))))
        moved = solve(top, sub(adjoint(block(dq, rows=(k, None))),
                               matmul(adjoint(block(dq, rows=(0, k))), made)))
        dq = joined([dq, add(matmul(dq, made), matmul(minus, moved))])
        dr = _padded(dr, m, n)
    return [q, r, *order], [dq, dr, *[None] * len(order)]


qr_p = Mapped("qr", multiple_results=True, abstract_eval=_qr_abstract_eval, jvp=_qr_jvp,
              lower=by_kernels({None: _qr}),
              axes=batched((2,), lambda pivoting, **_: (2, 2, 1)[:2 + pivoting]))
