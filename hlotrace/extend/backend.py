"""JAX's `extend.backend`: the clients of jaxlib behind devices."""
import numpy as np

from ..core.caches import LRUCache, clear_caches
from ..core.platforms import platform_named
from ..core.surface.public import install_getattr as _explain
from ..runtime import binding
from ..runtime.devices.client import available_platforms, client, default_device, factories, forget_clients

__all__ = ["backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
           "get_backend", "get_compile_options", "get_default_device", "register_backend_cache",
           "register_backend_factory"]


def get_backend(platform=None):
    """The PJRT client of a platform, or the default one.  RuntimeError for a platform that is not there."""
    return client(platform) if platform is None or isinstance(platform, str) else platform


get_backend.cache_clear = lambda: None      # clients are kept elsewhere, until `clear_backends`


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
    """The version of XLA that a plugin says it has; None where it says none, or there is no plugin."""
    return getattr(get_backend(platform), "xla_version", None)


def get_compile_options(num_replicas, num_partitions, device_assignment=None, env_options_overrides=None,
                        fdo_profile=None, detailed_logging=True, backend=None):
    """jaxlib's CompileOptions.

    Args:
        device_assignment: an array of devices or their ids, (replicas, partitions) or (partitions,); without
            it the runtime chooses.
        env_options_overrides: XLA's flags by name.
    """
    if fdo_profile or not detailed_logging or backend is not None:
        raise NotImplementedError("extend.backend.get_compile_options: fdo_profile, detailed_logging=False "
                                  "and backend are not supported")
    ids = device_assignment
    if ids is not None:
        ids = np.vectorize(lambda d: getattr(d, "id", d), otypes=[int])(np.array(ids, object))
        ids = ids[None] if ids.ndim < 2 else ids
        if ids.shape != (num_replicas, num_partitions):
            raise ValueError(f"get_compile_options: device_assignment of shape {ids.shape} is not for "
                             f"{num_replicas} replicas in {num_partitions} partitions")
    return binding.new_compile_options(num_replicas, num_partitions, ids, env_options_overrides)


def get_default_device():
    """The device of values without another placement."""
    return default_device()


def clear_in_memory_compilation_cache():
    """Forget all compiled programs."""
    clear_caches()


def clear_backends():
    """Forget all clients, devices and compiled programs; new ones are made under the options of then.

    Arrays made before keep their client alive; they may not be used with those made after.
    """
    clear_caches()
    forget_clients()


def register_backend_factory(name, factory, *, priority=0, fail_quietly=True, experimental=False,
                             make_topology=None, c_api=None):
    """`factory()` makes the PJRT client of the platform `name`, which `jax.devices(name)` then lists.

    It is called before the platform is used, or before `clear_backends`.

    Args:
        priority: above 0, it is the default platform, the highest first.
        fail_quietly: another platform is the default where the factory raises RuntimeError.
    """
    if experimental or make_topology is not None or c_api is not None:
        raise NotImplementedError("register_backend_factory: experimental, make_topology and c_api are not "
                                  "supported")
    factories[platform_named(name)] = priority, fail_quietly, factory


_registered = []


class _Registered(LRUCache):
    """A registered cache of a library among those that `clear_caches` empties."""
    __slots__ = ("cache", "what")

    def __init__(self, cache, what):
        super().__init__()
        self.cache, self.what = cache, what

    def clear(self):
        self.cache.cache_clear()

    def __repr__(self):
        return f"<cache for {self.what}>"


def register_backend_cache(cache, for_what):
    """Let `clear_caches` and `clear_backends` empty a cache too, one that has a `cache_clear`."""
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"register_backend_cache: {cache!r:.60} has no cache_clear(), as what "
                        "functools.lru_cache makes has")
    _registered.append(_Registered(cache, for_what))

_explain(globals())
