"""hlotrace.topologies: chips that are not here, which programs can be compiled for."""
from .api.topologies import TopologyDescription, get_topology_desc, make_mesh

__all__ = ["TopologyDescription", "get_topology_desc", "make_mesh"]
