"""Primitives that compute arrays."""
