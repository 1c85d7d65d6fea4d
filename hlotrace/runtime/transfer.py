"""Moving arrays between devices and the host, and from one sharding to another."""
from ..core.avals import physical
from . import array, parts, placement


def copy_to(x, device, committed=None):
    """The array on one device."""
    return move(x, placement.on_device(device), x._committed if committed is None else committed)


def move(x, sharding, committed=True):
    """The array as `sharding` says.  Raises ValueError where it does not divide evenly."""
    x.check_alive()
    old = x.sharding
    if old is sharding or old == sharding:
        return array.ArrayImpl(x.aval, x._buf, committed)
    check_divides(sharding, x.aval)
    aval = physical(x.aval)
    if old.is_equivalent_to(sharding, x.ndim):
        return array.ArrayImpl(x.aval, x._buf._rewrap_with_aval_and_sharding(aval, sharding), committed)
    if old.lies_like(sharding, x.ndim) and old.is_fully_addressable:
        return parts.assembled(x.aval, sharding, parts.reordered(x, sharding))
    if old._devices == sharding._devices and len(old._devices) > 1 or not old.is_fully_addressable:
        from .partitioned import reshard  # the devices exchange parts among themselves

        return reshard(x, sharding)
    return array.ArrayImpl(x.aval, parts.put(x._numpy(), aval, sharding), committed)


def check_divides(sharding, aval, what=""):
    """ValueError unless `sharding` divides an array of this aval into equal parts on known devices; `what` names it."""
    try:
        sharding.shard_shape(aval.shape)
        placement.check_memory(sharding)
    except ValueError as error:
        raise ValueError(f"{what}: {error}" if what else str(error)) from None
