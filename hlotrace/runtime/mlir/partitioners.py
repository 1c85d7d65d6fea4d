"""What a device does of a program: called by XLA's partitioner while it compiles.

XLA names an operation by the number in its text, gives shapes and shardings of whole values, and takes a
program of one device, as text, with the shardings that it wants.   (jaxlib 0.10 crashes where MLIR's Python
bindings are used meanwhile.)
"""
from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from ...core.avals import ShapedArray
from ...core.jaxpr import Jaxpr
from ...core.programs import trace_closed
from ...lowering.lowered import Lowered
from ...lowering.module import Module
from ...primitives.parallel.shard_map import inside
from ...sharding.abstract import Sharding
from .. import binding, callback_guard
from ..devices import plugins
from ..executables import kernels, spmd

_asked: weakref.WeakValueDictionary = weakref.WeakValueDictionary()     # number in a text -> _Operation
_numbers = itertools.count(1)
_registered: set = set()


class _Operation:
    """An application of custom_partitioning in a program that is being compiled."""

    def __init__(self, partitioner: Any, avals: tuple[list[ShapedArray], list[ShapedArray]],
                 lowered: Lowered) -> None:
        self.partitioner, (self.avals, self.out_avals) = partitioner, avals
        self.lowered: Any = lowered

    def partition(self, _shapes: Any, shardings: Sequence[Any], _result_shape: Any, result_sharding: Any,
                  _config: Any) -> tuple[bytes, list[Any], Any]:
        """The program of a device, the shardings of its operands, and that of its result."""
        partition = self.lowered.partition
        several = len(self.out_avals) != 1
        given = [self._read(s, a) for s, a in zip(shardings, self.avals, strict=True)]
        results = [self._read(s, a) for s, a in zip(
            result_sharding.tuple_elements() if several else [result_sharding], self.out_avals, strict=True)]
        mesh, function, results, given = self.partitioner.partition(
            partition.mesh, list(zip(self.avals, given)), list(zip(self.out_avals, results)))
        avals = [_shard(a, s) for a, s in zip(self.avals, given)]
        with inside(mesh, mesh.axis_names, False):
            jaxpr = trace_closed(function, avals, "part")
        self.partitioner.check([_shard(a, s) for a, s in zip(self.out_avals, results)], jaxpr.out_avals)
        encoded = [s._to_xla_hlo_sharding(a.ndim) for s, a in zip(results, self.out_avals)]
        return (self._text(jaxpr, mesh), [s._to_xla_hlo_sharding(a.ndim) for s, a in zip(given, self.avals)],
                type(result_sharding).tuple_sharding(_result_shape, encoded) if several else encoded[0])

    def _read(self, hlo: Any, aval: ShapedArray) -> Sharding:
        partition = self.lowered.partition
        return spmd.chosen(spmd.by_tiles(hlo), aval, partition.devices, partition.mesh)

    def _text(self, jaxpr: Jaxpr, mesh: Any) -> bytes:
        module = Module("part", self.lowered.platform, False)
        module.manual = mesh, mesh.axis_names
        module.write("main", jaxpr, "public")
        if module.callbacks or module.inspections:
            raise NotImplementedError("custom_partitioning: what a device does calls Python functions "
                                      "(callbacks), which belong to the program around it: call them there")
        kernels.register([t for t in module.targets if t not in self.lowered.platform.built_in],
                         self.lowered.platform)
        return module.text().encode()


def _shard(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    return ShapedArray(sharding.shard_shape(aval.shape), aval.dtype)


def filled(lowered: Lowered, device: binding.Device) -> tuple[str, list[Any]]:
    """The program's text with what XLA calls while it compiles, and what must stay alive meanwhile."""
    text, alive = spmd.with_inspections(lowered, device)
    alive = [*alive]
    for i, (partitioner, avals) in enumerate(lowered.inspections):
        if hasattr(partitioner, "partition"):
            number, operation = _ask(partitioner, avals, lowered)
            alive.append(operation)
            text = text.replace(f'"inspection {i}"', f'"{number}"')
    return text, alive


def _ask(partitioner: Any, avals: tuple[list[ShapedArray], list[ShapedArray]],
         lowered: Lowered) -> tuple[int, _Operation]:
    """The number that represents an application in the text, and the application."""
    if lowered.platform not in _registered:
        given = () if lowered.platform.on_host else (plugins.loaded.get(lowered.platform),)
        binding._jax.register_custom_call_partitioner(      # a result is split as its operand is
            "hlotrace_partitioning", lambda sharding, *_: sharding, _partition,
            lambda shapes, shardings, *_: shardings[0], True, *given)
        _registered.add(lowered.platform)
    number, operation = next(_numbers), _Operation(partitioner, avals, lowered)
    _asked[number] = operation
    return number, operation


def _partition(*args: Any) -> tuple[bytes, list[Any], Any]:
    try:
        return _asked[int(args[-1])].partition(*args)
    except BaseException as error:
        raise callback_guard.carried(error) from None
