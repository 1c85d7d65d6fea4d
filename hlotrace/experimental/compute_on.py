"""Where functions are computed, under the name that JAX has for it."""
from ..api.frontend_attributes import compute_on
from ..core.surface.public import export_names

__all__ = ["compute_on", "compute_on2"]

compute_on2 = compute_on    # JAX 0.10's name of the one that takes functions

export_names(globals())
