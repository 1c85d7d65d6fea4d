"""hlotrace.sharding: where arrays live."""
from .runtime.placement import Sharding, SingleDeviceSharding
