"""JAX's `interpreters`: rules of primitives under JAX's names.

A registry (`ad.primitive_jvps`, `batching.primitive_batchers`, ...) is a view of the primitives' own slots, in JAX's
signatures; there is no second place where rules are kept.
"""
