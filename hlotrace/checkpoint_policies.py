"""hlotrace.checkpoint_policies: which residuals `checkpoint` keeps."""
from .api.checkpoint import everything_saveable, nothing_saveable
