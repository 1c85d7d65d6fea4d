"""SciPy's geometry: `transform`."""
from ...core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "transform"})
