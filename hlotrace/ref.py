"""hlotrace.ref: mutable arrays."""
from .core.refs import AbstractRef, Ref
from .core.surface.public import export_names as _offer
from .numpy.indexing.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

_offer(globals())
