# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
import enum

__all__ = ['Space']

class Space(enum.Enum):
    Device = 1
    Host = 2
    Any = 3
