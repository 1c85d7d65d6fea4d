"""Which memory a program's results have: that of donated inputs, and of which kind."""
from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.avals import ShapedArray, Space, physical
from ..core.jaxpr import Jaxpr
from ..sharding.abstract import HOST
from ..sharding.single import SingleDeviceSharding


def matched(donated: Iterable[int], ins: Sequence[ShapedArray],
            outs: Sequence[ShapedArray]) -> dict[int, int]:
    """For donated inputs the results which take their memory: of the same type, or else of the same size.

    Args:
        ins: the types of what one device holds of the inputs.
        outs: as `ins`, of the results.
    Returns:
        {position of a donated input: that of a result}, without the inputs that no result fits.
    """
    found: dict[int, int] = {}
    for fit in (kind, size):
        free: dict[Any, collections.deque[int]] = collections.defaultdict(collections.deque)
        taken = set(found.values())
        for j, aval in enumerate(outs):
            if j not in taken:
                free[fit(aval)].append(j)
        for i in donated:
            if i not in found and free[fit(ins[i])]:
                found[i] = free[fit(ins[i])].popleft()
    return found


def kind(aval: ShapedArray) -> tuple[Any, ...]:
    """What two types have in common whose arrays have the same layout."""
    return physical(aval).shape, physical(aval).dtype


def size(aval: ShapedArray) -> int:
    """Bytes."""
    return physical(aval).size * physical(aval).dtype.itemsize


def attributes(jaxpr: Jaxpr, donated: Iterable[int]) -> list[str]:
    """Attributes of the inputs of a program of one device."""
    outs = jaxpr.out_avals
    found = matched(donated, jaxpr.in_avals, outs) if donated else {}
    written = [""] * len(jaxpr.invars)
    for i, j in found.items():
        alike = kind(jaxpr.invars[i].aval) == kind(outs[j])
        written[i] = f"tf.aliasing_output = {j} : i32" if alike else "jax.buffer_donor = true"
    return written


def with_memories(jaxpr: Jaxpr, where: Any) -> Any:
    """A device or a Partition, with the memory and the layout of those results of which none is said."""
    constrained: dict[Any, Any] = {}
    if laid_out := [eqn for eqn in jaxpr.eqns if "layout" in eqn.params]:
        from ..primitives.parallel.sharding import layout_constraint_p
        constrained = {eqn.outvars[0]: eqn.params["layout"] for eqn in laid_out
                       if eqn.primitive is layout_constraint_p}
    found = [(constrained.get(v), HOST if a.memory is Space.Host else None)
             for v, a in zip(jaxpr.outvars, jaxpr.out_avals)]
    if not any(map(any, found)):
        return where
    from ..sharding.layout import Anywhere  # few programs are about another memory than the device's
    from ..sharding.partition import Partition
    if type(where) is not Partition:
        at = [SingleDeviceSharding(where, memory_kind=said[1]) if any(said) else None for said in found]
        where = Partition((where,), (None,) * len(jaxpr.invars), tuple(at))
    outs = where.outs or (None,) * len(found)
    outs = [Anywhere(*said) if s is None and any(said) else s for s, said in zip(outs, found)]
    return where._replace(outs=tuple([s.in_layout(layout) if s and layout and s._layout is None else s
                                      for s, (layout, _) in zip(outs, found)]))
