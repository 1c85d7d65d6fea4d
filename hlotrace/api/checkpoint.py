"""checkpoint, also called remat: trade computation for memory in reverse mode; what would be saved."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core import dtypes, programs, source_info
from ..core.avals import ShapedArray
from ..core.jaxpr import Eqn, Jaxpr, Literal, Var, close, dce
from ..core.pytrees import pytree
from ..core.surface.boundary import filtered
from ..primitives.programs.calls import jit_p
from ..primitives.programs.remat import name_p, nothing_saveable, remat_p
from ..transforms import partial_eval  # noqa: F401  it provides programs.partial_eval
from .adapters import flatten
from .flat import FlatFunction
from .signatures import numbers_and_names, split_statics, wraps

_T = TypeVar("_T")


def checkpoint(fun: Callable[..., Any] | None = None, *, prevent_cse: bool | Sequence[Any] = True,
               policy: Callable[..., Any] | None = None, static_argnums: Any = (), static_argnames: Any = (),
               concrete: bool = False) -> Callable[..., Any]:
    """`fun`, whose derivative computes the residuals again in the backward pass instead of keeping them.

    Without `fun`, a decorator.  Values and derivatives are those of `fun`; only what is kept between the
    passes changes.

    Args:
        prevent_cse: keep XLA from noticing that the forward pass computed the same; not needed inside `scan`.
            A sequence has a bool for each positional argument, or a pytree of them.
        policy: one of `checkpoint_policies`, or any function `policy(prim, *avals, **params)`: whether the
            results of an operation may be kept.  Gives a bool, or `Saveable`, `Recompute` or `Offloadable` of
            `ad_checkpoint`.
        static_argnums: positions of arguments that are Python values; with those not hashable it is traced
            each time.
        concrete: must be False.
    Raises:
        TypeError: for a `fun` or a `policy` that is no function.

    >>> def f(x): return jnp.sin(jnp.sin(jnp.sin(x)))
    >>> residuals = jax.ad_checkpoint.saved_residuals
    >>> len(residuals(f, 1.)), len(residuals(jax.checkpoint(f), 1.))
    (3, 1)
    >>> jax.grad(f)(1.) == jax.grad(jax.checkpoint(f))(1.)
    Array(True, dtype=bool, weak_type=True)
    """
    if concrete:
        raise NotImplementedError("checkpoint: concrete=True is not supported: name arguments that are to be "
                                  "Python values in static_argnums or static_argnames")
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, static_argnames=static_argnames)
    if not callable(fun):
        raise TypeError(f"checkpoint: Expected a callable value, got {fun!r:.80}: pass the function itself, "
                        "not what it returns")
    if policy is None:
        policy = nothing_saveable
    elif not callable(policy):
        raise TypeError("checkpoint: policy must be a function, such as those of checkpoint_policies, got "
                        f"{policy!r:.80}")
    numbers, names = numbers_and_names(fun, None if static_argnums == () else static_argnums,
                                       None if static_argnames == () else static_argnames, "static")

    @filtered
    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs, statics = split_statics(args, kwargs, numbers, names)
        flat = FlatFunction(fun, *flatten((args, kwargs)), "checkpoint", statics)
        traced = flat.kept(fun, "checkpoint", flat.avals())
        held: Any = bool(prevent_cse)
        if not isinstance(prevent_cse, bool):
            chosen = map(bool, pytree.broadcast_prefix(tuple(prevent_cse), tuple(args)))
            held = (*[True] * len(traced.consts), *chosen, *[True] * len(pytree.tree_leaves(kwargs)))
        outs = remat_p.bind(*traced.consts, *flat.leaves, jaxpr=traced.closed, prevent_cse=held,
                            policy=policy)
        return traced.out_tree.unflatten(outs)
    return checkpointed


remat = checkpoint


def checkpoint_name(x: _T, name: str) -> _T:
    """`x`, a pytree of arrays, under a name: policies such as `save_only_these_names` read it.

    >>> from hlotrace.ad_checkpoint import checkpoint_name, saved_residuals
    >>> policy = jax.checkpoint_policies.save_only_these_names("hidden")
    >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.tanh(x), "hidden")), policy=policy)
    >>> [aval.str_short() for aval, _ in saved_residuals(f, jnp.ones(3))]
    ['float32[3]', 'float32[3]']
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got {name!r:.80}: it is "
                        "checkpoint_name(x, name)")
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


# JAX 0.12 has two, which do the same where only values, not tangents, are named
checkpoint_name_fwd = checkpoint_name


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """What the backward pass of `f` would keep from the forward pass: a list of (type, where it is from).

    Nothing is computed; `args` may be ShapeDtypeStructs.

    >>> W = jnp.ones((3, 2))
    >>> residuals = jax.ad_checkpoint.saved_residuals(lambda x: jnp.tanh(x @ W), jnp.ones(3))
    >>> [aval.str_short() for aval, _ in residuals]
    ['float32[3,2]', 'float32[2]']
    """
    flat = FlatFunction(f, *pytree.tree_flatten((args, kwargs)), "saved_residuals")
    avals = flat.avals()
    program, consts = close(flat.trace(avals).jaxpr)
    marks = [False] * len(consts) + [dtypes.is_inexact(a.dtype) for a in avals]
    split = programs.linearize(program, tuple(marks))
    origins = dict.fromkeys(split.primal.invars[:len(consts)], "from a constant")
    origins.update((v, f"from the argument {path}")
                   for v, path in zip(split.primal.invars[len(consts):], flat.paths()))
    _, used = dce(split.linear)
    atoms = split.select(split.primal.invars, split.primal.outvars[len(program.outvars):])
    atoms = dict.fromkeys(a for a, u in zip(atoms, used) if u and type(a) is not Literal)
    made = [v for eqn in split.primal.eqns for v in _as_computed(eqn)]
    return [(a.aval, _origin(a, split.primal, origins)) for a in (*origins, *made) if a in atoms]


def _as_computed(eqn: Eqn) -> Sequence[Var]:
    """The results of an equation in the order in which they are computed."""
    if eqn.primitive not in (remat_p, jit_p):
        return eqn.outvars
    inner = eqn.params["jaxpr"]
    order = {v: i for i, v in enumerate(v for e in inner.eqns for v in _as_computed(e))}
    atoms = dict(zip(eqn.outvars, inner.outvars))
    return sorted(eqn.outvars, key=lambda v: order.get(atoms[v], -1))


def _origin(v: Any, jaxpr: Jaxpr, origins: dict[Any, Any]) -> Any:
    """Where a variable of a program is from, in words; `origins` has those of its inputs."""
    if v in origins:
        return origins[v]
    eqn = next(e for e in jaxpr.eqns if v in e.outvars)
    if eqn.primitive in (remat_p, jit_p):
        inner = eqn.params["jaxpr"]
        atom = inner.outvars[eqn.outvars.index(v)]
        if type(atom) is not Literal:
            known = {i: o if type(o) is Literal else _origin(o, jaxpr, origins)
                     for i, o in zip(inner.invars, eqn.invars)}
            return _origin(atom, inner, known)
    made = f"named {eqn.params['name']!r}" if eqn.primitive is name_p else f"output of {eqn.primitive}"
    return f"{made} from {source_info.describe(eqn.source, with_column=True)}"


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print a line for each array that the backward pass of `f` would keep, its type and where it is from.

    >>> jax.ad_checkpoint.print_saved_residuals(lambda x: x * jnp.cos(x), jnp.ones(3))
    f32[3] from the argument x
    f32[3] output of cos from ...
    f32[3] output of sin from ...
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {origin}")
