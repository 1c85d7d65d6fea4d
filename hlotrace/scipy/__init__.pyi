# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy import (
    cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate, linalg as linalg, ndimage as ndimage,
    optimize as optimize, sparse as sparse, special as special,
)

__all__ = ['cluster', 'fft', 'integrate', 'interpolate', 'linalg', 'ndimage', 'optimize', 'sparse', 'special']

