"""Eigenvalues and eigenvectors: of Hermitian matrices (eigh), of any square ones (eig).

Derivatives: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); of eigenvectors of general matrices, Magnus, "On differentiating eigenvalues and
eigenvectors" (1985).  Where eigenvalues meet, those of the eigenvalues stay finite and those of eigenvectors,
which do not exist there, are infinite or NaN.
"""
import enum

from ..arrays import elementwise as e
from ..arrays.reduce import argmax_p
from ..arrays.shape import Mapped, full, reduce_sum
from ..arrays.transcendental import sqrt
from ..common import aval_of, dtype_of, dtypes, np, scalar, shape_of
from .factorizations import solve
from .hessenberg_schur import complex_schur
from .linalg_fallbacks import chosen, counted, replaced, scaled, size_squared
from .shared import (
    adjoint, batched, block, by_kernels, check_matrices, checked, columns, diagonal, eye_like, hermitian,
    infos, kernel, lapack, letter, matmul, matrices, part, place, real_dtype, rows, shifted, vectors)


class EighImplementation(enum.Enum):
    """How `eigh` computes.  QR: LAPACK's or cuSOLVER's; JACOBI: on GPU and TPU; QDWH: on TPU."""
    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Which library computes `eig`.  On the CPU it is LAPACK."""
    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def refuse(name, parameter, value, platform, able):
    """The NotImplementedError for a choice that a platform does not have."""
    return NotImplementedError(f"{name}: {parameter}={value} is not implemented on {platform}; there it may "
                               f"be {able}")


def differences(values):
    """1 / (values[j] - values[i]) at [i, j], and 0 on the diagonal."""
    n = shape_of(values)[-1]
    gaps = e.sub(columns(values, n), rows(values, n))
    eye = eye_like(gaps)
    return e.sub(e.div(1.0, e.add(eye, gaps)), eye)


# --- eigh -----------------------------------------------------------------------------------------

def _eigh_abstract_eval(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    check_matrices("eigh", x, square=True)
    n = x.shape[-1]
    first, last = subset_by_index or (0, n)
    if not 0 <= first <= last <= n:
        raise ValueError(f"eigh: subset_by_index {subset_by_index} must be (start, end) with 0 <= start <= "
                         f"end <= {n}, the number of eigenvalues of matrices of shape {x.shape}")
    return [matrices(x, n, last - first), vectors(x, last - first, real_dtype(x.dtype))]


def _eigh_by(target, platform, algorithms, settings):
    def lowered(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        if algorithm not in algorithms:
            raise refuse("eigh", "implementation", algorithm, platform, f"None or {[*algorithms][1:]}")
        aval = aval_of(x)
        outs = [aval, vectors(aval, aval.shape[-1], real_dtype(aval.dtype))]
        v, w, info = kernel(target(aval.dtype), (x,), [*outs, infos(aval)], aliases=((0, 0),),
                            **settings(lower, algorithms[algorithm]))
        return _subset(*checked(info, v, w), subset_by_index)
    return lowered


def _subset(v, w, bounds):
    if bounds is None:
        return [v, w]
    return [block(v, cols=bounds), part(w, bounds)]


def _eigh_xla(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    if algorithm is EighImplementation.QR:
        raise refuse("eigh", "implementation", algorithm, "this platform", "None, JACOBI or QDWH")
    aval = aval_of(x)
    # how many sweeps, and when to stop
    v, w = kernel("Eigh", (x,), [aval, vectors(aval, aval.shape[-1], real_dtype(aval.dtype))], api_version=1,
                  config=f"{int(lower)},{int(sort_eigenvalues)},100,1e-6")
    return _subset(v, w, subset_by_index)


def _eigh_jvp(primals, tangents, *, lower, subset_by_index, **params):
    """dw = diag(V^H dA V), and V^H dV is what else is in it, divided by the distances of the eigenvalues."""
    (x,), (dx,) = primals, tangents
    if subset_by_index not in (None, (0, shape_of(x)[-1])):
        raise NotImplementedError("Derivatives are not defined for a part of the eigenvalues and vectors, "
                                  f"as subset_by_index={subset_by_index} gives: compute all, and take a "
                                  "part of them")
    v, w = eigh_p.bind(x, lower=lower, subset_by_index=subset_by_index, **params)
    inner = matmul(adjoint(v), matmul(hermitian(dx, lower), v))     # nothing but one triangle is read
    dw = diagonal(e.real(inner) if dtypes.is_complex(dtype_of(x)) else inner)
    return [v, w], [matmul(v, e.mul(e.convert(differences(w), dtype_of(x)), inner)), dw]


eigh_p = Mapped(
    "eigh", multiple_results=True, abstract_eval=_eigh_abstract_eval, jvp=_eigh_jvp,
    axes=batched((2,), (2, 1)), lower=by_kernels({
    "cpu": _eigh_by(lambda dtype: lapack("syevd", dtype), "the CPU",
                    {None: None, EighImplementation.QR: None},
                    lambda lower, _: {"mode": letter("V"), "uplo": letter("L" if lower else "U")}),
    "cuda": _eigh_by(lambda dtype: "cusolver_syevd_ffi", "CUDA",
                     {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2},
                     lambda lower, which: {"algorithm": np.uint8(which), "lower": lower}),
    None: _eigh_xla}))


# --- eig ------------------------------------------------------------------------------------------

def _eig_abstract_eval(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
             implementation):
    check_matrices("eig", x, square=True)
    dtype, n = dtypes.complex_of(real_dtype(x.dtype)), x.shape[-1]
    return [vectors(x, n, dtype), *[matrices(x, n, n, dtype)] * (compute_left_eigenvectors +
                                                                 compute_right_eigenvectors)]


def _eig_by(target, settings):
    def lowered(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
                implementation):
        aval = aval_of(x)
        real_kind = not dtypes.is_complex(aval.dtype)
        every = _eig_abstract_eval(aval, compute_left_eigenvectors=True, compute_right_eigenvectors=True,
                         enable_eigvec_derivs=False, implementation=None)
        values = [vectors(aval, aval.shape[-1])] * 2 if real_kind else every[:1]
        *w, left, right, info = kernel(target(aval.dtype), (x,), [*values, *every[1:], infos(aval)],
                                       **settings(compute_left_eigenvectors, compute_right_eigenvectors,
                                                  implementation))
        w = e.complex_p.bind(*w) if real_kind else w[0]
        wanted = [w, *([left] if compute_left_eigenvectors else []),
                  *([right] if compute_right_eigenvectors else [])]
        return checked(info, *wanted)
    return lowered


def _geev(left, right, implementation):
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(f"eig: only the lapack implementation is supported on the CPU, not {implementation}")
    return {f"compute_{side}": letter("V" if wanted else "N")
            for side, wanted in (("left", left), ("right", right))}


def _hybrid(left, right, implementation):
    magma = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}[implementation]
    return {"left": left, "magma": magma, "right": right}


_eig_by_host = _eig_by(
    lambda dtype: f"cuhybrid_eig_{'comp' if dtypes.is_complex(dtype) else 'real'}", _hybrid)


def _eig_on_cuda(x, **params):
    if params["implementation"] is EigImplementation.CUSOLVER:
        return _eig_by_cusolver(x, **params)
    return _eig_by_host(x, **params)


def _eig_by_cusolver(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
                     implementation):
    if compute_left_eigenvectors:
        raise NotImplementedError("eig: left eigenvectors are not supported by cuSOLVER: pass "
                                  "compute_left_eigenvectors=False, or another implementation")
    aval = aval_of(x)
    w = vectors(aval, aval.shape[-1], dtypes.complex_of(real_dtype(aval.dtype)))
    _, w, _, v, info = kernel("cusolver_geev_ffi", (x,), [aval, w, aval, aval, infos(aval)], left=False,
                              right=compute_right_eigenvectors)
    if not compute_right_eigenvectors:
        return checked(info, w)
    return checked(info, w, v if dtypes.is_complex(aval.dtype) else _unpacked(v, w))


def _unpacked(v, w):
    """Complex eigenvectors of real matrices: of two conjugates one column has the real part of both, and the
    next the imaginary part of the first, that whose eigenvalue has a positive one."""
    n, imaginary = shape_of(w)[-1], e.imag_p.bind(w)
    first, second = columns(e.gt(imaginary, 0), n), columns(e.lt(imaginary, 0), n)
    parts = e.select(first, shifted(v, -1), e.select(second, e.neg(v), 0))
    return e.complex_p.bind(e.select(second, shifted(v, 1), v), parts)


def _scaled_vectors(v):
    """Of length one, and with a real largest component, as LAPACK has them."""
    axis, n = len(shape_of(v)) - 2, shape_of(v)[-1]
    v = e.div(v, columns(e.convert(sqrt(reduce_sum(size_squared(v), (axis,))), dtype_of(v)), n))
    largest = reduce_sum(e.mul(v, _largest(v)), (axis,))
    return e.mul(v, columns(e.div(e.conj_p.bind(largest), e.convert(e.abs_p.bind(largest), dtype_of(v))), n))


def _largest(v):
    """One at the largest component of each column, and zero elsewhere."""
    axis = len(shape_of(v)) - 2
    largest = argmax_p.bind(e.abs_p.bind(v), axes=(axis,), index_dtype=np.dtype(np.int32))
    return e.convert(e.eq(place(shape_of(v), -2), columns(largest, shape_of(v)[-2])), dtype_of(v))


def _eig_by_schur(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
                  implementation):
    """From the complex Schur form x = Q T Q^H: the eigenvectors of T by substitution, last row first."""
    if implementation is not None:
        raise refuse("eig", "implementation", implementation, "this platform", "None")
    n = shape_of(x)[-1]
    t, q = complex_schur(e.convert(x, dtypes.complex_of(real_dtype(dtype_of(x)))))
    w, small = diagonal(t), scalar(dtypes.finfo(real_dtype(dtype_of(x))).tiny ** 0.5, dtype_of(t))

    def substitute(i, v, t, w):
        i = e.sub(n - 1, i)
        row = reduce_sum(e.mul(rows(chosen(t, i, -2), n), e.sub(v, eye_like(v))), (len(shape_of(v)) - 2,))
        gaps = e.sub(w, scaled(full(shape_of(w), 1, dtype_of(w)), chosen(w, i)))
        found = e.div(e.add(row, chosen(t, i, -2)), e.select(e.eq(gaps, 0), small, gaps))
        return [replaced(v, i, e.select(e.gt(place(shape_of(w), -1), i), found, chosen(v, i, -2)), -2), t, w]
    v = matmul(q, counted(n, substitute, eye_like(t), t, w)[0])
    left = [_scaled_vectors(adjoint(solve(v, eye_like(v))))] if compute_left_eigenvectors else []
    return [w, *left, *([_scaled_vectors(v)] if compute_right_eigenvectors else [])]


def _moved_vectors(v, w, da):
    """Tangents of unit right eigenvectors whose largest component is real.

    V^-1 dV has off the diagonal those of V^-1 dA V divided by distances of eigenvalues.  Multiples of the
    vectors themselves come from how LAPACK scales them: lengths stay, and the largest component is real.
    """
    n = shape_of(v)[-1]
    dv = matmul(v, e.mul(differences(w), solve(v, matmul(da, v))))
    axis, there = len(shape_of(v)) - 2, _largest(v)
    along = e.real(reduce_sum(e.mul(e.conj_p.bind(v), dv), (axis,)))
    across = e.imag_p.bind(reduce_sum(e.mul(dv, there), (axis,)))
    turned = e.div(across, e.real(reduce_sum(e.mul(v, there), (axis,))))
    return e.sub(dv, e.mul(v, columns(e.complex_p.bind(along, turned), n)))


def _eig_jvp(primals, tangents, *, compute_left_eigenvectors, compute_right_eigenvectors,
             enable_eigvec_derivs, implementation):
    """dw = diag(V^-1 dA V).  Left eigenvectors are the right ones of A^H, with conjugate eigenvalues."""
    (x,), (dx,) = primals, tangents
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "eig: derivatives of eigenvectors of general matrices are right only where eigenvalues are "
            "distinct and each vector has one largest component, which cannot be checked: pass "
            "enable_eigvec_derivs=True to lax.linalg.eig if that is so, or compute eigenvalues alone")
    w, *vs = eig_p.bind(x, compute_left_eigenvectors=left, compute_right_eigenvectors=True,
                        enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)
    da, v = e.convert(dx, dtype_of(w)), vs[-1]
    dw = diagonal(solve(v, matmul(da, v)))
    dvs = [_moved_vectors(vs[0], e.conj_p.bind(w), adjoint(da))] if left else []
    dvs += [_moved_vectors(v, w, da)] if right else []
    return [w, *vs[:left + right]], [dw, *dvs]


eig_p = Mapped(
    "eig", multiple_results=True, abstract_eval=_eig_abstract_eval, jvp=_eig_jvp,
    axes=batched((2,), lambda compute_left_eigenvectors, compute_right_eigenvectors, **_: (
        1, *[2] * (compute_left_eigenvectors + compute_right_eigenvectors))),
    lower=by_kernels({
        "cpu": _eig_by(lambda dtype: lapack("geev", dtype), _geev),
        "cuda": _eig_on_cuda,
        None: _eig_by_schur}))
