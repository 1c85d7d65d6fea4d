"""hlotrace.memory: kinds of memory."""
from .core.public import offer as _offer
from .sharding.base import Space

_offer(globals())
