"""Tracing a function to a program: the trace that writes down what is bound, and its values."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from . import dtypes, errors, leaks, source_info as provenance
from .avals import ShapedArray, Space, aval_of, physical
from .config import config, joined, state
from .debug_info import DebugInfo, located
from .jaxpr import Atom, Eqn, Jaxpr, Literal, Var, check_jaxpr, literal_value, sub_jaxprs
from .primitive import Builtin, Primitive
from .source_info import Source
from .symbolic.dimension import Dimension
from .trace import Trace, Tracer

# NumPy constants up to this many bytes are part of the program; larger ones are passed to it as inputs.
LITERAL_BYTES = 1024


class JaxprTracer(Tracer):
    """A value of a program that is being written down."""
    __slots__ = ("_var", "_source")

    def __init__(self, trace: JaxprTrace, var: Atom, source: Source | None = None) -> None:
        self._trace = trace
        self._var = var
        self.aval = var.aval
        self._source = source

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

    def origin(self) -> str:
        if self._source is not None:
            return f"was computed at {provenance.describe(self._source)}"
        trace = self._trace
        if trace.arg_names is None or self._var not in trace.invars:
            return ""
        return f"is argument {trace.arg_names[trace.invars.index(self._var)]} of {trace.name}"

    def depends_on(self) -> list[str]:
        trace, needed = self._trace, {self._var}
        for eqn in reversed(trace.eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is not Literal)
        info = trace.debug_info()
        names = trace.arg_names if info is None else info.arg_names
        return [name for v, name in zip(trace.invars, names or ()) if name and v in needed]

    def traced_for(self) -> str:
        info = self._trace.debug_info()
        return "" if info is None else f"{info.func_src_info} traced for {info.traced_for}"


def _no_value(*, dim: Dimension, **_: Any) -> NoReturn:
    raise NotImplementedError(f"the symbolic dimension '{dim}' has no value here: it has one in a function "
                              "that is exported, when that is called")


# the value of a symbolic size; a weak int where no dtype is requested
dimension_p = Builtin(
    "dim_as_value", abstract_eval=lambda *, dim, dtype: aval_of(dim) if dtype is None
    else ShapedArray((), dtype),
    impl_rule=_no_value,
    lower=lambda ctx, eqn: ctx.constant(eqn.params["dim"], eqn.outvars[0].aval.dtype))
Dimension.as_value = lambda self, dtype=None: dimension_p.bind(dim=self, dtype=dtype)


def _in_memory(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any],
               result: Any) -> Any:
    """The types of results in the memory of the operands, of which some are in another than the device's.

    Numbers go with either, and what moves values keeps them where they are; the typing rules of users'
    primitives, and of those that hold programs or move values between memories, say it themselves.

    Raises:
        ValueError: where the operands are in different ones.
    """
    if (primitive.says_sharding or not isinstance(primitive, Builtin) or result == avals
            or any(True for _ in sub_jaxprs(params))):
        return result
    arrays = [a for a in avals if a.ndim or primitive.structural and len(avals) == 1]
    spaces = list(dict.fromkeys([a.memory_space for a in arrays]))
    if len(spaces) > 1:
        one, other = (next(a for a in arrays if a.memory_space is space) for space in spaces[:2])
        raise ValueError(f"memory_space of all inputs passed to `{primitive}` must be the same. Got one "
                         f"operand with type: {one.str_short()} and another operand with type: "
                         f"{other.str_short()}. Move one with device_put(x, jax.memory.Space.Device)")
    space = spaces[0] if spaces else Space.Device
    if primitive.multiple_results:
        return [a.update(memory_space=space) for a in result]
    return result.update(memory_space=space)


class JaxprTrace(Trace):
    """Writes down what is bound as the equations of a program."""
    __slots__ = ("eqns", "constants", "buffers", "inner", "invars", "name", "arg_names", "doing")
    # primitives/parallel/collectives.py gives it: an operation that only marks a value as one that varies
    pvary: Primitive
    # sharding/explicit.py gives it: (primitive, avals, params) -> what its typing rule gives, with shardings
    typed: Callable[..., Any]
    # runtime/array_impl.py gives it: (a NumPy array, the Array of it when it was used before or None) -> the
    # Array of it now
    held: Callable

    def __init__(self, parent: Trace | None, name: str = "fn", arg_names: Sequence[str] | None = None,
                 doing: str | None = None) -> None:
        super().__init__(parent)
        self.staging = True
        self.doing = doing     # of which function it is what, as in "grad of loss"; by default jit's
        self.eqns: list[Eqn] = []
        self.constants: dict[int, tuple[Any, Atom]] = {}        # id(value) -> (value, its Var or Literal)
        # the same of NumPy arrays, which may be rewritten -> (value, what it was, its Var or Literal)
        self.buffers: dict[int, tuple[np.ndarray, Any, Any]] = {}
        self.inner: list[tuple[Any, Any]] = []  # those that programs inside have seen: (value, what it was)
        self.invars: list[Var] = []
        self.name = name
        self.arg_names = arg_names

    def debug_info(self) -> DebugInfo | None:
        origin = getattr(self.fun, "origin", None)
        return None if origin is None else origin.debug_info(len(self.invars), 0)

    @property
    def what(self) -> str:      # type: ignore[override]
        return self.doing or (f"jit of {self.name}" if self.name else "jit")

    def words(self) -> str:
        return self.what

    def input(self, aval: ShapedArray) -> JaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return JaxprTracer(self, var)

    def new_arg(self, aval: ShapedArray, source_info: Any = None) -> JaxprTracer:
        """`input`, as JAX calls it: libraries give the program one more argument while it is traced."""
        return self.input(aval)

    def atom(self, value: Any) -> Atom:
        """The Var or Literal for an operand of any kind."""
        if isinstance(value, JaxprTracer) and value._trace is self:
            return value._var
        kind = type(value)
        if kind in (float, int, bool, complex):
            return Literal(value, aval_of(value))
        found = self.constants.get(id(value))
        if found is not None:
            return found[1]
        if isinstance(value, Tracer):
            if not value._trace.alive or self in value._trace.enclosing():
                raise errors.leaked_tracer(value)
            atom: Atom = Var(value.aval)
        elif isinstance(value, np.ndarray):
            return self.buffer(value)
        elif isinstance(value, np.generic):
            aval = aval_of(value)
            atom = Literal(np.array(value, aval.dtype), aval)
        elif isinstance(value, dtypes.python_scalars):
            return Literal(dtypes.plain(value), aval_of(value))
        elif type(value) is Dimension:
            return self.process(dimension_p, (), {"dim": value, "dtype": None})._var
        else:
            atom = Var(aval_of(value))
        self.constants[id(value)] = (value, atom)
        return atom

    def constant(self, value: Any) -> JaxprTracer:
        """A value known now as one of the program: a constant of it, for which there is no equation."""
        return JaxprTracer(self, self.atom(value))

    def buffer(self, value: np.ndarray) -> Atom:
        """The Var or Literal for a NumPy array as it is now, which may have had other numbers before."""
        _, before, atom = self.buffers.get(id(value), (value, None, None))
        if type(before) is bytes and value.tobytes() == before and value.shape == atom.aval.shape:
            return atom
        aval = aval_of(value)
        if value.nbytes <= LITERAL_BYTES and physical(aval) is aval:
            now, atom = value.tobytes(), Literal(np.array(value, aval.dtype), aval)
        else:
            now = self.held(value, None if type(before) is bytes else before)
            if now is before:
                return atom
            atom = Var(aval)
            self.constants[id(now)] = now, atom
        self.buffers[id(value)] = value, now, atom
        return atom

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise RuntimeError("internal error: a finished trace is still current")
        if primitive.to_staged is not None and "jaxpr" not in params:
            args, params = primitive.to_staged(args, params)
            return primitive.bind(*args, **params)
        invars, avals, marked = [], [], False
        for a in args:
            v = a._var if type(a) is JaxprTracer and a._trace is self else self.atom(a)
            invars.append(v)
            aval = v.aval
            avals.append(aval)
            if aval.marked:
                marked = True
        vma = self.unify(primitive, params, invars, avals) if marked else None
        try:
            result = (self.typed(primitive, avals, params) if marked and any([a.mesh for a in avals])
                      else primitive.abstract_eval(*avals, **params))
            if marked and any([a.memory for a in avals]):
                result = _in_memory(primitive, avals, params, result)
        except (TypeError, ValueError) as error:
            note_line(error, primitive)
            raise
        if vma is not None:
            result = ([a.update(vma=vma) for a in result] if primitive.multiple_results
                      else result.update(vma=vma))
        source = state.source or provenance.user_frame()
        effects = primitive.effects_of(params) if params or primitive.effects is not None else ()
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in result]
            self.eqns.append(Eqn(primitive, invars, outvars, params, effects, source, state.name_stack))
            return [JaxprTracer(self, v, source) for v in outvars]
        var = Var(result)
        self.eqns.append(Eqn(primitive, invars, [var], params, effects, source, state.name_stack))
        return JaxprTracer(self, var, source)

    def unify(self, primitive: Primitive, params: dict[str, Any], invars: list[Atom],
              avals: list[ShapedArray]) -> frozenset[str] | None:
        """Let all operands vary over the manual axes over which any does, in `invars` and `avals`.  Returns
        those axes, or None where there are none, or the primitive itself says how its results vary:
        collectives do, and those that hold programs."""
        vma = frozenset().union(*[a.vma for a in avals])
        if not vma or primitive.says_vma or any(True for _ in sub_jaxprs(params)):
            return None
        for i, (v, aval) in enumerate(zip(invars, avals)):
            if aval.vma != vma and type(v) is Var:
                if not config.jax_auto_pcast:
                    raise ValueError(
                        f"{primitive.name}: operand {i} varies over the manual axes {sorted(aval.vma)}, "
                        f"others over {sorted(vma)}, and jax_auto_pcast is off: lax.pcast(x, "
                        f"{tuple(sorted(vma - aval.vma))}, to='varying') makes it vary")
                avals[i] = aval.update(vma=vma)
                invars[i] = varying = Var(avals[i])
                self.eqns.append(Eqn(self.pvary, [v], [varying], {"axes": tuple(sorted(vma - aval.vma))},
                                     (), state.source or provenance.user_frame(), state.name_stack))
        return vma

    def splice(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        source = state.source or provenance.user_frame()
        stack = state.name_stack
        env: dict[Var, Any] = {
            v: a._var if type(a) is JaxprTracer and a._trace is self else self.atom(a)
            for v, a in zip(jaxpr.invars, args, strict=True)}
        given = dict(zip(jaxpr.invars, args))
        for eqn in jaxpr.eqns:
            invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
            outvars = []
            for v in eqn.outvars:
                env[v] = var = Var(v.aval)
                outvars.append(var)
            self.eqns.append(Eqn(eqn.primitive, invars, outvars, eqn.params, eqn.effects, source,
                                 joined(stack, eqn.name_stack)))
        results = []
        for out in jaxpr.outvars:
            if type(out) is Literal:
                results.append(literal_value(out))
            else:
                results.append(given[out] if out in given else JaxprTracer(self, env[out], source))
        return results

    def finish(self, outputs: Iterable[Any]) -> Jaxpr:
        """The program with these outputs, its constants beside it."""
        outvars = [self.atom(x) for x in outputs]
        held = [(var, value) for value, var in self.constants.values() if type(var) is Var]
        program = Jaxpr([v for v, _ in held], [c for _, c in held], self.invars, self.eqns, outvars,
                        self.name, self.arg_names)
        if self.buffers or self.inner:
            program.facts["buffers"] = [*((value, was) for value, was, _ in self.buffers.values()),
                                        *self.inner]
            note_buffers(program, self.parent)
        return program


def note_buffers(program: Jaxpr, trace: Trace | None) -> None:
    """Tell the trace that a program becomes a part of which NumPy arrays it has seen."""
    while trace is not None and not isinstance(trace, JaxprTrace):
        trace = trace.parent
    if trace is not None:
        trace.inner += program.facts.get("buffers", ())


def is_current(program: Jaxpr) -> bool:
    """Do the NumPy arrays that a program has seen when it was traced hold the same numbers still?"""
    return all(value.tobytes() == was if type(was) is bytes else JaxprTrace.held(value, was) is was
               for value, was in program.facts.get("buffers", ()))


def note_line(error: BaseException, primitive: Primitive) -> None:
    """Add to an error of a typing rule, once, the line that the operation is done for, if another."""
    if state.source is not None and not getattr(error, "__notes__", None):
        error.add_note(f"while tracing {primitive.name} at {provenance.describe(state.source)}")


def literal_number(x: Any) -> Any:
    """The Python or NumPy number that is meant where a program is written down; None for everything else."""
    if type(x) is JaxprTracer and type(x._var) is Literal:
        x = x._var.val
        x = x[()] if isinstance(x, np.ndarray) else x
    return x if isinstance(x, (*dtypes.python_scalars, np.generic)) else None


def as_constant(value: Any) -> Tracer | None:
    """A value known now as a constant of the program that is being written down, if one is."""
    trace = state.trace
    if not trace.staging:
        return None
    while type(trace) is not JaxprTrace:
        if (trace := trace.parent) is None:
            return None
    return trace.constant(value)


def may_trace(what: object, fun: Any = None) -> None:
    """Check that `what`, a call of `fun`, may be traced.  RuntimeError where the option jax_no_tracing says
    that nothing new is to be."""
    if config.jax_no_tracing:
        origin = getattr(fun, "origin", None)
        if origin is not None:
            what = f"function {located(origin.name, origin.code)} for `{origin.what}`"
        raise RuntimeError(f"re-tracing {what}, but 'no_tracing' is set: before the block it was not traced "
                           "for arguments of these types")


def trace_to_jaxpr(fun: Callable[..., Iterable[Any]], in_avals: Iterable[ShapedArray], name: str = "fn",
                   arg_names: Sequence[str] | None = None, source: Source | None = None,
                   doing: str | None = None) -> Jaxpr:
    """Run `fun`, which takes and returns flat lists of values, on tracers of these avals.

    Args:
        arg_names: of the inputs, for messages
        source: what equations carry in place of the line of the user's that made them
        doing: of which function it is what, as in "grad of loss"; by default "jit of" the name
    Returns:
        A Jaxpr; constants it closes over, tracers of outer traces among them, are its `consts`.
    """
    may_trace(doing or name, fun)
    trace = JaxprTrace(state.trace, name, arg_names, doing)
    trace.fun = fun
    saved_source, state.source = state.source, source
    try:
        program = trace.run(lambda: trace.finish(fun(*[trace.input(aval) for aval in in_avals])))
    finally:
        state.source = saved_source
    program.origin = getattr(fun, "origin", None)
    leaks.check(trace)
    if config.jax_enable_checks:
        check_jaxpr(program)
    return program
