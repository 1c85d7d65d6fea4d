# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.example_libraries import optimizers as optimizers, stax as stax

__all__ = ['optimizers', 'stax']

