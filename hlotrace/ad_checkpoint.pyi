# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace import checkpoint, checkpoint as remat

__all__ = ['checkpoint', 'remat']

