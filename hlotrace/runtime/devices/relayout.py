"""An array under another sharding without a program: over the same memory, or copied by the host."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.avals import physical
from ...sharding.abstract import Sharding, is_local
from .. import array_impl, binding, callback_guard
from . import placement, shards, transfer_guards


def copy(x: Any, sharding: Sharding, committed: bool = True) -> array_impl.ArrayImpl:
    """The array as `sharding` says, by way of the host unless the memory can stay.

    Raises:
        ValueError: where it does not divide evenly.
        RuntimeError: where other processes hold shards that this one needs.
    """
    kept = in_place(x, sharding, committed)
    return by_host(x, sharding, committed) if kept is None else kept


def by_host(x: Any, sharding: Sharding, committed: bool = True) -> array_impl.ArrayImpl:
    """As `copy`, where the memory cannot stay."""
    if sharding._layout is not None or x._buf._sharding._own._layout is not None:
        return _in_layout(x, sharding, committed)
    with transfer_guards.moving(x, sharding):
        try:
            return array_impl.ArrayImpl(sharding.typed(x.aval), _moved(x, sharding), committed)
        except (binding.JaxRuntimeError, BufferError) as error:      # the latter from the buffer protocol
            raise callback_guard.original(error) from None


def _in_layout(x: Any, sharding: Sharding, committed: bool) -> array_impl.ArrayImpl:
    """As `copy`, where one of the two is in another layout than the devices' own."""
    from . import layouts  # few programs ask for one
    plain = sharding.in_layout(None)
    if not x.sharding.is_equivalent_to(plain, x.ndim):
        x = copy(array_impl.ArrayImpl(x.aval, layouts.moved(x, x.sharding), True), plain)
    buffer = layouts.moved(x, sharding)
    committed = committed or buffer._sharding._own._layout is not None
    return array_impl.ArrayImpl(sharding.typed(x.aval), buffer, committed)


def _moved(x: Any, sharding: Sharding) -> binding.Buffer:
    """jaxlib's buffer of the array as `sharding` says: by parts, so that only the result holds the whole."""
    old = x.sharding
    if len(old._devices) == len(sharding._devices) == 1 and old._kind == sharding._kind:
        (here,), (there,) = old._devices, sharding._devices
        if here.client is there.client and is_local(here) and is_local(there):
            return binding.copy_to_device(x._buf, sharding, there)
    sources, targets = _route(old, sharding, x.shape)
    held = shards.single_buffers(x)
    values = [binding.to_numpy(held[i], shards.part_of(x.aval, old)) for i in sources]
    part = shards.part_of(x.aval, sharding)
    buffers = {}
    for pieces, devices in targets:
        source, inside, at = pieces[0]
        if at is None:
            value = np.asarray(values[source][inside], order="C")
        else:
            value = np.empty(part.shape, part.dtype)
            for source, inside, at in pieces:
                value[at] = values[source][inside]
        for device in devices:
            buffers[device] = binding.device_put(value, part, placement.on_device(device, sharding._kind),
                                                 device)
    return shards.joined(physical(x.aval), sharding, buffers)


@functools.lru_cache(1024)
def _route(old: Sharding, new: Sharding, shape: tuple[int, ...]) -> tuple:
    """How an array goes from one sharding to another: (its local parts to read, [(pieces, devices)]).

    Each piece of what those devices are to hold is (position among the parts read, its place there, its place
    here), the last one None where one piece is all.
    """
    sources = _boxes(old, shape)
    targets = []
    for box, devices in _boxes(new, shape).items():
        pieces: list[Any] = []
        for n, where in enumerate(sources):
            both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, where)]
            inside = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(both, where))
            if tuple(both) == box:
                pieces = [(n, inside, None)]
                break
            if all(a < b for a, b in both):
                pieces.append((n, inside, tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(both, box))))
        targets.append((pieces, devices))
    local = list(old.addressable_devices_indices_map(shape))
    return [local.index(devices[0]) for devices in sources.values()], targets


def _boxes(sharding: Sharding, shape: Sequence[int]) -> dict:
    """(start, stop) along each dimension of each part that this process holds, and its devices."""
    found: dict[Any, list[binding.Device]] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        found.setdefault(tuple([s.indices(size)[:2] for s, size in zip(index, shape)]), []).append(device)
    return found


def in_place(x: Any, sharding: Sharding, committed: bool = True) -> array_impl.ArrayImpl | None:
    """The array over the same memory as `sharding` says, or None where something must move.  ValueError where
    it does not divide evenly."""
    x.check_alive()
    old = x._buf._sharding._own
    if old is sharding or old == sharding:
        return array_impl.ArrayImpl(x.aval, x._buf, committed or old._layout is not None)
    placement.check_divides(sharding, x.aval)
    if old.is_equivalent_to(sharding, x.ndim):
        buffer = binding.rewrap(x._buf, physical(x.aval), sharding)
        shards.share(buffer, x._buf)
        return array_impl.ArrayImpl(sharding.typed(x.aval), buffer, committed)
    if old._terms or sharding._terms:
        how = ("a value that is whole cannot be made unreduced" if sharding._terms - old._terms else
               "each device holds a term of it: jax.reshard adds them")
        raise ValueError(f"an array of type {x.aval} cannot be moved to {sharding}: {how}")
    if not shards.is_held(x) and old.same_placement(sharding, x.ndim):
        moved = array_impl.assembled(x.aval, sharding, shards.reordered(x, sharding))
        shards.share(moved._buf, x._buf)
        return moved
    return None
