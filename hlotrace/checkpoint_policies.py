"""hlotrace.checkpoint_policies: which residuals `checkpoint` keeps."""
from .api.checkpoint_policies import *
from .core.public import offer as _offer

_offer(globals())
