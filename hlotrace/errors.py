"""hlotrace.errors: the exception classes, under JAX's names."""
