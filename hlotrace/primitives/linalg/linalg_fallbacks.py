"""Linear algebra as loops over array operations, for platforms that have no kernel for it.

Reflectors and condensed forms: Golub and Van Loan, "Matrix Computations" (2013), chapters 5 and 7, with
LAPACK's signs.
"""
import functools

from ...core import programs
from ...core.symbolic_zeros import MappedAxis
from ..arrays import elementwise as e
from ..arrays.reduce import argmax_p, reduce_max_p
from ..arrays.shape import broadcast_in_dim, full, reduce_sum, reshape
from ..arrays.slicing import rev_p
from ..arrays.transcendental import sqrt
from ..common import aval_of, dtype_of, dtypes, np, prod, scalar, shape_of
from ..programs.cond_while import while_p
from .shared import INT32, columns, conj, diagonal, eye_like, hermitian, part, place, rows, triangle

# --- loops ----------------------------------------------------------------------------------------

def repeated(going_on, body, *state):
    """state = body(*state) as long as going_on(*state).  They close over no traced values."""
    avals = list(map(aval_of, state))
    cond, step = (programs.trace_closed(f, avals, "repeated") for f in (lambda *xs: [going_on(*xs)], body))
    return while_p.bind(*state, cond_jaxpr=cond, body_jaxpr=step, cond_nconsts=0, body_nconsts=0)


def counted(n, body, *state):
    """state = body(i, *state) for i from 0 to n - 1."""
    return repeated(lambda i, *_: e.lt(i, n), lambda i, *xs: [e.add(i, 1), *body(i, *xs)], scalar(0, INT32),
                    *state)[1:]


def one_by_one(function):
    """A function of matrices and their parameters, done with each of a batch."""
    @functools.wraps(function)
    def over_batches(*operands, **params):
        lead = shape_of(operands[0])[:-2]
        if not lead:
            return function(*operands, **params)
        flat = [reshape(x, (prod(lead), *shape_of(x)[len(lead):])) for x in operands]
        outs = programs.map_flat(lambda *xs: function(*xs, **params), MappedAxis(prod(lead)), flat,
                                 [0] * len(flat))
        return [reshape(x, (*lead, *shape_of(x)[1:])) for x in outs]
    return over_batches


# --- reflections ----------------------------------------------------------------------------------

def total(x, axis=-1):
    return reduce_sum(x, (len(shape_of(x)) + axis,))


def _is(shape, axis, i):
    """Where the index along an axis is `i`, which each matrix or vector of a batch has its own of."""
    return e.eq(place(shape, axis), broadcast_in_dim(i, shape, tuple(range(len(shape_of(i))))))


def chosen(x, i, axis=-1):
    """Row (axis -2) or column (-1) number `i` of a matrix, element of a vector: its sum with zeros."""
    return total(e.select(_is(shape_of(x), axis, i), x, 0), axis)


def replaced(x, i, new, axis=-1):
    """The matrix with column (axis -1) or row number `i` replaced; the vector, with an element."""
    shape = shape_of(x)
    spread = broadcast_in_dim(new, shape, tuple(d for d in range(len(shape)) if d != len(shape) + axis))
    return e.select(_is(shape, axis, i), spread, x)


def exchanged(x, i, j, axis=-1):
    """With columns (axis -1) or rows, or elements of a vector, `i` and `j` exchanged."""
    first, second = chosen(x, i, axis), chosen(x, j, axis)
    return replaced(replaced(x, i, second, axis), j, first, axis)


def size_squared(x):
    if dtypes.is_complex(dtype_of(x)):
        return e.add(e.square(e.real(x)), e.square(e.imag_p.bind(x)))
    return e.square(x)


def reflector(x, at):
    """v and tau of the reflection I - tau v v^H whose adjoint takes the part of a vector from `at` on to a
    real multiple of its first unit vector; v is zero before `at` and one there (LAPACK's larfg)."""
    dtype, places = dtype_of(x), place(shape_of(x), -1)
    alpha = chosen(x, at)
    tail = e.select(e.gt(places, at), x, 0)
    # squares of what is left neither overflow nor vanish
    scale = reduce_max_p.bind(e.abs_p.bind(x), axes=(0,))
    scale = e.select(e.eq(scale, 0), 1.0, scale)
    unit = e.convert(scale, dtype)
    rest = total(size_squared(e.div(tail, broadcast_in_dim(unit, shape_of(x), ()))))
    norm = e.mul(scale, sqrt(e.add(rest, size_squared(e.div(alpha, unit)))))
    real_alpha = e.real(alpha) if dtypes.is_complex(dtype) else alpha
    beta = e.convert(e.select(e.gt(real_alpha, 0), e.neg(norm), norm), dtype)
    done = e.eq(rest, 0)
    if dtypes.is_complex(dtype):
        done = e.and_p.bind(done, e.eq(e.imag_p.bind(alpha), 0))
    one, zero = scalar(1, dtype), scalar(0, dtype)
    tau = e.select(done, zero, e.div(e.sub(beta, alpha), e.select(done, one, beta)))
    v = e.div(tail, broadcast_in_dim(e.select(done, one, e.sub(alpha, beta)), shape_of(x), ()))
    return replaced(v, at, one), tau


def scaled(x, factor):
    return e.mul(x, broadcast_in_dim(factor, shape_of(x), tuple(range(len(shape_of(factor))))))


def reflected(c, v, tau, left=True):
    """(I - tau v v^H) C, or C (I - tau v v^H), for one matrix or batches of them."""
    if left:
        inner = total(e.mul(rows(conj(v), shape_of(c)[-1]), c), -2)
        return e.sub(c, scaled(e.mul(rows(v, shape_of(c)[-1]), columns(inner, shape_of(c)[-2])), tau))
    inner = total(e.mul(columns(v, shape_of(c)[-2]), c))
    return e.sub(c, scaled(e.mul(rows(inner, shape_of(c)[-1]), columns(conj(v), shape_of(c)[-2])), tau))


def multiplied(a, taus, c, *, left, transpose):
    """ormqr: C times the product of reflectors in the columns of `a`, one after the other."""
    k = shape_of(taus)[-1]
    forward = left == transpose

    def step(i, c, a, taus):
        i = i if forward else e.sub(k - 1, i)
        column, tau = chosen(a, i), chosen(taus, i)
        places = place(shape_of(column), -1)
        v = e.select(e.gt(places, i), column, e.convert(e.eq(places, i), dtype_of(a)))
        return [reflected(c, v, conj(tau) if transpose else tau, left), a, taus]
    return [counted(k, step, c, a, taus)[0]]


@one_by_one
def eliminated(x):
    """LU with partial pivoting: (both factors in one matrix, exchanges of rows)."""
    m, n = shape_of(x)
    k = min(m, n)

    def step(i, a, pivots):
        column, row_places = chosen(a, i), place((m,), -1)
        parts = [e.real(column), e.imag_p.bind(column)] if dtypes.is_complex(dtype_of(a)) else [column]
        size = functools.reduce(e.add, map(e.abs_p.bind, parts))
        size = e.select(e.lt(row_places, i), -1.0, size)
        at = argmax_p.bind(size, axes=(0,), index_dtype=np.dtype(np.int32))
        a = exchanged(a, i, at, -2)
        column, pivot = chosen(a, i), chosen(chosen(a, i, -2), i)
        below = e.gt(row_places, i)
        low = e.select(below, e.div(column, broadcast_in_dim(pivot, (m,), ())), 0)
        right = e.select(e.gt(place((n,), -1), i), chosen(a, i, -2), 0)
        a = e.sub(a, e.mul(rows(low, n), columns(right, m)))
        return [replaced(a, i, e.select(below, low, column)), replaced(pivots, i, at)]
    return counted(k, step, x, full((k,), 0, INT32))


@one_by_one
def pivoted(x):
    """QR that takes the column with most left at each step: (geqrf's result, order of columns, taus)."""
    m, n = shape_of(x)

    def step(i, a, vectors, taus, order):
        below = e.lt(place((m, n), -2), i)
        left = total(size_squared(e.select(below, 0, a)), -2)
        left = e.select(e.lt(place((n,), -1), i), -1.0, left)
        best = argmax_p.bind(left, axes=(0,), index_dtype=np.dtype(np.int32))
        a, order = exchanged(a, i, best), exchanged(order, i, best)
        v, tau = reflector(chosen(a, i), i)
        return [reflected(a, v, conj(tau)), replaced(vectors, i, v), replaced(taus, i, tau), order]
    start = x, full((m, n), 0, dtype_of(x)), full((min(m, n),), 0, dtype_of(x)), place((n,), -1)
    a, vectors, taus, order = counted(min(m, n), step, *start)
    return [e.add(triangle(a, lower=False), triangle(vectors, inset=1)), order, taus]


def reduced(x):
    """(H, Q, reflectors, taus) with x = Q H Q^H and H of Hessenberg form."""
    n, dtype = shape_of(x)[-1], dtype_of(x)

    def step(i, a, q, vectors, taus):
        v, tau = reflector(chosen(a, i), e.add(i, 1))
        return [reflected(reflected(a, v, conj(tau)), v, tau, False), reflected(q, v, tau, False),
                replaced(vectors, i, v), replaced(taus, i, tau)]
    zeros = full((n, n), 0, dtype)
    return counted(max(n - 1, 0), step, x, eye_like(x), zeros, full((max(n - 1, 0),), 0, dtype))


@one_by_one
def hessenberg(x):
    a, _, vectors, taus = reduced(x)
    return [e.add(triangle(a, False, -1), triangle(vectors, inset=2)), taus]


@one_by_one
def tridiagonal(x, *, lower):
    """Reflections that make a Hessenberg form make a tridiagonal one of a Hermitian matrix; of the upper
    triangle LAPACK goes from the last row to the first."""
    flip = (lambda y: y) if lower else (lambda y: rev_p.bind(y, dimensions=tuple(range(len(shape_of(y))))))
    a, _, vectors, taus = reduced(flip(hermitian(x, lower)))
    packed = e.add(triangle(a, False, -1), triangle(vectors, inset=2))
    d = diagonal(a)
    off = total(e.select(e.eq(place(shape_of(a), -2), e.add(place(shape_of(a), -1), 1)), a, 0.0), -2)
    if dtypes.is_complex(dtype_of(x)):
        d, off = e.real(d), e.real(off)
    n = shape_of(x)[-1]
    return [flip(packed), flip(d), flip(part(off, (0, n - 1))), flip(taus)]
