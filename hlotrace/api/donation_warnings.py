"""What is said of a donated argument whose memory no result can take."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..core import dtypes, source_info
from ..core.avals import ShapedArray
from ..core.jaxpr import Jaxpr
from ..core.pytrees import pytree
from ..lowering.result_memory import kind, matched, size
from ..sharding.abstract import Sharding
from .flat import FlatFunction, TracedProgram

_SHOWN = 8


def warn_unusable(executable: Any, flat: FlatFunction, traced: TracedProgram) -> None:
    """Warn of donated arguments of a program, compiled for the call `flat`, that no result fits."""
    lowered = executable.lowered
    if not lowered.donated or executable.gives_back:
        return
    ins, outs = (_parts(avals, held) for avals, held in ((lowered.jaxpr.in_avals, executable.in_shardings),
                                                         (lowered.jaxpr.out_avals, executable.out_shardings)))
    outs = outs[:traced.out_tree.num_leaves]
    found = matched(lowered.donated, ins, outs)
    _, consts, kept, _ = traced.pruned()
    leaf = {i: kept[i - len(consts)] for i in lowered.donated}
    # a number takes no memory of the user's
    unused = [i for i in lowered.donated if i not in found and size(ins[i])
              and not isinstance(flat.leaves[leaf[i]], dtypes.python_scalars)]
    if not unused:
        return
    paths, results = flat.paths(), ["result" + p for p in pytree.leaf_paths(traced.out_tree)]
    lines = []
    for i in unused[:_SHOWN]:
        aval, nearest = lowered.jaxpr.in_avals[i], _nearest(i, ins, outs, lowered.jaxpr)
        words = "there is no result"
        if nearest is not None:
            taken = next((paths[leaf[k]] for k, j in found.items() if j == nearest), None)
            which = "the result" if len(outs) == 1 else f"the nearest result, {results[nearest]},"
            words = f"{which} {_why(i, nearest, ins, outs, executable, taken)}"
        lines.append(f"\n  * {paths[leaf[i]]}, {aval.str_short()}: {words}")
    more = f"\n  * and {len(unused) - _SHOWN} more" if len(unused) > _SHOWN else ""
    warnings.warn(
        f"Some donated buffers were not usable: arguments of {lowered.jaxpr.name} that are donated, and kept "
        "all the same, because no result of their size is left to take their "
        f"memory:{''.join(lines)}{more}\nDonate only what a result replaces, or return a result of the same "
        "shape, dtype and sharding.",
        UserWarning, stacklevel=source_info.user_stacklevel())


def _parts(avals: Sequence[ShapedArray], shardings: Sequence[Sharding]) -> list[ShapedArray]:
    """The types of what one device holds of each."""
    return [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(avals, shardings)]


def _nearest(i: int, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], jaxpr: Jaxpr) -> int | None:
    """The result that is most like input `i`, or None."""
    aval, whole = ins[i], jaxpr.in_avals[i]

    def unlike(j: int) -> tuple[Any, ...]:
        other = jaxpr.out_avals[j]
        return (kind(whole) != kind(other), kind(aval) != kind(outs[j]), whole.shape != other.shape,
                whole.dtype != other.dtype, abs(size(aval) - size(outs[j])))
    return min(range(len(outs)), key=unlike, default=None)


def _why(i: int, j: int, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], executable: Any,
         taken: str | None) -> str:
    """Why result `j` does not take the memory of input `i`; it has that of the argument named `taken`."""
    jaxpr = executable.lowered.jaxpr
    aval, other = jaxpr.in_avals[i], jaxpr.out_avals[j]
    if kind(ins[i]) == kind(outs[j]):
        return f"takes the memory of {taken}"
    if kind(aval) == kind(other):
        return (f"has its shape and dtype but another sharding: {executable.out_shardings[j]}, where the "
                f"argument has {executable.in_shardings[i]}")
    what = "another shape and dtype"
    if aval.shape == other.shape:
        what = "another dtype"
    elif aval.dtype == other.dtype:
        what = "another shape"
    return f"has {what}: {other.str_short()}"
