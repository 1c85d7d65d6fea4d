"""Where functions are computed, under the name that JAX has for it."""
from ..api.tagged import compute_on
from ..core.public import offer

__all__ = ["compute_on"]

offer(globals())
