"""Topologies, where JAX has them; see `hlotrace.topologies`."""
from ..core.surface.public import export_names
from ..distributed.topology_targets import (
    TopologyDescription,
    get_attached_topology,
    get_topology_desc,
    make_mesh,
)
from ..runtime.binding import Device

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

export_names(globals())
