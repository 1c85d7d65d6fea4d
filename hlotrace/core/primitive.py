"""Primitive: an operation as a checked record of its rules and of facts about it.

What a primitive does with named axes, meshes and side effects is a fact of an application of it.  One that
says nothing about them has those of the programs that it holds, so a new primitive that calls a program need
not repeat them.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .avals import ShapedArray
from .config import state
from .effects import Effect
from .errors import did_you_mean
from .jaxpr import Jaxpr, Params, sub_jaxprs
from .platforms import by_platform

# What a primitive may say.  Rules are functions or None: using one that is missing raises a clear error.
RULES = (
    # (*avals, **params) -> aval, or list of avals if `multiple_results`
    "abstract_eval",
    # (ctx, eqn, *names) -> name or list of names, those of MLIR values; or {platform: such a rule}
    "lower",
    # (primals, tangents, **params) -> (out, tangent); a tangent None is a symbolic zero
    "jvp",
    # (trace, primals, tangents, **params), only for primitives that hold programs
    "linearize",
    # (cotangent, *args, **params) -> cotangents; unknown args are UndefinedPrimals, a cotangent None is zero
    "transpose",
    # (*avals, **params) -> AxisMap, see core.axes; batching may follow from it
    "axes",
    # (axis, args, dims, **params) -> (out, out_dim); a dim None is unbatched
    "batching",
    # (*avals, **params) -> AxisMap for operands that Explicit mesh axes split, where `axes` does not say; or,
    # of one result, for each dimension the mesh axes that split it
    "sharding",
    # (states, values, args, **params) -> (values, out), with the effects done that the states handle
    "discharge",
    # (used_outputs, eqn) -> eqn
    "dce",
    # (policy, needed, eqn) -> (eqn that also gives what is saved, eqn from that to what is needed, saved)
    "partial_eval",
    # (*args, **params) -> results: how it runs eagerly, if not by compiling it
    "impl_rule",
    # (args, params) -> (args, params): how it is written into a program, if that differs
    "to_staged",
    # (params, varied, which) -> params, for operands of which those marked vary over more manual axes
    "vary",
)
# Former names of two rules, under which programs may still give them.
FORMER = {"typ": "abstract_eval", "batch": "batching"}
# Functions of the parameters of an application that give a tuple; None: what the programs that it holds have.
FACTS = (
    "effects",      # what it does besides computing
    "axis_names",   # named axes that it uses: its batching rule is called for these if nothing is mapped
    "meshes",       # meshes that it names
)
# Plain facts, and what they are where nothing is said.
TRAITS = {
    "elementwise": False,   # each element of the result comes from those at the same place in the operands
    "structural": False,    # moves values, whatever their dtype: it is lowered on PRNG keys as on their words
    "says_vma": False,      # its typing rule says over which manual axes results vary
    "says_sharding": False, # its typing rule says how Explicit mesh axes split results
    # it is linear, and takes and gives unreduced values: "first" in its first operand, "all" in all of them,
    # "two" in the first two, "rest" in all but the first, "each" in each alone; "typed" where its own typing
    # rule says of what
    "linear": "",
    # the words of the error where Explicit mesh axes split operands that it has beside each other otherwise,
    # also one that is whole along a dimension, and where they split an axis that it computes with
    "alike": "",
    "whole": "",
    "kinds": "",            # of dtypes that it takes; see primitives.arrays.elementwise.kind_of
    "mnemonic": None,       # the name of its StableHLO or CHLO operation
    # the class of parameters that are found under JAX's names too, made of {JAX's name: what it is, as a
    # function of those there are}
    "also": None,
    "shown": None,          # its parameters in the text of programs, as a function of the equation
    "keeps_names": False,   # in the text of its program arguments and results are named as outside
    "makes_nan": True,      # it may make a NaN of operands that have none; in doubt it is checked
    "spans_devices": False, # it runs on all devices of the meshes that it names
}


F = TypeVar("F", bound=Callable[..., Any])

# all primitives, the oldest first
everywhere: weakref.WeakKeyDictionary[Primitive, None] = weakref.WeakKeyDictionary()


class Primitive:
    """An operation: its name, whether it gives a list of results, and its RULES, FACTS and TRAITS by keyword.

    The lowering rule of platform None is for every other one.

    Raises:
        TypeError: for any other keyword, and for a platform that is not known
    """
    __slots__ = ("name", "multiple_results", *RULES, *FACTS, *TRAITS, "__weakref__")
    # as JAX's `jit`: what programs they hold is a parameter, not an operand
    call_primitive = map_primitive = False
    # what a user's class says by attributes and methods: of these names
    _by_class: frozenset[str] = frozenset()
    if TYPE_CHECKING:
        abstract_eval: Any
        lower: Any
        jvp: Any
        linearize: Any
        transpose: Any
        axes: Any
        batching: Any
        sharding: Any
        discharge: Any
        dce: Any
        partial_eval: Any
        impl_rule: Any
        to_staged: Any
        vary: Any
        effects: Any
        axis_names: Any
        meshes: Any
        elementwise: bool
        structural: bool
        says_vma: bool
        says_sharding: bool
        linear: str
        alike: str
        whole: str
        kinds: str
        mnemonic: str | None
        also: type[Params] | None
        makes_nan: bool
        spans_devices: bool

    def __init__(self, name: str, *, multiple_results: bool = False, **given: Any) -> None:
        self.name = name
        self.multiple_results = multiple_results
        everywhere[self] = None
        for slot in (*RULES, *FACTS):
            setattr(self, slot, given.pop(slot, None))
        for former, slot in FORMER.items():
            if former in given:
                setattr(self, slot, given.pop(former))
        if isinstance(self.lower, Mapping):
            self.lower = by_platform(f"the lowering of primitive {name!r}", self.lower)
        if "also" in given:
            given["also"] = Params.of(given["also"])
        for trait, usual in TRAITS.items():
            setattr(self, trait, given.pop(trait, usual))
        for unknown in given:
            raise TypeError(f"Primitive {name!r} has no rule or fact called {unknown!r}"
                            f"{did_you_mean(unknown, (*RULES, *FACTS, *TRAITS))}")
        if self.abstract_eval is None:
            self.abstract_eval = functools.partial(_untyped, self)
        elif not multiple_results:
            # avals are interned and parameters hashable: a type is inferred once
            self.abstract_eval = functools.lru_cache(maxsize=4096)(self.abstract_eval)

        if self._by_class:
            self._take_from_class()

    def answer(self, *absent: str, **also: Callable[[Mapping[str, Any]], Any]) -> None:
        """Let parameters of its applications be found under JAX's names too; `absent` are None here."""
        self.also = Params.of({**(self.also.also if self.also else {}), **also,
                               **dict.fromkeys(absent, lambda params: None)})

    def __init_subclass__(cls) -> None:
        """A user's class may have `multiple_results`, and `abstract_eval` and `impl` as methods.

        The first of these gives (avals, effects), as JAX's.
        """
        super().__init_subclass__()
        cls._by_class = frozenset(name for name in ("multiple_results", "abstract_eval", "impl") if next(
            each for each in cls.__mro__ if name in vars(each)) is not Primitive)

    def _take_from_class(self) -> None:
        cls: Any = type(self)
        if "multiple_results" in self._by_class:
            self.multiple_results = cls.multiple_results
        if "abstract_eval" in self._by_class:
            self.def_effectful_abstract_eval(functools.partial(cls.abstract_eval, self))
        if "impl" in self._by_class:
            self.impl_rule = functools.partial(cls.impl, self)

    def bind(self, *args: Any, **params: Any) -> Any:
        return state.trace.process(self, args, params)

    def def_impl(self, function: F) -> F:
        """Decorator: `function(*args, **params)` is how it runs eagerly, on concrete operands.

        Its results are given on as they are.  Without it, the lowering is compiled and run.
        """
        self.impl_rule = function
        return function

    @property
    def impl(self) -> Callable[..., Any]:
        """What `def_impl` was given; `bind` without that: what can be lowered runs eagerly."""
        return self.impl_rule or self.bind

    def def_abstract_eval(self, function: F) -> F:
        """Decorator: `function(*avals, **params)` gives the ShapedArray of the result, or several."""
        def abstract_eval(*avals: ShapedArray, **params: Any) -> Any:
            result = function(*avals, **params)
            several = isinstance(result, (list, tuple))
            if several is not self.multiple_results:
                raise ValueError(f"{self}.abstract_eval() method should return a tuple or a list iff "
                                 f"{self}.multiple_results, which is {self.multiple_results}; it gave "
                                 f"{result!r:.80}")
            for aval in result if several else (result,):
                if not isinstance(aval, ShapedArray):
                    wanted = "a sequence of ShapedArrays" if self.multiple_results else "a ShapedArray"
                    raise TypeError(f"{self}: its abstract evaluation rule must give {wanted}, not "
                                    f"{aval!r:.80}")
            # what `typeof` gives may say a sharding, which no type in a program does
            return [aval.update() for aval in result] if several else result.update()
        self.abstract_eval = abstract_eval
        return function

    def def_effectful_abstract_eval(self, function: F) -> F:
        """As `def_abstract_eval`, of a `function` that gives (avals, effects), by parameters alone.
        TypeError when it is used, for an effect that is no `Effect`."""
        known = {}      # the parameters of an application -> its effects

        def pure(*avals: ShapedArray, **params: Any) -> Any:
            result, effects = function(*avals, **params)
            for effect in effects:
                if not isinstance(effect, Effect):
                    raise TypeError(f"{self}: its abstract evaluation rule has the effect {effect!r:.60}, "
                                    f"which is a {type(effect).__name__}: derive its class from "
                                    "extend.core.Effect")
            if effects:
                known[tuple(params.items())] = tuple(effects)
                self.effects = lambda params: known.get(tuple(params.items()), ())
            return result
        self.def_abstract_eval(pure)
        return function

    def bind_with_trace(self, trace: Any, args: Sequence[Any], avals: Sequence[ShapedArray],
                        params: dict[str, Any]) -> Any:
        """`bind(*args, **params)` with `trace` as the current one; `avals` are the types of `args`."""
        saved, state.trace = state.trace, trace
        try:
            return trace.process(self, args, params)
        finally:
            state.trace = saved

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, programs among them, with which an application is bound again, as a dict."""
        return dict(params)

    def typecheck(self, avals: Iterable[ShapedArray], params: Mapping[str, Any]) -> list[ShapedArray]:
        """The result avals, always as a list; of operands that no Explicit mesh axis splits."""
        result = self.abstract_eval(*avals, **params)
        return list(result) if self.multiple_results else [result]

    def effects_of(self, params: Mapping[str, Any]) -> tuple[Effect, ...]:
        """The effects of an application with these parameters."""
        if self.effects is not None:
            return self.effects(params)
        if _holds_programs(params):
            return tuple(dict.fromkeys(e for jaxpr in sub_jaxprs(params) for e in jaxpr.effects))
        return ()

    def axis_names_of(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The named axes that an application uses, in itself or in the programs it holds."""
        return _fact(self, "axis_names", params)

    def meshes_of(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The meshes that an application names, in itself or in the programs it holds."""
        return _fact(self, "meshes", params)

    def __repr__(self) -> str:
        return self.name


# What is said where a rule is missing, and how JAX's users give one to a primitive `p`.
MISSING = {
    "abstract_eval": ("Abstract evaluation for '{p}' not implemented: no rule says the types of its results",
            "{p}.def_abstract_eval(rule)"),
    "lower": ("MLIR translation rule for primitive '{p}' not found", "mlir.register_lowering({p}, rule)"),
    "jvp": ("Differentiation rule for '{p}' not implemented", "ad.primitive_jvps[{p}] = rule"),
    "transpose": ("Transpose rule (for reverse-mode differentiation) for '{p}' not implemented",
                  "ad.primitive_transposes[{p}] = rule"),
    "batching": ("Batching rule for '{p}' not implemented, so it cannot be used under vmap",
                 "batching.primitive_batchers[{p}] = rule"),
}


def missing(primitive: Primitive, rule: str, where: str = "") -> NotImplementedError:
    """The NotImplementedError for a rule that is missing; it says how to give one where the user can."""
    problem, how = MISSING[rule]
    mend = "" if isinstance(primitive, Builtin) else (
        f"; set {how.format(p=f'{primitive}_p')}, or make it with Primitive(..., {rule}=rule)")
    return NotImplementedError(f"{problem.format(p=primitive)}{where}{mend}")


def _untyped(primitive: Primitive, *_avals: ShapedArray, **_params: Any) -> NoReturn:
    raise missing(primitive, "abstract_eval")


def _holds_programs(params: Mapping[str, Any]) -> bool:
    """Few hold some, and this is asked for every equation: no generator is made for the others."""
    for value in params.values():
        if type(value) is Jaxpr or type(value) is tuple and value and type(value[0]) is Jaxpr:
            return True
    return False


def _fact(primitive: Primitive, fact: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    rule = getattr(primitive, fact)
    if rule is not None:
        return rule(params)
    if _holds_programs(params):
        return tuple(dict.fromkeys(found for jaxpr in sub_jaxprs(params) for found in fact_of(jaxpr, fact)))
    return ()


def fact_of(jaxpr: Jaxpr, fact: str) -> tuple[Any, ...]:
    """A fact, "meshes" say, of a whole program, a tuple in order of appearance; cached on the program."""
    found = jaxpr.facts.get(fact)
    if found is None:
        found = jaxpr.facts[fact] = tuple(dict.fromkeys([
            one for eqn in jaxpr.eqns if eqn.params or getattr(eqn.primitive, fact) is not None
            for one in _fact(eqn.primitive, fact, eqn.params)]))
    return found


class PassRules:
    """The rules of one pass over programs, by primitive: `of(primitive)` is the rule of any of them.

    Args:
        default: the rule of primitives that are not listed, users' own among them.
        covers: a function of a primitive: is the default right for it?  Each primitive of hlotrace for which
            it is not has to be listed, which tests/primitives/test_op_table_complete.py checks.
        rules: {rule: the primitives that have it}.
    """
    __slots__ = ("name", "default", "covers", "listed", "given")
    everywhere: list[PassRules] = []      # of all passes that are imported

    def __init__(self, name: str, default: Any, covers: Callable[[Primitive], bool],
                 rules: Mapping[Any, Iterable[Primitive]]) -> None:
        self.name, self.default, self.covers = name, default, covers
        self.listed: dict[Primitive, Any] = {}      # primitive -> rule, as said here
        self.given: dict[Primitive, Any] = {}       # by users, which goes first
        for rule, primitives in rules.items():
            for primitive in primitives:
                if primitive in self.listed:
                    raise ValueError(f"{name}: two rules for {primitive}")
                self.listed[primitive] = rule
        self.everywhere.append(self)

    def of(self, primitive: Primitive) -> Any:
        """The rule of a primitive: a user's, the one listed, or the default."""
        return self.given.get(primitive) or self.listed.get(primitive, self.default)


PRIMITIVES: dict[str, Primitive] = {}     # those of hlotrace, by the names under which users find them
# JAX's names, for `jax.lax.*_p` and the like, which users write: where ours is another, and for an operation
# that is made of several here, the one that does its work.
ALIASES = {"add_jaxvals": "add_any", "linear_solve": "custom_linear_solve", "random_seed": "random_wrap",
           "remat": "checkpoint", "scatter_sub": "scatter_add",
           "select_and_scatter": "select_and_scatter_add", "split": "slice", "stack": "concatenate",
           "stage": "copy", "tile": "broadcast_in_dim", "unstack": "slice"}

# how a program names what has another name among the functions
SHOWN = {"checkpoint": "remat2", "scatter_add": "scatter-add", "scatter_mul": "scatter-mul",
         "scatter_min": "scatter-min", "scatter_max": "scatter-max"}


def primitive_named(name: str) -> Primitive | None:
    """The primitive that JAX calls `name`, such as "sin_p"; None where there is none."""
    return PRIMITIVES.get(ALIASES.get(name[:-2], name[:-2])) if name.endswith("_p") else None


class Builtin(Primitive):
    """A primitive of hlotrace's own.  ValueError if there is one of that name."""
    __slots__ = ()

    def __init__(self, name: str, **given: Any) -> None:
        if name in PRIMITIVES:
            raise ValueError(f"there is a primitive {name!r} already: {PRIMITIVES[name].lower}")
        super().__init__(SHOWN.get(name, name), **given)
        PRIMITIVES[name] = self
