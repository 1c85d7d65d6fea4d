"""JAX's `extend.sharding`: XLA's shardings from bytes and to bytes."""
from ..core.public import explain as _explain
from ..runtime.shardings_of_xla import (
    get_hlo_sharding_from_serialized_proto,
    get_op_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding,
)

__all__ = ["get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
           "get_serialized_proto_from_hlo_sharding"]

_explain(globals())
