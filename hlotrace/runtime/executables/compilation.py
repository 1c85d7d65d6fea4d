"""A program compiled as one: found in memory by its text, on disk, or compiled by XLA."""
from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core import source_info
from ...core.caches import LRUCache
from ...core.config import CompilerEffortLevel, config
from ...core.jaxpr import Jaxpr, sub_jaxprs
from ...lowering.lowered import Lowered
from ...lowering.outline import tokens_of
from .. import binding, callback_guard
from ..devices import client
from . import progress
from .executable import Executable

if TYPE_CHECKING:
    from . import disk_cache

_loaded = LRUCache(512)         # what was compiled and where it is stored, by its text
_SHORT, _SEVERAL = 1 << 16, 16        # characters; programs
compile_count = 0            # programs compiled by this process
disk_hits = 0                # programs that another process compiled, found on disk
_SIZES = re.compile(r"tensor<((?:\d+x)+)")
_SMALL, _SMALL_LOOP = 6 * 4096, 4096     # elements: of an operation on 4,096, with its arguments and result
# what comes out otherwise, by more than the order of a sum, without the fusion emitters
_APART = re.compile(r"stablehlo\.(?:tan|cbrt)\b|chlo\.atan\b|[<x]f[48]E"
                    r"|(?:rsqrt|log_plus_one|chlo\.a(?:sin|cos|tan)h)\b.*[<x](?:f16>|complex)")
_ORDERED = re.compile(r"stablehlo\.(?:while|case|transpose|reverse)\b")
_CACHE = "/jax/compilation_cache/"


def compile_whole(lowered: Lowered, device: binding.Device, compiler_options: Mapping[str, Any] | None = None,
                  pieces: int = 1) -> Executable:
    """An Executable that is one program to XLA; `pieces` is how many make up the user's program.

    It runs on `device`, or on the devices of the program's partition, of which `device` is one.
    """
    kind: type[Executable]
    devices, kind = (device,), Executable
    if lowered.partition:
        from . import spmd
        devices, kind = lowered.partition.devices, spmd.SpmdExecutable
    if lowered.kernels:
        from . import kernels
        kernels.register(lowered.kernels, lowered.platform)
    compiler_options, efforts = {**_flags(), **(compiler_options or {})}, _efforts()
    if client.is_elsewhere(device):
        from ..devices import topology
        return topology.compile_lowered(lowered, devices, options_for(devices, compiler_options))
    with_lines = config.jax_compilation_cache_include_metadata_in_key
    key = (lowered.text, devices, tuple(sorted(compiler_options.items())), efforts, with_lines)
    once = bool(lowered.callbacks or lowered.inspections)       # compiling it again means something
    found = None if once else _loaded.use(key)
    if found is not None:
        loaded, stored = found
        return kind(loaded, lowered, device, 0.0, stored)
    options = options_for(devices, {**_sooner(lowered), **compiler_options})
    entry = None if once else _disk_entry(lowered, devices, options)
    made = _from_disk(entry, kind, lowered, device) if entry else None
    if entry:
        progress.tell("event", f"{_CACHE}compile_requests_use_cache")
        progress.tell("event", f"{_CACHE}{'cache_misses' if made is None else 'cache_hits'}")
    if made is None:
        made = _compile(kind, lowered, device, devices, options)
        if entry:
            entry.store(made.loaded, lowered.jaxpr.name, made.compile_seconds, pieces)
    if not once:
        _loaded.keep(key, (made.loaded, made.stored))
    return made


def read_at_other_lines() -> list[binding.LoadedExecutable]:
    """What this process has from disk that was compiled from the same program with other names of lines."""
    entries: dict[Any, Any] = dict(_loaded.entries)
    return [loaded for (text, *_), (loaded, stored) in entries.items() if at_other_lines(text, stored)]


def at_other_lines(text: str, stored: str | bytes | None) -> bool:
    """Is what is stored a file that holds a program compiled from another text, in names of lines?"""
    if not isinstance(stored, str):
        return False
    from . import disk_cache
    return not disk_cache.has_lines_of(stored, text)


def options_for(devices: Sequence[binding.Device], compiler_options: Mapping[str, Any] | None = None) -> Any:
    """jaxlib's CompileOptions for a program of one partition on each of `devices`, as options say."""
    return binding.compile_options(devices, {**_flags(), **(compiler_options or {})}, *_efforts())


def _flags() -> dict[str, Any]:
    """What options of JAX's say of how to compile, as flags of XLA."""
    flags: dict[str, Any] = {}
    if config.jax_disable_most_optimizations:
        flags |= {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    if not config.jax_compiler_enable_remat_pass:
        flags["xla_disable_hlo_passes"] = "rematerialization"
    return flags


def _sooner(lowered: Lowered) -> Mapping[str, Any]:
    """`binding.sooner` for a program that runs as fast with it.

    It is one on few elements, on fewer where it loops, or one that computes each element from those at one
    place. Its text tells, also of what primitives hold and lower to: all types that it names are counted. One
    that computes many results alike compiles no sooner: the fusion emitters compile equal fusions once.
    """
    text = lowered.text
    if not binding.sooner or not lowered.platform.on_host or len(text) > 2 * _SHORT or _APART.search(text):
        return {}
    elements = sum([math.prod(map(int, sizes[:-1].split("x"))) for sizes in _SIZES.findall(text)])
    few = _SMALL_LOOP if "stablehlo.while" in text else _SMALL
    as_fast = elements <= few or not _ORDERED.search(text) and _each(lowered.jaxpr)
    return binding.sooner if as_fast and not _alike(lowered.jaxpr) else {}


def _alike(jaxpr: Jaxpr) -> bool:
    """Are there more than three results of each kind: computed alike, from arguments of the same types?"""
    if len(jaxpr.outvars) <= 3:
        return False
    made: dict[Any, int] = {}
    kinds: dict[Any, Any] = {v: v.aval for v in jaxpr.invars}
    for token, eqn in zip(tokens_of(jaxpr.eqns), jaxpr.eqns):
        kind = made.setdefault((token, *map(kinds.get, eqn.invars)), len(made))
        kinds.update((v, (kind, i)) for i, v in enumerate(eqn.outvars))
    return 3 * len({*map(kinds.get, jaxpr.outvars)}) < len(jaxpr.outvars)


def _each(jaxpr: Jaxpr) -> bool:
    """Is each element of the results computed from those at one place?"""
    for eqn in jaxpr.eqns:
        inner = list(sub_jaxprs(eqn.params))
        if not (all(map(_each, inner)) if inner else eqn.primitive.elementwise or eqn.primitive.structural):
            return False
    return True


def _efforts() -> tuple[int | None, int | None, int]:
    """The optimization level or None, the memory fitting level or None, and the profile version."""
    levels = (config.jax_optimization_level, config.jax_memory_fitting_level)
    return (*[None if level == usual else CompilerEffortLevel[level].value
              for level, usual in zip(levels, ("UNKNOWN", "O2"))], config.jax_xla_profile_version)


def _disk_entry(lowered: Lowered, devices: Sequence[binding.Device], options: Any) -> disk_cache.Entry | None:
    """Where a program is kept between processes; None where looking costs more than it saves."""
    seconds = min(1, config.jax_persistent_cache_min_compile_time_secs)
    if len(lowered.text) < lowered.platform.instant * seconds or not config.jax_enable_compilation_cache:
        return None
    from . import disk_cache  # 4 ms, most of it OpenSSL: not for programs that compile in 10
    return disk_cache.entry(lowered.text, devices, options)


def _from_disk(entry: disk_cache.Entry, kind: type[Executable], lowered: Lowered,
               device: binding.Device) -> Executable | None:
    global disk_hits
    start = time.perf_counter()
    loaded = entry.load(len(lowered.jaxpr.invars), len(lowered.jaxpr.outvars))
    if not loaded:
        return None
    disk_hits += 1
    seconds = time.perf_counter() - start
    progress.tell("event_duration_secs", f"{_CACHE}cache_retrieval_time_sec", seconds)
    progress.tell("event_duration_secs", f"{_CACHE}compile_time_saved_sec", entry.seconds - seconds)
    progress.log("loaded %s in %.3f s from %s", lowered.jaxpr.name, seconds, entry.path)
    return kind(loaded, lowered, device, seconds, entry.path)


def _compile(kind: type[Executable], lowered: Lowered, device: binding.Device,
             devices: Sequence[binding.Device], options: Any) -> Executable:
    global compile_count
    if binding.most_cpu_elements and lowered.platform.on_host:
        _check_sizes(lowered.jaxpr, binding.most_cpu_elements * len(devices))
    start = time.perf_counter()
    failures: list[BaseException] | None = [] if lowered.partition else None
    text = lowered.text
    if lowered.inspections:
        from ..mlir.partitioners import filled
        text, _kept_alive = filled(lowered, device)
    if binding.sums_slice_starts:
        from .slice_starts import in_range  # only for one jaxlib
        text = in_range(text)
    devices = binding.DeviceList(devices)
    try:
        with progress.stage("compiled", lowered.jaxpr.name), progress.compiling(lowered.jaxpr):
            callbacks = [callback_guard.guard(function, avals, tokens, failures)
                         for function, avals, tokens in lowered.callbacks]
            loaded = backend_compile_and_load(device.client, _module(text, bool(callbacks)), devices, options,
                                              *[callbacks] * bool(callbacks))
    except binding.JaxRuntimeError as error:
        raised = callback_guard.original(error)      # by a function that XLA called while it compiled
        raise (binding.JaxRuntimeError(binding.readable(str(error))) if raised is error else raised) from None
    seconds = time.perf_counter() - start
    compile_count += 1
    made: Any = kind(loaded, lowered, device, seconds)
    if failures is not None:
        made.failures = failures
    return made


def _module(text: str, needed: bool) -> Any:
    """What jaxlib is given of a program: its module if that is `needed` or quicker, or else its text.

    For a text jaxlib makes an MLIR context each time, some milliseconds; the bindings are some programs' time
    to import.
    """
    imported = compile_count >= _SEVERAL or "jaxlib.mlir.ir" in sys.modules
    if not needed and (len(text) > _SHORT or not imported):
        return text
    from ..mlir.bindings import ir, module_to_compile
    try:
        return module_to_compile(text)
    except ir.MLIRError:
        if needed:
            raise
        return text         # jaxlib says what is wrong


def backend_compile_and_load(backend: binding.Client, *args: Any) -> binding.LoadedExecutable:
    """Compile for devices that are there: libraries replace it by their own (`jax._src.compiler`)."""
    return backend.compile_and_load(*args)


def _check_sizes(jaxpr: Jaxpr, most: int) -> None:
    """ValueError for an array of more than `most` elements: compiling it would end the process."""
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            if v.aval.size > most:
                where = source_info.describe(eqn.source)
                raise ValueError(
                    f"jaxlib {binding.jaxlib_version} cannot compile {eqn.primitive.name} with a result of "
                    f"type {v.aval.str_short()} for the CPU{where and f', at {where}'}: it has "
                    f"{v.aval.size} elements, the limit is {most}. Make it in parts, for example in a loop "
                    "over its first axis.")
        for inner in sub_jaxprs(eqn.params):
            _check_sizes(inner, most)
