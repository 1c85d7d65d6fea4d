"""An array that lies otherwise without a program: under another sharding over the same memory, or copied by the host."""
from ..core.avals import physical
from . import array, guards, placement, shards


def copy(x, sharding, committed=True):
    """The array as `sharding` says, by way of the host unless the memory can stay.

    Raises ValueError where it does not divide evenly, RuntimeError where other processes hold shards that this one needs.
    """
    kept = in_place(x, sharding, committed)
    if kept is not None:
        return kept
    with guards.moving(x, sharding):
        return array.ArrayImpl(x.aval, shards.put(x._numpy(), physical(x.aval), sharding), committed)


def in_place(x, sharding, committed=True):
    """The array over the same memory as `sharding` says, or None where something must move.

    Raises ValueError where it does not divide evenly.
    """
    x.check_alive()
    old = x.sharding
    if old is sharding or old == sharding:
        return array.ArrayImpl(x.aval, x._buf, committed)
    placement.check_divides(sharding, x.aval)
    if old.is_equivalent_to(sharding, x.ndim):
        buffer = x._buf._rewrap_with_aval_and_sharding(physical(x.aval), sharding)
        shards.share(buffer, x._buf)
        return array.ArrayImpl(x.aval, buffer, committed)
    if not shards.is_held(x) and old.lies_like(sharding, x.ndim):
        moved = array.assembled(x.aval, sharding, shards.reordered(x, sharding))
        shards.share(moved._buf, x._buf)
        return moved
    return None
