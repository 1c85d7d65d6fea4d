"""Arrays written to storage, under the name that JAX has for it."""
from ...core.surface.public import offer as _offer

_offer(globals(), homes={"": "serialization"})
