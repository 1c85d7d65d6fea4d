"""hlotrace.ad_checkpoint: rematerialization."""
from .api.checkpoint import checkpoint, remat
