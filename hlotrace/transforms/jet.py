"""Taylor mode: a value travels with the coefficients of its truncated Taylor polynomial.

A function of x(t) = x_0 + x_1 t + ... + x_K t**K is evaluated on such polynomials, so derivatives of order
K cost about K**2 operations (K**3 for some) where nested forward mode takes 2**K.  Griewank & Walther,
"Evaluating derivatives", 2nd ed., 2008, chapter 13; Bettencourt, Johnson & Duvenaud, "Taylor-mode automatic
differentiation for higher-order derivatives in JAX", 2019.

Every primitive with a derivative has a rule: y' = jvp(x, x') is a differential equation for y, whose right
side, evaluated on polynomials of one order less, gives those of y.  What has a cheaper recurrence is in a
table here: linear operations act on each coefficient, products are convolutions, and what solves an
equation with a polynomial on its right side, as exp, tanh and sin do, is summed up coefficient by
coefficient.  (Powers have one too, which divides by the base, and so does not know the derivatives of a
polynomial at zero: theirs is the general rule.)
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import dtypes, leaks, programs
from ..core.avals import ShapedArray, aval_of
from ..core.config import state
from ..core.jaxpr import Jaxpr, Var, eval_jaxpr
from ..core.primitive import PassRules, Primitive, missing
from ..core.symbolic_zeros import nonzero_mask
from ..core.trace import Trace, Tracer, entering
from ..primitives.arrays import elementwise as e, transcendental as t
from ..primitives.arrays.bit_formats import reduce_precision_p
from ..primitives.arrays.contract import dot_general_p
from ..primitives.arrays.conv import conv_general_dilated_p
from ..primitives.arrays.cumulative import cumsum_p
from ..primitives.arrays.elementwise_rules import add_any_p
from ..primitives.arrays.fft import fft_p
from ..primitives.arrays.gather import scatter_add_p
from ..primitives.arrays.shape import instantiate, reduce_sum_p
from ..primitives.arrays.slicing import optimization_barrier_p
from ..primitives.arrays.window import reduce_window_sum_p
from ..primitives.common import number
from ..primitives.parallel.collectives import (
    all_gather_p, all_to_all_p, ppermute_p, psum_invariant_p, psum_p, pvary_p, reduce_scatter_p)
from ..primitives.parallel.sharding import device_put_p, sharding_constraint_p
from ..primitives.programs.calls import custom_vjp_call_p, jit_p
from ..primitives.programs.cond_while import cond_p, groups, while_p
from ..primitives.programs.remat import remat_p
from ..primitives.programs.scan import scan_p

# (primitive, order, primals, series, params) -> (outs, their series)
Rule = Callable[["Primitive", int, Sequence[Any], Sequence[Any], dict[str, Any]], tuple[Any, Any]]


class JetTracer(Tracer):
    """`terms` are the coefficients of t, t**2, ...; None is a zero."""
    __slots__ = ("primal", "terms")

    def __init__(self, trace: JetTrace, primal: Any, terms: Any) -> None:
        self._trace, self.primal, self.terms, self.aval = trace, primal, terms, aval_of(primal)

    def concrete(self) -> Any:
        if isinstance(self.primal, Tracer):
            return self.primal.concrete()
        return self.primal if self._trace.alive else None

    def inner(self) -> Any:
        return self.primal


class JetTrace(Trace):
    """Evaluates on polynomials of degree `order`."""
    __slots__ = ("order",)
    what = "jet"

    def __init__(self, parent: Trace, order: int) -> None:
        super().__init__(parent)
        self.order = order

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        pairs = [self.split(a) for a in args]
        primals, series = [p for p, _ in pairs], [s for _, s in pairs]
        if primitive is custom_vjp_call_p and any(nonzero_mask(series)):
            # its rule says nothing about forward mode: what it is made of does
            return _custom_vjp(*args, **params)
        with entering(self.parent):
            if not any(nonzero_mask(series)):
                return primitive.bind(*primals, **params)
            outs, out_series = rule_of(primitive)(primitive, self.order, primals, series, params)
        if primitive.multiple_results:
            return [self.join(x, s) for x, s in zip(outs, out_series, strict=True)]
        return self.join(outs, out_series)

    def join(self, primal: Any, terms: Any) -> Any:
        return primal if terms is None or not any(nonzero_mask(terms)) else JetTracer(self, primal, terms)

    def split(self, value: Any) -> tuple[Any, Any]:
        """(primal, terms or None) of any value as this trace sees it."""
        if type(value) is JetTracer and value._trace is self:
            return value.primal, value.terms
        return value, None


def jet_flat(fun: Callable[..., Any], order: int, primals: Sequence[Any],
             series: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """(outs, their terms) of `fun`, from flat lists to flat lists; terms are None where all are zero."""
    trace = JetTrace(state.trace, order)
    outs = trace.run(fun, *[trace.join(p, s) for p, s in zip(primals, series, strict=True)])
    pairs = [trace.split(x) for x in outs]
    del outs
    leaks.check(trace)
    return [p for p, _ in pairs], [s for _, s in pairs]


# --- sums and products of coefficients, None being a zero -----------------------------------------

def _scaled(factor: float, x: Any) -> Any:
    return x if x is None or factor == 1 else e.mul_p.bind(x, number(float(factor), aval_of(x)))


def _times(x: Any, y: Any) -> Any:
    return None if x is None or y is None else e.mul_p.bind(x, y)


def _plus(x: Any, y: Any) -> Any:
    if x is None or y is None:
        return y if x is None else x
    return e.add_p.bind(x, y)


def _minus(x: Any, y: Any) -> Any:
    if y is None:
        return x
    return e.neg_p.bind(y) if x is None else e.sub_p.bind(x, y)


def _sum(terms: Iterable[Any]) -> Any:
    total = None
    for term in terms:
        total = _plus(total, term)
    return total


def driven(x: Sequence[Any], slope: Sequence[Any], k: int) -> Any:
    """Coefficient k of y where y' = slope * x', given the first k coefficients of `slope`."""
    return _scaled(1 / k, _sum(_scaled(j, _times(x[j], slope[k - j])) for j in range(1, k + 1)))


def filled(terms: Any, order: int, aval: ShapedArray) -> list[Any]:
    """All coefficients, written out."""
    return [instantiate(t, aval) for t in terms or [None] * order]


# --- rules: (primitive, order, primals, series, params) -> (outs, their series) -------------------

def by_derivative(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
                  params: dict[str, Any]) -> tuple[Any, Any]:
    """y' = jvp(x, x'), evaluated on polynomials of one order less."""
    if primitive.jvp is None:
        raise missing(primitive, "jvp")
    inner = JetTrace(state.trace, order - 1)
    given = [inner.join(p, s and s[:-1]) for p, s in zip(primals, series)]

    def derived() -> Any:
        moving = [s and _rate(inner, p, s) for p, s in zip(primals, series)]
        return primitive.jvp(given, moving, **params)
    out, rate = inner.run(derived)
    if primitive.multiple_results:
        return [inner.split(x)[0] for x in out], [_integrated(inner, r, order) for r in rate]
    return inner.split(out)[0], _integrated(inner, rate, order)


def _rate(trace: JetTrace, primal: Any, terms: Any) -> Any:
    """x' of x(t)."""
    rates = [_scaled(j, t) for j, t in enumerate(terms, 1)]
    with entering(trace.parent):
        first = instantiate(rates[0], aval_of(primal))
    return trace.join(first, rates[1:])


def _integrated(trace: JetTrace, rate: Any, order: int) -> list[Any] | None:
    if rate is None or aval_of(rate).dtype == dtypes.float0:
        return None
    first, rest = trace.split(rate)
    return [_scaled(1 / k, r) for k, r in enumerate([first, *(rest or [None] * (order - 1))], 1)]


def linear(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
           params: dict[str, Any]) -> tuple[Any, Any]:
    """Linear in all operands of inexact dtype together: each coefficient is that of the operands."""
    outs = primitive.bind(*primals, **params)
    inexact = [dtypes.is_inexact(aval_of(p).dtype) for p in primals]
    terms: list[Any] = []
    for k in range(order):
        if all(s is None or s[k] is None for s in series):
            terms.append(None)
            continue
        operands = list(primals)
        for i, (p, s) in enumerate(zip(primals, series)):
            if inexact[i]:
                operands[i] = instantiate(s and s[k], aval_of(p))
        terms.append(primitive.bind(*operands, **params))
    if not primitive.multiple_results:
        return outs, terms if dtypes.is_inexact(aval_of(outs).dtype) else None
    return outs, [[t and t[i] for t in terms] if dtypes.is_inexact(aval_of(x).dtype) else None
                  for i, x in enumerate(outs)]


def bilinear(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
             params: dict[str, Any]) -> tuple[Any, Any]:
    """The product of two polynomials."""
    a, b = ([p, *(s or [None] * order)] for p, s in zip(primals, series))

    def product(x: Any, y: Any) -> Any:
        return None if x is None or y is None else primitive.bind(x, y, **params)
    outs = [_sum(product(a[j], b[k - j]) for j in range(k + 1)) for k in range(order + 1)]
    return outs[0], outs[1:]


def _div(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
         params: dict[str, Any]) -> tuple[Any, Any]:
    """a = q b, solved for the coefficients of q one after the other."""
    a, b = ([p, *(s or [None] * order)] for p, s in zip(primals, series))
    q = [e.div_p.bind(a[0], b[0])]
    for k in range(1, order + 1):
        rest = _minus(a[k], _sum(_times(b[j], q[k - j]) for j in range(1, k + 1)))
        q.append(None if rest is None else e.div_p.bind(rest, b[0]))
    return q[0], q[1:]


def _log(shift: float) -> Rule:
    """(shift + x) y' = x'."""
    def rule(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
             params: dict[str, Any]) -> tuple[Any, Any]:
        x, y = [primals[0], *series[0]], [primitive.bind(primals[0], **params)]
        base = e.add_p.bind(x[0], number(shift, aval_of(x[0]))) if shift else x[0]
        for k in range(1, order + 1):
            known = _scaled(1 / k, _sum(_scaled(j, _times(y[j], x[k - j])) for j in range(1, k)))
            rest = _minus(x[k], known)
            y.append(None if rest is None else e.div_p.bind(rest, base))
        return y[0], y[1:]
    return rule


def quadratic(a: float, b: float, c: float) -> Rule:
    """y' = (a + b y + c y**2) x'."""
    def rule(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
             params: dict[str, Any]) -> tuple[Any, Any]:
        x = [primals[0], *series[0]]
        y, slope = [primitive.bind(primals[0], **params)], []
        for k in range(1, order + 1):
            square = _sum(_times(y[j], y[k - 1 - j]) for j in range(k)) if c else None
            here = _plus(_scaled(b, y[k - 1]) if b else None, _scaled(c, square))
            if k == 1 and a:
                first = number(float(a), aval_of(y[0] if here is None else here))
                here = first if here is None else e.add_p.bind(here, first)
            slope.append(here)
            y.append(driven(x, slope, k))
        return y[0], y[1:]
    return rule


def _circular(first: Primitive, second: Primitive, sign: int) -> Rule:
    """y' = z x' and z' = sign y x' together: sin and cos, sinh and cosh."""
    def rule(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
             params: dict[str, Any]) -> tuple[Any, Any]:
        x = [primals[0], *series[0]]
        y, z = [[p.bind(primals[0], **params)] for p in (first, second)]
        for k in range(1, order + 1):
            y_k, z_k = driven(x, z, k), driven(x, y, k)
            y.append(y_k)
            z.append(z_k if sign > 0 or z_k is None else e.neg_p.bind(z_k))
        out = y if primitive is first else z
        return out[0], out[1:]
    return rule


# --- programs within programs ---------------------------------------------------------------------

@programs.cached
def jet_program(jaxpr: Jaxpr, order: int, marks: Sequence[bool],
                force: bool) -> tuple[Jaxpr, tuple[bool, ...]]:
    """A program on polynomials: the terms are those of one value after those of another.

    Args:
        marks: which inputs have terms.
        force: are all outs of inexact dtype marked?
    Returns:
        The program of [*inputs, *terms of the marked ones] -> [*outs, *terms of the marked outs], and the
        marks of the outs.
    """
    out_marks: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        primals, rest = groups(args, len(marks))
        outs, terms = jet_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), order, primals,
                               _terms(rest, marks, order))
        out_marks[:] = [t is not None or force and dtypes.is_inexact(a.dtype)
                        for t, a in zip(terms, jaxpr.out_avals)]
        return [*outs, *(c for t, a, m in zip(terms, jaxpr.out_avals, out_marks) if m
                         for c in filled(t, order, a))]
    avals = [*jaxpr.in_avals, *(a.tangent().strip_weak_type() for a, m in zip(jaxpr.in_avals, marks) if m
                                for _ in range(order))]
    return programs.trace_closed(fun, avals, jaxpr.name), tuple(out_marks)


def _terms(values: Iterable[Any], marks: Sequence[bool], order: int) -> list[Any]:
    """For each mark its terms from a flat list, or None."""
    values = iter(values)
    return [[next(values) for _ in range(order)] if m else None for m in marks]


def _listed(primals: Sequence[Any], series: Sequence[Any], marks: Sequence[bool], order: int) -> list[Any]:
    """The terms of the marked ones, in one list."""
    return [t for p, s, m in zip(primals, series, marks) if m
            for t in filled(s, order, aval_of(p).strip_weak_type())]


def _inexact(avals: Iterable[ShapedArray]) -> tuple[bool, ...]:
    return tuple(dtypes.is_inexact(a.dtype) for a in avals)


def _calling(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
             params: dict[str, Any]) -> tuple[Any, Any]:
    """jit and checkpoint: the program on polynomials."""
    jaxpr, marks = params["jaxpr"], nonzero_mask(series)
    program, out_marks = jet_program(jaxpr, order, marks, False)
    outs, terms = groups(primitive.bind(*primals, *_listed(primals, series, marks, order),
                                        **{**params, "jaxpr": program}), len(jaxpr.outvars))
    return outs, _terms(terms, out_marks, order)


def _cond(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
          params: dict[str, Any]) -> tuple[Any, Any]:
    (index, *operands), branches = primals, params["branches"]
    marks = nonzero_mask(series[1:])
    moved, out_marks = zip(*[jet_program(b, order, marks, True) for b in branches])
    outs, terms = groups(cond_p.bind(index, *operands, *_listed(operands, series[1:], marks, order),
                                     branches=moved), len(out_marks[0]))
    return outs, _terms(terms, out_marks[0], order)


def _loop_body(jaxpr: Jaxpr, order: int, sizes: tuple[int, ...], outs: int) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`jet_program` where the inputs of each of some groups are followed by their terms, and so the first
    `outs` outputs."""
    marks = _inexact(jaxpr.in_avals)
    program, out_marks = jet_program(jaxpr, order, marks, True)

    def body(*args: Any) -> list[Any]:
        primals, terms = [], []
        for group in groups(marks, *sizes):
            own, moved, args = groups(args, len(group), sum(group) * order)
            primals += own
            terms += moved
        results, moved = groups(eval_jaxpr(program, (), *primals, *terms), len(out_marks))
        carried = sum(out_marks[:outs]) * order
        return [*results[:outs], *moved[:carried], *results[outs:], *moved[carried:]]
    avals = []
    given, more = program.in_avals[:len(marks)], iter(program.in_avals[len(marks):])
    for group, own in zip(groups(marks, *sizes), groups(given, *sizes)):
        avals += [*own, *(next(more) for m in group if m for _ in range(order))]
    return programs.trace_closed(body, avals, jaxpr.name), out_marks


def _scan(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
          params: dict[str, Any]) -> tuple[Any, Any]:
    jaxpr, sizes = params["jaxpr"], (params["num_consts"], params["num_carry"])
    body, out_marks = _loop_body(jaxpr, order, sizes, sizes[1])
    operands, counts = _with_terms(primals, series, order, sizes)
    results = scan_p.bind(*operands, **{**params, "jaxpr": body, "num_consts": counts[0],
                                        "num_carry": counts[1]})
    return _without_terms(results, out_marks, order, sizes[1])


def _with_terms(primals: Sequence[Any], series: Sequence[Any], order: int,
                sizes: tuple[int, ...]) -> tuple[list[Any], list[int]]:
    """The operands of a loop with their terms behind each group, and how many are then in each."""
    operands, counts = [], []
    for own, moved in zip(groups(primals, *sizes), groups(series, *sizes)):
        terms = _listed(own, moved, _inexact(map(aval_of, own)), order)
        operands += [*own, *terms]
        counts.append(len(own) + len(terms))
    return operands, counts


def _without_terms(results: Sequence[Any], out_marks: Sequence[bool], order: int,
                   outs: int) -> tuple[Any, Any]:
    carried = sum(out_marks[:outs]) * order
    carry, carry_terms, ys, terms = groups(results, outs, carried, len(out_marks) - outs)
    return [*carry, *ys], _terms([*carry_terms, *terms], out_marks, order)


def _while(primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any],
           params: dict[str, Any]) -> tuple[Any, Any]:
    """Its condition sees values alone."""
    cond, nc, nb = params["cond_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    body, out_marks = _loop_body(params["body_jaxpr"], order, (nb,), len(primals) - nc - nb)
    operands, counts = _with_terms(primals[nc:], series[nc:], order, (nb,))
    carry = body.out_avals
    widened = cond.replace(invars=[*cond.invars, *map(Var, carry[len(primals) - nc - nb:])], arg_names=None)
    results = while_p.bind(*primals[:nc], *operands, cond_jaxpr=widened, body_jaxpr=body, cond_nconsts=nc,
                           body_nconsts=counts[0])
    return _without_terms(results, out_marks, order, len(primals) - nc - nb)


def _custom_vjp(*args: Any, fun: Any = None, jaxpr: Jaxpr | None = None, **_: Any) -> list[Any]:
    return list(fun(*args)) if jaxpr is None else eval_jaxpr(jaxpr, (), *args)


# The general rule holds for whatever has a derivative; `rule_of` takes the linear one for what moves values.
RULES = PassRules("jet", by_derivative, lambda p: True, {
    linear: (e.add_p, add_any_p, e.sub_p, e.neg_p, e.real_p, e.imag_p, e.conj_p, e.complex_p,
             e.convert_element_type_p, reduce_precision_p, reduce_sum_p, optimization_barrier_p,
             scatter_add_p, cumsum_p, reduce_window_sum_p, pvary_p, psum_p, psum_invariant_p, all_gather_p,
             reduce_scatter_p, all_to_all_p, ppermute_p, sharding_constraint_p, device_put_p, fft_p),
    bilinear: (e.mul_p, dot_general_p, conv_general_dilated_p),
    _div: (e.div_p,), _log(0.0): (t.log_p,), _log(1.0): (t.log1p_p,),
    quadratic(0, 1, 0): (t.exp_p,), quadratic(1, 1, 0): (t.expm1_p,),
    quadratic(0, math.log(2), 0): (t.exp2_p,), quadratic(1, 0, 1): (t.tan_p,),
    quadratic(1, 0, -1): (t.tanh_p,), quadratic(0, 1, -1): (t.logistic_p,),
    _circular(t.sin_p, t.cos_p, -1): (t.sin_p, t.cos_p),
    _circular(t.sinh_p, t.cosh_p, 1): (t.sinh_p, t.cosh_p),
    _calling: (jit_p, remat_p), _cond: (cond_p,), _scan: (scan_p,), _while: (while_p,)})


def rule_of(primitive: Primitive) -> Rule:
    """A user's rule, the one listed, the linear one of what moves values, or the general one."""
    rule = RULES.of(primitive)
    return linear if rule is by_derivative and primitive.structural else rule
