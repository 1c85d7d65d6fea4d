"""JAX's `extend.backend`: the clients of jaxlib behind devices."""
from ..api.misc import clear_caches
from ..core.public import explain as _explain
from ..runtime.client import available_platforms, client, default_device

__all__ = ["backends", "clear_in_memory_compilation_cache", "get_backend", "get_default_device"]


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


def get_default_device():
    """The device on which values lie unless told otherwise."""
    return default_device()


def clear_in_memory_compilation_cache():
    """Forget all compiled programs."""
    clear_caches()

_explain(globals())
