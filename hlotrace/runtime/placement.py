"""Where an array lives.  Own classes of shardings (`sharding/`): jaxlib's NamedSharding would import jax.

jaxlib's C++ asks a sharding for `_internal_device_list` and `_to_xla_hlo_sharding`.  They are installed here, as the
classes are pure data and may not know the runtime.
"""
import functools

from ..sharding.base import Sharding, is_local
from ..sharding.single import SingleDeviceSharding
from . import binding


def _device_list(sharding):
    return binding.DeviceList(sharding._devices)


@functools.lru_cache(4096)
def _hlo_sharding(sharding, ndim):
    from jaxlib import xla_client
    if sharding.is_fully_replicated:
        return xla_client.HloSharding.replicate()
    tiles = sharding._tiles(ndim)
    if tiles.shape[-1] == 1:
        return xla_client.HloSharding.subgroup_with_device_ordering(tiles[..., 0], [])
    return xla_client.HloSharding.subgroup_with_device_ordering(tiles, [xla_client.OpSharding.Type.REPLICATED])


Sharding._internal_device_list = functools.cached_property(_device_list)
Sharding._internal_device_list.__set_name__(Sharding, "_internal_device_list")
Sharding._to_xla_hlo_sharding = _hlo_sharding


@functools.cache
def on_device(device):
    """The one SingleDeviceSharding of a device."""
    return SingleDeviceSharding(device)


def check_memory(sharding):
    """ValueError for a kind of memory that the devices do not have."""
    kind = sharding.memory_kind
    for device in sharding._devices if kind is not None else ():
        if is_local(device) and kind not in (known := [m.kind for m in device.addressable_memories()]):
            raise ValueError(f"{sharding}: {device} has no memory of kind {kind!r}; it has {', '.join(known)}")


def check_divides(sharding, aval, what=""):
    """ValueError unless `sharding` divides an array of this aval into equal shards on known devices; `what` names it."""
    try:
        sharding.shard_shape(aval.shape)
        check_memory(sharding)
    except ValueError as error:
        raise ValueError(f"{what}: {error}" if what else str(error)) from None
