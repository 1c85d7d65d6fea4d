"""Pytrees: nested containers seen as a list of leaves and a structure.

The work is done in C++ by jaxlib's pytree registry: `tree_paths` owns one and puts key paths and structural
differences into words, this file names what can be done with it.  Neither knows of arrays or transformations.
"""
from __future__ import annotations

import dataclasses
import functools
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from .key_paths import (  # noqa: F401 - offered from here too
    DictKey, FlattenedIndexKey, GetAttrKey, IsLeaf, KeyPath, PyTreeDef, SequenceKey, arg_names, arg_paths,
    described, flatten_error, keystr, leaf_paths, one_level, prefix_errors, pytree, registry, report,
    structure_differences, structure_mismatch, unsortable_text)

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
           "all_leaves", "build_tree", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node",
           "keystr", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
           "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "tree_all",
           "tree_broadcast", "tree_flatten", "tree_flatten_with_path", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
           "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten",
           "treedef_children", "treedef_is_leaf", "treedef_is_strict_leaf", "treedef_tuple"]

T = TypeVar("T")

_registries = [registry]
_registered: list[tuple[str, tuple]] = []
_MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "<no value>"})()
_flatten = registry.flatten
_flatten_with_path = registry.flatten_with_path


# Flattening and its inverse

def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of `tree`, in order, and its structure.  Descent stops where `is_leaf(node)` holds."""
    try:
        return _flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        raise flatten_error(error, tree) from error.__cause__


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of structure `treedef` that holds `leaves`."""
    try:
        return treedef.unflatten(leaves)
    except ValueError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:     # of a node's own function
            raise
        raise ValueError(f"tree_unflatten: {str(error).rstrip('.')}: {treedef}") from None
    except AttributeError:
        if isinstance(treedef, pytree.PyTreeDef):
            raise
        raise TypeError("tree_unflatten takes (treedef, leaves), but the first argument is of type "
                        f"{type(treedef).__name__}, not a PyTreeDef") from None


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of `tree`, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """The structure of `tree`."""
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """`(path, leaf)` pairs and the structure; `is_leaf` is given `(path, node)` if `is_leaf_takes_path`."""
    stop = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        stop = lambda path, node: is_leaf(node)
    try:
        return _flatten_with_path(tree, stop)
    except (ValueError, SystemError) as error:
        raise flatten_error(error, tree) from error.__cause__


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """`(path, leaf)` pairs; see `tree_flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# Mapping and reducing

def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`f` applied to each leaf of `tree`, together with the subtrees of each of `rest` at the same place."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not callable(f):
        raise TypeError("tree_map takes (f, tree, *rest), but the first argument, of type "
                        f"{type(f).__name__}, is no function")
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = _columns("tree_map", treedef, tree, rest, is_leaf)
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns)])


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> Any:
    """As `tree_map`, with the leaf's key path as the first argument of `f`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten([f(path, x) for path, x in pairs])
    columns = _columns("tree_map_with_path", treedef, tree, rest, None if is_leaf_takes_path else is_leaf)
    return treedef.unflatten([f(*pair, *xs) for pair, *xs in zip(pairs, *columns)])


def _columns(what: str, treedef: PyTreeDef, tree: Any, rest: tuple, is_leaf: IsLeaf | None) -> list[list]:
    columns = []
    for i, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            names = ("the first tree", f"tree {i + 2}")
            lines = prefix_errors(tree, other, is_leaf, names, f"{what} tree")
            if not lines:  # it came from a user's own flatten function
                raise
            raise ValueError(report(f"{what}: {names[1]} does not have the structure of {names[0]}",
                                     lines)) from None
    return columns


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING,
                is_leaf: IsLeaf | None = None) -> Any:
    """`functools.reduce` over the leaves; without `initializer`, a tree without leaves is a TypeError."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves and initializer is _MISSING:
        raise TypeError("reduce() of empty iterable with no initial value: the tree has no leaves; give one "
                        "for that case, as in tree.reduce(function, tree, 0.0)")
    return functools.reduce(function, leaves, *(() if initializer is _MISSING else (initializer,)))


def tree_reduce_associative(operation: Callable[[T, T], T], tree: Any, *, identity: T = _MISSING,
                            is_leaf: IsLeaf | None = None) -> T:
    """The leaves combined by an associative `operation` as a balanced binary tree of calls."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _MISSING:
            raise TypeError("tree_reduce_associative: Must specify identity for parallel reduction of empty "
                            "sequence: the tree has no leaves")
        return identity

    def combine(lo: int, hi: int) -> T:
        if hi - lo == 1:
            return leaves[lo]
        mid = (lo + hi) // 2
        return operation(combine(lo, mid), combine(mid, hi))
    return combine(0, len(leaves))


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether every leaf is true."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """An outer tree of inner trees as an inner tree of outer trees; `inner_treedef=None` infers it."""
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise ValueError("tree_transpose: inner_treedef must be given where outer_treedef has no leaves")
        inner_treedef = tree_structure(subtrees[0])
    expected = outer_treedef.compose(inner_treedef)
    if treedef != expected and not _tells_its_leaves(treedef, outer_treedef, expected.num_leaves):
        raise TypeError(structure_mismatch(
            "tree_transpose: Mismatch: the tree is not an outer tree of inner trees", expected, treedef,
            ("the outer tree of inner trees", "the given tree")))
    n = inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[i::n]) for i in range(n)])


def _tells_its_leaves(treedef: PyTreeDef, outer: PyTreeDef, n: int) -> bool:
    """Are both nodes of one class of the user's?  It may hold flat leaves and their structure as its data."""
    root, wanted = treedef.node_data(), outer.node_data()
    return (root is not None and wanted is not None and root[0] is wanted[0] and treedef.num_leaves == n
            and not issubclass(root[0], (tuple, list, dict, type(None))))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`full_tree` with each leaf replaced by the leaf of `prefix_tree` that covers it."""
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """For each leaf of `full_tree`, the leaf of `prefix_tree` that covers it; `is_leaf` is for the prefix."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError:
        lines = prefix_errors(prefix_tree, full_tree, is_leaf, root="broadcast_prefix prefix_tree")
        if not lines:
            raise
        raise ValueError(report("the tree is not a pytree prefix of the value it goes with", lines)) from None
    out: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees):
        out += [leaf] * tree_structure(subtree).num_leaves
    return out


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, skipped: int = 0) -> list[Any]:
    """For each leaf of `treedef`, the leaf of the prefix `axis_tree` that covers it; None is a leaf.

    Errors leave out the first `skipped` keys of paths.
    """
    if axis_tree is None or type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    axes, axis_def = tree_flatten(axis_tree, _is_none)
    if axis_def == treedef:
        return axes
    out: list[Any] = []
    if _spread(axis_def, treedef, iter(axes), out):
        return out
    lines = prefix_errors(axis_tree, treedef, _is_none, (name, "the value"), name, skipped)
    raise ValueError(report(f"{name} specification must be a tree prefix of the corresponding value", lines))


def _spread(prefix: PyTreeDef, full: PyTreeDef, axes: Iterator[Any], out: list[Any]) -> bool:
    """Append the axis of each leaf of `full` to `out`; False where the structures do not fit."""
    node = prefix.node_data()
    if node is None:
        out += [next(axes)] * full.num_leaves
        return True
    inner, outer = prefix.children(), full.children()
    return (node == full.node_data() and len(inner) == len(outer)
            and all(_spread(p, f, axes, out) for p, f in zip(inner, outer)))


def _is_none(x: Any) -> bool:
    return x is None


# Structures

def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether each element of `iterable` is itself a leaf.  None is a container, not a leaf."""
    if is_leaf is None:
        return pytree.all_leaves(registry, iterable)
    return all(is_leaf(x) or treedef_is_strict_leaf(tree_structure(x)) for x in iterable)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the immediate children."""
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures."""
    return pytree.treedef_tuple(registry, list(treedefs))


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single node: a leaf or an empty container."""
    return treedef.num_nodes == 1


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single leaf."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of structure `treedef` out of `xs`, in which each container may be any iterable."""
    return treedef.from_iterable_tree(xs)


def is_tree_node(typ: type) -> bool:
    """Whether instances of the class `typ` are containers rather than leaves."""
    return registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The immediate children and the static data of a container; a leaf is a ValueError."""
    level = registry.flatten_one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)} is a pytree leaf, which has no children")
    return level


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """As `flatten_one_level`, with `(key, child)` pairs."""
    level = one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)} is a pytree leaf, which has no children")
    return level


# Registering classes

def mirror(other: Any) -> None:
    """Register in `other`, a PyTreeRegistry, every class registered here so far and from now on."""
    for method, args in _registered:
        getattr(other, method)(*args)
    _registries.append(other)


def _register(method: str, nodetype: Any, *args: Any) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"only a class can be registered as a pytree node, not {nodetype!r}")
    for target in _registries:
        getattr(target, method)(nodetype, *args)
    _registered.append((method, (nodetype, *args)))


def register_pytree_node(nodetype: type[T], flatten_func: Callable[[T], tuple[Iterable[Any], Any]],
                         unflatten_func: Callable[[Any, Any], T],
                         flatten_with_keys_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None
                         ) -> None:
    """Make `nodetype` a container.

    `flatten_func(obj)` gives `(children, static)`, where `static` is hashable and comparable;
    `unflatten_func(static, children)` rebuilds it and must accept any objects as children;
    `flatten_with_keys_func(obj)` gives `((key, child) pairs, static)`.
    """
    _register("register_node", nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def registered() -> dict[type, Callable[[Any, Any], Any]]:
    """The classes of containers that were registered, each with what makes one: of (static, children)."""
    found: dict[type, Callable[[Any, Any], Any]] = {}
    for method, (kind, *args) in _registered:
        of_fields = functools.partial(_made_of_fields, kind, *args)
        found[kind] = args[1] if method == "register_node" else of_fields
    return found


def _made_of_fields(kind: Any, data: Sequence[str], meta: Sequence[str], static: Any,
                    children: Iterable[Any]) -> Any:
    return kind(**dict(zip(data, children)), **dict(zip(meta, static)))


def register_pytree_with_keys(nodetype: type[T], flatten_with_keys: Callable[[T], tuple[Iterable[Any], Any]],
                              unflatten_func: Callable[[Any, Any], T],
                              flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None) -> None:
    """As `register_pytree_node`, from the function with keys; `flatten_func` is a faster one without."""
    def without_keys(obj: T) -> tuple[Iterable[Any], Any]:
        pairs, static = flatten_with_keys(obj)
        return [child for _, child in pairs], static
    _register("register_node", nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Decorator: register a class by its methods `tree_flatten` and, a classmethod, `tree_unflatten`."""
    register_pytree_node(cls, _method(cls, "tree_flatten"), _classmethod(cls))
    return cls


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """Decorator: as `register_pytree_node_class`, by `tree_flatten_with_keys` and `tree_unflatten`."""
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, _method(cls, "tree_flatten_with_keys"), _classmethod(cls), flatten)
    return cls


def _method(cls: Any, name: str) -> Callable[[Any], Any]:
    if not hasattr(cls, name):
        raise AttributeError(f"to be registered as a pytree node, {cls!r} needs a method `{name}`")
    return operator.methodcaller(name)


def _classmethod(cls: Any) -> Callable[[Any, Any], Any]:
    _method(cls, "tree_unflatten")
    return cls.tree_unflatten


def register_static(cls: type[T]) -> type[T]:
    """Decorator: instances have no leaves, they are structure; they need `__eq__` and `__hash__`."""
    register_pytree_node(cls, lambda obj: ((), obj), lambda obj, _: obj)
    return cls


def register_dataclass(nodetype: type[T], data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()) -> type[T]:
    """Make a dataclass a container: `data_fields` are its children, `meta_fields` static.

    Left out, they are read off the dataclass: a field made with `tree.static()` (metadata `static=True`) is
    static, every other one a child.  `drop_fields` are neither and take their defaults when rebuilt.
    """
    is_dataclass = isinstance(nodetype, type) and dataclasses.is_dataclass(nodetype)
    fields: Sequence[Any] = dataclasses.fields(cast(Any, nodetype)) if is_dataclass else ()
    if data_fields is None and meta_fields is None:
        if not is_dataclass:
            raise TypeError("register_dataclass: data_fields and meta_fields are required when nodetype is "
                            f"not a dataclass. Got {nodetype=}.")
        kept = [f for f in fields if f.name not in drop_fields]
        data_fields = [f.name for f in kept if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in kept if f.metadata.get("static", False)]
    elif data_fields is None or meta_fields is None:
        raise TypeError("register_dataclass: data_fields and meta_fields must both be specified when either "
                        f"is specified. Got {data_fields=} {meta_fields=}.")
    data, meta = list(data_fields), list(meta_fields)
    if both := sorted(set(data) & set(meta)):
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{{{str(both)[1:-1]}}}.")
    if is_dataclass:
        named = set(data) | set(meta)
        wanted = {f.name for f in fields if f.init} - set(drop_fields)
        title = (f"register_dataclass: {nodetype.__name__}: data_fields and meta_fields must include all "
                 "dataclass fields with ``init=True`` and only them. ")
        if missing := wanted - named:
            raise ValueError(f"{title}Missing fields: {missing}. Add them to drop_fields if they may be "
                             "lost.")
        if extra := named - wanted:
            raise ValueError(f"{title}Unexpected fields: {extra}.")
    _register("register_dataclass_node", nodetype, data, meta)
    return nodetype


def static(**kwargs: Any) -> Any:
    """`dataclasses.field(**kwargs)` for a field that `register_dataclass` shall take as static."""
    kwargs["metadata"] = {**(kwargs.get("metadata") or {}), "static": True}
    return dataclasses.field(**kwargs)


def _sorted_keys(d: dict) -> list:
    try:
        return sorted(d)
    except TypeError:
        raise ValueError(unsortable_text(d, ())) from None


def _with_dict_keys(keys: Iterable[Any], d: dict) -> list[tuple[Any, Any]]:
    return [(DictKey(k), d[k]) for k in keys]


def _flatten_defaultdict(d: defaultdict) -> tuple[Iterable[Any], Any]:
    keys = _sorted_keys(d)
    return _with_dict_keys(keys, d), (d.default_factory, tuple(keys))


register_pytree_node(OrderedDict, lambda d: (list(d.values()), tuple(d)),
                     lambda keys, xs: OrderedDict(zip(keys, xs)), lambda d: (_with_dict_keys(d, d), tuple(d)))
register_pytree_with_keys(defaultdict, _flatten_defaultdict,
                          lambda static, xs: defaultdict(static[0], zip(static[1], xs)))


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are children, its function is static."""

    def __new__(cls, /, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):  # functools would merge the two: inner arguments stay static
            func = _Whole(func)
        return super().__new__(cls, func, *args, **kw)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partial):
            return NotImplemented
        theirs: dict[Any, Any] = {**dict(enumerate(other.args)), **other.keywords}
        ours: dict[Any, Any] = {**dict(enumerate(self.args)), **self.keywords}
        return self.func == other.func and ours.keys() == theirs.keys() and all(
            x is theirs[key] or (x == theirs[key]) is True for key, x in ours.items())     # no arrays

    def __hash__(self) -> int:
        return hash((self.func, len(self.args), frozenset(self.keywords)))


@dataclasses.dataclass(frozen=True, repr=False)
class _Whole:
    """A callable that functools.partial does not take apart."""
    fun: Callable[..., Any]

    def __call__(self, /, *args: Any, **kw: Any) -> Any:
        return self.fun(*args, **kw)

    def __repr__(self) -> str:
        return repr(self.fun)


Partial.__module__ = "hlotrace.tree_util"  # where users find it, and pickle
register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func),
                     lambda func, xs: Partial(func, *xs[0], **xs[1]))
