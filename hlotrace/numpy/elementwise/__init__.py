"""Elementwise functions: the ufunc class, its tables, and functions made of several."""
