"""How arrays lie in memory, as jaxlib tells it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.avals import physical
from ...sharding.layout import Format, Layout

if TYPE_CHECKING:
    from ...core.avals import ShapedArray
    from ...sharding.abstract import Sharding


def default(aval: ShapedArray, sharding: Sharding) -> Layout:
    """The Layout of a shard of an array on its device, unless another was requested."""
    device = sharding._devices[0]
    aval, shape = physical(aval), sharding.shard_shape(aval.shape)
    shape = (*shape, *aval.shape[len(shape):])
    return Layout.parse(str(device.client.get_default_layout(aval.dtype, shape, device)), default=True)


def of_array(x: Any) -> Format:
    """The Format of an array."""
    return Format(default(x.aval, x.sharding), x.sharding)


def of_executable(executable: Any) -> tuple[list[Format], ...]:
    """The Formats of what a program takes, and of what it gives."""
    variables = executable.lowered.jaxpr.in_avals, executable.out_avals
    loaded = executable.loaded      # pieces take and give default layouts
    requested = (None, None)
    if loaded is not None:
        requested = loaded.get_parameter_layouts, loaded.get_output_layouts
    return tuple([
        Format(Layout.parse(str(found)) if ask else default(aval, s), s)
        for aval, s, found in zip(avals, shardings, ask() if ask else avals, strict=True)]
        for avals, shardings, ask in zip(variables, (executable.in_shardings, executable.out_shardings),
                                         requested))
