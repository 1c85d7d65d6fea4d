"""hlotrace.sharding: meshes of devices, and how arrays are divided over them.

Pure data: a device is anything with an `id`, a `process_index`, a `platform` and maybe a `client`, which
knows the number of this process.

Read in order: abstract, single, spec, mesh, named, positional, partition, text."""
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={
    "abstract": "Sharding",
    "mesh": "AbstractDevice AbstractMesh AxisType Mesh get_abstract_mesh get_mesh set_mesh use_abstract_mesh "
            "use_mesh",
    "named": "NamedSharding",
    "positional": "PositionalSharding",
    "single": "SingleDeviceSharding make_single_device_sharding",
    "spec": "ManualAxisType P PartitionSpec UnreducedKind",
    ".api.parallel.axis_types": "auto_axes explicit_axes no_collectives",
    ".placement.shardings": "reshard",
})
