# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.

__all__ = []

