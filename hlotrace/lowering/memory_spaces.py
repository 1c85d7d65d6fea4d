"""In which memory a program's results are: that of what they are computed from, or where it puts them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.jaxpr import Literal, sub_jaxprs
from ..core.primitive import fact_of
from ..sharding.single import SingleDeviceSharding

if TYPE_CHECKING:
    from ..core.jaxpr import Eqn, Jaxpr

# the one kind that results inherit; arrays in others are read as those of the device are
HOST = "pinned_host"


def with_memories(jaxpr: Jaxpr, where: Any, given: Sequence[Any] | None = None) -> Any:
    """A device or a Partition, with the memory of those results of which none is said.

    Args:
        given: the shardings of the arguments, whatever was requested; usually those of `where`.

    Raises:
        ValueError: where operands of one operation are in different memories.
    """
    ins = getattr(where, "ins", (None,) * len(jaxpr.invars))
    kinds = [getattr(s, "_kind", None) for s in given or ins]
    if HOST not in kinds and HOST not in fact_of(jaxpr, "memories"):
        return where
    from ..sharding.layout import Anywhere  # few programs are about another memory than the device's
    from ..sharding.partition import Partition
    found = _memories(jaxpr, kinds)
    if type(where) is not Partition:
        at = SingleDeviceSharding(where, memory_kind=HOST)
        outs = tuple([at if kind else None for kind in found])
        return Partition((where,), ins, outs) if any(outs) else where
    outs = where.outs or (None,) * len(found)
    return where._replace(outs=tuple([Anywhere(None, HOST) if s is None and kind else s
                                      for s, kind in zip(outs, found)]))


def _memories(jaxpr: Jaxpr, ins: Sequence[str | None]) -> list[bool]:
    """Is each result in the memory of the host?  Given the kinds of memory of the inputs."""
    return [kind == HOST for kind in _kinds(jaxpr, [
        HOST if kind == HOST else _of_device(v) for v, kind in zip(jaxpr.invars, ins)])]


def _of_device(v: Any) -> str | None:
    """Numbers, and what is computed from them alone, go with either memory."""
    return "device" if v.aval.ndim else None


def _kinds(jaxpr: Jaxpr, ins: Sequence[str | None]) -> list[str | None]:
    """The memory of each result: HOST, "device", or None for what goes with either."""
    env: dict[Any, str | None] = dict(zip(jaxpr.invars, ins))

    def read(variables: Sequence[Any]) -> list[str | None]:
        return [None if type(v) is Literal else env.get(v) for v in variables]
    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _results(eqn, read(eqn.invars), env)))
    return read(jaxpr.outvars)


def _results(eqn: Eqn, operands: list[str | None], env: dict[Any, str | None]) -> list[str | None]:
    if eqn.primitive.memories is not None:
        target = eqn.params["sharding"]
        if target is None:
            return operands[:1]
        # a cotangent goes where an operand was
        kind = env.get(target.var) if hasattr(target, "var") else getattr(target, "_kind", None)
        return [HOST if kind == HOST else "device"]
    held = [j for j in sub_jaxprs(eqn.params) if len(j.outvars) == len(eqn.outvars)]
    if held:
        # operands that are not the program's own, an index or what a condition reads, come first
        found = [_kinds(j, operands[len(operands) - len(j.invars):]) for j in held]
        return [max(kinds, key=lambda kind: kind or "") for kinds in zip(*found)]
    if eqn.primitive.multiple_results and [v.aval for v in eqn.invars] == [v.aval for v in eqn.outvars]:
        return operands     # each result is its operand: optimization_barrier, shard_alike
    if HOST in operands and "device" in operands:
        host, other = (eqn.invars[operands.index(kind)].aval.str_short() for kind in (HOST, "device"))
        raise ValueError(f"memory_space of all inputs passed to `{eqn.primitive}` must be the same: an "
                         f"operand of type {host} is in the memory of the host, another, of type {other}, in "
                         "that of the device. Move one with device_put(x, jax.memory.Space.Device)")
    kind = max(operands, key=lambda kind: kind or "", default=None)
    return [kind] * len(eqn.outvars)
