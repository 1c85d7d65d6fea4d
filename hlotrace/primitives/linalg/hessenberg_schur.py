"""Forms from which eigenvalues are read or found: Hessenberg, tridiagonal and Schur."""
import numpy as np

from ...core.errors import ShapeError
from ..arrays import elementwise as e
from ..arrays.reduce import reduce_max_p
from ..arrays.shape import Mapped, broadcast_in_dim
from ..arrays.transcendental import sqrt
from ..common import aval_of, dtype_of, dtypes, scalar, shape_of
from . import linalg_fallbacks
from .factorizations import qr_p
from .linalg_fallbacks import chosen, one_by_one, repeated, total
from .shared import (
    INT32, adjoint, batched, by_kernels, check_dtypes, checked, eye_like, infos, kernel, lapack, letter,
    matmul, matrices, place, real_dtype, shifted, triangle, vectors)


def _check(name, x):
    check_dtypes(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"The input to {name} must be a square matrix or a batch of them, of shape [..., n, "
                         f"n]. Got shape {x.shape}.")


# --- hessenberg and tridiagonal -------------------------------------------------------------------

def _hessenberg_abstract_eval(x):
    _check("hessenberg", x)
    return [matrices(x, *x.shape[-2:]), vectors(x, max(x.shape[-1] - 1, 0))]


def _gehrd(x):
    aval = aval_of(x)
    packed, taus, info = kernel(lapack("gehrd", aval.dtype), (x,),
                                [*_hessenberg_abstract_eval(aval), infos(aval)], aliases=((0, 0),),
                                low=np.int32(1), high=np.int32(aval.shape[-1]))
    return checked(info, packed, taus)


hessenberg_p = Mapped("hessenberg", multiple_results=True, abstract_eval=_hessenberg_abstract_eval,
                      axes=batched((2,), (2, 1)),
                      lower=by_kernels({"cpu": _gehrd, None: linalg_fallbacks.hessenberg}))


def _tridiagonal_abstract_eval(x, *, lower):
    _check("tridiagonal", x)
    n, kind = x.shape[-1], real_dtype(x.dtype)
    return [matrices(x, n, n), vectors(x, n, kind), vectors(x, max(n - 1, 0), kind),
            vectors(x, max(n - 1, 0))]


def _sytrd_by(target, settings):
    def lowered(x, *, lower):
        aval = aval_of(x)
        *found, info = kernel(target(aval.dtype), (x,),
                              [*_tridiagonal_abstract_eval(aval, lower=lower), infos(aval)],
                              aliases=((0, 0),), **settings(lower))
        return checked(info, *found)
    return lowered


tridiagonal_p = Mapped(
    "tridiagonal", multiple_results=True, abstract_eval=_tridiagonal_abstract_eval,
    axes=batched((2,), (2, 1, 1, 1)), lower=by_kernels({
        "cpu": _sytrd_by(lambda dtype: lapack("sytrd", dtype),
                         lambda lower: {"uplo": letter("L" if lower else "U")}),
        "cuda": _sytrd_by(lambda dtype: "cusolver_sytrd_ffi", lambda lower: {"lower": lower}),
        None: linalg_fallbacks.tridiagonal}))


# --- schur ----------------------------------------------------------------------------------------

def _schur_abstract_eval(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    _check("schur", x)
    for name, value, unused in (("sort_eig_vals", sort_eig_vals, False),
                                ("select_callable", select_callable, None)):
        if value is not unused:
            raise NotImplementedError(f"schur: {name}={value} is not implemented: jaxlib's kernel does not "
                                      "sort eigenvalues")
    return [x.strip_weak_type()] * (1 + compute_schur_vectors)


def _gees(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    aval = aval_of(x)
    values = [vectors(aval, aval.shape[-1])] * (1 if dtypes.is_complex(aval.dtype) else 2)
    outs = [aval, aval, *values, infos(aval), infos(aval)]
    form, q, *_, info = kernel(lapack("gees", aval.dtype), (x,), outs, aliases=((0, 0),),
                               mode=letter("V" if compute_schur_vectors else "N"), sort=letter("N"))
    return checked(info, *[form, q][:1 + compute_schur_vectors])


@one_by_one
def complex_schur(x):
    """(T, Q) with x = Q T Q^H, T upper triangular, for complex x: the QR algorithm, Wilkinson's shifts.

    (Francis, "The QR transformation", 1961; Golub and Van Loan, section 7.5.)  Each step factors what has not
    come apart yet, whose rows and columns are `first` to `last`; the rest is an identity beside it.
    NaN where 30 steps for each eigenvalue do not suffice.
    """
    n, dtype = shape_of(x)[-1], dtype_of(x)
    tiny, most = scalar(dtypes.finfo(real_dtype(dtype)).eps, real_dtype(dtype)), 30 * n

    def below(t):       # the element left of each diagonal one, where it still counts
        size = e.abs_p.bind(t)
        on = total(e.mul(size, eye_like(size)))
        left = total(e.select(e.eq(place((n, n), -2), e.add(place((n, n), -1), 1)), size, 0.0))
        return e.gt(left, e.mul(tiny, e.add(on, shifted(on, 1))))

    def last_of(t):
        return reduce_max_p.bind(e.select(below(t), place((n,), -1), 0), axes=(0,))

    def going_on(i, t, q):
        return e.and_p.bind(e.lt(i, most), e.gt(last_of(t), 0))

    def step(i, t, q):
        coupled, places, last = below(t), place((n,), -1), last_of(t)
        parted = e.and_p.bind(e.le(places, last), e.eq(coupled, False))
        first = reduce_max_p.bind(e.select(parted, places, 0), axes=(0,))
        row, column = place((n, n), -2), place((n, n), -1)
        # what is small enough is zero
        kept = e.or_p.bind(e.le(row, column), broadcast_in_dim(coupled, (n, n), (0,)))
        t = triangle(e.select(kept, t, 0), False, -1)

        def at(i, j):
            return chosen(chosen(t, i, -2), j)
        prev = e.sub(last, 1)
        a, b, c, d = at(prev, prev), at(prev, last), at(last, prev), at(last, last)
        half = e.div(e.sub(a, d), 2)
        root = sqrt(e.add(e.mul(half, half), e.mul(b, c)))
        one, other = e.add(half, root), e.sub(half, root)
        near = e.select(e.lt(e.abs_p.bind(one), e.abs_p.bind(other)), one, other)
        stuck = e.eq(e.rem_p.bind(i, scalar(10, INT32)), 9)
        shift = e.add(d, e.select(stuck, e.convert(e.abs_p.bind(c), dtype), near))
        inside = e.and_p.bind(e.and_p.bind(e.ge(row, first), e.le(row, last)),
                              e.and_p.bind(e.ge(column, first), e.le(column, last)))
        eye = eye_like(t)
        work = e.select(inside, e.sub(t, e.mul(eye, broadcast_in_dim(shift, (n, n), ()))), eye)
        turn, _ = qr_p.bind(work, pivoting=False, full_matrices=False, use_magma=None)
        return [e.add(i, 1), matmul(adjoint(turn), matmul(t, turn)), matmul(q, turn)]
    start, q, _, _ = linalg_fallbacks.reduced(x)
    i, t, q = repeated(going_on, step, scalar(0, INT32), start, q)
    return checked(e.convert(e.ge(i, most), INT32), triangle(t, False), q)


def _schur_loop(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    if not dtypes.is_complex(dtype_of(x)):
        raise NotImplementedError("schur: the real Schur form is only implemented on the CPU; convert the "
                                  "matrix to complex64 or complex128")
    return complex_schur(x)[:1 + compute_schur_vectors]


schur_p = Mapped("schur", multiple_results=True, abstract_eval=_schur_abstract_eval,
                 axes=batched((2,), lambda compute_schur_vectors, **_: (2,) * (1 + compute_schur_vectors)),
                 lower=by_kernels({"cpu": _gees, None: _schur_loop}))
