"""Compiled programs on disk, under the name that JAX has for them."""
from ...core.surface.public import offer as _offer

_offer(globals(), homes={"": "compilation_cache"})
