"""SciPy's minimize, by quasi-Newton methods.

J. Nocedal & S. J. Wright, "Numerical optimization", 2nd edition, 2006: BFGS (algorithm 6.1), its
limited-memory form (7.4 and 7.5), the line search for the strong Wolfe conditions (3.5 and 3.6).
"""
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from .. import lax, numpy as jnp
from ..api.autodiff import value_and_grad
from ..core.errors import ShapeError, not_one_of
from ..core.surface.public import export_names as _offer
from ..numpy.util import check_arraylike

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    `x` is the minimum, `fun` and `jac` value and gradient there, and `hess_inv` an estimate of the inverse
    Hessian, None for L-BFGS.  `success` says whether it converged; `status` is 0 if it did, else what ended
    it: 1 maxiter, 2 maxfun, 3 maxgrad, 4 the decrease was below ftol, 5 the line search found nothing lower.
    `nfev`, `njev` and `nit` count values, gradients and steps.
    """
    x: jnp.ndarray
    success: bool | jnp.ndarray
    status: int | jnp.ndarray
    fun: jnp.ndarray
    jac: jnp.ndarray
    hess_inv: jnp.ndarray | None
    nfev: int | jnp.ndarray
    njev: int | jnp.ndarray
    nit: int | jnp.ndarray


class _Point(NamedTuple):
    """A place on the line x + a p: value, gradient, slope along p."""
    a: jnp.ndarray
    f: jnp.ndarray
    g: jnp.ndarray
    slope: jnp.ndarray


def _between(lo, hi):
    """The minimum of the cubic through two points, a tenth from both at least, or their middle (Nocedal &
    Wright, 3.59)."""
    width = hi.a - lo.a
    d1 = lo.slope + hi.slope - 3 * (lo.f - hi.f) / (lo.a - hi.a)
    square = d1 * d1 - lo.slope * hi.slope
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(square, 0))
    share = 1 - (hi.slope + d2 - d1) / (hi.slope - lo.slope + 2 * d2)
    return lo.a + width * jnp.where((square >= 0) & jnp.isfinite(share), jnp.clip(share, 0.1, 0.9), 0.5)


def _search(both, x, p, start, begin, maxiter):
    """(a point on the line that meets the strong Wolfe conditions, or `start`; the number of values).

    The first point is at a = `begin`.  lo is the lowest point so far; once `zooming`, the point is between lo
    and hi.  Where values differ by rounding alone, slopes decide (W. W. Hager & H. Zhang, SIAM J. Optim. 16,
    2005, condition 4.1).
    """
    c1, c2 = 1e-4, 0.9
    blur = 8 * jnp.finfo(start.f.dtype).eps * abs(start.f)

    def step(state):
        lo, hi, zooming, _, k = state
        a = jnp.where(zooming, _between(lo, hi), jnp.where(k == 0, begin, 2 * lo.a))
        f, g = both(x + a * p)
        now = _Point(a, f, g, jnp.vdot(g, p))
        flat = (f <= start.f + blur) & (now.slope <= (2 * c1 - 1) * start.slope)
        low = (f <= start.f + c1 * a * start.slope) & (f < lo.f) | flat
        found = low & (abs(now.slope) <= -c2 * start.slope)
        back = now.slope * jnp.where(zooming, hi.a - lo.a, 1) >= 0      # the minimum is behind this point
        hi = _either(low, _either(back, lo, hi), now)
        return _either(low, now, lo), hi, zooming | ~low | back, found, k + 1
    first = start, start, jnp.zeros((), bool), jnp.zeros((), bool), jnp.zeros((), int)
    lo, _, _, _, k = lax.while_loop(lambda s: ~s[3] & (s[4] < maxiter), step, first)
    return lo, k


def _either(which, a, b):
    return _Point(*(jnp.where(which, x, y) for x, y in zip(a, b)))


# --- what a method remembers: (start, direction, update) ------------------------------------------

def _bfgs(x):
    eye = jnp.eye(len(x), dtype=x.dtype)

    def update(H, s, y, k):
        H = jnp.where(k == 0, eye * (s @ y) / (y @ y), H)       # (6.20)
        turn = eye - jnp.outer(s, y) / (s @ y)
        return turn @ H @ turn.T + jnp.outer(s, s) / (s @ y)
    return eye, lambda H, g: -H @ g, update


def _lbfgs(x, maxcor):
    """The last `maxcor` steps s and changes y of the gradient, newest last, with 1 / (s y), or 0."""
    zeros = jnp.zeros((maxcor, len(x)), x.dtype)

    def direction(memory, g):
        S, Y, rho = memory

        def back(q, pair):
            s, y, r = pair
            a = r * (s @ q)
            return q - a * y, a

        def forth(q, pair):
            s, y, r, a = pair
            return q + s * (a - r * (y @ q)), None
        q, a = lax.scan(back, g, (S, Y, rho), reverse=True)
        # (7.20)
        q = q * jnp.where(rho[-1] > 0, 1 / jnp.where(rho[-1] > 0, rho[-1] * (Y[-1] @ Y[-1]), 1), 1)
        return -lax.scan(forth, q, (S, Y, rho, a))[0]

    def update(memory, s, y, _k):
        return tuple(jnp.roll(old, -1, 0).at[-1].set(new) for old, new in zip(memory, (s, y, 1 / (s @ y))))
    return (zeros, zeros, jnp.zeros(maxcor, x.dtype)), direction, update


# --- the loop -------------------------------------------------------------------------------------

def _descend(fun, x, method, *, gtol, norm, maxiter, maxls, ftol=None, maxfun=None, maxgrad=None):
    both = value_and_grad(fun)
    memory, direction, update = method(x)
    none = jnp.iinfo("int32").max
    limits = [none if n is None else n for n in (maxiter, maxfun, maxgrad)]

    def small(g):
        return jnp.linalg.norm(g, norm) < gtol

    def step(state):
        x, f, g, memory, evaluations, k, _ = state
        p = direction(memory, g)
        p = jnp.where(p @ g < 0, p, -g)
        # the first step, along the gradient, is of length 1 at most; later ones have the scale of the memory
        begin = jnp.where(k == 0, jnp.minimum(1, 1 / jnp.linalg.norm(g)), 1)
        found, more = _search(both, x, p, _Point(jnp.zeros((), x.dtype), f, g, p @ g), begin, maxls)
        moved = found.a * p
        changed, evaluations, k = found.g - g, evaluations + more, k + 1
        curved = moved @ changed > 0
        updated = update(memory, moved, jnp.where(curved, changed, 1), k - 1)
        memory = lax.cond(curved, lambda: updated, lambda: memory)
        if ftol is None:
            flat = False
        else:
            flat = f - found.f <= ftol * jnp.maximum(jnp.maximum(abs(f), abs(found.f)), 1)
        too_many = [n >= most for n, most in zip((k, evaluations, evaluations), limits)]
        ends = [small(found.g), found.a == 0, flat, *too_many]
        status = jnp.select(ends, [0, 5, 4, 1, 2, 3], -1).astype(int)
        return x + moved, found.f, found.g, memory, evaluations, k, status
    f, g = both(x)
    status = jnp.where(small(g), 0, jnp.where(limits[0] <= 0, 1, -1)).astype(int)
    first = x, f, g, memory, jnp.ones((), int), jnp.zeros((), int), status
    x, f, g, memory, evaluations, k, status = lax.while_loop(lambda s: s[-1] < 0, step, first)
    hess_inv = None if type(memory) is tuple else memory
    return OptimizeResults(x, status == 0, status, f, g, hess_inv, evaluations, evaluations, k)


def _minimize_bfgs(fun, x, tol, maxiter=None, norm=jnp.inf, gtol=1e-5, line_search_maxiter=10):
    return _descend(fun, x, _bfgs, gtol=gtol if tol is None else tol, norm=norm, maxls=line_search_maxiter,
                    maxiter=200 * len(x) if maxiter is None else maxiter)


def _minimize_lbfgs(fun, x, tol, maxiter=None, norm=2, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-5,
                    maxfun=None, maxgrad=None, maxls=20):
    if tol is not None:
        ftol = gtol = tol
    if jnp.iscomplexobj(x):     # over the real and the imaginary parts
        join = lambda parts: lax.complex(*jnp.split(parts, 2))
        found = _minimize_lbfgs(lambda parts: fun(join(parts)), jnp.concatenate([x.real, x.imag]), tol,
                                maxiter, norm, maxcor, ftol, gtol, maxfun, maxgrad, maxls)
        return found._replace(x=join(found.x), jac=join(found.jac))
    return _descend(fun, x, partial(_lbfgs, maxcor=maxcor), gtol=gtol, norm=norm, maxiter=maxiter,
                    maxls=maxls, ftol=ftol, maxfun=maxfun, maxgrad=maxgrad)


_METHODS: dict[str, Callable] = {"bfgs": _minimize_bfgs,
                                 "l-bfgs-experimental-do-not-rely-on-this": _minimize_lbfgs}


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    """OptimizeResults of the minimum of a function near x0.

    It works under jit and vmap; derivatives in forward mode.  The line search accepts steps where values
    differ by rounding alone, where JAX's gives up.

    Args:
        fun: (x, *args) -> a real scalar, differentiable.
        x0: floats (n,); complex numbers for L-BFGS, of which `jac` is the direction of ascent.
        method: 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this'.
        tol: in place of gtol and ftol (JAX does not read it).
        options: a dict: gtol, maxiter, norm (of the gradient); line_search_maxiter for BFGS; maxcor, ftol,
            maxfun, maxgrad, maxls for L-BFGS.
    Raises:
        ValueError: for other methods.
        TypeError: for other options and types.

    >>> found = jax.scipy.optimize.minimize(lambda x: jnp.sum((x - 3) ** 2), jnp.zeros(2), method='BFGS')
    >>> found.x.round(), found.success
    (Array([3., 3.], dtype=float32), Array(True, dtype=bool))
    """
    if not isinstance(args, tuple):
        raise TypeError(f"scipy.optimize.minimize: args must be a tuple, got {args!r:.60}: write "
                        f"({args!r:.20},)")
    if str(method).lower() not in _METHODS:
        raise not_one_of("scipy.optimize.minimize: method", method, ("BFGS", *list(_METHODS)[1:]))
    check_arraylike("scipy.optimize.minimize", x0)
    x = jnp.asarray(x0)
    if x.ndim != 1:
        raise ShapeError(f"scipy.optimize.minimize: x0 must be a vector, got shape {x.shape}: use "
                         "x0.ravel(), and reshape it in fun")
    run = _METHODS[method.lower()]
    if not jnp.issubdtype(x.dtype, jnp.floating if run is _minimize_bfgs else jnp.inexact):
        raise TypeError(f"scipy.optimize.minimize: x0 must be floating, got {x.dtype.name}: convert it with "
                        ".astype(float); of complex numbers minimize over the real and the imaginary part, "
                        f"or by {list(_METHODS)[1]!r}")
    return run(lambda x: fun(x, *args), x, tol, **(options or {}))


_offer(globals())
