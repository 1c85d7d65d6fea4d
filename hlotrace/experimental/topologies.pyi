# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import Device
from hlotrace.topologies import TopologyDescription, get_attached_topology, get_topology_desc, make_mesh

__all__ = ['Device', 'TopologyDescription', 'get_attached_topology', 'get_topology_desc', 'make_mesh']

