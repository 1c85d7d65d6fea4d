# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['reset_cache', 'set_cache_dir']

def reset_cache() -> Any: ...
def set_cache_dir(path: Any) -> Any: ...
