"""Images of other sizes: `jax.image`."""
from ..core.surface.public import export_names as _offer
from .resampling import *

_offer(globals())
