"""hlotrace.distributed: join a job of several processes, and leave it."""
from ..core.surface.public import export_names as _offer
from .job import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]

_offer(globals())
