"""hlotrace.monitoring: hear of what is traced, lowered, compiled and found on disk; the events are listed in
`runtime/executables/monitors.py`."""
from .core.surface.public import export_names as _offer
from .runtime.executables.monitors import *  # noqa: F403

_offer(globals())
