"""Compiled functions as bytes, under the name that JAX has for them."""
from ..api.serialized import deserialize_and_load, serialize
from ..core.public import offer

__all__ = ["deserialize_and_load", "serialize"]

offer(globals())
