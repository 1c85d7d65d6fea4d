"""Chips that are not here: topologies by name, and programs compiled for them."""
from __future__ import annotations

import functools
import re
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...core.errors import did_you_mean
from ...core.platforms import platform_named
from .. import binding, callback_guard
from ..executables import executable, progress, spmd
from ..executables.slice_starts import in_range
from ..mlir import partitioners
from ..mlir.bindings import parse_module
from . import chips, gpu_targets, plugins

if TYPE_CHECKING:
    from ...lowering.lowered import Lowered
    from .chips import Chip


# what makes a topology -> the topology and its devices: who names it twice means the same devices
_made: dict[str, tuple[Any, Any]] = {}
# client of a topology -> bytes of memory of a chip, where XLA does not look at it itself
_memory: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def describe(name: str, platform: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """jaxlib's description of a topology and its devices, which only compile.  NotImplementedError where no
    plugin of the platform is installed; ValueError where the platform has no such topology."""
    if several := re.fullmatch(r"([1-9]\d*)x([A-Za-z].*)", name):
        slices, of = several.groups()
        if "num_slices" in options:
            raise ValueError(f"get_topology_desc: {name!r} says how many slices there are, and so does "
                             "num_slices")
        if (gpu := chips.find(of.partition(":")[0])) and gpu.platform == "cuda":
            raise ValueError(f"get_topology_desc: {name!r}: GPUs have hosts, not slices: say "
                             f"\"{gpu.name}:{slices}x8\" for {slices} hosts of eight")
        name, options = of, options | {"num_slices": int(slices)}
    first, colon, shape = name.partition(":")
    chip = chips.find(first)
    platform = platform_named(platform or (chip.platform if chip else "tpu"))
    if chip and chip.platform != platform:
        raise ValueError(f"get_topology_desc: {name!r} is of platform {chip.platform!r}, not {platform!r}")
    plugin = plugins.find().get(platform)
    if plugin is None:
        if chip is None and name and platform == "tpu":
            raise ValueError(f"get_topology_desc: {_no_chip(name)}")
        raise NotImplementedError(
            f"get_topology_desc: no plugin for {platform!r} is installed: "
            f"{gpu_targets.install_line(None) if platform == 'cuda' else plugins.install_line(platform)}")
    if platform == "cuda":
        name, options = "", _cuda_options(name, chip, plugin, options)
    elif chip:
        name = f"{chip.name}{colon}{shape}"
    plugins.load(plugin)
    key = repr((platform, name, sorted(options.items())))
    if key in _made:
        return _made[key]
    try:
        topology = binding._jax.get_default_c_api_topology(platform, name, options)
        devices = topology._make_compile_only_devices()
    except binding.JaxRuntimeError as error:
        hint = f" ({_no_chip(name)})" if chip is None and platform == "tpu" else ""
        said, named = str(error).splitlines()[0], name or options.get("topology")
        raise ValueError(f"get_topology_desc: {platform} has no topology {named!r}: {said}{hint}") from error
    if memory := gpu_targets.memory_of(options.get("target_config", "")):
        _memory[devices[0].client] = memory
    return _made.setdefault(key, (topology, devices))


def _no_chip(name: str, platform: str | None = None) -> str:
    """That a topology's name begins with no chip that is known, of a platform or of all."""
    first = name.partition(":")[0]
    known = [chip for chip in chips.CHIPS.values() if platform in (None, chip.platform)]
    near = did_you_mean(first.lower(), [name for chip in known for name in (chip.name, *chip.aliases)])
    return f"no chip {first!r} is known{near or ';'} There are {', '.join(chip.name for chip in known)}"


def _cuda_options(name: str, chip: Chip | None, plugin: plugins.Plugin,
                  options: dict[str, Any]) -> dict[str, Any]:
    """The plugin's options: of a topology by name, or as they are given."""
    for option, value in options.items():
        if option not in ("target_config", "topology"):     # the plugin would pass over it
            raise ValueError(f"get_topology_desc: cuda has no option {option!r}; it has target_config and "
                             "topology")
        if type(value) is not str:
            raise TypeError(f"get_topology_desc: {option} is a text, not {value!r}")
    if chip:
        return gpu_targets.topology_options(name, chip, plugin) | options
    if "target_config" in options or plugins.nvidia_gpus() and not name:
        return options
    what = _no_chip(name, "cuda") if name else "a topology of GPUs needs the name of one"
    raise ValueError(
        f"get_topology_desc: {what}. Say \"h100:8\", or target_config= (the text of a GpuTargetConfigProto) "
        "and topology=\"1x1x8\" (partitions x hosts x GPUs)")


class _Elsewhere:
    """A program for chips that are not here: it can be looked into, and not called."""
    __slots__ = ()
    if TYPE_CHECKING:
        device: binding.Device
        loaded: Any
        lowered: Lowered

    def _handlers(self) -> Any:
        return []

    def serialize(self) -> bytes:
        return self.loaded.serialize()

    def take(self, leaves: Sequence[Any]) -> NoReturn:
        chip, partition = self.device.device_kind, self.lowered.partition
        count = len(partition.devices) if partition else 1
        raise RuntimeError(
            f"{self.lowered.jaxpr.name} was compiled for {count} x {chip} of a topology, which are not here: "
            "it cannot be called. Look into it with as_text(), memory_analysis() and cost_analysis(); to "
            "run it, compile it for devices of hlotrace.devices().")

    run = take


@functools.cache
def elsewhere(kind: Any) -> Any:
    """A kind of Executable, as it is for chips that are not here."""
    return type(kind.__name__, (_Elsewhere, kind), {"__slots__": ()})


def compile_lowered(lowered: Lowered, devices: Sequence[binding.Device],
                    options: Any) -> executable.Executable:
    """An executable, which cannot run here, of a Lowered program.  JaxRuntimeError for one where a chip's
    memory is too small."""
    start = time.perf_counter()
    text, _kept_alive = partitioners.filled(lowered, devices[0])
    text = in_range(text) if binding.sums_slice_starts else text
    with progress.compiling(lowered.jaxpr):
        compiled = compile_text(text, devices, options, lowered.jaxpr.name)
    kind = elsewhere(spmd.SpmdExecutable if lowered.partition else executable.Executable)
    return kind(compiled, lowered, devices[0], time.perf_counter() - start)


def compile_text(text: str, devices: Sequence[binding.Device], options: Any = None,
                 name: str = "the program") -> Any:
    """jaxlib's Executable, which cannot run here, of a StableHLO text: a partition on each of `devices`."""
    options = options or binding.compile_options(devices)
    chip = devices[0].device_kind
    cuda = plugins.find().get("cuda") if platform_named(devices[0].platform) == "cuda" else None
    if cuda:
        gpu_targets.use_compiler(options, cuda)
    try:
        compiled = devices[0].client.compile(parse_module(text), binding.DeviceList(tuple(devices)), options)
    except binding.JaxRuntimeError as error:
        message, raised = str(error), callback_guard.original(error)
        if raised is not error:         # by a function that the compiler called
            raise raised from None
        if "emitter for hlotrace_partitioning not found" in message:
            raise NotImplementedError(
                f"custom_partitioning: {name} cannot be compiled for {chip}: its compiler asks no Python "
                "function how an operation is split. Use shard_map for that operation") from None
        raise binding.JaxRuntimeError(
            _refused(message, name, chip) or gpu_targets.missing(message, cuda)
            or binding.readable(message)) from None
    if memory := _memory.get(devices[0].client):
        check_memory(name, devices[0], compiled.get_compiled_memory_stats(), memory)
    return compiled


def check_memory(name: str, device: binding.Device, stats: Any, memory: int | None = None) -> None:
    """JaxRuntimeError for a program that needs more than the memory of a chip: `memory`, or its maker's."""
    chip = chips.of_device(device)
    memory = memory or _memory.get(device.client) or (chip.memory if chip else None)
    needed = (stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
              + stats.temp_size_in_bytes)
    if memory and needed > memory:
        raise binding.JaxRuntimeError(_overflow(
            name, "arguments, results and temporaries", f"{needed / (1 << 30):.2f} GiB", device.device_kind,
            f"{memory / (1 << 30):.2f} GiB"))


def _refused(message: str, name: str, chip: str) -> str | None:
    """What to say where libtpu finds a chip's memory too small; None for another message."""
    found = re.search(r"required for ([^()]+) \(([\d.]+)([KMGTP]?)\) exceeds available HBM "
                      r"\(([\d.]+)([KMGTP]?)\)", message)
    if not found:
        return None
    what, *sizes = found.groups()
    needed, available = (f"{number} {unit}{'i' * bool(unit)}B" for number, unit in (sizes[:2], sizes[2:]))
    return _overflow(name, what, needed, chip, available)


def _overflow(name: str, what: str, needed: str, chip: str, available: str) -> str:
    return (f"RESOURCE_EXHAUSTED: {name} does not fit: its {what} need {needed} of memory on each chip, and "
            f"a {chip} has {available}. Split arrays over more mesh axes or chips (dump_hlo --stage sharded "
            "shows what is whole on every chip), recompute in the backward pass (hlotrace.checkpoint), "
            "donate arguments, or take smaller batches or types.")
