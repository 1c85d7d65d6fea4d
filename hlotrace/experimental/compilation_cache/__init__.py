"""Compiled programs on disk, under the name that JAX has for them."""
from ...core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "compilation_cache"})
