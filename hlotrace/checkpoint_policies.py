"""hlotrace.checkpoint_policies: which residuals `checkpoint` keeps."""
from .api.checkpoint_policies import *
from .core.surface.public import offer as _offer

_offer(globals())
