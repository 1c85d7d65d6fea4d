"""Clients and devices: made on first use, never at import."""
from __future__ import annotations

import functools
import threading
import warnings
from typing import Any

from ...core import source_info
from ...core.caches import ContextCache
from ...core.config import checks, config
from ...core.platforms import PLATFORMS, Platform, platform_named
from .. import binding

_lock = threading.RLock()
clients: dict = {}
_makers: dict = {}       # platform -> the line of the user's program that made its client
factories: dict = {}     # platform -> (priority, does it fail quietly?, function that makes its client)
# this process among several: set by runtime/processes/membership.py before there is a client
world: Any = None


def made_by() -> str:
    """"The cpu client was made by train.py:3 (main)", of the first client; an empty string if none."""
    return next((f"the {platform} client was made by {line or 'a line that is not known'}"
                 for platform, line in _makers.items()), "")


def _check_cpu_devices(value: int) -> None:
    if "cpu" in clients and value != config.jax_num_cpu_devices:
        raise RuntimeError(
            f"jax_num_cpu_devices cannot become {value}: the cpu client with {local_device_count('cpu')} "
            f"devices was made by {_makers['cpu']}. Set it before the first array, device or compiled call.")


checks["jax_num_cpu_devices"] = _check_cpu_devices


def _make(platform: str) -> binding.Client:
    allowed = _names(config.jax_platforms)
    if allowed and platform not in allowed:
        raise RuntimeError(f"Unknown backend {platform}. Available backends are {allowed}: jax_platforms is "
                           f"{','.join(allowed)!r}")
    if platform in factories:
        return factories[platform][2]()
    if platform == "cpu":
        return _make_cpu()
    from . import plugins
    plugin = plugins.find().get(platform)
    if plugin is None:
        raise RuntimeError(
            f"Unknown backend {platform}. Available backends are {available_platforms()}: no PJRT plugin for "
            f"it is installed. To install one: {plugins.install_line(platform)}")
    return plugins.make_client(plugin, world)


def _make_cpu() -> binding.Client:
    options = {} if config.jax_num_cpu_devices == -1 else {"num_devices": config.jax_num_cpu_devices}
    if world is not None:
        options |= {"distributed_client": world.client, "node_id": world.process_id,
                    "num_nodes": world.num_processes, "collectives": world.cpu_collectives()}
    return binding._jax.get_tfrt_cpu_client(
        asynchronous=config.jax_cpu_enable_async_dispatch,
        get_local_topology_timeout_minutes=config.jax_cpu_get_local_topology_timeout_minutes,
        get_global_topology_timeout_minutes=config.jax_cpu_get_global_topology_timeout_minutes, **options)


def available_platforms() -> list[str]:
    """Names of platforms that can be tried, best first."""
    from . import plugins
    return list(dict.fromkeys([*plugins.find(), *factories, "cpu"]))


def client(platform: str | None = None) -> binding.Client:
    """The PJRT client of a platform ("cpu", "cuda" or "gpu", "tpu", ...), or of the best one that works.

    Raises:
        RuntimeError: for a platform that is not there.
    """
    if platform is None:
        return _default()
    platform = platform_named(platform)
    found = clients.get(platform)
    if found is None:
        with _lock:
            if platform not in clients:
                made = _make(platform)
                _makers[platform] = source_info.describe(source_info.user_frame())
                clients[platform] = made
            found = clients[platform]
    return found


def forget_clients() -> None:
    """What is asked for next makes new clients."""
    with _lock:
        for table in (clients, _makers):
            table.clear()
        _default.cache_clear()


def _names(option: str | None) -> list[Platform]:
    return [platform_named(name) for name in map(str.strip, (option or "").split(",")) if name]


@functools.cache
def _default() -> binding.Client:
    if wanted := _names(config.jax_platform_name) or _names(config.jax_platforms):
        return client(wanted[0])
    for name, (priority, quiet, _) in sorted(factories.items(), key=lambda entry: -entry[1][0]):
        try:
            if priority > 0:
                return client(name)
        except RuntimeError:
            if not quiet:
                raise
    from . import plugins  # not needed to import hlotrace
    for plugin in plugins.find().values():
        if not plugins.has_default(plugin):
            continue
        try:
            return client(plugin.platform)
        except RuntimeError as error:
            if plugin.package is None:      # the user named it
                raise
            warnings.warn(f"the {plugin.platform} plugin is installed but no device of it can be used; using "
                          f"the CPU. Its message: {str(error).splitlines()[0]}",
                          stacklevel=source_info.user_stacklevel())
    return client("cpu")


def devices(backend: str | None = None) -> list[binding.Device]:
    """All devices of a platform, as a list.

    Args:
        backend: the name of a platform, "cpu", "gpu" or "tpu"; without it, the best one.
    Raises:
        RuntimeError: for a platform that is not there.

    >>> [device.platform for device in jax.devices("cpu")[:1]]
    ['cpu']
    """
    return client(backend).devices()


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[binding.Device]:
    """The devices of this process, or of another.  Raises ValueError for a process that is not there.

    >>> jax.local_devices() == [d for d in jax.devices() if d.process_index == jax.process_index()]
    True
    """
    index = host_id if process_index is None else process_index
    if index is None:
        return client(backend).local_devices()
    if not 0 <= index < process_count(backend):
        raise ValueError(f"Unknown process_index {index}: there are {process_count(backend)} processes")
    return [d for d in devices(backend) if d.process_index == index]


_default_device = ContextCache(64)
# devices that the option jax_default_device chose at a time: not all uncommitted arrays are on one device
chosen_devices: set[binding.Device] = set()


def default_device() -> binding.Device:
    """The device on which uncommitted values are placed."""
    found = _default_device.get(None)
    if found is None:
        chosen = config.jax_default_device
        try:
            if chosen is None or isinstance(chosen, str):
                chosen = client(chosen).local_devices()[0]
        except RuntimeError as error:
            if chosen is None or platform_named(chosen) in (*PLATFORMS, *factories):     # it may be elsewhere
                raise
            raise ValueError(f"the option jax_default_device: {error}") from None
        if config.jax_default_device is not None:
            chosen_devices.add(chosen)
        found = _default_device.keep(None, chosen)
    return found


def default_backend() -> str:
    """The platform name of the default client: "cpu", "gpu" or "tpu".

    >>> jax.default_backend() == jax.devices()[0].platform
    True
    """
    platform = platform_named(client().platform)
    return platform.aliases[0] if platform.aliases else str(platform)


def device_count(backend: str | None = None) -> int:
    """Number of devices over all processes.

    >>> jax.device_count() == len(jax.devices())
    True
    """
    return len(client(backend).devices())


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process.

    >>> jax.local_device_count() == len(jax.local_devices())
    True
    """
    return len(client(backend).local_devices())


def process_index(backend: str | None = None) -> int:
    """Number of this process.

    >>> jax.process_index()
    0
    """
    return client(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """Number of processes.

    >>> jax.process_count()
    1
    """
    return max(d.process_index for d in devices(backend)) + 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes.

    >>> jax.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


host_count, host_id, host_ids = process_count, process_index, process_indices      # as they were once called


def is_elsewhere(device: binding.Device) -> bool:
    """Is it a device of a topology, which only compiles?"""
    return isinstance(device.client, binding._jax.CompileOnlyPyClient)


def platform_of(device: binding.Device) -> Platform:
    """A device's Platform: "cpu", "cuda", "tpu", ..."""
    return platform_named(device.platform)
