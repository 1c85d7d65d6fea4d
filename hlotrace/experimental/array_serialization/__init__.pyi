# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from hlotrace.experimental.array_serialization import serialization as serialization

__all__ = ['serialization']

