"""hlotrace.sharding: meshes of devices, and how arrays lie over them.  Pure data: a device is anything with an `id`,
a `process_index`, a `platform` and maybe a `client`, which knows the number of this process.

Read in order: base, single, spec, mesh, named, positional, partition, text."""
import importlib as _importlib

# Each name and the file that it is read from when first used: importing hlotrace pays for none that it does not need.
_HOME = {
    **dict.fromkeys(("AbstractMesh", "AxisType", "Mesh", "get_abstract_mesh", "get_mesh", "set_mesh", "use_abstract_mesh",
                     "use_mesh"), "mesh"),
    "NamedSharding": "named",
    "P": "spec", "PartitionSpec": "spec",
    "PositionalSharding": "positional",
    "Sharding": "base",
    "SingleDeviceSharding": "single",
}

__all__ = list(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__():
    return __all__
