"""Topologies, where JAX has them; see `hlotrace.topologies`."""
from ..api.topologies import TopologyDescription, get_attached_topology, get_topology_desc, make_mesh
from ..core.public import offer
from ..runtime.binding import Device

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

offer(globals())
