"""hlotrace.distributed: join a job of several processes, and leave it."""
from .api.distributed import initialize, is_initialized, shutdown
from .core.public import offer as _offer

__all__ = ["initialize", "is_initialized", "shutdown"]

_offer(globals())
