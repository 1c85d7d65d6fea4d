"""Key paths of pytrees, and words for where two structures differ.

Owns the one pytree registry of the package; everything else about pytrees is in `tree`.
"""
from __future__ import annotations

import inspect
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...runtime.binding import pytree

IsLeaf = Callable[[Any], bool]
KeyPath = tuple[Any, ...]
Names = tuple[str, str]

if TYPE_CHECKING:  # jaxlib ships no types
    PyTreeDef = Any
else:
    PyTreeDef = pytree.PyTreeDef
DictKey = pytree.DictKey
SequenceKey = pytree.SequenceKey
GetAttrKey = pytree.GetAttrKey
FlattenedIndexKey = pytree.FlattenedIndexKey

# Our own: jaxlib's default registry is one per process, and jax registers its classes there.
registry = pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True)
registry.__name__, registry.__module__ = "registry", __name__  # a pickled treedef finds its registry by these

_BARE = {DictKey: "key", SequenceKey: "idx", GetAttrKey: "name", FlattenedIndexKey: "key"}
_DICTS = (dict, OrderedDict, defaultdict)
_MAX_LINES = 8


# Paths

def one_level(x: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None:
    """`(key, child)` pairs and static data of a container, None for a leaf."""
    # Not registry.flatten_one_level_with_keys: in jaxlib 0.10 it repeats a namedtuple's first field name.
    level = registry.flatten_one_level(x)
    if level is None:
        return None
    pairs, _ = registry.flatten_with_path(x, lambda path, _: len(path) == 1)
    return tuple((path[0], child) for path, child in pairs), level[1]


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text, `['w1'][0].bias`; `simple` gives the bare keys: `w1/0/bias` with separator "/"."""
    if simple:
        return separator.join(str(getattr(k, _BARE[type(k)]) if type(k) in _BARE else k) for k in keys)
    return separator.join(map(str, keys))


def leaf_paths(tree: Any, is_leaf: IsLeaf | None = None, prefix: str = "") -> list[str]:
    """The key path of each leaf of a tree (or PyTreeDef) as text, after `prefix`."""
    stop = None if is_leaf is None else lambda _, node: is_leaf(node)
    tree, ok = _as_tree(tree)
    if not ok:
        return [f"{prefix}[<flat index {i}>]" for i in range(tree.num_leaves)]
    return [prefix + keystr(path) for path, _ in registry.flatten_with_path(tree, stop)[0]]


def arg_names(fun: Any, nargs: int, kwargs: Iterable[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Names for `nargs` positional and the given keyword arguments of a call of `fun`; never raises.

    `fun` is a callable or an `inspect.Signature`.  The second argument of `f(a, *rest)` is `rest[0]`, the
    keyword `b` of `f(**kw)` is `kw['b']`; where there is no signature, `args[0]` and `kwargs['b']`.
    """
    positional: list[str] = []
    by_name: set[str] = set()
    rest, keywords, taken = "args", "kwargs", 0
    try:
        sig = fun if isinstance(fun, inspect.Signature) else inspect.signature(fun)
        for p in sig.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                rest, taken = p.name, len(positional)
            elif p.kind is p.VAR_KEYWORD:
                keywords = p.name
            else:
                if p.kind is not p.KEYWORD_ONLY:
                    positional.append(p.name)
                if p.kind is not p.POSITIONAL_ONLY:
                    by_name.add(p.name)
    except Exception:  # builtins have no signature, and a name is never worth an error
        pass
    names = positional[:nargs] + [f"{rest}[{i - taken}]" for i in range(len(positional), nargs)]
    return names, {k: k if k in by_name else f"{keywords}[{k!r}]" for k in kwargs}


def arg_paths(fun: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> list[str]:
    """A name like `params['w1'][0]` for each leaf of `(args, kwargs)` in a call of `fun`; never raises."""
    kwargs = kwargs or {}
    try:
        names, by_keyword = arg_names(fun, len(args), kwargs)
        out = []
        for (where, which, *path), _ in registry.flatten_with_path((tuple(args), kwargs))[0]:
            name = names[which.idx] if where.idx == 0 else by_keyword[which.key]
            out.append(name + keystr(path))
        return out
    except Exception:
        try:
            return [f"argument leaf {i}" for i in range(registry.flatten((args, kwargs))[1].num_leaves)]
        except Exception:
            return []


# Differences

def structure_mismatch(what: str, a_tree: Any, b_tree: Any,
                       names: Names = ("the first", "the second"), root: str = "") -> str:
    """`what`, then a line for each place where the structures of two trees (or PyTreeDefs) differ.

    `root` is the name of the trees in the paths of these places.
    """
    return report(what, _differences(a_tree, b_tree, names, root=root))


def structure_differences(sentence: str, a_tree: Any, b_tree: Any, names: Names) -> list[str]:
    """A sentence for each place where the structures of two trees (or PyTreeDefs) differ.

    In `sentence`, {path} becomes the place, {a} and {b} what is there, and {why} in what they differ.
    """
    return _differences(a_tree, b_tree, names, sentence=sentence)


def described(x: Any) -> str:
    """`a tuple of length 2`: what a tree, or a PyTreeDef, is at its root."""
    return _describe(_as_tree(x)[0])


def prefix_errors(prefix: Any, full: Any, is_leaf: IsLeaf | None = None,
                  names: Names = ("the prefix", "the value"), root: str = "the tree",
                  skipped: int = 0) -> list[str]:
    """Words for each place where `prefix` is not a pytree prefix of `full`; `is_leaf` is for the prefix.

    `root` is the name of the prefix in the paths of these places, which lack their first `skipped` keys.
    """
    return _differences(prefix, full, names, is_leaf, True, root, skipped)


def report(title: str, lines: list[str]) -> str:
    """`title` and `lines` as one message, cut where it gets long."""
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"and at {len(lines) - _MAX_LINES} more places"]
    return "\n  ".join([f"{title}:" if lines else title, *lines])


_WHY = {"types": "their Python types differ", "pytree metadata": "the pytree node metadata does not match",
        "numbers of pytree children": "the numbers of children do not match"}


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def _as_tree(x: Any) -> tuple[Any, bool]:
    """A tree of the structure `x` if that is a PyTreeDef, else `x`; False if a class loses placeholders."""
    if not isinstance(x, pytree.PyTreeDef):
        return x, True
    try:
        tree = x.unflatten([_Leaf() for _ in range(x.num_leaves)])
        whole = registry.flatten(tree)[1].num_leaves == x.num_leaves
        return (tree if whole else x), whole
    except Exception:
        return x, False


def _differences(a: Any, b: Any, names: Names, is_leaf: IsLeaf | None = None,
                 prefix: bool = False, root: str = "", skipped: int = 0, sentence: str = "") -> list[str]:
    (a, a_ok), (b, b_ok) = _as_tree(a), _as_tree(b)
    if not (a_ok and b_ok):
        a, b = (x if isinstance(x, pytree.PyTreeDef) else registry.flatten(x)[1] for x in (a, b))
        return [] if a == b else [f"{names[0]} is {a}", f"{names[1]} is {b}"]
    out: list[str] = []

    def differ(path: KeyPath, kind: str, left: str, right: str, note: str = "") -> None:
        if sentence:
            why = _WHY.get(kind, "the lengths do not match")
            out.append(sentence.format(path=keystr(path), a=left, b=right, why=why + note))
            return
        where = f"at {root}{keystr(path)}: " if path or root else ""
        if prefix:
            where = (f"pytree structure error: different {kind} at key path\n    {root}"
                     f"{keystr(path[skipped:])}\nAt that key path, ")
        out.append(f"{where}{names[0]} has {left}, {names[1]} has {right}{note}")

    def visit(a: Any, b: Any, path: KeyPath) -> None:
        below_a = None if is_leaf is not None and is_leaf(a) else one_level(a)
        if prefix and below_a is None:
            return None
        below_b = one_level(b)
        if below_a is None and below_b is None:
            return None
        if below_a is None or below_b is None or type(a) is not type(b):
            note = " (None is an empty container, not a leaf)" if a is None or b is None else ""
            return differ(path, "types", _describe(a), _describe(b), note)
        if type(a) in _DICTS and a.keys() != b.keys():
            only = [(name, [k for k in x if k not in y]) for name, x, y in zip(names, (a, b), (b, a))]
            note = "".join(f"; only {name} has {_listed(keys)}" for name, keys in only if keys)
            kind = "pytree metadata" if len(a) == len(b) else "numbers of pytree children"
            differ(path, kind, _describe(a), _describe(b), f"{note} (Dict key mismatch)")
            for k in a:
                if k in b:
                    visit(a[k], b[k], (*path, DictKey(k)))
            return None
        children_a, children_b = list(below_a[0]), list(below_b[0])
        if len(children_a) != len(children_b):
            kind = "numbers of pytree children"
            if type(a) in (list, tuple):
                kind = f"lengths of {type(a).__name__}"
            return differ(path, kind, _describe(a), _describe(b))
        if not _same(below_a[1], below_b[1]):
            differ(path, "pytree metadata", *(f"{_describe(x)} with static data {_short(below[1])}"
                                              for x, below in ((a, below_a), (b, below_b))))
        for (key, x), (_, y) in zip(children_a, children_b):
            visit(x, y, (*path, key))
        return None

    visit(a, b, ())
    return out


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # static data that cannot be compared: C++ will have said so
        return True


def _describe(x: Any) -> str:
    kind = type(x)
    if x is None:
        return "None"
    if kind is _Leaf:
        return "a leaf"
    level = registry.flatten_one_level(x)
    if level is None:
        return f"a leaf of type {kind.__name__}"
    if kind in (list, tuple):
        return f"a {kind.__name__} of length {len(x)}"
    n = len(x) if kind in _DICTS else len(list(level[0]))
    one, many = ("key", "keys") if kind in _DICTS else ("child", "children")
    article = "an" if kind.__name__[0] in "AEIOaeio" else "a"
    return f"{article} {kind.__name__} with {n} {one if n == 1 else many}"


def _listed(keys: list) -> str:
    shown = ", ".join(_short(k) for k in keys[:4])
    return f"{shown} and {len(keys) - 4} more" if len(keys) > 4 else shown


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 120 else text[:117] + "..."


# Failures of flattening

def flatten_error(error: Exception, tree: Any) -> Exception:
    """What to raise for an exception out of `registry.flatten(tree)`: one that says where and why."""
    if isinstance(error.__cause__, RecursionError):
        return RecursionError("the pytree is nested too deeply to flatten, or contains itself")
    if isinstance(error.__cause__, TypeError) and "dictionary keys" in str(error):
        found = _unsortable(tree, ())
        if found is not None:
            return ValueError(unsortable_text(*found))
    return error


def _unsortable(tree: Any, path: KeyPath) -> tuple[dict, KeyPath] | None:
    """The first dict in `tree` whose keys have no order, and its path."""
    try:
        level = one_level(tree)
    except (ValueError, TypeError):
        return (tree, path) if isinstance(tree, dict) else None
    found = (_unsortable(child, (*path, key)) for key, child in (level[0] if level else ()))
    return next(filter(None, found), None)


def unsortable_text(d: dict, path: KeyPath = ()) -> str:
    kinds = ", ".join(sorted({type(key).__name__ for key in d}))
    where = f" at {keystr(path)}" if path else ""
    return ("Comparator raised exception while sorting pytree dictionary keys: the keys of the "
            f"dict{where} cannot be sorted: they are of the types {kinds}. A pytree dict is "
            "flattened in the order of its sorted keys: use keys of one type, or an OrderedDict")
