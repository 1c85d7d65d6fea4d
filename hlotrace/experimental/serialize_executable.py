"""Compiled functions as bytes, under the name that JAX has for them."""
from ..core.surface.public import export_names
from ..export.serialize_executable import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]

export_names(globals())
