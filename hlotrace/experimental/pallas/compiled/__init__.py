"""Kernels that are compiled: traced for Refs that are places in memory, and written in a kernel dialect."""
