"""hlotrace.flatten_util: a pytree as one vector."""
from .core.surface.public import offer as _offer
from .numpy.trees import ravel_pytree

_offer(globals())
