"""Topologies, where JAX has them; see `hlotrace.topologies`."""
from ..core.surface.public import offer
from ..distributed.topology_targets import TopologyDescription, get_attached_topology, get_topology_desc, make_mesh
from ..runtime.binding import Device

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

offer(globals())
