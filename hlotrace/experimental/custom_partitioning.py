"""Functions of which the user says what each device does, under the name that JAX has for them."""
from ..api.parallel.custom_partitioning import (
    BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning)
from ..core.surface.public import export_names

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

export_names(globals())
