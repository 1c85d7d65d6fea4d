# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = ['compilation_cache']

