"""Layouts and Formats, under the name that JAX has for them."""
from ..api.shardings import with_layout_constraint
from ..core.public import offer
from ..sharding.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]

offer(globals())
