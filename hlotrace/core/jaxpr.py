"""The typed program: Var, Literal, Eqn, Jaxpr; its evaluation; dead code; its typing rules; its text."""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from .avals import ShapedArray, aval_of
from .config import state
from .dtypes import short_name
from .effects import Effect, Effects
from .errors import JaxprTypeError
from .source_info import NameStack, Source, SourceInfo


class Var:
    """A variable; bound once, by an equation or as an input."""
    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


@final
class Literal:
    """A small constant inside of a program: a Python or NumPy scalar, or a small NumPy array.

    `key` is equal for equal constants; outlining sets it.
    """
    __slots__ = ("val", "aval", "key")
    key: Any

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"Literal({self.val!r}: {self.aval})"


Atom: TypeAlias = Var | Literal


class DebugInfo(NamedTuple):
    """What is known of a function that is traced: for what, its place, the names of arguments and results."""
    traced_for: str
    func_src_info: str
    arg_names: tuple | None = None
    result_paths: tuple | None = None


class JaxprEqnContext(NamedTuple):
    """Under what options an equation was written: JAX's record, of which nothing depends on here."""
    compute_type: Any = None
    threefry_partitionable: bool = True
    xla_metadata: Any = None
    cur_abstract_mesh: Any = None

    @property
    def manager(self) -> contextlib.AbstractContextManager[None]:
        """A context in which equations are written so."""
        return contextlib.nullcontext()


class Params(dict):
    """The parameters of an application; `[name]` finds them also under the names that JAX has for them."""
    __slots__ = ("also",)

    def __init__(self, params: Mapping[str, Any],
                 also: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> None:
        super().__init__(params)
        self.also = also

    def __missing__(self, name: str) -> Any:
        return self.also[name](self)


class Eqn:
    """One application of a primitive.

    `source` is (code, lasti) of the user's line, `name_stack` the named_scope path, `effects` a tuple of
    effect names.
    """
    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source", "name_stack")

    def __init__(self, primitive: Any, invars: Sequence[Atom], outvars: Sequence[Var], params: dict[str, Any],
                 effects: tuple[Effect, ...] = (), source: Source | None = None,
                 name_stack: str = "") -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params if primitive.also is None else Params(params, primitive.also)
        self.effects = effects
        self.source = source
        self.name_stack = name_stack

    @property
    def source_info(self) -> SourceInfo:
        """Where the user's program does it, as `extend.source_info_util` has it."""
        return SourceInfo(self.source, NameStack(self.name_stack))

    ctx = JaxprEqnContext()

    def replace(self, *, source_info: SourceInfo | None = None, ctx: Any = None, **changes: Any) -> Eqn:
        """The same but for what is given; `source_info` is JAX's for `source` and `name_stack`."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        if source_info is not None:
            fields.update(source=source_info.source, name_stack=str(source_info.name_stack))
        return Eqn(**{**fields, **changes})

    def __repr__(self) -> str:
        return f"Eqn({self.primitive.name})"


class Jaxpr:
    """A typed program: constants and inputs, equations in order, outputs (Vars or Literals).

    `consts` are the values of `constvars`; a program held as a parameter of an equation has none
    (`constvars == []`): what it closes over is an operand of that equation.
    """
    is_high = False     # values of hijax types are in programs as what they are made of
    __slots__ = ("constvars", "consts", "invars", "eqns", "outvars", "effects", "name", "arg_names",
                 "derived", "facts", "__weakref__")
    view: Callable[..., Any]        # the program as a page: `inspection/view.py`

    def __init__(self, constvars: Iterable[Var], consts: Iterable[Any], invars: Iterable[Var],
                 eqns: Sequence[Eqn], outvars: Iterable[Atom], name: str = "fn",
                 arg_names: Sequence[str] | None = None) -> None:
        self.constvars = list(constvars)
        self.consts = list(consts)
        self.invars = list(invars)
        self.eqns = eqns
        self.outvars = list(outvars)
        self.name = name
        self.arg_names = arg_names
        self.effects = Effects([e for eqn in eqns if eqn.effects for e in eqn.effects])
        self.derived: Any = None     # a cache of what transformations made of it: `programs.cached`
        self.facts: dict[str, Any] = {}      # what is true of all its equations together: `primitive.fact_of`

    @property
    def jaxpr(self) -> Jaxpr:
        """Itself: JAX separates open and closed programs, here a program carries its constants."""
        return self

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    literals = property(lambda self: self.consts)

    @property
    def debug_info(self) -> DebugInfo:
        """What is known of the function."""
        names = None if self.arg_names is None else tuple(self.arg_names)
        return DebugInfo("jit", self.name, names)

    def replace(self, *, jaxpr: Jaxpr | None = None, debug_info: DebugInfo | None = None,
                effects: Collection[Effect] | None = None, **changes: Any) -> Jaxpr:
        """The same but for what is given.

        Args:
            jaxpr: the program of the same constants that it becomes, where JAX has two classes
            debug_info: gives names to the function and its arguments
            effects: those of the equations

        Raises:
            ValueError: for other effects
        """
        base = self if jaxpr is None else jaxpr
        fields = {name: getattr(base, name) for name in
                  ("constvars", "consts", "invars", "eqns", "outvars", "name", "arg_names")}
        if jaxpr is not None and len(self.consts) == len(jaxpr.constvars):
            fields["consts"] = self.consts
        if debug_info is not None:
            fields.update(name=debug_info.func_src_info.partition(" at ")[0], arg_names=debug_info.arg_names)
        found = Jaxpr(**{**fields, **changes})
        if effects is not None and found.effects != Effects(effects):
            raise ValueError(f"replace: effects={set(effects)} are not those of the equations, "
                             f"{found.effects}")
        return found

    def __str__(self) -> str:
        return Printer().jaxpr(self, 0)

    __repr__ = __str__

    def pretty_print(self, **_: Any) -> str:
        return str(self)


ClosedJaxpr = Jaxpr


def close(jaxpr: Jaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    """(program without constvars, the constants): the constants become its leading inputs."""
    if not jaxpr.constvars:
        return jaxpr, ()
    names = jaxpr.arg_names and [*(f"const[{i}]" for i in range(len(jaxpr.constvars))), *jaxpr.arg_names]
    return jaxpr.replace(constvars=(), consts=(), invars=(*jaxpr.constvars, *jaxpr.invars),
                         arg_names=names), jaxpr.consts


def eval_jaxpr(jaxpr: Jaxpr, consts: Iterable[Any], *args: Any) -> list[Any]:
    """Run a program's equations in the current trace.

    Args:
        consts: the values of `jaxpr.constvars`
        *args: those of `jaxpr.invars`

    Returns:
        The list of outputs.
    """
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args, strict=True))
    saved, stack = state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            state.source = eqn.source
            state.name_stack = (f"{stack}/{eqn.name_stack}" if stack and eqn.name_stack
                                else stack or eqn.name_stack)
            operands = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            results = eqn.primitive.bind(*operands, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, results))
            else:
                env[eqn.outvars[0]] = results
    finally:
        state.source, state.name_stack = saved, stack
    return [literal_value(v) if type(v) is Literal else env[v] for v in jaxpr.outvars]


def literal_value(literal: Literal) -> Any:
    """The value of a literal, with the literal's dtype where it is not a plain weak Python scalar."""
    if literal.aval == aval_of(literal.val):
        return literal.val
    return np.asarray(literal.val, literal.aval.dtype)


def dce(jaxpr: Jaxpr, used_outputs: Sequence[bool] | None = None,
        keep_invars: bool = True) -> tuple[Jaxpr, list[bool]]:
    """The program without equations whose results are not used; effects stay.

    Args:
        used_outputs: for each output, whether it is to stay; None for all
        keep_invars: do inputs that are not used stay inputs?

    Returns:
        (the program, for each input whether it is used)
    """
    outvars = jaxpr.outvars
    if used_outputs is not None:
        outvars = [v for v, used in zip(outvars, used_outputs) if used]
    live = set(outvars)
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or not live.isdisjoint(eqn.outvars):
            rule = eqn.primitive.dce
            if rule is not None and not live.issuperset(eqn.outvars):
                eqn = rule([v in live for v in eqn.outvars], eqn)
            eqns.append(eqn)
            live.update(eqn.invars)
    eqns.reverse()
    used_inputs = [v in live for v in jaxpr.invars]
    kept = [(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts) if v in live] if jaxpr.consts else []
    invars = jaxpr.invars if keep_invars else [v for v, used in zip(jaxpr.invars, used_inputs) if used]
    changed = jaxpr.replace(
        constvars=[v for v, _ in kept] if jaxpr.consts else jaxpr.constvars, consts=[c for _, c in kept],
        invars=invars, eqns=eqns, outvars=outvars,
        arg_names=jaxpr.arg_names if keep_invars or not jaxpr.arg_names else [
            name for name, used in zip(jaxpr.arg_names, used_inputs) if used])
    return changed, used_inputs


def sub_jaxprs(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters, in order."""
    for value in params.values():
        if type(value) is Jaxpr:
            yield value
        elif type(value) is tuple:
            yield from (v for v in value if type(v) is Jaxpr)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that every variable is bound before use and that every equation has the type its rule gives.

    Raises:
        JaxprTypeError: if not
    """
    bound = {*jaxpr.constvars, *jaxpr.invars}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if type(v) is Var and v not in bound:
                raise JaxprTypeError(f"{eqn.primitive.name}: an operand is not bound\n{jaxpr}")
        for sub in sub_jaxprs(eqn.params):
            check_jaxpr(sub)
        if any(v.aval.explicit for v in eqn.invars):
            expected = [v.aval for v in eqn.outvars]      # its sharding was inferred as it was traced
        else:
            expected = eqn.primitive.typecheck([v.aval for v in eqn.invars], eqn.params)
        for v, aval in zip(eqn.outvars, expected, strict=True):
            if v.aval.shape != aval.shape or v.aval.dtype != aval.dtype:
                raise JaxprTypeError(f"{eqn.primitive.name}: result is typed {v.aval.short()}, its rule "
                                     f"gives {aval.short()}\n{jaxpr}")
        bound.update(eqn.outvars)
    for v in jaxpr.outvars:
        if type(v) is Var and v not in bound:
            raise JaxprTypeError(f"an output is not bound\n{jaxpr}")


def _names() -> Iterator[str]:
    for n in itertools.count(1):
        for combination in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=n):
            yield "".join(combination)


class Printer:
    """`{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }`, with names in the order of appearance."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.fresh = _names()

    def name(self, v: Atom) -> str:
        if type(v) is Literal:
            value = np.asarray(v.val)
            shown = str(value) if value.ndim == 0 else "[...]"
            return f"{shown}:{v.aval.short()}"
        if v not in self.names:
            self.names[v] = next(self.fresh)
        return self.names[v]

    def typed(self, v: Atom) -> str:
        return f"{self.name(v)}:{v.aval.short()}"

    def jaxpr(self, jaxpr: Jaxpr, indent: int) -> str:
        consts = " ".join(self.typed(v) for v in jaxpr.constvars)
        inputs = " ".join(self.typed(v) for v in jaxpr.invars)
        pad = " " * (indent + 4)
        lines = [pad + self.eqn(e, indent + 4) for e in jaxpr.eqns]
        outs = ", ".join(self.name(v) for v in jaxpr.outvars) + ("," if len(jaxpr.outvars) == 1 else "")
        head = f"{{ lambda {consts}; {inputs}. let"
        if not lines:
            return f"{head}  in ({outs}) }}"
        body = "\n".join(lines)
        return f"{head}\n{body}\n{' ' * (indent + 2)}in ({outs}) }}"

    def head(self, eqn: Eqn) -> str:
        """An equation in one line, without the programs that it holds."""
        programs = [k for k in eqn.params if any(True for _ in sub_jaxprs({k: eqn.params[k]}))]
        kept = {k: v for k, v in eqn.params.items() if k not in programs} if programs else eqn.params
        return self.eqn(eqn.replace(params=kept), 0)

    def eqn(self, eqn: Eqn, indent: int) -> str:
        outs = " ".join(self.typed(v) for v in eqn.outvars)
        operands = " ".join(self.name(v) for v in eqn.invars)
        params = [(k, v) for k, v in sorted(eqn.params.items()) if v is not None and v != ()]
        text = ""
        if params:
            nested = any(isinstance(v, Jaxpr) or isinstance(v, tuple) and v and isinstance(v[0], Jaxpr)
                         for _, v in params)
            pad = f"\n{' ' * (indent + 2)}" if nested else ""
            text = "[" + (pad or "") + (pad or " ").join(
                f"{k}={self.param(v, indent + 2)}" for k,
                v in params) + (f"\n{' ' * indent}" if nested else "") + "]"
        return f"{outs} = {eqn.primitive.name}{text} {operands}".rstrip()

    def param(self, value: Any, indent: int) -> str:
        if isinstance(value, Jaxpr):
            return f"{value.name} " + self.jaxpr(value, indent)
        if isinstance(value, tuple) and value and isinstance(value[0], Jaxpr):
            inner = "\n".join(" " * (indent + 2) + self.jaxpr(j, indent + 2) for j in value)
            return f"(\n{inner}\n{' ' * indent})"
        if isinstance(value, np.dtype):
            return short_name(value)
        name = getattr(value, "__name__", None) if callable(value) else None
        return name if isinstance(name, str) else str(value)
