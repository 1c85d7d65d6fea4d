# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy.sparse import linalg as linalg

__all__ = ['linalg']

