"""Library functions of several primitives: one compiled program when called eagerly, inlined under a trace.

Inlining is quick because the function itself runs once for each type of its arguments: what it does is cached
as a program, which later calls splice into theirs.
"""
from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import aval_of, is_arraylike
from ..core.caches import ContextCache
from ..core.config import scoped, state
from ..core.jaxpr import Jaxpr, close, sub_jaxprs
from ..core.jaxpr_trace import trace_to_jaxpr
from ..core.programs import constant_key
from ..core.pytrees import pytree
from ..core.trace import EVAL, Tracer, entering
from ..primitives.arrays.slicing import as_array
from ..primitives.programs.calls import jit_p
from .jit import JitFunction
from .signatures import NotHashable

# (function, structure, types and values of the leaves) -> what `_trace` gives
_programs = ContextCache(8192)


def composite(fun: Callable[..., Any] | None = None, *, static: Any = (), name: str | None = None,
              whole: bool = True, equation: bool = False) -> Callable[..., Any]:
    """Decorator of such a function.

    Args:
        static: names of the parameters that are Python values, not arrays.
        name: what messages and programs call it, by default its own name.
        whole: eager transformations call it as one program; False where static values often change, which
            its operations take as operands.
        equation: a program has the call as one equation, `jit[name=...]`: libraries that read programs know
            it by its name.
    """
    if fun is None:
        return functools.partial(composite, static=static, name=name, whole=whole, equation=equation)
    fun.__name__ = name or fun.__name__
    compiled = None

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled
        if state.disable_jit:
            return fun(*args, **kwargs)
        if state.trace is not EVAL:
            whole_or_staged = whole or state.trace.staging
            return splice(fun, args, kwargs, equation) if whole_or_staged else fun(*args, **kwargs)
        if compiled is None:
            compiled = JitFunction(fun, static_argnames=static, inline=True)
            compiled.explained = False
        try:
            return compiled(*args, **kwargs)
        except NotHashable:
            plain = _hashable(fun, static, args, kwargs)
            if plain is None:
                raise
        return call(*plain.args, **plain.kwargs)
    return call


def _no_numpy(x: Any) -> Any:
    return as_array(x) if isinstance(x, (np.ndarray, np.generic)) and is_arraylike(x) else x


def _plain(x: Any) -> Any:
    """`x` with tuples and Python's numbers in the place of lists and arrays; itself where it has none."""
    x = x.tolist() if isinstance(x, (np.ndarray, Array)) else x
    if type(x) not in (list, tuple):
        return x
    plain = tuple(map(_plain, x))
    return x if type(x) is tuple and all(map(operator.is_, plain, x)) else plain


def _hashable(fun: Callable[..., Any], static: Any, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> inspect.BoundArguments | None:
    """The arguments with those that are static, as axes, made plain; None where all were."""
    bound = inspect.signature(fun).bind(*args, **kwargs)
    given = {name: bound.arguments.get(name) for name in ((static,) if isinstance(static, str) else static)}
    changed = {name: plain for name, x in given.items() if (plain := _plain(x)) is not x}
    bound.arguments.update(changed)
    return bound if changed else None


def splice(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
           equation: bool = False) -> Any:
    """`fun(*args, **kwargs)`, written into the current program, or called as one by eager transformations."""
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    arrays: list[Any] = []
    parts: list[Any] = [fun, in_tree]
    for x in leaves:
        if isinstance(x, Array):
            arrays.append(x)
            parts.append(aval_of(x))
        else:
            part = constant_key(x)
            if part is None:
                if is_arraylike(x):         # a NumPy array may change; the result is an Array all the same
                    return pytree.tree_map(_no_numpy, fun(*args, **kwargs))
                if getattr(x, "__closure__", None) is not None:
                    return fun(*args, **kwargs)         # may hold anything
                part = x
            parts.append(part)
    key = tuple(parts)
    try:
        found = _programs.get(key)
    except TypeError:
        return fun(*args, **kwargs)
    if found is None:
        found = _trace(fun, leaves, in_tree)
        if found is None:
            return fun(*args, **kwargs)
        _programs.keep(key, found)
    jaxpr, consts, out_tree, one_operation = found
    if state.trace.staging and not equation:
        results = state.trace.splice(jaxpr, [*consts, *arrays])
    elif not state.trace.staging and (one_operation or any([aval_of(x).explicit for x in arrays])):
        return fun(*args, **kwargs)     # types over Explicit axes know no devices
    else:       # one program, found again, where the operations would be as many
        results = jit_p.bind(*consts, *arrays, jaxpr=jaxpr, donated=())
    return out_tree.unflatten(results)


def _trace(fun: Callable[..., Any], leaves: list[Any],
           in_tree: pytree.PyTreeDef) -> tuple[Jaxpr, Sequence[Any], pytree.PyTreeDef, bool] | None:
    """(program, its constants, structure of its result, is it one operation?), or None where only a trace of
    its own will do."""
    out_tree = None

    def flat(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        given = iter(tracers)
        args, kwargs = in_tree.unflatten([next(given) if isinstance(x, Array) else x for x in leaves])
        outs, out_tree = pytree.tree_flatten(fun(*args, **kwargs))
        return outs
    try:
        with scoped(), entering(EVAL):
            jaxpr = trace_to_jaxpr(flat, [aval_of(x) for x in leaves if isinstance(x, Array)], fun.__name__)
    except Exception:       # raised again, with the caller's own values in its text, when `fun` runs on them
        return None
    closed, consts = close(jaxpr)
    if any(isinstance(c, Tracer) for c in consts):
        return None
    one_operation = len(closed.eqns) < 2 and not any(True for e in closed.eqns for _ in sub_jaxprs(e.params))
    return closed, consts, out_tree, one_operation
