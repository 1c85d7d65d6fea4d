"""Attributes of a function's operations for XLA, under the name that JAX has for it."""
from ..api.frontend_attributes import (
    fuse_limit, must_fuse_call, set_xla_metadata, xla_metadata_call, xla_metadata_call2)
from ..core.surface.public import export_names

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2"]

export_names(globals())
