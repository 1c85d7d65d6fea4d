"""hlotrace.api_util: flattened functions, as libraries that transform functions themselves take them."""
from .core.surface.public import export_names as _offer
from .extend.flat_functions import (
    argnums_partial,
    debug_info,
    donation_vector,
    flatten_axes,
    flatten_fun,
    flatten_fun_nokwargs,
    rebase_donate_argnums,
    safe_map,
    shaped_abstractify,
)

_offer(globals())
