"""Moving arrays between devices and the host, and from one sharding to another."""
import numpy as np

from ..core.avals import physical
from . import array, parts, placement


def copy_to(x, device, committed=None):
    """The array on one device."""
    return move(x, placement.on_device(device), x._committed if committed is None else committed)


def move(x, sharding, committed=True):
    """The array as `sharding` says.

    Raises ValueError where it does not divide evenly, and where other processes hold parts of it and devices change.
    """
    x.check_alive()
    old = x.sharding
    if old is sharding or old == sharding:
        return array.ArrayImpl(x.aval, x._buf, committed)
    check_divides(sharding, x.aval)
    aval = physical(x.aval)
    if old.is_equivalent_to(sharding, x.ndim):
        buffer = x._buf._rewrap_with_aval_and_sharding(aval, sharding)
        parts.share(buffer, x._buf)
        return array.ArrayImpl(x.aval, buffer, committed)
    if not parts.is_held(x) and old.lies_like(sharding, x.ndim):
        moved = parts.assembled(x.aval, sharding, parts.reordered(x, sharding))
        parts.share(moved._buf, x._buf)
        return moved
    if old._devices == sharding._devices and len(old._devices) > 1 and not (
            old._devices[0].platform == "cpu" and old.is_fully_addressable):
        from .partitioned import reshard  # the devices exchange parts among themselves

        return reshard(x, sharding)
    if parts.is_held(x):
        return array.ArrayImpl(x.aval, parts.put(x._numpy(), aval, sharding), committed)
    if old.device_set != sharding.device_set:
        raise ValueError(
            f"an array of type {x.aval.str_short()} that lies as {old} cannot be moved to {sharding}: other processes "
            "hold parts of it, so only the same devices can exchange them. Give it a sharding over those, or read "
            "x.addressable_shards and build another array of them.")
    return move(move(x, _renumbered(sharding, old._devices, x.ndim)), sharding)


def _renumbered(sharding, devices, ndim):
    """A sharding that gives each device the same part of an array of rank `ndim`, and numbers them like `devices`."""
    from ..sharding.positional import PositionalSharding  # importing hlotrace needs none
    number = {device: n for n, device in enumerate(devices)}
    tiles = np.array([number[device] for device in sharding._devices])[sharding._tiles(ndim)]
    return PositionalSharding(devices, memory_kind=sharding.memory_kind)._with(tiles)


def check_divides(sharding, aval, what=""):
    """ValueError unless `sharding` divides an array of this aval into equal parts on known devices; `what` names it."""
    try:
        sharding.shard_shape(aval.shape)
        placement.check_memory(sharding)
    except ValueError as error:
        raise ValueError(f"{what}: {error}" if what else str(error)) from None
