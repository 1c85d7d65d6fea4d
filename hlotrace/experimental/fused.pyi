# Written by tools/stubs.py, from the module itself and tools/stub_types.py: not to be edited.
from typing import Any

__all__ = ['fused', 'fused_p']

def fused(*, out_spaces: Any) -> Any: ...
fused_p: Any
