"""Functions of which the user says what each device does, under the name that JAX has for them."""
from ..api.partitioned import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning
from ..core.public import offer

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

offer(globals())
