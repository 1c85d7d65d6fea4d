"""Transformations of whole programs, by name, for primitives that hold programs (jit, scan, cond, ...).

`transforms/` provides them; the rules in `primitives/` call them.  Results are cached for as long as the
program they came from lives, so that transforming a compiled function twice does not trace twice.

jvp(jaxpr, nonzero) -> (jaxpr of [*primals, *nonzero tangents] -> [*outs, *nonzero tangents], out_nonzero)
linearize(jaxpr, nonzero) -> Linearized
transpose(jaxpr, linear, ct_nonzero) -> (jaxpr of [*nonlinear inputs, *cotangents] -> nonzero cts, in_nonzero)
batch(jaxpr, axis, batched, force_out) -> (jaxpr with mapped axes in front, out_batched)
map_flat(fun, axis, args, dims) -> outs with mapped axes in front   (a function, not a program)
"""
import functools
import weakref

from .config import state
from .linear import is_linear

jvp = linearize = transpose = batch = map_flat = None


def cached(function):
    """A function of a program and hashable values, with a cache that lives as long as the program."""
    cache = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def call(jaxpr, *key):
        results = cache.setdefault(jaxpr, {})
        full_key = (*key, state.context_key)
        if full_key not in results:
            results[full_key] = function(jaxpr, *key)
        return results[full_key]
    return call


def provide(function):
    """Install a transformation under its name, cached."""
    globals()[function.__name__] = found = cached(function)
    return found


class Linearized:
    """A program split in two: the primal part, which also gives residuals, and the linear part.

    primal: inputs -> [*outs, *saved]; linear: [*residuals, *nonzero tangents] -> nonzero out tangents.
    `residuals` says where each residual comes from: ("in", i) is input i itself, ("out", j) is saved j.
    """
    __slots__ = ("primal", "linear", "residuals", "out_nonzero")

    def __init__(self, primal, linear, residuals, out_nonzero):
        self.primal, self.linear, self.residuals, self.out_nonzero = primal, linear, residuals, out_nonzero

    def select(self, inputs, saved):
        """The residuals, given the inputs and what the primal part saved."""
        return [inputs[i] if kind == "in" else saved[i] for kind, i in self.residuals]


def embed_constants(jaxpr):
    """The program with its constants (concrete arrays that rules made) as literals: it closes over nothing."""
    if not jaxpr.constvars:
        return jaxpr
    import numpy as np

    from .jaxpr import Literal, Var
    table = {v: Literal(np.asarray(c), v.aval) for v, c in zip(jaxpr.constvars, jaxpr.consts)}

    def substitute(atoms):
        return [table.get(a, a) if type(a) is Var else a for a in atoms]
    eqns = [e.replace(invars=substitute(e.invars)) for e in jaxpr.eqns]
    return jaxpr.replace(constvars=(), consts=(), eqns=eqns, outvars=substitute(jaxpr.outvars))


def transpose_call(cotangents, args, jaxpr, bind):
    """The transpose rule of a primitive that calls a program: transpose the program and call that.

    `bind(jaxpr, operands)` calls the transposed program.  Returns cotangents for every operand.
    """
    linear = tuple(is_linear(a) for a in args)
    program, in_nonzero = transpose(jaxpr, linear, tuple(ct is not None for ct in cotangents))
    results = iter(bind(program, [*(a for a in args if not is_linear(a)), *(c for c in cotangents if c is not None)]))
    nonzero = iter(in_nonzero)
    return [next(results) if is_lin and next(nonzero) else None for is_lin in linear]
