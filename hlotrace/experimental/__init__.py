"""hlotrace.experimental: names that JAX keeps here."""
import importlib as _importlib

from ..api.callbacks import io_callback
from ..api.misc import enable_x64
from ..core.public import offer as _offer

_LAZY = ("mesh_utils", "multihost_utils", "shard_map")    # modules that are imported when they are first used


def __getattr__(name):
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_offer(globals(), *_LAZY)
