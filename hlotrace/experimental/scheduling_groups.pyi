# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['scheduling_group']

def scheduling_group(name: str) -> Any: ...
