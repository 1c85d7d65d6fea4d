"""The typed program: Var, Literal, Eqn, Jaxpr; its evaluation; dead code; its typing rules; its text."""
from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from .avals import ShapedArray, aval_of
from .config import state
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
    view: Callable[..., Any]        # the program as a page: `inspection/pages/view.py`

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
        return Printer().program(self)

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


_WIDTH, _IN_A_LINE = 80, 5      # columns, and equations that may fit in them


class Printer:
    """`{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }`, with names in the order of appearance.

    A program, or the parameters of an equation, are in one line where they fit.  Values that nothing reads
    are `_`.  A program that several calls hold comes before the whole: `let f = { ... } in`.
    """

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.fresh = _names()
        self.shared: dict[Jaxpr, str] = {}      # programs that are written once

    def name(self, v: Atom) -> str:
        if type(v) is Literal:
            value = np.asarray(v.val)
            shown = str(np.asarray(value, v.aval.dtype).item()) if value.ndim == 0 else "[...]"
            return f"{shown}:{self.type(v)}"
        if v not in self.names:
            self.names[v] = next(self.fresh)
        return self.names[v]

    def type(self, v: Atom) -> str:
        aval = v.aval
        return f"{aval.str_short(True)}{aval.varies()}" if type(aval) is ShapedArray else aval.short()

    def typed(self, v: Atom) -> str:
        return f"{self.name(v)}:{self.type(v)}"

    def program(self, jaxpr: Jaxpr) -> str:
        """The text of a whole program."""
        counts: dict[Jaxpr, int] = {}
        _count_calls(jaxpr, counts)
        texts, taken = [], set[str]()
        for called in [called for called, n in counts.items() if n > 1]:
            name = base = re.sub(r"\W", "", called.name) or "f"
            for n in itertools.count(1):
                if name not in taken:
                    break
                name = f"{base}{n}"
            taken.add(name)
            texts.append(f"let {name} = {self.jaxpr(called, 0, len(name) + 7)} in\n")
            self.shared[called] = name
        return "".join(texts) + self.jaxpr(jaxpr, 0)

    def jaxpr(self, jaxpr: Jaxpr, indent: int, column: int = 0) -> str:
        """A program that begins at `column`: one line if it fits, else indented ones."""
        line = self.line(jaxpr)
        fits = column + len(line) <= _WIDTH and "\n" not in line
        return line if fits else self.lines(jaxpr, indent, column)

    def line(self, jaxpr: Jaxpr) -> str:
        if len(jaxpr.eqns) > _IN_A_LINE:
            return "\n"
        head, read = self.begin(jaxpr), _read(jaxpr)
        body = "; ".join([self.eqn(e, 0, read, flat=True) for e in jaxpr.eqns])
        return f"{head} {body} in {self.outputs(jaxpr)} }}"

    def lines(self, jaxpr: Jaxpr, indent: int, column: int) -> str:
        pad, read = " " * (indent + 4), _read(jaxpr)
        head = _wrapped(self.begin(jaxpr).split(" "), column, pad)
        lines = "\n".join([pad + self.eqn(e, indent + 4, read) for e in jaxpr.eqns] or [pad])
        return f"{head}\n{lines}\n{' ' * (indent + 2)}in {self.outputs(jaxpr)} }}"

    def begin(self, jaxpr: Jaxpr) -> str:
        consts, inputs = ([self.typed(v) for v in some] for some in (jaxpr.constvars, jaxpr.invars))
        return " ".join(["{ lambda", *consts]) + ("; " if consts else " ; ") + " ".join(inputs) + ". let"

    def outputs(self, jaxpr: Jaxpr) -> str:
        return f"({', '.join(map(self.name, jaxpr.outvars))}{',' if len(jaxpr.outvars) == 1 else ''})"

    def head(self, eqn: Eqn) -> str:
        """An equation in one line, without the programs that it holds."""
        programs = [k for k in eqn.params if any(True for _ in sub_jaxprs({k: eqn.params[k]}))]
        kept = {k: v for k, v in eqn.params.items() if k not in programs} if programs else eqn.params
        return self.eqn(eqn.replace(params=kept), 0, flat=True)

    def eqn(self, eqn: Eqn, indent: int, read: Container[Atom] | None = None, flat: bool = False) -> str:
        """An equation, whose lines but the first are indented so; in one line if `flat`."""
        outs = " ".join([self.typed(v) if read is None or v in read else f"_:{self.type(v)}"
                         for v in eqn.outvars])
        begin = f"{outs} = {eqn.primitive.name}" if outs else eqn.primitive.name
        self._name_like(eqn)
        params, column = self.params(eqn), indent + len(begin)
        if params:
            texts = [f"{k}={self.param(v, None, 0)}" for k, v in params]
            begin += f"[{' '.join(texts)}]"
            if not flat and indent + len(begin) > _WIDTH or any("\n" in text for text in texts):
                pad = " " * (indent + 2)
                texts = [f"\n{pad}{k}={self.param(v, indent + 2, indent + 3 + len(k))}" for k, v in params]
                begin = f"{begin[:column - indent]}[{''.join(texts)}\n{' ' * indent}]"
        words = [begin, *map(self.name, eqn.invars)]
        return " ".join(words) if flat else _wrapped(words, indent, " " * (indent + 2))

    def _name_like(self, eqn: Eqn) -> None:
        """In the program of a call its arguments and results have the names that they have outside."""
        called = eqn.params.get("jaxpr")
        if eqn.primitive.keeps_names and called not in self.shared and isinstance(called, Jaxpr):
            taken = set[str]()
            for inner, outer in zip((*called.invars, *called.outvars), (*eqn.invars, *eqn.outvars)):
                if type(inner) is Var and type(outer) is Var and inner not in self.names:
                    name = self.names.get(outer)
                    if name is not None and name not in taken:
                        self.names[inner] = name
                        taken.add(name)

    def params(self, eqn: Eqn) -> list[tuple[str, Any]]:
        """The names and values of the parameters, in order."""
        shown = eqn.primitive.shown
        if shown is None:
            return sorted(eqn.params.items())
        params = shown(eqn)
        first = [("name", params.pop("name"))] if "name" in params else []
        return first + sorted(params.items())

    def param(self, value: Any, indent: int | None, column: int) -> str:
        """The value of a parameter; without `indent` in one line."""
        if isinstance(value, Jaxpr):
            if value in self.shared:
                return self.shared[value]
            return self.line(value) if indent is None else self.jaxpr(value, indent, column)
        if isinstance(value, tuple) and value and isinstance(value[0], Jaxpr):
            pad = " " * ((indent or 0) + 2)
            inner = [f"\n{pad}{self.param(j, (indent or 0) + 2, len(pad))}" for j in value]
            return f"({''.join(inner)}\n{pad[2:]})" if indent is not None else "(\n)"
        if isinstance(value, np.dtype):
            return value.name
        name = getattr(value, "__name__", None) if callable(value) else None
        return name if isinstance(name, str) else str(value)


def _read(jaxpr: Jaxpr) -> set[Atom]:
    return {*jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in eqn.invars)}


def _wrapped(words: Sequence[str], column: int, pad: str) -> str:
    """Words in lines, each of which ends with the word that goes beyond the width."""
    text = words[0]
    column = column + len(text) if "\n" not in text else len(text.rpartition("\n")[2])
    for word in words[1:]:
        broken = column >= _WIDTH
        text += f"\n{pad}{word}" if broken else f" {word}"
        column = len(pad) + len(word) if broken else column + 1 + len(word)
    return text


def _count_calls(jaxpr: Jaxpr, counts: dict[Jaxpr, int]) -> None:
    """How often each program is called; those that a program calls are counted before it."""
    for eqn in jaxpr.eqns:
        for sub in sub_jaxprs(eqn.params):
            if sub not in counts:
                _count_calls(sub, counts)
            counts[sub] = counts.get(sub, 0) + 1
