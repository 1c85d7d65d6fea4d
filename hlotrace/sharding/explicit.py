"""Types over Explicit mesh axes: from the shardings of operands, those of results, or an error.

A primitive says by its axis map (`core/axes.py`) which axis of a result is which axis of an operand; what
splits the operand's axis splits the result's.  One without an axis map has a rule `sharding`.  A value that
no Explicit axis splits goes with any other.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..core import dtypes
from ..core.avals import ShapedArray
from ..core.axes import AxisMap
from ..core.errors import ShardingTypeError
from ..core.jaxpr import sub_jaxprs
from ..core.primitive import Builtin, Primitive
from .mesh import get_abstract_mesh
from .spec import PartitionSpec

Split = tuple[str, ...]     # the mesh axes that split a dimension, major first

AUTO = "or compute it with jax.sharding.auto_axes, where the compiler decides"


def typed(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    """The types of the results of an application to operands of which some are split over Explicit axes.

    The typing rules of users' primitives, and of those that hold programs, say it themselves.
    """
    rule = primitive.sharding or primitive.axes
    if primitive.says_sharding or not isinstance(primitive, Builtin) or (
            rule is None and any(True for _ in sub_jaxprs(params))):
        result = primitive.abstract_eval(*avals, **params)
        of = [*avals, *(result if primitive.multiple_results else [result])]
        if primitive.linear != "typed" and any(a.explicit is not None and a.explicit._terms for a in of):
            raise ShardingTypeError(f"{primitive}: the types of operands and results are "
                                    f"{', '.join(map(_text, of))}; unreduced values do not go through it. "
                                    "Take the sum first, with jax.reshard.")
        return result
    result = primitive.abstract_eval(*[a.update(sharding=None) if a.mesh else a for a in avals], **params)
    if all(a.explicit is None for a in avals):
        if "unreduced" in params:
            raise _no_terms(primitive, avals, params["unreduced"], frozenset())
        mesh = next(a.mesh for a in avals if a.mesh is not None)
        return ([a.update(sharding=mesh) for a in result] if primitive.multiple_results else
                result.update(sharding=mesh))
    results = result if primitive.multiple_results else [result]
    mesh = _mesh(primitive, avals)
    if rule is None:
        raise ShardingTypeError(f"{primitive}: {_operands(avals)}; it has no rule for operands that are "
                                "split over Explicit mesh axes. Bring them to every device, as in "
                                f"{_resharded(avals)}, {AUTO}.")
    found = _by_axes(primitive, rule, avals, results, params)
    partial: list[dict[str, frozenset[str]]] = [{}] * len(results)
    if "unreduced" in params or any(a.explicit is not None and a.explicit.spec.partial for a in avals):
        partial = [_partial(primitive, avals, aval, split, params) for aval, split in zip(results, found)]
    results = [_with(primitive, avals, mesh, aval, split, sets)
               for aval, split, sets in zip(results, found, partial)]
    return results if primitive.multiple_results else results[0]


def _mesh(primitive: Primitive, avals: Sequence[ShapedArray]) -> Any:
    meshes = list(dict.fromkeys(a.explicit.mesh for a in avals if a.explicit is not None))
    if len(meshes) > 1:
        raise ShardingTypeError(f"{primitive}: {_operands(avals)}. Mesh for all inputs should be equal. Got "
                                f"one mesh: {meshes[0]} and another mesh: {meshes[1]}. Bring them to one "
                                "with jax.reshard, or give both to the function that enters or leaves "
                                "auto_axes, explicit_axes or shard_map.")
    return meshes[0]


def _with(primitive: Primitive, avals: Sequence[ShapedArray], mesh: Any, aval: ShapedArray,
          split: Sequence[Split], partial: dict[str, Any]) -> ShapedArray:
    """The type of a result that is split so, and unreduced and reduced as `partial` says."""
    if not any(split) and not partial:
        return aval.update(sharding=mesh)
    if partial.get("unreduced"):
        check_no_manual(str(primitive))
    used = [name for axes in split for name in axes]
    for name in used:
        if used.count(name) > 1:
            dims = [str(dim) for dim, axes in enumerate(split) if name in axes]
            raise ShardingTypeError(
                f"{primitive} operation with inputs: {', '.join(map(_text, avals))} produces an illegally "
                f"sharded result: mesh axis {name!r} would split dimensions {' and '.join(dims)} of "
                f"{aval.str_short()}, and an axis splits one. Reshard an operand, as in {_resharded(avals)}, "
                f"or give the function out_sharding= if it has it, {AUTO}.")
    for dim, (size, axes) in enumerate(zip(aval.shape, split)):
        count = math.prod(mesh.shape[name] for name in axes)
        if axes and type(size) is int and size % count:
            cut = next(((i, a.splits.index(axes)) for i, a in enumerate(avals)
                        if a.explicit is not None and axes in a.splits), (None, None))
            raise ShardingTypeError(
                f"{primitive} on sharded dims where out dim ({size}) is not "
                f"divisible by mesh axes ({count}) is not implemented: {_operands(avals)}; dimension {dim} "
                f"of the result {aval.str_short()} would be split over {named_axes(axes)}. Bring the operand "
                f"to every device along it, as in {_resharded(avals, *cut)}, give the function out_sharding= "
                f"if it has it, as x.at[i].get does, {AUTO}.")
    return aval.update(sharding=avals_sharding(avals).update(spec=PartitionSpec(*split, **partial)))


def _partial(primitive: Primitive, avals: Sequence[ShapedArray], result: ShapedArray, split: Sequence[Split],
             params: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Over which axes a result is unreduced, and reduced; {} for none.

    Of the terms of a sum only a linear function gives the terms of its result.
    """
    specs = {i: a.explicit.spec for i, a in enumerate(avals) if a.explicit is not None}
    terms = {i: spec.unreduced for i, spec in specs.items() if spec.unreduced}
    unreduced: frozenset[str] = next(iter(terms.values()), frozenset())
    how = primitive.linear
    of = {"all": range(len(avals)), "two": (0, 1), "rest": range(1, len(avals)),
          "first": (0,)}.get(how, tuple(terms)[:1])
    # what rounds is not linear
    other = any(dtypes.is_inexact(avals[i].dtype) and not dtypes.is_inexact(result.dtype) for i in terms)
    if terms and (not how or {*terms} != {*of} or len({*terms.values()}) > 1 or other):
        error = ShardingTypeError if how else _NoUnreducedRule
        raise error(
            f"unreduced rule for {primitive} is not implemented: "
            f"{_binary_words(primitive, how, len(avals), (*terms,))}{_operands(avals)}; over "
            f"{named_axes(tuple(sorted(unreduced)))} the devices hold "
            f"the terms of a sum, which is still to be taken, and {_REFUSED.get(how, _REFUSED[''])}. Take "
            f"the sum first, as in jax.reshard(x, {specs[min(terms)].update(unreduced=frozenset())}).")
    unreduced |= params.get("unreduced", frozenset())
    used = {name for axes in split for name in axes}
    reduced: frozenset[str] = frozenset().union(*[spec.reduced for spec in specs.values()]) - unreduced
    if how == "each" and not primitive.elementwise:
        reduced = frozenset()       # a cotangent of the operand is made unreduced, whatever the product is
    for name in sorted((unreduced | reduced) & used):
        raise ShardingTypeError(f"{primitive}: {_operands(avals)}; mesh axis {name!r} would split the "
                                f"result, and one operand is {'un' * (name in unreduced)}reduced over it. "
                                f"Reshard one, {AUTO}.")
    return {"unreduced": unreduced, "reduced": reduced} if unreduced or reduced else {}


def _binary_words(primitive: Primitive, how: Any, count: int, terms: tuple[int, ...]) -> str:
    """What is wrong, of a primitive with two operands of which `terms` are unreduced."""
    if how == "each" and len(terms) == 2:
        return (f"lhs and rhs to `{primitive}` cannot be unreduced since {primitive} is bilinear: "
                if primitive.elementwise else f"lhs or rhs passed to {primitive} cannot be unreduced: ")
    if how == "all" and count == 2 and len(terms) == 1:
        one, other = ("lhs", "rhs") if terms == (0,) else ("rhs", "lhs")
        return (f"{one} is unreduced while {other} is not. `{primitive}` operation does not allow this "
                f"because there will be implicit communication. Please reduce {one} via `reshard` before "
                f"calling `{primitive}`: ")
    return ""


class _NoUnreducedRule(ShardingTypeError, NotImplementedError):
    """An operation that gives no terms of terms."""


_REFUSED = {"": "only linear functions give terms again", "each": "only one operand may be such",
            **dict.fromkeys(("all", "two", "rest"), "all operands must be such")}


def _no_terms(primitive: Primitive, avals: Sequence[ShapedArray], wanted: Iterable[str],
              found: Iterable[str]) -> ShardingTypeError:
    """The error for a sum whose result was to be unreduced over other axes than split what it runs over."""
    axes = named_axes(tuple(sorted(found))) if found else "no mesh axis"
    return ShardingTypeError(f"{primitive}: out_sharding's unreduced axes should be equal to the contracting "
                             f"specs: {_operands(avals)}; out_sharding says that the result is "
                             f"unreduced over {named_axes(tuple(sorted(wanted)))}, and {axes} splits the "
                             "dimensions that are summed: unreduced are the axes that split these, in all "
                             "operands.")


def check_no_manual(what: str) -> None:
    """ShardingTypeError where a value is to be unreduced within a shard_map: there XLA ends the process."""
    if manual := get_abstract_mesh().manual_axes:
        raise ShardingTypeError(f"{what}: a value is not made unreduced within a shard_map over "
                                f"{named_axes(manual)}: take the sum, or make all axes Manual and take "
                                "it with lax.psum")


def avals_sharding(avals: Iterable[ShapedArray]) -> Any:
    """The sharding of the first that is split."""
    return next(a.explicit for a in avals if a.explicit is not None)


def _by_axes(primitive: Primitive, rule: Any, avals: Sequence[ShapedArray], results: Sequence[ShapedArray],
             params: dict[str, Any]) -> list[list[Split]]:
    """What an axis map says of each result."""
    axes: AxisMap | list[Split] = rule(*avals, **params)
    if not isinstance(axes, AxisMap):
        return [axes]
    computed = "refused" if primitive.whole else getattr(rule, "computed", "refused")
    of_all = axes.results if len(axes.results) == len(results) else axes.results * len(results)
    in_results = {label for labels in of_all for label in labels}
    found: dict[Any, tuple[Split, int, int]] = {}       # label -> (split, operand, its dimension)
    for number, (aval, labels) in enumerate(zip(avals, axes.operands)):
        known = aval.mesh is not None if primitive.alike else aval.explicit is not None
        for dim, split in enumerate(aval.splits if known else ()):
            label = labels[dim]
            if label is None and computed == "gone" or not split and (
                    not primitive.alike or label is None and computed == "refused"):
                continue
            if label is None and computed == "refused":
                words = primitive.whole or (f"Input {number} to {primitive} must be unsharded on non-batch "
                                            "dimensions")
                raise ShardingTypeError(
                    f"{words}: {_operands(avals)}; it computes along dimension {dim} "
                    f"of operand {number}, which is split over {named_axes(split)}. Bring it to every device "
                    f"first, as in {_resharded(avals, number, dim)}, give the function out_sharding= if it "
                    f"has it, {AUTO}.")
            key = (None, dim) if label is None else label
            before, first, where = found.setdefault(key, (split, number, dim))
            if before != split:
                raise _conflict(primitive, avals, found[key], (split, number, dim),
                                label not in (None, *in_results))
            if split and label not in (None, *in_results) and first != number and computed == "refused" and (
                    "unreduced" not in params):
                raise ShardingTypeError(
                    f"{primitive}: Contracting dimensions are sharded and it is ambiguous how the output "
                    f"should be sharded: {_operands(avals)}; the sum runs over dimension {where} of operand "
                    f"{first} and {dim} of operand {number}, which are split over {named_axes(split)}. "
                    "Please specify the output sharding via the `out_sharding` parameter, such as "
                    f"jax.P({', '.join(['None'] * results[0].ndim)}) for the sum on every device, reshard "
                    f"the operands, {AUTO}.")
    if "unreduced" in params:
        gone = [name for key, (split, *_) in found.items() if key not in in_results for name in split]
        whole = all(aval.splits[labels.index(label)] == split
                    for label, (split, *_) in found.items() if label not in in_results
                    for aval, labels in zip(avals, axes.operands) if label in labels)
        if {*gone} != params["unreduced"] or not whole:
            raise _no_terms(primitive, avals, params["unreduced"], gone if whole else ())
    if getattr(rule, "first", False):
        found = {key: of for key, of in found.items() if of[1] == 0 or key not in axes.operands[0]}
    return [[found[key][0] if key in found else () for dim, label in enumerate(labels)
             for key in [(None, dim) if label is None else label]] for labels in of_all]


def check_alike(words: str, one: ShapedArray, other: ShapedArray, dims: Iterable[tuple[int, int]] = (),
                error: type[Exception] = ShardingTypeError) -> None:
    """An error that begins with `words` where Explicit mesh axes split dimensions of two types otherwise.

    Args:
        words: what is required.
        dims: the pairs of dimensions that are compared; all, in their order, by default.
        error: its class.
    """
    if one.explicit is other.explicit:
        return
    pairs = tuple(dims) or tuple(zip(range(one.ndim), range(other.ndim)))
    if any(one.splits[i] != other.splits[j] for i, j in pairs):
        raise error(f"{words}: {_text(one)} and {_text(other)} are split otherwise. Bring one to the other's "
                    f"sharding with jax.reshard, {AUTO}.")


# --- words ----------------------------------------------------------------------------------------

def _conflict(primitive: Primitive, avals: Sequence[ShapedArray], one: tuple[Split, int, int],
              other: tuple[Split, int, int], gone: bool) -> ShardingTypeError:
    """The error for two operands of which a dimension that they share is split otherwise.

    Both are given as (split, number of the operand, its dimension); is the dimension not in the result?
    """
    words = "got incompatible shardings for broadcasting"
    if not primitive.elementwise:
        words = ("requires contracting dimensions to have consistent sharding" if gone else
                 "requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding")
    spec = [one[0] if dim == other[2] else entry for dim, entry in enumerate(avals[other[1]].sharding.spec)]
    splits = [f"dimension {dim} of operand {number} is "
              + (f"split over {named_axes(axes)}" if axes else "whole") for axes, number, dim in (one, other)]
    return ShardingTypeError(
        f"{primitive.alike or f'{primitive} {words}'}: {_operands(avals)}; {', '.join(splits)}, of "
        f"{avals_sharding(avals).mesh}. Bring one to the other's sharding, as in "
        f"jax.reshard(operand_{other[1]}, {PartitionSpec(*spec)}), {AUTO}.")


def named_axes(split: Split) -> str:
    """`mesh axis 'x'`, `mesh axes 'x', 'y'`."""
    return f"mesh ax{'is' if len(split) == 1 else 'es'} {', '.join(map(repr, split))}"


def _text(aval: ShapedArray) -> str:
    return aval.str_short(True) + aval.varies()


def _operands(avals: Sequence[ShapedArray]) -> str:
    texts = [_text(a) for a in avals]
    return f"the operands are {', '.join(texts)}" if len(texts) > 1 else f"the operand is {texts[0]}"


def _resharded(avals: Sequence[ShapedArray], number: int | None = None, dim: int | None = None) -> str:
    """How to call reshard so that an operand is not split, or not along one dimension."""
    if number is None:
        number = next(i for i, a in enumerate(avals) if a.explicit is not None)
    spec = [None if dim in (None, i) else entry for i, entry in enumerate(avals[number].explicit.spec)]
    return f"jax.reshard(x, {PartitionSpec(*spec)})"
