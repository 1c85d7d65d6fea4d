"""Where functions are computed, under the name that JAX has for it."""
from ..api.frontend_attributes import compute_on
from ..core.surface.public import export_names

__all__ = ["compute_on"]

export_names(globals())
