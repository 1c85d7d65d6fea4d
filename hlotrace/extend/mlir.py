"""JAX's `extend.mlir`: modules of StableHLO as bytes, by jaxlib's own functions."""
from ..core.surface.public import install_getattr as _explain
from ..runtime.binding import mlir as _mlir

__all__ = ["deserialize_portable_artifact", "hlo_to_stablehlo", "lower_with_sharding_in_types",
           "refine_polymorphic_shapes", "serialize_portable_artifact"]

deserialize_portable_artifact = _mlir.deserialize_portable_artifact
hlo_to_stablehlo = _mlir.hlo_to_stablehlo
refine_polymorphic_shapes = _mlir.refine_polymorphic_shapes
serialize_portable_artifact = _mlir.serialize_portable_artifact


def lower_with_sharding_in_types(_ctx, op, _aval):
    """`op` as it is: types carry no shardings here."""
    return op

_explain(globals())
