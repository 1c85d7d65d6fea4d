"""Functions on pytrees, and the registration of container classes."""
from .core.pytrees.pytree import *
from .core.pytrees.pytree import registry as default_registry
from .core.surface.public import export_names as _offer

_offer(globals())
