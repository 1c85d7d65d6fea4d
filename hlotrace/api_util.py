"""hlotrace.api_util: flattened functions, as libraries that transform functions themselves take them."""
from .core.surface.public import export_names as _offer
from .extend.flat_functions import *

_offer(globals())
