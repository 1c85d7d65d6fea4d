"""Arrays written to storage, under the name that JAX has for it."""
from ...core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "serialization"})
