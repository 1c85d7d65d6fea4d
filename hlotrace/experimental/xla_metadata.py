"""What XLA is told of a function's operations, under the name that JAX has for it."""
from ..api.tagged import must_fuse_call, xla_metadata_call, xla_metadata_call2
from ..core.public import offer

__all__ = ["must_fuse_call", "xla_metadata_call", "xla_metadata_call2"]

offer(globals())
