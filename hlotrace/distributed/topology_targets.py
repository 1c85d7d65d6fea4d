"""Topologies of chips that are not here: what a program compiled for them looks like, takes and costs.

`get_topology_desc("v5e:2x4")` needs a libtpu wheel and no TPU, `get_topology_desc("h100:8")` the wheels of
the CUDA plugin and of NVIDIA's compiler and no GPU.  Their devices may be in meshes and shardings; what jit
compiles for them has `as_text()`, `memory_analysis()` and `cost_analysis()`, and cannot be called:

    mesh = make_mesh(get_topology_desc("v5e:2x4"), (4, 2), ("data", "model"))
    x = hlotrace.ShapeDtypeStruct((64, 256), "float32", sharding=NamedSharding(mesh, P("data", "model")))
    print(hlotrace.jit(f).lower(x).compile().memory_analysis())
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..placement import device_order, make_mesh as mesh
from ..runtime.devices import client, topology
from ..sharding.mesh import AxisType, Mesh, sizes_and_names

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A topology: `devices` can be compiled for, and cannot run."""

    def __init__(self, name: str, description: Any, devices: Sequence[Any]) -> None:
        self.name, self.devices = name, devices
        self._description = description

    @property
    def platform(self) -> str:
        return self._description.platform

    def make_mesh(self, axis_shapes: Iterable[int], axis_names: Iterable[str],
                  axis_types: Any = None) -> Mesh:
        """A Mesh of the first devices, of Auto axes; ValueError where there are too few."""
        return make_mesh(self, axis_shapes, axis_names, axis_types=axis_types)

    def compile(self, text: str) -> Any:
        """jaxlib's Executable of a StableHLO text for all devices; `sdy.sharding` in it gives the shardings.

        Raises:
            JaxRuntimeError: for one with RESOURCE_EXHAUSTED where a chip's memory is too small.
        """
        return topology.compile_text(text, self.devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.name!r}, {len(self.devices)} x {self.devices[0].device_kind})"


def get_topology_desc(topology_name: str = "", platform: str | None = None,
                      **options: Any) -> TopologyDescription:
    """A topology by name: "v5e:2x4", "8xv5e:16x16" (slices), "h100:8" (GPUs of a host), "h100:2x8" (hosts).

    Args:
        topology_name: the name; docs/chips.md lists chips.
        platform: that of the chip by default.
        options: go to the plugin, as `num_slices=8` of TPUs; `target_config`, the text of a
            GpuTargetConfigProto, and `topology`, "partitions x hosts x GPUs", of CUDA.
    Raises:
        NotImplementedError: where the platform's plugin is missing.
        ValueError: for a name that it does not know.

    >>> from hlotrace import topologies
    >>> topologies.get_topology_desc("v5e:2x4").devices[0].device_kind       # doctest: +SKIP
    >>> topologies.get_topology_desc("h100:2x8").devices[15].process_index   # doctest: +SKIP
    """
    if not topology_name and platform in (None, "tpu"):
        raise ValueError("get_topology_desc: a TPU topology has a name, such as \"v5e:2x4\"")
    return TopologyDescription(topology_name, *topology.describe(topology_name, platform, options))


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The topology of the devices that are here, of the default platform unless given.

    >>> topologies.get_attached_topology("cpu").platform
    'cpu'
    """
    devices = client.devices(platform)
    return TopologyDescription("attached", devices[0].client, devices)


def make_mesh(topo: TopologyDescription, mesh_shape: Iterable[int], axis_names: Iterable[str], *,
              contiguous_submeshes: bool = False, axis_types: Any = None) -> Mesh:
    """A Mesh of the first devices of a topology, of Auto axes unless `axis_types` says otherwise.

    Args:
        contiguous_submeshes: the devices of each process are a block of the mesh; see `create_device_mesh`.
    Raises:
        ValueError: where there are too few devices, or no order is known of such blocks.

    >>> from hlotrace import topologies
    >>> topologies.make_mesh(topologies.get_attached_topology("cpu"), (1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """
    sizes, names = sizes_and_names("make_mesh", mesh_shape, axis_names)
    types = (AxisType.Auto,) * len(names) if axis_types is None else axis_types
    made = mesh.make_mesh(sizes, names, types, devices=topo.devices)
    if not contiguous_submeshes:
        return made
    devices = device_order.arrange(sizes, topo.devices[:made.size], split=True, contiguous=True)
    return Mesh(devices, names, types)
