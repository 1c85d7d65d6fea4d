# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy import (
    cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate, linalg as linalg, ndimage as ndimage,
    optimize as optimize, signal as signal, sparse as sparse, spatial as spatial, special as special, stats as stats,
)

__all__ = [
    'cluster', 'fft', 'integrate', 'interpolate', 'linalg', 'ndimage', 'optimize', 'signal', 'sparse', 'spatial', 'special',
    'stats',
]

