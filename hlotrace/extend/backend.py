"""JAX's `extend.backend`: the clients of jaxlib behind devices."""
import numpy as np

from ..api.misc import clear_caches
from ..core.public import explain as _explain
from ..runtime import binding
from ..runtime.client import available_platforms, client, default_device

__all__ = ["backend_xla_version", "backends", "clear_in_memory_compilation_cache", "get_backend", "get_compile_options",
           "get_default_device"]


def get_backend(platform=None):
    """The PJRT client of a platform, or the default one.  RuntimeError for a platform that is not there."""
    return client(platform) if platform is None or isinstance(platform, str) else platform


def backends():
    """The clients of all platforms that work here, by name, best first."""
    found = {}
    for name in available_platforms():
        try:
            found[name] = client(name)
        except RuntimeError:
            continue        # its plugin is installed, its device is not there
    return found


def backend_xla_version(platform=None):
    """The version of XLA that a plugin says it has; None for a platform without a plugin, or one that does not say."""
    return getattr(get_backend(platform), "xla_version", None)


def get_compile_options(num_replicas, num_partitions, device_assignment=None, env_options_overrides=None, fdo_profile=None,
                        detailed_logging=True, backend=None):
    """jaxlib's CompileOptions for so many replicas of a program in so many partitions.

    `device_assignment` is an array of devices or their ids, (replicas, partitions) or (partitions,); without it the runtime
    chooses.  `env_options_overrides` are XLA's flags by name.
    """
    if fdo_profile or not detailed_logging or backend is not None:
        raise NotImplementedError("extend.backend.get_compile_options: fdo_profile, detailed_logging=False and backend are "
                                  "not supported")
    ids = device_assignment
    if ids is not None:
        ids = np.vectorize(lambda d: getattr(d, "id", d), otypes=[int])(np.array(ids, object))
        ids = ids[None] if ids.ndim < 2 else ids
        if ids.shape != (num_replicas, num_partitions):
            raise ValueError(f"get_compile_options: device_assignment of shape {ids.shape} is not for {num_replicas} "
                             f"replicas in {num_partitions} partitions")
    return binding.new_compile_options(num_replicas, num_partitions, ids, env_options_overrides)


def get_default_device():
    """The device on which values lie unless told otherwise."""
    return default_device()


def clear_in_memory_compilation_cache():
    """Forget all compiled programs."""
    clear_caches()

_explain(globals())
