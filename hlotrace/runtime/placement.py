"""Where an array lives.  An own class of shardings: jaxlib's NamedSharding would import jax."""
import functools

from . import binding


class Sharding:
    """How an array is laid out over devices: the attributes that jaxlib asks for, and what users read."""
    memory_kind = None

    @property
    def device_set(self):
        return set(self._internal_device_list)

    @property
    def is_fully_addressable(self):
        return True


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    def __init__(self, device, *, memory_kind=None):
        self._device = device
        self.memory_kind = memory_kind
        self._internal_device_list = binding.DeviceList((device,))

    @property
    def is_fully_replicated(self):
        return True

    def _to_xla_hlo_sharding(self, ndim):
        return _replicated()

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and (self._device, self.memory_kind) == (
            other._device, other.memory_kind)

    def __hash__(self):
        return hash((self._device, self.memory_kind))

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r})"


@functools.cache
def _replicated():
    from jaxlib import xla_client
    return xla_client.HloSharding.replicate()


@functools.cache
def on_device(device):
    """The one SingleDeviceSharding of a device."""
    return SingleDeviceSharding(device)
