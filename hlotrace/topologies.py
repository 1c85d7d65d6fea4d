"""Topologies of chips that are not here: what a program compiled for them looks like, takes and costs.

`get_topology_desc("v5e:2x4")` needs a libtpu wheel and no TPU.
"""
from .runtime import topology as _topology

__all__ = ["TopologyDescription", "get_topology_desc"]


class TopologyDescription:
    """A topology: `devices` can be compiled for, and cannot run."""

    def __init__(self, name, description, devices):
        self.name, self.devices = name, devices
        self._description = description

    @property
    def platform(self):
        return self._description.platform

    def compile(self, text):
        """jaxlib's Executable of a StableHLO text for all devices; Shardy's `sdy.sharding` says what lies where.

        Raises JaxRuntimeError, for one with RESOURCE_EXHAUSTED where a chip's memory is too small.
        """
        return _topology.compile_text(text, self.devices)

    def __repr__(self):
        return f"TopologyDescription({self.name!r}, {len(self.devices)} x {self.devices[0].device_kind})"


def get_topology_desc(topology_name="", platform=None, **options):
    """A topology by name, "v5e:2x4", "v5p:2x2x2", ...; options such as `num_slices=2` go to the plugin.

    Raises RuntimeError where the platform's plugin is missing, ValueError for a name that it does not know.
    """
    platform = platform or "tpu"
    if platform == "tpu" and not topology_name:
        raise ValueError("get_topology_desc: a TPU topology has a name, such as \"v5e:2x4\"")
    return TopologyDescription(topology_name, *_topology.describe(platform, topology_name, options))
