"""hlotrace.monitoring: hear of what is traced, lowered, compiled and found on disk; the events are listed in
`runtime/monitors.py`."""
from .core.public import offer as _offer
from .runtime.monitors import *  # noqa: F403
from .runtime.monitors import __all__ as __all__

_offer(globals())
