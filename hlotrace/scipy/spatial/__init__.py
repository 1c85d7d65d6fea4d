"""SciPy's geometry: `transform`."""
from ...core.surface.public import offer as _offer

_offer(globals(), homes={"": "transform"})
