# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy import fft as fft, linalg as linalg, special as special

__all__ = ['fft', 'linalg', 'special']

