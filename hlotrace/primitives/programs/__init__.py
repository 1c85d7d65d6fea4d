"""Primitives that hold programs or call out of them."""
