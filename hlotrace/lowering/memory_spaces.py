"""In which memory a program's results are, as their types say."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.avals import Space
from ..sharding.abstract import HOST
from ..sharding.single import SingleDeviceSharding

if TYPE_CHECKING:
    from ..core.jaxpr import Jaxpr


def with_memories(jaxpr: Jaxpr, where: Any) -> Any:
    """A device or a Partition, with the memory of those results of which none is said."""
    found = [a.memory is Space.Host for a in jaxpr.out_avals]
    if not any(found):
        return where
    from ..sharding.layout import Anywhere  # few programs are about another memory than the device's
    from ..sharding.partition import Partition
    if type(where) is not Partition:
        at = SingleDeviceSharding(where, memory_kind=HOST)
        outs = tuple([at if host else None for host in found])
        return Partition((where,), (None,) * len(jaxpr.invars), outs)
    outs = where.outs or (None,) * len(found)
    return where._replace(outs=tuple([Anywhere(None, HOST) if s is None and host else s
                                      for s, host in zip(outs, found)]))
