"""hlotrace.checkpoint_policies: which residuals `checkpoint` keeps."""
from .api.checkpoint_policies import *
from .core.surface.public import export_names as _offer

_offer(globals())
