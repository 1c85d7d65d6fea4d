"""SciPy's solvers that only multiply: `linalg`."""
from ...core.surface.public import offer as _offer

_offer(globals(), homes={"": "linalg"})
