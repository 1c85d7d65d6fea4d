"""JAX's `interpreters`: rules of primitives under JAX's names.

A registry (`ad.primitive_jvps`, `batching.primitive_batchers`, ...) is a view of the primitives' own slots,
in JAX's signatures; there is no second place that has rules.
"""
from ..core.surface.public import export_names as _offer

_offer(globals(), lazy={"": "ad batching mlir partial_eval pxla xla"})
