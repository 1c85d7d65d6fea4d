"""Axis maps: which axis of a result is which axis of an operand.

A primitive states this once, as its rule `axes`: a pure function of its avals and parameters, which also
knows how the parameters change when the operands get one more axis.  How to map a primitive over such an axis
follows (`plan`).
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from .avals import ShapedArray
from .dtypes import bool_

SIZE = "size"       # as the entry of an axis that is left alone: its size

Labels: TypeAlias = tuple[Any, ...]     # one for each axis; see AxisMap
Axes: TypeAlias = int | tuple[int, ...]
Params: TypeAlias = dict[str, Any]


class AxisMap(NamedTuple):
    """A label for each axis of each operand, and for each axis of the result or results.

    Results of several ranks have a tuple of labels each; they have the axes that are left alone at the same
    places.  A label of operands and result is an axis that the primitive leaves alone: what is done to the
    operands along it (put in another order, cut, spread over devices) is done to the result.  A label of
    operands only is reduced over, in any order.  None is an axis that is computed with, or made.
    """
    operands: tuple[Labels, ...]
    result: Any

    @property
    def results(self) -> tuple[Labels, ...]:
        """The labels of each result; of one for all where they are the same."""
        return self.result if self.result and type(self.result[0]) is tuple else (self.result,)


class AxisRule:
    """The rule `axes` of a primitive.

    Args:
        labels: (*avals, **params) -> AxisMap
        insert: (params, at, size, *avals) -> the parameters when each operand gets an axis of `size` at `at`,
            and is left alone along it.  At 0 this must be possible; elsewhere `labels` of the parameters that
            come out says whether it was.
        scalars: number of operands -> positions of those that may be of rank 0 beside arrays
        constants: may any constant of rank 0 be used beside arrays?
        computed: what becomes of mesh axes that split an axis that it computes with: "refused", "gone" (the
            result has no such axis) or "kept" (the result has it at the same place)
        first: is an axis of the result that several operands have split as the first of them is?
    """
    __slots__ = ("labels", "insert", "scalars", "constants", "computed", "first")

    def __init__(self, labels: Callable[..., AxisMap],
                 insert: Callable[..., dict[str, Any]] = lambda params, *_: params,
                 scalars: Callable[[int], Container[int]] = lambda n: (), constants: bool = False,
                 computed: str = "refused", first: bool = False) -> None:
        self.labels, self.insert, self.scalars, self.constants = labels, insert, scalars, constants
        self.computed, self.first = computed, first

    def __call__(self, *avals: ShapedArray, **params: Any) -> AxisMap:
        return self.labels(*avals, **params)


def inserted(values: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    """A tuple with one more entry."""
    return (*values[:at], value, *values[at:])


def renumbered(axes: Axes, at: int) -> Axes:
    """Axes (an int or a tuple of ints) once there is a new one at `at`."""
    return axes + (axes >= at) if isinstance(axes, int) else tuple(a + (a >= at) for a in axes)


def same_axes(names: str | Sequence[str] = (), *, gone: bool = False, reduced: bool = False,
              scalars: Callable[[int], Container[int]] = lambda n: (), constants: bool = False,
              computed: str = "kept", **alone: Any) -> AxisRule:
    """The rule of a primitive whose operands have the same axes, which the result keeps in their order.

    Args:
        names: the parameters (or the one) that say which axes it computes with, each an int or several
        gone: are these not in the result?
        reduced: are they reduced over, in any order?
        scalars: as for `AxisRule`
        constants: as for `AxisRule`
        computed: as for `AxisRule`, where they are not gone
        **alone: parameters with one entry for each axis, and which entry says that an axis is left alone
    """
    names = (names,) if isinstance(names, str) else names

    def labels(*avals: ShapedArray, **params: Any) -> AxisMap:
        rank = max(a.ndim for a in avals)
        named = {a for name in names for a in (params[name] if isinstance(params[name], tuple)
                                               else (params[name],))}
        shape = next(a.shape for a in avals if a.ndim == rank)
        used = {*named}
        for name, entry in alone.items():
            if params.get(name) is not None:
                used.update(i for i, (n, v) in enumerate(zip(shape, params[name]))
                            if v != (n if entry is SIZE else entry))
        result = tuple(None if i in used else i for i in range(rank) if not (gone and i in named))
        operand = tuple(range(rank)) if reduced else tuple(None if i in used else i for i in range(rank))
        return AxisMap(tuple(operand if a.ndim else () for a in avals), result)

    def insert(params: Params, at: int, size: Any, *_: ShapedArray) -> Params:
        changed = {name: inserted(params[name], at, size if entry is SIZE else entry)
                   for name, entry in alone.items() if params.get(name) is not None}
        return {**params, **changed, **{name: renumbered(params[name], at) for name in names}}
    return AxisRule(labels, insert, scalars, constants, "gone" if gone else computed)


def leading_axes(own: Callable[..., tuple[int, int]], computed: str = "refused") -> AxisRule:
    """The rule of a primitive that treats all but the last axes of its operands alike and apart.

    `own(*avals, **params)` gives two numbers: how many last axes of an operand, and of the result, it
    computes with.
    """
    def labels(*avals: ShapedArray, **params: Any) -> AxisMap:
        taken, made = own(*avals, **params)
        lead = tuple(range(avals[0].ndim - taken))
        return AxisMap(((*lead, *[None] * taken),) * len(avals), (*lead, *[None] * made))
    return AxisRule(labels, computed=computed)


_SCALAR = ShapedArray((), bool_)


@functools.lru_cache(maxsize=8192)
def plan(rule: AxisRule, avals: tuple[ShapedArray | None, ...], dims: tuple[int | None, ...], size: Any,
         params: Iterable[tuple[str, Any]]) -> tuple[tuple[Any, ...] | None, Params, int]:
    """How to map a primitive over an axis of `size`.

    Args:
        avals: of the operands, with the axis; None for a constant of rank 0
        dims: where each operand has the axis; None where it is not mapped
    Returns:
        (what to do with each operand, parameters, axis of the result).  What to do is None, or (shape,
        dimensions) for a broadcast_in_dim, or (None, permutation) for a transpose; None for nothing at all.
    """
    given, scalars = dict(params), rule.scalars(len(avals))
    each = [_SCALAR if a is None else a.without_axis(d) for a, d in zip(avals, dims)]
    rank = max(a.ndim for a in each)
    left = [d is None and not e.ndim and (a is None or i in scalars)
            for i, (a, d, e) in enumerate(zip(avals, dims, each))]
    whole = [i for i, e in enumerate(each) if e.ndim == rank and not left[i]]
    first = next((i for i in whole if dims[i] is not None), whole[0])
    spread = [not e.ndim and rank > 0 and (rule.constants or i in scalars) for i, e in enumerate(each)]
    for at in dict.fromkeys((dims[first] or 0, 0)):      # where it is, or in front
        changed = rule.insert(given, at, size, *each)
        # an operand of a rank that the primitive refuses gets the axis all the same: the error is the
        # primitive's
        shapes = [e.shape for e in each]
        for i, e in enumerate(each):
            if not left[i]:
                like = each[first] if spread[i] else e
                shapes[i] = inserted(like.shape, min(at, like.ndim), size)
        axes = rule(*(e.update(shape=s) for e, s in zip(each, shapes)), **changed)
        label = axes.operands[first][at]
        if label is not None and label in axes.results[0]:
            break
    todo: list[Any] = []
    for e, d, skip, wide, shape in zip(each, dims, left, spread, shapes):
        place, rest = min(at, e.ndim), range(e.ndim + 1)
        if skip or d == place and not wide:
            todo.append(None)
        elif wide:
            todo.append((shape, () if d is None else (at,)))
        elif d is None:
            todo.append((shape, tuple(i for i in rest if i != place)))
        else:
            todo.append((None, inserted(tuple(i for i in rest if i != d), place, d)))
    return (tuple(todo) if any(todo) else None), changed, axes.results[0].index(label)
