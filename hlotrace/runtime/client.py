"""Clients and devices: made on first use, never at import."""
import functools
import glob
import os
import sys
import threading

from ..core.config import config, state
from . import binding

_lock = threading.RLock()
_clients: dict = {}
_PLUGINS = {"cuda": ("jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda12/xla_cuda_plugin.so")}
_ALIASES = {"gpu": "cuda"}


def _plugin_path(platform):
    """Where a PJRT plugin for `platform` is installed, found by path: its own Python package imports jax."""
    for pattern in _PLUGINS.get(platform, ()):
        for folder in sys.path:
            found = glob.glob(os.path.join(folder or ".", pattern))
            if found:
                return found[0]
    return None


def _make(platform):
    if platform == "cpu":
        return binding._jax.get_tfrt_cpu_client(asynchronous=True)
    path = _plugin_path(platform)
    if path is None:
        raise RuntimeError(
            f"Unknown backend: {platform!r} is not available: no PJRT plugin for it is installed. Installed: "
            f"{', '.join(available_platforms())}.")
    if not binding._jax.pjrt_plugin_loaded(platform):
        binding._jax.load_pjrt_plugin(platform, path, None)
        binding._jax.initialize_pjrt_plugin(platform)
    return binding._jax.get_c_api_client(platform, {"preallocate": False})


def available_platforms():
    """Names of platforms that can be tried, best first."""
    return [p for p in _PLUGINS if _plugin_path(p)] + ["cpu"]


def client(platform=None):
    """The PJRT client of a platform ("cpu", "cuda" or "gpu"), or of the best one that works.

    Raises RuntimeError for a platform that is not there.
    """
    if platform is None:
        return _default()
    platform = _ALIASES.get(platform, platform)
    found = _clients.get(platform)
    if found is None:
        with _lock:
            if platform not in _clients:
                _clients[platform] = _make(platform)
            found = _clients[platform]
    return found


@functools.cache
def _default():
    wanted = config.jax_platforms or config.jax_platform_name
    if wanted:
        return client(wanted.split(",")[0])
    for platform in available_platforms()[:-1]:
        try:
            return client(platform)
        except (RuntimeError, binding.JaxRuntimeError) as error:
            import warnings
            warnings.warn(f"the {platform} plugin is installed but no device of it can be used; using the CPU. "
                          f"Its message: {str(error).splitlines()[0]}", stacklevel=2)
    return client("cpu")


def devices(backend=None):
    """All devices of a platform, as a list."""
    return client(backend).devices()


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of this process."""
    return client(backend).local_devices()


_default_devices: dict = {}      # by the options in force


def default_device():
    """The device on which uncommitted values are placed."""
    found = _default_devices.get(state.context_key)
    if found is None:
        chosen = config.jax_default_device
        if chosen is None or isinstance(chosen, str):
            chosen = client(chosen).local_devices()[0]
        found = _default_devices[state.context_key] = chosen
    return found


def default_backend():
    """The platform name of the default client: "cpu", "gpu" or "tpu"."""
    platform = client().platform
    return "gpu" if platform == "cuda" else platform


def device_count(backend=None):
    """Number of devices over all processes."""
    return len(client(backend).devices())


def local_device_count(backend=None):
    """Number of devices of this process."""
    return len(client(backend).local_devices())


def process_index(backend=None):
    """Number of this process."""
    return client(backend).process_index()


def process_count(backend=None):
    """Number of processes."""
    return max(d.process_index for d in devices(backend)) + 1
