"""Programs over several devices: which ones, how arguments and results are over them, and the launch.

Nothing reaches jaxlib here that was not compared with what the program was compiled for: some versions of it
crash on an argument of another sharding.
"""
from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.avals import ShapedArray, physical
from ...lowering.lowered import Lowered
from ...sharding.abstract import Sharding
from ...sharding.layout import Anywhere
from ...sharding.mesh import AbstractMesh, Mesh, current_mesh
from ...sharding.named import NamedSharding
from ...sharding.partition import Partition, over_devices
from ...sharding.positional import PositionalSharding
from ...sharding.single import SingleDeviceSharding
from ...sharding.spec import PartitionSpec
from .. import array_impl, binding, callback_guard
from ..devices import client, placement, relayout, shards, transfer_guards
from ..processes import consistency_checks
from . import executable

# launches that are not waited for, on clients where more of them starve
IN_FLIGHT = 8
_in_flight: collections.deque = collections.deque()     # their tokens
# held so that all devices see the launches of all threads in one order
_launching = threading.Lock()


class SpmdExecutable(executable.Executable):
    """A program compiled for several devices, or for a mesh of one."""
    in_shardings: Any
    out_shardings: Any
    failures: list[BaseException]       # of callbacks, where it has some
    __slots__ = ("devices", "in_shardings", "out_shardings", "follows", "may_starve", "failures", "company",
                 "agreed")

    def __init__(self, loaded: Any, lowered: Lowered, device: binding.Device,
                 compile_seconds: float, stored: str | bytes | None = None) -> None:
        partition: Any = lowered.partition
        self.devices = partition.devices
        self.in_shardings, self.out_shardings = self._shardings(loaded, lowered)
        outs = zip(self.out_shardings, lowered.jaxpr.out_avals, partition.outs)
        like = functools.cache(functools.partial(_like, shardings=partition.ins,
                                                 avals=lowered.jaxpr.in_avals))
        self.follows = [_is_open(requested) and like(s, a.ndim) for s, a, requested in outs]
        self.out_shardings = [s if i is False else self.in_shardings[i].in_layout(None)
                              for s, i in zip(self.out_shardings, self.follows)]
        self.may_starve = _may_starve(loaded, lowered, device)
        self.company, self.agreed = consistency_checks.company_of(self.devices), None
        super().__init__(loaded, lowered, device, compile_seconds, stored)
        # what was not made of values over a mesh goes with such as are split
        typed = [s.put(a) for s, a in zip(self.out_shardings, self.out_avals)]
        self.out_avals = [a if t.explicit is None and a.mesh is None and t.memory is a.memory else t
                          for t, a in zip(typed, self.out_avals)]

    def _shardings(self, loaded: Any, lowered: Lowered) -> tuple[Any, Any]:
        """Those of the inputs and of the outputs, each a list."""
        partition: Any = lowered.partition
        return (_settled(partition, partition.ins, lowered.jaxpr.in_avals,
                         loaded.get_parameter_shardings, loaded.get_parameter_layouts),
                _settled(partition, partition.outs, lowered.jaxpr.out_avals,
                         loaded.get_output_shardings, loaded.get_output_layouts))

    def placement_text(self) -> str:
        return f"{_listed(self.devices)} with shardings {self.in_shardings}"

    def _handlers(self) -> Any:
        return [binding.result_handler(physical(a), s) for a, s in zip(self.out_avals, self.out_shardings)]

    commits = property(lambda self: not self.lowered.partition.free)

    def has_there(self, x: Any, i: int) -> bool:
        current, sharding = x._buf._sharding._own, self.in_shardings[i]
        return current is sharding or current == sharding

    def take(self, leaves: Sequence[Any]) -> tuple[list[binding.Buffer], Any] | None:
        """(buffers, are results committed) for these arguments, moved where they are not committed; None if
        they are elsewhere.

        Where the shardings of some are equivalent to those of the program but other words, these words take
        the place of True, by position.
        """
        buffers, words = [], {}
        for i, (x, sharding, aval) in enumerate(zip(leaves, self.in_shardings, self.lowered.jaxpr.in_avals,
                                                    strict=True)):
            if type(x) is not array_impl.ArrayImpl:
                buffers.append(self.put(x, i))
                continue
            if shards.is_lost(x._buf):
                x.check_alive()
                raise shards.lost(f"argument {i} of {self.lowered.jaxpr.name}, of type {aval.str_short()},")
            if not self.has_there(x, i):
                current = x._buf._sharding._own
                if x._committed and not current.same_placement(sharding, x.aval.ndim):
                    return None
                if type(current) is NamedSharding and current._devices == self.devices:
                    words[i] = current
                x = relayout.copy(x, sharding)
            buffers.append(x._buf)
        self.check_donated(buffers)
        return buffers, words or self.commits or any(getattr(x, "_committed", False) for x in leaves)

    def put(self, value: Any, i: int) -> binding.Buffer:
        sharding, aval = self.in_shardings[i], self.lowered.jaxpr.in_avals[i]
        buffer = shards.put(np.asarray(value), aval, sharding.in_layout(None))
        return buffer if sharding._layout is None else relayout.copy(
            array_impl.ArrayImpl(aval, buffer), sharding)._buf

    def __call__(self, buffers: Sequence[binding.Buffer],
                 committed: bool | dict[int, Sharding] = False) -> list[Any]:
        outs = super().__call__(buffers, committed is not False)
        if type(committed) is dict:
            for i, follows in enumerate(self.follows):
                if follows is not False and follows in committed:
                    aval = committed[follows].typed(outs[i].aval)
                    outs[i] = array_impl.ArrayImpl(aval, binding.rewrap(
                        outs[i]._buf, physical(aval), committed[follows]), True)
        return outs

    def run(self, buffers: Sequence[binding.Buffer]) -> list[binding.Buffer]:
        callback_guard.forbid_inside("a program over several devices")
        if self.company is not None:
            transfer_guards.check_thread(self.lowered.jaxpr.name)
            self.company.start(self)
        if self.lowered.callbacks:
            return self._run_with_callbacks(buffers)
        if not self.may_starve:
            with _launching:
                return super().run(buffers)
        with _launching:
            oldest = _in_flight.popleft() if len(_in_flight) >= IN_FLIGHT else None
        if oldest is not None:
            executable.wait(oldest)
        with _launching:
            results = self._launched(buffers)
            _in_flight.append(results.consume_token())
            return results.consume_with_handlers(self.handlers)

    def _launched(self, buffers: Sequence[binding.Buffer]) -> Any:
        try:
            return self.loaded.execute_sharded(buffers, with_tokens=True)
        except binding.JaxRuntimeError as error:
            raise callback_guard.original(error, self.lowered.jaxpr) from None

    def _run_with_callbacks(self, buffers: Sequence[binding.Buffer]) -> Any:
        """Launch, wait, and raise what a callback raised: its device went on with zeros, so that none waits
        for it."""
        if self.lowered.ordered:
            executable.effects_barrier()
        with _launching:
            results = self._launched(buffers)
        executable.wait(results.consume_token())
        if self.failures:
            first = self.failures[0]
            self.failures.clear()
            raise first
        return results.consume_with_handlers(self.handlers)


LONGEST_SEARCHED = 1 << 16      # characters of a program whose compiled text is made to look into it


def _may_starve(loaded: Any, lowered: Lowered, device: binding.Device) -> bool:
    """jaxlib's CPU client before 0.11 does when many programs wait in each other's collectives."""
    partition: Any = lowered.partition
    if device.platform != "cpu" or len(partition.devices) == 1 or binding.version >= (0, 11):
        return False
    if loaded is None or len(lowered.text) > LONGEST_SEARCHED:
        return True
    text = "".join(module.to_string() for module in loaded.hlo_modules())
    return "replica_groups=" in text or "source_target_pairs=" in text      # each collective has one of these


def _is_open(requested: Any) -> bool:
    """Was nothing requested but a kind of memory?"""
    return requested is None or type(requested) is Anywhere and requested._layout is None


def _in_memory(sharding: Any, kind: str) -> Any:
    return sharding.with_memory_kind(kind)


def _settled(partition: Partition, requested: Sequence[Sharding | None], avals: Sequence[ShapedArray],
             compiled: Callable[[], Any], layouts_of: Callable[[], Any]) -> list[Any]:
    """The shardings that were requested, and where none was, those that the compiler chose."""
    settled = list(requested)
    if not all(requested):
        found = compiled() if len(partition.devices) > 1 else None
        settled = [s or chosen(found and hlo_sharding(found[i]), a, partition.devices, partition.mesh,
                               partition.others)
                   for i, (s, a) in enumerate(zip(requested, avals, strict=True))]
        settled = [_in_memory(s, want._kind) if s and want is not None and want._kind else s
                   for s, want in zip(settled, requested)]
    if any(s is not None and s._layout is not None for s in requested):
        from ..devices import layouts  # few programs ask for one
        read = layouts_of()
        settled = [s if want is None or want._layout is None else layouts.compiled(s, a, read[i])
                   for i, (s, want, a) in enumerate(zip(settled, requested, avals))]
    return settled


def _like(found: Sharding, ndim: int, shardings: Sequence[Sharding], avals: Sequence[ShapedArray]) -> Any:
    """The first argument of rank `ndim` that was placed as `found` says, or False: such a result takes the
    argument's words.

    So what splits nothing, mesh axes of size 1 and None for the last dimensions, is not lost.  Over Explicit
    axes the type says it.
    """
    if type(found) is NamedSharding and found.mesh.explicit_axes:
        return False
    return next((i for i, (s, a) in enumerate(zip(shardings, avals))
                 if a.ndim == ndim and type(s) is NamedSharding
                 and s.in_layout(None).is_equivalent_to(found, ndim)), False)


def chosen(hlo: Any, aval: ShapedArray, devices: Sequence[binding.Device], mesh: Any,
           others: Sequence[Mesh] = ()) -> Sharding:
    """The sharding that the compiler chose, as a NamedSharding where the axes of `mesh`, or one of `others`,
    can say it."""
    if len(devices) == 1 and not mesh:
        return placement.on_device(devices[0])
    if hlo is None or hlo.is_replicated():
        entries = [None] * aval.ndim if mesh and mesh.explicit_axes else ()
        return NamedSharding(mesh, PartitionSpec(*entries)) if mesh else PositionalSharding(devices).reshape(
            (1,) * aval.ndim + (-1,)).replicate(aval.ndim, keepdims=False)
    counts = list(hlo.tile_assignment_dimensions())
    tiles = np.array(hlo.tile_assignment_devices()).reshape(counts)
    ndim = physical(aval).ndim
    tiles = tiles.reshape(*counts[:ndim], -1)[(slice(None),) * aval.ndim + (0,) * (ndim - aval.ndim)]
    for each in filter(None, (mesh, *others)):
        if (spec := spec_of(tiles, each)) is not None:
            found = NamedSharding(each, spec)
            typed = aval.splits[:len(spec)] == [*map(spec.axes, range(len(spec)))]
            return found.filled(aval.ndim) if typed else found      # where the type says it, as that does
    return PositionalSharding(devices)._with(tiles)


def hlo_sharding(op_sharding: Any) -> Any:
    """jaxlib's HloSharding from its OpSharding, by tiles."""
    from jaxlib import xla_client
    return by_tiles(xla_client.HloSharding.from_proto(op_sharding))


def by_tiles(hlo: Any) -> Any:
    """An HloSharding that speaks of tiles also where jaxlib's speaks of mesh axes."""
    return hlo.v3_to_v2_sharding() if hasattr(hlo, "v3_to_v2_sharding") else hlo


def with_inspections(lowered: Lowered, device: binding.Device) -> tuple[str, Sequence[Any]]:
    """The program's text with pointers to its inspections, and what must stay alive while it is compiled.

    XLA calls them during compilation; for a program of one device they are called here.
    """
    if lowered.partition is None:
        for callback, _ in lowered.inspections:
            callback(placement.on_device(device))
        return lowered.text, ()
    partition, text, alive = lowered.partition, lowered.text, []
    for i, (callback, aval) in enumerate(lowered.inspections):
        if hasattr(callback, "partition"):      # XLA asks it for more: see partitioners.py
            continue

        def tell(hlo: Any, callback: Any = callback, aval: ShapedArray = aval) -> None:
            callback(chosen(by_tiles(hlo), aval, partition.devices, partition.mesh))
        key = binding._jax.encode_inspect_sharding_callback(tell)
        alive.append(tell)
        text = text.replace(f'"inspection {i}"', '"' + "".join(f"\\{byte:02X}" for byte in key) + '"')
    return text, alive


def spec_of(tiles: np.ndarray, mesh: Mesh) -> PartitionSpec | None:
    """The PartitionSpec over `mesh` that gives these `tiles` (see sharding/abstract.py), or None.

    For each dimension the axes are found whose coordinates, major first, count its tiles.
    """
    # device -> tile
    number = np.argsort(tiles.reshape(-1, tiles.shape[-1]), axis=None) // tiles.shape[-1]
    where = np.unravel_index(number, tiles.shape[:-1])
    at = np.unravel_index(np.arange(mesh.size), mesh.axis_sizes)
    free = [i for i, size in enumerate(mesh.axis_sizes) if size > 1]
    entries = []
    for dim, count in enumerate(tiles.shape[:-1]):
        axes, inner = [], count      # an axis whose next step moves by `inner` tiles
        while inner > 1:
            for axis in free:
                size = mesh.axis_sizes[axis]
                if inner % size == 0 and np.array_equal(where[dim] // (inner // size) % size, at[axis]):
                    break
            else:
                return None
            free.remove(axis)
            axes.append(mesh.axis_names[axis])
            inner //= size
        entries.append(tuple(axes))
    while entries and not entries[-1]:
        entries.pop()
    return PartitionSpec(*entries)


def partition_of(values: Sequence[Any], requested: Sequence[Sharding | None],
                 outs: Any, meshes: Sequence[Any],
                 names: Callable[[int], str]) -> Partition | binding.Device:
    """The Partition for these inputs (what has a shape), or the one device that all agree on.

    `requested` and `outs` are shardings, None where the compiler may choose (`outs` itself is None while it
    may choose all); `meshes` are those that the program names, `names(i)` words for input i.  Raises
    ValueError where devices differ.
    """
    said = [(s, names, i) for i, s in enumerate(requested) if s]
    said += [(s, "result {}".format, i) for i, s in enumerate(outs or ()) if s]
    devices: Any = None
    first: Any = None
    abstract = [m for m in meshes if isinstance(m, AbstractMesh)]
    for s, words, i in [*said, *((m, "a mesh inside the program".format, 0) for m in meshes
                                 if m not in abstract)]:
        if isinstance(getattr(s, "mesh", None), AbstractMesh):
            abstract.append(s.mesh)
        elif devices is None:
            devices, first = s._devices, functools.partial(words, i)
        elif s._devices != devices:
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {first()} with "
                f"{_ids(devices)} and {words(i)} with {_ids(s._devices)}. Move them to the same devices, in "
                "the same order, with device_put.")
    free = any(type(s) is Anywhere for s in (*requested, *(outs or ())))
    if not meshes and not free and all(
            type(s) is SingleDeviceSharding and s._kind is None and s._layout is None for s, *_ in said):
        return devices[0]
    if devices is None and abstract:
        in_use = current_mesh()
        if isinstance(in_use, Mesh) and in_use.shape_tuple == abstract[0].shape_tuple:
            meshes = [in_use.update(axis_types=abstract[0].axis_types)]
            devices = in_use._devices
    if devices is None and not abstract:        # layouts alone are requested
        devices = (client.default_device(),)
    if devices is None:
        # numbers represent devices in a program that is not compiled
        devices = tuple(range(abstract[0].size))
    for m in abstract:
        if m.size != len(devices):
            raise ValueError(f"{m} has {m.size} devices, and the program runs on {len(devices)}")
    for (s, words, i) in said:
        if words is names:
            placement.check_divides(s, values[i], functools.partial(words, i))
    named = [s.mesh for s, *_ in said if isinstance(s, NamedSharding)]
    known = [*named, *(m for m in meshes if isinstance(m, (Mesh, AbstractMesh)))]
    mesh = next((m for m in known if isinstance(m, Mesh)), known[0] if known else None)
    if abstract and isinstance(mesh, Mesh):
        requested, outs = (over_devices(each, mesh) for each in (requested, outs or ()))
    if mesh is None and len(devices) == 1:
        where = placement.on_device(devices[0])
        requested, outs = ([where.with_memory_kind(s._kind).in_layout(s._layout) if type(s) is Anywhere else s
                            for s in each]
                           for each in (requested, outs or ()))
    given: Any = tuple(outs) if outs else None
    others = tuple(m for m in dict.fromkeys(known) if type(m) is type(mesh) is Mesh and m is not mesh)
    return Partition(devices, tuple(requested), given, mesh, others, free and not said and len(devices) == 1)


def _ids(devices: Sequence[binding.Device]) -> str:
    return f"device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


def _listed(devices: Sequence[binding.Device]) -> str:
    return f"{devices[0].platform.upper()} {', '.join(str(d.id) for d in devices)}"
