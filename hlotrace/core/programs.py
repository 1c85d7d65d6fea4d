"""Transformations of whole programs, by name, for primitives that hold programs (jit, scan, cond, ...).

`transforms/` provides them; the rules in `primitives/` call them.  Results are cached for as long as the
program that they came from lives, so that transforming a compiled function twice does not trace twice.

jvp(jaxpr, nonzero) -> (jaxpr of [*primals, *nonzero tangents] -> [*outs, *nonzero tangents], out_nonzero)
linearize(jaxpr, nonzero) -> Linearized
linearize_steps(jaxpr, nonzero, num_consts, num_carry, length) -> LinearizedSteps
transpose(jaxpr, linear, ct_nonzero) -> (jaxpr of [*nonlinear inputs, *cotangents] -> nonzero cts, in_nonzero)
batch(jaxpr, axis, batched, force_out) -> (jaxpr with mapped axes in front, out_batched)
discharge(jaxpr, states) -> jaxpr of [*states, *inputs] -> [*states, *outs]
instrument(jaxpr, kinds, without=()) -> jaxpr with checks of `kinds`, all of which know their lines
partial_eval(jaxpr, policy, needed) -> (jaxpr of inputs -> [*outs, *saved],
                                        jaxpr of [*inputs, *saved] -> needed outs)
batch_flat(fun, axis, args, dims) -> outs, where their mapped axes are or None   (fun is no program)
batch_nonzero(fun, axis, args, dims) -> the same of a function with symbolic zeros (None) among its outputs
map_flat(fun, axis, args, dims) -> outs with mapped axes in front
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .array import Array
from .avals import ShapedArray
from .caches import ContextCache
from .config import scoped
from .jaxpr import Atom, Jaxpr, Literal, Var, dce
from .jaxpr_trace import trace_to_jaxpr
from .primitive import Primitive
from .symbolic_zeros import drop_zeros, fill_zeros, is_undefined_primal, nonzero_mask
from .trace import EVAL, entering

R = TypeVar("R")
_provided: Any = None       # by transforms/
jvp = linearize = linearize_steps = transpose = batch = discharge = _provided
instrument = partial_eval = batch_flat = batch_nonzero = map_flat = _provided


def cached(function: Callable[..., R]) -> Callable[..., R]:
    """A function of a program and hashable values, with a cache that lives as long as the program."""
    @functools.wraps(function)
    def call(jaxpr: Jaxpr, *key: Any) -> R:
        if jaxpr.derived is None:
            jaxpr.derived = ContextCache()
        key = function, *key
        found = jaxpr.derived.get(key)
        if found is None:
            with scoped():
                found = jaxpr.derived.keep(key, function(jaxpr, *key[1:]))
        return found
    return call


@cached
def alive(jaxpr: Jaxpr, used_outputs: tuple[bool, ...]) -> tuple[Jaxpr, list[bool]]:
    """What `dce` gives for these outputs without the inputs that are not used; it must not be changed."""
    return dce(jaxpr, used_outputs, keep_invars=False)


def register(function: Callable[..., R]) -> Callable[..., R]:
    """Install a transformation under its name, cached."""
    globals()[function.__name__] = found = cached(function)
    return found


class Linearized:
    """A program split in two: the primal part, which also gives residuals, and the linear part.

    `primal` is a program of inputs -> [*outs, *saved], `linear` one of [*residuals, *nonzero tangents] ->
    nonzero out tangents.  `residuals` says where each residual comes from: ("in", i) is input i itself,
    ("out", j) is saved j.
    """
    __slots__ = ("primal", "linear", "residuals", "out_nonzero")

    def __init__(self, primal: Jaxpr, linear: Jaxpr, residuals: Sequence[tuple[str, int]],
                 out_nonzero: tuple[bool, ...]) -> None:
        self.primal, self.linear, self.residuals, self.out_nonzero = primal, linear, residuals, out_nonzero

    def select(self, inputs: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
        """The residuals, given the inputs and what the primal part saved."""
        return [inputs[i] if kind == "in" else saved[i] for kind, i in self.residuals]


class LinearizedSteps(NamedTuple):
    """The program of a loop's step split in two, and what all steps share.

    `before` is a program of consts -> shared values, `step` one of [*consts, *shared, *carry, *xs] -> [*outs,
    *saved], `linear` one of [*residuals, *nonzero tangents] -> nonzero out tangents.  `residuals` says where
    each residual comes from: ("in", i) is input i of `step` itself, ("out", j) its output j.
    """
    before: Jaxpr
    step: Jaxpr
    linear: Jaxpr
    residuals: Sequence[tuple[str, int]]
    out_nonzero: tuple[bool, ...]


def constant_key(value: Any) -> tuple[Any, Any] | None:
    """The cache key of a Python or NumPy scalar, equal only for the same type and bits; None for others."""
    kind = type(value)
    if kind is float and (not value or value != value):     # 0.0 == -0.0, and NaN is not itself
        return kind, str(value)
    if kind in (bool, int, float):
        return kind, value
    return (value.dtype, value.tobytes()) if isinstance(value, np.generic) else None


_single = ContextCache(4096)


def trace_primitive(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Jaxpr | None:
    """The program that is one application of a primitive; its inputs are the arrays and tracers among `args`.

    None where no other application could use it: an operand is a large constant, a parameter is not hashable,
    or is a function that closes over arrays.
    """
    key = [primitive, *params.items()]
    for a in args:
        part = a.aval if isinstance(a, Array) else constant_key(a)
        if part is None:
            return None
        key.append(part)
    whole = tuple(key)
    try:
        found = _single.get(whole)
    except TypeError:
        return None
    if found is None:
        def fun(*arrays: Any) -> list[Any]:
            given = iter(arrays)
            out = primitive.bind(*[next(given) if isinstance(a, Array) else a for a in args], **params)
            return out if primitive.multiple_results else [out]
        with scoped(), entering(EVAL):
            found = trace_to_jaxpr(fun, [a.aval for a in args if isinstance(a, Array)], primitive.name)
        if found.constvars:
            return None
        _single.keep(whole, found)
    return found


def embed_constants(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants (concrete arrays made by rules) as literals: it closes over nothing."""
    if not jaxpr.constvars:
        return jaxpr
    table = {v: Literal(np.asarray(c), v.aval) for v, c in zip(jaxpr.constvars, jaxpr.consts)}

    def substitute(atoms: Iterable[Atom]) -> list[Atom]:
        return [table.get(a, a) if type(a) is Var else a for a in atoms]
    eqns = [e.replace(invars=substitute(e.invars)) for e in jaxpr.eqns]
    return jaxpr.replace(constvars=(), consts=(), eqns=eqns, outvars=substitute(jaxpr.outvars))


def trace_closed(fun: Callable[..., Iterable[Any]], avals: Iterable[ShapedArray], name: str = "",
                 arg_names: Sequence[str] | None = None) -> Jaxpr:
    """The program of a function of flat lists, with what its rules made as literals; its scopes are those
    that the function enters."""
    with scoped():
        return embed_constants(trace_to_jaxpr(fun, avals, name, arg_names))


def split_for_remat(jaxpr: Jaxpr, policy: Any, wanted: Sequence[bool],
                    first: int = 0) -> tuple[Jaxpr, Jaxpr, list[int], tuple[bool, ...]]:
    """`partial_eval`, with nothing returned or saved twice.

    Args:
        wanted: for each output, whether the second program is to compute it
        first: how many outputs at the start are not to be used as saved values
    Returns:
        (forward, again, places, kept).  What is saved and is an output anyway, not among the first ones, is
        that output; `places` says which outputs of forward are the saved inputs of again.  `kept` marks the
        wanted outputs that are saved as they are: these again does not compute.
    """
    forward, again = partial_eval(jaxpr, policy, wanted)
    saved, outs, n = again.invars[len(jaxpr.invars):], iter(again.outvars), len(jaxpr.outvars)
    kept = tuple([w and next(outs) in saved and i >= first for i, w in enumerate(wanted)])
    if any(kept):
        forward, again = partial_eval(jaxpr, policy, tuple([w and not k for w, k in zip(wanted, kept)]))
    places = {v: i for i, v in enumerate(jaxpr.outvars) if i >= first}
    extra = [v for v in forward.outvars[n:] if v not in places]
    places.update((v, n + i) for i, v in enumerate(extra))
    order = [places[v] for v in forward.outvars[n:]]
    if len(extra) < len(order):
        forward = forward.replace(outvars=[*jaxpr.outvars, *extra])
    return forward, again, order, kept


def without_source_info(jaxpr: Jaxpr) -> Jaxpr:
    """The program without lines of the user's and scopes, to be cached for all callers."""
    def without(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([without(v) for v in value])
        return without_source_info(value) if type(value) is Jaxpr else value
    return jaxpr.replace(eqns=[e.replace(source=None, name_stack="",
                                         params={k: without(v) for k, v in e.params.items()})
                               for e in jaxpr.eqns])


def transpose_call(cotangents: Sequence[Any], args: Sequence[Any], jaxpr: Jaxpr,
                   bind: Callable[[Jaxpr, list[Any]], Sequence[Any]]) -> list[Any]:
    """The transpose rule of a primitive that calls a program: transpose the program and call that.

    Args:
        bind: (jaxpr, operands) -> results; it calls the transposed program
    Returns:
        Cotangents for every operand.
    """
    linear = tuple([is_undefined_primal(a) for a in args])
    program, in_nonzero = transpose(jaxpr, linear, nonzero_mask(cotangents))
    results = bind(program, [*[a for a in args if not is_undefined_primal(a)], *drop_zeros(cotangents)])
    return fill_zeros(fill_zeros(results, in_nonzero), linear)
