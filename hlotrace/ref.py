"""hlotrace.ref: mutable arrays."""
from .core.public import offer as _offer
from .core.refs import AbstractRef, Ref
from .numpy.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

_offer(globals())
