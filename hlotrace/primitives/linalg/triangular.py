"""Triangular systems; the Cholesky factorization, its update; products of a matrix with its transpose.

Derivatives: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); for Cholesky also Murray, "Differentiation of the Cholesky decomposition" (2016).
"""
from ...core.axes import AxisMap
from ..arrays.elementwise import add, div, eq, mul, neg, select, square, sub
from ..arrays.shape import Mapped, full
from ..arrays.transcendental import sqrt
from ..common import aval_of, dtype_of, dtypes, scalar, shape_of
from .linalg_fallbacks import chosen, counted, replaced, scaled
from .shared import (
    batched, by_kernels, check_dtypes, check_matrices, check_ranks, checked, columns, columns_together, conj,
    eye_like, hermitian, infos, kernel, lapack, letter, matmul, mul_exactly, rows, transposed, triangle)

# --- triangular_solve -----------------------------------------------------------------------------

def _solve_abstract_eval(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    name = "triangular_solve"
    check_dtypes(name, a, b)
    check_ranks(name, (a, 2), (b, 2))
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The first input to {name} must be a square matrix. Got shape {a.shape}.")
    axis = -2 if left_side else -1
    if a.shape[-1] != b.shape[axis]:
        raise ValueError(f"Incompatible shapes for arguments to {name}: {a.shape} and {b.shape}. With "
                         f"left_side={left_side} b must have {a.shape[-1]} "
                         f"{'rows' if left_side else 'columns'}, as a has, not {b.shape[axis]}")
    return b.strip_weak_type()


def _solve_lapack(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if conjugate_a and not transpose_a:
        a = conj(a)
    transposition = "C" if conjugate_a else "T"
    return kernel(lapack("trsm", b.dtype), (a, b), [aval_of(b)], aliases=((1, 0),),
                  side=letter("L" if left_side else "R"), uplo=letter("L" if lower else "U"),
                  diag=letter("U" if unit_diagonal else "N"),
                  trans_x=letter(transposition if transpose_a else "N"))


def _solve_lower(ctx, eqn, a, b):
    p, avals = eqn.params, [v.aval.mlir for v in eqn.invars]
    conjugated = p["conjugate_a"] and dtypes.is_complex(eqn.invars[0].aval.dtype)
    if conjugated and not p["transpose_a"]:
        a = ctx.emit(f"chlo.conj {a} : {avals[0]} -> {avals[0]}")
    transposition = "ADJOINT" if conjugated else "TRANSPOSE"
    how = transposition if p["transpose_a"] else "NO_TRANSPOSE"
    flags = ", ".join(f"{key} = {str(p[key]).lower()}" for key in ("left_side", "lower", "unit_diagonal"))
    return ctx.emit(f'"stablehlo.triangular_solve"({a}, {b}) <{{{flags}, transpose_a = #stablehlo<transpose '
                    f'{how}>}}> : ' f"({', '.join(avals)}) -> {avals[1]}")


def _solve_jvp(primals, tangents, **params):
    """op(A) X = B has the tangent op(A) dX = dB - op(dA) X; of dA only the triangle that is read counts."""
    (a, b), (da, db) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    if da is not None:
        da = triangle(da, params["lower"], int(params["unit_diagonal"]))
        da = transposed(da) if params["transpose_a"] else da
        da = conj(da) if params["conjugate_a"] else da
        single = shape_of(x)[-1 if params["left_side"] else -2] == 1     # then x is what is small
        da = da if single else neg(da)
        moved = matmul(da, x) if params["left_side"] else matmul(x, da)
        moved = neg(moved) if single else moved
        db = moved if db is None else add(db, moved)
    return x, triangular_solve_p.bind(a, db, **params)


def _solve_sharding(a, b, *, left_side, transpose_a, **_):
    """Of a matrix the rows that are solved for, of the right-hand sides each, are what they are."""
    batch = tuple(range(a.ndim - 2))
    of_a, of_b = ("rows", None), (None, "sides")
    result = ("rows", "sides")
    return AxisMap(((*batch, *(of_a if left_side != transpose_a else of_a[::-1])),
                    (*batch, *(of_b if left_side else of_b[::-1]))),
                   (*batch, *(result if left_side else result[::-1])))


triangular_solve_p = Mapped(
    "triangular_solve", abstract_eval=_solve_abstract_eval,
    lower={**by_kernels({"cpu": _solve_lapack}), None: _solve_lower}, jvp=_solve_jvp,
    transpose=lambda ct, a, b, *, transpose_a, **params: [
        None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)],
    axes=batched((2, 2), (2,)), sharding=_solve_sharding,
    alike="All inputs to triangular_solve must have the same batch sharding",
    whole="triangular solve inputs must be unsharded on the contracting axis")
triangular_solve_p.batching = columns_together(triangular_solve_p, lambda params: not params["left_side"])


def triangular_solve(a, b, left_side=True, lower=True, transpose_a=False, conjugate_a=False,
                     unit_diagonal=False):
    return triangular_solve_p.bind(a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                   conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)


# --- cholesky -------------------------------------------------------------------------------------

def _cholesky_abstract_eval(x):
    check_matrices("cholesky", x, square=True)
    return x.strip_weak_type()


def _cholesky_by(target, settings):
    def lower(x):
        aval = aval_of(x)
        factor, info = kernel(target(aval.dtype), (x,), [aval, infos(aval)], aliases=((0, 0),), **settings)
        return triangle(*checked(info, factor))
    return lower


def _cholesky_lower(ctx, eqn, x):
    aval = eqn.invars[0].aval
    found = ctx.emit(f"stablehlo.cholesky {x}, lower = true : {aval.mlir}")
    return ctx.lower_fun(triangle, eqn, found)


def _cholesky_jvp(primals, tangents):
    """dL = L phi(inv(L) dA inv(L)^H); phi(M): the lower triangle, half of the diagonal (Murray, eq. 8)."""
    (x,), (dx,) = primals, tangents
    factor = cholesky_p.bind(x)
    return factor, _factor_tangent(factor, hermitian(dx))     # nothing but the lower triangle is read


def _factor_tangent(factor, da):
    inner = triangular_solve(factor, da)
    inner = triangular_solve(factor, inner, left_side=False, transpose_a=True, conjugate_a=True)
    half = add(triangle(inner, inset=1), div(mul_exactly(inner, eye_like(inner)), 2))
    return triangle(matmul(factor, half))       # of triangles, which NaN would fill


cholesky_p = Mapped(
    "cholesky", abstract_eval=_cholesky_abstract_eval, jvp=_cholesky_jvp, axes=batched((2,), (2,)), lower={
        **by_kernels({"cpu": _cholesky_by(lambda dtype: lapack("potrf", dtype), {"uplo": letter("L")}),
                      "cuda": _cholesky_by(lambda dtype: "cusolver_potrf_ffi", {"lower": True})}),
        None: _cholesky_lower})


# --- cholesky_update ------------------------------------------------------------------------------

def _update_abstract_eval(r, w):
    check_dtypes("cholesky_update", r, w, kinds="f")
    check_ranks("cholesky_update", (r, 2), (w, 1))
    if not r.shape[-1] == r.shape[-2] == w.shape[-1]:
        raise ValueError("Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
                         f"same size as input. Got shapes {r.shape} and {w.shape} instead")
    return r.strip_weak_type()


def _updated(r, w):
    """Rotations of each row of R with w, one after the other, that make w zero (Golub and Van Loan, "Matrix
    Computations", section 6.5.4)."""
    def rotate(i, r, w):
        row = chosen(r, i, -2)
        x, y = chosen(row, i), chosen(w, i)
        none, size = eq(y, 0), sqrt(add(square(x), square(y)))
        c, s = select(none, 1.0, div(x, size)), select(none, 0.0, div(y, size))
        return [replaced(r, i, add(scaled(row, c), scaled(w, s)), -2), sub(scaled(w, c), scaled(row, s))]
    upper, _ = counted(shape_of(r)[-1], rotate, triangle(r, lower=False), w)
    return [add(upper, triangle(r, inset=1))]       # what is below is left as it is


def _update_cuda(r, w):
    if len(shape_of(r)) > 2:
        return _updated(r, w)
    return kernel("cu_cholesky_update_ffi", (r, w), [aval_of(r), aval_of(w)], aliases=((0, 0), (1, 1)),
                  row_major=True)[:1]


def _update_jvp(primals, tangents):
    """R'^T is a Cholesky factor of R^T R + w w^T, and its tangent follows as `cholesky`'s does."""
    (r, w), (dr, dw) = primals, tangents
    out, n = cholesky_update_p.bind(r, w), shape_of(w)[-1]
    half = full(shape_of(r), 0, r.dtype)
    if dr is not None:
        half = matmul(transposed(triangle(r, lower=False)), triangle(dr, lower=False))
    if dw is not None:
        half = add(half, mul(rows(w, n), columns(dw, n)))
    moved = transposed(_factor_tangent(transposed(triangle(out, lower=False)), add(half, transposed(half))))
    return out, moved if dr is None else add(moved, triangle(dr, inset=1))


cholesky_update_p = Mapped("cholesky_update", abstract_eval=_update_abstract_eval, jvp=_update_jvp,
                           axes=batched((2, 1), (2,)),
                           lower=by_kernels({"cuda": _update_cuda, None: _updated}))


# --- symmetric_product ----------------------------------------------------------------------------

def _product_abstract_eval(a, c, *, alpha, beta):
    name = "symmetric_product"
    check_dtypes(name, a, c, kinds="f")
    check_ranks(name, (a, 2), (c, 2))
    if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
        raise ValueError(f"{name} expects matrices a of shape (..., m, n) and square ones c of shape (..., "
                         f"m, m). Got shapes {a.shape} and {c.shape}.")
    return c.strip_weak_type()


def _syrk(a, c, *, alpha, beta):
    factors = [scalar(factor, dtype_of(a)) for factor in (alpha, beta)]
    return kernel("cusolver_syrk_ffi", (a, c, *factors), [aval_of(c)], aliases=((1, 0),), row_major=True,
                  transpose=False)


def _product_jvp(primals, tangents, *, alpha, beta):
    (a, c), (da, dc) = primals, tangents
    half = None if da is None else matmul(da, transposed(a))
    terms = [] if half is None else [mul(add(half, transposed(half)), alpha)]
    terms += [] if dc is None else [mul(dc, beta)]
    moved = terms[0] if len(terms) == 1 else add(*terms)
    return symmetric_product_p.bind(a, c, alpha=alpha, beta=beta), moved


symmetric_product_p = Mapped(
    "symmetric_product", abstract_eval=_product_abstract_eval, jvp=_product_jvp,
    axes=batched((2, 2), (2,)), lower=by_kernels({
        "cuda": _syrk,
        None: lambda a, c, *, alpha, beta: [add(mul(matmul(a, transposed(a)), alpha), mul(c, beta))]}))
