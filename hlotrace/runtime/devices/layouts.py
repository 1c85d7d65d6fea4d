"""The layouts of arrays in memory, as jaxlib reports them, and how they are changed."""
from __future__ import annotations

import functools
from typing import Any

from ...core.avals import ShapedArray, physical
from ...sharding.abstract import Sharding, is_local
from ...sharding.layout import Format, Layout
from .. import binding
from . import client, placement, shards


def default(aval: ShapedArray, sharding: Sharding) -> Layout:
    """The Layout of a shard of an array on its device, unless another was requested."""
    device, part = sharding._devices[0], shards.part_of(aval, sharding)
    return Layout.parse(str(device.client.get_default_layout(part.dtype, part.shape, device)), default=True)


def of_array(x: Any) -> Format:
    """The Format of an array."""
    x.check_alive()
    local = shards.single_buffers(x)
    found = default(x.aval, x.sharding)
    if local:
        layout = Layout.parse(str(local[0]._pjrt_layout))
        found = found if found.is_met_by(layout) else layout
    return Format(found, x.sharding)


def of_executable(executable: Any) -> tuple[list[Format], ...]:
    """The Formats of what a program takes, and of what it gives."""
    variables = executable.lowered.jaxpr.in_avals, executable.out_avals
    loaded = executable.loaded      # pieces take and give default layouts
    requested = (None, None)
    if loaded is not None:
        requested = loaded.get_parameter_layouts, loaded.get_output_layouts
    return tuple([
        Format(_read(found, aval, s) if ask else default(aval, s), s.in_layout(None))
        for aval, s, found in zip(avals, shardings, ask() if ask else avals)]
        for avals, shardings, ask in zip(variables, (executable.in_shardings, executable.out_shardings),
                                         requested))


def _read(found: Any, aval: ShapedArray, sharding: Sharding) -> Layout:
    layout, usual = Layout.parse(str(found)), _default_or_none(aval, sharding)
    return usual if usual is not None and usual.is_met_by(layout) else layout


def _default_or_none(aval: ShapedArray, sharding: Sharding) -> Layout | None:
    """The default layout; None where the devices are not known, or do not say."""
    device = sharding._devices[0]
    return default(aval, sharding) if hasattr(getattr(device, "client", None), "get_default_layout") else None


def compiled(sharding: Any, aval: ShapedArray, found: Any) -> Any:
    """The sharding of values which a program takes or gives in the layout that jaxlib `found`."""
    layout = _read(found, aval, sharding)
    return sharding.in_layout(None if layout.default else layout)


def settled(sharding: Any, aval: ShapedArray, what: str) -> Any:
    """A sharding that may be in a layout, for an array of a type; in no layout if it is the devices' own.

    Args:
        what: the start of errors.
    Raises:
        ValueError: for a layout that does not order the array's axes, and for tiles on a CPU.
    """
    layout = sharding._layout
    if layout is None or layout is Layout.AUTO:
        return sharding
    layout.check_rank(what, physical(aval).shape)
    if hasattr(getattr(sharding, "mesh", None), "abstract_mesh") and not hasattr(sharding.mesh, "devices"):
        return sharding
    if layout.tiling and client.platform_of(sharding._devices[0]).on_host:
        raise ValueError(f"{what}: {layout}: the CPU has no layouts in tiles; leave out tiling")
    usual = _default_or_none(aval, sharding)
    return sharding if usual is None or not layout.is_met_by(usual) else sharding.in_layout(None)


def moved(x: Any, sharding: Any) -> binding.Buffer:
    """jaxlib's buffer of an array, placed as `sharding` says, in the layout of `sharding`: part by part."""
    part, layout = shards.part_of(x.aval, sharding), sharding._layout
    buffers, found = {}, sharding
    for device, buffer in zip(filter(is_local, sharding._devices), shards.single_buffers(x)):
        loaded, handler = _program(part.mlir, part, str(buffer._pjrt_layout),
                                   layout.text if layout is not None else "default", device)
        single = binding.rewrap(buffer, part, placement.on_device(device, sharding._kind))
        buffers[device], = loaded.execute_sharded([single]).consume_with_handlers([handler])
        found = compiled(sharding, x.aval, loaded.get_output_layouts()[0])
    return shards.joined(physical(x.aval), found, buffers)


@functools.lru_cache(256)
def _program(type_text: str, part: ShapedArray, old: str, new: str,
             device: binding.Device) -> tuple[Any, Any]:
    """(a program that copies an array on a device into another layout, the handler of its result)."""
    text = (f'module @relayout {{ func.func public @main(%x: {type_text} {{mhlo.layout_mode = "{old}"}}) -> '
            f'({type_text} {{mhlo.layout_mode = "{new}"}}) {{ return %x : {type_text} }} }}')
    loaded = device.client.compile_and_load(text, binding.DeviceList((device,)),
                                            binding.compile_options((device,)))
    return loaded, binding.result_handler(part, placement.on_device(device))
