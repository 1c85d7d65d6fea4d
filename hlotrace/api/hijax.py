"""What transformations do with values of the user's own types (hijax; `core/hitypes.py`): their adapter.

An immutable value becomes its arrays.  Where its type says that its tangents are of another type
(`to_tangent_aval`), which are not those of its arrays, further arrays of zeros go beside them: what tangents
these have, the value has.  The trace in which a value was made knows the arrays of its tangent
(`hitypes.made_here`).

A mutable value that a traced function uses from outside of it has its arrays in Refs from then on, which know
how to be read and written there.
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.avals import aval_of, is_arraylike
from ..core.caches import ContextCache, LRUCache
from ..core.config import state
from ..core.hitypes import adopt, found, is_mutable, type_of, typeof_for
from ..core.pytrees import pytree
from ..core.refs import Ref
from ..core.symbolic_zeros import MappedAxis, UndefinedPrimal, is_undefined_primal
from ..core.trace import EVAL, Tracer, entering
from ..primitives.arrays.elementwise import add, convert
from ..primitives.arrays.shape import instantiate, zeros_of
from ..primitives.programs.ruled_calls import Rules, ruled_call_p
from ..transforms.vmap import place_axis
from . import adapters, refs
from .custom_derivatives import cast_tangent
from .flat import FlatFunction, TracedProgram


class _Tangents(NamedTuple):
    """Of what type the tangents of a type are; where they go beside the arrays, `beside` are their types."""
    type: Any
    beside: tuple | None


@functools.lru_cache(maxsize=4096)
def tangents_of(ty: Any) -> _Tangents:
    """The _Tangents of a type."""
    of = getattr(ty, "to_tangent_aval", None)
    tangent = ty if of is None else of()
    if tangent == ty:
        return _Tangents(ty, None)
    found, own = tangent.lo_ty(), [a.to_tangent_aval() for a in ty.lo_ty()]
    if [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in own]:
        return _Tangents(tangent, None)
    return _Tangents(tangent, tuple(found))


def _has_tangent(aval: Any) -> bool:
    return aval.dtype != dtypes.float0


def lowered(ty: Any, value: Any) -> list[Any]:
    """The arrays of an immutable value, and those of its tangent that go beside them."""
    arrays, beside = list(ty.lo_ty() if value is ty else ty.lower_val(value)), tangents_of(ty).beside
    if beside is None:
        return arrays
    avals = [a for a in beside if _has_tangent(a)]
    _, known, _ = found(value)
    if not known:
        known = [zeros_of(a) if state.trace.staging else np.broadcast_to(np.zeros((), a.dtype), a.shape)
                 for a in avals]
    return [*arrays, *known]


def _split(ty: Any, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """(the arrays of a value, those that go beside them)."""
    beside = tangents_of(ty).beside
    n = len(arrays) - sum(map(_has_tangent, beside or ()))
    return arrays[:n], arrays[n:]


class _HiValues(adapters.Adapter):
    """Values of HiTypes; the kind is (type, of what a mutable value is made)."""
    lowers = True

    def handles(self, cls: type) -> bool:
        return typeof_for(cls) is not None

    def type_of(self, value: Any) -> Any:
        return type_of(value)

    def node(self, value: Any) -> Any:
        ty = type_of(value)
        return super().node(value) if ty.has_qdd else adapters.Lowered(self, (ty, None), lowered(ty, value))

    def result(self, value: Any, flat: Any) -> Any:
        ty = type_of(value)
        if not ty.has_qdd:
            return self.node(value)
        if any(value is x for _, x in getattr(flat, "inner", ())):
            raise ValueError(f"{flat}: it returned a mutable value that it was given, which its caller has, "
                             f"of type {ty}: return what is new")
        kind, arrays = self.arrays(value)
        is_ours = found(value)[0] is state.trace or any([
            isinstance(x, Tracer) and x._trace is state.trace for x in arrays])
        if is_ours and not shared_by([value]):
            return adapters.Lowered(self, kind, arrays)
        return super().node(value)      # it is from outside

    def arrays(self, value: Any) -> tuple[Any, list[Any]]:
        ty, made_of = type_of(value), value.cur_qdd()
        return (ty, made_of), list(read(ty, made_of, value))

    def inside(self, kind: tuple[Any, Any], arrays: Sequence[Any]) -> Any:
        ty, made_of = kind
        if ty.has_qdd:
            return adopt(ty.new_from_loval(made_of, *arrays))
        arrays, tangents = _split(ty, arrays)
        value = ty.raise_val(*arrays)
        return adopt(value, tangents) if any(isinstance(t, Tracer) for t in tangents) else value

    def of_types(self, kind: tuple[Any, Any], types: Sequence[Any]) -> Any:
        ty, _ = kind
        return self.inside(kind, types) if ty.has_qdd else ty

    def lend(self, value: Any) -> None:
        _lent[id(value)] = value

    def restore(self, value: Any, lent: Any) -> None:
        _lent.pop(id(value), None)

    def write_back(self, value: Any, kind: tuple[Any, Any], arrays: Sequence[Any]) -> None:
        write(*kind, value, arrays)

    def tangent_type(self, kind: tuple[Any, Any]) -> Any:
        return tangents_of(kind[0]).type

    def raise_tangent(self, kind: tuple[Any, Any], tangents: Sequence[Any], avals: Sequence[Any]) -> Any:
        ty, made_of = kind
        if ty.has_qdd:
            return ty.new_from_loval(made_of, *map(instantiate, tangents, avals))
        tangent, beside = tangents_of(ty)
        if beside is not None:
            given, left = _split(ty, list(zip(tangents, avals)))
            left = iter(left)
            filled = [instantiate(*next(left)) if _has_tangent(a) else instantiate(None, a) for a in beside]
        else:
            filled = list(map(instantiate, tangents, avals))
        return tangent.raise_val(*filled)

    def lower_tangent(self, kind: tuple[Any, Any], tangent: Any, avals: Sequence[Any]) -> list[Any]:
        ty, _ = kind
        of, beside = tangents_of(ty)
        parts = list(of.lower_val(tangent))
        if beside is None:
            return parts
        arrays, _ = _split(ty, avals)
        zeros = [None if a is None else zeros_of(a.tangent()) for a in arrays]
        return [*zeros, *[t for t, a in zip(parts, beside) if _has_tangent(a)]]

    def perturbed(self, kind: tuple[Any, Any], avals: Sequence[Any]) -> list[bool]:
        arrays, beside = _split(kind[0], avals)
        own = [dtypes.is_inexact(a.dtype) for a in arrays]
        return [False] * len(own) + [True] * len(beside) if tangents_of(kind[0]).beside is not None else own

    def unmapped(self, kind: tuple[Any, Any], avals: Sequence[Any], size: int | None,
                 spec: Any) -> tuple[Any, list[Any]]:
        return self._along(kind, avals, size, spec, "dec_rank")

    def whole(self, kind: tuple[Any, Any], arrays: Sequence[Any], dims: Sequence[Any],
              size: int) -> tuple[Any, Any]:
        """(the value whose parts under vmap are made of these arrays, its spec), for batching rules."""
        ty, _ = kind
        if all(d is None for d in dims):
            return self.inside(kind, arrays), None
        spec = _specs.get(ty)
        if spec is None:
            spec = ty.leading_axis_spec() if hasattr(ty, "leading_axis_spec") else 0
        parts = [aval_of(x).without_axis(d) for x, d in zip(arrays, dims)]
        (outer, _), axes = self.mapped(kind, parts, size, spec)
        whole = [x if to is None else place_axis(x, size, d, to) for x, d, to in zip(arrays, dims, axes)]
        return self.inside((outer, None), whole), spec

    def mapped(self, kind: tuple[Any, Any], avals: Sequence[Any], size: int | None,
               spec: Any) -> tuple[Any, list[Any]]:
        return self._along(kind, avals, size, spec, "inc_rank")

    def _along(self, kind: tuple[Any, Any], avals: Sequence[Any], size: int | None, spec: Any,
               change: str) -> tuple[Any, list[Any]]:
        ty, made_of = kind
        if spec is None:
            return kind, [None] * len(avals)
        if not hasattr(ty, change):
            if not hasattr(spec, "__index__"):
                raise NotImplementedError(f"hijax type {type(ty).__name__} does not define {change}, which "
                                          f"{spec!r} needs")
            return kind, [spec] * len(avals)
        if size is None:
            if not hasattr(spec, "__index__"):
                raise ValueError(f"vmap: a value of type {ty} is mapped by {spec!r}, which does not say the "
                                 "size of the axis: give axis_size")
            size = avals[0].shape[spec]
        other = getattr(ty, change)(size, spec)
        whole, part = (ty, other) if change == "dec_rank" else (other, ty)
        if not hasattr(spec, "__index__"):
            _specs.keep(part, spec)
        pairs = zip(_lo_types(whole), _lo_types(part), strict=True)
        return (other, made_of), [_axis(w.shape, p.shape, size, spec, ty) for w, p in pairs]


# type of a part under vmap -> the MappingSpec by which the user mapped what it is a part of
_specs = LRUCache(1024)


def _lo_types(ty: Any) -> list[Any]:
    """The types of all that `lowered` gives."""
    return [*ty.lo_ty(), *filter(_has_tangent, tangents_of(ty).beside or ())]


def _axis(whole: Sequence[int], part: Sequence[int], size: int | None, spec: Any, ty: Any) -> int | None:
    """At which axis of size `size` the shape `whole` has what `part` lacks; None if they are the same."""
    if tuple(whole) == tuple(part):
        return None
    places = [i for i, n in enumerate(whole) if n == size and (*whole[:i], *whole[i + 1:]) == tuple(part)]
    named = [spec % len(whole)] if hasattr(spec, "__index__") else [
        n % len(whole) for n in getattr(spec, "__dict__", {}).values() if type(n) is int]
    likely = [i for i in places if i in named] or places
    if not likely:
        raise ValueError(f"hijax type {ty}: by {spec!r}, an array of shape {tuple(whole)} has slices of "
                         f"shape {tuple(part)}, which are not those along an axis of size {size}")
    return likely[0]


_values = _HiValues()
adapters.register(_values)


# --- mutable values from outside of a traced function -------------------------------------------------------

class _Shared:
    """A mutable value that a function uses from outside of it; its arrays are in Refs, which are traced."""
    def __init__(self, ty: Any, value: Any, home: Any) -> None:
        self.type, self.value, self.made_of = ty, value, value.cur_qdd()
        with entering(home):
            self.refs = [Ref(x) for x in ty.read_loval(self.made_of, value)]

    def read(self) -> None:
        """Let the value have the arrays that are in the Refs."""
        self.seen = [refs.read(ref) for ref in self.refs]
        self.type.update_from_loval(self.made_of, self.value, *self.seen)

    def write(self) -> None:
        """Let the Refs have the arrays that the value has."""
        made_of = self.value.cur_qdd()
        if made_of.normalize() != self.made_of.normalize():
            raise ValueError(f"a value of type {self.type}, from outside of the function that is traced, is "
                             f"made of {self.made_of}, and cannot come to be made of {made_of}: pass it as "
                             "an argument of jit")
        for ref, old, new in zip(self.refs, self.seen, self.type.read_loval(made_of, self.value),
                                 strict=True):
            if new is not old:
                refs.write(ref, convert(new, ref.dtype, ref.inner_aval.weak_type))


# ("shared", id of a value that belongs to no program) -> _Shared, which holds it: compiled functions may use
# its Refs
_shared: dict = {}
# ids of values that are moved from or to Refs: what their types do for that has them as they are
_moving: set = set()
_lent: dict = {}            # id -> a value that is inside of a call alone


def shared_by(values: Iterable[Any]) -> list[_Shared]:
    """The _Shared of the mutable ones that are known outside of the function that is traced."""
    shared = []
    for value in values:
        if id(value) in _moving or not is_mutable(value):
            continue
        if id(value) in _lent:
            raise ValueError(f"a value of type {type_of(value)} is both closed over by a function and passed "
                             "to it as an argument: it must come one way only")
        (home, _, inside), key = found(value), ("shared", id(value))
        table: Any = _shared if home is EVAL else home.made
        if key not in table and inside:
            with moving(value):
                table[key] = _Shared(type_of(value), value, home)
        if key in table:
            shared.append(table[key])
    return shared


@contextlib.contextmanager
def moving(*values: Any) -> Iterator[None]:
    """The types of these values may look at them as they are."""
    _moving.update(map(id, values))
    try:
        yield
    finally:
        _moving.difference_update(map(id, values))


def read(ty: Any, made_of: Any, value: Any) -> Any:
    """The arrays of a mutable value, wherever it is from."""
    shared = shared_by([value])
    with moving(value):
        for x in shared:
            x.read()
        return ty.read_loval(made_of, value)


def write(ty: Any, made_of: Any, value: Any, arrays: Sequence[Any]) -> None:
    """Let a mutable value have these arrays, wherever it is from."""
    shared = shared_by([value])
    with moving(value):
        for x in shared:
            x.read()
        ty.update_from_loval(made_of, value, *arrays)
        for x in shared:
            x.write()


# --- primitives ---------------------------------------------------------------------------------------------

def apply(primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Do a HiPrimitive for these values."""
    tracing = state.trace is not EVAL
    mutable = list(filter(is_mutable, args))
    ruled = primitive.opaque or has_rules(primitive) or any(map(_has_own_tangent, args))
    if tracing and not mutable and ruled:
        return call(primitive, args, params)
    shared = shared_by(args)
    with moving(*[x.value for x in shared]):
        for x in shared:
            x.read()
        watched = [x for x in mutable if tracing and id(x) not in _moving]
        before = [_raw(x) for x in watched]
        results = primitive.to_lojax(*args, **params)
        for x, was in zip(watched, before):
            _check_written(x, *was)
        for x in shared:
            x.write()
    for x in results if primitive.multiple_results else [results]:
        if is_mutable(x):
            adopt(x)
        elif tracing and not mutable and _has_own_tangent(x):
            return call(primitive, args, params)
    return results


def _has_own_tangent(value: Any) -> bool:
    ty = type_of(value)
    return ty is not None and not ty.has_qdd and tangents_of(ty).beside is not None


def _raw(value: Any) -> tuple[Any, list[Any]]:
    """(of what a mutable value is made, its arrays), as it has them."""
    made_of = value.cur_qdd()
    with moving(value):
        return made_of, list(type_of(value).read_loval(made_of, value))


def _check_written(value: Any, made_of: Any, before: Sequence[Any]) -> None:
    """ValueError, and `value` is as it was, if it got arrays of a trace that it does not belong to."""
    home, ty = found(value)[0], type_of(value)
    if home is state.trace:
        return
    _, arrays = _raw(value)
    inner, trace = set(), state.trace
    while trace is not home:
        inner.add(trace)
        trace = trace.parent
    for x in arrays:
        if isinstance(x, Tracer) and x._trace in inner:
            with moving(value):
                ty.update_from_loval(made_of, value, *before)
            raise ValueError(f"a value of {x.under()} is written to a value of type {ty} that was made "
                             "outside of it, where it has no meaning: make that inside, or write "
                             "lax.stop_gradient(value)")


# those that `_Call` gives to its primitive if there are any
_RULES = ("jvp", "lin", "vjp_fwd", "transpose", "batch")


def has_rules(primitive: Any) -> bool:
    """Has a primitive rules of its own for a transformation?"""
    return any(getattr(primitive, name, None) is not None for name in _RULES)


def call(primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Do a primitive of immutable values by its rules."""
    leaves, in_tree = adapters.flatten((tuple(args), {}))
    flat = FlatFunction(_Expanded(primitive, params), leaves, in_tree, "hijax")
    avals = tuple(flat.avals())
    key: Any = primitive, tuple(sorted(params.items())), in_tree, avals
    try:
        found = _calls.get(key)
    except TypeError:       # what is not hashable is traced each time
        key = found = None
    if found is None:
        traced = flat.trace(avals, str(primitive))
        found = traced, _Call(primitive, params, in_tree.children()[0], avals, traced).rules()
        if key is not None and traced.cacheable:
            _calls.keep(key, found)
    traced, rules = found
    outs = ruled_call_p.bind(*traced.consts, *leaves, jaxpr=traced.closed, rules=rules, name=str(primitive),
                             num_consts=len(traced.consts))
    return traced.out_tree.unflatten(outs)


# (primitive, parameters, structure and types of the arguments) -> (Traced, Rules)
_calls = ContextCache(1024)


class _Expanded:
    """What a primitive does, as a function."""
    def __init__(self, primitive: Any, params: dict[str, Any]) -> None:
        self.primitive, self.params = primitive, params
        self.__name__ = str(primitive)

    def __call__(self, *args: Any) -> Any:
        results = self.primitive.to_lojax(*args, **self.params)
        return tuple(results) if self.primitive.multiple_results else results


class _Call:
    """The rules of an application of a primitive, as functions of flat lists."""

    def __init__(self, primitive: Any, params: dict[str, Any], in_tree: pytree.PyTreeDef,
                 avals: Sequence[Any], traced: TracedProgram) -> None:
        self.primitive, self.params = primitive, params
        self.in_tree, self.avals = in_tree, avals
        self.out_tree, self.out_avals = traced.out_tree, traced.closed.out_avals

    def rules(self) -> Rules:
        given = {name: getattr(self.primitive, name, None) is not None for name in _RULES}
        return Rules(jvp=self.jvp if given["jvp"] else None, fwd=self.fwd if given["vjp_fwd"] else None,
                     lin=self.lin if given["lin"] else None,
                     transpose=self.transpose if given["transpose"] else None,
                     batch=self.batch if given["batch"] else None, lacks=self._lacks())

    def _lacks(self) -> bool:
        """Is it an error to differentiate it without a rule?"""
        kinds = [x.kind for structure in (self.in_tree, self.out_tree)
                 for x, *_ in adapters.each(structure, [0] * structure.num_leaves) if x]
        return self.primitive.opaque or any(tangents_of(ty).beside is not None for ty, _ in kinds)

    def _refuse(self, rule: str, outs: Sequence[Any], structure: pytree.PyTreeDef) -> None:
        if structure != self.out_tree:
            raise TypeError(f"hijax primitive {self.primitive}: its rule {rule} must give a result of the "
                            "structure of the primitive's:\n" +
                            pytree.structure_mismatch("results", self.out_tree, structure,
                                                      ("the primitive's", "the rule's")))
        for i, (x, a) in enumerate(zip(outs, self.out_avals)):
            if (aval_of(x).shape, aval_of(x).dtype) != (a.shape, a.dtype):
                raise TypeError(f"hijax primitive {self.primitive}: its rule {rule} gives "
                                f"{aval_of(x).str_short()} for result {i}, which is {a.str_short()}")

    def _tangents(self, rule: str, tangents: Any) -> list[Any]:
        """The tangents of the leaves of the results, from a rule."""
        leaves, structure = adapters.flatten_tangents(self.out_tree, tangents, self.out_avals, _is_zero)
        if structure != self.out_tree:
            raise TypeError(f"hijax primitive {self.primitive}: its rule {rule} must give tangents of the "
                            "structure of its results:\n" +
                            pytree.structure_mismatch("tangents", self.out_tree, structure,
                                                      ("results", "tangents")))
        return [None if _is_zero(t) else cast_tangent(t, a) for t, a in zip(leaves, self.out_avals)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        filled = list(map(instantiate, tangents, self.avals))
        out, moved = self.primitive.jvp(self.in_tree.unflatten(primals), adapters.unflatten_tangents(
            self.in_tree, filled, self.avals), **self.params)
        outs, structure = adapters.flatten(tuple(out) if self.primitive.multiple_results else out)
        self._refuse("jvp", outs, structure)
        return outs, self._tangents("jvp", tuple(moved) if self.primitive.multiple_results else moved)

    def lin(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = adapters.for_each(self.in_tree, [t is not None for t in tangents])
        out, kept = self.primitive.lin(given, *self.in_tree.unflatten(primals))[:2]
        outs, structure = adapters.flatten(out)
        self._refuse("lin", outs, structure)
        filled = list(map(instantiate, tangents, self.avals))
        given = adapters.unflatten_tangents(self.in_tree, filled, self.avals)
        moved = self.primitive.linearized(kept, *given)
        return outs, self._tangents("linearized", moved)

    def fwd(self, primals: Sequence[Any],
            perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], Callable[..., Any]]:
        out, kept = self.primitive.vjp_fwd(adapters.for_each(self.in_tree, perturbed),
                                           *self.in_tree.unflatten(primals))
        outs, structure = adapters.flatten(out)
        self._refuse("vjp_fwd", outs, structure)
        leaves, kept_tree = adapters.flatten(kept)
        others = [None if is_arraylike(r) else r for r in leaves]       # what is no array stays

        def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            given = iter(residuals)
            return self._pulled_back(kept_tree.unflatten([next(given) if r is None else r for r in others]),
                                     cts)
        return outs, [r for r in leaves if is_arraylike(r)], bwd

    def _cotangents(self, found: Any) -> list[Any]:
        flat = adapters.flatten_prefix(f"cotangents of hijax primitive {self.primitive}", self.in_tree,
                                       tuple(found))
        return [None if ct is None or _is_zero(ct) else cast_tangent(ct, a)
                for ct, a in zip(flat, self.avals)]

    def _filled(self, cts: Sequence[Any]) -> Any:
        filled = list(map(instantiate, cts, self.out_avals))
        return adapters.unflatten_tangents(self.out_tree, filled, self.out_avals)

    def _pulled_back(self, kept: Any, cts: Sequence[Any]) -> list[Any]:
        ct = self._filled(cts)
        if self.primitive.vjp_bwd is None:
            return self._cotangents(self.primitive.vjp_bwd_retval(kept, ct))
        places = adapters.for_each(self.in_tree, [True] * len(self.avals))
        sums = pytree.tree_map(lambda _: ValAccum(), places)
        self.primitive.vjp_bwd(kept, ct, *sums)
        return self._cotangents(pytree.tree_map(lambda s: s.freeze(), sums))

    def transpose(self, cts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        values = pytree.tree_map(lambda x: _Linear(x.aval) if is_undefined_primal(x) else x,
                                 adapters.with_linear(self.in_tree, args), is_leaf=is_undefined_primal)
        found = self.primitive.transpose(self._filled(cts), *values, **self.params)
        if found is None:       # the rule has told the accumulators
            found = pytree.tree_map(lambda x: x.freeze() if type(x) is _Linear else None, values)
        return self._cotangents(found if isinstance(found, (tuple, list)) else (found,))

    # batching

    def batch(self, axis: MappedAxis, args: Sequence[Any],
              dims: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values, where = [], []
        for x, part, places in adapters.each(self.in_tree, args, dims):
            value, spec = (part, places) if x is None else _values.whole(x.kind, part, places, axis.size)
            values.append(value)
            where.append(spec)
        outer = adapters.outer_structure(self.in_tree)
        out, out_dims = self.primitive.batch(axis, outer.unflatten(values), outer.unflatten(where),
                                             **self.params)
        outer = adapters.outer_structure(self.out_tree)
        specs = pytree.flatten_axes(f"hijax primitive {self.primitive}: dims of its rule batch", outer,
                                    out_dims)
        found, found_dims = [], []
        parts = adapters.each(self.out_tree, self.out_avals, self.out_avals)
        for value, spec, (x, avals, _) in zip(outer.flatten_up_to(out), specs, parts, strict=True):
            if x is None:
                found.append(value)
                found_dims.append(spec)
            else:
                found += lowered(type_of(value), value)
                found_dims += _values.mapped(x.kind, avals, axis.size, spec)[1]
        return found, found_dims


def _is_zero(x: Any) -> bool:
    """Is it a Zero of `interpreters.ad`?"""
    return hasattr(x, "instantiate") and hasattr(x, "aval")


class GradAccum:
    """Where a backward rule adds up cotangents of one argument, with `accum(cotangent)`."""

    def accum(self, cotangent: Any) -> None:
        raise NotImplementedError

    def freeze(self) -> Any:
        """What was added up, None for nothing."""
        return None


class ValAccum(GradAccum):
    """A GradAccum of a value."""
    def __init__(self, aval: Any = None, val: Any = None) -> None:
        self.aval, self.val = aval, val

    def accum(self, cotangent: Any) -> None:
        if cotangent is not None and not _is_zero(cotangent):
            self.val = cotangent if self.val is None else pytree.tree_map(
                add, adapters.nodes(self.val), adapters.nodes(cotangent))

    def freeze(self) -> Any:
        return self.val


class _Linear(ValAccum, UndefinedPrimal):
    """An argument in which a primitive that is transposed is linear: its rule may add up its cotangent."""


class NullAccum(GradAccum):
    """A GradAccum of which nothing is wanted."""
    def __init__(self, aval: Any = None) -> None:
        self.aval = aval

    def accum(self, cotangent: Any) -> None:
        """Nothing is done."""


class RefAccum(GradAccum):
    """A GradAccum that adds to a Ref."""
    def __init__(self, aval: Any, ref: Any) -> None:
        self.aval, self.ref = aval, ref

    def accum(self, cotangent: Any) -> None:
        if cotangent is not None and not _is_zero(cotangent):
            refs.write(self.ref, add(refs.read(self.ref), cotangent))
