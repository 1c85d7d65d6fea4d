"""SciPy's geometry: `transform`."""
from ...core.public import offer as _offer

_offer(globals(), homes={"": "transform"})
