"""XLA's shardings, jaxlib's objects, from bytes and to bytes."""
from __future__ import annotations

from typing import Any

from jaxlib._hlo import HloSharding, OpSharding


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """jaxlib's OpSharding of serialized bytes."""
    found = OpSharding()
    found.ParseFromString(sharding)
    return found


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """jaxlib's HloSharding of serialized bytes."""
    return HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def tiles(sharding: Any) -> tuple[list[int], list[int], bool] | None:
    """(shape, positions of devices, is the last axis one of copies?) of an HloSharding or OpSharding; None if
    replicated.

    NotImplementedError for one that is neither replicated nor of tiles.
    """
    hlo = HloSharding.from_proto(sharding) if isinstance(sharding, OpSharding) else sharding
    if hlo.is_replicated():
        return None
    copies = bool(hlo.replicate_on_last_tile_dim())
    if not hlo.is_tiled() or len(hlo.subgroup_types()) > copies:
        raise NotImplementedError(f"GSPMDSharding: {hlo} is neither replicated nor made of tiles and copies")
    return list(hlo.tile_assignment_dimensions()), list(hlo.tile_assignment_devices()), copies


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of a jaxlib HloSharding."""
    return sharding.to_proto().SerializeToString()
