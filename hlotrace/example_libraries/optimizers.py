"""Optimizers as three functions each: to make a state of parameters, step it with gradients, read parameters.

A state is a pytree, so it goes through `jit`; parameters may be any pytree.  `step_size` is a number or a
schedule, a function from the number of the step to a step size.
"""
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from .. import numpy as jnp
from ..core.array import Array
from ..core.avals import is_arraylike
from ..core.pytrees.pytree import tree_flatten, tree_leaves, tree_map
from ..core.surface.public import export_names
from ..tree_util import register_pytree_node

__all__ = ["InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule", "State",
           "Step", "UpdateFn", "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant",
           "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov",
           "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
           "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state"]


class OptimizerState(NamedTuple):
    """The state of an optimizer: for each leaf of the parameters those of its own state; both structures."""
    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(OptimizerState, lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
                     lambda defs, children: OptimizerState(children[0], *defs))

Params = State = Updates = Any | None        # pytrees
Step = int | Array
Schedule = Callable[[Step], float]
InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """`init_fn(params)` and `update_fn(step, grads, state)` give a state, `params_fn(state)` parameters."""
    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker):
    """Decorator: the maker of an optimizer of one array as the maker of an Optimizer of pytrees.

    The maker returns three functions: init(x) gives a state, a pytree; update(step, grad, state) the next
    one, which must have the same structure; get_params(state) the array.

    >>> @optimizers.optimizer
    ... def descent(rate):
    ...     return lambda x: x, lambda i, g, x: x - rate * g, lambda x: x
    >>> init, update, params = descent(0.5)
    >>> params(update(0, {"w": jnp.ones(2)}, init({"w": jnp.ones(2)})))
    {'w': Array([0.5, 0.5], dtype=float32)}
    """
    @wraps(opt_maker)
    def make(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree):
            leaves, tree_def = tree_flatten(x0_tree)
            packed, defs = _flat_states([init(x) for x in leaves])
            return OptimizerState(packed, tree_def, defs)

        def tree_update(i, grad_tree, opt_state):
            states, tree_def, defs = opt_state
            grads, grad_def = tree_flatten(grad_tree)
            if grad_def != tree_def:
                raise TypeError(f"update_fn: the gradients have the structure {grad_def}, and the parameters "
                                f"that init_fn was given {tree_def}")
            packed, new_defs = _flat_states([update(i, g, d.unflatten(s))
                                             for g, s, d in zip(grads, states, defs)])
            for new, old in zip(new_defs, defs):
                if new != old:
                    raise TypeError(f"update_fn: the optimizer's update returned a state of structure {new}, "
                                    f"and was given {old}; they must be the same")
            return OptimizerState(packed, tree_def, new_defs)

        def tree_get_params(opt_state):
            states, tree_def, defs = opt_state
            return tree_def.unflatten([get_params(d.unflatten(s)) for s, d in zip(states, defs)])
        return Optimizer(tree_init, tree_update, tree_get_params)
    return make


def _flat_states(states):
    """(The leaves of each state, the structure of each)."""
    pairs = [tree_flatten(s) for s in states]
    return tuple([leaves for leaves, _ in pairs]), tuple([treedef for _, treedef in pairs])


# --- optimizers -----------------------------------------------------------------------------------

def _made_of(beginning, step):
    """The functions of an optimizer of state (x, *more): beginning(x) gives more, step(i, g, *state) all."""
    return (lambda x: (x, *beginning(x))), (lambda i, g, state: step(i, g, *state)), (lambda state: state[0])


def _zeros(count):
    return lambda x: [jnp.zeros_like(x)] * count


@optimizer
def sgd(step_size):
    """Gradient descent: x - step_size * g.

    >>> init, update, params = optimizers.sgd(0.1)
    >>> params(update(0, jnp.float32(1), init(jnp.float32(3))))
    Array(2.9, dtype=float32)
    """
    rate = make_schedule(step_size)
    return _made_of(_zeros(0), lambda i, g, x: (x - rate(i) * g,))


@optimizer
def momentum(step_size, mass):
    """Gradient descent with a velocity v = mass * v + g: x - step_size * v  (Polyak 1964).

    >>> init, update, params = optimizers.momentum(0.1, mass=0.9)
    >>> params(update(0, jnp.float32(1), init(jnp.float32(3))))
    Array(2.9, dtype=float32)
    """
    rate = make_schedule(step_size)

    def step(i, g, x, velocity):
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity
    return _made_of(_zeros(1), step)


@optimizer
def nesterov(step_size, mass):
    """As `momentum`, a step ahead: x - step_size * (mass * v + g)  (Nesterov 1983; Sutskever et al. 2013).

    >>> init, update, params = optimizers.nesterov(0.1, mass=0.5)
    >>> params(update(0, jnp.float32(1), init(jnp.float32(3))))
    Array(2.85, dtype=float32)
    """
    rate = make_schedule(step_size)

    def step(i, g, x, velocity):
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity
    return _made_of(_zeros(1), step)


def _scaled(g, squares):
    """g / sqrt(squares), 0 where there are none."""
    return g * jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Gradients over the root of the sum of their squares, averaged with `momentum`  (Duchi et al. 2011).

    >>> init, update, params = optimizers.adagrad(0.1)
    >>> params(update(0, jnp.float32(4), init(jnp.float32(3))))
    Array(2.99, dtype=float32)
    """
    rate = make_schedule(step_size)

    def step(i, g, x, squares, m):
        squares = squares + g * g
        m = (1 - momentum) * _scaled(g, squares) + momentum * m
        return x - rate(i) * m, squares, m
    return _made_of(_zeros(2), step)


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """Gradients over the root of a running mean of their squares, which `gamma` weighs  (Tieleman and Hinton
    2012).

    >>> init, update, params = optimizers.rmsprop(0.1, gamma=0.75)
    >>> params(update(0, jnp.float32(4), init(jnp.float32(3))))
    Array(2.8, dtype=float32)
    """
    rate = make_schedule(step_size)

    def step(i, g, x, squares):
        squares = squares * gamma + g * g * (1 - gamma)
        return x - rate(i) * g / jnp.sqrt(squares + eps), squares
    return _made_of(_zeros(1), step)


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """`rmsprop`, its steps added up with `momentum`.

    >>> init, update, params = optimizers.rmsprop_momentum(0.1, gamma=0.75)
    >>> params(update(0, jnp.float32(4), init(jnp.float32(3))))
    Array(2.8, dtype=float32)
    """
    rate = make_schedule(step_size)

    def step(i, g, x, squares, m):
        squares = squares * gamma + g * g * (1 - gamma)
        m = momentum * m + rate(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m
    return _made_of(_zeros(2), step)


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Running means of the gradient and of its square, both corrected for their start  (Kingma and Ba 2014).

    >>> init, update, params = optimizers.adam(0.1)
    >>> f"{params(update(0, jnp.float32(4), init(jnp.float32(3)))):.4f}"
    '2.9000'
    """
    rate = make_schedule(step_size)

    def step(i, g, x, m, v):
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        first, second = (mean / (1 - jnp.asarray(b, mean.dtype) ** (i + 1)) for mean, b in ((m, b1), (v, b2)))
        return x - rate(i) * first / (jnp.sqrt(second) + eps), m, v
    return _made_of(_zeros(2), step)


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """`adam` with the greatest gradient of late in place of the root of the mean square  (Kingma and Ba 2014,
    section 7).

    >>> init, update, params = optimizers.adamax(0.1)
    >>> f"{params(update(0, jnp.float32(4), init(jnp.float32(3)))):.4f}"
    '2.9000'
    """
    rate = make_schedule(step_size)

    def step(i, g, x, m, u):
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - rate(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1)) * m / (u + eps), m, u
    return _made_of(_zeros(2), step)


@optimizer
def sm3(step_size, momentum=0.9):
    """`adagrad` with sums of squares for each index of each axis, not for each element  (Anil et al. 2019).

    >>> init, update, params = optimizers.sm3(0.1)
    >>> params(update(0, jnp.ones((1, 2)), init(jnp.ones((1, 2)))))
    Array([[0.99, 0.99]], dtype=float32)
    """
    rate = make_schedule(step_size)

    def covers(x):
        return [jnp.zeros([n if a == axis else 1 for a, n in enumerate(x.shape)], x.dtype)
                for axis in range(max(x.ndim, 1))]

    def step(i, g, x, m, *sums):
        least = sums[0]
        for other in sums[1:]:
            least = jnp.minimum(least, other)
        squares = least + jnp.square(g)
        m = (1 - momentum) * _scaled(g, squares) + momentum * m
        sums = [squares.max([a for a in range(x.ndim) if a != axis], keepdims=True)
                for axis in range(len(sums))]
        return x - rate(i) * m, m, *sums
    return _made_of(lambda x: [jnp.zeros_like(x), *covers(jnp.asarray(x))], step)


# --- schedules ------------------------------------------------------------------------------------

def constant(step_size):
    """The schedule of one step size.

    >>> optimizers.constant(0.1)(5)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate):
    """step_size * decay_rate ** (i / decay_steps).

    >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase=False):
    """step_size / (1 + decay_rate * i / decay_steps), or with the quotient rounded down if `staircase`.

    >>> optimizers.inverse_time_decay(1.0, 10, 0.5)(20)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0):
    """From step_size to final_step_size in `decay_steps`, by (1 - i / decay_steps) ** power.

    >>> optimizers.polynomial_decay(1.0, 10, 0.5)(5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    def schedule(i):
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left ** power * (step_size - final_step_size) + final_step_size
    return schedule


def piecewise_constant(boundaries, values):
    """values[k], where k of the boundaries are less than the number of the step.

    Raises:
        ValueError: unless there is one value more.

    >>> [float(optimizers.piecewise_constant([2], [1.0, 0.5])(i)) for i in range(5)]
    [1.0, 1.0, 1.0, 0.5, 0.5]
    """
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if boundaries.ndim != 1 or values.ndim != 1:
        raise ValueError("piecewise_constant: boundaries and values must be sequences of numbers, got "
                         f"shapes {boundaries.shape} and {values.shape}")
    if boundaries.size + 1 != values.size:
        raise ValueError("piecewise_constant: there must be one value more than boundaries, got "
                         f"{values.size} values and {boundaries.size} boundaries")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule):
    """A schedule as it is, a number as `constant`.

    Raises:
        TypeError: for anything else.

    >>> optimizers.make_schedule(0.1)(5)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if is_arraylike(scalar_or_schedule) and not jnp.ndim(scalar_or_schedule):
        return constant(scalar_or_schedule)
    raise TypeError("make_schedule: a step size is a number or a function of the step, got "
                    f"{scalar_or_schedule!r:.60}")


# --- gradients, states ----------------------------------------------------------------------------

def l2_norm(tree):
    """The root of the sum of squares of all leaves.

    >>> optimizers.l2_norm({"a": jnp.array(3.0), "b": jnp.array([4.0])})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """The gradients, scaled so that their `l2_norm` is at most `max_norm`.

    >>> optimizers.clip_grads(jnp.array([3.0, 4.0]), 1.0)
    Array([0.6, 0.8], dtype=float32)
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks where, in a pytree of states, the state of one leaf of the parameters begins; a leaf itself."""

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state):
    """The states of all leaves in a pytree like the parameters', each in a JoinPoint, to be saved.

    >>> optimizers.unpack_optimizer_state(optimizers.sgd(0.1).init_fn({"w": 1.0}))["w"].subtree
    (1.0,)
    """
    states, tree_def, defs = opt_state
    return tree_def.unflatten([JoinPoint(d.unflatten(s)) for s, d in zip(states, defs)])


def pack_optimizer_state(marked_pytree):
    """The OptimizerState of what `unpack_optimizer_state` gave.

    >>> state = optimizers.sgd(0.1).init_fn({"w": 1.0})
    >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)) == state
    True
    """
    leaves, tree_def = tree_flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in leaves):
        raise TypeError("pack_optimizer_state: each leaf must be a JoinPoint, as unpack_optimizer_state "
                        "makes them")
    packed, defs = _flat_states([x.subtree for x in leaves])
    return OptimizerState(packed, tree_def, defs)


export_names(globals())
