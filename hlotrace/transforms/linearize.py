"""Linearization: evaluate a function once and write down the linear part of its derivative as a program.

A JVPTrace whose rules run in a `SplitTrace`: what depends on tangents is recorded, everything else is done
in the parent trace (and, without jit, on real values).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import leaks, programs
from ..core.avals import aval_of
from ..core.config import state
from ..core.jaxpr import Jaxpr, close, dce, eval_jaxpr
from ..core.jaxpr_trace import JaxprTrace, JaxprTracer
from ..core.primitive import Primitive
from ..core.trace import Trace, entering
from ..primitives.arrays.shape import zeros_of
from ..primitives.programs.calls import jit_p
from .jvp import JVPTrace, JVPTracer


class SplitTrace(Trace):
    """Sends an operation to the linear program if an operand is tangent, to the parent otherwise."""
    __slots__ = ("linear",)
    what = "grad"

    def __init__(self, parent: Trace, linear: JaxprTrace) -> None:
        super().__init__(parent)
        self.linear = linear

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        linear = self.linear
        for a in args:
            if type(a) is JaxprTracer and a._trace is linear:
                if primitive is jit_p:     # a mixture of primal and tangent work: split it too
                    return eval_jaxpr(params["jaxpr"], (), *args)
                if primitive.linearize is not None and not all(map(self._is_tangent, args)):
                    return self._split(primitive, args, params)
                return linear.process(primitive, args, params)
        saved = state.trace
        state.trace = self.parent
        try:
            return primitive.bind(*args, **params)
        finally:
            state.trace = saved

    def _is_tangent(self, value: Any) -> bool:
        return type(value) is JaxprTracer and value._trace is self.linear

    def _split(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The results of a loop, say, that computes with primals and tangents, as where a rule of the user's
        calls jvp: it is linear in the tangents, and so is its derivative at zero applied to them."""
        trace = JVPTrace(self.parent, self)
        with entering(self.parent):
            args = [JVPTracer(trace, zeros_of(a.aval), a) if self._is_tangent(a) else a for a in args]
        return [p if t is None else t for p, t in map(trace.split, trace.process(primitive, args, params))]

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        if any(map(self._is_tangent, args)):
            return super().splice(jaxpr, args)
        return self.outside(self.parent.splice, jaxpr, args)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Write an operation into the linear program whatever its operands are."""
        return self.linear.process(primitive, args, params)


def linearize_flat(fun: Callable[..., Any], primals: Sequence[Any], nonzero: Sequence[bool],
                   splices: bool = True, scope: str = "") -> tuple[list[Any], Jaxpr, list[bool]]:
    """The linearization of `fun`, which maps flat lists to flat lists, for the primals marked in `nonzero`;
    its operations are in one more scope.  Returns outs, linear program, out_nonzero.  The program maps the
    nonzero tangents to the nonzero tangents of the outputs; its consts are the residuals."""
    linear = JaxprTrace(state.trace, "linear")
    trace = JVPTrace(state.trace, SplitTrace(state.trace, linear), splices)
    args = [JVPTracer(trace, p, linear.input(aval_of(p).tangent())) if nz else p
            for p, nz in zip(primals, nonzero, strict=True)]
    outs = trace.run(fun, *args, scope=scope)
    pairs = [trace.split(x) for x in outs]
    program = linear.finish([t for _, t in pairs if t is not None])
    linear.alive = False
    program, _ = dce(program)
    del args, outs
    leaks.check(trace)
    return [p for p, _ in pairs], program, [t is not None for _, t in pairs]


@programs.register
def linearize(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> programs.Linearized:
    found: dict[str, Any] = {}

    def fun(*primals: Any) -> list[Any]:
        outs, linear, out_nonzero = linearize_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), primals, nonzero,
                                                   False)
        positions = {id(p): i for i, p in enumerate(primals)}
        saved: list[Any] = []
        residuals = []
        for c in linear.consts:
            if id(c) in positions:
                residuals.append(("in", positions[id(c)]))
            else:
                residuals.append(("out", len(saved)))
                saved.append(c)
        found.update(linear=close(linear)[0].replace(name=jaxpr.name), residuals=residuals,
                     out_nonzero=tuple(out_nonzero))
        return [*outs, *saved]

    primal = programs.trace_closed(fun, jaxpr.in_avals, jaxpr.name)
    return programs.Linearized(primal, **found)


