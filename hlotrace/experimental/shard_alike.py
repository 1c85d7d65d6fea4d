"""Values that have one sharding, under the name that JAX had for it."""
from ..api.parallel.custom_partitioning import shard_alike
from ..core.surface.public import export_names

__all__ = ["shard_alike"]

export_names(globals())
