"""SciPy's clusters: `vq`."""
from ...core.public import offer as _offer

_offer(globals(), homes={"": "vq"})
