"""JAX's `extend.sharding`: XLA's shardings, from bytes and to bytes."""
import numpy as np

from ..core.surface.public import install_getattr as _explain
from ..runtime.devices.shardings_of_xla import (
    get_hlo_sharding_from_serialized_proto, get_op_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding, tiles)
from ..sharding.positional import PositionalSharding

__all__ = ["GSPMDSharding", "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
           "get_serialized_proto_from_hlo_sharding"]


class _Face(type):
    def __instancecheck__(cls, value):
        return isinstance(value, PositionalSharding)


class GSPMDSharding(metaclass=_Face):
    """The PositionalSharding of devices that an HloSharding or OpSharding of XLA describes.

    Raises:
        NotImplementedError: for one that is neither replicated nor made of tiles and copies.
    """

    def __new__(cls, devices, op_sharding, *, memory_kind=None):
        found, devices = tiles(op_sharding), list(devices)
        if found is None:
            return cls.get_replicated(devices, memory_kind=memory_kind)
        shape, order, copies = found
        if len(order) != len(devices):
            raise ValueError(f"GSPMDSharding: op_sharding is for {len(order)} devices, but {len(devices)} "
                             "are given")
        placed = np.array([devices[i] for i in order], object).reshape(shape)
        sharding = PositionalSharding(placed, memory_kind=memory_kind)
        return sharding.replicate(-1, keepdims=False) if copies else sharding

    @staticmethod
    def get_replicated(devices, *, memory_kind=None):
        """The sharding by which each device holds the whole."""
        return PositionalSharding(list(devices), memory_kind=memory_kind).replicate()


_explain(globals())
