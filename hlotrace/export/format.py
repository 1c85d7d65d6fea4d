"""Exported functions as bytes: the tables that `Exported.serialize` writes, and `deserialize` and JAX read.

The layout was learned from artifacts that JAX 0.10.2 and 0.12 wrote; each reads what is written here.  Types
and shardings are there twice: in a list for each argument (slots 3, 5, 7, 8, which older readers know), and
each once, with positions (slots 19 to 25).
"""
from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..core import dtypes
from ..core.avals import ShapedArray
from ..core.pytrees import pytree
from ..core.symbolic.scope import SymbolicScope, parse
from ..primitives.arrays.random import KEY
from ..sharding.mesh import AbstractMesh, AxisType, Mesh
from ..sharding.named import NamedSharding
from ..sharding.spec import PartitionSpec
from .flatbuffers import Table, read, write

VERSION = 3
_PLATFORM, _CUSTOM_CALL = 0, 1      # kinds of safety checks
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)

_T = TypeVar("_T")

_TREE: Table = Table(kind="B", children=[lambda: _TREE], keys=[str], name=str, static=bytes)
_AVAL = Table(kind="B", shape=[str], dtype="B", memory="B")
_MESH = Table(sizes=["I"], names=[str], types=["B"], device=Table(kind=str, cores="I", platform=str))
_NAMED = Table(mesh=_MESH, spec=Table(entries=[Table(axes=[str])], unreduced=[str], reduced=[str]),
               memory=str)
_SHARDING = Table(kind="B", hlo=bytes, named=_NAMED)
_EFFECT = Table(name=str)
_CHECK = Table(kind="B", target=str)
_EXPORTED: Table = Table(
    version="H", fun_name=str, in_tree=_TREE, in_avals=[_AVAL], out_tree=_TREE, out_avals=[_AVAL],
    few_devices="H", in_shardings=[_SHARDING], out_shardings=[_SHARDING], platforms=[str],
    ordered_effects=[_EFFECT], unordered_effects=[_EFFECT], disabled_checks=[_CHECK], module=bytes,
    calling_convention="H", kept=["H"], uses_constants="?", vjp=lambda: _EXPORTED, nr_devices="I",
    avals=[_AVAL], meshes=[_MESH], named=[_NAMED], in_types=["I"], out_types=["I"], in_named=["I"],
    out_named=["I"], by=str)

_NAMES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
    complex128 bfloat16 int4 uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
    float8_e5m2fnuz float0 float8_e4m3 float8_e3m4 float8_e8m0fnu float4_e2m1fn"""
_DTYPES = (*[dtypes.float0 if name == "float0" else dtypes.as_dtype(name) for name in _NAMES.split()], KEY)


# --- structures ---------------------------------------------------------------------------------------------

class Node:
    """How nodes of a class are written: their name, static data to bytes and back, a maker of instances."""
    __slots__ = ("cls", "name", "to_bytes", "from_bytes", "make")

    def __init__(self, cls: type, name: str, to_bytes: Callable[[Any], bytes],
                 from_bytes: Callable[[bytes], Any], make: Callable[[Any, Any], Any] | None) -> None:
        self.cls, self.name, self.to_bytes, self.from_bytes, self.make = cls, name, to_bytes, from_bytes, make


_nodes_by_class: dict[type, Node] = {}
_nodes_by_name: dict[str, Node] = {}
_MEND = ("Use `export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")


def register_pytree_node_serialization(nodetype: type[_T], *, serialized_name: str,
                                       serialize_auxdata: Callable[[Any], bytes],
                                       deserialize_auxdata: Callable[[bytes], Any],
                                       from_children: Callable[[Any, Any], Any] | None = None) -> type[_T]:
    """Let exported functions take and give containers of a class when they are serialized.

    Args:
        nodetype: the class, a registered pytree node.
        serialized_name: its name in artifacts; where one is read it finds the class by that name.
        serialize_auxdata: its static data to bytes.
        deserialize_auxdata: bytes to its static data.
        from_children: (static data, children) -> an instance, where that is not how the class was registered.
    Returns:
        `nodetype`.
    Raises:
        ValueError: where the class or the name is registered already, or the class is no pytree node.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, xs: Pair(*xs))
    >>> _ = jax.export.register_pytree_node_serialization(
    ...     Pair, serialized_name="docs.Pair", serialize_auxdata=lambda _: b"",
    ...     deserialize_auxdata=lambda _: None)
    >>> exported = jax.export.export(jax.jit(lambda p: p.a + p.b))(Pair(1., 2.))
    >>> jax.export.deserialize(exported.serialize()).call(Pair(3., 4.))
    Array(7., dtype=float32)
    """
    if from_children is None and not _is_namedtuple(nodetype) and not pytree.is_tree_node(nodetype):
        raise ValueError(f"register_pytree_node_serialization: {nodetype!r} is no pytree node: if "
                         "`from_children` is not given, call jax.tree_util.register_pytree_node for it first")
    tables: Sequence[dict[Any, Node]] = (_nodes_by_class, _nodes_by_name)
    for table, key in zip(tables, (nodetype, serialized_name)):
        if key in table:
            known = table[key]
            raise ValueError(f"Duplicate serialization registration for {key!r}: {known.cls!r} is registered "
                             f"already, with serialized_name {known.name!r}. Choose another name, and "
                             "register each class once.")
    node = Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _nodes_by_class[nodetype] = _nodes_by_name[serialized_name] = node
    return nodetype


def register_namedtuple_serialization(nodetype: Any, *, serialized_name: str) -> Any:
    """As `register_pytree_node_serialization`, for a `collections.namedtuple`.

    A reader's must have the same fields.  ValueError for another class, or one that is registered already.

    >>> import collections
    >>> State = collections.namedtuple("State", "position speed")
    >>> _ = jax.export.register_namedtuple_serialization(State, serialized_name="docs.State")
    >>> step = jax.jit(lambda s: s._replace(position=s.position + s.speed))
    >>> exported = jax.export.export(step)(State(0., 2.))
    >>> jax.export.deserialize(exported.serialize()).call(State(1., 2.)).position
    Array(3., dtype=float32)
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(f"register_namedtuple_serialization: {nodetype!r} is no collections.namedtuple. Use "
                         "`export.register_pytree_node_serialization` for other classes.")

    def check(raw: bytes) -> None:
        fields = tuple(json.loads(raw))
        if fields != nodetype._fields:
            raise ValueError(f"the artifact has the namedtuple {serialized_name!r} with the fields {fields}, "
                             f"but {nodetype!r} has {nodetype._fields}: register one with the fields that "
                             "it had")
    return register_pytree_node_serialization(
        nodetype, serialized_name=serialized_name, deserialize_auxdata=check,
        serialize_auxdata=lambda _: json.dumps(nodetype._fields).encode())


def _is_namedtuple(cls: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


register_pytree_node_serialization(collections.OrderedDict, serialized_name="collections.OrderedDict",
                                   serialize_auxdata=lambda keys: json.dumps(keys).encode(),
                                   deserialize_auxdata=lambda raw: tuple(json.loads(raw)))


def _from_tree(treedef: pytree.PyTreeDef) -> dict[str, Any]:
    if treedef.node_data() is None:
        return {}
    cls, static = treedef.node_data()
    children = [_from_tree(child) for child in treedef.children()]
    if cls is type(None):
        return {"kind": _NONE}
    if cls in (tuple, list):
        return {"kind": _TUPLE if cls is tuple else _LIST, "children": children}
    if cls is dict:
        for key in static:
            if not isinstance(key, str):
                raise TypeError("serialize: dictionaries among arguments and results need keys that are "
                                f"strings; found {key!r} of type {type(key).__name__}. Rename it to "
                                f"{str(key)!r}, or use a list.")
        return {"kind": _DICT, "children": children, "keys": static}
    if cls not in _nodes_by_class:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{cls}`. {_MEND}")
    node = _nodes_by_class[cls]
    raw = node.to_bytes(static)
    if not isinstance(raw, (bytes, bytearray)):
        raise ValueError(f"The custom serialization function for `node_type` {cls} must return a `bytes` "
                         f"object. It returned a {type(raw)}.")
    return {"kind": _CUSTOM, "children": children, "name": node.name, "static": raw}


def _to_tree(table: dict[str, Any]) -> pytree.PyTreeDef:
    children = [_to_tree(child) for child in table["children"] or ()]

    def made(cls: type, static: Any = None) -> pytree.PyTreeDef:
        return pytree.PyTreeDef.from_node_data_and_children(pytree.registry, (cls, static), children)
    kind = table["kind"]
    if kind in (_LEAF, _NONE):
        return pytree.tree_structure(0 if kind == _LEAF else None)
    if kind in (_TUPLE, _LIST):
        return made(tuple if kind == _TUPLE else list)
    if kind == _DICT:
        return made(dict, table["keys"] or [])
    node = _nodes_by_name.get(table["name"])
    if node is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef containing an unregistered type `{table['name']}`. "
                         f"{_MEND}")
    static = node.from_bytes(table["static"] or b"")
    if node.make is None:
        return made(node.cls, static)
    return pytree.tree_structure(node.make(static, [c.unflatten([0] * c.num_leaves) for c in children]))


# --- types and shardings ------------------------------------------------------------------------------------

def _from_aval(aval: ShapedArray) -> dict[str, Any]:
    if aval.dtype not in _DTYPES:
        raise NotImplementedError(f"serialize: an array of dtype {aval.dtype} has no place in the format")
    return {"shape": [str(d) for d in aval.shape], "dtype": _DTYPES.index(aval.dtype), "memory": 1}


def _to_aval(scope: SymbolicScope, table: dict[str, Any]) -> ShapedArray:
    if table["dtype"] >= len(_DTYPES):
        raise NotImplementedError(f"deserialize: an array whose dtype has the number {table['dtype']}, which "
                                  "is not known")
    return ShapedArray(tuple([parse(d, scope) for d in table["shape"] or ()]), _DTYPES[table["dtype"]])


def _from_mesh(mesh: Mesh | AbstractMesh) -> dict[str, Any]:
    return {"sizes": mesh.axis_sizes, "names": mesh.axis_names, "types": [t.value for t in mesh.axis_types]}


def _from_named(sharding: NamedSharding) -> dict[str, Any]:
    entries = [{"axes": sharding.spec.axes(dim)} for dim in range(len(sharding.spec))]
    spec = sharding.spec
    return {"mesh": _from_mesh(sharding.mesh), "memory": sharding._kind, "spec": {
        "entries": entries, "unreduced": sorted(spec.unreduced), "reduced": sorted(spec.reduced)}}


def _to_named(table: dict[str, Any]) -> NamedSharding:
    mesh = AbstractMesh(tuple(table["mesh"]["sizes"] or ()), tuple(table["mesh"]["names"] or ()),
                        tuple(AxisType(t) for t in table["mesh"]["types"] or ()))
    kind = table["memory"]
    given = table["spec"]
    spec = PartitionSpec(*(tuple(e["axes"] or ()) for e in given["entries"] or ()),
                         unreduced={*(given["unreduced"] or ())}, reduced={*(given["reduced"] or ())})
    return NamedSharding(mesh, spec, kind if kind != "device" else None)


def _placed(shardings: Iterable[NamedSharding | None]) -> list[dict[str, Any]]:
    return [{} if s is None else {"named": _from_named(s)} for s in shardings]


def _shardings(tables: Sequence[dict[str, Any]] | None) -> list[NamedSharding | None]:
    if any(t["kind"] for t in tables or ()):
        raise NotImplementedError("deserialize: the artifact says its shardings as HloSharding, as versions "
                                  "of JAX before 0.10 did; export it again with a newer one")
    return [_to_named(t["named"]) if t["named"] else None for t in tables or ()]


def _typed(avals: list[ShapedArray], shardings: list[NamedSharding | None]) -> list[ShapedArray]:
    """The types with what the shardings say of Explicit mesh axes."""
    return [a if s is None else s.typed(a) for a, s in zip(avals, shardings or [None] * len(avals))]


# --- the whole ----------------------------------------------------------------------------------------------

def to_table(exported: Any, vjp: dict[str, Any] | None = None) -> dict[str, Any]:
    """The dictionary of an Exported, with that of its derivative."""
    avals = list(dict.fromkeys(a.strip_weak_type() for a in (*exported.in_avals, *exported.out_avals)))
    places = (exported._in_named_shardings, exported._out_named_shardings)
    named = list(dict.fromkeys(s for side in places for s in side if s is not None))
    in_types, out_types = ([avals.index(a.strip_weak_type()) for a in side]
                           for side in (exported.in_avals, exported.out_avals))
    in_named, out_named = ([0 if s is None else named.index(s) + 1 for s in side] for side in places)
    checks = [{"kind": _CUSTOM_CALL, "target": c.is_custom_call()} if c.is_custom_call()
              else {"kind": _PLATFORM} for c in exported.disabled_safety_checks]
    return {
        "version": VERSION, "fun_name": exported.fun_name, "in_tree": _from_tree(exported.in_tree),
        "in_avals": [*map(_from_aval, exported.in_avals)], "out_tree": _from_tree(exported.out_tree),
        "out_avals": [*map(_from_aval, exported.out_avals)], "in_shardings": _placed(places[0]),
        "out_shardings": _placed(places[1]), "platforms": exported.platforms, "ordered_effects": (),
        "unordered_effects": (), "disabled_checks": checks, "module": exported.mlir_module_serialized,
        "calling_convention": exported.calling_convention_version, "kept": exported.module_kept_var_idx,
        "uses_constants": exported.uses_global_constants, "vjp": vjp, "nr_devices": exported.nr_devices,
        "avals": [*map(_from_aval, avals)],
        "meshes": [*map(_from_mesh, dict.fromkeys(s.mesh for s in named))],
        "named": [*map(_from_named, named)], "in_types": in_types, "out_types": out_types,
        "in_named": in_named, "out_named": out_named, "by": "hlotrace"}


def to_bytes(table: dict[str, Any]) -> bytearray:
    return bytearray(write(table, _EXPORTED))


def from_bytes(blob: Any) -> dict[str, Any]:
    """The dictionary of an artifact.  ValueError where the bytes are none."""
    table = read(blob, _EXPORTED)
    if not table["in_tree"] or not table["out_tree"] or not table["module"]:
        raise ValueError("a FlatBuffer, but of no exported function: its program is missing")
    return table


def fields(table: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an Exported, from the dictionary of an artifact; ValueError where it is damaged."""
    try:
        return _fields(table)
    except (LookupError, AttributeError, TypeError) as error:
        raise ValueError("deserialize: the artifact was changed: its tables do not fit together "
                         f"({error})") from error


def _fields(table: dict[str, Any]) -> dict[str, Any]:
    for effect in (*(table["ordered_effects"] or ()), *(table["unordered_effects"] or ())):
        raise NotImplementedError(f"deserialize: {table['fun_name']} has the effect {effect['name']!r}, "
                                  "which needs code of the process that exported it")
    scope = SymbolicScope()
    if table["avals"]:
        avals = [_to_aval(scope, a) for a in table["avals"]]
        ins, outs = ([avals[i] for i in table[side] or ()] for side in ("in_types", "out_types"))
    else:
        ins, outs = ([_to_aval(scope, a) for a in table[side] or ()] for side in ("in_avals", "out_avals"))
    in_places, out_places = (_shardings(table[side]) for side in ("in_shardings", "out_shardings"))
    return {
        "fun_name": table["fun_name"] or "", "in_tree": _to_tree(table["in_tree"]),
        "out_tree": _to_tree(table["out_tree"]),
        "_in_named_shardings": in_places, "_out_named_shardings": out_places,
        "in_avals": _typed(ins, in_places), "out_avals": _typed(outs, out_places),
        "nr_devices": table["nr_devices"] or table["few_devices"] or 1, "platforms": table["platforms"] or (),
        "disabled_safety_checks": [c["target"] if c["kind"] == _CUSTOM_CALL else None
                                   for c in table["disabled_checks"] or ()],
        "mlir_module_serialized": table["module"], "calling_convention_version": table["calling_convention"],
        "module_kept_var_idx": table["kept"] or (), "uses_global_constants": bool(table["uses_constants"])}
