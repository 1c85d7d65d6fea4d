"""Chips that are not here: topologies by name, and programs compiled for them."""
from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import binding
from ..executables import executable, progress, spmd
from ..executables.slice_starts import in_range
from ..mlir import partitioners
from ..mlir.bindings import parse_module
from . import plugins

if TYPE_CHECKING:
    from ...lowering.module import Lowered


def describe(platform: str, name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """jaxlib's description of a topology and its devices, which only compile.

    Raises:
        RuntimeError: where no plugin of the platform is installed.
        ValueError: where the platform has no such topology.
    """
    plugin = plugins.find().get(platform)
    if plugin is None:
        raise RuntimeError(f"get_topology_desc: no plugin for {platform!r} is installed: "
                           f"{plugins.install_line(platform)}")
    plugins.load(plugin)
    try:
        topology = binding._jax.get_default_c_api_topology(platform, name, options)
        return topology, topology._make_compile_only_devices()
    except binding.JaxRuntimeError as error:
        raise ValueError(f"get_topology_desc: {platform} has no topology {name!r}: "
                         f"{str(error).splitlines()[0]}") from error


class _Elsewhere:
    """A program for chips that are not here: it can be looked into, and not called."""
    __slots__ = ()
    if TYPE_CHECKING:
        device: binding.Device
        lowered: Lowered

    def _handlers(self) -> Any:
        return []

    def take(self, leaves: Sequence[Any]) -> NoReturn:
        chip, partition = self.device.device_kind, self.lowered.partition
        count = len(partition.devices) if partition else 1
        raise RuntimeError(
            f"{self.lowered.jaxpr.name} was compiled for {count} x {chip} of a topology, which are not here: "
            "it cannot be called. Look into it with as_text(), memory_analysis() and cost_analysis(); to "
            "run it, compile it for devices of hlotrace.devices().")

    run = take


class Executable(_Elsewhere, executable.Executable):
    """A program for one chip that is not here."""
    __slots__ = ()


class SpmdExecutable(_Elsewhere, spmd.SpmdExecutable):
    """A program for several chips that are not here."""
    __slots__ = ()


def compile_lowered(lowered: Lowered, devices: Sequence[binding.Device],
                    options: Any) -> executable.Executable:
    """An executable, which cannot run here, of a Lowered program.

    Raises:
        JaxRuntimeError: for one where a chip's memory is too small.
    """
    start = time.perf_counter()
    text, _kept_alive = partitioners.filled(lowered, devices[0])
    text = in_range(text) if binding.sums_slice_starts else text
    with progress.compiling(lowered.jaxpr):
        compiled = compile_text(text, devices, options, lowered.jaxpr.name)
    kind = SpmdExecutable if lowered.partition else Executable
    return kind(compiled, lowered, devices[0], time.perf_counter() - start)


def compile_text(text: str, devices: Sequence[binding.Device], options: Any = None,
                 name: str = "the program") -> Any:
    """jaxlib's Executable, which cannot run here, of a StableHLO text for `devices`, one partition on each.
    """
    options = options or binding.compile_options(devices)
    try:
        return devices[0].client.compile(parse_module(text), binding.DeviceList(tuple(devices)), options)
    except binding.JaxRuntimeError as error:
        raise binding.JaxRuntimeError(_overflow(str(error), name, devices[0].device_kind)
                                      or binding.readable(str(error))) from None


def _overflow(message: str, name: str, chip: str) -> str | None:
    """What to say of a program that needs more memory than a chip has; None for another message."""
    found = re.search(r"required for ([^()]+) \(([\d.]+)([KMGTP]?)\) exceeds available HBM "
                      r"\(([\d.]+)([KMGTP]?)\)", message)
    if not found:
        return None
    what, *sizes = found.groups()
    needed, available = (f"{number} {unit}{'i' * bool(unit)}B" for number, unit in (sizes[:2], sizes[2:]))
    return (f"RESOURCE_EXHAUSTED: {name} does not fit: its {what} need {needed} of memory on each chip, and "
            f"a {chip} has {available}. Split arrays over more mesh axes or chips (dump_hlo --stage sharded "
            "shows what is whole on every chip), recompute in the backward pass (hlotrace.checkpoint), "
            "donate arguments, or take smaller batches or types.")
