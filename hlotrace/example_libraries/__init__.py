"""hlotrace.example_libraries: small libraries for neural networks, as examples of how one is written."""
from ..core.surface.public import offer as _offer

_offer(globals(), homes={"": "optimizers stax"})
