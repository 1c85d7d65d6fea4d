"""Moving arrays from one sharding to another: in place, by the host, or by a program in which devices
exchange shards."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.jaxpr import Jaxpr
from ...core.jaxpr_trace import trace_to_jaxpr
from ...sharding.abstract import Sharding
from .. import array_impl, binding, evaluate
from . import client, relayout, shards


def move(x: Any, sharding: Sharding, committed: bool = True) -> Any:
    """The array as `sharding` says.  ValueError where it does not divide evenly, and where other processes
    hold parts of it and devices change."""
    moved = _moved(x, sharding, committed)
    aval = sharding.put(moved.aval)
    return moved if moved.aval is aval else array_impl.ArrayImpl(aval, moved._buf, moved._committed)


def _moved(x: Any, sharding: Sharding, committed: bool) -> Any:
    kept = relayout.in_place(x, sharding, committed)
    if kept is not None:
        return kept
    old = x.sharding
    if sharding._layout is not None or x._buf._sharding._own._layout is not None:
        plain = sharding.in_layout(None)
        if not old.is_equivalent_to(plain, x.ndim):
            x = move(relayout.copy(x, old), plain)
        return relayout.copy(x, sharding, committed)
    if (old._devices, old._kind) == (sharding._devices, sharding._kind) and len(old._devices) > 1 and not (
            client.platform_of(old._devices[0]).on_host and old.is_fully_addressable):
        return evaluate.run_program(_identity(x.aval.update(sharding=None)), [x], outs=(sharding,))[0]
    if shards.is_held(x):
        return relayout.by_host(x, sharding, committed)
    if old.device_set != sharding.device_set:
        raise ValueError(
            f"an array of type {x.aval.str_short()} of sharding {old} cannot be moved to {sharding}: other "
            "processes hold parts of it, so only the same devices can exchange them. Give it a sharding "
            "over those, or read x.addressable_shards and build another array of them.")
    return move(move(x, _renumbered(sharding, old._devices, x.ndim)), sharding)


def whole(x: Any) -> Any:
    """The array, held whole by each process that has a part of it: those exchange their parts, together."""
    if type(x) is not array_impl.ArrayImpl or shards.is_held(x):
        return x
    return move(x, _on_each(x))


def beside(x: Any, value: np.ndarray) -> Any:
    """An array of a NumPy value, which all processes have, on the devices of `x` if that is committed."""
    made = array_impl.as_array(value)
    if not getattr(x, "_committed", False):
        return made
    return move(made, _on_each(x) if len(x.sharding._devices) > 1 else x.sharding.in_layout(None))


def _on_each(x: Any) -> Sharding:
    """The sharding of a value that each device of an array is to hold whole."""
    from ...sharding.named import as_named  # importing hlotrace needs none
    return as_named(x.sharding, x.ndim).in_layout(None).with_entries()


@functools.lru_cache(256)
def _identity(aval: ShapedArray) -> Jaxpr:
    return trace_to_jaxpr(lambda v: [v], [aval], "reshard")


def _renumbered(sharding: Sharding, devices: Sequence[binding.Device], ndim: int) -> Sharding:
    """A sharding that gives each device the same part of an array of rank `ndim`, numbered like `devices`."""
    from ...sharding.positional import PositionalSharding  # importing hlotrace needs none
    number = {device: n for n, device in enumerate(devices)}
    tiles = np.array([number[device] for device in sharding._devices])[sharding._tiles(ndim)]
    return PositionalSharding(devices, memory_kind=sharding._kind)._with(tiles)
