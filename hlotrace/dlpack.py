"""hlotrace.dlpack: memory shared with other libraries."""
from .core.public import offer as _offer
from .numpy.creation import is_dlpack_dtype as is_supported_dtype
from .numpy.creation import share as from_dlpack

_offer(globals())
