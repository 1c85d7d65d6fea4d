"""Values that are no arrays and that transformations take all the same: one adapter for each kind of them.

Refs and values of the user's own types (hijax) are leaves of pytrees, and no program has such values.  An
adapter knows its kind by the class and says what becomes of a value on the way into a function, inside of it
and after it.

What is immutable becomes its arrays where arguments are flattened, and inside it is a value of its class
again.  What can change is the same object inside (`Held`), so a function that gets it does as one
that closes over it.  jit, vmap and shard_map take what can change by its arrays (`ByValue`): inside is
another value, and what changed of it is a further result, which is written back (`StatefulFunction`).

Adapters are registered by `refs.py` and `hijax.py`, and that of views of Refs by `numpy/indexing/refs.py`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import dtypes
from ..core.avals import aval_of, is_arraylike
from ..core.pytrees import pytree
from ..core.symbolic_zeros import UndefinedPrimal, is_undefined_primal


class Adapter:
    """What transformations do with values of one kind."""
    lowers = False          # may its `node` be a Lowered?
    owns_memory = False     # may a program that changes a value reuse the memory of its arrays?

    def handles(self, cls: type) -> bool:
        """Are the instances of this class of the kind?"""
        raise NotImplementedError

    def node(self, value: Any) -> Any:
        """The pytree of a value among the arguments of a function: `Held`; `Lowered` if it is immutable."""
        return Held(Identity(value))

    def result(self, value: Any, flat: Any) -> Any:
        """The pytree of a value that the FlatFunction `flat` returns; a leaf is refused."""
        return value

    def type_of(self, value: Any) -> Any:
        """The type of a value."""
        return value.aval

    def arrays(self, value: Any) -> tuple[Any, list[Any]]:
        """(what must be equal for two calls to share a program, the list of arrays) of a value."""
        raise NotImplementedError

    def inside(self, kind: Any, arrays: Sequence[Any]) -> Any:
        """A value with these arrays, which belongs to the current trace."""
        raise NotImplementedError

    # of what can change

    def base(self, value: Any) -> Any:
        """What a value is a part of: two with one base cannot both be passed to a function."""
        return value

    def after(self, kind: Any, value: Any) -> tuple[Any, list[Any]]:
        """As `arrays`, of one that `inside` made."""
        return self.arrays(value)

    def lend(self, value: Any) -> Any:
        """From now on the value is inside of a call alone.  Returns what `restore` needs."""

    def restore(self, value: Any, lent: Any) -> None:
        """The call is over, well or not."""

    def own_memory(self, value: Any, array: Any) -> Any:
        """An array of a value that is to be changed, or a copy, for a program that may reuse its memory."""

    def write_back(self, value: Any, kind: Any, arrays: Sequence[Any]) -> None:
        """Let a value have these arrays."""
        raise NotImplementedError

    # of what is immutable

    def of_types(self, kind: Any, types: Sequence[Any]) -> Any:
        """The type of a value of arrays of these types, or one made of them."""
        return self.inside(kind, types)

    def raise_tangent(self, kind: Any, tangents: Sequence[Any], avals: Sequence[Any]) -> Any:
        """The tangent, or cotangent, of a value from those of its arrays, None where they are zero."""
        raise NotImplementedError

    def lower_tangent(self, kind: Any, tangent: Any, avals: Sequence[Any]) -> list[Any]:
        """The tangents of the arrays of a value, as `raise_tangent` takes them."""
        raise NotImplementedError

    def perturbed(self, kind: Any, avals: Sequence[Any]) -> list[bool]:
        """For each of the arrays: does its tangent belong to that of the value?"""
        raise NotImplementedError

    # under vmap, where an axis of all arrays need not be what is mapped

    def unmapped(self, kind: Any, avals: Sequence[Any], size: int | None, spec: Any) -> tuple[Any, list[Any]]:
        """(the kind of a slice, the axis of each array or None), for a spec in in_axes or an int."""
        return kind, [spec] * len(avals)

    def mapped(self, kind: Any, avals: Sequence[Any], size: int | None, spec: Any) -> tuple[Any, list[Any]]:
        """(the kind of a value made of slices, the axis of each array or None), for a spec in out_axes."""
        return kind, [spec] * len(avals)


_adapters: list = []
_found: dict = {}           # class -> its adapter or None
_arrays: set = set()        # the classes whose adapter is None


def register(adapter: Adapter) -> None:
    """Add an adapter to the list."""
    _adapters.append(adapter)
    forget()


def forget() -> None:
    """Ask the adapters again of each class: they have come to know another one."""
    _found.clear()
    _arrays.clear()


def adapter_of(value: Any) -> Adapter | None:
    """The adapter of a value, None for what has none."""
    cls = type(value)
    try:
        return _found[cls]
    except KeyError:
        found = None if is_arraylike(value) else next((a for a in _adapters if a.handles(cls)), None)
        _found[cls] = found
        if found is None:
            _arrays.add(cls)
        return found


def any_adapted(leaves: Iterable[Any]) -> bool:
    """Is there an adapter for one of these?"""
    return not _arrays.issuperset(map(type, leaves)) and any([adapter_of(x) is not None for x in leaves])


# --- as parts of the structure of arguments -----------------------------------------------------------------

class Identity:
    """An object, equal to itself alone, whatever its class says."""
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Identity and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Held:
    """A value as a part of the structure of arguments, which has no leaves: unflattened, it is the value."""
    used = False        # was there ever one?

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        Held.used = True


pytree.register_pytree_node(Held, lambda held: ((), held.identity), lambda identity, _: identity.value)


def nodes(arguments: Any) -> Any:
    """The pytree with the nodes of its values that have adapters."""
    return pytree.tree_map(lambda x: x if (adapter := adapter_of(x)) is None else adapter.node(x), arguments)


def flatten(arguments: Any) -> tuple[list[Any], pytree.PyTreeDef]:
    """`tree_flatten`, where what is immutable is its arrays, and what can change a part of the structure.

    Raises:
      ValueError: what can change is there twice.
    """
    leaves, structure = pytree.tree_flatten(arguments)
    if not any_adapted(leaves):
        return leaves, structure
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        adapter = adapter_of(x)
        if adapter is not None and type(adapter.node(x)) is Held:
            first = seen.setdefault(id(adapter.base(x)), i)
            if first != i:
                paths = pytree.leaf_paths(arguments)
                raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                                 f"function, but the mutable array reference of type {adapter.type_of(x)} "
                                 f"appeared at both arguments{paths[first]} and arguments{paths[i]}")
    return pytree.tree_flatten(nodes(arguments))


def results(result: Any, flat: Any) -> Any:
    """The pytree with the pytrees of the values that a FlatFunction returns."""
    return pytree.tree_map(lambda x: x if (adapter := adapter_of(x)) is None else adapter.result(x, flat),
                           result)


class Lowered:
    """The arrays of an immutable value: unflattened with arrays, it is the value, otherwise it stays this."""
    __slots__ = ("adapter", "kind", "arrays")

    def __init__(self, adapter: Adapter, kind: Any, arrays: Iterable[Any]) -> None:
        self.adapter, self.kind, self.arrays = adapter, kind, list(arrays)

    def raised(self) -> Any:
        """A value of these arrays."""
        return self.adapter.inside(self.kind, self.arrays)


def _unflatten(aux: tuple[Adapter, Any], arrays: Iterable[Any]) -> Any:
    found = Lowered(*aux, arrays)
    return found.raised() if all(map(is_arraylike, found.arrays)) else found


pytree.register_pytree_node(Lowered, lambda x: (x.arrays, (x.adapter, x.kind)), _unflatten)


def _is_lowered(x: Any) -> bool:
    return type(x) is Lowered


def raised(values: Any, of_types: bool = False) -> Any:
    """The pytree with values in the place of what is Lowered or ByValue, whatever their arrays are.

    With `of_types`, these are types.
    """
    def value(x: Any) -> Any:
        if type(x) is ByValue:
            return x.arrays[0] if len(x.arrays) == 1 else x.arrays
        if type(x) is Lowered:
            return x.adapter.of_types(x.kind, x.arrays) if of_types else x.raised()
        return x
    return pytree.tree_map(value, values, is_leaf=lambda x: type(x) is Lowered or type(x) is ByValue)


_LEAF_STRUCTURE, _NO_LEAVES = map(pytree.tree_structure, (0, None))


def _replaced(structure: pytree.PyTreeDef,
              other: Mapping[type, Callable[[pytree.PyTreeDef], pytree.PyTreeDef]]) -> pytree.PyTreeDef:
    """The structure with others in the place of nodes of these classes; no pytree is made of it."""
    data = structure.node_data()
    if data is None:
        return structure
    if data[0] in other:
        return other[data[0]](structure)
    children = [_replaced(child, other) for child in structure.children()]
    return pytree.PyTreeDef.from_node_data_and_children(pytree.registry, data, children)


def _arrays_of(structure: pytree.PyTreeDef) -> pytree.PyTreeDef:
    return _LEAF_STRUCTURE if structure.num_leaves == 1 else pytree.tree_structure([0] * structure.num_leaves)


def plain_structure(structure: pytree.PyTreeDef) -> pytree.PyTreeDef:
    """The structure in which what is ByValue is its array."""
    if not has_node(structure, ByValue):
        return structure
    return _replaced(structure, {ByValue: _arrays_of, Lowered: lambda _: _LEAF_STRUCTURE})


class _Leaf:
    """In the place of an array: nothing is made of it."""


_LEAF = _Leaf()


def skeleton(structure: pytree.PyTreeDef) -> Any:
    """The pytree of a structure: nodes of values stay nodes."""
    return nodes(structure.unflatten([_LEAF] * structure.num_leaves))


class _Opaque(list):
    """The children of a node whose class makes nothing of what is no array."""


pytree.register_pytree_node(_Opaque, lambda x: (x, None), lambda _, children: _Opaque(children))


def outline(structure: pytree.PyTreeDef) -> Any:
    """A pytree for the names of a structure's leaves, whatever classes make of what is no array."""
    found = _whole(skeleton, structure, structure)
    if found is not None:
        return found
    parts = [outline(child) for child in structure.children()]
    level = pytree.PyTreeDef.from_node_data_and_children(pytree.registry, structure.node_data(),
                                                         [_LEAF_STRUCTURE] * len(parts))
    found = _whole(level.unflatten, parts, structure)
    return _Opaque(parts) if found is None else found


def _whole(make: Callable[[Any], Any], of: Any, structure: pytree.PyTreeDef) -> Any:
    """`make(of)`, None where it has not the leaves of `structure`."""
    try:
        found = make(of)
        return found if pytree.tree_structure(found).num_leaves == structure.num_leaves else None
    except Exception:
        return None


class _Layout:
    """Where in a structure values were lowered."""
    __slots__ = ("places", "outer")

    def __init__(self, structure: pytree.PyTreeDef) -> None:
        found = skeleton(structure)
        # for each place a Lowered, or None for an array
        self.places = [x if type(x) is Lowered else None
                       for x in pytree.tree_leaves(found, is_leaf=_is_lowered)]
        # in which such a value is one leaf
        self.outer = pytree.tree_structure(found, is_leaf=_is_lowered)

    def split(self, leaves: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """(the Lowered or None, what belongs to it) for each place."""
        leaves = iter(leaves)
        for x in self.places:
            yield x, [next(leaves) for _ in x.arrays] if x is not None else next(leaves)


@functools.lru_cache(maxsize=1024)
def _layout(structure: pytree.PyTreeDef) -> _Layout | None:
    return _Layout(structure) if has_node(structure, Lowered) else None


def has_node(structure: pytree.PyTreeDef, kind: type) -> bool:
    """Is there a node of this class in a structure?"""
    data = structure.node_data()
    return data is not None and (data[0] is kind or any([has_node(x, kind) for x in structure.children()]))


def layout_of(structure: pytree.PyTreeDef) -> _Layout | None:
    """The _Layout of a structure; None where no value was lowered, as nearly always."""
    return _layout(structure) if any([a.lowers for a in _adapters]) else None


def without_held(structure: pytree.PyTreeDef) -> pytree.PyTreeDef:
    """The structure in which what is Held is None."""
    if not Held.used or not has_node(structure, Held):
        return structure
    return _replaced(structure, {Held: lambda _: _NO_LEAVES})


# --- tangents and cotangents of values ----------------------------------------------------------------------

def perturbed(structure: pytree.PyTreeDef, avals: Sequence[Any]) -> list[bool]:
    """For each leaf of a structure: does it have a tangent that is not known to be zero?"""
    layout = layout_of(structure)
    if layout is None:
        return [dtypes.is_inexact(a.dtype) for a in avals]
    found: list[bool] = []
    for x, part in layout.split(avals):
        found += [dtypes.is_inexact(part.dtype)] if x is None else x.adapter.perturbed(x.kind, part)
    return found


def of_values(structure: pytree.PyTreeDef) -> Collection[int]:
    """The numbers of the leaves that are arrays of values; empty where there are none, as nearly always."""
    layout = layout_of(structure)
    if layout is None:
        return ()
    pairs = layout.split(range(structure.num_leaves))
    return frozenset([i for x, part in pairs if x is not None for i in part])


def unflatten_tangents(structure: pytree.PyTreeDef, tangents: Sequence[Any], avals: Sequence[Any]) -> Any:
    """The pytree of tangents or cotangents of what has this structure and types, from those of its leaves."""
    layout = layout_of(structure)
    if layout is None:
        return structure.unflatten(tangents)
    both = zip(layout.split(tangents), layout.split(avals), strict=True)
    return layout.outer.unflatten([t if x is None else x.adapter.raise_tangent(x.kind, t, a)
                                   for (x, t), (_, a) in both])


def flatten_tangents(structure: pytree.PyTreeDef, values: Any, avals: Sequence[Any],
                     is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], pytree.PyTreeDef]:
    """(leaves, structure) of tangents or cotangents of what has this structure: itself where they fit it."""
    leaves, found = pytree.tree_flatten(values, is_leaf=is_leaf)
    layout = layout_of(structure)
    if layout is None or found != layout.outer:
        return leaves, found
    flat: list[Any] = []
    for t, (x, part) in zip(leaves, layout.split(avals)):
        flat += [t] if x is None else x.adapter.lower_tangent(x.kind, t, part)
    return flat, structure


def for_each(structure: pytree.PyTreeDef, marks: Sequence[bool]) -> Any:
    """The pytree with a bool for each array or value: is any of its leaves marked?"""
    layout = layout_of(structure)
    if layout is None:
        return structure.unflatten(marks)
    return layout.outer.unflatten([part if x is None else any(part) for x, part in layout.split(marks)])


def each(structure: pytree.PyTreeDef, *leaves: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """(the Lowered or None, what belongs to it of each of these lists) for each array or value."""
    layout = layout_of(structure)
    if layout is None:
        yield from ((None, *row) for row in zip(*leaves))
        return
    for row in zip(*map(layout.split, leaves)):
        yield (row[0][0], *[part for _, part in row])


def outer_structure(structure: pytree.PyTreeDef) -> pytree.PyTreeDef:
    """The structure in which values are leaves."""
    layout = layout_of(structure)
    return structure if layout is None else layout.outer


def with_linear(structure: pytree.PyTreeDef, args: Sequence[Any]) -> Any:
    """The arguments of a transpose rule: a value of which no array is known is an UndefinedPrimal."""
    def value(x: Any, part: Any) -> Any:
        if x is None:
            return part
        if any(map(is_undefined_primal, part)):
            return UndefinedPrimal(x.adapter.tangent_type(x.kind))
        return x.adapter.inside(x.kind, part)
    return outer_structure(structure).unflatten([value(*pair) for pair in each(structure, args)])


def flatten_prefix(name: str, structure: pytree.PyTreeDef, prefix: Any) -> list[Any]:
    """`flatten_axes` of cotangents, of which any part may be None."""
    layout = layout_of(structure)
    if layout is None:
        return pytree.flatten_axes(name, structure, prefix)
    flat: list[Any] = []
    for t, (x, part) in zip(pytree.flatten_axes(name, layout.outer, prefix),
                            layout.split([None] * structure.num_leaves)):
        if x is None or t is None:
            flat += [t] if x is None else [None] * len(part)
        else:
            flat += x.adapter.lower_tangent(x.kind, t, part)
    return flat


# --- under vmap ---------------------------------------------------------------------------------------------

class MappingSpec:
    """How values of a type are mapped by vmap, to be derived from.

    It is an entry of in_axes or out_axes, and means what `dec_rank` and `inc_rank` of the type make of it.
    """


def _changed_kinds(structure: pytree.PyTreeDef, avals: Sequence[Any], specs: Sequence[Any],
                   change: Callable[[Any, list[Any], Any], Any]) -> tuple[pytree.PyTreeDef, list[Any]]:
    """(the structure with other kinds, an axis for each leaf); `change(node, avals, spec)` gives those."""
    leaves = iter(zip(avals, specs, strict=True))
    axes = []

    def other(x: Any) -> Any:
        if type(x) is not Lowered and type(x) is not ByValue:
            axes.append(next(leaves)[1])
            return x
        part = [next(leaves) for _ in x.arrays]
        kind, own = change(x, [a for a, _ in part], part[0][1] if part else None)
        axes.extend(own)
        return type(x)(x.adapter, kind, x.arrays)
    found = pytree.tree_map(other, skeleton(structure),
                            is_leaf=lambda x: type(x) is Lowered or type(x) is ByValue)
    return pytree.tree_structure(found), axes


def unmapped(structure: pytree.PyTreeDef, avals: Sequence[Any], specs: Sequence[Any],
             size: int | None) -> tuple[pytree.PyTreeDef, list[Any]]:
    """(the structure of a slice, the mapped axis of each leaf or None), with these entries of in_axes."""
    return _changed_kinds(structure, avals, specs,
                          lambda x, part, spec: x.adapter.unmapped(x.kind, part, size, spec))


def mapped(structure: pytree.PyTreeDef, outs: Sequence[Any], dims: Sequence[Any], specs: Sequence[Any],
           size: int | None) -> tuple[pytree.PyTreeDef, Sequence[Any]]:
    """(the structure of all together, the axis of each leaf or None) of the results of a mapped function.

    These are `outs`, mapped along `dims`; `specs` are the entries of out_axes.
    """
    if layout_of(structure) is None:
        return structure, specs
    avals = [aval_of(x).without_axis(d) for x, d in zip(outs, dims[:len(specs)])]
    return _changed_kinds(structure, avals, specs,
                          lambda x, part, spec: x.adapter.mapped(x.kind, part, size, spec))


def specs_of_values(structure: pytree.PyTreeDef, specs: Sequence[Any], plain: type) -> Sequence[Any]:
    """The PartitionSpec, of the class `plain`, of each leaf; `to_lo()` of a HiPspec those of a value."""
    layout = layout_of(structure)
    if layout is None:
        return specs
    found: list[Any] = []
    for x, part in layout.split(specs):
        if x is None or not part or type(part[0]) is plain or not hasattr(part[0], "to_lo"):
            found += [part] if x is None else part
        else:
            given = list(part[0].to_lo())
            found += [*given, *[None] * (len(part) - len(given))]
    return found


# --- by value -----------------------------------------------------------------------------------------------

class ByValue:
    """What can change, by its arrays, among the arguments of a function."""
    __slots__ = ("adapter", "kind", "arrays")

    def __init__(self, adapter: Adapter, kind: Any, arrays: Iterable[Any]) -> None:
        self.adapter, self.kind, self.arrays = adapter, kind, list(arrays)


class Changed:
    """What has changed of such a value: of which kind it is now, and its new arrays by their number."""
    __slots__ = ("kind", "arrays")

    def __init__(self, kind: Any, arrays: dict[int, Any]) -> None:
        self.kind, self.arrays = kind, arrays


pytree.register_pytree_node(ByValue, lambda x: (x.arrays, (x.adapter, x.kind)),
                            lambda aux, arrays: ByValue(aux[0], aux[1], arrays))
pytree.register_pytree_node(Changed, lambda x: ((x.arrays,), x.kind),
                            lambda kind, parts: Changed(kind, *parts))


def is_by_value(x: Any) -> bool:
    return type(x) is ByValue


class Taken:
    """The values that can change among the arguments of a call, as they were taken."""
    __slots__ = ("adapter", "value", "kind", "arrays", "start", "lent")
    lent: Any

    def __init__(self, adapter: Adapter, value: Any, start: int) -> None:
        self.adapter, self.value, self.start = adapter, value, start
        self.kind, self.arrays = adapter.arrays(value)

    @property
    def places(self) -> range:
        """Where its arrays are among the leaves."""
        return range(self.start, self.start + len(self.arrays))


def flatten_by_value(arguments: Any) -> tuple[list[Any], pytree.PyTreeDef, list[Taken]]:
    """(leaves, structure, [Taken]) of a pytree: what can change in it is a ByValue."""
    leaves, structure = pytree.tree_flatten(arguments)
    if not any_adapted(leaves):
        return leaves, structure, []
    taken, count = [], 0

    def node(x: Any) -> Any:
        nonlocal count
        adapter = adapter_of(x)
        if adapter is None:
            count += 1
            return x
        found = adapter.node(x)
        if type(found) is Held:
            taken.append(Taken(adapter, x, count))
            found = ByValue(adapter, taken[-1].kind, taken[-1].arrays)
        count += len(pytree.tree_leaves(found))
        return found
    leaves, structure = pytree.tree_flatten(pytree.tree_map(node, arguments))
    return leaves, structure, taken


def refuse_twice(flat: Any, taken: Sequence[Taken]) -> None:
    """ValueError if a value that can change is there twice."""
    seen: dict[int, Taken] = {}
    for x in taken:
        first = seen.setdefault(id(x.adapter.base(x.value)), x)
        if first is not x:
            names = [flat.path(y.start).partition("[<")[0] if y.arrays else "an argument" for y in (first, x)]
            raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                             f"function, but when tracing {flat.name} for {flat.what} the mutable array "
                             f"reference of type {x.adapter.type_of(x.value)} appeared at both {names[0]} "
                             f"and {names[1]}")


class lending:
    """`with lending(taken):` a call of a function that takes these values by their arrays.

    It is a ValueError to use them from inside of it: they would be both closed over and passed.
    """
    def __init__(self, taken: Sequence[Taken]) -> None:
        self.taken = taken

    def __enter__(self) -> None:
        for x in self.taken:
            x.lent = x.adapter.lend(x.value)

    def __exit__(self, *_: Any) -> None:
        for x in self.taken:
            x.adapter.restore(x.value, x.lent)


def write_back(taken: Sequence[Taken], changes: Iterable[Changed | None]) -> None:
    """Let the values have what changed of them."""
    for x, changed in zip(taken, changes, strict=True):
        if changed is not None:
            arrays = list(changed.arrays.values())
            if changed.kind == x.kind:
                arrays = [changed.arrays.get(i, a) for i, a in enumerate(x.arrays)]
            x.adapter.write_back(x.value, changed.kind, arrays)


def own_memory(taken: Sequence[Taken], leaves: Sequence[Any], donated: Sequence[int]) -> list[Any]:
    """The leaves; those of the values that are donated are theirs to give away, or copies."""
    leaves = list(leaves)
    for x in taken:
        for i in x.places:
            if i in donated:
                leaves[i] = x.adapter.own_memory(x.value, leaves[i])
    return leaves
