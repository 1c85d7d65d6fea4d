"""hlotrace.ops: reductions by segment ids."""
from .core.surface.public import export_names as _offer
from .numpy.indexing.segments import segment_max, segment_min, segment_prod, segment_sum

_offer(globals())
