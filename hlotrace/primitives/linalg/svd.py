"""The singular value decomposition, A = U diag(s) V^H.

Derivatives: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), and Townsend, "Differentiating the singular value decomposition" (2016); of complex
matrices Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""
import enum

from ...core.symbolic.dimension import min_dim
from ..arrays.elementwise import add, convert, div, mul, real, sub
from ..arrays.shape import Mapped, full
from ..common import aval_of, dtype_of, dtypes, shape_of
from .eigen import refuse
from .polar import polar_svd
from .shared import (
    adjoint, batched, block, by_kernels, check_matrices, checked, columns, diagonal, eye_like, infos, kernel,
    lapack, letter, matmul, matrices, mul_exactly, part, real_dtype, rows, vectors)


class SvdAlgorithm(enum.Enum):
    """How `svd` computes; which there are depends on the platform."""
    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


QR, JACOBI, POLAR, DIVIDE = (SvdAlgorithm.QR, SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR,
                             SvdAlgorithm.DIVIDE_AND_CONQUER)


def _svd_abstract_eval(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    check_matrices("svd", x)
    m, n = x.shape[-2:]
    k = min_dim(m, n)
    if subset_by_index is not None:
        first, last = subset_by_index
        if not 0 <= first <= last <= k:
            raise ValueError(f"svd: subset_by_index {subset_by_index} must be (start, end) with 0 <= start "
                             f"<= end <= {k}, the number of singular values of matrices of shape {x.shape}")
        if full_matrices and last - first < k:
            raise ValueError("full_matrices and subset_by_index cannot both be set: pass full_matrices=False")
        k = last - first
    values = vectors(x, k, real_dtype(x.dtype))
    if not compute_uv:
        return [values]
    return [values, matrices(x, m, m if full_matrices else k), matrices(x, n if full_matrices else k, n)]


def _shapes(aval, full_matrices):
    """The avals of what a kernel gives: the matrix overwritten, values, U, V^H, and what it says."""
    _, u, vh = _svd_abstract_eval(aval, full_matrices=full_matrices, compute_uv=True, subset_by_index=None,
                        algorithm=None)
    return [aval, vectors(aval, min_dim(*aval.shape[-2:]), real_dtype(aval.dtype)), u, vh, infos(aval)]


def _by(decompose):
    """A rule from `decompose(x, full_matrices, compute_uv, algorithm)` -> s, U, V^H: what was requested."""
    def lowered(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
        aval = aval_of(x)
        if not aval.size:       # no singular value; the vectors are any that are orthonormal
            _, s, u, vh, _ = _shapes(aval, full_matrices)
            found = [full(s.shape, 0, s.dtype), *(eye_like(full(a.shape, 0, a.dtype)) for a in (u, vh))]
        else:
            found = decompose(x, full_matrices, compute_uv, algorithm)
        if not compute_uv:
            found = found[:1]
        if subset_by_index is not None and not full_matrices:
            parts = part, lambda u, bounds: block(u, cols=bounds), lambda vh, bounds: block(vh, rows=bounds)
            found = [cut(each, subset_by_index) for cut, each in zip(parts, found)]
        elif subset_by_index is not None:
            found[0] = part(found[0], subset_by_index)
        return found
    return lowered


def _svd_lapack(x, full_matrices, compute_uv, algorithm):
    if algorithm in (JACOBI, POLAR):
        raise refuse("svd", "algorithm", algorithm, "the CPU", "None, DEFAULT, QR or DIVIDE_AND_CONQUER")
    aval = aval_of(x)
    wanted = "A" if full_matrices else "S"
    mode = letter(wanted if compute_uv else "N")
    _, *found, info = kernel(lapack("gesvd" if algorithm is QR else "gesdd", aval.dtype), (x,),
                             _shapes(aval, full_matrices), aliases=((0, 0),), mode=mode)
    return checked(info, *found)


def _svd_cuda(x, full_matrices, compute_uv, algorithm):
    """Small matrices by Jacobi's method, larger ones by QR, which takes tall ones only; POLAR by choice."""
    if algorithm is DIVIDE:
        raise refuse("svd", "algorithm", algorithm, "CUDA", "None, DEFAULT, QR, JACOBI or POLAR")
    aval = aval_of(x)
    m, n = aval.shape[-2:]
    if algorithm not in (QR, JACOBI, POLAR):
        algorithm = JACOBI if max(m, n) <= 1024 else QR
    if algorithm is QR:
        avals, wide = _shapes(aval, full_matrices), m < n
        if wide:    # its transpose, which is this in row-major order: what is U there is V^H here
            avals[2], avals[3] = avals[3], avals[2]
        _, s, u, vh, info = kernel("cusolver_gesvd_ffi", (x,), avals, aliases=((0, 0),), row_major=wide,
                                   compute_uv=compute_uv, full_matrices=full_matrices, transposed=wide)
        u, vh = (vh, u) if wide else (u, vh)
    else:
        # cuSOLVER's kernel for batches, of sizes up to 32, gives square U and V (gesvdjBatched of its manual)
        whole = full_matrices or algorithm is JACOBI and min_dim(m, n) <= 32
        avals = _shapes(aval, whole)
        avals[3] = avals[3].update(shape=(*avals[3].shape[:-2], *avals[3].shape[:-3:-1]))       # it gives V
        _, s, u, v, info = kernel(f"cusolver_gesvd{'p' if algorithm is POLAR else 'j'}_ffi", (x,), avals,
                                  aliases=((0, 0),), compute_uv=compute_uv, full_matrices=whole)
        vh = adjoint(v)
        if not full_matrices:
            u, vh = block(u, cols=(0, min_dim(m, n))), block(vh, rows=(0, min_dim(m, n)))
    return checked(info, s, u, vh)


def _svd_polar(x, full_matrices, compute_uv, algorithm):
    if algorithm not in (None, SvdAlgorithm.DEFAULT, POLAR):
        raise refuse("svd", "algorithm", algorithm, "this platform", "None, DEFAULT or POLAR")
    return polar_svd(x, full_matrices)


def _svd_jvp(primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
    """With M = U^H dA V, ds is the real part of its diagonal; U^H dU and V^H dV are skew-Hermitian with M
    diag(s) and diag(s) M, each plus its adjoint, divided by differences of squared singular values; what is
    of dA outside of the spaces that U and V span turns these.  The imaginary diagonal of M is put into dU.
    """
    (x,), (dx,) = primals, tangents
    m, n = shape_of(x)[-2:]
    if subset_by_index not in (None, (0, min_dim(m, n))):
        raise NotImplementedError("Derivatives are not defined for a part of the singular values and "
                                  f"vectors, as subset_by_index={subset_by_index} gives: compute all, and "
                                  "take a part of them")
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices: "
                                  f"vectors beyond the first {min_dim(m, n)} of matrices of shape "
                                  f"{shape_of(x)} can be any; pass full_matrices=False")
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=algorithm)
    v, dtype, k = adjoint(vh), dtype_of(x), min_dim(m, n)
    seen = matmul(matmul(adjoint(u), dx), v)
    ds = diagonal(real(seen) if dtypes.is_complex(dtype) else seen)
    if not compute_uv:
        return [s], [ds]
    eye = eye_like(columns(s, k))
    squares = mul(sub(columns(s, k), rows(s, k)), add(columns(s, k), rows(s, k)))
    apart = convert(sub(div(1.0, add(squares, eye)), eye), dtype)
    scale = convert(s, dtype)
    right, left = mul(seen, columns(scale, k)), mul(rows(scale, k), seen)
    turn_u, turn_v = (mul(apart, add(y, adjoint(y))) for y in (right, left))
    if dtypes.is_complex(dtype):
        spin = mul_exactly(sub(seen, convert(real(seen), dtype)), eye)
        turn_u = add(turn_u, div(spin, columns(scale, k)))
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    if m > n:
        outside = div(matmul(dx, v), columns(scale, m))
        du = add(du, sub(outside, matmul(u, matmul(adjoint(u), outside))))
    if m < n:
        outside = div(matmul(adjoint(dx), u), columns(scale, n))
        dv = add(dv, sub(outside, matmul(v, matmul(vh, outside))))
    return [s, u, vh], [ds, du, adjoint(dv)]


svd_p = Mapped("svd", multiple_results=True, abstract_eval=_svd_abstract_eval, jvp=_svd_jvp,
               axes=batched((2,), lambda compute_uv, **_: (1, 2, 2) if compute_uv else (1,)),
               lower=by_kernels({"cpu": _by(_svd_lapack), "cuda": _by(_svd_cuda), None: _by(_svd_polar)}))
