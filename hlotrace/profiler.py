"""hlotrace.profiler: what devices and host do while, for xprof and Perfetto, with the user's lines."""
from .core.surface.public import export_names as _offer
from .inspection.profiling import *  # noqa: F403
from .inspection.profiling import __all__ as __all__

_offer(globals())
