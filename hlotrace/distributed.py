"""hlotrace.distributed: join a job of several processes, and leave it."""
from .api.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]
