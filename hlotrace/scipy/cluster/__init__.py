"""SciPy's clusters: `vq`."""
from ...core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "vq"})
