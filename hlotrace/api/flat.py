"""A call of a user's function as a function of flat lists: where every transformation begins.

`FlatFunction` flattens and checks what goes in and what comes out, and names the leaf that is wrong; `trace`
makes a program of it, a `Traced`.
"""
from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..core import dtypes, programs, source_info
from ..core.avals import MARK_STATIC, ShapedArray, aval_of, fault_of, is_arraylike, not_an_array
from ..core.caches import WeakCache
from ..core.config import config, scoped, state, uncollected
from ..core.debug_info import Origin, code_of, located, traced_for
from ..core.effects import State
from ..core.jaxpr import Eqn, Jaxpr, close, dce
from ..core.jaxpr_trace import is_current, note_buffers, trace_to_jaxpr
from ..core.pytrees import pytree
from ..core.refs import Ref, accesses
from ..core.trace import EVAL, Tracer
from ..runtime.array_impl import as_array
from ..runtime.devices import transfer_guards
from ..sharding.abstract import space_of
from . import adapters
from .signatures import NotHashable, insert_statics, name_of, static_key

_MEND = {       # what to do about an argument that is not an array
    "jit": MARK_STATIC,
    "checkpoint": MARK_STATIC,
    "pmap": "Name it in static_broadcasted_argnums if it is not data.",
    "vmap": "An argument that is not mapped needs in_axes=None.",
    "custom_jvp": "Arguments that are not arrays are named in nondiff_argnums.",
    "custom_vjp": "Arguments that are not arrays are named in nondiff_argnums.",
}
_OF_METHODS = ("It is the object of a method: decorate with functools.partial(jit, static_argnums=0) if its "
               "arrays never change (they are constants of the program), or register its class as a pytree.")
_CLOSE_OVER = ("If it is not data, let the function close over it (functools.partial), or register its class "
               "as a pytree.")


def mend(path: str, what: str = "jit") -> str:
    """What to do about the argument at a path, of the function of a transformation, that is not an array."""
    return _OF_METHODS if path == "self" and what == "jit" else _MEND.get(what, _CLOSE_OVER)


def abstract(x: Any) -> ShapedArray:
    """The aval of an array or of anything with shape and dtype."""
    if is_arraylike(x) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return aval_of(x)
    sharding = getattr(x, "sharding", None)
    aval = ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype), getattr(x, "weak_type", False),
                       getattr(x, "vma", frozenset()), sharding)
    kind = getattr(sharding, "_kind", None)
    return aval if kind is None else aval.update(memory_space=space_of(kind, aval))


class FlatFunction:
    """`fun` as a function of the leaves of its arguments that gives the leaves of its result.

    `leaves` and `in_tree` are the flattened (args, kwargs).  `statics`, ((position or name, value), ...), are
    further arguments, which every call gets as they are.  `what` is the transformation, for errors: "grad".
    With `has_aux`, `fun` gives a pair, and the leaves of its second part follow those of the first. A call
    leaves the structure of the result in `out_tree`, that of what is auxiliary in `aux_tree`.
    """
    __slots__ = ("fun", "leaves", "in_tree", "what", "statics", "has_aux", "out_tree", "aux_tree")

    def __init__(self, fun: Callable[..., Any], leaves: Any, in_tree: pytree.PyTreeDef, what: str,
                 statics: Sequence[tuple[int | str, Any]] = (), has_aux: bool = False) -> None:
        self.fun, self.leaves, self.in_tree, self.what = fun, leaves, in_tree, what
        self.statics, self.has_aux = statics, has_aux

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = self.arguments(leaves)
        aux: Sequence[Any] = ()
        result = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"{self}: expected function with aux output to return a two-element tuple, "
                                f"but got type {type(result)} with value {result!r:.80}: with has_aux return "
                                "the loss and what is to be kept, as in (loss, state)")
            result, aux = result
            aux, self.aux_tree = pytree.tree_flatten(adapters.results(aux, self) if adapters.any_adapted(
                pytree.tree_leaves(aux)) else aux)
            for x in aux:
                if adapters.adapter_of(x) is not None:
                    self._refuse_reference(x, " in what is auxiliary")
        outs, self.out_tree = pytree.tree_flatten(result)
        for x in outs:
            if not is_arraylike(x):
                outs = self._special(outs, result)
                break
        return [*outs, *aux] if aux else outs

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """(args, kwargs) of a call with these leaves."""
        args, kwargs = self.in_tree.unflatten(leaves)
        return insert_statics(args, kwargs, self.statics) if self.statics else (args, kwargs)

    def split(self, outs: list[Any]) -> tuple[list[Any], Any]:
        """(the leaves of the result, what is auxiliary as a pytree or None) of what a call gave."""
        n = self.out_tree.num_leaves
        return (outs[:n], self.aux_tree.unflatten(outs[n:])) if self.has_aux else (outs, None)

    @property
    def name(self) -> str:
        return name_of(self.fun)

    @property
    def origin(self) -> Origin:
        """Of the program that a call was traced to."""
        code, bound = code_of(self.fun)
        return Origin(self.what, self.name, code, bound, self.in_tree, tuple([w for w, _ in self.statics]),
                      getattr(self, "out_tree", None))

    @property
    def arg_tree(self) -> pytree.PyTreeDef:
        """The structure of the positional arguments, those in `statics` left out."""
        return self.in_tree.children()[0]

    def __str__(self) -> str:
        return f"{self.what} of {self.name}"

    def avals(self, of: Callable[[Any], Any] = aval_of) -> list[ShapedArray]:
        """The types of the leaves, from `of`.  TypeError, with the path, for one that is not an array."""
        try:
            return [of(x) for x in self.leaves]
        except (TypeError, OverflowError):
            for i in range(len(self.leaves)):
                self.aval(i, of)
            raise

    def aval(self, i: int, of: Callable[[Any], Any] = aval_of) -> ShapedArray:
        """The type of leaf `i`."""
        x = self.leaves[i]
        try:
            return of(x)
        except OverflowError as error:
            if self.what != "jit":
                raise
            raise OverflowError("An overflow was encountered while parsing an argument to a jitted "
                                f"computation, whose argument path is {self.path(i)}. {error}") from None
        except TypeError as error:
            path = self.path(i)
            words = f"argument {path}: {error}"
            if not is_arraylike(x):
                words = not_an_array(x, path, mend(path, self.what))
                if self.what in ("jit", "eval_shape") and not hasattr(x, "instead_of_an_array"):
                    words = (f"Error interpreting argument to {self.fun} as an abstract array. The "
                             f"problematic value is of type {type(x)} and was passed to the function at path "
                             f"{path}.\n{words}")
            raise fault_of(x)(f"{self}: {words}") from None

    def paths(self) -> list[str]:
        """A name like `params['w1']` for each leaf, from the signature of `fun`."""
        args, kwargs = adapters.outline(self.in_tree)
        # None has no leaves, and keeps the places of the others
        args, kwargs = insert_statics(args, kwargs, [(where, None) for where, _ in self.statics])
        return pytree.arg_paths(self.fun, tuple(args), kwargs)

    def path(self, i: int) -> str:
        return self.paths()[i]

    def out_path(self, i: int) -> str:
        """A name like `the output` or `output['loss']` for leaf `i` of the result."""
        path = pytree.leaf_paths(self.out_tree)[i]
        return f"output{path}" if path else "the output"

    def _special(self, outs: list[Any], result: Any) -> list[Any]:
        """`outs`, with the arrays of values that have adapters.  TypeError for others that are no arrays.

        Where types alone are asked for, a ShapeDtypeStruct is a further input.
        """
        if adapters.any_adapted(outs):
            outs, self.out_tree = pytree.tree_flatten(adapters.results(result, self))
        if self.what == "eval_shape":
            outs = [x if is_arraylike(x) or adapters.adapter_of(x) or not hasattr(x, "shape")
                    else state.trace.input(abstract(x)) for x in outs]
        self._refuse_output(outs)
        return outs

    def _refuse_reference(self, x: Any, where: str, origin: str = "") -> None:
        raise ValueError(f"{self._traced()} returned a mutable array reference of type {x.aval}{where}, but "
                         f"mutable array references cannot be returned: return its value, ref[...].{origin}")

    def _traced(self) -> str:
        return f"function {located(self.name, code_of(self.fun)[0])} traced for {traced_for(self.what)}"

    def _refuse_output(self, outs: Sequence[Any]) -> None:
        for i, x in enumerate(outs):
            if adapters.adapter_of(x) is not None:
                path = pytree.leaf_paths(self.out_tree)[i]
                self._refuse_reference(x, path and f" at output tree path result{path}")
            if not is_arraylike(x):
                path = pytree.leaf_paths(self.out_tree)[i]
                where = f" at output component {path}" if path else ""
                raise TypeError(f"{self._traced()} returned a value of type {type(x)}{where}, which is not a "
                                "valid JAX type: return arrays, numbers, or pytrees of them")

    def trace(self, avals: Sequence[ShapedArray], name: str | None = None,
              arg_names: Sequence[str] | None = None) -> TracedProgram:
        """The program of a call with leaves of these types, as a TracedProgram of this name."""
        with scoped(), uncollected():
            jaxpr = trace_to_jaxpr(self, avals, name or self.name, arg_names, doing=str(self))
        return TracedProgram(jaxpr, self.in_tree, self.out_tree, getattr(self, "changed", None))

    def kept(self, owner: Any, kind: str, avals: Sequence[ShapedArray], name: str | None = None,
             arg_names: Sequence[str] | None = None) -> TracedProgram:
        """As `trace`, cached for the next call with the same `owner`, the function that `fun` is or wraps.

        Where a static argument is not hashable, it is traced each time.
        """
        try:
            table, key = _traces.of(owner, kind), (self.in_tree, tuple(avals), static_key(self.statics, self))
        except NotHashable:
            return self.trace(avals, name, arg_names)
        traced = table.get(key)
        if traced is None or not is_current(traced.jaxpr):
            traced = self.trace(avals, name, arg_names)
            # not what gives types alone, `_special`
            if traced.cacheable and len(traced.jaxpr.invars) == len(avals):
                table.keep(key, traced)
        else:
            note_buffers(traced.jaxpr, state.trace)
        return traced


class StatefulFunction(FlatFunction):
    """A FlatFunction that takes what can change by its arrays; what changed of it are further results.

    A call leaves in `out_tree` the structure of (result, [Changed or None for each ByValue]).  `outside`,
    {number of a ByValue: value}, are those that are themselves inside, of which nothing is given.
    """
    __slots__ = ("outside", "inner", "changed")
    inner: list[tuple[adapters.ByValue, Any]]
    changed: list[list[int]]

    def __init__(self, fun: Callable[..., Any], leaves: Any, in_tree: pytree.PyTreeDef, what: str,
                 statics: Sequence[tuple[int | str, Any]] = (),
                 outside: Mapping[int, Any] | None = None) -> None:
        super().__init__(fun, leaves, in_tree, what, statics)
        self.outside = dict(outside or {})

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        args, kwargs = pytree.tree_map(self._inside, self._begin(leaves), is_leaf=adapters.is_by_value)
        return insert_statics(args, kwargs, self.statics) if self.statics else (args, kwargs)

    def _begin(self, leaves: Sequence[Any]) -> Any:
        self.inner = []
        return self.in_tree.unflatten(leaves)

    def _refuse_reference(self, x: Any, where: str, origin: str = "") -> None:
        numbers = self.in_tree.unflatten(range(self.in_tree.num_leaves))
        nodes = filter(adapters.is_by_value, pytree.tree_leaves(numbers, is_leaf=adapters.is_by_value))
        for node, (_, value) in zip(nodes, self.inner):
            if value is x and node.arrays:
                name = self.path(node.arrays[0]).partition("[<")[0]
                origin = f"\n\nThe returned mutable array was passed in as the argument {name}."
        super()._refuse_reference(x, where, origin)

    def _inside(self, x: Any) -> Any:
        if type(x) is not adapters.ByValue:
            return x
        n = len(self.inner)
        value = self.outside[n] if n in self.outside else x.adapter.inside(x.kind, x.arrays)
        self.inner.append((x, value))
        return value

    def __call__(self, *leaves: Any) -> list[Any]:
        outs = super().__call__(*leaves)
        changes = [None if n in self.outside else self._changes(*pair) for n, pair in enumerate(self.inner)]
        self.changed = [list(c.arrays) if c else [] for c in changes]
        further, change_tree = pytree.tree_flatten(changes)
        self.out_tree = pytree.treedef_tuple((self.out_tree, change_tree))
        self.inner = []     # they are of the trace that ends now
        return [*outs, *further]

    @staticmethod
    def _changes(before: adapters.ByValue, value: Any) -> adapters.Changed | None:
        kind, arrays = before.adapter.after(before.kind, value)
        if kind != before.kind:
            return adapters.Changed(kind, dict(enumerate(arrays)))
        changed = {i: a for i, (a, b) in enumerate(zip(arrays, before.arrays, strict=True)) if a is not b}
        return adapters.Changed(kind, changed) if changed else None


def forget(owner: Any, kind: str) -> None:
    """Forget what `kept` has."""
    _traces.of(owner, kind).clear()


_traces = WeakCache()


class TracedProgram:
    """A function traced for given argument types: a program, and the structures around it."""
    __slots__ = ("jaxpr", "closed", "consts", "in_tree", "out_tree", "changed", "given",
                 "donated", "keep_unused", "branches", "_pruned")

    def __init__(self, jaxpr: Jaxpr, in_tree: pytree.PyTreeDef, out_tree: pytree.PyTreeDef,
                 changed: list[list[int]] | None = None) -> None:
        # of a StatefulFunction: for each ByValue the numbers of its arrays that changed
        self.changed = changed
        self.jaxpr = jaxpr
        self.closed, self.consts = close(jaxpr)
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.given: tuple[int, ...] = ()
        self.donated: tuple[int, ...] = ()
        self.keep_unused = False
        self.branches: dict[Any, Any] = {}      # of a first branch: the others -> the programs of all
        self._pruned: tuple[Jaxpr, list[Any], list[int], tuple[int, ...]] | None = None

    @property
    def result_tree(self) -> pytree.PyTreeDef:
        """The structure of what the function returned; a stateful one's `out_tree` has more: what changed."""
        return self.out_tree if self.changed is None else self.out_tree.children()[0]

    def with_equations(self, change: Callable[[Eqn], Eqn]) -> TracedProgram:
        """The same with other equations."""
        other = copy.copy(self)
        other.jaxpr = self.jaxpr.replace(eqns=[change(eqn) for eqn in self.jaxpr.eqns])
        (other.closed, other.consts), other.branches, other._pruned = close(other.jaxpr), {}, None
        return other

    def donating(self, given: Iterable[int], references: Iterable[int], keep_unused: bool) -> TracedProgram:
        """The same, for calls that donate the leaves `given` and those that references may give away.

        With `keep_unused` they also take what the program does not use.
        """
        other = copy.copy(self)
        other.given, other.donated = tuple(given), tuple(sorted({*given, *references}))
        other.keep_unused, other._pruned = keep_unused, None
        return other

    def with_references(self) -> tuple[TracedProgram, Sequence[tuple[Ref, bool]]]:
        """(the same with its Refs from outside as arguments and results, [(such a Ref, is it written?)]).

        Their values come in front of its leaves, and of those that it writes in front of its results.
        """
        found: dict[Ref, bool] = {}
        for e in accesses(self.closed.effects):
            if e.ref.home is EVAL:
                found[e.ref] = found.get(e.ref, False) or e.writes
        if not found:
            return self, ()
        states = tuple([State(ref.inner_aval, ref.handles, written) for ref, written in found.items()])
        program, n, shift = programs.discharge(self.closed, states), len(found), len(self.consts)
        invars = [*program.invars[n:n + shift], *program.invars[:n], *program.invars[n + shift:]]
        written = [i for i, w in enumerate(found.values()) if w]
        outvars = [*[program.outvars[i] for i in written], *program.outvars[n:]]
        other = copy.copy(self)
        other.closed, other.branches = program.replace(invars=invars, outvars=outvars, arg_names=None), {}
        values, changed = (pytree.tree_structure((0,) * k) for k in (n, len(written)))
        other.in_tree = pytree.treedef_tuple((values, self.in_tree))
        other.out_tree = pytree.treedef_tuple((changed, self.out_tree))
        return other.donating([i + n for i in self.given], [*written, *[i + n for i in self.donated]],
                              self.keep_unused), tuple(found.items())

    def pruned(self) -> tuple[Jaxpr, list[Any], list[int], tuple[int, ...]]:
        """(program of what is used, its constants, positions of the leaves it takes, positions donated)."""
        if self._pruned is None:
            self._pruned = self._prune()
        return self._pruned

    def _prune(self) -> tuple[Jaxpr, list[Any], list[int], tuple[int, ...]]:
        program, used = dce(self.closed, keep_invars=self.keep_unused)
        if self.keep_unused:
            used = [True] * len(used)
        shift = len(self.consts)
        kept = [i - shift for i in range(shift, len(used)) if used[i]]
        with transfer_guards.unasked():      # they are a part of the program
            consts = [c if isinstance(c, Tracer) else as_array(c) for c, u in zip(self.consts, used) if u]
        limit = config.jax_captured_constants_warn_bytes
        if consts and 0 <= limit <= sum([getattr(c, "nbytes", 0) for c in consts]):
            self._warn_of(consts, program)
        return program, consts, kept, tuple(len(consts) + n for n, i in enumerate(kept) if i in self.donated)

    def _warn_of(self, consts: Sequence[Any], program: Jaxpr) -> None:
        """UserWarning that these arrays, taken from around the function, are a part of its program."""
        size = sum(getattr(c, "nbytes", 0) for c in consts)
        lines = [f"{program.name} captured {len(consts)} constant{'s' * (len(consts) > 1)} of {size} bytes "
                 "in all, which are a part of its program. Pass them as arguments; the option  "
                 "jax_captured_constants_warn_bytes says from how many bytes this is said, -1 never."]
        for c, v in zip(consts, program.invars) if config.jax_captured_constants_report_frames else ():
            used = next((e.source for e in program.eqns if v in e.invars), None)
            lines.append(f"  {c.aval.str_short()}: used at {source_info.describe(used)}")
        warnings.warn("\n".join(lines), UserWarning, stacklevel=source_info.user_stacklevel())

    @property
    def cacheable(self) -> bool:
        """A program that closes over tracers, or Refs that are not eager, holds for this one trace only."""
        return not (any(isinstance(c, Tracer) for c in self.consts)
                    or any(e.ref.home is not EVAL for e in accesses(self.closed.effects)))
