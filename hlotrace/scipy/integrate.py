"""SciPy's integrals of samples."""
from ..core.surface.public import export_names as _offer
from ..numpy import trapezoid

__all__ = ["trapezoid"]

_offer(globals())
