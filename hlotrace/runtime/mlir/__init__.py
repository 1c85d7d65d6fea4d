"""jaxlib's MLIR bindings, and what is done with them."""
