"""hlotrace.flatten_util: a pytree as one vector."""
from .core.surface.public import export_names as _offer
from .numpy.trees import ravel_pytree

_offer(globals())
