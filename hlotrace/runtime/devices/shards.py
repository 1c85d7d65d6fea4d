"""Shards: the parts of an array over several devices, one on each, and what is made and read of them."""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.avals import ShapedArray, physical
from ...sharding.abstract import Sharding, is_local
from .. import binding
from . import placement


class Shard:
    """The part of an array that one device holds.

    `device`; `index`, a tuple of slices of the whole; `replica_id`, 0 for the first device that holds this
    part; `data`, an array on that device, or None where another process holds it.

    >>> shard = jnp.arange(3).addressable_shards[0]
    >>> shard.index, shard.replica_id, shard.data
    ((slice(None, None, None),), 0, Array([0, 1, 2], dtype=int32))
    """
    __slots__ = ("device", "index", "replica_id", "data")

    def __init__(self, device: binding.Device, index: tuple[slice, ...], replica_id: int, data: Any) -> None:
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")


def share(buffer: binding.Buffer, root: binding.Buffer | None = None) -> None:
    """Mark jaxlib's buffer as one that shares its memory: with its parts, or `root` otherwise sharded."""
    buffer._shared = buffer if root is None else memory(root)


def memory(buffer: binding.Buffer) -> Any:
    """What is the same for buffers over the same memory."""
    return getattr(buffer, "_shared", buffer)


def is_lost(buffer: binding.Buffer) -> bool:
    """Was the buffer deleted, or one of its parts?"""
    if buffer.is_deleted():
        return True
    return hasattr(buffer, "_shared") and any(part.is_deleted() for part in binding.shards(buffer))


def lost(what: str) -> RuntimeError:
    """The error for an array of which a part is gone."""
    return RuntimeError(f"{what} has lost a part: it was deleted, or donated to a compiled function, on its "
                        "own. Keep the parts as long as the whole.")


_NONE: dict[bool, tuple[Shard, ...]] = {}


def shards(x: Any, addressable: bool = True) -> list[Shard]:
    """The Shards of an array in the order of its devices; if `addressable`, only this process's."""
    if x._buf.is_deleted():
        x.check_alive()
    known = getattr(x._buf, "_shards", _NONE).get(addressable)
    if known is not None:
        return list(known)
    sharding = x.sharding
    if len(sharding._devices) > 1:
        share(x._buf)
    part = x.aval.update(sharding.shard_shape(x.shape), sharding=None)
    local, committed = iter(single_buffers(x)), x._committed
    mine = {} if addressable else {shard.device: shard for shard in shards(x)}
    copies: dict[Any, int] = {}
    found = []
    for device, index in sharding.devices_indices_map(x.shape).items():
        where = tuple((s.start, s.stop) for s in index)
        replica = copies[where] = copies.get(where, -1) + 1
        if device in mine:
            found.append(mine[device])
        elif is_local(device):
            place = placement.on_device(device, sharding._kind).in_layout(x._buf._sharding._own._layout)
            buf = binding.rewrap(next(local), physical(part), place)
            found.append(Shard(device, index, replica, type(x)(part, buf, committed)))
        elif not addressable:
            found.append(Shard(device, index, replica, None))
    x._buf._shards = {**getattr(x._buf, "_shards", _NONE), addressable: tuple(found)}
    return found


def single_buffers(x: Any) -> list[binding.Buffer]:
    """jaxlib's buffers of the parts that this process holds, in the order of the devices."""
    devices = x.sharding._devices
    if len(devices) > 1:
        return binding.shards(x._buf)
    return [x._buf] if is_local(devices[0]) else []


def reordered(x: Any, sharding: Sharding) -> list[binding.Buffer]:
    """Those buffers in the order of the devices of another sharding that splits the array alike."""
    by_device = dict(zip(filter(is_local, x.sharding._devices), single_buffers(x)))
    return [by_device[device] for device in sharding._devices if is_local(device)]


def is_held(x: Any) -> bool:
    """Does this process hold the whole value?"""
    sharding = x.sharding
    return (sharding.is_fully_addressable
            or sharding.is_fully_replicated and any(map(is_local, sharding._devices)))


def is_shown(x: Any) -> bool:
    """Can this process read the value?"""
    return is_held(x) and not x.sharding._terms


def held(x: Any) -> list[np.ndarray]:
    """What this process holds of an array, as NumPy arrays: the whole, or else its parts."""
    return [x._numpy()] if is_held(x) else [shard.data._numpy() for shard in shards(x)]


def gathered(x: Any) -> np.ndarray:
    """The whole of an array over several devices, as NumPy.  RuntimeError where other processes hold parts
    that this one does not."""
    sharding, aval = x.sharding, physical(x.aval)
    if not is_held(x):
        raise RuntimeError(
            f"Fetching the value of an array of shape {x.aval.str_short()} that spans non-addressable "
            "devices: other processes hold parts of it. Read x.addressable_shards, or gather it with "
            "experimental.multihost_utils.process_allgather.")
    if is_lost(x._buf):
        raise lost(f"an array of type {x.aval.str_short()}")
    if sharding._terms:
        raise ValueError(f"Fetching the value of an array of type {x.aval}: each device holds a term of it, "
                         "and they are still to be added: jax.reshard(x, P(...)) does")
    bufs = single_buffers(x)
    if sharding.is_fully_replicated:
        return binding.to_numpy(bufs[0], aval)
    part, _, _, indices = _parts(x.aval, sharding)
    whole = np.empty(aval.shape, aval.dtype)
    for buf, index in zip(bufs, indices):
        whole[index] = binding.to_numpy(buf, part)
    return whole


def part_of(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """The aval of the data on each device of an array of `aval`."""
    return physical(aval.update(shape=sharding.shard_shape(aval.shape), sharding=None))


def put(value: np.ndarray, aval: ShapedArray, sharding: Any) -> binding.Buffer:
    """jaxlib's buffer for a NumPy value of the whole array; each local device is given a copy of its part."""
    part, aval, devices, indices = _parts(aval, sharding)
    value = np.asarray(value, aval.dtype)
    return put_parts([np.asarray(value[index], order="C") for index in indices], part, aval, sharding,
                     devices)


@functools.lru_cache(4096)
def _parts(aval: ShapedArray, sharding: Any) -> tuple[ShapedArray, ShapedArray, list[Any], list[Any]]:
    """The types of a part and of the whole on devices; this process's devices, and what each holds."""
    if sharding._terms:
        raise ValueError(f"a value of type {aval.str_short()} cannot be given to {sharding}: a value that is "
                         "whole cannot be made unreduced")
    where = sharding.addressable_devices_indices_map(aval.shape)
    return part_of(aval, sharding), physical(aval), list(where), list(where.values())


def put_parts(parts: Sequence[np.ndarray], part: ShapedArray, aval: ShapedArray, sharding: Any,
              devices: Sequence[binding.Device]) -> binding.Buffer:
    """jaxlib's buffer of an array of `aval` whose part on each local device, C-contiguous and of type `part`,
    is copied there."""
    if not parts:
        return binding.join([], aval, sharding)
    if len({x.__array_interface__["data"][0] for x in parts}) == len(parts) or sharding.is_fully_replicated:
        return binding.device_put_shards(parts, aval, sharding, devices)
    # In one call some devices but not all may not be given the same memory: bad_function_call.
    return joined(aval, sharding, {
        device: binding.device_put(x, part, placement.on_device(device, sharding._kind), device)
        for device, x in zip(devices, parts)})


def joined(aval: ShapedArray, sharding: Sharding, buffers: Mapping[Any, binding.Buffer]) -> binding.Buffer:
    """jaxlib's buffer of an array over the devices of a sharding, from those of its parts by device."""
    if len(sharding._devices) == len(buffers) == 1:
        buffer, = buffers.values()
        return binding.rewrap(buffer, aval, sharding)
    return binding.join([buffers[device] for device in filter(is_local, sharding._devices)], aval, sharding)


def copied(x: Any) -> Any:
    """A copy of an array under its sharding; each process copies the parts that it holds."""
    sharding, part = x.sharding.filled(x.ndim), part_of(x.aval, x.sharding)
    pieces = [np.asarray(binding.to_numpy(buf, part), order="C") for buf in single_buffers(x)]
    buffer = binding.device_put_shards(pieces, physical(x.aval), sharding,
                                       list(filter(is_local, sharding._devices)))
    return type(x)(x.aval, buffer, x._committed)
