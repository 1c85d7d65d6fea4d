"""Tridiagonal systems.

`dl`, `d` and `du` are the diagonals below, on and above the main one, all of one length: dl[..., 0] and
du[..., -1] count for nothing.
"""
from ...core import programs
from ..arrays.elementwise import div, mul, neg, sub
from ..arrays.shape import Mapped, full, move_axis
from ..common import aval_of, shape_of
from ..programs.scan import scan_p
from .shared import (
    batched, by_kernels, check_dtypes, checked, columns_together, infos, kernel, lapack, rows, shifted)


def _abstract_eval(dl, d, du, b, *, perturb_singular):
    name = "tridiagonal_solve"
    check_dtypes(name, dl, d, du, b)
    for i, (a, own) in enumerate(((dl, 1), (d, 1), (du, 1), (b, 2))):
        if a.ndim < own:
            raise TypeError(f"Input {i} to {name} must have rank at least {own}, but got shape={a.shape}")
    if not dl.shape == d.shape == du.shape:
        raise TypeError(f"{name} requires that all diagonal arguments have the same shape, got {dl.shape}, "
                        f"{d.shape} and {du.shape}: pad dl in front and du at the end")
    if b.shape[:-1] != d.shape:
        raise TypeError(f"{name} requires that the leading ndim-1 dimensions of b equal the dimensions of "
                        f"the diagonal arguments, got b of shape {b.shape} and diagonals of shape "
                        f"{d.shape}: a vector is one column, b[..., None]")
    return b.strip_weak_type()


def _gtsv(dl, d, du, b, *, perturb_singular):
    avals = list(map(aval_of, (dl, d, du, b)))
    if perturb_singular:
        return kernel("tridiagonal_solve_perturbed_ffi", (dl, d, du, b), avals[3:])
    *_, x, info = kernel(lapack("gtsv", avals[3].dtype), (dl, d, du, b), [*avals, infos(avals[3])],
                         aliases=tuple((i, i) for i in range(4)))
    return checked(info, x)


def _gtsv_cuda(dl, d, du, b, *, perturb_singular):
    if perturb_singular:
        return kernel("cu_tridiagonal_solve_perturbed", (dl, d, du, b), [aval_of(b)])
    return kernel("cusparse_gtsv2_ffi", (dl, d, du, b), [aval_of(b)], aliases=((3, 0),))


def _thomas(dl, d, du, b, *, perturb_singular):
    """Elimination without exchanging rows, then substitution (Golub and Van Loan, "Matrix Computations",
    section 4.3)."""
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: perturb_singular=True is only implemented on the CPU "
                                  "and on CUDA")
    batch, width = len(shape_of(b)) - 2, shape_of(b)[-1]

    def wide(x):    # so that all operands have the shape of rows of b
        return rows(x, width)
    steps = [move_axis(x, batch, 0) for x in (wide(dl), wide(d), wide(du), b)]
    row = aval_of(steps[3]).update(shape=shape_of(steps[3])[1:])
    zero = full(row.shape, 0, row.dtype)

    def loop(body, carry, xs, reverse):
        jaxpr = programs.trace_closed(body, [row] * (len(carry) + len(xs)), "tridiagonal_solve")
        return scan_p.bind(*carry, *xs, jaxpr=jaxpr, length=shape_of(b)[-2], reverse=reverse, unroll=1,
                           num_consts=0, num_carry=len(carry))

    def eliminate(upper, value, low, mid, up, right):
        pivot = sub(mid, mul(low, upper))
        upper, value = div(up, pivot), div(sub(right, mul(low, value)), pivot)
        return [upper, value, upper, value]

    def substitute(x, upper, value):
        x = sub(value, mul(upper, x))
        return [x, x]
    *_, uppers, values = loop(eliminate, [zero, zero], steps, False)
    return [move_axis(loop(substitute, [zero], [uppers, values], True)[1], 0, batch)]


def _jvp(primals, tangents, **params):
    """A X = B has the tangent A dX = dB - dA X."""
    *diagonals, b = primals
    x = tridiagonal_solve_p.bind(*primals, **params)
    width, right = shape_of(b)[-1], tangents[3]
    for tangent, step in zip(tangents[:3], (1, 0, -1)):
        if tangent is not None:
            term = mul(rows(tangent, width), shifted(x, step, -2))
            right = neg(term) if right is None else sub(right, term)
    return x, tridiagonal_solve_p.bind(*diagonals, right, **params)


tridiagonal_solve_p = Mapped(
    "tridiagonal_solve", abstract_eval=_abstract_eval, jvp=_jvp,
    transpose=lambda ct, dl, d, du, b, **params: [
        None, None, None, tridiagonal_solve_p.bind(shifted(du, 1), d, shifted(dl, -1), ct, **params)],
    axes=batched((1, 1, 1, 2), (2,)), lower=by_kernels({"cpu": _gtsv, "cuda": _gtsv_cuda, None: _thomas}))
tridiagonal_solve_p.batching = columns_together(tridiagonal_solve_p)
