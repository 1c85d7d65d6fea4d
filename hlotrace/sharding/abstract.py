"""Sharding: how an array is divided over devices.  A kind of sharding has two things, and the rest follows:

`_devices`       a tuple: the devices in the order in which a program numbers them;
`_tiles(ndim)`   an integer array: entry [i, j, ..., :] numbers the devices that hold tile (i, j, ...) of an
                 array of rank `ndim`; the last axis runs over the copies.

jaxlib, too, reads attributes of these objects; `runtime/devices/placement.py` installs them.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.avals import ShapedArray, Space
from ..core.dtypes import is_extended
from ..core.errors import IndivisibleError
from ..core.surface.boundary import boundaries

# the one kind of memory that types say
HOST = "pinned_host"
_OF_JAXLIB = "_of_jaxlib"      # what `runtime/devices/placement.py` adds


@functools.cache
def is_local(device: Any) -> bool:
    """Does this process hold the device?  A device that knows no client is this process's own."""
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


@functools.lru_cache(256)
def _kinds(devices: tuple[Any, ...]) -> tuple[str | None, list[str] | None]:
    """(the default kind of the devices' memory, all kinds); (None, None) where the devices do not say."""
    device: Any = next((d for d in devices if is_local(d) and hasattr(d, "default_memory")), None)
    try:
        if device is None:      # those of other processes have what this one's have
            device = devices[0].client.local_devices()[0]
        return device.default_memory().kind, [memory.kind for memory in device.addressable_memories()]
    except (AttributeError, RuntimeError):      # substitutes, devices that programs are only compiled for
        return None, None


def space_of(kind: str | None, aval: ShapedArray) -> Space:
    """What the type of a value in a kind of memory says of it."""
    return Space.Host if kind == HOST and not is_extended(aval.dtype) else Space.Device


def checked_kind(kind: str | None, devices: tuple[Any, ...] | None, what: str) -> str | None:
    """`kind` as shardings have it, None for the default.

    Args:
        devices: those whose memory it is; None: any.
        what: the function or class that users called, for the error.
    Raises:
        ValueError: for a kind that the devices do not have.
    """
    if kind is None:
        return None
    any_kinds = None, ["device", "pinned_host", "unpinned_host"]
    default, known = any_kinds if devices is None else _kinds(devices)
    if known and kind not in known:
        device = "" if devices is None else f" {devices[0].device_kind}"
        raise ValueError(f"{what}: Could not find memory addressable by device{device}. Device{device} can "
                         f"address the following memory kinds: {', '.join(known)}. Got memory kind: "
                         f"{kind}; None is the default")
    return None if kind == default else kind


@boundaries(called="", but="is_equivalent_to same_placement devices_indices_map in_layout filled typed "
                           "put addressable_devices_indices_map")
class Sharding:
    """How an array of a suitable shape is divided, and which device holds which part."""
    _kind: str | None = None      # of memory; None: the devices' default
    # the order of elements in each device's memory; None: the devices' default
    _layout: Any = None
    _terms: frozenset[str] = frozenset()        # mesh axes along which devices hold the terms of a sum
    _devices: tuple[Any, ...]

    def _tiles(self, ndim: int) -> np.ndarray:
        raise NotImplementedError

    def in_layout(self, layout: Any) -> Any:
        """The sharding of arrays in a Layout; None: in the devices' default, which users see."""
        plain = self.__dict__.get("_plain", self)
        if layout is None:
            return plain
        new = copy.copy(plain)
        new._layout, new._plain = layout, plain
        return new

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._layout is None:
            return super().__reduce_ex__(protocol)
        return _in_layout, (self.in_layout(None), self._layout)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _OF_JAXLIB}

    def _splits(self, dim: int) -> str:
        """What dimension `dim` is split over, for errors."""
        raise NotImplementedError

    def filled(self, ndim: int) -> Any:
        """The same with an entry for each dimension, where types over Explicit mesh axes have them."""
        return self

    def typed(self, aval: Any) -> Any:
        """The type of an array of `aval` that has this sharding."""
        return aval.update(sharding=self)

    def put(self, aval: Any) -> Any:
        """The type of an array of `aval` that was put under this sharding, in its kind of memory."""
        return self.typed(aval.update(memory_space=space_of(self._kind, aval)))

    @property
    def memory_kind(self) -> str | None:
        """Which memory of the devices holds the array; None where the devices are not known."""
        return self._kind or _kinds(self._devices)[0]

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold the array, those of other processes included."""
        return set(self._devices)

    @property
    def addressable_devices(self) -> set[Any]:
        """Those that this process holds."""
        return {device for device in self._devices if is_local(device)}

    @property
    def has_addressable_devices(self) -> bool:
        """Does this process hold some of the devices?"""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Does this process hold every device?"""
        return all(map(is_local, self._devices))

    @property
    def num_devices(self) -> int:
        return len(self._devices)

    # JAX's names, which Orbax reads
    _device_assignment = property(lambda self: self._devices)
    _addressable_device_assignment = property(lambda self: tuple(filter(is_local, self._devices)))

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part.

        Raises:
            IndivisibleError: where a dimension does not divide evenly.
        """
        return _shard_shape(self, tuple(global_shape))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """For each device, its part of an array of `global_shape`: a tuple of slices."""
        return dict(_indices(self, tuple(global_shape), False))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """`devices_indices_map` for the devices that this process holds."""
        return dict(_indices(self, tuple(global_shape), True))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Do both place the same parts of an array of rank `ndim` on the same devices, numbered alike?"""
        return self is other or self._devices == other._devices and self.divides_alike(other, ndim)

    def divides_alike(self, other: Sharding, ndim: int) -> bool:
        """Do both place the same parts of an array of rank `ndim`, on as many devices, numbered alike?"""
        return (self._kind == other._kind and self._terms == other._terms and self._layout == other._layout
                and np.array_equal(np.sort(self._tiles(ndim)), np.sort(other._tiles(ndim))))

    def same_placement(self, other: Sharding, ndim: int) -> bool:
        """Does each device hold the same part of an array of rank `ndim`, however they are numbered?"""
        if self.is_equivalent_to(other, ndim):
            return True
        tiles, others = self._tiles(ndim), other._tiles(ndim)
        if tiles.shape != others.shape or (self._kind, self._terms, self._layout) != (
                other._kind, other._terms, other._layout):
            return False
        by_device = [{s._devices[n]: i // t.shape[-1] for i, n in enumerate(t.flat)}
                     for s, t in ((self, tiles), (other, others))]
        return by_device[0] == by_device[1]

    def _memory_repr(self) -> str:
        return "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"


@functools.lru_cache(4096)
def _shard_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    counts = sharding._tiles(len(shape)).shape[:-1]
    for dim, (size, count) in enumerate(zip(shape, counts)):
        if size % count:
            raise IndivisibleError(
                f"Sharding {sharding} implies that array axis {dim} is partitioned {count} times, but the "
                f"dimension size is {size} (full shape: {shape}, per-dimension tiling factors: "
                f"{[*counts]} should evenly divide the shape): it is split over {sharding._splits(dim)}. Pad "
                f"it to {-(-size // count) * count}, or do not split it so.")
    return tuple(size // count for size, count in zip(shape, counts))


@functools.lru_cache(1024)
def _indices(sharding: Sharding, shape: tuple[int, ...], local: bool) -> dict[Any, tuple[slice, ...]]:
    """`devices_indices_map`, for the devices that this process holds if `local`."""
    part = sharding.shard_shape(shape)
    tiles = sharding._tiles(len(part))
    where = {int(number): tile[:-1] for tile, number in np.ndenumerate(tiles)}
    return {device: tuple(slice(None) if count == 1 else slice(i * size, (i + 1) * size)
                          for i, size, count in zip(where[number], part, tiles.shape))
            for number, device in enumerate(sharding._devices) if not local or is_local(device)}


def _in_layout(sharding: Sharding, layout: Any) -> Any:
    return sharding.in_layout(layout)
