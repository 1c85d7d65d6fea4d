"""hlotrace.topologies: chips that are not here, which programs can be compiled for."""
from .core.surface.public import export_names as _offer
from .distributed.topology_targets import *

_offer(globals())
