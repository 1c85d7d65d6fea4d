"""Layouts and Formats, under the name that JAX has for them."""
from ..core.surface.public import export_names
from ..placement.shardings import with_layout_constraint
from ..sharding.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]

export_names(globals())
