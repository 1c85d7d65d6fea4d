"""hlotrace.dlpack: memory shared with other libraries."""
from .core.surface.public import export_names as _offer
from .numpy.arrays.creation import is_dlpack_dtype as is_supported_dtype, share as from_dlpack

_offer(globals())
