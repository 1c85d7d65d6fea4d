"""The typed program: Var, Literal, Eqn, Jaxpr; its evaluation; dead code; its typing rules; its text."""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from ..runtime.binding import pretty_printer as pp
from . import dtypes
from .avals import ShapedArray, aval_of
from .config import joined, state
from .debug_info import DebugInfo, Origin
from .effects import Effect, Effects
from .errors import JaxprTypeError
from .source_info import NameStack, Source, SourceInfo, describe

_WIDTH = 80     # of lines of text


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
    """The parameters of an application, which are found also under the names that JAX has for them.

    A class for each primitive that has such names: to make one takes no longer than to copy a dict.
    """
    __slots__ = ()
    # JAX's name of a parameter -> what it is, as a function of those there are
    also: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {}

    @classmethod
    def of(cls, also: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> type[Params]:
        """The class of those with these names."""
        return type("Params", (cls,), {"__slots__": (), "also": also})

    def __missing__(self, name: str) -> Any:
        return self.also[name](self)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self.also

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def keys(self) -> KeysView[str]:    # type: ignore[override]
        """Those there are, in order; `in` it are JAX's as well."""
        return KeysView(self)


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
        self.params = params if primitive.also is None else primitive.also(params)
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
            fields.update(source=source_info.source, name_stack=source_info.name_stack.path)
        return Eqn(**{**fields, **changes})

    def bind(self, operands: Iterable[Any], **params: Any) -> list[Any]:
        """The results of the operation on other operands, with its parameters or with `params`, as a list."""
        results = self.primitive.bind(*operands, **(params or self.params))
        return results if self.primitive.multiple_results else [results]

    def __repr__(self) -> str:
        return _format(Printer().eqn(self))


class Jaxpr:
    """A typed program: constants and inputs, equations in order, outputs (Vars or Literals).

    `consts` are the values of `constvars`; a program held as a parameter of an equation has none
    (`constvars == []`): what it closes over is an operand of that equation.
    """
    is_high = False     # values of hijax types are in programs as what they are made of
    __slots__ = ("constvars", "consts", "invars", "eqns", "outvars", "effects", "name", "arg_names",
                 "derived", "facts", "origin", "__weakref__")
    view: Callable[..., Any]        # the program as a page: `inspection/pages/view.py`

    def __init__(self, constvars: Iterable[Var], consts: Iterable[Any], invars: Iterable[Var],
                 eqns: Sequence[Eqn], outvars: Iterable[Atom], name: str = "fn",
                 arg_names: Sequence[str] | None = None, origin: Origin | None = None) -> None:
        self.constvars = list(constvars)
        self.consts = list(consts)
        self.invars = list(invars)
        self.eqns = eqns
        self.outvars = list(outvars)
        self.name = name
        self.arg_names = arg_names
        self.origin = origin        # the function that it was traced from
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
        if self.origin is None:
            return DebugInfo("jit", self.name, names)
        info = self.origin.debug_info(len(self.invars), len(self.outvars))
        return info if self.origin.code is not None or names is None else info._replace(arg_names=names)

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
                  ("constvars", "consts", "invars", "eqns", "outvars", "name", "arg_names", "origin")}
        if jaxpr is not None and len(self.consts) == len(jaxpr.constvars):
            fields["consts"] = self.consts
        if debug_info is not None:
            fields.update(name=debug_info.func_name, arg_names=debug_info.arg_names)
            if base.origin is None or debug_info != base.debug_info:
                fields.update(origin=None)
        found = Jaxpr(**{**fields, **changes})
        if effects is not None and found.effects != Effects(effects):
            raise ValueError(f"replace: effects={set(effects)} are not those of the equations, "
                             f"{found.effects}")
        return found

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    def pretty_print(self, *, source_info: bool = False, print_shapes: bool = True,
                     custom_pp_eqn_rules: bool = True, name_stack: bool = False, print_effects: bool = False,
                     width: int = _WIDTH, use_color: bool = False) -> str:
        """Its text, in lines of this width; see `Printer` for what is in it."""
        printer = Printer(source_info, print_shapes, custom_pp_eqn_rules, name_stack, print_effects)
        return _format(printer.program(self), width, use_color)


ClosedJaxpr = Jaxpr


def close(jaxpr: Jaxpr) -> tuple[Jaxpr, Sequence[Any]]:
    """(program without constvars, the constants): the constants become its leading inputs."""
    if not jaxpr.constvars:
        return jaxpr, ()
    names = jaxpr.arg_names and [*(f"const[{i}]" for i in range(len(jaxpr.constvars))), *jaxpr.arg_names]
    return jaxpr.replace(constvars=(), consts=(), invars=(*jaxpr.constvars, *jaxpr.invars),
                         arg_names=names), jaxpr.consts


def eval_jaxpr(jaxpr: Jaxpr, consts: Iterable[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """Run a program's equations in the current trace.

    Args:
        propagate_source_info: the equations keep their lines; otherwise they take the caller's.
    Returns:
        The list of outputs.
    """
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args, strict=True))
    saved, stack = state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            if propagate_source_info:
                state.source = eqn.source
            state.name_stack = joined(stack, eqn.name_stack)
            operands = [literal_value(v) if type(v) is Literal else env[v] for v in eqn.invars]
            results = eqn.primitive.bind(*operands, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, results))
            else:
                env[eqn.outvars[0]] = results
    finally:
        state.source, state.name_stack = saved, stack
    return [literal_value(v) if type(v) is Literal else env[v] for v in jaxpr.outvars]


def rewrite(jaxpr: Jaxpr, args: Iterable[Any],
            apply: Callable[[Eqn, list[Any]], Iterable[Any]]) -> list[Any]:
    """Walk a program without constvars in the current trace, for a pass that does its equations otherwise.

    Args:
        apply: (equation, values of its operands) -> those of its results; the source is the equation's then
    Returns:
        The list of outputs.
    """
    env = dict(zip(jaxpr.invars, args, strict=True))
    saved, stack = state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            state.source, state.name_stack = eqn.source, eqn.name_stack
            operands = [literal_value(v) if type(v) is Literal else env[v] for v in eqn.invars]
            env.update(zip(eqn.outvars, apply(eqn, operands)))
    finally:
        state.source, state.name_stack = saved, stack
    return [literal_value(v) if type(v) is Literal else env[v] for v in jaxpr.outvars]


def literal_value(literal: Literal) -> Any:
    """The value of a literal, with the literal's dtype where it is not a plain weak Python scalar."""
    if literal.aval == aval_of(literal.val):
        return literal.val
    return exactly(np.asarray(literal.val, literal.aval.dtype))


# primitives/arrays/elementwise gives it: `x` with the given dtype
convert: Any = None


def exactly(x: Any) -> Any:
    """A NumPy constant; an array where its dtype, of 64 bits, would be read as one of 32 bits.

    An array of the time when jax_enable_x64 was set has constants of its dtype beside it.
    """
    return x if state.x64 or dtypes.canonicalize(x.dtype) == x.dtype else convert(x, x.dtype)


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
    JaxprTypeError if not."""
    bound: set[Var] = set()
    _bind(bound, [*jaxpr.constvars, *jaxpr.invars], jaxpr)
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
        _bind(bound, eqn.outvars, jaxpr)
    for v in jaxpr.outvars:
        if type(v) is Var and v not in bound:
            raise JaxprTypeError(f"an output is not bound\n{jaxpr}")


def _bind(bound: set[Var], variables: Sequence[Var], jaxpr: Jaxpr) -> None:
    for v in variables:
        if v in bound:
            raise JaxprTypeError(f"Variable of type {v.aval.short()} already bound\n{jaxpr}")
        bound.add(v)


def _names() -> Iterator[str]:
    """a to z, ba to zz, baa, ...: the numbers of base 26."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    yield from letters
    for n in itertools.count(1):
        for first, *rest in itertools.product(letters[1:], *[letters] * n):
            yield "".join((first, *rest))


# --- text ---------------------------------------------------------------------------------------------------

def _joined(docs: Iterable[Any], between: Any) -> Any:
    return pp.concat([part for doc in docs for part in (between, doc)][1:])


def _filled(docs: Iterable[Any]) -> Any:
    """With spaces between them, a new line where the last is full."""
    return _joined(docs, pp.group(pp.brk()))


def _keyword(text: str) -> Any:
    return pp.color(pp.text(text), foreground=pp.Color.BLUE, intensity=pp.Intensity.BRIGHT)


class Printer:
    """`{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }`, with names in the order of appearance.

    Programs that are held twice are written once, in front of the others.

    Args:
        source_info: is the user's line beside each equation?
        print_shapes: are there types?
        custom_pp_eqn_rules: are variables of a program that is called those of the call?
        name_stack: are scopes beside each equation?
        print_effects: are a program's effects behind it?
    """

    def __init__(self, source_info: bool = False, print_shapes: bool = True, custom_pp_eqn_rules: bool = True,
                 name_stack: bool = False, print_effects: bool = False) -> None:
        self.names: dict[Any, str] = {}
        self.fresh = _names()
        self.shared: dict[int, str] = {}        # id of a program that is held twice -> its name
        self.source_info, self.scopes, self.effects = source_info, name_stack, print_effects
        self.types, self.same_names = print_shapes, custom_pp_eqn_rules

    # --- as lines of their own

    def head(self, eqn: Eqn) -> str:
        """An equation in one line, without the programs that it holds."""
        programs = [k for k in eqn.params if any(True for _ in sub_jaxprs({k: eqn.params[k]}))]
        kept = {k: v for k, v in eqn.params.items() if k not in programs} if programs else eqn.params
        return _format(self.eqn(eqn.replace(params=kept)), 1 << 30)

    def typed(self, v: Atom) -> str:
        """A variable with its type."""
        return f"{self.name(v)}:{v.aval.short()}" if self.types else self.name(v)

    def name(self, v: Atom) -> str:
        """A variable's name, a constant's value with its type."""
        if type(v) is Literal:
            value = np.asarray(v.val)
            if value.ndim == 0:
                return f"{value.item()}:{v.aval.short()}"
            return self.names.get(id(v.val), f"[...]:{v.aval.short()}")
        if v not in self.names:
            self.names[v] = next(self.fresh)
        return self.names[v]

    # --- as documents of jaxlib's pretty printer

    def program(self, jaxpr: Jaxpr) -> Any:
        """A program, behind those that it holds twice."""
        first = [pp.concat([_keyword("let "), pp.text(f"{self.name_of_shared(held)} = "), self.jaxpr(held),
                            _keyword(" in"), pp.text("\n")]) for held in _held_twice(jaxpr)]
        return pp.concat([*first, self.jaxpr(jaxpr)])

    def name_of_shared(self, jaxpr: Jaxpr) -> str:
        plain = jaxpr.name.strip("<>") or "jaxpr"
        taken = sum(name.rstrip("0123456789") == plain for name in self.shared.values())
        return self.shared.setdefault(id(jaxpr), f"{plain}{taken or ''}")

    def jaxpr(self, jaxpr: Jaxpr) -> Any:
        atoms = [*(v for e in jaxpr.eqns for v in e.invars), *jaxpr.outvars]
        tables = {id(v.val): v for v in atoms if isinstance(v, Literal) and np.ndim(v.val)}
        self.names.update((key, next(self.fresh)) for key in tables)
        consts = _filled([*map(self.binder, tables.values()), *map(self.binder, jaxpr.constvars)])
        inputs = _filled([self.binder(v) for v in jaxpr.invars])
        used = {v for v in atoms if isinstance(v, Var)}
        eqns = [self.eqn(e, used) for e in jaxpr.eqns]
        alone = len(jaxpr.outvars) == 1
        outs = [pp.text(self.name(v) + "," * (alone or i < len(jaxpr.outvars) - 1))
                for i, v in enumerate(jaxpr.outvars)]
        effects = f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }} }}" if self.effects else " }"
        return pp.group(pp.nest(2, pp.concat([
            pp.text("{ "), _keyword("lambda "), pp.nest(2, consts), pp.text("; "), pp.nest(2, inputs),
            pp.text(". "), _keyword("let"), pp.nest(2, pp.concat([pp.brk(), _joined(eqns, pp.brk("; "))])),
            pp.brk(), _keyword("in "), pp.text("("), _filled(outs), pp.text(")" + effects)])))

    def binder(self, v: Atom, name: str | None = None) -> Any:
        shown = pp.text(self.names[id(v.val)] if type(v) is Literal else name or self.name(v))
        if not self.types:
            return shown
        return pp.concat([shown, pp.color(pp.text(f":{v.aval.short()}"), foreground=pp.Color.MAGENTA)])

    def eqn(self, eqn: Eqn, used: Collection[Var] | None = None) -> Any:
        outs = [self.binder(v, None if used is None or v in used else "_") for v in eqn.outvars]
        notes = []
        if self.source_info and eqn.source is not None:
            notes.append(describe(eqn.source, with_column=True))
        if self.scopes:
            notes.append(f"[{NameStack(eqn.name_stack)}]")
        head = [_filled(outs), pp.text(" = ")] if outs else []
        params = dict(eqn.params) if eqn.primitive.shown is None else eqn.primitive.shown(eqn)
        name = [("name", params.pop("name"))] if eqn.primitive.keeps_names and "name" in params else []
        program = params.get("jaxpr")
        if name and isinstance(program, Jaxpr) and self.same_names and id(program) not in self.shared:
            pairs = [*zip(program.invars, eqn.invars), *zip(program.outvars, eqn.outvars)]
            for inner, outer in pairs:
                if type(inner) is Var and outer in self.names:
                    self.names.setdefault(inner, self.names[outer])
        params = [*name, *sorted(params.items())]
        called = pp.text(eqn.primitive.name, annotation=" ".join(notes) or None)
        operands = [pp.text(self.name(v)) for v in eqn.invars]
        tail = [pp.text(" "), _filled(operands)] if operands else []
        return pp.nest(2, pp.concat([*head, called, self.params(params), *tail]))

    def params(self, params: Sequence[tuple[str, Any]]) -> Any:
        if not params:
            return pp.nil()
        written = [pp.concat([pp.text(f"{k}="), self.param(v)]) for k, v in params]
        return pp.group(pp.concat([pp.text("["), pp.brk(""), _joined(written, pp.brk()),
                                   pp.nest(-2, pp.brk("")), pp.text("]")]))

    def param(self, value: Any) -> Any:
        if isinstance(value, Jaxpr):
            return pp.text(self.shared[id(value)]) if id(value) in self.shared else self.jaxpr(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Jaxpr):
            inner = _joined([self.param(j) for j in value], pp.brk())
            return pp.group(pp.concat([pp.text("("), pp.nest(2, pp.concat([pp.brk(""), inner])), pp.brk(""),
                                       pp.text(")")]))
        if isinstance(value, np.dtype):
            return pp.text(value.name)
        name = getattr(value, "__name__", None) if callable(value) else None
        return pp.text(name if isinstance(name, str) else str(value))


def _format(doc: Any, width: int = _WIDTH, use_color: bool = False) -> str:
    return str(doc._format(width, use_color=use_color, output_format=pp.OutputFormat.TEXT,
                           separable_lines=False, annotation_prefix=" # ", source_map=None))


def _held_twice(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The programs that are in several places in this one, innermost first."""
    times: dict[int, int] = {}
    found: list[Jaxpr] = []

    def visit(jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            for held in sub_jaxprs(eqn.params):
                times[id(held)] = times.get(id(held), 0) + 1
                if times[id(held)] == 1:
                    visit(held)
                    found.append(held)
    visit(jaxpr)
    return [held for held in found if times[id(held)] > 1 and held.eqns]
