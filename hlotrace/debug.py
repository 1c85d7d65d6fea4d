"""hlotrace.debug: look at values inside compiled and transformed functions, and at arrays over devices."""
from .api.external.callbacks import debug_callback as callback, debug_log as log, debug_print as print
from .api.external.debugger import breakpoint
from .core.effects import DebugEffect, OrderedDebugEffect
from .core.surface.public import export_names as _offer
from .inspection.array_shardings import inspect_array_sharding, visualize_array_sharding, visualize_sharding

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
           "print", "visualize_array_sharding", "visualize_sharding"]

_offer(globals())
