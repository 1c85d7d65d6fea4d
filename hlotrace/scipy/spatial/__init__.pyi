# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy.spatial import transform as transform

__all__ = ['transform']

