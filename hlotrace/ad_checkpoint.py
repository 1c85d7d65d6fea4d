"""hlotrace.ad_checkpoint: rematerialization."""
from . import checkpoint_policies
from .api.checkpoint import (
    checkpoint, checkpoint_name, checkpoint_name_fwd, print_saved_residuals, remat, saved_residuals)
from .core.surface.public import export_names as _offer
from .primitives.programs.remat import Offloadable, Recompute, Saveable, name_p

_offer(globals(), "checkpoint_policies")
