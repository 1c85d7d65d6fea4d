"""SingleDeviceSharding: the whole array on one device."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.surface.boundary import boundaries
from .abstract import Sharding, checked_kind


@boundaries(but="shard_shape")
class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    >>> jnp.ones(2).sharding == jax.sharding.SingleDeviceSharding(jax.devices()[0])
    True
    """
    is_fully_replicated = True

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device
        self._devices = (device,)
        self._kind = checked_kind(memory_kind, self._devices, "SingleDeviceSharding")

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    def _tiles(self, ndim: int) -> np.ndarray:
        return np.zeros((1,) * (ndim + 1), int)

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and (
            self._device, self._kind, self._layout) == (other._device, other._kind, other._layout)

    def __hash__(self) -> int:
        return hash((self._device, self._kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}{self._memory_repr()})"


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of an array that is whole on one device.

    >>> jax.sharding.make_single_device_sharding(jax.devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
