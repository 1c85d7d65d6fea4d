"""hlotrace.memory: kinds of memory."""
from .core.surface.public import export_names as _offer
from .sharding.abstract import Space

_offer(globals())
