"""hlotrace.topologies: chips that are not here, which programs can be compiled for."""
from .api.topologies import TopologyDescription, get_attached_topology, get_topology_desc, make_mesh
from .core.public import offer as _offer

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

_offer(globals())
