"""Initial value problems, under the name that JAX has for them.

The method is that of Dormand & Prince, of order 5 with an embedded one of order 4 ("A family of embedded Runge-Kutta
formulae", 1980).  The step size is controlled as in Hairer, Norsett & Wanner, "Solving ordinary differential equations I",
section II.4.  Within a step the solution is Shampine's interpolant of order 4 ("Some practical Runge-Kutta formulas", 1986).
The derivative is that of the continuous problem: the adjoint one is solved backwards (Chen et al., "Neural ordinary
differential equations", 2018, appendix C).
"""
import dataclasses
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..api.autodiff import vjp
from ..api.custom import closure_convert, custom_vjp
from ..api.jit import jit
from ..core import dtypes, tree
from ..core.avals import aval_of, is_arraylike
from ..core.public import offer

__all__ = ["odeint"]

# Dormand & Prince's tableau: when each stage is and what it is made of; the last is the solution of order 5, from which the
# one of order 4 differs by `_ERROR`.  And Shampine's weights of the solution in the middle of the step.
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]])
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
_MIDDLE = np.array([6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
                    187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384]) / 2


def odeint(func, y0, t, *args, rtol=1.4e-8, atol=1.4e-8, mxstep=np.inf, hmax=np.inf):
    """The solution of `dy/dt = func(y, t, *args)` with `y(t[0]) = y0`, at the times `t`.

    Args:
      func: gives the time derivative, of the structure and the shapes of `y`.
      y0: the initial state, an array of floats or complex numbers, or a pytree of such.
      t: floats, one axis, increasing.
      args: pytrees of arrays.
      rtol, atol: the error of a step that is accepted, relative to y and absolute; estimated, in the mean over all numbers.
      mxstep: the most steps from one of the times to the next; where they do not suffice, what is given is extrapolated.
      hmax: the longest step.

    Returns `y` at the times: its arrays have a new leading axis of size len(t).  It is NaN from where on no step is small
    enough.  Reverse-mode derivatives with respect to y0, t, args and what `func` closes over are those of the exact
    solution, up to the tolerances, in memory that does not grow with the number of steps.  There is no forward mode.

    Raises: TypeError for times or states that are not floats, and for arguments that are not arrays; ValueError where `func`
    gives another structure or other shapes than y0 has.

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
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {leaf!r:.60} at args{path}: "
                            "let func close over what is not an array")
    if not is_arraylike(t) or not dtypes.is_float(aval_of(t).dtype) or aval_of(t).ndim != 1:
        raise TypeError(f"odeint: t must be an array of floats with one axis, but got {t!r:.60}: write jnp.array([0.0, "
                        "1.0])")
    state, state_tree = tree.tree_flatten(y0)
    for path, leaf in zip(tree.leaf_paths(state_tree), state):
        if not is_arraylike(leaf) or not dtypes.is_inexact(aval_of(leaf).dtype):
            raise TypeError(f"odeint: y0{path} must be an array of floats or of complex numbers, but got {leaf!r:.60}")
    t, state = jnp.asarray(t), [jnp.asarray(x) for x in state]
    fun = _Flat(func, state_tree, tuple((x.shape, x.dtype) for x in state), args_tree)
    y0 = fun.vector(state)
    converted, consts = closure_convert(fun, y0, t[0], *leaves)     # its tracers become arguments
    compiled, of_vectors = (_compile(), converted) if consts else (_compiled, fun)
    return fun.state(compiled(of_vectors, (rtol, atol, mxstep, hmax), y0, t, *leaves, *consts))


@dataclasses.dataclass(frozen=True)
class _Flat:
    """A function of states that are pytrees as one of vectors and of flat arguments; equal for equal functions."""
    func: Callable
    tree: tree.PyTreeDef
    types: tuple
    args_tree: tree.PyTreeDef

    def __call__(self, y, t, *leaves):
        rate = self.func(self.state(y), t, *self.args_tree.unflatten(leaves))
        rates, found = tree.tree_flatten(rate)
        if found != self.tree:
            raise ValueError(tree.structure_mismatch("odeint: func gives a value of another structure than y0 has",
                                                     self.tree, found, ("y0", "func"), root="result"))
        for path, x, (shape, dtype) in zip(tree.leaf_paths(found), rates, self.types):
            if jnp.shape(x) != shape:
                raise ValueError(f"odeint: func gives result{path} of shape {jnp.shape(x)}, where y0 has {shape}: the time "
                                 "derivative has the shape of the state")
            if dtypes.is_complex(aval_of(x).dtype) and not dtypes.is_complex(dtype):
                raise TypeError(f"odeint: func gives result{path} of dtype {aval_of(x).dtype}, where y0 has {dtype}: make "
                                "y0 complex")
        return self.vector(rates)

    def vector(self, leaves):
        dtype = jnp.result_type(*(dtype for _, dtype in self.types)) if self.types else dtypes.canonicalize(float)
        return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in leaves]) if leaves else jnp.zeros(0, dtype)

    def state(self, y):
        """The pytree of a vector, or of many in an array with further leading axes."""
        ends = np.cumsum([math.prod(shape) for shape, _ in self.types])
        parts = jnp.split(y, ends[:-1], axis=-1) if self.types else []
        parts = [p if dtypes.is_complex(dtype) else p.real for p, (_, dtype) in zip(parts, self.types)]
        return self.tree.unflatten([p.reshape(*y.shape[:-1], *shape).astype(dtype) for p, (shape, dtype) in
                                    zip(parts, self.types)])


# --- forward ----------------------------------------------------------------------------------------------------

@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(fun, options, y0, t, *args):
    """y at all times, [len(t), len(y0)]."""
    rtol, atol, mxstep, hmax = options
    f = lambda y, t: fun(y, t, *args).astype(y0.dtype)
    rate = f(y0, t[0])
    dt = jnp.minimum(_first_step(f, t[0], y0, rate, rtol, atol), hmax)

    def to_time(carry, time):
        def goes_on(state):
            n, (_, _, now, dt, _, _) = state
            return (now < time) & (n < mxstep) & (dt > 0)

        def step(state):
            n, (y, rate, now, dt, before, polynomial) = state
            y1, rate1, error, middle = _step(f, y, rate, now, dt)
            ratio = _size(error, atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(y1)))
            new = [y1, rate1, now + dt, now, _quartic(y, y1, middle, dt * rate, dt * rate1)]
            y, rate, now, before, polynomial = (jnp.where(ratio <= 1, a, b) for a, b in zip(
                new, [y, rate, now, before, polynomial]))
            # the error grows as dt**5
            dt = jnp.minimum(dt * jnp.clip(0.9 * ratio ** -0.2, 0.2, 10), hmax).astype(dt.dtype)
            return n + 1, (y, rate, now, dt, before, polynomial)
        _, carry = lax.while_loop(goes_on, step, (0, carry))
        _, _, now, dt, before, polynomial = carry
        x = jnp.where(now > before, (time - before) / (now - before), 0).astype(y0.real.dtype)
        return carry, jnp.where((dt > 0) | (now >= time), jnp.polyval(polynomial, x), jnp.nan)
    constant = jnp.zeros((5, *y0.shape), y0.dtype).at[4].set(y0)
    _, ys = lax.scan(to_time, (y0, rate, t[0], dt, t[0], constant), t[1:])
    return jnp.concatenate([y0[None], ys])


def _size(error, scale):
    """The root of the mean square of error / scale."""
    return jnp.sqrt(jnp.mean(jnp.abs(error / scale) ** 2)) if error.size else jnp.zeros((), error.real.dtype)


def _first_step(f, t, y, rate, rtol, atol):
    """Hairer, Norsett & Wanner, II.4: a step that an explicit Euler step of its size suggests."""
    scale = atol + rtol * jnp.abs(y)
    d0, d1 = _size(y, scale), _size(rate, scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = _size(f((y + h0 * rate).astype(y.dtype), (t + h0).astype(t.dtype)) - rate, scale) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / most) ** 0.2)
    return jnp.minimum(100 * h0, h1).astype(t.dtype)


def _step(f, y, rate, t, dt):
    """(y and its rate after the step, the error, y in the middle)"""
    def mixed(weights, rates):
        return dt.astype(y.real.dtype) * jnp.tensordot(weights.astype(y.real.dtype), rates, 1)

    def stage(i, state):
        rates, _ = state
        at = y + mixed(jnp.asarray(_STAGES)[i - 1], rates)
        return rates.at[i].set(f(at, t + dt * jnp.asarray(_TIMES, t.dtype)[i - 1])), at
    rates = jnp.zeros((7, *y.shape), y.dtype).at[0].set(rate)
    rates, y1 = lax.fori_loop(1, 7, stage, (rates, y))
    return y1, rates[6], mixed(_ERROR, rates), y + mixed(_MIDDLE, rates)


def _quartic(y0, y1, middle, d0, d1):
    """The polynomial with these values at 0, 1 and 1/2, and these derivatives at 0 and 1; the highest power first."""
    return jnp.stack([-2 * d0 + 2 * d1 - 8 * y0 - 8 * y1 + 16 * middle, 5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * middle,
                      -4 * d0 + d1 - 11 * y0 - 5 * y1 + 16 * middle, d0, y0])


# --- the adjoint ------------------------------------------------------------------------------------------------

def _forward(fun, options, y0, t, *args):
    ys = _solution(fun, options, y0, t, *args)
    return ys, (ys, t, args)


def _backward(fun, options, saved, g):
    """Between the times the cotangent a of y goes back as da/dt = -a df/dy, and each time adds that of its result."""
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
    flat = _Flat(adjoint, tree.tree_structure(start), tuple((x.shape, x.dtype) for x in tree.tree_leaves(start)),
                 tree.tree_structure((moving, fixed)))

    def back(carry, here):
        y, before, times = here
        a, sums = carry
        end = _solution(flat, options, flat.vector(tree.tree_leaves((y, a, sums))), -times, *moving, *fixed)[1]
        _, a, sums = flat.state(end)
        return (a + before, sums), None
    (a, sums), _ = lax.scan(back, (g[-1], start[2]), (ys[1:], g[:-1], jnp.stack([t[1:], t[:-1]], 1)), reverse=True)
    # a result moves with its time at its rate; all move with the first time as with y0, against the rate there
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

offer(globals())
