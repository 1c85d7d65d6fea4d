"""Where an array lives.  Own classes of shardings (`sharding/`): jaxlib's NamedSharding would import jax.

What jaxlib is given in their place, `_of_jaxlib`, and their tiles in its words are installed here, as the
classes are pure data and may not know the runtime.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...sharding.abstract import Sharding
from ...sharding.single import SingleDeviceSharding
from .. import binding


@functools.lru_cache(4096)
def _hlo_sharding(sharding: Any, ndim: int) -> Any:
    from jaxlib import xla_client
    if sharding.is_fully_replicated:
        return xla_client.HloSharding.replicate()
    # jaxlib counts the words of keys as an axis; nothing splits it
    rank = min(ndim, getattr(sharding, "ndim", ndim))
    tiles = sharding._tiles(rank)
    tiles = tiles.reshape(*tiles.shape[:-1], *(1,) * (ndim - rank), -1)
    if tiles.shape[-1] == 1:
        return xla_client.HloSharding.subgroup_with_device_ordering(tiles[..., 0], [])
    return xla_client.HloSharding.subgroup_with_device_ordering(tiles,
                                                                [xla_client.OpSharding.Type.REPLICATED])


Sharding._to_xla_hlo_sharding = _hlo_sharding  # type: ignore[attr-defined]
Sharding._of_jaxlib = functools.cached_property(  # type: ignore[attr-defined]
    lambda sharding: binding.Several(sharding._devices, sharding.memory_kind, sharding))
Sharding._of_jaxlib.__set_name__(Sharding, "_of_jaxlib")  # type: ignore[attr-defined]
SingleDeviceSharding._of_jaxlib = functools.cached_property(  # type: ignore[attr-defined]
    lambda sharding: binding.OneDevice(sharding._device, sharding))
SingleDeviceSharding._of_jaxlib.__set_name__(SingleDeviceSharding, "_of_jaxlib")  # type: ignore[attr-defined]


@functools.cache
def on_device(device: binding.Device, kind: str | None = None) -> SingleDeviceSharding:
    """The one SingleDeviceSharding of a device and a kind of its memory."""
    return SingleDeviceSharding(device, memory_kind=kind)


def check_divides(sharding: Sharding, value: Any, name: Callable[[], str] | None = None) -> None:
    """ValueError unless `sharding` divides an array, or one of an aval, into equal shards on known devices.

    A Python number has the shape ().  `name()` is that of the value, which only an error needs: to write it
    may take longer than all else.
    """
    try:
        sharding.shard_shape(getattr(value, "shape", ()))
    except ValueError as error:
        raise type(error)(f"{name()}: {error}" if name else str(error)) from None


def of_type(words: str, aval: Any) -> str:
    """The words for a value, with its type."""
    return f"{words} of type {aval.str_short()}"


def check_fits(sharding: Sharding, value: Any, name: Callable[[], str], divides: bool = True) -> None:
    """ValueError for a sharding of arrays of more dimensions, if only by None; if `divides`,
    `check_divides`."""
    shape = getattr(value, "shape", ())
    if hasattr(sharding, "check_compatible_aval"):
        try:
            sharding.check_compatible_aval(shape)
        except ValueError as error:
            raise ValueError(f"{name()} is incompatible with its sharding annotation {sharding}: "
                             f"{error}") from None
    if divides:
        check_divides(sharding, value, name)
