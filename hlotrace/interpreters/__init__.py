"""JAX's `interpreters`: rules of primitives under JAX's names.

A registry (`ad.primitive_jvps`, `batching.primitive_batchers`, ...) is a view of the primitives' own slots, in JAX's
signatures; there is no second place where rules are kept.
"""
from ..core.surface.public import offer as _offer

_offer(globals(), homes={"": "ad batching mlir partial_eval pxla xla"})
