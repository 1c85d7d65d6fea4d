"""Values that lie alike over devices, under the name that JAX had for it."""
from ..api.partitioned import shard_alike
from ..core.public import offer

__all__ = ["shard_alike"]

offer(globals())
