"""SciPy's integrals of samples."""
from ..core.surface.public import offer as _offer
from ..numpy import trapezoid

__all__ = ["trapezoid"]

_offer(globals())
