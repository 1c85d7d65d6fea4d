"""Topologies, where JAX has them; see `hlotrace.topologies`."""
from ..core.surface.public import export_names as _offer
from ..distributed.topology_targets import *
from ..runtime.binding import Device

_offer(globals())
