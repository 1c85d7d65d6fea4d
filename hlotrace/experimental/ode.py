"""Initial value problems, under the name that JAX has for them.

The method is that of Dormand & Prince, of order 5 with an embedded one of order 4 ("A family of embedded
Runge-Kutta formulae", 1980).  The step size is controlled as in Hairer, Norsett & Wanner, "Solving ordinary
differential equations I", section II.4.  Within a step the solution is Shampine's interpolant of order 4
("Some practical Runge-Kutta formulas", 1986).  The derivative is that of the continuous problem: the adjoint
one is solved backwards (Chen et al., "Neural ordinary differential equations", 2018, appendix C).
"""
import dataclasses
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .. import lax, numpy as jnp
from ..api.autodiff import vjp
from ..api.custom_derivatives import closure_convert, custom_vjp
from ..api.jit import jit
from ..core import dtypes
from ..core.avals import aval_of, is_arraylike
from ..core.pytrees import pytree as tree
from ..core.surface.public import export_names
from ..numpy.trees import ravel_pytree

__all__ = ["abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri", "mean_error_ratio",
           "odeint", "optimal_step_size", "ravel_first_arg", "runge_kutta_step"]

# Dormand & Prince's tableau: when each stage is and what it is made of; the last is the solution of order 5,
# from which the one of order 4 differs by `_ERROR`.  And Shampine's weights of the solution in the middle of
# the step.
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0], [3 / 40, 9 / 40, 0, 0, 0, 0, 0], [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]])
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
_MIDDLE = np.array([6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
                    187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384]) / 2


def odeint(func, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=np.inf, hmax=np.inf):
    """The solution of `dy/dt = func(y, t, *args)` with `y(t[0]) = y0`, at the times `t`.

    Reverse-mode derivatives with respect to y0, t, args and what `func` closes over are those of the exact
    solution, up to the tolerances, in memory that does not grow with the steps.  There is no forward mode.

    Args:
        func: gives the time derivative, of the structure and the shapes of `y`.
        y0: the initial state, an array of floats or complex numbers, or a pytree of such.
        t: floats, one axis, increasing.
        rtol: the error of a step that is accepted, relative to y; estimated, in the mean over all numbers.
        atol: the same, absolute.
        mxstep: the most steps from a time to the next; where they do not suffice, the result is extrapolated.
        hmax: the longest step.
    Returns:
        `y` at the times: its arrays have a new leading axis of size len(t).  It is NaN from where on no step
        is small enough.
    Raises:
        TypeError: for times or states that are not floats, and for arguments that are not arrays.
        ValueError: where `func` gives another structure or other shapes than y0 has.

    >>> from hlotrace.experimental.ode import odeint
    >>> swing = lambda y, t, k: jnp.array([y[1], -k * y[0]])
    >>> t = jnp.array([0., jnp.pi / 2, jnp.pi])
    >>> odeint(swing, jnp.array([1., 0.]), t, 1.)[:, 0].round(3) + 0
    Array([ 1.,  0., -1.], dtype=float32)
    >>> jax.grad(lambda k: odeint(swing, jnp.array([1., 0.]), t, k)[1, 0])(1.).round(3)
    Array(-0.785, dtype=float32, weak_type=True)
    """
    leaves, args_tree = tree.tree_flatten(args)
    for path, leaf in zip(tree.leaf_paths(args_tree), leaves):
        if not is_arraylike(leaf):
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {leaf!r:.60} "
                            f"at args{path}: let func close over what is not an array")
    if not is_arraylike(t) or not dtypes.is_float(aval_of(t).dtype) or aval_of(t).ndim != 1:
        raise TypeError(f"odeint: t must be an array of floats with one axis, but got {t!r:.60}: write "
                        "jnp.array([0.0, 1.0])")
    state, state_tree = tree.tree_flatten(y0)
    for path, leaf in zip(tree.leaf_paths(state_tree), state):
        if not is_arraylike(leaf) or not dtypes.is_inexact(aval_of(leaf).dtype):
            raise TypeError(f"odeint: y0{path} must be an array of floats or of complex numbers, but got "
                            f"{leaf!r:.60}")
    t, state = jnp.asarray(t), [jnp.asarray(x) for x in state]
    fun = _Flat(func, state_tree, tuple((x.shape, x.dtype) for x in state), args_tree)
    y0 = fun.vector(state)
    converted, consts = closure_convert(fun, y0, t[0], *leaves)     # its tracers become arguments
    compiled, of_vectors = (_compile(), converted) if consts else (_compiled, fun)
    return fun.state(compiled(of_vectors, (rtol, atol, mxstep, hmax), y0, t, *leaves, *consts))


@dataclasses.dataclass(frozen=True)
class _Flat:
    """A function of pytrees as one of vectors and of flat arguments; equal for equal functions."""
    func: Callable
    tree: tree.PyTreeDef
    types: tuple
    args_tree: tree.PyTreeDef

    def __call__(self, y, t, *leaves):
        rate = self.func(self.state(y), t, *self.args_tree.unflatten(leaves))
        rates, found = tree.tree_flatten(rate)
        if found != self.tree:
            raise ValueError(tree.structure_mismatch("odeint: func gives a value of another structure than "
                                                     "y0 has", self.tree, found, ("y0", "func"),
                                                     root="result"))
        for path, x, (shape, dtype) in zip(tree.leaf_paths(found), rates, self.types):
            if jnp.shape(x) != shape:
                raise ValueError(f"odeint: func gives result{path} of shape {jnp.shape(x)}, where y0 has "
                                 f"{shape}: the time derivative has the shape of the state")
            if dtypes.is_complex(aval_of(x).dtype) and not dtypes.is_complex(dtype):
                raise TypeError(f"odeint: func gives result{path} of dtype {aval_of(x).dtype}, where y0 has "
                                f"{dtype}: make y0 complex")
        return self.vector(rates)

    def vector(self, leaves):
        if self.types:
            dtype = jnp.result_type(*(dtype for _, dtype in self.types))
        else:
            dtype = dtypes.canonicalize(float)
        if leaves:
            return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in leaves])
        return jnp.zeros(0, dtype)

    def state(self, y):
        """The pytree of a vector, or of many in an array with further leading axes."""
        ends = np.cumsum([math.prod(shape) for shape, _ in self.types])
        parts = jnp.split(y, ends[:-1], axis=-1) if self.types else []
        parts = [p if dtypes.is_complex(dtype) else p.real for p, (_, dtype) in zip(parts, self.types)]
        return self.tree.unflatten([p.reshape(*y.shape[:-1], *shape).astype(dtype) for p, (shape, dtype) in
                                    zip(parts, self.types)])


# --- forward --------------------------------------------------------------------------------------

@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(fun, options, y0, t, *args):
    """y at all times, [len(t), len(y0)]."""
    rtol, atol, mxstep, hmax = options
    f = lambda y, t: fun(y, t, *args).astype(y0.dtype)
    rate = f(y0, t[0])
    dt = jnp.minimum(initial_step_size(f, t[0], y0, 4, rtol, atol, rate), hmax)

    def to_time(carry, time):
        def goes_on(state):
            n, (_, _, now, dt, _, _) = state
            return (now < time) & (n < mxstep) & (dt > 0)

        def step(state):
            n, (y, rate, now, dt, before, polynomial) = state
            y1, rate1, error, rates = runge_kutta_step(f, y, rate, now, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, y1)
            new = [y1, rate1, now + dt, now, interp_fit_dopri(y, y1, rates, dt)]
            y, rate, now, before, polynomial = (jnp.where(ratio <= 1, a, b) for a, b in zip(
                new, [y, rate, now, before, polynomial]))
            dt = jnp.minimum(optimal_step_size(dt, ratio), hmax).astype(dt.dtype)
            return n + 1, (y, rate, now, dt, before, polynomial)
        _, carry = lax.while_loop(goes_on, step, (0, carry))
        _, _, now, dt, before, polynomial = carry
        x = jnp.where(now > before, (time - before) / (now - before), 0).astype(y0.real.dtype)
        return carry, jnp.where((dt > 0) | (now >= time), jnp.polyval(polynomial, x), jnp.nan)
    constant = jnp.zeros((5, *y0.shape), y0.dtype).at[4].set(y0)
    _, ys = lax.scan(to_time, (y0, rate, t[0], dt, t[0], constant), t[1:])
    return jnp.concatenate([y0[None], ys])


def abs2(x):
    """The square of |x|, real for complex numbers; the dtype of integers stays.

    >>> ode.abs2(jnp.array([3 + 4j, -2]))
    Array([25.,  4.], dtype=float32)
    """
    x = jnp.asarray(x)
    return x.real ** 2 + x.imag ** 2 if dtypes.is_complex(x.dtype) else x ** 2


def mean_error_ratio(error_estimate, rtol, atol, y0, y1):
    """The error of a step from y0 to y1 in units of what is allowed: the root of its mean square.

    A step is accepted where it is at most 1.  Allowed is `atol + rtol * max(|y0|, |y1|)`.

    >>> ode.mean_error_ratio(jnp.array([0.25, -0.25]), 0.0, 0.5, jnp.ones(2), jnp.ones(2))
    Array(0.5, dtype=float32)
    """
    ratios = error_estimate / (atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1)))
    return jnp.sqrt(jnp.mean(abs2(ratios))) if ratios.size else jnp.zeros((), ratios.real.dtype)


def initial_step_size(fun, t0, y0, order, rtol, atol, f0):
    """A first step for a method of this order: one that an explicit Euler step of its size suggests.

    The result has the dtype of t0.  Hairer, Norsett & Wanner, II.4.

    Args:
        fun: `fun(y, t)`, the rate of y, an array of y's shape.
        rtol: the allowed error, relative to y.
        atol: the allowed error, absolute.
        f0: the rate at y0 and t0.

    >>> y = jnp.array([1.0])
    >>> ode.initial_step_size(lambda y, t: -y, 0.0, y, 4, 1e-4, 1e-4, -y).round(3)
    Array(0.072, dtype=float32)
    """
    t0, y0 = jnp.asarray(t0), jnp.asarray(y0)
    scale = atol + rtol * jnp.abs(y0)
    d0, d1 = _norm(y0 / scale), _norm(f0 / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = _norm((fun((y0 + h0 * f0).astype(y0.dtype), (t0 + h0).astype(t0.dtype)) - f0) / scale) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / most) ** (1 / (order + 1)))
    return jnp.minimum(100 * h0, h1).astype(t0.dtype)


def _norm(x):
    return jnp.sqrt(jnp.sum(abs2(x)))


def optimal_step_size(last_step, mean_error_ratio, safety=0.9, ifactor=10.0, dfactor=0.2, order=5.0):
    """The step to try after one of size `last_step`.  Hairer, Norsett & Wanner, II.4.

    It shrinks not at all after a step that was accepted.

    Args:
        mean_error_ratio: the ratio of its error to what is allowed.
        ifactor: by how much it grows at most.
        dfactor: to what part of itself it shrinks at most.
        order: the error grows as the step to this power.

    >>> [float(ode.optimal_step_size(0.5, ratio)) for ratio in (0.0, 1e9)]
    [5.0, 0.10000000149011612]
    """
    ratio = jnp.asarray(mean_error_ratio)
    return last_step * jnp.clip(safety * ratio ** (-1 / order), jnp.where(ratio < 1, 1, dfactor), ifactor)


def runge_kutta_step(func, y0, f0, t0, dt):
    """One step of Dormand & Prince's method.

    Args:
        func: `func(y, t)`, the rate of y.
        f0: the rate at y0 and t0.
    Returns:
        `(y1, f1, error, rates)`: the state and its rate after the step, an estimate of the error of y1, and
        the seven rates that the step is made of, (7, *y0.shape).

    >>> y1, *_ = ode.runge_kutta_step(lambda y, t: y, jnp.array([1.0]), jnp.array([1.0]), 0.0, 1.0)
    >>> y1.round(2)     # e
    Array([2.72], dtype=float32)
    """
    y0, t0 = jnp.asarray(y0), jnp.asarray(t0)

    def stage(i, state):
        rates, _ = state
        at = y0 + _mixed(jnp.asarray(_STAGES)[i - 1], rates, dt)
        return rates.at[i].set(func(at, t0 + dt * jnp.asarray(_TIMES, t0.dtype)[i - 1])), at
    rates = jnp.zeros((7, *y0.shape), y0.dtype).at[0].set(f0)
    rates, y1 = lax.fori_loop(1, 7, stage, (rates, y0))
    return y1, rates[6], _mixed(_ERROR, rates, dt), rates


def _mixed(weights, rates, dt):
    return jnp.asarray(dt, rates.real.dtype) * jnp.tensordot(weights.astype(rates.real.dtype), rates, 1)


def fit_4th_order_polynomial(y0, y1, y_mid, dy0, dy1, dt):
    """Five coefficients, the highest power first, of the polynomial in (t - t0) / dt within a step.

    Its values at 0, 1 and 1/2 are y0, y1 and y_mid, its derivatives by t at 0 and 1 are dy0 and dy1.

    >>> [int(c) for c in ode.fit_4th_order_polynomial(0., 1., 1 / 16, 0., 4., 1.)]     # t**4
    [1, 0, 0, 0, 0]
    """
    d0, d1 = dt * dy0, dt * dy1
    return (-2 * d0 + 2 * d1 - 8 * y0 - 8 * y1 + 16 * y_mid, 5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * y_mid,
            -4 * d0 + d1 - 11 * y0 - 5 * y1 + 16 * y_mid, d0, y0)


def interp_fit_dopri(y0, y1, k, dt):
    """Shampine's polynomial within a step of size dt from y0 to y1 with the rates `k` of `runge_kutta_step`.

    Five coefficients by (t - t0) / dt, the highest power first: (5, *y0.shape).

    >>> y = jnp.array([1.0])
    >>> y1, f1, error, rates = ode.runge_kutta_step(lambda y, t: y, y, y, 0.0, 1.0)
    >>> jnp.polyval(ode.interp_fit_dopri(y, y1, rates, 1.0), 0.5).round(2)      # the root of e
    Array([1.65], dtype=float32)
    """
    dt = jnp.asarray(dt, jnp.asarray(y0).real.dtype)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y0 + _mixed(_MIDDLE, k, dt), k[0], k[-1], dt))


def ravel_first_arg(f, unravel):
    """`f` as a function of a vector instead of its first argument, and with a vector as its result.

    Args:
        unravel: makes the argument of a vector, as `ravel_pytree` gives it.

    >>> vector, unravel = jax.flatten_util.ravel_pytree({"x": jnp.ones(2)})
    >>> ode.ravel_first_arg(lambda y, t: {"x": y["x"] * t}, unravel)(vector, 3.0)
    Array([3., 3.], dtype=float32)
    """
    return lambda y, *args: ravel_pytree(f(unravel(y), *args))[0]


# --- the adjoint ----------------------------------------------------------------------------------

def _forward(fun, options, y0, t, *args):
    ys = _solution(fun, options, y0, t, *args)
    return ys, (ys, t, args)


def _backward(fun, options, saved, g):
    """Between the times the cotangent a of y follows da/dt = -a df/dy; each time adds that of its result."""
    ys, t, args = saved
    inexact = [dtypes.is_inexact(aval_of(x).dtype) for x in args]
    moving, fixed = ([x for x, i in zip(args, inexact) if i == kind] for kind in (True, False))

    def merged(moving, fixed):
        moving, fixed = iter(moving), iter(fixed)
        return [next(moving if i else fixed) for i in inexact]

    def adjoint(state, s, moving, fixed):     # s is -t
        y, a, _ = state
        rate, pull = vjp(lambda y, moving: fun(y, -s, *merged(moving, fixed)), y, moving)
        return -rate, *pull(a)
    start = ys[0], g[0], [jnp.zeros_like(x) for x in moving]
    flat = _Flat(adjoint, tree.tree_structure(start), tuple((x.shape, x.dtype)
                                                            for x in tree.tree_leaves(start)),
                 tree.tree_structure((moving, fixed)))

    def back(carry, here):
        y, before, times = here
        a, sums = carry
        end = _solution(flat, options, flat.vector(tree.tree_leaves((y, a, sums))), -times, *moving,
                        *fixed)[1]
        _, a, sums = flat.state(end)
        return (a + before, sums), None
    (a, sums), _ = lax.scan(back, (g[-1], start[2]), (ys[1:], g[:-1], jnp.stack([t[1:], t[:-1]], 1)),
                            reverse=True)
    # a result moves with its time at its rate; all with the first time as with y0, against the rate there
    rates = lax.map(lambda at: fun(at[0], at[1], *args), (ys, t))
    weights = g.at[0].set(-(a - g[0]))
    t_bar = jnp.sum((weights * rates).real, axis=1).astype(t.dtype)
    none = [np.zeros(jnp.shape(x), dtypes.float0) for x in fixed]
    return a, t_bar, *merged(sums, none)


_solution.defvjp(_forward, _backward)


def _compile():
    compiled = jit(_solution, static_argnums=(0, 1))
    compiled.explained = False      # a new function is a new program, as its user knows
    return compiled


_compiled = _compile()

export_names(globals())
