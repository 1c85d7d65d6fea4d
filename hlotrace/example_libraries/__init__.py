"""hlotrace.example_libraries: small libraries for neural networks, as examples of how one is written."""
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "optimizers stax"})
