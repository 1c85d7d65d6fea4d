"""XLA's shardings, jaxlib's objects, from bytes and to bytes."""
from jaxlib._hlo import HloSharding, OpSharding


def get_op_sharding_from_serialized_proto(sharding):
    """jaxlib's OpSharding of serialized bytes."""
    found = OpSharding()
    found.ParseFromString(sharding)
    return found


def get_hlo_sharding_from_serialized_proto(sharding):
    """jaxlib's HloSharding of serialized bytes."""
    return HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding):
    """The bytes of a jaxlib HloSharding."""
    return sharding.to_proto().SerializeToString()
