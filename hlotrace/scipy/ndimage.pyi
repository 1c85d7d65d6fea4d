# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['map_coordinates']

def map_coordinates(input: Any, coordinates: Any, order: str, mode: str = 'constant', cval: Any = 0.0) -> Any: ...
