"""Chips that are not here: topologies by name, and programs compiled for them."""
from . import binding, plugins


def describe(platform, name, options):
    """jaxlib's description of a topology and its devices, which only compile.  Raises RuntimeError, ValueError."""
    plugin = plugins.find().get(platform)
    if plugin is None:
        raise RuntimeError(f"get_topology_desc: no plugin for {platform!r} is installed: {plugins.install_line(platform)}")
    plugins.load(plugin)
    try:
        topology = binding._jax.get_default_c_api_topology(platform, name, options)
        return topology, topology._make_compile_only_devices()
    except binding.JaxRuntimeError as error:
        raise ValueError(f"get_topology_desc: {platform} has no topology {name!r}: {str(error).splitlines()[0]}") from error


def compile_text(text, devices):
    """jaxlib's Executable, which cannot run here, of a StableHLO text for `devices`, one partition on each."""
    options = binding.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, len(devices)
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    options.device_assignment = binding.device_assignment([[device.id for device in devices]])
    return devices[0].client.compile(binding.parse_module(text), binding.DeviceList(tuple(devices)), options)
