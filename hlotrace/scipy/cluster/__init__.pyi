# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.scipy.cluster import vq as vq

__all__ = ['vq']

