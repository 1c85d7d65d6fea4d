"""hlotrace.ops: reductions by segment ids."""
from .core.public import offer as _offer
from .numpy.segments import segment_max, segment_min, segment_prod, segment_sum

_offer(globals())
