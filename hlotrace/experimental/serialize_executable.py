"""Compiled functions as bytes, under the name that JAX has for them."""
from ..api.serialize_executable import deserialize_and_load, serialize
from ..core.surface.public import export_names

__all__ = ["deserialize_and_load", "serialize"]

export_names(globals())
