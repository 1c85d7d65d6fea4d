"""hlotrace.memory: kinds of memory."""
from .core.avals import Space
from .core.surface.public import export_names as _offer

_offer(globals())
