"""Where functions are computed, under the name that JAX has for it."""
from ..api.frontend_attributes import compute_on, compute_on2
from ..core.surface.public import export_names

__all__ = ["compute_on", "compute_on2"]

export_names(globals())
