"""Transposition: a linear program run backwards, from cotangents of its outputs to those of its inputs."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import programs
from ..core.config import inside, state
from ..core.jaxpr import Eqn, Jaxpr, Literal, literal_value, sub_jaxprs
from ..core.primitive import missing
from ..core.symbolic_zeros import UndefinedPrimal, drop_zeros, fill_zeros, is_undefined_primal
from ..primitives.arrays.elementwise_rules import accumulate
from ..primitives.programs.calls import custom_lin_p


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any],
                  outside: str | None = None) -> list[Any]:
    """The cotangents of the inputs of a linear program, None for those that are zero or known.

    Those that are `UndefinedPrimal`s in `args` get one.  Equations that depend on no linear input are
    evaluated first, in order.  `outside` are the scopes around the function that was linearized, if the user
    asked for this pass: those inside of it are then of a transposition.
    """
    values = dict(zip(jaxpr.constvars, consts))
    values.update((v, a) for v, a in zip(jaxpr.invars, args, strict=True) if not is_undefined_primal(a))
    found: dict[Any, Any] = {}
    saved, stack = state.source, state.name_stack
    try:
        pending = _evaluate_known(jaxpr.eqns, values)
        for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
            if ct is not None and type(v) is not Literal:
                found[v] = accumulate(found.get(v), ct)
        _transpose_all(pending, values, found, _backward_scopes(outside))
    finally:
        state.source, state.name_stack = saved, stack
    return [found.get(v) if is_undefined_primal(a) else None for v, a in zip(jaxpr.invars, args)]


def _evaluate_known(eqns: Iterable[Eqn], values: dict[Any, Any]) -> list[Eqn]:
    """Add to `values` the results of equations whose operands are all in it; give the other equations."""
    pending = []
    for eqn in eqns:
        if any(type(v) is not Literal and v not in values for v in eqn.invars):
            pending.append(eqn)
            continue
        state.source, state.name_stack = eqn.source, eqn.name_stack
        operands = [literal_value(v) if type(v) is Literal else values[v] for v in eqn.invars]
        values.update(zip(eqn.outvars, eqn.bind(operands)))
    return pending


def _backward_scopes(outside: str | None) -> Callable[[str], str]:
    """What gives the scopes of an equation's transposition, from the equation's."""
    if outside is None:
        return str
    around = inside("transpose()")
    return lambda stack: f"{around}/{stack.removeprefix(outside).lstrip('/')}".rstrip("/")


def _transpose_all(eqns: list[Eqn], values: dict[Any, Any], found: dict[Any, Any],
                   scopes: Callable[[str], str]) -> None:
    """Transpose linear equations from the last to the first; `found` has the cotangents of variables.

    Variables in `values` are known, all others are linear.  A variable whose cotangent is zero, though
    equations that use it were reached, is in `found` with None: a user's rule is called for it too.
    """
    while eqns:
        eqn = eqns.pop()
        primitive = eqn.primitive
        reached = any(v in found for v in eqn.outvars)
        cts = [found.pop(v, None) for v in eqn.outvars]
        if not reached or primitive is not custom_lin_p and all(ct is None for ct in cts):
            if reached:
                found.update((v, found.get(v)) for v in eqn.invars
                             if type(v) is not Literal and v not in values)
            continue
        if primitive.transpose is None:
            raise missing(primitive, "transpose")
        operands, split = [], eqn.outvars[0].aval.explicit is not None
        for v in eqn.invars:
            if type(v) is Literal:
                operands.append(literal_value(v))
            else:
                operands.append(values[v] if v in values else UndefinedPrimal(v.aval))
                split = split or v.aval.explicit is not None
        state.source, state.name_stack = eqn.source, scopes(eqn.name_stack)
        if split:
            results = _transpose_typed(eqn, cts, operands)
        else:
            results = primitive.transpose(cts if primitive.multiple_results else cts[0], *operands,
                                          **eqn.params)
        for v, operand, ct in zip(eqn.invars, operands, results, strict=True):
            if is_undefined_primal(operand):
                found[v] = accumulate(found.get(v), ct)


def _transpose_typed(eqn: Eqn, cts: list[Any], operands: list[Any]) -> list[Any]:
    """The cotangents of an equation's operands, over Explicit mesh axes: each is split as its operand is.

    What happens between is not written by the user, so the rule is free to choose: it runs over Auto axes,
    unless a value is unreduced or reduced, which only types say.
    So does what is done with the cotangent of a value that is not split.
    """
    from ..primitives.parallel.sharding import as_type, without_types  # few programs are over Explicit axes
    partial = any(v.aval.explicit is not None and v.aval.explicit.spec.partial
                  for v in (*eqn.invars, *eqn.outvars))
    if not (partial or eqn.primitive.elementwise or eqn.primitive.says_sharding
            or any(True for _ in sub_jaxprs(eqn.params))):
        cts = [ct if ct is None else without_types(ct) for ct in cts]
        operands = [UndefinedPrimal(x.aval.update(sharding=None)) if is_undefined_primal(x)
                    else without_types(x) for x in operands]
    multiple = eqn.primitive.multiple_results
    results = eqn.primitive.transpose(cts if multiple else cts[0], *operands, **eqn.params)
    divided = [as_type(ct, v.aval.cotangent()) if ct is not None and (partial or v.aval.explicit) else ct
               for ct, v in zip(results, eqn.invars)]
    return [without_types(ct) if ct is not None and not v.aval.explicit else ct
            for ct, v in zip(divided, eqn.invars)]


@programs.register
def transpose(jaxpr: Jaxpr, linear: tuple[bool, ...],
              ct_nonzero: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    in_nonzero: list[bool] = []
    known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        given = iter(args[:known])
        operands = [UndefinedPrimal(v.aval) if is_lin else next(given)
                    for v, is_lin in zip(jaxpr.invars, linear)]
        results = backward_pass(jaxpr, (), operands, fill_zeros(args[known:], ct_nonzero))
        results = [r for r, is_lin in zip(results, linear) if is_lin]
        in_nonzero[:] = [r is not None for r in results]
        return drop_zeros(results)

    avals = [a for a, is_lin in zip(jaxpr.in_avals, linear) if not is_lin]
    avals += [a.cotangent() for a, nz in zip(jaxpr.out_avals, ct_nonzero) if nz]
    return programs.trace_closed(fun, avals, jaxpr.name), tuple(in_nonzero)
