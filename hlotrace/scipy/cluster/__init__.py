"""SciPy's clusters: `vq`."""
from ...core.surface.public import offer as _offer

_offer(globals(), homes={"": "vq"})
