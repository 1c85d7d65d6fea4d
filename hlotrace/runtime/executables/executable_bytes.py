"""Compiled programs as bytes: the machine code with what is needed to call it, for the same jaxlib, platform
and devices.

A checksum is compared before anything else is read, as jaxlib may crash on damaged code.  What describes the
program is pickled, with numbers in place of devices; reading it makes no objects but those of this package,
NumPy and Python's own.
"""
from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.effects import IO
from ...core.jaxpr import Jaxpr, Var
from ...core.surface.importing import renamed
from ...lowering.lowered import Lowered
from .. import binding
from ..devices import client
from . import disk_cache, kernels
from .blocks import BlockExecutable, InBlocks, Memory, Steps, put_constant
from .executable import Executable
from .sharded_blocks import SpmdBlockExecutable, put_everywhere
from .spmd import SpmdExecutable

_FORMAT = b"hlotrace serialized executable 1\n"
_MODULES = ("hlotrace.core.", "hlotrace.sharding.", "hlotrace.primitives.", "numpy", "ml_dtypes")


def dump(executable: Executable, more: Any) -> bytes:
    """The bytes of an Executable, and of `more`, which may name its devices.  ValueError for one of this
    process alone."""
    lowered = executable.lowered
    if lowered.callbacks or lowered.inspections:
        raise ValueError(f"serialize: {lowered.jaxpr.name} calls Python functions of this process "
                         "(callbacks), which another one does not have")
    devices = lowered.partition.devices if lowered.partition else (executable.device,)
    head = {"jaxlib": binding.jaxlib_version, "platform": str(lowered.platform),
            "devices": [d.id for d in devices]}
    described = {"program": _described(executable), "more": more}
    if isinstance(executable, InBlocks):
        parts, steps = [piece for piece, _ in executable.pieces], executable.steps
        described["steps"] = {
            "steps": [(parts.index(piece), *slots) for piece, *slots in steps.steps], "width": steps.width,
            "constants": [b if isinstance(b, np.ndarray) else binding.to_numpy(b, b.aval)
                          for b in steps.constants],
            "out_slots": steps.out_slots, "memory": dataclasses.astuple(steps.memory)}
        described["shardings"] = executable.in_shardings, executable.out_shardings
    else:
        parts = [executable]
    described["parts"] = [(_described(p), _code(p)) for p in parts]
    out = io.BytesIO()
    out.write(json.dumps(head).encode() + b"\n")
    _Pickler(out, devices).dump(described)
    return _FORMAT + hashlib.sha256(out.getvalue()).digest() + out.getvalue()


def _code(executable: Executable) -> bytes:
    """jaxlib's bytes of a program.  What it made of bytes it writes without the code, so those are used."""
    stored = executable.stored
    if isinstance(stored, bytes):
        return stored
    if stored is None:
        return executable.serialize()
    try:
        return disk_cache.read(stored)[1]
    except (OSError, disk_cache.Damaged) as error:
        raise ValueError(f"serialize: {executable.lowered.jaxpr.name} was loaded from {stored}, which cannot "
                         f"be read any more ({error}): compile it again with jax_enable_compilation_cache "
                         "off") from error


def _described(executable: Executable) -> dict[str, Any]:
    """What is known of a program beside its code."""
    lowered = executable.lowered
    return {"name": lowered.jaxpr.name, "ins": lowered.jaxpr.in_avals, "outs": lowered.jaxpr.out_avals,
            "donated": lowered.donated, "targets": lowered.targets, "effects": bool(lowered.effects),
            "ordered": lowered.ordered, "partition": lowered.partition}


def load(payload: bytes, platform: str | None = None,
         devices: Sequence[binding.Device] | None = None) -> tuple[Executable, Any]:
    """(the Executable, what was saved beside it).

    It runs on the devices of `platform` that have the numbers of those it was compiled for, or on `devices`.
    ValueError for bytes that are none or are damaged, and where jaxlib, the platform or the devices are
    others.
    """
    start, end = len(_FORMAT), len(_FORMAT) + hashlib.sha256().digest_size
    if not isinstance(payload, bytes) or payload[:start] != _FORMAT:
        raise ValueError("deserialize_and_load: these are not the bytes that serialize gave")
    if hashlib.sha256(payload[end:]).digest() != payload[start:end]:
        raise ValueError("deserialize_and_load: the bytes are damaged: they are not those that "
                         "serialize gave")
    line, _, body = payload[end:].partition(b"\n")
    head = json.loads(line)
    if head["jaxlib"] != binding.jaxlib_version:
        raise ValueError(f"deserialize_and_load: the program was compiled by jaxlib {head['jaxlib']}, and "
                         f"this is jaxlib {binding.jaxlib_version}: compile it again (hlotrace.export keeps "
                         "programs for other versions)")
    devices, platform = _devices(head, platform, devices), head["platform"]
    found = _Unpickler(io.BytesIO(body), devices).load()
    parts = [_part(described, code, devices, platform) for described, code in found["parts"]]
    return _in_blocks(found, parts, platform, devices) if "steps" in found else parts[0], found["more"]


def _devices(head: Any, platform: str | None, given: Any) -> list[binding.Device]:
    """The devices on which a program runs here."""
    ids = head["devices"]
    candidates = list(client.client(platform).devices() if given is None else given)
    for device in candidates:
        if client.platform_of(device) != head["platform"]:
            raise ValueError(f"deserialize_and_load: the program was compiled for {head['platform']}, and "
                             f"{device} is a device of {device.platform}: give backend or execution_devices")
        if client.is_elsewhere(device):
            raise ValueError(f"deserialize_and_load: {device} is a device of a topology, which is not here: "
                             "load the program where its chips are")
    if given is not None:
        if len(given) != len(ids):
            raise ValueError(f"deserialize_and_load: the program runs on {len(ids)} devices, and "
                             f"execution_devices names {len(given)}")
        return candidates
    here = {d.id: d for d in candidates}
    if any(i not in here for i in ids):
        raise ValueError(f"deserialize_and_load: the program was compiled for the devices {ids}, and those "
                         f"here are {sorted(here)}: give execution_devices")
    return [here[i] for i in ids]


def _lowered(described: dict[str, Any], platform: str) -> Lowered:
    """As much of a Lowered program as running it asks for."""
    ins, outs = ([Var(a) for a in described[name]] for name in ("ins", "outs"))
    lowered = Lowered("", [], Jaxpr((), (), ins, (), outs, described["name"]), [], described["donated"],
                      platform, described["partition"], targets=described["targets"])
    lowered.ordered = described["ordered"]
    lowered.effects = (IO(described["ordered"]),) * described["effects"]
    return lowered


def _part(described: dict[str, Any], code: bytes, devices: Sequence[binding.Device],
          platform: str) -> Executable:
    lowered = _lowered(described, platform)
    kind = SpmdExecutable if lowered.partition else Executable
    kernels.register(lowered.kernels, lowered.platform)
    options = binding.compile_options(devices, None)
    loaded = devices[0].client.deserialize_executable(code, binding.DeviceList(tuple(devices)), options)
    return kind(loaded, lowered, devices[0], 0.0, code)


def _in_blocks(found: dict[str, Any], parts: Sequence[Executable], platform: str,
               devices: Sequence[binding.Device]) -> Executable:
    """A program in pieces that was compiled before."""
    lowered, described = _lowered(found["program"], platform), found["steps"]
    partition: Any = lowered.partition
    put = (partial(put_constant, device=devices[0]) if partition is None else
           partial(put_everywhere, mesh=partition.mesh))
    steps = Steps([(parts[i], *slots) for i, *slots in described["steps"]],
                  [put(c) for c in described["constants"]], described["width"], described["out_slots"],
                  frozenset(lowered.donated), Memory(*described["memory"]))
    if partition is None:
        return BlockExecutable(lowered, devices[0], steps)
    return SpmdBlockExecutable(lowered, devices[0], steps, found["shardings"])


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, devices: Sequence[binding.Device]) -> None:
        super().__init__(file, protocol=5)
        self._devices = {id(d): i for i, d in enumerate(devices)}

    def persistent_id(self, x: Any) -> Any:
        """In a process for JAX too, the bytes name what this package names so everywhere."""
        return renamed.get(x) if isinstance(x, type) else self._devices.get(id(x))

    def reducer_override(self, x: Any) -> Any:
        return x.__reduce_ex__(5) if type(x) in renamed else NotImplemented


def _check(module: str, name: str) -> None:
    if not module.startswith(_MODULES):
        raise ValueError(f"deserialize_and_load: the bytes name {module}.{name}, which no program has")


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, devices: Sequence[binding.Device]) -> None:
        super().__init__(file)
        self._devices = devices

    def persistent_load(self, which: Any) -> Any:
        return self.find_class(*which) if isinstance(which, tuple) else self._devices[which]

    def find_class(self, module: str, name: str) -> Any:
        _check(module, name)
        return super().find_class(module, name)
