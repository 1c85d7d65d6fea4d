"""Pytrees: nested containers seen as a list of leaves and a structure."""
