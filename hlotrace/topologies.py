"""hlotrace.topologies: chips that are not here, which programs can be compiled for."""
from .core.surface.public import export_names as _offer
from .distributed.topology_targets import (
    TopologyDescription,
    get_attached_topology,
    get_topology_desc,
    make_mesh,
)

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

_offer(globals())
