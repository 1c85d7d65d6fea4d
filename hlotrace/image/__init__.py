"""Images of other sizes: `jax.image`."""
from ..core.surface.public import offer as _offer
from .resampling import *

_offer(globals())
