"""SciPy's solvers that only multiply: `linalg`."""
from ...core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "linalg"})
