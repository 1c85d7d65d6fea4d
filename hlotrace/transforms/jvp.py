"""Forward mode: a value travels with its tangent.

The rules of a JVPTrace run either in its parent (plain forward mode) or in a trace that separates what
depends on tangents from what does not (`linearize.py`).  A tangent that is None is a symbolic zero.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import leaks, programs, source_info as provenance
from ..core.array import Array
from ..core.avals import aval_of
from ..core.config import state
from ..core.jaxpr import Jaxpr, dce, eval_jaxpr
from ..core.primitive import Primitive, missing
from ..core.symbolic_zeros import drop_zeros, fill_zeros
from ..core.trace import Trace, Tracer, entering
from ..primitives.parallel.collectives import vary
from ..primitives.programs.calls import custom_lin_p, inlined_p


class JVPTracer(Tracer):
    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = aval = aval_of(primal)
        # a tangent varies over the manual axes of its primal
        if aval.vma and aval_of(tangent).vma != aval.vma:
            with entering(trace.rules):
                self.tangent = vary(tangent, aval.vma)

    def __repr__(self) -> str:
        if self._trace.rules is self._trace.parent:
            return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"
        return f"GradTracer(primal={self.primal}, typeof(tangent)={aval_of(self.tangent).short()})"

    def concrete(self) -> Any:
        primal = self.primal
        if not self._trace.alive:
            return None
        if isinstance(primal, Tracer):
            return primal.concrete()
        return primal if hasattr(primal, "aval") else np.asarray(primal, self.aval.dtype)

    def inner(self) -> Any:
        return self.primal


class JVPTrace(Trace):
    """A trace of values with tangents.

    `rules` is the trace in which rules run; it is the parent unless the trace linearizes.  With `splices`, a
    rule runs once for each type of its operands: what it does is cached as a program.
    """
    __slots__ = ("rules", "splices")
    what = "grad or jvp"
    # JAX's name for what tracers of one call of a transformation have in common
    main = property(lambda self: self)

    def __init__(self, parent: Trace, rules: Trace | None = None, splices: bool = False) -> None:
        super().__init__(parent)
        self.rules: Any = parent if rules is None else rules
        self.splices = splices and self.staging

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals, tangents, live = [], [], False
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                live = live or a.tangent is not None
            else:
                primals.append(a)
                tangents.append(None)
        if live and self.splices and primitive.linearize is None and primitive.effects is None:
            jaxpr = programs.trace_primitive(primitive, args, params)
            if jaxpr is not None:
                results = self.splice(jaxpr, [a for a in args if isinstance(a, Array)])
                return results if primitive.multiple_results else results[0]
        saved, source = state.trace, state.source
        state.trace = self.rules if live else self.parent
        if live and source is None and self.rules is not self.parent:
            state.source = provenance.user_frame()      # once, for all that the rule does
        try:
            if not live:
                return primitive.bind(*primals, **params)
            if primitive.linearize is not None and self.rules is not self.parent:
                out, tangent = primitive.linearize(self, primals, tangents, **params)
            elif primitive.jvp is None:
                raise missing(primitive, "jvp")
            else:
                out, tangent = primitive.jvp(primals, tangents, **params)
        finally:
            state.trace, state.source = saved, source
        if primitive.multiple_results:
            return [x if t is None else JVPTracer(self, x, t) for x, t in zip(out, tangent, strict=True)]
        return out if tangent is None else JVPTracer(self, out, tangent)

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        pairs = [self.split(a) for a in args]
        primals, nonzero = [p for p, _ in pairs], tuple([t is not None for _, t in pairs])
        if True not in nonzero:
            return self.outside(self.parent.splice, jaxpr, primals)
        tangents = [t for _, t in pairs if t is not None]
        if self.rules is self.parent:
            program, out_nonzero = programs.jvp(jaxpr, nonzero)
            results = self.outside(self.parent.splice, program, [*primals, *tangents])
            moved = results[len(jaxpr.outvars):]
        else:
            program = programs.linearize(jaxpr, nonzero)
            out_nonzero = program.out_nonzero
            results = self.outside(self.parent.splice, program.primal, primals)
            residuals = program.select(primals, results[len(jaxpr.outvars):])
            moved = self.rules.record(inlined_p, [*residuals, *tangents], {"jaxpr": program.linear})
        moved = iter(moved)
        return [JVPTracer(self, x, next(moved)) if nz else x for x, nz in zip(results, out_nonzero)]

    def split(self, value: Any) -> tuple[Any, Any]:
        """(primal, tangent or None) of any value as this trace sees it."""
        if type(value) is JVPTracer and value._trace is self:
            return value.primal, value.tangent
        return value, None


def jvp_flat(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
             scope: str = "") -> tuple[list[Any], list[Any]]:
    """(outs, out tangents) of `fun`, which maps flat lists to flat lists; tangents are None where zero.  Its
    operations are in one more scope."""
    trace = JVPTrace(state.trace)
    args = [p if t is None else JVPTracer(trace, p, t) for p, t in zip(primals, tangents, strict=True)]
    outs = trace.run(fun, *args, scope=scope)
    pairs = [trace.split(x) for x in outs]
    del args, outs
    leaks.check(trace)
    return [p for p, _ in pairs], [t for _, t in pairs]


@programs.register
def jvp(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    out_nonzero: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        n = len(nonzero)
        outs, tangents = jvp_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), args[:n],
                                  fill_zeros(args[n:], nonzero))
        out_nonzero[:] = [t is not None for t in tangents]
        return [*outs, *drop_zeros(tangents)]

    tangent_avals = [a.tangent() for a, nz in zip(jaxpr.in_avals, nonzero) if nz]
    program = programs.trace_closed(fun, [*jaxpr.in_avals, *tangent_avals], jaxpr.name)
    if any([eqn.primitive is custom_lin_p for eqn in program.eqns]):
        program, _ = dce(program)       # of a custom_vjp: an error only where it is used
    return program, tuple(out_nonzero)
