"""Calls out of programs: Python callbacks, the debugger, kernels by name (FFI)."""
